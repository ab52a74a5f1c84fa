"""Lumos's modules, trained small and from nothing, beside other ways of training on the same tasks."""
