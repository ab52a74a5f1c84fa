"""The loop on device tables writes what the loop on the host writes, and asks the device nothing on the way."""

from contextlib import ExitStack

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from constrained import ConstrainedError, Vocabulary, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.device import AsyncFlag, DeviceTables
from constrained.decoding.device import loop as device_loop
from constrained.decoding.device.loop import Prompt, decode_on_device
from constrained.decoding.ragged_forward import RaggedForward
from constrained.errors import VocabularyError
from tests.decoding.grammars import GRAMMARS
from tests.decoding.hf_generate.oracle import padding_tokenizer
from tests.decoding.tiny import tiny_llama

TOKENIZER = padding_tokenizer()
MODEL = tiny_llama(len(TOKENIZER) + 20, seed=0)
VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER, size=MODEL.config.vocab_size)
NAMES = ["step", "choices", "regex", "one text", "free"]
COMPILED = [compile_grammar(GRAMMARS[name], VOCABULARY) for name in NAMES]
PROMPTS = ["A room. ", "x", "You are in the middle of a room. Looking quickly around you. ", "go", "é"]


@pytest.fixture(scope="module")
def tables():
    return DeviceTables.build(COMPILED)


def write(prompts=PROMPTS, **options):
    given = TOKENIZER(prompts, return_tensors="pt", padding=True)
    options = {"max_new_tokens": 60, "do_sample": False, "return_dict_in_generate": True} | options
    out = MODEL.generate(**given, custom_generate=custom_generate, **options)
    return out, [TOKENIZER.decode(row[given.input_ids.shape[1] :], skip_special_tokens=True) for row in out.sequences]


@pytest.mark.parametrize("cache", [None, "static"])
def test_greedily_device_and_host_write_the_same(tables, cache):
    options = {"output_pruned_mass": True, "cache_implementation": cache, "max_new_tokens": 100}
    host, _ = write(grammar=COMPILED, **options)
    device, texts = write(grammar=tables, **options)
    assert torch.equal(host.sequences, device.sequences)
    assert device.complete.all() and all(GRAMMARS[name].matches(text) for name, text in zip(NAMES, texts))
    asked = host.pruned_mass.isfinite()
    near = host.pruned_mass.shape[1] - 8  # the host's budget knows only bounds near the end
    assert torch.allclose(
        host.pruned_mass[:, :near][asked[:, :near]], device.pruned_mass[:, :near][asked[:, :near]], atol=1e-5
    )


def test_tables_of_one_grammar_or_one_a_prompt_or_made_on_the_way(tables):
    _, texts = write(["a", "b"], grammar=COMPILED[1], device_tables=True, num_return_sequences=3, do_sample=True)
    assert len(texts) == 6 and all(GRAMMARS["choices"].matches(text) for text in texts)
    assert write(grammar=COMPILED, device_tables=True)[1] == write(grammar=tables)[1]
    with pytest.raises(ConstrainedError, match="tables of 5 grammars for 2 prompts"):
        write(["a", "b"], grammar=tables)
    with pytest.raises(ConstrainedError, match="built from compiled grammars"):
        write(["a"], grammar=GRAMMARS["free"], device_tables=True)


@pytest.mark.parametrize("steps", [16, 17, 30])
def test_texts_are_whole_at_any_length_allowed(steps):
    for options in ({}, {"do_sample": True, "temperature": 1.4, "top_k": 9, "top_p": 0.9}):
        out, texts = write(grammar=COMPILED[0], device_tables=True, max_new_tokens=steps, **options)
        assert all(map(GRAMMARS["step"].matches, texts)) and out.complete.all()
    with pytest.raises(VocabularyError, match="too small"):
        write(grammar=COMPILED[0], device_tables=True, max_new_tokens=3)


def test_equal_seeds_give_equal_texts(tables):
    def drawn(seed):
        return write(grammar=tables, do_sample=True, generator=torch.Generator().manual_seed(seed))[1]

    assert drawn(1) == drawn(1) != drawn(2)


class NoQuestions(TorchDispatchMode):
    """Raises where the host would wait for a value."""

    WAITING = frozenset({"_local_scalar_dense", "nonzero", "masked_select", "item", "is_nonzero", "equal"})

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        assert name not in self.WAITING, f"{name} waits for the device"
        return function(*args, **kwargs or {})


class LateFlag(AsyncFlag):
    """As on a GPU: the answer lands a few looks later, and is never asked for."""

    def __init__(self, device):
        self.looks, self.over = 0, []

    def look(self, condition):
        self.looks += 1
        self.over.append(condition)
        return False


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"temperature": 0.8}])
@torch.no_grad()
def test_the_loop_never_waits_for_the_device(tables, monkeypatch, settings):
    monkeypatch.setattr(device_loop, "AsyncFlag", LateFlag)
    prompts = [Prompt(TOKENIZER.encode(text)) for text in PROMPTS]
    forward = RaggedForward(MODEL, prompts, 128, static=True)
    run = device_loop._Buffers.run

    def watched(buffers, forward, max_steps):
        read = forward.read_prompts
        with ExitStack() as stack:
            forward.read_prompts = lambda: (read(), stack.enter_context(NoQuestions()))[0]
            return run(buffers, forward, max_steps)

    monkeypatch.setattr(device_loop._Buffers, "run", watched)
    out = decode_on_device(forward, tables, range(5), 45, settings, budget=40)
    monkeypatch.undo()
    assert out.complete.all() and out.tokens.shape == (5, 45)  # ran on: rows that were over absorbed padding
    for row, name in zip(out.tokens.tolist(), NAMES):
        assert GRAMMARS[name].matches(TOKENIZER.decode(row, skip_special_tokens=True))
        assert set(row[row.index(1) :]) == {1}


def test_learning_late_of_the_end_changes_nothing(tables, monkeypatch):
    expected, _ = write(grammar=tables, output_pruned_mass=True)
    monkeypatch.setattr(device_loop, "AsyncFlag", LateFlag)
    late, _ = write(grammar=tables, output_pruned_mass=True)
    assert torch.equal(late.sequences, expected.sequences)
    assert torch.equal(late.pruned_mass.isnan(), expected.pruned_mass.isnan())
