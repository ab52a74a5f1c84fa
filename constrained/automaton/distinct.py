"""Whether a text can go on so that the items of an array differ, and the names of an object.

The automaton reads such an array like any other. Beside its state, the items (or names) that are written are kept, each
as the value that it is: "a" is "\\u0061", and 1 is 1.0. A text that repeats one can't go on, and neither can one that
could only repeat one. Arrays and objects among the items can mostly have more in them (`json_schema.unique`): so
they are looked at before they end only where white space would leave nothing but their end. Others can't be longer. As
long as the properties that are still to come have more values than there are items that begin alike
(`nodes.Distinct.varied`), such an object can differ from all of these; after that, what it can still be is searched.
"""

from __future__ import annotations

import json
from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Any

from constrained.automaton.graph_stack import alternatives
from constrained.automaton.positions import InLiteral, Position
from constrained.automaton.state import State
from constrained.automaton.written import CLOSING, ENDING, OPENING, SPACES, Begun, Level, Written, endings, strings
from constrained.grammar.json_schema.shape import identity
from constrained.grammar.nodes import Distinct, RuleRef

SEARCHED = 5_000
"""Beginnings of one item that are tried, one byte longer each, to find one that differs."""

_QUOTE, _BACKSLASH, _OBJECT = b'"\\{'
_BLANK = (b" ", b"\t", b"\n", b"\r")


def _goes_on(state: State, written: Written) -> bool:
    """Whether what is begun, or awaited, can still differ."""
    # white space can decide that an item closes
    closes = not written.string and written.text[-1:] in _BLANK and state.first() <= CLOSING | SPACES
    for depth, begun in written.items(closes):
        is_last = closes and depth == len(written.stack) - 2 and not begun.value
        if (is_last or not begun.to_come) and not _differs(state, written, depth, begun):
            return False
    top = written.stack[-1]
    if top is None or not top.seen or top.distinct.free and written.string:
        return True
    if top.start < 0:
        return not top.awaits or top.distinct.free or _next_lives(state, written)
    return _lives(state, written.begun, top.seen)


def _differs(state: State, written: Written, depth: int, begun: Begun) -> bool:
    """Whether an item that has no more to come can still differ."""
    is_scalar = begun.value and begun.value[0] not in OPENING and depth == len(written.stack) - 2
    if is_scalar and begun.place is not None and _lives(state, begun.value, begun.values):
        return True
    if written.string and _string_lives(state, written.inside, begun.texts):
        return True
    return _ends_otherwise(state, written, depth)


def _ends_otherwise(state: State, written: Written, depth: int) -> bool:
    """Whether a search finds an end of the item at that depth that no item before it has."""
    order, nearest = count(), state.automaton.distance.nearest
    work: list[tuple[float, int, State, Written]] = [(0, 0, state, written)]
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


def _next_lives(state: State, written: Written) -> bool:
    """Whether there is an item, or a name, that may come next."""
    top = written.stack[-1]
    assert top is not None, "asked of a level"
    for byte in state.first() - SPACES:
        if byte in OPENING:
            if byte == _OBJECT and top.has_more(len(top.seen)) or top.distinct.varied is None:
                return True
            continue
        after = state.step(byte)
        if after is not None and _lives(after, bytes((byte,)), top.seen):
            return True
    return top.distinct.varied is not None and _ends_otherwise(state, written, len(written.stack) - 1)


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


Way = tuple[State, Written | None]
"""A state, and what the text has written where something must differ; None: nothing is written there."""


def ways_after(state: State, written: Written | None, data: bytes) -> list[Way]:
    """The ways to go on after `data`."""
    return [(now, known) for now, known in _read(state, written, data) if known is None or _goes_on(now, known)]


def _read(state: State, written: Written | None, data: bytes) -> list[Way]:
    """The ways after `data`, some of which may lead nowhere."""
    most = state.automaton.limits.distinct
    if OPENING.isdisjoint(data):  # nothing is opened, so there is one way at most
        after = state.read(data)
        own = after and written and written.copy()
        for byte in data:
            if not own or not own.stack:
                break
            if not own.read(byte, None, most):
                return []
        return [] if after is None else [(after, own if own and own.stack else None)]
    ways: list[Way] = [(state, written and written.copy())]
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
                    own = None if distinct is None else Written([Level(distinct)], bytearray(), 0)
                elif not own.read(byte, distinct, most):
                    continue
                following.append((after, own if own and own.stack else None))
        ways = following
    return ways


def _openings(grammar: Any) -> dict:
    """What `_opened` has found for a grammar."""
    return {}


def _opened(state: State, byte: int) -> list[tuple[State, Distinct | None]]:
    """The state before a bracket, split by what differs inside it."""
    kept = state.automaton.grammar.derived(_openings)
    if (state, byte) not in kept:
        result: dict[Distinct | None, list[Position]] = {}
        for q in state.positions:
            if isinstance(q, InLiteral) and q.at == len(q.data) - 1 and q.data[q.at] == byte:
                for rest in alternatives((q.rest,)):
                    named = None
                    if rest is not None and isinstance(rest.node, RuleRef):
                        named = rest.env.grammar.distinct.get(rest.node.rule)
                    result.setdefault(named, []).append(state.automaton.positions.with_rest(q, rest))
            elif byte in q.first():
                result.setdefault(None, []).append(q)
        kept[state, byte] = [(state.automaton.state(positions), distinct) for distinct, positions in result.items()]
        if len(result) == 1:
            kept[state, byte] = [(state, next(iter(result)))]
    return kept[state, byte]
