"""Lint `.lark` files: each module finds one kind of mistake; every finding has a place and a fix."""

from constrained.grammar.source import SourceSpan
from constrained.knowledge.lint.check import Checked, check_file
from constrained.knowledge.lint.finding import CODES, ERROR, NOTE, SEVERITIES, WARNING, Finding
from constrained.knowledge.lint.unwritable import TokenCover

__all__ = [
    "CODES",
    "ERROR",
    "NOTE",
    "SEVERITIES",
    "WARNING",
    "Checked",
    "Finding",
    "SourceSpan",
    "TokenCover",
    "check_file",
]
