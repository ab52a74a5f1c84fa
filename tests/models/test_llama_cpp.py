"""Models in llama.cpp's own engine, in this project's loop: the texts of the same weights in transformers."""

from __future__ import annotations

from functools import partial
from itertools import islice

import pytest

from constrained import Grammar, generate_plan
from constrained.decoding.generation import Writing, generate, generate_batch, generate_joining
from constrained.decoding.ragged_forward import FIRST_PIECE
from constrained.decoding.request import Request
from constrained.errors import ConstrainedWarning, ModelError
from constrained.models import load
from constrained.models.adapters import require_bare
from constrained.models.llama_cpp import CHUNK, LlamaCppModel
from constrained.models.source import to_adapt
from tests.decoding.gguf_file import write_gguf
from tests.decoding.tiny import tiny
from tests.smollm2 import smollm2_file

CONTEXT = 2000
STEP = Grammar.from_lark('start: "Thought: " /[a-z ]{1,20}/ "\\nAction: " ("go to" | "take") " the lamp " /[0-9]/\n')


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    pytest.importorskip("llama_cpp", reason="llama-cpp-python isn't installed")
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", tiny(context=CONTEXT).model)


@pytest.fixture(scope="module")
def model(path):
    return load(f"llama.cpp:{path}")


@pytest.fixture(scope="module")
def same():
    return tiny(context=CONTEXT)


def test_a_text_is_that_of_the_same_weights_elsewhere(model, same):
    for prompt in ("Hello there", "What is it? ", "Hello the"):
        ours, theirs = generate(model, prompt, STEP, max_new_tokens=80), generate(same, prompt, STEP, max_new_tokens=80)
        assert ours.text == theirs.text and STEP.matches(ours.text)
        assert ours.forward_passes == theirs.forward_passes < ours.completion_tokens, "forced text costs no passes"
        assert ours.pruned_mass.mean == pytest.approx(theirs.pruned_mass.mean, abs=1e-3)


def test_rows_side_by_side_are_those_alone(model, same):
    requests = [Request(f"Number {i} is {'x' * i}", STEP, 40 + i) for i in range(7)]
    expected = [one.text for one in generate_batch(same, requests)]
    for rows in (7, 2):
        assert [one.text for one in generate_batch(model, requests, rows=rows)] == expected
    waiting, ended = [Writing(model, one) for one in requests], []
    writings = list(waiting)
    generate_joining(model, lambda room: [waiting.pop(0)] if waiting and room else [], ended.append, 3)
    assert [one.generation().text for one in writings] == expected and len(ended) == 7


def test_long_prompts_are_read_in_pieces_between_which_others_go_on(model, same, monkeypatch):
    requests = [Request("Hello there " * n, STEP, 40) for n in (1, 90, 2, 70)]
    expected = [one.text for one in generate_batch(same, requests)]
    read = []
    decode = model.model._decode
    monkeypatch.setattr(model.model, "_decode", lambda tokens, found: (read.append(len(tokens)), decode(tokens, found)))
    for seconds, longest in ((0.0, FIRST_PIECE + len(requests)), (1e9, CHUNK)):
        writings, ended = [Writing(model, one) for one in requests], []
        waiting = iter(writings)
        generate_joining(model, partial(islice, waiting), ended.append, call_seconds=seconds)
        assert [one.generation().text for one in writings] == expected and len(ended) == 4
        assert max(read) <= longest
        read.clear()


def test_what_a_prompt_shares_with_the_last_one_is_not_read_again(model):
    generate(model, "You are in a room. " * 3 + "Go", STEP, max_new_tokens=60)
    held = list(model.model.held[0])
    before = model.tokenizer.encode("You are in a room. " * 3)
    assert held[: len(before)] == before
    read = []
    decode = model.model._decode
    model.model._decode = lambda tokens, found: (read.append(len(tokens)), decode(tokens, found))
    try:
        generate(model, "You are in a room. " * 3 + "Stop", STEP, max_new_tokens=60)
    finally:
        model.model._decode = decode
    assert read[0] < 10


def test_a_prompt_longer_than_a_call_and_one_longer_than_the_context(model, same):
    prompt = "a lamp and a mug " * 60
    assert CHUNK < len(model.tokenizer.encode(prompt)) < model.max_context == CONTEXT
    ours, theirs = (generate(one, prompt, STEP, max_new_tokens=60) for one in (model, same))
    assert ours.text == theirs.text
    with pytest.raises(ModelError, match="fills the context"):
        generate(model, "a lamp and a mug " * 400, max_new_tokens=5)


def test_an_agent_plays_with_it(model):
    plan = generate_plan("put a mug in the cabinet", strategy="act", model=model, max_steps=2)
    assert len(plan.steps) == 2 and all(step.verdict == "ok" for step in plan.steps)


def test_it_runs_a_file_unless_that_is_to_be_trained_or_moved(path):
    assert all(isinstance(load(one), LlamaCppModel) for one in (path, str(path), f"llama.cpp:{path}"))
    assert isinstance(load(path, device="cpu"), LlamaCppModel)
    others = load(f"transformers:{path}"), load(path, dtype="bfloat16"), load(path, device="auto"), load(to_adapt(path))
    assert not any(isinstance(one, LlamaCppModel) for one in others)
    assert {one.name for one in others} == {str(path)} == {load(path).name}


def test_what_only_transformers_can_read_is_left_to_it(path, monkeypatch):
    def refuse(*_):
        raise ModelError("llama.cpp can't read it: unknown model architecture", "give another")

    monkeypatch.setattr("constrained.models.llama_cpp.LlamaCpp.__init__", refuse)
    with pytest.warns(ConstrainedWarning, match="transformers runs .*unknown model architecture"):
        assert not isinstance(load(path), LlamaCppModel)


def test_a_general_model(path):
    loaded = load("smollm2") if smollm2_file() else None
    assert isinstance(loaded, LlamaCppModel) and loaded.name == "smollm2"
    other = load("transformers:smollm2")
    assert set(other.eos_token_ids) <= set(loaded.eos_token_ids)
    text = [i for i in range(other.vocabulary.size) if i not in other.vocabulary.special_ids]
    assert [loaded.vocabulary.tokens[i] for i in text] == [other.vocabulary.tokens[i] for i in text]
    chat = [{"role": "user", "content": "There is a lamp. Answer with its command."}]
    prompt = loaded.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ours, theirs = (generate(one, prompt, STEP, max_new_tokens=60) for one in (loaded, other))
    assert STEP.matches(ours.text) and STEP.matches(theirs.text)
    assert ours.pruned_mass.mean == pytest.approx(theirs.pruned_mass.mean, abs=0.05)


def test_what_it_cannot_do_is_one_clear_error(model, tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        load(f"llama.cpp:{tmp_path}/none.gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelError, match="of GGUF's version 0"):
        load(f"llama.cpp:{tmp_path}/broken.gguf")
    (tmp_path / "empty.gguf").write_bytes(b"GGUF\3\0\0\0" + bytes(100))
    with pytest.raises(ModelError, match="llama.cpp can't read"):
        load(f"llama.cpp:{tmp_path}/empty.gguf", tokenizer=model.tokenizer)
    with pytest.raises(ModelError, match="leave device and dtype out"):
        load(model, dtype="float16")
    with pytest.raises(ModelError, match="can't train") as caught:
        require_bare(model)
    assert caught.value.hint == f"load transformers:{model.name}"
