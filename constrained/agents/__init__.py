"""Agents: strategies over knowledge, model and environment; `generate_plan`."""

from constrained.agents.plan import Plan, Step

__all__ = ["Plan", "Step", "generate_plan"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    # imported here: torch and transformers take seconds
    if name == "generate_plan":
        from constrained.agents.generate import generate_plan

        return generate_plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
