"""Buffers that are kept from call to call: later texts are those of a loop that begins anew."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
import torch

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.device import DeviceTables, release
from constrained.decoding.device import loop as device_loop
from constrained.decoding.device import matcher as device_matcher
from tests.decoding.device.walk import DEVICE
from tests.decoding.tiny import tiny_llama, tiny_tokenizer

VOCABULARY = Vocabulary.from_tokenizer(tiny_tokenizer(), size=330)
PLACES = [["drawer 1", "desk 1", "desk 10"], ["drawer 2", "desk 2", "desk 20"], ["drawer 3", "desk 3", "desk 3 or 4"]]
GRAMMARS = [Grammar.from_regex(f"[a-z ]{{1,12}}: go to ({'|'.join(places)})") for places in PLACES]
COMPILED = [compile_grammar(grammar, VOCABULARY) for grammar in GRAMMARS]
TABLES = [DeviceTables.build(one, tokenizer=tiny_tokenizer(), device=DEVICE) for one in COMPILED]


def model() -> Any:
    return tiny_llama(330).to(DEVICE)


def write(model: Any, number: int, length: int = 5, seed: int = 0, **options: Any) -> tuple:
    """Texts of grammar `number`, with prompts of `length` tokens; sequences, pruned masses and passes."""
    prompts = torch.arange(2 * length, device=DEVICE).reshape(2, length) + 60
    out = model.generate(
        prompts, attention_mask=torch.ones_like(prompts), custom_generate=custom_generate, grammar=TABLES[number],
        pad_token_id=1, return_dict_in_generate=True, output_pruned_mass=True,
        generator=torch.Generator().manual_seed(seed),
        **{"max_new_tokens": 40, "do_sample": False, "cache_implementation": "static", **options},
    )  # fmt: skip
    assert all(GRAMMARS[number].matches(text(row[length:])) for row in out.sequences) and out.complete.all()
    return out.sequences.tolist(), out.pruned_mass.nan_to_num(-1).tolist(), out.forward_passes


def text(tokens: torch.Tensor) -> bytes:
    return b"".join(VOCABULARY.tokens[i] for i in tokens.tolist() if i not in VOCABULARY.special_set)


def kept(model: Any) -> list:
    return list(device_loop._KEPT.get(model, {}).values())


SAMPLED = {"do_sample": True, "temperature": 1.2, "top_p": 0.9}
CALLS = [(0, 5, 0), (1, 5, 1), (2, 7, 2), (0, 6, 3), (0, 6, 3), (1, 3, 0)]
"""Grammar, length of the prompts, seed."""


@pytest.mark.parametrize(
    ("backend", "options"),
    [("torch", {}), ("torch", {"num_return_sequences": 3, **SAMPLED}), ("triton", {"max_new_tokens": 16, **SAMPLED})],
)
def test_texts_are_those_of_a_fresh_loop(backend, options, monkeypatch):
    if backend == "triton":
        kernel = pytest.importorskip("constrained.decoding.device.kernel_triton", reason="needs triton")
        monkeypatch.setattr(device_matcher, "_backend", lambda device, name: kernel)
    assert len({tables.room for tables in TABLES}) == 1 and len({t.states for t in TABLES}) > 1, "others of one room"
    lasting, before = model(), None
    for number, length, seed in CALLS[: 2 if backend == "triton" else None]:
        found = write(lasting, number, length, seed, **options)
        [buffers] = kept(lasting)
        assert before in (None, buffers), "one set of buffers serves all calls"
        before = buffers
        assert found == write(model(), number, length, seed, **options)


def test_each_kind_of_call_has_its_own_and_the_oldest_go(monkeypatch):
    monkeypatch.setattr(device_loop, "KEPT", 2)
    lasting = model()
    write(lasting, 0)
    [first] = kept(lasting)
    write(lasting, 0, do_sample=True, temperature=0.7)
    [_, second] = kept(lasting)
    write(lasting, 1, do_sample=True, temperature=1.3)
    assert kept(lasting) == [first, second], "another temperature or grammar needs no others"
    write(lasting, 0)
    assert kept(lasting) == [second, first]
    write(lasting, 0, max_new_tokens=90)
    assert kept(lasting)[0] is first and len(kept(lasting)) == 2


@pytest.mark.parametrize("change", ["moved weight", "hook", "mode", "attention"])
def test_a_changed_model_gets_others(change):
    lasting = model()
    write(lasting, 0)
    [before] = kept(lasting)
    if change == "moved weight":
        lasting.lm_head.weight = torch.nn.Parameter(lasting.lm_head.weight.detach().clone())
    elif change == "hook":
        lasting.model.layers[0].register_forward_hook(lambda *given: None)
    elif change == "mode":
        lasting.model.layers[0].mlp.train()
    else:
        lasting.set_attn_implementation("eager")
    write(lasting, 0)
    assert kept(lasting)[-1] is not before


@pytest.mark.parametrize("released", [False, True])
def test_they_go_with_their_model_or_when_told(released):
    lasting = model()
    write(lasting, 0)
    [buffers] = map(weakref.ref, kept(lasting))
    if released:
        release(lasting)
    else:
        del lasting
    gc.collect()
    assert buffers() is None


def test_after_an_error_nothing_is_kept(monkeypatch):
    lasting = model()
    expected = write(lasting, 0)

    def fails(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(device_loop._Buffers, "written", fails)
        with pytest.raises(KeyboardInterrupt):
            write(lasting, 0)
    assert not kept(lasting) and write(lasting, 0) == expected


def test_threads_do_not_share_buffers():
    lasting, found = model(), {}
    expected = [write(model(), number) for number in range(3)]
    threads = [
        threading.Thread(target=lambda i: found.update({i: [write(lasting, i) for _ in range(3)]}), args=(i,))
        for i in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i] == [expected[i]] * 3 for i in range(3))


def test_a_model_that_cannot_be_captured_runs_without_a_graph(monkeypatch, caplog):
    def fails(*given: Any) -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore of it")

    monkeypatch.setattr(device_loop, "_graphable", lambda forward: True)
    monkeypatch.setattr(device_loop, "capture", fails)
    lasting = model()
    expected = write(model(), 0)
    caplog.clear()
    assert [write(lasting, 0) for _ in range(3)] == [expected] * 3
    [warning] = caplog.records
    assert warning.getMessage() == (
        "LlamaForCausalLM can't be captured as a CUDA graph; the loop runs without one, slower: "
        "CUDA error: operation not permitted when stream is capturing"
    )


def test_memory_that_is_kept_is_given_up_where_it_is_wanted(monkeypatch):
    lasting = model()
    expected = write(lasting, 0)
    failures = [torch.OutOfMemoryError("no memory left")]
    whole = device_loop._Buffers.write

    def write_or_fail(buffers: Any, logits: torch.Tensor) -> None:
        if failures:
            raise failures.pop()
        whole(buffers, logits)

    monkeypatch.setattr(device_loop._Buffers, "write", write_or_fail)
    assert write(lasting, 0) == expected
