"""`constrained bench generation`: the same steps behind every processor, and what the table makes of it."""

from __future__ import annotations

import pytest

from benchmarks.engine import generation
from benchmarks.engine.generation import GENERATORS, UNCONSTRAINED
from benchmarks.engine.generators import FREE_TOKENS, KINDS, Generator
from benchmarks.engine.vocabularies import load


@pytest.fixture(scope="module")
def tekken():
    pytest.importorskip("mistral_common")
    return load("tekken")


def test_names_and_kinds_are_the_same():
    assert tuple(KINDS) == GENERATORS


def test_our_steps_are_whole_and_much_of_them_is_forced(tekken):
    ours = Generator("ours", tekken)
    assert 25e6 < ours.hello()["weights"] < 35e6
    assert ours.prepare(0) > 0
    greedy, sampled = ours.write(0, sample=False), ours.write(0, sample=True)
    for written in (greedy, sampled):
        assert written["whole"] and written["text"].startswith("ActionPath 3: Start->")
        assert written["passes"] + written["forced"] <= written["tokens"] + 1 and written["forced"] > 20
    assert greedy["text"] == ours.write(0, sample=False)["text"] != sampled["text"]


def test_a_peer_writes_whole_steps_too(tekken):
    pytest.importorskip("xgrammar")
    peer = Generator("xgrammar", tekken)
    peer.prepare(1)
    written = peer.write(1, sample=True)
    assert written["whole"] and written["forced"] is None and written["passes"] >= written["tokens"]


def texts(tokens: int, seconds: float, whole: bool = True, forced: int | None = None) -> dict:
    text = {"seconds": seconds, "tokens": tokens, "passes": tokens, "forced": forced, "whole": whole, "text": ""}
    figures = {"version": "1", "weights": 1, "compiles": [0.002, 0.001, 0.003]}
    figures["texts"] = {"greedy": [text], "sampled": [text] * 2}
    generation._sum_up(figures)
    return figures


def test_the_table_compares_with_unconstrained_and_the_best_whole_peer():
    figures = {
        UNCONSTRAINED: texts(FREE_TOKENS, 2.0, whole=False),
        "ours": texts(90, 1.0, forced=60),
        "xgrammar": texts(100, 4.0),
        "llguidance": texts(256, 3.0, whole=False),
        "lmformatenforcer": {"reason": "over 30 s"},
    }
    text = generation.table(figures)
    assert "| greedy | ours | 2 ms | 90.0 | 2.25 | 90 | 90 | 1.00 | 1 of 1 |" in text
    assert "| sampled | llguidance | 2 ms | 85.3 | 2.13 | 256 | 256 | 3.00 | 0 of 2 |" in text
    assert (
        "- greedy: ours 2.25 × unconstrained (target ≥ 1.5: reached), 67 % of the tokens forced; "
        "3.60 × the best peer, xgrammar"
    ) in text
    assert "- lmformatenforcer: over 30 s" in text
