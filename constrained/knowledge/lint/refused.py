"""Turn the errors of the loader into findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from constrained.errors import GrammarError
from constrained.grammar.lark_literals import Fault, literal_node, range_node
from constrained.grammar.lark_outline import IMPORT, Outline
from constrained.grammar.lark_syntax import Quoted, Range
from constrained.grammar.lark_tokens import word_at
from constrained.grammar.nodes import EMPTY, Node
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lint.finding import Finding
from constrained.limits import DEFAULT


def syntax(fault: GrammarError, source: Source) -> Finding:
    """The finding for a statement that doesn't parse."""
    hint = fault.hint or "a rule is written `name: ...`, a terminal `NAME: ...`"
    return Finding("syntax", fault.problem, hint, _span(source, fault))


def refusal(fault: GrammarError, source: Source, outline: Outline | None = None) -> Finding:
    """The finding for a file that parses, but can't be loaded; the error may be in a file that it imports."""
    message, span = fault.problem, None
    if fault.line is not None and fault.source == source.name:
        span = _span(source, fault)
    elif fault.line is not None:
        message = f"{fault.source}:{fault.line}:{fault.column}: {message}"
        stem = Path(fault.source or "").stem
        imports = [e for e in outline.definitions if e.kind == IMPORT] if outline else []
        span = next((entry.span for entry in imports if entry.library.split(".")[-2] == stem), None)
    return Finding(fault.code, message, fault.hint or "write it another way", span)


def loader_errors(faults: Iterable[GrammarError], outline: Outline) -> Iterator[Finding]:
    """All errors of the loader, each once, without those that only follow from others."""
    imports = {entry.name: entry.span for entry in outline.definitions if entry.kind == IMPORT}
    places = {(span.line, span.column) for span in imports.values()}
    reported = set()
    for fault in faults:
        names = set(re.findall(r"'(\w+)'", fault.message))
        lost = fault.code == "undefined-rule" and (fault.line, fault.column) not in places and names & imports.keys()
        follows = fault.code not in ("defined-twice", "syntax") and names & outline.guessed
        key = fault.problem, None if names else (fault.line, fault.column)  # an unknown name is reported once
        if not lost and not follows and key not in reported:
            reported.add(key)
            yield refusal(fault, outline.source, outline)


def _span(source: Source, fault: GrammarError) -> SourceSpan:
    """The span of an error: of the name at its place, if there is one."""
    at = source.offset(fault.line or 1, fault.column or 1)
    return source.span(at, len(word_at(source.text, at)))


def node_of(item: Quoted | Range) -> Node:
    """The node of a literal; the empty text if the literal can't be read, which the loader reports.

    Raises RecursionError: its groups nest too deeply.
    """
    try:
        return range_node(item) if isinstance(item, Range) else literal_node(item, DEFAULT)
    except (Fault, GrammarError):
        return EMPTY
