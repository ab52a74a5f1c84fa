"""Whether a text can go on so that the items of an array differ, and the names of an object.

The automaton reads such an array like any other. Beside its state, the items (or names) written so far are kept
(`written.Written`) and compared as values: "a" equals "\\u0061", and 1 equals 1.0. A text can't go on if it repeats an
item, or if every way to finish the item that is begun would repeat one.

An array or object among the items can mostly be made longer, and so different, until it closes (`json_schema.arrays`).
It is checked earlier only after white space that leaves nothing to write but its closing bracket. Some can't be made
longer (`nodes.Distinct.varied` is not None). Such an object can differ as long as the properties still to come have
more values than there are items that begin like it; after that, a search decides.
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
from constrained.grammar.json_schema.values import identity
from constrained.grammar.nodes import Distinct, RuleRef

SEARCHED = 5_000
"""Most beginnings of one item that a search extends by a byte, to find an item that differs."""

_QUOTE, _BACKSLASH, _OBJECT = b'"\\{'
_BLANK = (b" ", b"\t", b"\n", b"\r")


def _goes_on(state: State, written: Written) -> bool:
    """Whether the items that are begun, or the one that comes next, can still differ from those before."""
    # After white space, there may be nothing left to write but closing brackets.
    closes = not written.string and written.text[-1:] in _BLANK and state.first() <= CLOSING | SPACES
    for depth, begun in written.items(closes):
        is_last = closes and depth == len(written.stack) - 2 and not begun.value
        if (is_last or not begun.to_come) and not _differs(state, written, depth, begun):
            return False
    top = written.stack[-1]
    if top is None or not top.seen or top.distinct.free and written.string:
        return True
    if top.start < 0:
        return not top.awaits or top.distinct.free or _next_can_differ(state, written)
    return _can_differ(state, written.begun, top.seen)


def _differs(state: State, written: Written, depth: int, begun: Begun) -> bool:
    """Whether an item that can't be made longer can still differ from those before."""
    is_scalar = begun.value and begun.value[0] not in OPENING and depth == len(written.stack) - 2
    if is_scalar and begun.place is not None and _can_differ(state, begun.value, begun.values):
        return True
    if written.string and _string_can_differ(state, written.inside, begun.texts):
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


def _next_can_differ(state: State, written: Written) -> bool:
    """Whether some item, or name, that isn't written yet can come next."""
    top = written.stack[-1]
    assert top is not None, "asked of a level"
    for byte in state.first() - SPACES:
        if byte in OPENING:
            if byte == _OBJECT and top.has_more(len(top.seen)) or top.distinct.varied is None:
                return True
            continue
        after = state.step(byte)
        if after is not None and _can_differ(after, bytes((byte,)), top.seen):
            return True
    return top.distinct.varied is not None and _ends_otherwise(state, written, len(written.stack) - 1)


def _can_differ(state: State, begun: bytes, seen: frozenset) -> bool:
    """Whether an item that begins with `begun` can end as one that isn't in `seen`."""
    if begun[0] in OPENING:
        return True
    if begun[0] == _QUOTE:
        return _string_can_differ(state, begun[1:], strings(seen))
    return _word_can_differ(state, begun, seen)


def _string_can_differ(state: State | None, begun: bytes, seen: list[str]) -> bool:
    """The same as `_can_differ` for a string; `begun` is without its opening quote."""
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


def _word_can_differ(state: State, begun: bytes, seen: frozenset) -> bool:
    """The same as `_can_differ` for a number, or for true, false or null."""
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
"""The state after a text, and what is written in the open arrays and objects whose items or names must differ (None: no
such one is open)."""


def ways_after(state: State, written: Written | None, data: bytes) -> list[Way]:
    """The ways to go on after `data`."""
    return [(now, known) for now, known in _read(state, written, data) if known is None or _goes_on(now, known)]


def _read(state: State, written: Written | None, data: bytes) -> list[Way]:
    """The ways after `data`, including those that can only repeat an item."""
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
    """A cache for the results of `_opened`, one for each grammar."""
    return {}


def _opened(state: State, byte: int) -> list[tuple[State, Distinct | None]]:
    """Split the state before a bracket by the array or object that it opens; None: nothing in it must differ."""
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
