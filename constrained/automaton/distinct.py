"""States that remember what a text has written: for arrays whose items differ, and objects whose names do.

The automaton reads such an array like any other. Beside its state, the items (or names) that are written are kept, each
as the value that it is: "a" is "\\u0061", and 1 is 1.0. A text that repeats one can't go on, and neither can one that
could only repeat one. Arrays and objects among the items can mostly have more in them (`json_schema.containers`): so
they are looked at before they end only where white space would leave nothing but their end.

What can be read next depends on what was written in few tokens: those that end an item, or that come close to one. The
mask of the automaton's own state is kept as for any state, and only these tokens are tried (`Endings`).

Objects that can't be longer have properties of very many values (`nodes.Distinct.varied`). As long as one of these is
still to come, an object can differ from all others; after that, what it can still be is searched.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import islice
from json.encoder import encode_basestring
from typing import Any, NamedTuple

import numpy as np

from constrained.automaton.graph_stack import alternatives
from constrained.automaton.positions import TOO_MANY_WAYS, InLiteral, Position
from constrained.automaton.state import MAX_FORCED, State
from constrained.automaton.vocabulary import Vocabulary
from constrained.grammar.json_schema.constraints import identity
from constrained.grammar.nodes import Call, Distinct

SEARCHED = 5_000
"""Beginnings of one string, number or word that are tried, one byte longer each, to find one that differs."""

_QUOTE, _BACKSLASH, _COMMA = b'"\\,'
_BLANK = (b" ", b"\t", b"\n", b"\r")
_OPENING, _CLOSING, _SPACES = frozenset(b"[{"), frozenset(b"]}"), frozenset(b" \t\n\r")
_ENDING = _CLOSING | _SPACES | {_COMMA}
_IN_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:u[0-9a-fA-F]{0,3})?\Z")


class Level:
    """An array or object that is being written, in which something differs.

    Attributes
    ----------
    distinct : Distinct
    seen : frozenset
        The items, or names: strings as they are, other values as `identity` has them.
    start : int
        Where in the memory's text the item begins that is being written; -1: there is none.
    awaits : bool
        Whether an item, or a name, may come next.
    """

    __slots__ = ("awaits", "distinct", "seen", "start")

    def __init__(self, distinct: Distinct, seen: frozenset = frozenset(), start: int = -1, awaits: bool = True):
        self.distinct, self.seen, self.start, self.awaits = distinct, seen, start, awaits

    @property
    def strings(self) -> list[str]:
        """The strings among what is seen."""
        return _strings(self.seen)

    @property
    def holds_containers(self) -> bool:
        """Whether an array or object is among what is seen."""
        return any(isinstance(key, frozenset) or isinstance(key, tuple) and key[0] == "array" for key in self.seen)


class Memory:
    """What is known of a JSON text from the bracket of the outermost `Level` on.

    Attributes
    ----------
    stack : list of (Level or None)
        The brackets that are open; None for those in which nothing differs.
    text : bytearray
        The text, at least from where the outermost level's item begins.
    string : int
        1 inside a string, 2 there after a backslash, else 0.
    """

    __slots__ = ("stack", "string", "text")

    def __init__(self, stack: list[Level | None], text: bytearray, string: int):
        self.stack, self.text, self.string = stack, text, string

    @property
    def key(self) -> tuple:
        """What tells it from others, for a search."""
        stack = tuple(level and (level.seen, level.start, level.awaits) for level in self.stack)
        return stack, self.string, bytes(self.text)

    @property
    def longest(self) -> int:
        """Bytes of the longest string that may not come again."""
        return max((len(one.encode()) for level in self.stack if level for one in level.strings), default=0)

    def copy(self) -> Memory:
        stack = [level and Level(level.distinct, level.seen, level.start, level.awaits) for level in self.stack]
        return Memory(stack, bytearray(self.text), self.string)

    def items(self, every: bool = True) -> Iterator[tuple[int, Begun]]:
        """The arrays and objects that are being written as items, and may be one that is seen, by their depth.

        Unless `every`, only those that can't always be longer.
        """
        for depth, level in enumerate(self.stack):
            if level is None or level.start < 0 or not level.seen or not every and level.distinct.varied is None:
                continue
            if self.text[level.start] in _OPENING:
                begun = _begun(bytes(self.text[level.start :]), level)
                if begun.same:
                    yield depth, begun

    @property
    def begun(self) -> bytes:
        """What is written of the innermost level's string, number or word; empty if there is none."""
        top = self.stack[-1]
        return bytes(self.text[top.start :]) if top is not None and top.start >= 0 else b""

    def read(self, byte: int, opened: Distinct | None, most: int) -> bool:
        """Read a byte that the grammar admits; False if an item is written again, or more than `most` are begun."""
        self.text.append(byte)
        top, at = self.stack[-1], len(self.text) - 1
        if self.string:
            ends = self.string == 1 and byte == _QUOTE
            self.string = 0 if ends else 2 if self.string == 1 and byte == _BACKSLASH else 1
            return not ends or top is None or self._ended(top, at + 1)
        if top is not None and byte in _ENDING and not self._ended(top, at):
            return False
        if byte in _CLOSING:
            self.stack.pop()
            below = self.stack[-1] if self.stack else None
            return below is None or self._ended(below, at + 1)
        if byte == _COMMA and top is not None:
            top.awaits = True
            return len(top.seen) < most
        if byte not in _SPACES and byte != _COMMA and top is not None and top.awaits:
            top.start, top.awaits = at, False
        if byte in _OPENING:
            self.stack.append(None if opened is None else Level(opened))
        elif byte == _QUOTE:
            self.string = 1
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

    def lives(self, state: State) -> bool:
        """Whether what is begun, or awaited, can still differ."""
        # white space can decide that an item closes
        closes = not self.string and self.text[-1:] in _BLANK and state.first() <= _CLOSING | _SPACES
        for depth, begun in self.items(closes):
            is_last = closes and depth == len(self.stack) - 2 and not begun.value
            if (is_last or not begun.to_come) and not self._differs(state, depth, begun):
                return False
        top = self.stack[-1]
        if top is None or not top.seen or top.distinct.free and self.string:
            return True
        if top.start < 0:
            return not top.awaits or top.distinct.free or _next_lives(state, top)
        return _lives(state, self.begun, top.seen)

    def _differs(self, state: State, depth: int, begun: Begun) -> bool:
        """Whether an item that has no more to come can still differ."""
        is_scalar = begun.value and begun.value[0] not in _OPENING and depth == len(self.stack) - 2
        if is_scalar and begun.place is not None and _lives(state, begun.value, begun.values):
            return True
        work: list[Way] = [(state, self)]
        for _ in range(SEARCHED):
            if not work:
                break
            now, memory = work.pop()
            first = now.first()
            for byte in sorted(first if memory and memory.string else first - _SPACES, key=_LAST_CLOSING.__getitem__):
                for after, known in _read(now, memory, bytes((byte,))):
                    assert known is not None, "the array is open"
                    level = known.stack[depth]
                    if len(known.stack) == depth + 1 and level is not None and level.start < 0:
                        return True
                    work.append((after, known))
        return False


class Begun(NamedTuple):
    """An array or object that is being written, as an item of an array whose items differ.

    Attributes
    ----------
    same : list
        The items seen that begin with the items, or have the members, that are whole, as `identity` has them.
    to_come : bool
        Whether it can have more items or members, or a property of very many values is still to be begun.
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
    def values(self) -> frozenset:
        """What the value must not be, unless something else differs: as in `Level.seen`."""
        if isinstance(self.place, int):
            found = {one[self.place + 1] for one in self.same if len(one) > self.place + 1}
        else:
            found = {value for one in self.same for name, value in one if name == self.place}
        return frozenset(value[1] if _is_text(value) else value for value in found)


def _is_text(identified: Any) -> bool:
    return isinstance(identified, tuple) and identified[0] is False and isinstance(identified[1], str)


def _begun(written: bytes, level: Level) -> Begun:
    """What an array or object has so far, from its text."""
    text = written.decode("utf-8", "ignore")  # a character may have been begun
    items: list = []  # or members, as (name, value)
    is_array = text[0] == "["
    place: str | int | None = None
    value = b""
    at = _end(_BETWEEN, text, 1)
    while at < len(text) and (is_array or text[at] == '"'):
        try:
            if is_array:
                place = len(items)
            else:
                place, at = _DECODER.raw_decode(text, at)
                at = _end(_BETWEEN, text, at)
            found, end = _DECODER.raw_decode(text, at)
            is_whole = _end(_NUMBER, text, at) < len(text)  # a number may go on
        except ValueError:
            is_whole = False
        if not is_whole:
            value = b"" if place is None else written[len(text[:at].encode()) :]
            break
        items.append(identity(found) if is_array else (place, identity(found)))
        place, at = None, _end(_BETWEEN, text, end)
    if is_array:
        start = ("array", *items)
        same = [one for one in level.seen if isinstance(one, tuple) and one[: len(start)] == start]
        return Begun(same, True, place, value)
    once, varied = level.distinct.once, level.distinct.varied
    members = frozenset(member for member in items if member[0] in once)  # others may be written again
    place = place if place in once else None
    objects = [one for one in level.seen if isinstance(one, frozenset) and members <= one]
    if place is not None and value:
        objects = [one for one in objects if any(name == place for name, _ in one)]
    begun = {name for name, _ in items} | ({place} if value else set())
    return Begun(objects, varied is None or not begun.issuperset(varied), place, value)


def _end(pattern: re.Pattern, text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,:]*")
_NUMBER = re.compile(r"[-+.0-9eE]*")
_LAST_CLOSING = bytes(3 if byte in b"]}" else 2 if byte in b'"' else 0 if byte in b"\\,-" else 1 for byte in range(256))
"""In which order bytes are tried: the last ones first."""


def _next_lives(state: State, level: Level) -> bool:
    for byte in state.first() - _SPACES:
        after = state.step(byte)
        if byte in _OPENING or after is not None and _lives(after, bytes((byte,)), level.seen):
            return True
    return False


def _lives(state: State, begun: bytes, seen: frozenset) -> bool:
    """Whether an item that has begun so can end as one that isn't seen."""
    if begun[0] in _OPENING:
        return True
    return _string_lives(state, begun[1:], _strings(seen)) if begun[0] == _QUOTE else _word_lives(state, begun, seen)


def _strings(seen: frozenset) -> list[str]:
    return [key for key in seen if isinstance(key, str)]


def _string_lives(state: State | None, begun: bytes, seen: list[str]) -> bool:
    work = [(state, begun)]
    for _ in range(SEARCHED):
        if not work:
            break
        state, begun = work.pop()
        if state is None:
            continue
        first = state.first()
        ends = endings(begun, seen)
        if ends is None:  # inside an escape
            work += [(state.step(byte), begun + bytes((byte,))) for byte in first]
            continue
        heads = {end[0] for end in ends}
        if not first <= heads | {_BACKSLASH}:
            return True
        heads = (heads | {_BACKSLASH}) & first
        work += [(state.step(byte), begun + bytes((byte,))) for byte in heads - {_QUOTE}]
    return False


def _word_lives(state: State, begun: bytes, seen: frozenset) -> bool:
    """The same of a number, or of true, false or null."""
    work: deque[tuple[State | None, bytes]] = deque([(state, begun)])
    for _ in range(SEARCHED):
        if not work:
            break
        now, begun = work.popleft()
        if now is None:
            continue
        first = now.first()
        if not first.isdisjoint(_ENDING):
            try:
                if identity(json.loads(begun)) not in seen:
                    return True
            except ValueError:
                pass  # it isn't whole
        work += [(now.step(byte), begun + bytes((byte,))) for byte in sorted(first - _ENDING)]
    return False


def endings(begun: bytes, seen: list[str]) -> list[bytes] | None:
    """What a string that has begun so can go on with to be one of `seen`, up to its closing quote.

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
    found = [encode_basestring(one[len(text) :]).encode()[1:] for one in seen if one.startswith(text)]
    return [end[len(rest) :] for end in found if end.startswith(rest)]


Way = tuple[State, "Memory | None"]


class Remembering(State):
    """A state of the automaton, or several, each with what was written.

    There are several where it is open whether an array is one whose items differ.
    """

    __slots__ = ("completion", "ways")

    def __init__(self, automaton: Any, ways: list[Way]):
        super().__init__(automaton, tuple(dict.fromkeys(q for state, _ in ways for q in state.positions)))
        self.ways = ways
        self.completion: bytes | None = None  # `budget.completion`

    @property
    def longest(self) -> int:
        """Bytes of the longest string that may not come again."""
        return max((memory.longest for _, memory in self.ways if memory is not None), default=0)

    def step(self, byte: int) -> State | None:
        return self.read(bytes((byte,)))

    def read(self, data: bytes) -> State | None:
        after = [way for state, memory in self.ways for way in ways_after(state, memory, data)]
        self.automaton.limits.check("state_positions", len(after), *TOO_MANY_WAYS)
        if not after:
            return None
        state = Remembering(self.automaton, after)
        if self.completion is not None and self.completion.startswith(data):
            state.completion = self.completion[len(data) :]
        return state

    def first(self) -> set[int]:
        return {byte for byte in super().first() if self.step(byte) is not None}

    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
        out, state = bytearray(), self
        while not state.accepting and len(out) < limit:
            ways = ((byte, after) for byte in State.first(state) if (after := state.step(byte)) is not None)
            found = list(islice(ways, 2))
            if len(found) != 1:
                break
            out.append(found[0][0])
            state = found[0][1]  # type: ignore[assignment]
        return bytes(out)

    def texts(self, limit: int) -> list[bytes] | None:
        return None  # there are more where more than a thousand values may differ


def ways_after(state: State, memory: Memory | None, data: bytes) -> list[Way]:
    """The ways to go on after `data`."""
    return [(now, known) for now, known in _read(state, memory, data) if known is None or known.lives(now)]


def _read(state: State, memory: Memory | None, data: bytes) -> list[Way]:
    """The ways after `data`, some of which may lead nowhere."""
    if memory is None and _OPENING.isdisjoint(data):
        after = state.read(data)
        return [] if after is None else [(after, None)]
    most = state.automaton.limits.distinct
    ways: list[Way] = [(state, memory and memory.copy())]
    for byte in data:
        following: list[Way] = []
        for now, known in ways:
            opens = byte in _OPENING and (known is None or not known.string)
            branches = _opened(now, byte) if opens else [(now, None)]
            for branch, distinct in branches:
                after = branch.step(byte)
                if after is None:
                    continue
                own = known and (known if len(branches) == 1 else known.copy())
                if own is None:
                    own = None if distinct is None else Memory([Level(distinct)], bytearray(), 0)
                elif not own.read(byte, distinct, most):
                    continue
                following.append((after, own if own and own.stack else None))
        ways = following
    return ways


def _opened(state: State, byte: int) -> list[tuple[State, Distinct | None]]:
    """The state before a bracket, split by what differs inside it."""
    kept = state.automaton.opened
    if (state, byte) not in kept:
        found: dict[Distinct | None, list[Position]] = {}
        for q in state.positions:
            if isinstance(q, InLiteral) and q.at == len(q.data) - 1 and q.data[q.at] == byte:
                for rest in alternatives((q.rest,)):
                    named = None
                    if rest is not None and isinstance(rest.node, Call):
                        named = rest.env.grammar.distinct.get(rest.node.rule)
                    found.setdefault(named, []).append(state.automaton.positions.with_rest(q, rest))
            elif byte in q.first():
                found.setdefault(None, []).append(q)
        kept[state, byte] = [(state.automaton.state(positions), distinct) for distinct, positions in found.items()]
        if len(found) == 1:
            kept[state, byte] = [(state, next(iter(found)))]
    return kept[state, byte]


def doubtful(memory: Memory | None, vocabulary: Vocabulary) -> np.ndarray:
    """The tokens that what was written may rule out, as a row."""
    known = vocabulary.endings
    out = known.opens
    if memory is None:
        return out
    top = memory.stack[-1]
    around = memory.stack[-2::-1]
    outer = next((n for n, level in enumerate(around, 1) if level is not None and level.holds_containers), None)
    if outer is not None:
        out = out | known.closing(outer, bool(memory.string))
    if any(around):
        out = out | known.closed_again
    if memory.string:
        out = out & known.quoted  # in a string, brackets are characters
    for depth, item in memory.items():
        near = None
        if memory.string and item.place is not None and item.value[:1] == b'"' and depth == len(memory.stack) - 2:
            near = endings(item.value[1:], _strings(item.values))
        if near is None and not item.to_come:
            return np.full_like(out, -1)
        if near == []:
            continue
        level = memory.stack[depth]
        if level is not None and level.distinct.varied is None:  # only white space can decide that it closes
            out = out | (known.blank & known.quoted if memory.string else known.blank)
            continue
        out = out | (known.quoted if memory.string else known.marked | known.blank)
        if near and not item.to_come:
            out = out | known.escapes | vocabulary.pack(np.fromiter(_near(near, False, vocabulary), np.int32))
    if top is None:
        return out
    free, begun = top.distinct.free, memory.begun
    if memory.string:
        ends = endings(begun[1:], top.strings) if begun and top.seen else []
        if ends is None:
            return out | known.quoted if free else np.full_like(out, -1)
        out = out | (known.again if free else known.again_begun)
        if ends:
            out = out | known.escaped | vocabulary.pack(np.fromiter(_near(ends, free, vocabulary), np.int32))
        return out
    if not top.seen or free and not any(isinstance(key, tuple) and key[0] != "array" for key in top.seen):
        return out | (known.marked & ~known.begins)
    return ~known.begins if free and not begun else np.full_like(out, -1)


def _near(ends: list[bytes], free: bool, vocabulary: Vocabulary) -> Iterator[int]:
    """The tokens that begin with one of `ends`; unless `free`, also those that one of `ends` begins with."""
    tokens, ids = vocabulary.sorted_tokens, vocabulary.sorted_ids
    for end in ends:
        low = bisect_left(tokens, end)
        while low < len(tokens) and tokens[low].startswith(end):
            yield int(ids[low])
            low += 1
        for length in range(1, min(len(end), vocabulary.longest + 1)) if not free else ():
            at = bisect_left(tokens, end[:length])
            if at < len(tokens) and tokens[at] == end[:length]:
                yield int(ids[at])
