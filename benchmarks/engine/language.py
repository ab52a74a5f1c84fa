"""A description of a workload's language, translated to each engine's notation.

A description is a tree of the seven nodes below. `to_regex` is for engines that read regexes, `to_ebnf` for XGrammar
(GBNF), `to_lark` for ours and llguidance. `prefix_pattern` is the referee where two engines' masks differ: a pattern
for Python's `re`, over bytes, that matches exactly the beginnings of the language's texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

Node = Union["Text", "Chars", "Seq", "Choice", "Repeat", "Name", "Token"]

# A non-ASCII character in UTF-8, and the proper beginnings of one.
_WIDE = (
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_WIDE_BEGUN = (
    rb"[\xc2-\xf4]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?"
)


@dataclass(frozen=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """`low` to `high` characters (None: any number) of `ranges`, such as ``0-9``, or of all but `ranges`."""

    ranges: str
    low: int = 1
    high: int | None = None
    negated: bool = False


@dataclass(frozen=True)
class Seq:
    """One after the other."""

    parts: tuple[Node, ...]

    def __init__(self, *parts: Node | str):
        object.__setattr__(self, "parts", tuple(Text(p) if isinstance(p, str) else p for p in parts))


@dataclass(frozen=True)
class Choice:
    """One of these."""

    options: tuple[Node, ...]

    def __init__(self, *options: Node | str):
        object.__setattr__(self, "options", tuple(Text(o) if isinstance(o, str) else o for o in options))


@dataclass(frozen=True)
class Repeat:
    """`item` `low` to `high` times (None: any number)."""

    item: Node
    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class Name:
    """The rule of that name."""

    name: str


@dataclass(frozen=True)
class Token:
    """`item`, without names; one terminal if the notation has terminals."""

    item: Node


def to_regex(node: Node) -> str:
    """`node` as a regex, in the subset that every engine understands."""
    if isinstance(node, Text):
        return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", node.text).replace("\n", r"\n")
    if isinstance(node, Chars):
        return _class(node) + _times(node.low, node.high)
    if isinstance(node, Seq):
        return "".join(map(to_regex, node.parts))
    if isinstance(node, Choice):
        return f"({'|'.join(map(to_regex, node.options))})"
    if isinstance(node, Repeat):
        inner = to_regex(node.item)
        return (inner if isinstance(node.item, Choice) else f"({inner})") + _times(node.low, node.high)
    if isinstance(node, Token):
        return to_regex(node.item)
    raise TypeError(f"a regex can't refer to rule {node.name!r}")


def to_ebnf(rules: Mapping[str, Node]) -> str:
    """`rules` as GBNF, from the rule `root`."""
    return "".join(f"{name} ::= {_expression(node, lark=False)}\n" for name, node in rules.items())


def to_lark(rules: Mapping[str, Node]) -> str:
    """`rules` in Lark's notation, from the rule `start` (here `root`); character classes are regex terminals."""
    return "".join(
        f"{'start' if name == 'root' else name}: {_expression(node, lark=True)}\n" for name, node in rules.items()
    )


def _expression(node: Node, lark: bool) -> str:
    if isinstance(node, Text):
        escaped = node.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(node, Chars):
        regex = _class(node) + _times(node.low, node.high)
        return f"/{regex}/" if lark else regex
    if isinstance(node, Seq):
        return " ".join(_expression(part, lark) for part in node.parts)
    if isinstance(node, Choice):
        return f"({' | '.join(_expression(option, lark) for option in node.options)})"
    if isinstance(node, Repeat):
        times = _times(node.low, node.high)
        if lark and times not in ("*", "+"):
            times = f"~{node.low}..{node.high}"
        return f"({_expression(node.item, lark)}){times}"
    if isinstance(node, Token):
        return "/" + to_regex(node.item).replace("/", "\\/") + "/" if lark else _expression(node.item, lark)
    return node.name


def prefix_pattern(node: Node) -> re.Pattern[bytes]:
    """A pattern that fully matches the beginnings of `node`'s texts, and the texts; `node` contains no `Name`."""
    return re.compile(_begun(node), re.DOTALL)


def whole_pattern(node: Node) -> re.Pattern[bytes]:
    """A pattern that fully matches `node`'s texts; `node` contains no `Name`."""
    return re.compile(_whole(node), re.DOTALL)


def _begun(node: Node) -> bytes:
    """A pattern for every beginning, including the empty and the whole text."""
    # Of a text, nested optional bytes; of free characters, whole ones and then perhaps the beginning of one; of a
    # sequence, the beginning of a part after all the parts before it.
    if isinstance(node, Text):
        data, pattern = node.text.encode(), b""
        for byte in reversed(data):
            pattern = b"(?:" + re.escape(bytes((byte,))) + pattern + b")?"
        return pattern
    if isinstance(node, Chars):
        any_number = b"*" if node.high is None else b"{0,%d}" % node.high
        if not node.negated:
            return _bytes_class(node) + any_number
        cut = b"(?:" + _bytes_class(node) + b")"
        fewer = b"*" if node.high is None else b"{0,%d}" % (node.high - 1)
        return b"(?:" + cut + any_number + b"|" + cut + fewer + b"(?:" + _WIDE_BEGUN + b"))"
    if isinstance(node, Seq):
        pattern = b""
        for part in reversed(node.parts):
            rest = b"|" + _whole(part) + pattern if pattern else b""
            pattern = b"(?:" + _begun(part) + rest + b")"
        return pattern
    if isinstance(node, Choice):
        return b"(?:" + b"|".join(map(_begun, node.options)) + b")"
    if isinstance(node, Repeat):
        fewer = b"*" if node.high is None else b"{0,%d}" % (node.high - 1)
        return b"(?:" + _whole(node.item) + b")" + fewer + b"(?:" + _begun(node.item) + b")"
    raise TypeError(f"a pattern can't refer to rule {node.name!r}")


def _whole(node: Node) -> bytes:
    if isinstance(node, Text):
        return re.escape(node.text.encode())
    if isinstance(node, Chars):
        return b"(?:" + _bytes_class(node) + b")" + _times(node.low, node.high).encode()
    if isinstance(node, Seq):
        return b"".join(map(_whole, node.parts))
    if isinstance(node, Choice):
        return b"(?:" + b"|".join(map(_whole, node.options)) + b")"
    if isinstance(node, Repeat):
        return b"(?:" + _whole(node.item) + b")" + _times(node.low, node.high).encode()
    raise TypeError(f"a pattern can't refer to rule {node.name!r}")


def _bytes_class(node: Chars) -> bytes:
    """One character: ASCII by the class itself, others if the class is negated."""
    if not node.negated:
        return _class(node).encode()
    return rb"[^%s\x80-\xff]|" % _escaped(node.ranges).encode() + _WIDE


def _class(node: Chars) -> str:
    return f"[{'^' if node.negated else ''}{_escaped(node.ranges)}]"


def _escaped(ranges: str) -> str:
    return ranges.replace("\\", "\\\\").replace("]", "\\]").replace("[", "\\[").replace("\n", "\\n")


def _times(low: int, high: int | None) -> str:
    if high is None:
        return {0: "*", 1: "+"}.get(low) or f"{{{low},}}"
    return "" if low == high == 1 else f"{{{low},{high}}}"
