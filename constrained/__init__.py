"""Agents that cannot write an invalid plan."""

from typing import TYPE_CHECKING

from constrained.agents.plan import Plan
from constrained.automaton import BatchMatcher, CompiledGrammar, Grammar, Matcher, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError, GrammarError, LimitError
from constrained.knowledge import ActionKnowledge
from constrained.limits import Limits
from constrained.version import __version__ as __version__

if TYPE_CHECKING:
    from constrained.agents.generate import generate_plan

__all__ = [
    "ActionKnowledge",
    "BatchMatcher",
    "CompiledGrammar",
    "ConstrainedError",
    "Grammar",
    "GrammarError",
    "LimitError",
    "Limits",
    "Matcher",
    "Plan",
    "Vocabulary",
    "compile_grammar",
    "generate_plan",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    # imported here: torch and transformers take seconds
    if name == "generate_plan":
        from constrained.agents.generate import generate_plan

        return generate_plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
