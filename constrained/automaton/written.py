"""What a JSON text has written, where items of arrays, or names of objects, must differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from json.encoder import encode_basestring
from math import prod
from typing import Any, NamedTuple

from constrained.grammar.json_schema.values import identity
from constrained.grammar.nodes import Distinct

_QUOTE, _BACKSLASH, _COMMA, _ARRAY = b'"\\,['
OPENING, CLOSING, SPACES = frozenset(b"[{"), frozenset(b"]}"), frozenset(b" \t\n\r")
ENDING = CLOSING | SPACES | {_COMMA}
"""Bytes that follow a number or a word."""
_IN_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:u[0-9a-fA-F]{0,3})?\Z")


_NOTHING: tuple[tuple, int] = (), 1


class Level:
    """An array or object that is being written, in which something differs.

    Attributes
    ----------
    distinct : Distinct
    seen : frozenset
        The items, or names: strings as they are, other values as `identity` has them.
    start : int
        Where in the text of `Written` the item begins that is being written; -1: there is none.
    awaits : bool
        Whether an item, or a name, may come next.
    whole : tuple
        If the item is an array or object: its items, or members as (name, value), as far as they were found to be
        whole, and where after its bracket the text goes on. So it isn't read from its beginning again with every token.
    """

    __slots__ = ("awaits", "distinct", "seen", "start", "whole")

    def __init__(self, distinct: Distinct):
        self.distinct = distinct
        self.seen: frozenset = frozenset()
        self.start, self.awaits = -1, True
        self.whole: tuple[tuple, int] = _NOTHING

    def copy(self) -> Level:
        other = Level(self.distinct)
        other.seen, other.start, other.awaits, other.whole = self.seen, self.start, self.awaits, self.whole
        return other

    @property
    def strings(self) -> list[str]:
        """The strings among what is seen."""
        return strings(self.seen)

    def has_more(self, count: int, begun: Set = frozenset(), place: object = None, another: bool = False) -> bool:
        """Whether an object surely can still differ from `count` others, by members that aren't begun.

        `begun`: names of the others. `place`: that name has come, and not its value. `another`: some name has to come.
        """
        varied = self.distinct.varied
        if varied is None:
            return True
        for each in varied:
            left = {name: ways for name, ways in each if name not in begun}
            every = prod(left.values())
            there = [place] if place is not None else left if another else ()  # one of these is there: a way less
            if min((every - every // left[name] for name in there if name in left), default=every) <= count:
                return False
        return True

    @property
    def holds_containers(self) -> bool:
        """Whether an array or object is among what is seen."""
        return any(isinstance(key, frozenset) or isinstance(key, tuple) and key[0] == "array" for key in self.seen)


class Written:
    """A JSON text from the bracket of the outermost `Level` on.

    Attributes
    ----------
    stack : list of (Level or None)
        The brackets that are open; None for those in which nothing differs.
    text : bytearray
        The text, at least from where the outermost level's item begins.
    string : int
        1 inside a string, 2 there after a backslash, else 0.
    opened : int
        Where in `text` that string begins, after its quote.
    """

    __slots__ = ("opened", "stack", "string", "text")

    def __init__(self, stack: list[Level | None], text: bytearray, string: int, opened: int = 0):
        self.stack, self.text, self.string, self.opened = stack, text, string, opened

    @property
    def key(self) -> tuple:
        """A key that is equal for texts that go on alike, for a search."""
        stack = tuple(level and (level.seen, level.start, level.awaits) for level in self.stack)
        return stack, self.string, bytes(self.text)

    @property
    def longest(self) -> int:
        """Bytes of the longest string that may not come again."""
        return max((len(one.encode()) for level in self.stack if level for one in level.strings), default=0)

    def copy(self) -> Written:
        stack = [level and level.copy() for level in self.stack]
        return Written(stack, bytearray(self.text), self.string, self.opened)

    def items(self, every: bool = True) -> Iterator[tuple[int, Begun]]:
        """The arrays and objects being written as items that may still equal one before, each with its depth.

        Unless `every`, only those that can't always be made longer.
        """
        for depth, level in enumerate(self.stack):
            if level is None or level.start < 0 or not level.seen or not every and level.distinct.varied is None:
                continue
            if self.text[level.start] in OPENING:
                begun = _begun(self.text, level)
                if begun.same:
                    yield depth, begun

    @property
    def begun(self) -> bytes:
        """What is written of the innermost level's string, number or word; empty if there is none."""
        top = self.stack[-1]
        return bytes(self.text[top.start :]) if top is not None and top.start >= 0 else b""

    @property
    def inside(self) -> bytes:
        """What is written of the string that is open."""
        return bytes(self.text[self.opened :])

    def read(self, byte: int, opened: Distinct | None, most: int) -> bool:
        """Read a byte that the grammar admits; False if an item is written again, or more than `most` are begun."""
        self.text.append(byte)
        top, at = self.stack[-1], len(self.text) - 1
        if self.string:
            ends = self.string == 1 and byte == _QUOTE
            self.string = 0 if ends else 2 if self.string == 1 and byte == _BACKSLASH else 1
            return not ends or top is None or self._ended(top, at + 1)
        if top is not None and byte in ENDING and not self._ended(top, at):
            return False
        if byte in CLOSING:
            self.stack.pop()
            below = self.stack[-1] if self.stack else None
            return below is None or self._ended(below, at + 1)
        if byte == _COMMA and top is not None:
            top.awaits = True
            return len(top.seen) < most
        if byte not in SPACES and byte != _COMMA and top is not None and top.awaits:
            top.start, top.awaits, top.whole = at, False, _NOTHING
        if byte in OPENING:
            self.stack.append(None if opened is None else Level(opened))
        elif byte == _QUOTE:
            self.string, self.opened = 1, at + 1
        return True

    def _ended(self, level: Level, end: int) -> bool:
        """Note the item that ends there, if one does; False if it was written before."""
        if level.start < 0:
            return True
        value = json.loads(self.text[level.start : end].decode())
        key = value if isinstance(value, str) else identity(value)
        level.start = -1
        if level is self.stack[0]:
            self.text.clear()
        if key in level.seen:
            return False
        level.seen |= {key}
        return True


class Begun(NamedTuple):
    """An array or object that is being written, as an item of an array whose items differ.

    Attributes
    ----------
    same : list
        The items seen that begin with the items, or have the members, that are whole, as `identity` has them.
    to_come : bool
        Whether it can surely still differ: it can always have more items or members, or the properties that are still
        to be begun have enough values.
    place : str, int or None
        The index of the item, or the name of the member, that isn't whole; None for a name that may be written again.
    value : bytes
        What is written of it.
    """

    same: list
    to_come: bool
    place: str | int | None
    value: bytes

    @property
    def texts(self) -> list[str]:
        """All strings in the items of `same`: one with another string differs from them."""
        return [text for one in self.same for text in _texts_in(one)]

    @property
    def values(self) -> frozenset:
        """What the value must not be, unless something else differs: as in `Level.seen`."""
        if isinstance(self.place, int):
            candidates = {one[self.place + 1] for one in self.same if len(one) > self.place + 1}
        else:
            candidates = {value for one in self.same for name, value in one if name == self.place}
        return frozenset(value[1] if _is_text(value) else value for value in candidates)


def _texts_in(identified: Any) -> Iterator[str]:
    """All strings in a value, as `identity` has it."""
    if _is_text(identified):
        yield identified[1]
    elif isinstance(identified, frozenset):
        for name, value in identified:
            yield name
            yield from _texts_in(value)
    elif identified[0] == "array":
        for item in identified[1:]:
            yield from _texts_in(item)


def _is_text(identified: Any) -> bool:
    return isinstance(identified, tuple) and identified[0] is False and isinstance(identified[1], str)


def _begun(text: bytearray, level: Level) -> Begun:
    """What an array or object has so far, from its text."""
    items, done = level.whole  # or members, as (name, value)
    is_array = text[level.start] == _ARRAY
    written = bytes(text[level.start + done :])
    rest = written.decode("utf-8", "ignore")  # the last character may not be whole
    place: str | int | None = None
    value = b""
    at = _end(_BETWEEN, rest, 0)
    while at < len(rest) and (is_array or rest[at] == '"'):
        try:
            if is_array:
                place = len(items)
            else:
                place, at = _DECODER.raw_decode(rest, at)
                at = _end(_BETWEEN, rest, at)
            found, end = _DECODER.raw_decode(rest, at)
            is_whole = _end(_NUMBER, rest, at) < len(rest)  # a number may go on
        except ValueError:
            is_whole = False
        if not is_whole:
            value = b"" if place is None else written[len(rest[:at].encode()) :]
            break
        items = (*items, identity(found) if is_array else (place, identity(found)))
        place, at = None, _end(_BETWEEN, rest, end)
        level.whole = items, done + len(rest[:at].encode())
    if is_array:
        start = ("array", *items)
        same = [one for one in level.seen if isinstance(one, tuple) and one[: len(start)] == start]
        return Begun(same, level.distinct.varied is None, place, value)
    once = level.distinct.once
    members = frozenset(member for member in items if member[0] in once)  # others may be written again
    objects = [one for one in level.seen if isinstance(one, frozenset) and members <= one]
    if place in once:
        objects = [one for one in objects if any(name == place for name, _ in one)]
    begun = {name for name, _ in items} | ({place} if value else set())
    is_begun = at < len(rest) or text.rstrip()[-1] == _COMMA or not items and len(text) - level.start > 1
    another = place is None and is_begun
    more = level.has_more(len(objects), begun, None if value else place, another)
    return Begun(objects, more, place if place in once else None, value)


def _end(pattern: re.Pattern, text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,:]*")
_NUMBER = re.compile(r"[-+.0-9eE]*")


def strings(seen: frozenset) -> list[str]:
    """The strings among the items or names in `seen`."""
    return [key for key in seen if isinstance(key, str)]


def endings(begun: bytes, seen: list[str]) -> list[bytes] | None:
    """For each string of `seen` that begins with `begun`, what is left to write of it, with its closing quote.

    Characters are written as themselves where they can be. None: it stands inside an escape.
    """
    if b"\\" in begun and _IN_ESCAPE.search(begun):
        return None
    whole = len(begun)
    for length in range(1, min(4, whole + 1)):
        byte = begun[-length]
        if byte >= 0xC0:
            whole -= length if length < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte >= 0xC0 or byte < 0x80:
            break
    text, rest = begun[:whole].decode(), begun[whole:]
    text = json.loads(f'"{text}"') if "\\" in text else text
    if text and "\ud800" <= text[-1] < "\udc00":
        return None
    result = [encode_basestring(one[len(text) :]).encode()[1:] for one in seen if one.startswith(text)]
    return [end[len(rest) :] for end in result if end.startswith(rest)]
