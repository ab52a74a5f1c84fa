"""Repeats and recursion without a bound, by which a text can run on until the token limit cuts it off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from constrained.grammar import STEP
from constrained.grammar import nodes as n
from constrained.grammar.analysis import cyclic_components
from constrained.grammar.lark_outline import (
    IMPORT,
    TERMINAL,
    Outline,
    OutlineEntry,
    first_of,
    items_in,
    names_in,
    spelled,
)
from constrained.grammar.lark_syntax import Group, Name, Options, Quoted, Repeated
from constrained.grammar.nodes import Node, Rule
from constrained.grammar.source import Source
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.imports import library

_LOW = {"*": 0, "+": 1}
_WHY = (
    "a model that falls into repeating itself is never made to stop here: the text runs on until the token "
    "limit cuts it off, unfinished"
)
_BOUND = 200
_SHOWN = 40
"""Characters of a group that are repeated in a message."""
_IMPORTS = 5
"""Files that import each other, followed so far."""


def endless(source: Source, outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Unbounded repeats, at the place of each."""
    for options in outline.ignored:
        yield _ignored(options, outline)
    aside = {name.text for options in outline.ignored for name in names_in(options)}
    for definition in outline.definitions:
        name = definition.name
        if name not in reached or (name in aside and name not in outline.users):
            continue
        if definition.kind == IMPORT:
            yield from _imported(source, definition)
        else:
            yield from _repeats(definition, outline)


def _ignored(options: Options, outline: Outline) -> Finding:
    first = first_of(next(items_in(options)))
    return Finding(
        "endless-text",
        f"%ignore admits {_shown(first)} any number of times, between all tokens",
        _WHY + "; whitespace is where models get stuck most",
        'write the spaces where they belong, as in `"a" " "? "b"`, and take out the %ignore',
        outline.span(first),
    )


def _repeats(definition: OutlineEntry, outline: Outline) -> Iterator[Finding]:
    in_terminal = definition.kind == TERMINAL
    for item in items_in(definition.options):
        if isinstance(item, Quoted) and item.text[0] == "/":
            yield from _pattern(item, outline)
        elif isinstance(item, Repeated) and item.high is None:
            inner = item.item
            if isinstance(inner, Name) and inner.text == STEP:
                continue
            token = not isinstance(inner, Group) and (not isinstance(inner, Name) or inner.text.isupper())
            if in_terminal or token:
                yield _endless(item, outline)
            elif not _takes_steps(inner, outline):
                yield _list(item, outline)


def _takes_steps(item: Name | Group, outline: Outline) -> bool:
    """Whether some action ends within `item`: then it is a plan that goes on, not a text."""
    names = [item.text] if isinstance(item, Name) else [name.text for name in names_in(item.options)]
    return any(STEP in outline.reachable(name) for name in names)


def _shown(item) -> str:
    text = spelled(item)
    return text if len(text) <= _SHOWN else "(...)"


def _endless(item: Repeated, outline: Outline) -> Finding:
    shown = _shown(item.item)
    return Finding(
        "endless-text",
        f"{shown}{item.text} may be written without end",
        _WHY,
        f"bound it: `{shown}~{item.low}..{_BOUND}`",
        outline.span(item),
    )


def _list(item: Repeated, outline: Outline) -> Finding:
    shown = _shown(item.item)
    return Finding(
        "endless-list",
        f"the list {shown}{item.text} has no greatest length",
        "one text can hold any number of these; only the token limit ends a model that doesn't",
        f"if there is a natural most, say so: `{shown}~{item.low}..20`",
        outline.span(item),
    )


def _pattern(item: Quoted, outline: Outline) -> Iterator[Finding]:
    bounded = bounded_pattern(item.text)
    if bounded != item.text:
        message = f"{item.text} may match without end"
        yield Finding("endless-text", message, _WHY, f"bound it: `{bounded}`", outline.span(item))


_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>[*+])(?P<lazy>\??)\+?|\{(?P<low>\d*),\}|\{[\d,]*\}[?+]?|.", re.DOTALL
)


def bounded_pattern(pattern: str) -> str:
    """A regular expression with its unbounded repeats bounded; the same text if it has none."""

    def bound(found: re.Match) -> str:
        if found["open"]:
            return f"{{{_LOW[found['open']]},{_BOUND}}}{found['lazy']}"
        if found["low"] is not None:
            low = int(found["low"] or 0)
            return f"{{{low},{max(low, _BOUND)}}}"
        return found[0]

    return _PIECE.sub(bound, pattern)


def _imported(source: Source, definition: OutlineEntry) -> Iterator[Finding]:
    for name, piece in _unbounded_inside(source, definition.library, 0):
        yield Finding(
            "endless-text",
            f"the imported {definition.name} may match without end: {name} is {piece}",
            _WHY,
            f"define a bounded one here, such as `{definition.name}: /.../` with {{1,{_BOUND}}} in place of * and +",
            definition.span,
        )
        return


def _unbounded_inside(source: Source, dotted: str, depth: int) -> Iterator[tuple[str, str]]:
    """(terminal, what in it is unbounded) of a terminal of another file, and of all that it is made of."""
    found = library(source, dotted) if depth <= _IMPORTS else None
    if found is None:
        return
    other, outline = found
    for used in sorted(outline.reachable(dotted.split(".")[-1])):
        for definition in outline.by_name.get(used, ()):
            if definition.kind == TERMINAL:
                for finding in _repeats(definition, outline):
                    yield used, finding.message.split(" may ")[0]
            elif definition.kind == IMPORT:
                yield from _unbounded_inside(other, definition.library, depth + 1)


def nesting(rules: dict[str, Rule], outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Rules that come round to themselves within one action: each once."""
    acting = _acting(rules)
    written = _inline_params(rules, acting)
    calls = {name: set(_inline_calls(name, rules, written, acting)) for name in rules}
    order = {name: i for i, name in enumerate(outline.by_name) if name in reached}
    for found in cyclic_components(calls):
        ring = sorted((name for name in found if name in order), key=order.__getitem__)
        if not ring:
            continue
        name, *others = ring
        by = f", by way of {_some(others)}" if others else ""
        yield Finding(
            "endless-list",
            f"'{name}' can hold itself again and again within one text{by}",
            "a text can nest, or go on, without a bound; only the token limit ends a model that doesn't",
            'nothing, if that is meant; else write the depth or the length that is enough, as in `item ("," item)~0..9`',
            outline.span_of(name),
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _inline_calls(name: str, rules: dict[str, Rule], written: set[tuple[str, str]], acting: set[str]) -> Iterator[str]:
    """Rules that may be read before the action ends; arguments count where the parameter is `written`."""
    for node in _inline(rules[name].body, acting):
        if isinstance(node, n.Call):
            yield node.rule
            for param, arg in zip(rules[node.rule].params, node.args):
                if (node.rule, param) in written:
                    yield from (part.rule for part in n.walk(arg) if isinstance(part, n.Call))


def _inline_params(rules: dict[str, Rule], acting: set[str]) -> set[tuple[str, str]]:
    """(rule, parameter) that stands before the end of the rule's action."""
    found = {
        (name, node.name)
        for name, rule in rules.items()
        for node in _inline(rule.body, acting)
        if isinstance(node, n.Var)
    }
    while True:
        new = {
            (name, var.name)
            for name, rule in rules.items()
            for node in _inline(rule.body, acting)
            if isinstance(node, n.Call)
            for param, arg in zip(rules[node.rule].params, node.args)
            if (node.rule, param) in found
            for var in n.walk(arg)
            if isinstance(var, n.Var)
        } - found
        if not new:
            return found
        found |= new


def _acting(rules: dict[str, Rule]) -> set[str]:
    """Rules within which an action may end."""
    callers: dict[str, set[str]] = {}
    work = []
    for name, rule in rules.items():
        for part in n.walk(rule.body):
            if isinstance(part, n.Call):
                callers.setdefault(part.rule, set()).add(name)
            elif isinstance(part, n.Slot) and part.name == STEP:
                work.append(name)
    found: set[str] = set()
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += callers.get(name, ())
    return found


def _inline(node: Node, acting: set[str]) -> Iterator[Node]:
    """What of a body stands before its action ends; calls as they are, without their arguments."""
    if isinstance(node, n.Seq):
        for item in node.items:
            yield from _inline(item, acting)
            if isinstance(item, n.Slot) and item.name == STEP or isinstance(item, n.Call) and item.rule in acting:
                return
    elif isinstance(node, (n.Alt, n.Repeat)):
        for item in n.children(node):
            yield from _inline(item, acting)
    else:
        yield node
