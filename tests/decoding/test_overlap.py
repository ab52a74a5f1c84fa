"""Masks while the forward pass runs: on an accelerator nothing is waited for between its launch and the masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from constrained import Grammar, compile_grammar
from constrained.automaton import BatchMatcher
from constrained.decoding import custom_generate
from constrained.decoding.forward import Forward
from constrained.decoding.generation import Writing, generate, generate_batch, generate_joining
from constrained.decoding.loop import GuidedText
from constrained.decoding.request import Request
from tests.decoding.tiny import tiny

LOADED = tiny()
GRAMMARS = [
    Grammar.from_lark('start: "Thought: " /[a-z ]{1,12}/ "\\nAction: " ("go to" | "take") " the desk " /[0-9]/\n'),
    Grammar.from_choices(["go to drawer 1", "go to desk 1", "go to desk 10"]),
    Grammar.from_regex("[a-z]{2,20}"),
]
COMPILED = [compile_grammar(grammar, LOADED.vocabulary) for grammar in GRAMMARS]
PROMPTS = ["A room. ", "You are in a room, and there is a desk. ", "x"]


def requests() -> list[Request]:
    several = zip(PROMPTS, COMPILED)
    return [Request(p, g, 30, generator=torch.Generator().manual_seed(i)) for i, (p, g) in enumerate(several)]


def one_by_one() -> list[str]:
    return [generate(LOADED, prompt, grammar, max_new_tokens=30).text for prompt, grammar in zip(PROMPTS, COMPILED)]


def together() -> list[str]:
    return [one.text for one in generate_batch(LOADED, requests(), temperature=1.0)]


def joining() -> list[str]:
    waiting, found = [Writing(LOADED, request) for request in requests()], {}
    generate_joining(
        LOADED, lambda room: [waiting.pop(0)] if waiting else [], lambda one: found.update({id(one): one}), rows=2
    )
    return sorted(one.generation().text for one in found.values())


def by_generate(**options: Any) -> Callable[[], list[list[int]]]:
    def write() -> list[list[int]]:
        torch.manual_seed(0)
        ids = LOADED.tokenizer(PROMPTS[:2], return_tensors="pt", padding=True, padding_side="left")
        out = LOADED.model.generate(
            **ids, custom_generate=custom_generate, grammar=COMPILED[:2], max_new_tokens=30, pad_token_id=1, **options
        )
        return out.tolist()

    return write


WAYS = {
    "one by one": one_by_one,
    "together": together,
    "joining": joining,
    "generate": by_generate(do_sample=False),
    "generate, sampled": by_generate(do_sample=True, temperature=1.3, tokenizer=LOADED.tokenizer),
    "beams": by_generate(do_sample=False, num_beams=2),
}


@pytest.fixture
def asynchronous(monkeypatch):
    """As on an accelerator."""
    LOADED.tokenizer.pad_token = "</s>"
    return lambda: monkeypatch.setattr(Forward, "asynchronous", property(lambda self: True))


@pytest.mark.parametrize("way", WAYS)
def test_texts_are_those_of_masks_computed_before(way, asynchronous):
    expected = WAYS[way]()
    asynchronous()
    assert WAYS[way]() == expected


READS = {"item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__", "nonzero", "isfinite"}


class Watched(torch.Tensor):
    """What a model has returned, and what is computed of it: notes where it is read."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.__name__ in READS:
            EVENTS.append("read")
        return super().__torch_function__(function, types, args, kwargs or {})


EVENTS: list[str] = []


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_read_between_the_launch_and_the_masks(way, asynchronous, monkeypatch):
    """Each pass is followed by its masks, unless they were needed to tell whether the model is to be asked at all."""

    def launched(module: Any, args: Any, out: Any) -> Any:
        EVENTS.append("pass")
        out.last_hidden_state = out.last_hidden_state.as_subclass(Watched)
        return out

    def noted(name: str, kind: type, method: str) -> None:
        whole = getattr(kind, method)
        monkeypatch.setattr(kind, method, lambda *given: EVENTS.append(name) or whole(*given))

    asynchronous()
    EVENTS.clear()
    noted("mask", type(COMPILED[0].matcher()), "fill_bitmask")
    noted("mask", BatchMatcher, "fill_bitmask")
    noted("accept", GuidedText, "accept")
    hook = LOADED.model.model.register_forward_hook(launched)
    try:
        WAYS[way]()
    finally:
        hook.remove()
    rounds = " ".join(EVENTS).split("pass")[1:]
    after = [one.split("accept")[0].split() for one in rounds]  # until the first token is taken
    masked = [events for events in after if "mask" in events]
    assert "read" in EVENTS and len(masked) > len(rounds) / 3
    assert all(events[0] == "mask" for events in masked)
