"""Agents that cannot write an invalid plan."""

import constrained.interrupts  # noqa: F401  (before what takes time)

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING

from constrained.agents.plan import Plan
from constrained.automaton import BatchMatcher, CompiledGrammar, Grammar, Matcher, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError, GrammarError, LimitError
from constrained.knowledge import ActionKnowledge
from constrained.limits import Limits
from constrained.version import __version__ as __version__

if TYPE_CHECKING:
    from constrained.agents.generate import agenerate_plan, generate_plan, stream_plan

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
    "agenerate_plan",
    "compile_grammar",
    "generate_plan",
    "stream_plan",
]

_LATER = ("generate_plan", "agenerate_plan", "stream_plan")
"""Imported at their first use: torch and transformers take seconds."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("constrained.agents.generate"), name)
