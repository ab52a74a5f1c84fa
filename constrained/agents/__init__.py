"""Agents: strategies over knowledge, model and environment; `constrained.generate_plan` runs one."""

from constrained.agents.plan import Plan, Step

__all__ = ["Plan", "Step"]
