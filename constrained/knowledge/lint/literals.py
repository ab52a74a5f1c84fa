"""Strings, regular expressions and ranges that can't be read, or that match nothing."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.analysis import productive_rules
from constrained.grammar.lark_literals import Fault, literal_node, range_node
from constrained.grammar.lark_syntax import Quoted, Range
from constrained.grammar.nodes import Rule
from constrained.knowledge.lint.finding import Finding, Span
from constrained.knowledge.lint.outline import Outline, items_in
from constrained.limits import DEFAULT


def node_of(item: Quoted | Range) -> n.Node:
    """What a literal stands for; the empty text if it can't be read, which `refused` tells of.

    Raises
    ------
    RecursionError
        Its groups are nested too deeply.
    """
    try:
        return _read(item)
    except (Fault, GrammarError):
        return n.EMPTY


def refused(outline: Outline) -> Iterator[Finding]:
    """All that the loader would stop at, were it not for the first of them."""
    for definition in outline.definitions:
        for item in items_in(definition.options):
            if not isinstance(item, (Quoted, Range)):
                continue
            try:
                _read(item)
            except Fault as fault:
                line, column = outline.source.place(item.at + fault.offset)
                hint = fault.hint or "write it another way"
                yield Finding("refused", fault.message, "the file can't be loaded", hint, Span(line, column))
            except GrammarError:
                pass  # a limit: the loader's affair


def matches_nothing(outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Regular expressions that no text matches."""
    for definition in outline.definitions:
        if definition.name not in reached:
            continue
        for item in items_in(definition.options):
            if isinstance(item, Quoted) and item.text[0] == "/" and not productive_rules({"": Rule("", node_of(item))}):
                yield Finding(
                    "matches-nothing",
                    f"no text matches {item.text}",
                    f"'{definition.name}' can't be written where it stands, and every alternative that needs it is left out",
                    "correct the pattern: a character must be in all of the sets that it is asked to be in",
                    outline.span(item),
                )


def _read(item: Quoted | Range) -> n.Node:
    return range_node(item) if isinstance(item, Range) else literal_node(item, DEFAULT)
