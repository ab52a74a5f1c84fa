"""Agents that cannot write an invalid plan."""

from constrained.automaton import CompiledGrammar, Matcher, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError, GrammarError
from constrained.grammar import Grammar
from constrained.knowledge import ActionKnowledge

__version__ = "0.1.0"

__all__ = [
    "ActionKnowledge",
    "CompiledGrammar",
    "ConstrainedError",
    "Grammar",
    "GrammarError",
    "Matcher",
    "Vocabulary",
    "compile_grammar",
]
