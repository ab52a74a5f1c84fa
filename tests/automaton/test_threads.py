"""Rows filled on several threads: the same masks, whatever other threads do with the same grammars meanwhile."""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from constrained import BatchMatcher, Vocabulary, compile_grammar
from constrained.automaton import batch as batches
from constrained.automaton import native
from tests.automaton.small_grammars import GRAMMARS
from tests.chance import times

VOCABULARY = Vocabulary([*(bytes((b,)) for b in range(256)), b"go to", b" desk", b"ab", b"abc", b""], [260])


@pytest.fixture(autouse=True)
def threads_for_few_rows(monkeypatch):
    monkeypatch.setattr(batches, "THREADED", 2)


def mask(matcher) -> np.ndarray:
    out = np.zeros((1, VOCABULARY.words), np.int32)
    matcher.fill_bitmask(out)
    return out[0]


def wander(batch: BatchMatcher, singles: list, rnd: random.Random, steps: int) -> None:
    """Random texts in all rows, each mask compared with that of the same text in `singles`."""
    for _ in range(steps):
        got = batch.fill_bitmask()
        for row, matcher in enumerate(singles):
            assert np.array_equal(got[row], mask(matcher)), row
        for row, matcher in enumerate(singles):
            token = int(rnd.choice(matcher.allowed_token_ids()))
            if matcher.is_terminated or rnd.random() < 0.05:
                batch[row].reset()
                matcher.reset()
            elif rnd.random() < 0.8:
                assert batch[row].advance(token) and matcher.advance(token)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_masks_do_not_depend_on_the_number_of_threads(threads):
    rnd = random.Random(threads)
    compiled = [compile_grammar(grammar, VOCABULARY) for grammar in GRAMMARS.values()]
    batch = BatchMatcher((rnd.choice(compiled).matcher() for _ in range(80)), threads=threads)
    for row in range(0, 80, 7):
        batch[row].set_budget(30)
    again = {id(c): compile_grammar(c.grammar, VOCABULARY) for c in compiled}
    singles = [again[id(row.compiled)].matcher() for row in batch]
    for row in range(0, 80, 7):
        singles[row].set_budget(30)
    wander(batch, singles, rnd, 25)
    assert batch.copy().threads == threads


def test_several_python_threads_fill_and_advance_at_once():
    """They share compiled grammars, some new to all of them; switching is made as frequent as it can be."""

    def one(compiled: list, seed: int) -> None:
        rnd = random.Random(seed)
        chosen = [rnd.choice(compiled) for _ in range(40)]
        batch = BatchMatcher((c.matcher() for c in chosen), threads=3)
        wander(batch, [c.matcher() for c in chosen], rnd, 12)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as executor:
            for first in range(0, times(80, 800), 8):
                compiled = [compile_grammar(grammar, VOCABULARY) for grammar in GRAMMARS.values()]
                list(executor.map(partial(one, compiled), range(first, first + 8)))
    finally:
        sys.setswitchinterval(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(native.kernel is None, reason="the C kernel is not built")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_are_started_again_after_a_fork():
    compiled = compile_grammar(GRAMMARS["choices"], VOCABULARY)
    batch = BatchMatcher((compiled.matcher() for _ in range(40)), threads=3)
    wanted = batch.fill_bitmask().copy()
    child = os.fork()
    if child == 0:  # nothing of the test's own may run here
        batch.advance([int(batch[0].allowed_token_ids()[0])] * 40)
        changed = not np.array_equal(batch.fill_bitmask(), wanted)
        batch.rollback(1)
        os._exit(0 if changed and np.array_equal(batch.fill_bitmask(), wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("threads", [0, -1, 65])
def test_a_number_of_threads_out_of_range_is_refused(threads):
    with pytest.raises(ValueError, match="1 to 64"):
        BatchMatcher(threads=threads)


@pytest.mark.skipif(native.kernel is None, reason="the C kernel is not built")
def test_few_rows_are_filled_on_one_thread(monkeypatch):
    monkeypatch.setattr(batches, "THREADED", 4)
    compiled, asked = compile_grammar(GRAMMARS["choices"], VOCABULARY), []
    for rows in (3, 4):
        batch = BatchMatcher((compiled.matcher() for _ in range(rows)), threads=2)
        batch.fill_bitmask()
        batch._buffer = SimpleNamespace(fill=lambda rows, threads: asked.append(threads) or [])
        batch.fill_bitmask()
    assert asked == [1, 2]


@pytest.mark.skipif(native.kernel is None, reason="a matcher of Python's has nothing that another thread could spoil")
@pytest.mark.parametrize(
    "use",
    [
        lambda matcher: matcher.advance(97),
        mask,
        lambda matcher: BatchMatcher([matcher]).fill_bitmask(),
        lambda matcher: matcher.rollback(0),
        lambda matcher: matcher.reset(),
        lambda matcher: matcher.copy(),
        lambda matcher: matcher.forced_text(),
        lambda matcher: matcher.state,
    ],
)
def test_a_matcher_is_refused_while_a_call_is_under_way(use, monkeypatch):
    """Python runs in `advance` here, and other threads may with it: that is where they would come in between."""
    compiled = compile_grammar(GRAMMARS["bounded text"], VOCABULARY)
    matcher = compiled.matcher()
    matcher.set_budget(3)
    with monkeypatch.context() as patch:
        patch.setattr(compiled.budget, "fits", lambda state, left: use(matcher))
        with pytest.raises(RuntimeError, match="another thread is using"):
            matcher.advance(ord("a"))
    assert matcher.advance(ord("a")) and ord("c") in matcher.allowed_token_ids()
