"""The loop on the device with a real model: the host's tokens, whole texts, and no question to the host."""

from __future__ import annotations

import pytest
import torch

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.device import DeviceTables
from tests.decoding.device.walk import DEVICE, AsksTheHost
from tests.decoding.tiny import tiny_llama, tiny_tokenizer

VOCABULARY = Vocabulary.from_tokenizer(tiny_tokenizer(), size=330)
GRAMMARS = [
    Grammar.from_regex(r"Thought: [^\n]{1,30}\nAction: (go to|take) [a-z]+ [0-9]"),
    Grammar.from_choices(["go to drawer 1", "go to desk 1", "go to desk 10"]),
]
COMPILED = [compile_grammar(g, VOCABULARY) for g in GRAMMARS]
TABLES = DeviceTables.build(COMPILED, device=DEVICE)
CHOICES = DeviceTables.build(COMPILED[1], device=DEVICE)
MODEL = tiny_llama(330).to(DEVICE)
EOS = 1
PROMPTS = torch.tensor([[0, 70, 71, 72, 90], [0, 80, 81, 82, 83]], device=DEVICE)


def write(prompts: torch.Tensor, grammar, steps: int, **options):
    options = {"attention_mask": torch.ones_like(prompts), "do_sample": False, "pad_token_id": EOS} | options
    return MODEL.generate(
        prompts,
        custom_generate=custom_generate,
        grammar=grammar,
        max_new_tokens=steps,
        return_dict_in_generate=True,
        **options,
    )


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


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}], ids=str)
def test_greedy_texts_are_the_hosts(options):
    """With room to spare: near the end of a budget the host's masks can be narrower (see `Matcher.set_budget`)."""
    out = write(PROMPTS, TABLES, 80, output_pruned_mass=True, **options)
    assert out.complete.tolist() == [True, True]
    for row, found in enumerate(out.sequences[:, 5:].tolist()):
        expected = by_the_host(PROMPTS[row].tolist(), row, 80)
        assert found == expected + [EOS] * (len(found) - len(expected))
        assert GRAMMARS[row].matches(text(out.sequences[row, 5:]))
    assert out.pruned_mass.shape == out.sequences[:, 5:].shape and out.pruned_mass[0, 0] > 0


def test_padding_on_the_left_changes_nothing():
    short = PROMPTS[1:, 2:]
    tables = DeviceTables.build([COMPILED[1], COMPILED[0]], device=DEVICE)
    alone = write(short, DeviceTables.build(COMPILED[0], device=DEVICE), 20).sequences[0, 3:]
    batch = torch.cat((PROMPTS[:1], torch.nn.functional.pad(short, (2, 0), value=EOS)))
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], device=DEVICE)
    assert text(write(batch, tables, 20, attention_mask=mask).sequences[1, 5:]) == text(alone)


@pytest.mark.parametrize("budget", [4, 5, 9, 40])
def test_every_text_is_whole_within_its_budget(budget):
    torch.manual_seed(budget)
    out = write(PROMPTS, CHOICES, budget, do_sample=True, temperature=1.5, top_p=0.95, num_return_sequences=3)
    assert out.complete.all() and out.sequences.shape[0] == 6
    assert all(GRAMMARS[1].matches(text(row[5:])) for row in out.sequences)


def test_the_loop_asks_the_host_nothing():
    """More steps, no more questions, but for the flag, which on a CPU is read at once."""
    counts = []
    for steps in (17, 40):
        with AsksTheHost() as watched:
            out = write(PROMPTS, TABLES, steps, do_sample=True, temperature=0.7, output_pruned_mass=True)
        counts.append((out.forward_passes, watched.found))
    (few, before), (many, after) = counts
    read = "aten._local_scalar_dense.default"
    assert many > few + 9 and after.count(read) - before.count(read) <= many - few
    assert [name for name in after if name != read] == [name for name in before if name != read]


def test_forced_text_costs_no_passes_of_its_own():
    """Of each text the model chooses what it is free to choose; the rest is written beside it, and is read by it."""
    grammar = Grammar.from_lark(
        'start: "Thought: I stand here.\\nAction: " ("go to" | "take") " the little lamp" /[0-9]/\n'
    )
    compiled = compile_grammar(grammar, VOCABULARY)
    forced = DeviceTables.build(compiled, tokenizer=tiny_tokenizer(), device=DEVICE)
    asked = write(PROMPTS, DeviceTables.build(compiled, device=DEVICE), 80)
    for options in ({}, {"cache_implementation": "static"}, {"do_sample": True, "temperature": 1.3}):
        out = write(PROMPTS, forced, 80, output_pruned_mass=True, **options)
        assert all(grammar.matches(text(row[5:])) for row in out.sequences) and out.complete.all()
        assert out.forward_passes < asked.forward_passes < out.sequences.shape[1] - 5
        assert (out.pruned_mass[:, 0] == 0).all() and (out.pruned_mass > 0).any()
    host = write(PROMPTS, compiled, 80, tokenizer=tiny_tokenizer())
    out = write(PROMPTS, forced, 80)
    assert [text(row[5:]) for row in out.sequences] == [text(row[5:]) for row in host.sequences]
    fewest = int(forced.fewest[forced.start[0]])
    for budget in range(fewest, fewest + 12):
        out = write(PROMPTS, forced, budget)
        assert out.complete.all() and all(grammar.matches(text(row[5:])) for row in out.sequences)


def test_rows_that_are_done_early_wait_in_their_place():
    """One row writes twenty times as many tokens as the other; nothing of it lands in the other's text."""
    grammars = [Grammar.from_regex("(the lamp is here, ){12}!"), Grammar.from_choices(["go"])]
    compiled = [compile_grammar(grammar, VOCABULARY) for grammar in grammars]
    for tokenizer in (None, tiny_tokenizer()):
        tables = DeviceTables.build(compiled, tokenizer=tokenizer, device=DEVICE)
        for static in ({}, {"cache_implementation": "static"}):
            out = write(PROMPTS, tables, 240, **static)
            assert [grammar.matches(text(row[5:])) for grammar, row in zip(grammars, out.sequences)] == [True, True]
