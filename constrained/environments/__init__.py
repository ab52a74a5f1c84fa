"""Text environments: they answer written actions, and offer the values of an action grammar's slots."""

from constrained.environments.base import Binding, Environment

__all__ = ["Binding", "Environment"]
