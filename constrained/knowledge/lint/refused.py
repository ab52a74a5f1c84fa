"""What the loader refuses, as findings: its errors, and all literals that it would stop at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from constrained.errors import GrammarError, LimitError
from constrained.grammar.lark_literals import Fault, literal_node, range_node
from constrained.grammar.lark_outline import IMPORT, Outline, items_in
from constrained.grammar.lark_syntax import Quoted, Range
from constrained.grammar.nodes import EMPTY, Node
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lint.finding import ERROR, Finding
from constrained.limits import DEFAULT


def syntax(fault: GrammarError, source: Source) -> Finding:
    """The finding for a statement that doesn't parse."""
    hint = fault.hint or "a rule is written `name: ...`, a terminal `NAME: ...`"
    return Finding("syntax", _bare(fault), hint, _span(source, fault))


def refusal(fault: GrammarError, source: Source, outline: Outline | None = None) -> Finding:
    """The finding for a file that parses, but can't be loaded; the error may be in a file that it imports."""
    message, span = _bare(fault), None
    if fault.line is not None and fault.source == source.name:
        span = _span(source, fault)
    elif fault.line is not None:
        message = f"{fault.source}:{fault.line}:{fault.column}: {message}"
        stem = Path(fault.source or "").stem
        imports = [e for e in outline.definitions if e.kind == IMPORT] if outline else []
        span = next((entry.span for entry in imports if entry.library.split(".")[-2] == stem), None)
    code = "limit" if isinstance(fault, LimitError) else "refused"
    return Finding(code, message, fault.hint or "write it another way", span)


def reported(fault: GrammarError, findings: Iterable[Finding]) -> bool:
    """Whether the loader's error is among the findings already."""
    errors = [f for f in findings if f.severity == ERROR]
    quoted = {name for f in errors for name in re.findall(r"'(\w+)'", f.message)}
    lines = {f.span.line for f in errors if f.span}
    return fault.line in lines or bool(quoted.intersection(re.findall(r"\w+", _bare(fault))))


def _span(source: Source, fault: GrammarError) -> SourceSpan:
    line, column = fault.line or 1, fault.column or 1
    return SourceSpan(source, line, column, line, column)


def _bare(fault: GrammarError) -> str:
    """A loader's message without its place, line and caret: a finding has a span instead."""
    first = fault.message.split("\n", 1)[0]
    return re.sub(r"^\S*:\d+:\d+: ", "", first)


def literals(outline: Outline) -> Iterator[Finding]:
    """All literals that the loader would stop at; it names only the first."""
    for entry in outline.definitions:
        for item in items_in(entry.options):
            if isinstance(item, (Quoted, Range)):
                try:
                    _read(item)
                except Fault as fault:
                    hint = fault.hint or "write it another way"
                    yield Finding("refused", fault.message, hint, outline.source.span(item.at + fault.offset))
                except GrammarError:
                    pass  # a limit, which the loader reports


def node_of(item: Quoted | Range) -> Node:
    """The node of a literal; the empty text if it can't be read, which `literals` reports.

    Raises RecursionError: its groups are nested too deeply.
    """
    try:
        return _read(item)
    except (Fault, GrammarError):
        return EMPTY


def _read(item: Quoted | Range) -> Node:
    return range_node(item) if isinstance(item, Range) else literal_node(item, DEFAULT)
