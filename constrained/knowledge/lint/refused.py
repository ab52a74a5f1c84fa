"""The loader's errors as findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes as n
from constrained.grammar.lark_literals import Fault, literal_node, range_node
from constrained.grammar.lark_outline import IMPORT, Outline, items_in
from constrained.grammar.lark_syntax import Quoted, Range
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lint.finding import ERROR, Finding
from constrained.limits import DEFAULT


def syntax(fault: GrammarError, source: Source) -> Finding:
    """Of a statement that doesn't parse."""
    hint = fault.hint or "a rule is written `name: ...`, a terminal `NAME: ...`"
    return Finding("syntax", _bare(fault), "the file can't be read as it stands", hint, _span(source, fault))


def refusal(fault: GrammarError, source: Source, outline: Outline | None = None) -> Finding:
    """Of a file that parses, but can't be loaded: the file itself, or one that it imports."""
    code = "limit" if isinstance(fault, LimitError) else "refused"
    message, place = _bare(fault), None
    if fault.line is not None and fault.source == source.name:
        place = _span(source, fault)
    elif fault.line is not None:
        message = f"{fault.source}:{fault.line}:{fault.column}: {message}"
        place = _import_of(Path(fault.source).stem, outline) if outline else None
    return Finding(code, message, "the file can't be loaded", fault.hint or "write it another way", place)


def told(fault: GrammarError, findings: Iterable[Finding]) -> bool:
    """Whether the loader's error is among the findings already."""
    errors = [f for f in findings if f.severity == ERROR]
    quoted = {name for f in errors for name in re.findall(r"'(\w+)'", f.message)}
    lines = {f.span.line for f in errors if f.span}
    return fault.line in lines or bool(quoted.intersection(re.findall(r"\w+", _bare(fault))))


def _span(source: Source, fault: GrammarError) -> SourceSpan:
    line, column = fault.line or 1, fault.column or 1
    return SourceSpan(source, line, column, line, column)


def _import_of(stem: str, outline: Outline) -> SourceSpan | None:
    """Where something is imported from a file of this name."""
    found = (d.span for d in outline.definitions if d.kind == IMPORT and d.library.split(".")[-2] == stem)
    return next(found, None)


def _bare(fault: GrammarError) -> str:
    """A loader's message without the place, the line and the caret, which a finding has of its own."""
    first = fault.message.split("\n", 1)[0]
    return re.sub(r"^\S*:\d+:\d+: ", "", first)


def node_of(item: Quoted | Range) -> n.Node:
    """What a literal stands for; the empty text if it can't be read, which `literals` tells of.

    Raises
    ------
    RecursionError
        Its groups are nested too deeply.
    """
    try:
        return _read(item)
    except (Fault, GrammarError):
        return n.EMPTY


def literals(outline: Outline) -> Iterator[Finding]:
    """All that the loader would stop at, were it not for the first of them."""
    for definition in outline.definitions:
        for item in items_in(definition.options):
            if not isinstance(item, (Quoted, Range)):
                continue
            try:
                _read(item)
            except Fault as fault:
                hint = fault.hint or "write it another way"
                yield Finding(
                    "refused",
                    fault.message,
                    "the file can't be loaded",
                    hint,
                    outline.source.span(item.at + fault.offset),
                )
            except GrammarError:
                pass  # a limit: the loader's affair


def _read(item: Quoted | Range) -> n.Node:
    return range_node(item) if isinstance(item, Range) else literal_node(item, DEFAULT)
