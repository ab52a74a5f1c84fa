"""Policies of tool agents: what may be called, with which arguments, after what was seen and said."""

from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.policy import Policy
from constrained.knowledge.tool_policy.reader import read_policy

__all__ = ["Memory", "Policy", "read_policy"]
