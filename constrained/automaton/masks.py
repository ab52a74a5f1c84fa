"""Token masks: which tokens may come next, cached by position.

The mask of a state is the union of the masks of its positions, so only those of positions are cached, and the states
need not be known beforehand. A count larger than the longest token makes no difference within one token, so larger
counts are capped and share one entry. The code here reads all tokens side by side, as arrays. Where the C kernel is
built, it computes the rows: it walks a trie, and has tables for free text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained.automaton.automaton import Automaton, State
from constrained.automaton.bridge import describe
from constrained.automaton.graph_stack import forks_below
from constrained.automaton.positions import Accept, Fork, InLiteral, InText, Position, Stack, StepEnd
from constrained.automaton.vocabulary import Vocabulary
from constrained.grammar import nodes as n

FEW = 64
"""Up to this many tokens are read one by one; more are read as arrays."""


class Masks:
    """The token masks of one automaton over one vocabulary, computed on demand."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary):
        self.automaton = automaton
        self.vocabulary = vocabulary
        self.engine: Any = None  # the C kernel's engine; if there is one, it computes the rows
        self._cap = vocabulary.longest + 1
        self._ids: dict[Position, np.ndarray] = {}
        self._rows: dict[Position, np.ndarray] = {}
        self._frames: dict[Stack, Stack] = {None: None, automaton.frames.bottom: automaton.frames.bottom}

    @property
    def nbytes(self) -> int:
        """Bytes of the cached masks."""
        return sum(a.nbytes for kept in (self._ids, self._rows) for a in kept.values())

    def precompute(self, most: int) -> int:
        """Compute the mask of every reachable position; return their number, or -1 if there are more than `most`."""
        seen = set(self.automaton.start.positions)
        work = list(seen)
        while work:
            if len(seen) > most:
                return -1
            q = work.pop()
            self._position_row(q)
            new = {r for b in q.first() for r in q.step(self.automaton.closure, b)} - seen
            seen |= new
            work.extend(new)
        return len(seen)

    def token_ids(self, state: State) -> np.ndarray:
        """The ids of the tokens that may come next at `state`, ascending int32."""
        if self.engine is not None:
            return allowed_ids(self.row(state)).astype(np.int32)
        parts = [self.position_ids(q) for q in state.positions]
        parts = [a for a in parts if len(a)]
        if len(parts) == 1:
            return parts[0]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int32)

    def row(self, state: State) -> np.ndarray:
        """The same as a packed row, int32 ``[words]``. Don't write to it: it may be a cache entry."""
        if self.engine is not None:
            return np.frombuffer(self.engine.row([describe(q) for q in state.positions]), np.int32)
        rows = [self._position_row(q) for q in state.positions]
        out = rows[0]
        for row in rows[1:]:
            out = out | row
        return out

    def position_ids(self, position: Position) -> np.ndarray:
        """The ids that one position allows, ascending."""
        key = self._capped(position)
        found = self._ids.get(key)
        if found is None:
            if self.engine is not None:
                found = self.token_ids(self.automaton.state((key,)))
            else:
                found = np.sort(self.vocabulary.sorted_ids[self._walk(key)])
            self._ids[key] = found
        return found

    def _position_row(self, position: Position) -> np.ndarray:
        key = self._capped(position)
        cached = self._rows.get(key)
        if cached is None:
            cached = self._rows[key] = self.vocabulary.pack(self.position_ids(position))
        return cached

    # capping counts that one token can't reach

    def _capped(self, position: Position) -> Position:
        rest = self.capped_frame(position.rest)
        if isinstance(position, InText):
            low, high = self._cut(position.low, position.high)
            return self.automaton.positions.text_like(position, position.inside, low, high, rest)
        if rest is position.rest:
            return position
        if isinstance(position, InLiteral):
            return self.automaton.positions.literal(position.data, position.at, rest)
        return position  # choices may set a parameter in `rest`, which must therefore stay as it is

    def _cut(self, low: int, high: int | None) -> tuple[int, int | None]:
        if high is None or high > self._cap:
            high = None if low <= self._cap else self._cap + 1
        low = min(low, self._cap)
        return low, high if high is None or high >= low else low

    def capped_frame(self, frame: Stack) -> Stack:
        """`frame` with capped counts."""
        chain = []
        while frame is not None and frame not in self._frames:
            if isinstance(frame, Fork):
                for fork in forks_below(frame, self._frames):
                    self._frames[fork] = self.automaton.stacks.join(map(self.capped_frame, fork.ways))
                break
            chain.append(frame)
            frame = frame.next
        rest = self._frames[frame]
        for part in reversed(chain):
            node = part.node
            if isinstance(node, n.Repeat):
                low, high = self._cut(node.low, node.high)
                if (low, high) != (node.low, node.high):
                    node = self.automaton.frames.repeat(node.item, low, high)
            same = node is part.node and rest is part.next
            rest = part if same else self.automaton.frames.frame(node, part.env, rest)
            self._frames[part] = rest
        return rest

    # walking

    def _walk(self, position: Position) -> np.ndarray:
        """The indices (into the sorted tokens) of the tokens that `position` can read, unordered."""
        if isinstance(position, (Accept, StepEnd)):
            return np.empty(0, np.int64)
        first = np.zeros(256, bool)
        first[list(position.first())] = True
        begun = np.flatnonzero(first[self.vocabulary.flat[self.vocabulary.offsets]])
        return self._run(self.automaton.state((position,)), begun, 0)[0]

    def states_after(self, state: State, ids: np.ndarray) -> tuple[list[State], np.ndarray]:
        """(states, index of the state after each of `ids`); all ids must be allowed at `state`."""
        vocabulary = self.vocabulary
        rank = vocabulary.ranks[ids]
        counts = self._counts(state, rank)
        walked = counts == 0
        read, at, states = self._run(state, np.sort(rank[walked]), 0)
        place = np.empty(len(vocabulary.sorted_ids), np.int32)
        place[read] = at
        example = np.full(int(counts.max(initial=0)) + 1, -1)
        example[counts] = rank  # one token of each length stands for all of that length
        number = np.zeros(len(example), np.int32)
        for length in np.flatnonzero(example[1:] >= 0) + 1:
            number[length] = len(states)
            after = state.read(vocabulary.sorted_tokens[example[length]])
            assert after is not None, "the id is allowed"
            states.append(after)
        return states, np.where(walked, place[rank], number[counts])

    def _counts(self, state: State, rank: np.ndarray) -> np.ndarray:
        """Return, per token, its number of characters if the state after it depends on that alone; 0 otherwise.

        It does for whole characters of a free text, if neither the other positions nor what follows the text can
        begin with such a character.
        """
        counts = np.zeros(len(rank), np.int32)
        texts = [q for q in state.positions if isinstance(q, InText) and q.inside is None]
        if len(texts) != 1 or len(rank) <= FEW:
            return counts
        q = texts[0]
        others = [r for r in (*state.positions, *self.automaton.closure.enter(q.rest)) if r is not q]
        heads = q.chars.edges(None)
        if any(not heads.keys().isdisjoint(r.first()) for r in others):
            return counts
        index = self.vocabulary.text
        counts[:] = np.where(index.inside(q.chars)[rank], index.characters[rank], 0)
        return counts

    def _run(self, state: State, alive: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray, list[State]]:
        """Read the sorted tokens `alive` from byte `depth` on, all at once.

        Returns
        -------
        read : ndarray
            Those of `alive` that can be read, unordered.
        at : ndarray
            For each of these, the index of the state after it.
        states : list of State
        """
        vocabulary = self.vocabulary
        read: list[np.ndarray] = []
        ends: list[np.ndarray] = []
        known: dict[State, int] = {state: 0}
        states = [state]
        table = np.full((64, 256), -2, np.int32)
        at = np.zeros(len(alive), np.int32)
        while len(alive):
            done = vocabulary.lengths[alive] == depth
            if done.any():
                read.append(alive[done])
                ends.append(at[done])
                alive, at = alive[~done], at[~done]
            bytes_ = vocabulary.flat[vocabulary.offsets[alive] + depth]
            after = table[at, bytes_]
            new = np.flatnonzero(after == -2)
            if len(new):
                pairs = np.zeros(len(states) * 256, bool)  # flags instead of a sort: there can be 100,000 pairs
                pairs[at[new] * 256 + bytes_[new]] = True
                for pair in np.flatnonzero(pairs).tolist():
                    source, byte = divmod(pair, 256)
                    target = states[source].step(byte)
                    number = -1
                    if target is not None:
                        number = known.setdefault(target, len(states))
                        if number == len(states):
                            states.append(target)
                            if number == len(table):
                                table = np.vstack([table, np.full_like(table, -2)])
                    table[source, byte] = number
                after = table[at, bytes_]
            keep = after >= 0
            alive, at = alive[keep], after[keep]
            depth += 1
        return np.concatenate([*read, alive]), np.concatenate([*ends, at]), states


def allowed_count(row: np.ndarray) -> int:
    """The number of tokens that a row allows."""
    return int(np.bitwise_count(row.view(np.uint32)).sum())


def allowed_ids(row: np.ndarray) -> np.ndarray:
    """The ids that a row allows, ascending int64. The cost depends on the nonzero words, not the vocabulary."""
    words = np.flatnonzero(row)
    bits = np.unpackbits(row[words].view(np.uint8), bitorder="little").reshape(-1, 32)
    word, bit = np.nonzero(bits)
    return words[word] * 32 + bit


def without(row: np.ndarray, ids: list[int]) -> np.ndarray:
    """`row` without the tokens `ids`."""
    if not ids:
        return row
    out, tokens = row.copy(), np.array(ids, np.uint32)
    np.bitwise_and.at(out.view(np.uint32), tokens >> 5, ~(np.uint32(1) << (tokens & 31)))
    return out
