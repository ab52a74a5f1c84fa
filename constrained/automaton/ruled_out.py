"""The tokens of a mask that a memory rules out.

A memory can rule out few tokens of a mask: those that end an item, and those after which the item can hardly differ any
more. `endings.Endings` knows which tokens may do that, and only these are tried; the others need no memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import reduce
from operator import or_

import numpy as np

from constrained.automaton.budget import Budget
from constrained.automaton.masks import allowed_ids
from constrained.automaton.memory import SPARE, DistinctMemory
from constrained.automaton.state import State
from constrained.automaton.vocabulary import Vocabulary
from constrained.automaton.written import Written, endings, strings
from constrained.errors import GrammarError

SEARCHES = 4
"""Most tokens of one mask after each of which a search looks for a way to finish in time."""


class RuledOut:
    """What memories rule out of the masks of one compiled grammar.

    Parameters
    ----------
    budget : Budget
        The grammar's, which knows nothing of memories.
    vocabulary : Vocabulary
    """

    def __init__(self, budget: Budget, vocabulary: Vocabulary):
        self._budget, self._vocabulary = budget, vocabulary
        self._nothing: set[State] = set()  # where nothing is ruled out, as nothing was written

    def tokens(self, memory: DistinctMemory, row: np.ndarray) -> list[int]:
        """Those of `row`, the mask of the memory's state, that the memory rules out."""
        ways = [way for way in memory.ways if way[1] is not None or way[0] not in self._nothing]
        if not ways:
            return []
        unsure = row & reduce(or_, (_doubtful(written, self._vocabulary) for _, written in ways))
        tokens, eos = self._vocabulary.tokens, self._vocabulary.eos_token_ids
        bad = [i for i in allowed_ids(unsure).tolist() if not memory.admits(tokens[i]) and i not in eos]
        if not bad and len(memory.ways) == 1 and not memory.holds:
            self._nothing.add(memory.state)
        return bad

    def in_time(self, memory: DistinctMemory, ids: np.ndarray, left: int) -> np.ndarray:
        """Those of `ids`, allowed after the memory's text, after which it can be finished within `left` tokens in all.

        Where many tokens are allowed and few bytes are left, only those on the shortest way to the end stay.

        Raises
        ------
        GrammarError
            There is none, as what must differ grew by more than `SPARE` bytes with one token.
        """
        sure = ids[:0]
        if left < 1:
            return sure
        way, tokens = memory.completion(), self._vocabulary.tokens
        if len(memory.ways) == 1:
            spare = max(0, len(way) - self._budget.nearest(memory.state)) + SPARE
            if left > spare:
                sure = self._budget.filter(memory.state, ids, int(left - spare), bytewise=True)
        unsure = np.setdiff1d(ids, sure, assume_unique=True)
        if len(unsure) > SEARCHES:
            beginnings = {way[:length] for length in range(1, min(len(way), self._vocabulary.longest) + 1)}
            unsure = np.array([i for i in unsure.tolist() if tokens[i] in beginnings], np.int32)
        after = ((i, memory.read(tokens[i])) for i in unsure.tolist())
        fitting = [i for i, known in after if known is not None and known.fits(left - 1)]
        found = np.sort(np.concatenate((sure, np.array(fitting, np.int32))))
        if not len(found) and not memory.accepting:
            what = f"the text can't be finished within {left} tokens, as its items must differ"
            raise GrammarError(what, hint="set a larger token budget, or none")
        return found


def _doubtful(written: Written | None, vocabulary: Vocabulary) -> np.ndarray:
    """The tokens that `written` may rule out, as a packed row; it rules out no others."""
    known = vocabulary.endings
    out = known.opens
    if written is None:
        return out
    top = written.stack[-1]
    around = written.stack[-2::-1]
    outer = next((n for n, level in enumerate(around, 1) if level is not None and level.holds_containers), None)
    if outer is not None:
        out = out | known.closing(outer, bool(written.string))
    if any(around):
        out = out | known.closed_again
    if written.string:
        out = out & known.quoted  # in a string, brackets are characters
    for depth, item in written.items():
        near = None
        if written.string and item.place is not None and item.value[:1] == b'"' and depth == len(written.stack) - 2:
            near = endings(item.value[1:], strings(item.values))
        elif written.string:
            near = endings(written.inside, item.texts)
        if near is None and not item.to_come:
            return np.full_like(out, -1)
        if near == []:
            continue
        level = written.stack[depth]
        # It can be made longer, unless white space decides that it closes.
        if level is not None and level.distinct.varied is None:
            out = out | (known.blank & known.quoted if written.string else known.blank)
            continue
        out = out | (known.quoted if written.string else known.marked | known.blank)
        # One token may write a number or a word to its end.
        if not written.string and item.place is not None and not item.value:
            starts = [b'"' + end for end in endings(b"", strings(item.values)) or ()]
            out = out | ~known.only_begins | _packed(starts, False, vocabulary)
        if near and not item.to_come:
            out = out | known.escapes | _packed(near, False, vocabulary)
    if top is None:
        return out
    free, begun = top.distinct.free, written.begun
    if written.string:
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
