"""The loop on the device with a real model: the host's tokens, whole texts, and no question to the host."""

from __future__ import annotations

import pytest
import torch

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding.device import DeviceMatcher, DeviceTables, write
from constrained.errors import ConstrainedError, ModelError
from tests.decoding.device.walk import DEVICE, AsksTheHost
from tests.decoding.tiny import tiny_llama, tiny_tokenizer

VOCABULARY = Vocabulary.from_tokenizer(tiny_tokenizer(), size=330)
GRAMMARS = [
    Grammar.from_regex(r"Thought: [^\n]{1,30}\nAction: (go to|take) [a-z]+ [0-9]"),
    Grammar.from_choices(["go to drawer 1", "go to desk 1", "go to desk 10"]),
]
COMPILED = [compile_grammar(g, VOCABULARY) for g in GRAMMARS]
TABLES = DeviceTables.build(COMPILED, device=DEVICE)
MODEL = tiny_llama(330).to(DEVICE)
PROMPTS = torch.tensor([[0, 70, 71, 72, 90], [0, 80, 81, 82, 83]], device=DEVICE)


def text(tokens: torch.Tensor) -> bytes:
    return b"".join(VOCABULARY.tokens[i] for i in tokens.tolist() if i not in VOCABULARY.special_set)


@torch.no_grad()
def by_the_host(prompt: list[int], grammar: int, budget: int) -> list[int]:
    """Greedy, the whole text through the model at every token, under the host's masks."""
    matcher = COMPILED[grammar].matcher()
    matcher.set_budget(budget)
    ids = list(prompt)
    while not matcher.is_terminated and len(ids) - len(prompt) < budget:
        logits = MODEL(torch.tensor([ids], device=DEVICE)).logits[0, -1]
        allowed = torch.from_numpy(matcher.allowed_token_ids()).to(DEVICE).long()
        ids.append(int(allowed[logits[allowed].argmax()]))
        matcher.advance(ids[-1])
    return ids[len(prompt) :]


def test_greedy_texts_are_the_hosts():
    """With room to spare: near the end of a budget the host's masks can be narrower (see `Matcher.set_budget`)."""
    matcher = DeviceMatcher(TABLES, [0, 1], budget=80)
    written = write(MODEL, PROMPTS, matcher, max_new_tokens=80, pruned_mass=True)
    assert written.complete.tolist() == [True, True]
    for row, grammar in enumerate([0, 1]):
        expected = by_the_host(PROMPTS[row].tolist(), grammar, 80)
        found = written.tokens[row].tolist()
        assert found == expected + [VOCABULARY.eos_token_ids[0]] * (len(found) - len(expected))
        assert GRAMMARS[grammar].matches(text(written.tokens[row]))
    assert ((written.pruned_mass >= 0) & (written.pruned_mass <= 1)).all()
    assert written.pruned_mass.shape == written.tokens.shape and written.pruned_mass[0, 0] > 0


def test_padding_on_the_left_changes_nothing():
    short = PROMPTS[1:, 2:]
    alone = write(MODEL, short, DeviceMatcher(TABLES, [0], budget=20), max_new_tokens=20).tokens[0]
    batch = torch.cat((PROMPTS[:1], torch.nn.functional.pad(short, (2, 0), value=1)))
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], device=DEVICE)
    both = write(MODEL, batch, DeviceMatcher(TABLES, [1, 0], budget=20), max_new_tokens=20, attention_mask=mask).tokens[
        1
    ]
    assert text(both) == text(alone)


@pytest.mark.parametrize("budget", [4, 5, 9, 40])
def test_every_text_is_whole_within_its_budget(budget):
    matcher = DeviceMatcher(TABLES, [1, 1], budget=budget)
    generator = torch.Generator(DEVICE).manual_seed(budget)
    written = write(MODEL, PROMPTS, matcher, max_new_tokens=budget, temperature=1.5, top_p=0.95, generator=generator)
    assert written.complete.all() and all(GRAMMARS[1].matches(text(row)) for row in written.tokens)


def test_without_a_budget_a_text_may_be_cut_and_says_so():
    written = write(MODEL, PROMPTS[:1], DeviceMatcher(TABLES, [0]), max_new_tokens=2)
    assert written.tokens.shape == (1, 2) and written.complete.tolist() == [False]


def test_the_loop_asks_the_host_nothing():
    """Beyond what the first pass over the prompt does, and the flag, which on a CPU is read at once."""
    counts = []
    for steps in (2, 12):
        matcher = DeviceMatcher(TABLES, [0, 0], budget=60)
        with AsksTheHost() as watched:
            write(MODEL, PROMPTS, matcher, max_new_tokens=steps, temperature=0.7, pruned_mass=True)
        counts.append([name for name in watched.found if "_local_scalar_dense" not in name])
        looks = len(watched.found) - len(counts[-1])
    assert counts[0] == counts[1] and looks <= 12 + 4


def test_what_does_not_fit_is_an_error():
    matcher = DeviceMatcher(TABLES, [0, 1])
    with pytest.raises(ConstrainedError, match="1 new tokens for prompts of shape \\(1, 5\\) and 2 matcher rows"):
        write(MODEL, PROMPTS[:1], matcher, max_new_tokens=1)
    with pytest.raises(ModelError, match="5 \\+ 252 tokens don't fit in the model's context of 256"):
        write(MODEL, PROMPTS, matcher, max_new_tokens=252)
    if DEVICE == "cpu":
        with pytest.raises(ConstrainedError, match="CUDA graphs need a CUDA device"):
            write(MODEL, PROMPTS, matcher, max_new_tokens=3, graph=True)
