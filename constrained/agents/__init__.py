"""Agents: strategies over knowledge, model and environment; `generate_plan`."""

from constrained.agents.plan import Plan, Step

__all__ = ["Plan", "Step", "generate_plan"]


def __getattr__(name: str):
    # torch and transformers load only once a plan is asked for; training imports the
    # step texts from here and must not pull in the agents
    if name == "generate_plan":
        from constrained.agents.generate import generate_plan

        return generate_plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
