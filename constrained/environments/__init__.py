"""Text environments: they answer written actions, and tell which values the slots of an action grammar have."""

from constrained.environments.base import Binding, Environment

__all__ = ["Binding", "Environment"]
