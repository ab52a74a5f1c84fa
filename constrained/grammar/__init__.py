"""Reading grammars: `.lark` text, regular expressions, choices, JSON Schemas.

What they have in common is a tree of nodes (:mod:`constrained.grammar.nodes`); the automaton that
says which texts a grammar accepts is in :mod:`constrained.automaton`.
"""

from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.lark_reader import read_lark
from constrained.grammar.nodes import STEP
from constrained.grammar.source import SourceSpan, read_source, shipped_names

__all__ = ["STEP", "ContextFreeGrammar", "SourceSpan", "read_lark", "read_source", "shipped_names"]
