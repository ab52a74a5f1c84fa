"""A batch writes what each of its requests gives alone."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BloomConfig, BloomForCausalLM

from constrained import ConstrainedError, compile_grammar
from constrained.decoding import Request, generate_batch
from constrained.decoding.forward import Forward
from constrained.decoding.generation import Writing, generate_joining, start_text
from constrained.decoding.loop import GuidedText
from constrained.decoding.ragged_forward import FIRST_PIECE, RaggedForward
from constrained.environments.household import load_games, make_game
from constrained.errors import ModelError
from constrained.models import load
from tests.data import shared
from tests.decoding.grammars import GRAMMARS
from tests.decoding.requests import alone, household_requests
from tests.decoding.tiny import tiny, tiny_tokenizer

TINY = tiny()
COMPILED = {name: compile_grammar(grammar, TINY.vocabulary) for name, grammar in GRAMMARS.items()}
MIXED = [
    Request("A room. ", COMPILED["step"], 60),
    Request("You are in the middle of a room. Looking quickly around you. ", COMPILED["choices"], 20),
    Request("x", None, 30),
    Request("A room. ", GRAMMARS["free"], 7),
    Request([5, 9, 30], None, 40, stop="a"),
    Request("Thought: mug\nAction: ", COMPILED["step"], 60, begun="Thought: mug\nAction: "),
    Request("go", COMPILED["one text"], 60),
    Request("é", COMPILED["regex"], 12),
    Request("x", None, 1),
]


def check_alike(loaded, requests, seed=None, rows=32, **options):
    """The batch's texts and costs are those of `generate`; probabilities agree up to rounding."""

    def chance(i):
        return None if seed is None else torch.Generator().manual_seed(seed + i)

    batch = [replace(request, generator=chance(i)) for i, request in enumerate(requests)]
    found = generate_batch(loaded, batch, rows=rows, **options)
    assert len(found) == len(requests)
    for i, (made, request) in enumerate(zip(found, requests)):
        expected = alone(loaded, request, chance(i), **options)
        assert (made.text, made.token_ids, made.complete) == (expected.text, expected.token_ids, expected.complete)
        assert (made.prompt_tokens, made.forward_passes) == (expected.prompt_tokens, expected.forward_passes)
        assert [t.forced for t in made.tokens] == [t.forced for t in expected.tokens]
        assert [t.probability for t in made.tokens] == pytest.approx([t.probability for t in expected.tokens], abs=1e-3)
        assert made.pruned_mass == pytest.approx(expected.pruned_mass, abs=1e-3)


@pytest.mark.parametrize("rows", [1, 2, 4, 32])
def test_free_and_guided_rows_of_all_kinds(rows):
    check_alike(TINY, MIXED, rows=rows)
    check_alike(TINY, MIXED, seed=3, rows=rows, temperature=1.2, top_k=20, top_p=0.9)


def joining(loaded, requests, rows=3, each=2, **options):
    """What is written of requests that join one after another, `each` rounds apart; and the order in which they end."""
    writings, found, rounds = [Writing(loaded, request) for request in requests], [], iter(range(10**6))
    waiting = list(writings)

    def arrive(room):
        if next(rounds) % each == 0 and waiting and room:
            return [waiting.pop(0)]
        return []

    while waiting:
        generate_joining(loaded, arrive, found.append, rows, **options)
    return [one.generation() for one in writings], [writings.index(one) for one in found]


@pytest.mark.parametrize(("rows", "each"), [(1, 1), (2, 3), (9, 1), (9, 4)])
def test_texts_join_those_that_are_being_written(rows, each):
    found, order = joining(TINY, MIXED, rows, each)
    expected = [alone(TINY, request) for request in MIXED]
    assert [(one.text, one.token_ids, one.complete) for one in found] == [
        (one.text, one.token_ids, one.complete) for one in expected
    ]
    assert sorted(order) == list(range(len(MIXED))) and (rows == 1) == (order == sorted(order))


def test_texts_join_a_model_that_reads_one_at_a_time(monkeypatch):
    monkeypatch.setattr("constrained.models.loaded.supports_ragged", lambda model: False)
    found, order = joining(TINY, MIXED[:4], 9, 1)
    assert [one.text for one in found] == [alone(TINY, request).text for request in MIXED[:4]] and order == [0, 1, 2, 3]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_long_prompts_are_read_in_pieces_between_which_others_go_on(asynchronous, monkeypatch):
    monkeypatch.setattr(Forward, "asynchronous", property(lambda self: asynchronous))
    loaded = tiny(context=2000)
    requests = [
        Request("go to " * n, grammar, 40)
        for n, grammar in [(1, None), (300, None), (2, COMPILED["step"]), (250, None)]
    ]
    expected = [alone(loaded, request).text for request in requests]
    widths = []
    call = RaggedForward._call

    def noted(self, taken, width, *rest):
        widths.append(width)
        return call(self, taken, width, *rest)

    monkeypatch.setattr(RaggedForward, "_call", noted)
    for seconds, longest in ((0.0, FIRST_PIECE), (1e9, 2000)):
        found, order = joining(loaded, requests, 9, 1, call_seconds=seconds)
        assert [one.text for one in found] == expected and max(widths) <= longest
        assert sorted(order[:2]) == [0, 2] or seconds  # those with short prompts end first
        widths.clear()


class Elsewhere(GuidedText):
    """A text whose masks are there some rounds after they were asked for."""

    rounds, chosen = 0, None

    def accept(self, token):
        self.chosen, self.pending, self.rounds = token, True, 3

    def prepare(self):
        if self.pending:
            self.pending = False
            super().accept(self.chosen)
        if not self.done:
            super().prepare()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_texts_whose_masks_are_made_elsewhere_are_left_out_until_these_are_there(asynchronous, monkeypatch):
    monkeypatch.setattr(Forward, "asynchronous", property(lambda self: asynchronous))
    alone_there = []

    def wait(pending, others):
        alone_there.append(not others)
        for text in pending:
            text.rounds -= 1
        return [text for text in pending if text.rounds <= 0]

    requests = [MIXED[0], MIXED[2], MIXED[4], MIXED[1]]
    texts = [start_text(TINY, request) for request in requests]
    made = [
        Elsewhere(text.matcher, text.ids, TINY.tokenizer) if isinstance(text, GuidedText) else text for text in texts
    ]
    writings = [Writing(TINY, request, text=text) for request, text in zip(requests, made)]
    given, ended = [list(writings)], []
    generate_joining(TINY, lambda room: given.pop() if given else [], ended.append, wait=wait)
    assert [one.generation().text for one in writings] == [alone(TINY, request).text for request in requests]
    assert len(ended) == 4 and set(alone_there) == {True, False}


def test_an_error_ends_one_text_alone(monkeypatch):
    texts = [Writing(TINY, MIXED[0]), Writing(TINY, MIXED[2])]
    given, ended = [list(texts)], []
    monkeypatch.setattr(texts[0].text.matcher, "advance", lambda token: False)
    generate_joining(TINY, lambda room: given.pop() if given else [], ended.append)
    assert ended == texts and "doesn't allow" in str(texts[0].text.error) and texts[1].text.error is None
    assert texts[1].generation().text == alone(TINY, MIXED[2]).text


@settings(max_examples=15)
@given(st.lists(st.sampled_from(MIXED), max_size=7), st.integers(1, 4), st.integers(0, 99))
def test_any_company(requests, rows, seed):
    check_alike(TINY, requests, seed=seed, rows=rows, temperature=1.0)


@pytest.mark.parametrize("strategy", ["act", "knowagent"])
def test_the_embedded_model_over_household_games(strategy):
    loaded = load()
    requests = list(household_requests(loaded, map(make_game, range(4)), strategy))
    check_alike(loaded, requests, rows=8)
    check_alike(loaded, requests, seed=0, temperature=0.8)


def test_another_model_over_alfworlds_games():
    loaded = load(shared("models/stories260K"))
    shared("alfworld/index.jsonl")
    games = [game for game, _ in zip(load_games("valid_seen"), range(3))]
    requests = list(household_requests(loaded, games, "react"))
    free = [Request(r.prompt, None, 30, stop="\n") for r in requests[::3]]
    fitting = [r for r in requests if len(loaded.tokenizer.encode(r.prompt)) < 300]
    check_alike(loaded, fitting + free)
    check_alike(loaded, free + fitting, seed=7, temperature=1.0)


def test_rows_that_are_over_leave_the_batch(monkeypatch):
    widths, call = [], RaggedForward._call

    def spied(self, taken, *rest):
        widths.append(len(taken))
        return call(self, taken, *rest)

    monkeypatch.setattr(RaggedForward, "_call", spied)
    lengths = {"x": 2, "xy": 2, "é": 9, "z": 20}
    generate_batch(TINY, [Request(prompt, None, tokens) for prompt, tokens in lengths.items()])
    assert widths[0] == 4 and widths[-1] == 1 and 2 in widths


def test_a_model_that_cannot_hold_rows_of_different_lengths_reads_them_one_by_one():
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    bloom = BloomForCausalLM(BloomConfig(vocab_size=len(tokenizer), hidden_size=32, n_layer=1, n_head=2))
    loaded = load((bloom, tokenizer))
    requests = [Request("A room. ", GRAMMARS["choices"], 20), Request("x", None, 5)]
    check_alike(loaded, requests)


def test_no_requests_no_texts():
    assert generate_batch(TINY, []) == []


def test_what_is_refused_is_refused_before_anything_is_written(monkeypatch):
    monkeypatch.setattr(TINY.model, "forward", None)
    good, one = Request("x", None, 3), torch.Generator()
    with pytest.raises(ModelError, match="fills the context"):
        generate_batch(TINY, [good, Request([5] * 256)])
    with pytest.raises(ConstrainedError, match="stop is for text without a grammar"):
        generate_batch(TINY, [good, Request("x", GRAMMARS["free"], stop="a")])
    with pytest.raises(ConstrainedError, match="share a generator"):
        generate_batch(TINY, [Request("x", generator=one), Request("y", generator=one)], temperature=1.0)
    with pytest.raises(ConstrainedError, match="rows is 0"):
        generate_batch(TINY, [good], rows=0)
    with pytest.raises(ConstrainedError, match="temperature"):
        generate_batch(TINY, [good], temperature=-1)
