"""States that remember what a text has written: for arrays whose items differ, and objects whose names do.

With the kernel, this is so only inside such an array (`matcher.MemoryMatcher`); outside, the kernel has the text.
The automaton reads such an array like any other. Beside its state, the items (or names) that are written are kept, each
as the value that it is: "a" is "\\u0061", and 1 is 1.0. A text that repeats one can't go on, and neither can one that
could only repeat one. Arrays and objects among the items can mostly have more in them (`json_schema.unique`): so
they are looked at before they end only where white space would leave nothing but their end. Others can't be longer. As
long as the properties that are still to come have more values than there are items that begin alike
(`nodes.Distinct.varied`), such an object can differ from all of these; after that, what it can still be is searched.

What can be read next depends on what was written in few tokens: those that end an item, or that come close to one. The
mask of the automaton's own state is kept as for any state, and only these tokens are tried (`Endings`).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any

import numpy as np

from constrained.automaton.graph_stack import alternatives
from constrained.automaton.memory import CLOSING, ENDING, OPENING, SPACES, Begun, JsonMemory, Level, endings, strings
from constrained.automaton.positions import TOO_MANY_WAYS, InLiteral, Position
from constrained.automaton.state import MAX_FORCED, State
from constrained.automaton.vocabulary import Vocabulary
from constrained.grammar.json_schema.shape import identity
from constrained.grammar.nodes import Call, Distinct

SEARCHED = 5_000
"""Beginnings of one item that are tried, one byte longer each, to find one that differs."""

_QUOTE, _BACKSLASH, _OBJECT = b'"\\{'
_BLANK = (b" ", b"\t", b"\n", b"\r")


def _goes_on(state: State, memory: JsonMemory) -> bool:
    """Whether what is begun, or awaited, can still differ."""
    # white space can decide that an item closes
    closes = not memory.string and memory.text[-1:] in _BLANK and state.first() <= CLOSING | SPACES
    for depth, begun in memory.items(closes):
        is_last = closes and depth == len(memory.stack) - 2 and not begun.value
        if (is_last or not begun.to_come) and not _differs(state, memory, depth, begun):
            return False
    top = memory.stack[-1]
    if top is None or not top.seen or top.distinct.free and memory.string:
        return True
    if top.start < 0:
        return not top.awaits or top.distinct.free or _next_lives(state, memory)
    return _lives(state, memory.begun, top.seen)


def _differs(state: State, memory: JsonMemory, depth: int, begun: Begun) -> bool:
    """Whether an item that has no more to come can still differ."""
    is_scalar = begun.value and begun.value[0] not in OPENING and depth == len(memory.stack) - 2
    if is_scalar and begun.place is not None and _lives(state, begun.value, begun.values):
        return True
    if memory.string and _string_lives(state, memory.inside, begun.texts):
        return True
    return _ends_otherwise(state, memory, depth)


def _ends_otherwise(state: State, memory: JsonMemory, depth: int) -> bool:
    """Whether a search finds an end of the item at that depth that no item before it has."""
    order, nearest = count(), state.automaton.distance.nearest
    work: list[tuple[float, int, State, JsonMemory]] = [(0, 0, state, memory)]
    for _ in range(SEARCHED):
        if not work:
            break
        *_, now, written = heappop(work)  # of those nearest to the end, the last one that was found
        for byte in sorted(now.first() if written.string else now.first() - SPACES):
            for after, known in _read(now, written, bytes((byte,))):
                if known is None or len(known.stack) <= depth:  # a number ends with its array
                    return True
                level = known.stack[depth]
                if len(known.stack) == depth + 1 and level is not None and level.start < 0:
                    return True
                heappush(work, (nearest(after), -next(order), after, known))
    return False


def _next_lives(state: State, memory: JsonMemory) -> bool:
    """Whether there is an item, or a name, that may come next."""
    top = memory.stack[-1]
    assert top is not None, "asked of a level"
    for byte in state.first() - SPACES:
        if byte in OPENING:
            if byte == _OBJECT and top.has_more(len(top.seen)) or top.distinct.varied is None:
                return True
            continue
        after = state.step(byte)
        if after is not None and _lives(after, bytes((byte,)), top.seen):
            return True
    return top.distinct.varied is not None and _ends_otherwise(state, memory, len(memory.stack) - 1)


def _lives(state: State, begun: bytes, seen: frozenset) -> bool:
    """Whether an item that has begun so can end as one that isn't seen."""
    if begun[0] in OPENING:
        return True
    return _string_lives(state, begun[1:], strings(seen)) if begun[0] == _QUOTE else _word_lives(state, begun, seen)


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
        if not first.isdisjoint(ENDING):
            try:
                if identity(json.loads(begun)) not in seen:
                    return True
            except ValueError:
                pass  # it isn't whole
        work += [(now.step(byte), begun + bytes((byte,))) for byte in sorted(first - ENDING)]
    return False


Way = tuple[State, "JsonMemory | None"]


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


def ways_after(state: State, memory: JsonMemory | None, data: bytes) -> list[Way]:
    """The ways to go on after `data`."""
    return [(now, known) for now, known in _read(state, memory, data) if known is None or _goes_on(now, known)]


def _read(state: State, memory: JsonMemory | None, data: bytes) -> list[Way]:
    """The ways after `data`, some of which may lead nowhere."""
    if memory is None and OPENING.isdisjoint(data):
        after = state.read(data)
        return [] if after is None else [(after, None)]
    most = state.automaton.limits.distinct
    ways: list[Way] = [(state, memory and memory.copy())]
    for byte in data:
        following: list[Way] = []
        for now, known in ways:
            opens = byte in OPENING and (known is None or not known.string)
            branches = _opened(now, byte) if opens else [(now, None)]
            for branch, distinct in branches:
                after = branch.step(byte)
                if after is None:
                    continue
                own = known and (known if len(branches) == 1 else known.copy())
                if own is None:
                    own = None if distinct is None else JsonMemory([Level(distinct)], bytearray(), 0)
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


def doubtful(memory: JsonMemory | None, vocabulary: Vocabulary) -> np.ndarray:
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
            near = endings(item.value[1:], strings(item.values))
        elif memory.string:
            near = endings(memory.inside, item.texts)
        if near is None and not item.to_come:
            return np.full_like(out, -1)
        if near == []:
            continue
        level = memory.stack[depth]
        if level is not None and level.distinct.varied is None:  # only white space can decide that it closes
            out = out | (known.blank & known.quoted if memory.string else known.blank)
            continue
        out = out | (known.quoted if memory.string else known.marked | known.blank)
        if not memory.string and item.place is not None and not item.value:  # a number or word may be all of its value
            starts = [b'"' + end for end in endings(b"", strings(item.values)) or ()]
            out = out | ~known.only_begins | _packed(starts, False, vocabulary)
        if near and not item.to_come:
            out = out | known.escapes | _packed(near, False, vocabulary)
    if top is None:
        return out
    free, begun = top.distinct.free, memory.begun
    if memory.string:
        ends = endings(begun[1:], top.strings) if begun and top.seen else []
        if ends is None:
            return out | known.quoted if free else np.full_like(out, -1)
        out = out | (known.again if free else known.again_begun)
        if ends:
            out = out | known.escaped | _packed(ends, free, vocabulary)
        return out
    if not top.seen or free and not any(isinstance(key, tuple) and key[0] != "array" for key in top.seen):
        return out | (known.marked & ~known.begins if top.distinct.varied is None else known.marked)
    return ~known.begins if free and not begun else np.full_like(out, -1)


def _packed(ends: list[bytes], free: bool, vocabulary: Vocabulary) -> np.ndarray:
    return vocabulary.pack(np.fromiter(_near(ends, free, vocabulary), np.int32))


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
