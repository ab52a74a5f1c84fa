"""Reading grammars: `.lark` text, regular expressions, choices."""

from constrained.grammar.grammar import STEP, Grammar
from constrained.grammar.lark_reader import read_lark
from constrained.grammar.source import read_source, shipped_names

__all__ = ["STEP", "Grammar", "read_lark", "read_source", "shipped_names"]
