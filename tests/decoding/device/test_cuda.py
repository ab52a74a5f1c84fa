"""On a GPU: no synchronisation in the loop, the same tokens as on the CPU, and all of it in a CUDA graph."""

from __future__ import annotations

import pytest
import torch

from constrained import Grammar, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.device import (
    AsyncFlag,
    DeviceMatcher,
    DeviceTables,
    capture,
)
from constrained.decoding.device import loop as device_loop
from tests.decoding.device.vocabularies import VOCABULARIES
from tests.decoding.tiny import tiny_llama

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

VOCABULARY = VOCABULARIES["several EOS, wide"]


@pytest.fixture(scope="module")
def tables() -> DeviceTables:
    grammars = [
        Grammar.from_regex("[a-zé]{2,20}(, [a-z]{1,3}){0,2}!"),
        Grammar.from_choices(["go to desk 1", "go to desk 10"]),
    ]
    return DeviceTables.build([compile_grammar(g, VOCABULARY) for g in grammars])


@pytest.mark.parametrize("backend", ["triton", "torch"])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.8}, {"temperature": 0.8, "top_k": 9, "top_p": 0.9}])
def test_the_loop_never_waits_for_the_device(tables, backend, options):
    matcher = DeviceMatcher(tables.to("cuda"), [0, 1] * 4, budget=40, backend=backend)
    flag = AsyncFlag("cuda")
    logits = torch.randn(8, VOCABULARY.size, device="cuda")
    matcher.step(logits, **options)  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(60):
            matcher.step(logits.normal_(), pruned_mass=True, **options)
            flag.look(matcher.finished.all())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert matcher.finished.all()


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_tokens_are_those_of_the_cpu(tables, temperature):
    here, there = (
        DeviceMatcher(on, [0, 1, 0], budget=30, generator=torch.Generator().manual_seed(7))
        for on in (tables, tables.to("cuda"))
    )
    generator = torch.Generator().manual_seed(7)
    for _ in range(40):
        logits = torch.randn(3, VOCABULARY.size + 9, generator=generator)
        found = there.step(logits.cuda(), temperature=temperature, pruned_mass=True)
        assert here.step(logits, temperature=temperature, pruned_mass=True).tolist() == found.tolist()
        assert torch.allclose(here.pruned_mass, there.pruned_mass.cpu(), atol=1e-5)
    assert torch.equal(here.state, there.state.cpu())


@pytest.mark.parametrize("options", [{}, {"temperature": 0.8}, {"temperature": 0.8, "top_k": 9, "top_p": 0.9}])
def test_a_captured_step_replays(tables, options):
    device = tables.to("cuda")
    matcher, plain = (
        DeviceMatcher(device, [0, 1], budget=30, generator=torch.Generator().manual_seed(3)) for _ in range(2)
    )
    logits = torch.zeros(2, VOCABULARY.size, device="cuda")
    keep = matcher.state, matcher.left, matcher.draws
    replay, tokens = capture(lambda: matcher.step(logits, pruned_mass=True, **options), keep)
    assert torch.equal(matcher.state, plain.state), "neither warm-up nor capture reads a token"
    for seed in range(40):
        torch.manual_seed(seed)
        logits.normal_()
        replay()
        assert tokens.tolist() == plain.step(logits, **options).tolist()
    assert torch.equal(matcher.state, plain.state) and matcher.finished.all()


def test_a_captured_step_draws_new_noise_every_time(tables):
    matcher = DeviceMatcher(tables.to("cuda"), [0] * 64)
    logits = torch.zeros(64, VOCABULARY.size, device="cuda")
    keep = matcher.state, matcher.left, matcher.draws
    replay, tokens = capture(lambda: matcher.step(logits, temperature=1.0), keep)
    seen = set()
    for _ in range(3):
        replay()
        seen.add(tuple(tokens.tolist()))
    assert len(seen) == 3


def texts(model, tables, device, seed=None) -> list[list[int]]:
    prompt = torch.tensor([[1, 2, 3], [1, 5, 6]], device=device)
    drawn = {} if seed is None else {"generator": torch.Generator().manual_seed(seed), "temperature": 0.9}
    return model.to(device).generate(
        prompt, custom_generate=custom_generate, grammar=tables.to(device), max_new_tokens=30,
        do_sample=seed is not None, pad_token_id=VOCABULARY.eos_token_ids[0], attention_mask=torch.ones_like(prompt),
        **drawn,
    ).tolist()  # fmt: skip


def test_the_whole_loop_in_a_graph_writes_what_the_cpu_writes(tables):
    """Model, mask, choice and state: one replay a token; later calls replay the same graph."""
    model, same = (tiny_llama(VOCABULARY.size, eos=VOCABULARY.eos_token_ids) for _ in range(2))
    for seed in (None, 1, 2):
        assert texts(model, tables, "cuda", seed) == texts(same, tables, "cpu", seed)
    greedy, sampled = device_loop._KEPT[model].values()
    replay = sampled.replay
    assert greedy.replay is not None and replay is not None
    texts(model, tables, "cuda", 3)
    assert sampled.replay is replay, "captured once"


def test_a_flag_tells_of_a_condition_as_many_looks_later_as_it_may_be_ahead():
    flag, over = AsyncFlag("cuda", ahead=2), torch.zeros(1, dtype=torch.bool, device="cuda")
    assert not flag.look(over)
    over.fill_(True)
    assert [flag.look(over) for _ in range(4)] == [False, False, True, True]


def test_the_loop_runs_one_pass_beyond_the_end(tables):
    """However far the limit is: launching a pass takes much less time than running it."""
    model, prompt = tiny_llama(VOCABULARY.size, eos=VOCABULARY.eos_token_ids).cuda(), torch.ones(1, 3).long().cuda()
    one = DeviceTables.build(compile_grammar(Grammar.from_choices(["go to desk 1"]), VOCABULARY), device="cuda")
    for _ in range(2):  # with the capture, and by the kept graph
        out = model.generate(
            prompt, custom_generate=custom_generate, grammar=one, max_new_tokens=400, do_sample=False,
            attention_mask=torch.ones_like(prompt), pad_token_id=0, return_dict_in_generate=True,
        )  # fmt: skip
        assert out.complete.all() and out.forward_passes <= out.sequences.shape[1] - 3 + 1


def test_a_model_that_waits_for_the_device_runs_without_a_graph(tables, caplog):
    model, same = (tiny_llama(VOCABULARY.size, eos=VOCABULARY.eos_token_ids) for _ in range(2))
    for one in (model, same):
        one.model.norm.register_forward_hook(lambda module, args, out: out * (out.sum().item() == out.sum().item()))
    assert texts(model, tables, "cuda") == texts(same, tables, "cpu") == texts(model, tables, "cuda")
    assert len([r for r in caplog.records if "can't be captured" in r.getMessage()]) == 1
