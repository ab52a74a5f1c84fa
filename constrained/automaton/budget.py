"""Token budgets: the fewest tokens to the end, so that a text is finished in time instead of being cut off.

The same search excludes texts that the vocabulary can begin but never finish, because it lacks some single bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from time import monotonic

import numpy as np

from constrained.automaton.automaton import State
from constrained.automaton.distance import Distance
from constrained.automaton.masks import FEW, Masks
from constrained.automaton.positions import Accept, InJsonText, InText, Position, Stack, StepEnd
from constrained.automaton.shortest import shortest
from constrained.automaton.stack_ends import StackEnds
from constrained.automaton.vocabulary import UTF8_BYTES
from constrained.errors import LimitError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar, texts_in
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import MemberSequence

EXACT_STEPS = 4_000
"""Limit of token steps in the exact search for the fewest tokens; beyond it, a bound is used."""

SMALL_VOCABULARY = 256
"""Up to this vocabulary size, free text is searched exactly, token by token."""


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
        """A number of tokens; a budget above it rules nothing out at `state`."""
        return self._distance.farthest(state) + self._deeper

    def bounds(self, frame: Stack) -> tuple[float, float]:
        """The bounds of a frame that the kernel computes :meth:`horizon` from (`Distance.of_rest`)."""
        short, far = self._distance.of_rest(frame)
        return short, far + self._deeper

    def nearest(self, state: State) -> float:
        """Bound the fewest bytes to the end (`Distance.nearest`)."""
        return self._distance.nearest(state)

    @cached_property
    def _deeper(self) -> float:
        """How many bytes the nesting in one token can add to the distance."""
        level, begins = self._distance.nesting(self._automaton.grammar)
        return level * (1 + self._vocabulary.most_of(begins)) if level else 0

    def fits(self, state: State | None, left: int | None, bytewise: bool = False) -> bool:
        """Whether `state` can be finished, within `left` tokens if given (`bytewise`: of one byte); False for None."""
        if state is None:
            return False
        if left is not None and not self.needed and self._distance.nearest(state) <= left:
            return True  # each byte is a token, so the fewest tokens are at most the fewest bytes
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
        result = [d for d in map(self._from_position, state.positions) if d is not None]
        return min(result, default=None)

    def filter(self, state: State, ids: np.ndarray, left: int | None, bytewise: bool = False) -> np.ndarray:
        """Those of `ids` (allowed at `state`) after which the text can be finished in time."""
        after = None if left is None else left - 1
        if after is not None and after < 0:
            return ids[:0]
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
                steps = 0  # each search would add positions, as there is one for every beginning of a character
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
    bodies = ((one, (one.start, *(rule.body for rule in one.all_rules().values()))) for one in grammar.nested())
    return set().union(*(text_bytes(nodes, one) for one, nodes in bodies))


def text_bytes(nodes: Iterable[n.Node], grammar: ContextFreeGrammar) -> set[int]:
    """The bytes of `nodes`, not of the rules that they call, and of the texts that `grammar`'s slots are bound to."""
    out: set[int] = set()
    for top in nodes:
        for node in n.walk(top, scopes=True):
            if isinstance(node, n.LiteralText):
                out.update(node.data)
            elif isinstance(node, n.Choices):
                out.update(b"".join(node.values))
            elif isinstance(node, (n.Chars, n.Except)):
                heads = node.chars.edges(None).keys()
                out.update(heads)
                if max(heads) >= 0x80:
                    out.update(range(0x80, 0xC0))
            elif isinstance(node, MemberSequence):
                out.update(b"".join(node.of.names))
            elif isinstance(node, (n.Lazy, JsonText)):
                out |= UTF8_BYTES
            elif isinstance(node, n.Scoped):
                out.update(b"".join(node.texts()))
    for value in grammar.bindings.values():
        out.update(b"".join(texts_in(value)))
    return out
