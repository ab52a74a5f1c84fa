"""Benchmarks; they are run from a checkout by `constrained bench`."""
