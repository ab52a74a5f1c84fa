"""Token budgets: the fewest tokens to the end, so that a text is finished in time instead of being cut off.

The same search excludes texts that the vocabulary can begin but never finish, because it lacks some single bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic

import numpy as np

from constrained.automaton.automaton import Automaton, State
from constrained.automaton.distance import Distance
from constrained.automaton.distinct import Remembering, Way, ways_after
from constrained.automaton.masks import FEW, Masks
from constrained.automaton.positions import Accept, InExcept, InJsonText, InLiteral, InText, Position, Stack, StepEnd
from constrained.automaton.stack_ends import StackEnds
from constrained.automaton.vocabulary import UTF8_BYTES
from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar, texts_in
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import Members

EXACT_STEPS = 4_000
"""Limit of token steps in the exact search for the fewest tokens; beyond it, a bound is used."""

SMALL_VOCABULARY = 256
"""Up to this vocabulary size, free text is searched exactly, token by token."""

SPARE = 16
"""Bytes by which the way to the end may grow with a token, because an item must differ from one written before."""

SEARCHES = 4
"""Tokens of one mask for which it is searched whether a text that remembers can be finished after them."""

PATIENCE, HASTE = 5_000, 8
"""Positions after which the search for a shortest text weighs what is left so many times, and so finds a short one."""

TRIED = 16
"""Bytes that are tried at a place in an item, to find one that differs from those before."""


class Budget:
    """Distances to the end over one automaton and vocabulary, remembered per position.

    Attributes
    ----------
    needed : bool
        Some byte of the grammar is not a token by itself, so that every step must be checked.
    """

    def __init__(self, masks: Masks):
        self._masks = masks
        self._vocabulary = masks.vocabulary
        self._automaton = masks.automaton
        self._distance = Distance()
        self._exact: dict[Position, tuple[int | None, bool]] = {}
        self._noted: dict[Position, int] = {}
        self._ends = StackEnds(masks.vocabulary)
        vocabulary = masks.vocabulary
        self.needed = not vocabulary.spells_all and not _bytes_of(masks.automaton.grammar) <= vocabulary.single_bytes

    def horizon(self, state: State) -> float:
        """A number of tokens; a larger budget rules nothing out at `state`."""
        spare = state.longest + 2 * SPARE if isinstance(state, Remembering) else 0
        return self._distance.farthest(state) + self._deeper + spare

    def bounds(self, frame: Stack) -> tuple[float, float]:
        """The bounds of a frame that the kernel computes :meth:`horizon` from (`Distance.of_rest`)."""
        short, far = self._distance.of_rest(frame)
        spare = 2 * SPARE if self._automaton.remembers else 0
        return short + spare, far + self._deeper + spare

    @cached_property
    def _deeper(self) -> float:
        """How many bytes the nesting in one token can add to the distance."""
        level, begins = self._distance.nesting(self._automaton.grammar)
        return level * (1 + self._vocabulary.most_of(begins)) if level else 0

    def fits(self, state: State | None, left: int | None, bytewise: bool = False) -> bool:
        """Whether `state` can be finished, within `left` tokens if given (`bytewise`: of one byte); False for None."""
        if state is None:
            return False
        if isinstance(state, Remembering):  # its vocabulary has every byte
            return left is None or len(completion(state)) <= left
        if left is not None and not self.needed and self._distance.nearest(state) <= left:
            return True  # byte by byte
        if bytewise:
            return False
        if state.accepting:
            return left is None or left >= 0
        needs = map(self._from_position, sorted(state.positions, key=self._distance.of_position))
        return any(need is not None and (left is None or need <= left) for need in needs)

    def fewest(self, state: State) -> int | None:
        """The fewest tokens that complete `state`, or an upper bound; None if it can't be completed."""
        if state.accepting:
            return 0
        if isinstance(state, Remembering):
            return len(completion(state))
        found = [d for d in map(self._from_position, state.positions) if d is not None]
        return min(found, default=None)

    def filter(self, state: State, ids: np.ndarray, left: int | None, bytewise: bool = False) -> np.ndarray:
        """Those of `ids` (allowed at `state`) after which the text can be finished in time."""
        after = None if left is None else left - 1
        if after is not None and after < 0:
            return ids[:0]
        if isinstance(state, Remembering) and left is not None:
            return self._filter_remembering(state, ids, left)
        sure, unsure = self._split_free(state, ids, after, bytewise)
        tokens = self._vocabulary.tokens
        if len(unsure) <= FEW:
            kept = np.array([i for i in unsure.tolist() if self.fits(state.read(tokens[i]), after, bytewise)], np.int32)
        else:
            states, which = self._masks.states_after(state, unsure)
            fine = np.zeros(len(states), bool)
            for i in np.unique(which):
                fine[i] = self.fits(states[i], after, bytewise)
            kept = unsure[fine[which]]
        return np.sort(np.concatenate((sure, kept)))

    def _filter_remembering(self, state: Remembering, ids: np.ndarray, left: int) -> np.ndarray:
        """As `filter`. Where many tokens are allowed and few bytes are left, only the shortest way to the end stays."""
        way, tokens = completion(state), self._vocabulary.tokens
        sure = ids[:0]
        if len(state.ways) == 1:
            ((now, _),) = state.ways
            spare = max(0, len(way) - self._distance.nearest(now)) + SPARE
            sure = self.filter(now, ids, int(left - spare), bytewise=True) if left > spare else sure
        unsure = np.setdiff1d(ids, sure, assume_unique=True)
        if len(unsure) > SEARCHES:
            beginnings = {way[:length] for length in range(1, min(len(way), self._vocabulary.longest) + 1)}
            unsure = np.array([i for i in unsure.tolist() if tokens[i] in beginnings], np.int32)
        fitting = [i for i in unsure.tolist() if self.fits(state.read(tokens[i]), left - 1)]
        found = np.sort(np.concatenate((sure, np.array(fitting, np.int32))))
        if not len(found) and not state.accepting:  # what must differ grew by more than SPARE with one token
            what = f"the text can't be finished within {left} tokens, as its items must differ"
            raise GrammarError(what, hint="set a larger token budget, or none")
        return found

    def _split_free(
        self, state: State, ids: np.ndarray, left: int | None, bytewise: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ids that are fine, ids that must be checked). Tokens of free text are decided by their length."""
        text = [q for q in state.positions if isinstance(q, InText) and q.inside is None]
        if self.needed or len(text) != 1 or len(ids) < SMALL_VOCABULARY:
            return ids[:0], ids
        q = text[0]
        index = self._vocabulary.text
        lengths = np.full(self._vocabulary.size, -1, np.int32)
        inside = index.inside(q.chars)
        lengths[self._vocabulary.sorted_ids[inside]] = index.characters[inside]
        counts = lengths[ids]
        fine = np.zeros(int(counts.max(initial=0)) + 2, bool)
        for length in np.unique(counts[counts > 0]):
            if q.high is None or length <= q.high:
                fine[length] = self.fits(self._after(q, int(length)), left, bytewise)
        sure = (counts > 0) & fine[counts]
        # Other tokens of free text are fine only if they can also be read as the end of it.
        ends_in_text = q.chars.edges(None).keys() & self._automaton.state(self._automaton.closure.enter(q.rest)).first()
        if len(state.positions) == 1 and not ends_in_text:
            return ids[sure], ids[~sure & (counts < 0)]
        return ids[sure], ids[~sure]

    def _after(self, q: InText, count: int) -> State:
        low = max(q.low - count, 0)
        high = None if q.high is None else q.high - count
        found = () if high == 0 else (self._automaton.positions.text_like(q, None, low, high),)
        return self._automaton.state(found if low else found + self._automaton.closure.enter(q.rest))

    def _from_position(self, position: Position) -> int | None:
        if position not in self._exact:
            # With nesting there are very many short texts, and the bound is seldom too high.
            steps = EXACT_STEPS // 20 if self._automaton.grammar.nests else EXACT_STEPS
            if isinstance(position, InJsonText) and position.inside:
                steps = 0  # there is a position for every beginning of a character: each search would make more of them
            self._exact[position] = self._search(position, steps)
        found, exact = self._exact[position]
        if exact:
            return found
        need = self._ends.tokens(position)
        if need is not None:
            return min(need, self._noted.get(position, need))
        if position not in self._noted and not self._bound(position):
            # The vocabulary can't spell the shortest text, but perhaps another one.
            limits = self._automaton.limits
            end = monotonic() + limits.search_milliseconds / 1000
            found, exact = self._exact[position] = self._search(position, limits.search_steps, end)
            if not exact:
                limit = "search_steps" if monotonic() <= end else "search_milliseconds"
                raise LimitError(
                    limit,
                    getattr(limits, limit),
                    "it takes too long to find whether this vocabulary can spell the grammar's texts",
                    "add the missing single-byte tokens to the vocabulary",
                )
            return found
        return self._noted[position]

    def _bound(self, start: Position) -> bool:
        """Note the fewest tokens for a shortest text from `start`; False if the vocabulary can't spell it.

        All positions along the text are noted, so that a text that the budget admits can go on: from each
        position noted with `k` tokens, some token leads to one that is noted with `k - 1`.
        """
        path = shortest(self._automaton, (start,))
        try:
            ends = [0, *self._vocabulary.fewest_tokens(b"".join(data for _, data in path))]
        except ValueError:
            return False
        at = i = 0
        for q, data in path:
            while i < len(ends) and ends[i] < at + len(data):
                state = self._automaton.state((q,)).read(data[: ends[i] - at])
                assert state is not None, "the path can be read"
                (position,) = state.positions
                need = len(ends) - 1 - i
                self._noted[position] = min(self._noted.get(position, need), need)
                i += 1
            at += len(data)
        return True

    def _search(self, start: Position, limit: int, end: float = math.inf) -> tuple[int | None, bool]:
        """Search breadth first over positions; return (fewest tokens, whether the search was finished)."""
        tokens, state_of = self._vocabulary.tokens, self._automaton.state
        came: dict[Position, Position | None] = {start: None}
        layer, tokens_read, steps = [start], 0, 0
        while layer:
            done: Position | None = next((q for q in layer if isinstance(q, (Accept, StepEnd))), None)
            if done is not None:
                for need in range(tokens_read + 1):  # so that every step of this path stays admitted
                    assert done is not None, "the path has one position per token"
                    self._noted[done] = min(self._noted.get(done, need), need)
                    done = came[done]
                return tokens_read, True
            following = []
            for q in layer:
                if self._is_free(q) and not self.needed:
                    return None, False
                ids = self._masks.position_ids(q)
                steps += len(ids)
                if steps > limit or (end < math.inf and monotonic() > end):
                    return None, False
                state = state_of((q,))
                for i in ids.tolist():
                    after = state.read(tokens[i])
                    assert after is not None, "a mask's tokens can be read"
                    for r in after.positions:
                        if r not in came:
                            came[r] = q
                            following.append(r)
            layer, tokens_read = following, tokens_read + 1
        return None, True

    def _is_free(self, q: Position) -> bool:
        return isinstance(q, InText) and len(self._vocabulary.sorted_tokens) > SMALL_VOCABULARY


def _bytes_of(grammar: ContextFreeGrammar) -> set[int]:
    """Every byte that may occur in a text of `grammar`."""
    bodies = ((one, (one.start, *(rule.body for rule in one.rules.values()))) for one in grammar.nested())
    return set().union(*(text_bytes(nodes, one) for one, nodes in bodies))


def text_bytes(nodes: Iterable[n.Node], grammar: ContextFreeGrammar) -> set[int]:
    """The bytes of `nodes`, not of the rules that they call, and of the texts that `grammar`'s slots are bound to."""
    out: set[int] = set()
    for top in nodes:
        for node in n.walk(top, scopes=True):
            if isinstance(node, n.Literal):
                out.update(node.data)
            elif isinstance(node, n.Choices):
                out.update(b"".join(node.values))
            elif isinstance(node, (n.Chars, n.Except)):
                heads = node.chars.edges(None).keys()
                out.update(heads)
                if max(heads) >= 0x80:
                    out.update(range(0x80, 0xC0))
            elif isinstance(node, Members):
                out.update(b"".join(node.of.names))
            elif isinstance(node, (n.Lazy, JsonText)):
                out |= UTF8_BYTES
            elif isinstance(node, n.Scoped):
                out.update(b"".join(node.texts()))
    for value in grammar.bindings.values():
        out.update(b"".join(texts_in(value)))
    return out


def shortest(automaton: Automaton, starts: Iterable[Position]) -> list[tuple[Position, bytes]]:
    """Find a text of few bytes from one of `starts` to the end: its positions, and what is read at each.

    This is A* over positions (Hart, Nilsson and Raphael, 1968). Its lower bound on the bytes left is computed from
    the grammar, and keeps the search from trying every text that nests less deeply. A search that takes long goes on as
    weighted A* (Pohl, 1970), whose text needn't be the shortest.

    Raises
    ------
    LimitError
        It takes more than `search_positions` or `search_milliseconds`.
    """
    came: dict[Position, tuple[Position | None, bytes]] = {}
    order = count()
    heap: list[tuple[float, int, int, Position, Position | None, bytes]] = []
    limits = automaton.limits
    end, weight = monotonic() + limits.search_milliseconds / 1000, 1

    def push(read: int, q: Position, before: Position | None, data: bytes) -> None:
        # Among equals, prefer the path that has read more: the search stays on one of them.
        heappush(heap, (read + weight * automaton.distance.of_position(q), -read, next(order), q, before, data))

    for q in starts:
        push(0, q, None, b"")
    while heap:
        _, read, _, q, before, data = heappop(heap)
        if q in came:
            continue
        came[q] = (before, data)
        if isinstance(q, (Accept, StepEnd)):
            path: list[tuple[Position, bytes]] = []
            while before is not None:
                path.append((before, data))
                before, data = came[before]
            return path[::-1]
        for data in _continuations(q):
            after = automaton.state((q,)).read(data)
            for r in after.positions if after else ():
                if r not in came:
                    push(len(data) - read, r, q, data)
        if len(came) == PATIENCE:
            weight, open_ends, heap = HASTE, heap, []
            for _, less, _, q, before, data in open_ends:
                push(-less, q, before, data)
        advice = "set no token budget: the grammar's shortest text is too long for one"
        limits.check("search_positions", len(came), "a shortest text is too far to be found", advice)
        if monotonic() > end:
            what = "it takes too long to find a shortest text"
            raise LimitError("search_milliseconds", limits.search_milliseconds, what, advice)
    raise AssertionError("a live position always has an end")


def completion(state: Remembering) -> bytes:
    """A short text that completes `state`.

    The search takes the nearest to the end first, so that it is done soon where items must differ; the text is not
    always the shortest. States on the way keep their part of it (`Remembering.read`), so it stays within the budget.
    """
    if state.completion is not None:
        return state.completion
    limits, lower, order, seen = state.automaton.limits, state.automaton.distance, count(), set()
    end = monotonic() + limits.search_milliseconds / 1000
    heap: list[tuple[float, int, Way, bytes]] = [(lower.nearest(way[0]), -next(order), way, b"") for way in state.ways]
    heapify(heap)
    advice = "set no token budget: a text of this grammar is hard to finish"
    while heap:
        _, _, (now, memory), read = heappop(heap)
        if now.accepting and memory is None:
            state.completion = read
            return read
        key = now, memory and memory.key
        if key in seen:
            continue
        seen.add(key)
        limits.check("search_positions", len(seen), "a way to the end is too far to be found", advice)
        if monotonic() > end:
            what = "it takes too long to find a way to the end"
            raise LimitError("search_milliseconds", limits.search_milliseconds, what, advice)
        differs = memory is not None and any(
            level is not None and (level is memory.stack[-1] or level.distinct.varied) for level in memory.stack
        )
        ahead = _several if differs else _continuations
        following = {data for q in now.positions for data in ahead(q)}
        if memory is None or not memory.string:
            following = {data for data in following if data.strip()} or following  # white space leads nowhere
        for data in sorted(following):
            for way in ways_after(now, memory, data):
                heappush(heap, (lower.nearest(way[0]), -next(order), way, read + data))
    raise GrammarError("no text completes what is written", hint="report it: a mask should have ruled it out")


def _several(q: Position) -> list[bytes]:
    """As `_continuations`, with several bytes where there is a choice: letters and digits first."""
    if isinstance(q, InLiteral):
        return [q.data[q.at :]]
    first = sorted(q.first(), key=lambda byte: (not (byte < 0x80 and chr(byte).isalnum()), byte))
    return [bytes((byte,)) for byte in first[:TRIED]]


def _continuations(q: Position) -> Iterator[bytes]:
    """Yield what `q` can read next, as far as a shortest text needs it: one character for a whole set."""
    if isinstance(q, InJsonText):
        yield from q.table.completions(q.state, q.inside)
    elif isinstance(q, InLiteral):
        yield q.data[q.at :]
    elif isinstance(q, InText):
        yield q.chars.shortest() if q.inside is None else bytes((min(q.first()),))
    elif isinstance(q, InExcept):
        listed = {value[q.depth] for value in q.values[q.low : q.high] if len(value) > q.depth}
        others = set(q.first()) - listed  # after one of these, the run may end anywhere
        yield from (bytes((byte,)) for byte in ([min(others)] if others else q.first()))
    else:
        yield from (bytes((byte,)) for byte in q.first())
