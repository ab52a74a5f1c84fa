"""Text environments: worlds that answer actions, and say what is in view."""

from constrained.environments.base import Binding, TextEnvironment

__all__ = ["Binding", "TextEnvironment"]
