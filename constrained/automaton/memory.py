"""A matcher's memory: what its text has written where items of an array, or names of an object, must differ.

It stands beside the automaton's state, which knows nothing of it, and says three things: which tokens of the state's
mask it rules out (`ruled_out.py`), what the memory is after a text, and how the text can be finished.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count, islice
from time import monotonic

from constrained.automaton.distinct import Way, ways_after
from constrained.automaton.positions import TOO_MANY_WAYS, InJsonText, InLiteral, Position, Reached
from constrained.automaton.shortest import continuations
from constrained.automaton.state import MAX_FORCED, Prefix, State
from constrained.errors import GrammarError, LimitError

SPARE = 16
"""Bytes by which the way to the end may grow with a token, because an item must differ from one written before."""

TRIED = 16
"""Bytes that are tried at a place in an item, to find one that differs from those before."""


class DistinctMemory(Prefix):
    """What a text has written; it doesn't change, but :meth:`read` makes another one.

    Attributes
    ----------
    ways : list of (State, Written or None)
        Several, while it is undecided whether the items of an array must differ.
    state : State
        The automaton's state after the text, without ways that would repeat something.
    """

    __slots__ = ("_completion", "automaton", "state", "ways")

    def __init__(self, ways: list[Way]):
        self.ways = ways
        self.state = ways[0][0]
        self.automaton = self.state.automaton
        if len(ways) > 1:
            self.state = self.automaton.state(q for state, _ in ways for q in state.positions)
        self._completion: bytes | None = None

    @classmethod
    def at(cls, state: State) -> DistinctMemory:
        """The memory of a text that has no array or object open whose items or names must differ."""
        return cls([(state, None)])

    @property
    def positions(self) -> Reached:  # type: ignore[override]
        return self.state.positions

    @property
    def accepting(self) -> bool:  # type: ignore[override]
        return self.state.accepting

    @property
    def holds(self) -> bool:
        """Whether an array or object is open whose items or names must differ."""
        return any(written is not None for _, written in self.ways)

    @property
    def spare(self) -> int:
        """Tokens by which a budget must be larger than `Budget.horizon`, so that the memory rules nothing out."""
        longest = max((written.longest for _, written in self.ways if written is not None), default=0)
        return longest + 2 * SPARE

    def read(self, data: bytes) -> DistinctMemory | None:
        after = [way for state, written in self.ways for way in ways_after(state, written, data)]
        self.automaton.limits.check("state_positions", len(after), *TOO_MANY_WAYS)
        if not after:
            return None
        memory = DistinctMemory(after)
        if self._completion is not None and self._completion.startswith(data):
            memory._completion = self._completion[len(data) :]
        return memory

    def admits(self, data: bytes) -> bool:
        """Whether the text can go on with `data`."""
        for state, written in self.ways:  # noqa: SIM110 (many tokens of each mask are tried)
            if ways_after(state, written, data):
                return True
        return False

    def step(self, byte: int) -> DistinctMemory | None:
        return self.read(bytes((byte,)))

    def first(self) -> set[int]:
        return {byte for byte in self.state.first() if self.admits(bytes((byte,)))}

    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
        out, memory = bytearray(), self
        while not memory.accepting and len(out) < limit:
            ways = ((byte, after) for byte in memory.state.first() if (after := memory.step(byte)) is not None)
            result = list(islice(ways, 2))
            if len(result) != 1:
                break
            out.append(result[0][0])
            memory = result[0][1]
        return bytes(out)

    def texts(self, limit: int) -> list[bytes] | None:
        return None  # as if there were more: which of the state's texts repeat nothing isn't counted

    def fits(self, left: int) -> bool:
        """Whether the text can be finished within `left` tokens; the vocabulary has every byte."""
        return len(self.completion()) <= left

    def completion(self) -> bytes:
        # `read` hands on what is left of it: so a budget that is large enough for it stays large enough.
        if self._completion is None:
            self._completion = self._search()
        return self._completion

    def _search(self) -> bytes:
        """Find a text to the end by best-first search over the bytes that are left; it need not be the shortest."""
        limits, lower, order, seen = self.automaton.limits, self.automaton.distance, count(), set()
        end = monotonic() + limits.search_milliseconds / 1000
        heap: list[tuple[float, int, Way, bytes]] = [
            (lower.nearest(way[0]), -next(order), way, b"") for way in self.ways
        ]
        heapify(heap)
        advice = "set no token budget: a text of this grammar is hard to finish"
        while heap:
            _, _, (now, written), read = heappop(heap)
            if now.accepting and written is None:
                return read
            key = now, written and written.key
            if key in seen:
                continue
            seen.add(key)
            limits.check("search_positions", len(seen), "a way to the end is too far to be found", advice)
            if monotonic() > end:
                what = "it takes too long to find a way to the end"
                raise LimitError("search_milliseconds", limits.search_milliseconds, what, advice)
            differs = written is not None and any(
                level is not None and (level is written.stack[-1] or level.distinct.varied) for level in written.stack
            )
            ahead = _several if differs else continuations
            following = {data for q in now.positions for data in ahead(q)}
            if written is None or not written.string:
                # White space brings the end no nearer.
                following = {data for data in following if data.strip()} or following
            for data in sorted(following):
                for way in ways_after(now, written, data):
                    heappush(heap, (lower.nearest(way[0]), -next(order), way, read + data))
        raise GrammarError("no text completes what is written", hint="report it: a mask should have ruled it out")


def _several(q: Position) -> list[bytes]:
    """As `continuations`, with several bytes where there is a choice: letters and digits first."""
    if isinstance(q, InLiteral):
        return [q.data[q.at :]]
    first = sorted(q.first(), key=lambda byte: (not (byte < 0x80 and chr(byte).isalnum()), byte))
    several = [bytes((byte,)) for byte in first[:TRIED]]
    # In a text with a pattern, it may be none of these that leads on.
    return [*several, *continuations(q)] if isinstance(q, InJsonText) else several
