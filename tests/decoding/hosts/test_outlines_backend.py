"""Outlines' models under our masks: transformers always, llama.cpp and MLX-LM where they are installed."""

import json
import subprocess
import sys
from typing import Literal

import numpy as np
import outlines
import pytest
import torch
import transformers
from packaging.version import Version
from pydantic import BaseModel

from constrained import ActionKnowledge, ConstrainedError, Grammar, compile_grammar
from constrained.agents.step_formats import step_prompt
from constrained.decoding import bitmask, generate
from constrained.decoding.hosts.hf_processor import ConstrainedLogitsProcessor
from constrained.decoding.hosts.outlines_backend import (
    ConstrainedBackend,
    ConstrainedOutlinesProcessor,
    generator,
    read_vocabulary,
)
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.household.task_spec import player_world
from constrained.environments.memory import WorldMemory
from constrained.models import load
from tests.decoding.gguf_file import write_gguf
from tests.decoding.hosts.texts import CHOICES, GRAMMARS
from tests.decoding.tiny import tiny

LOADED = tiny(padding=13)
VOCABULARY = LOADED.vocabulary
LIMIT = {"max_new_tokens": 40}


@pytest.fixture(scope="module")
def model():
    return outlines.from_transformers(LOADED.model, LOADED.tokenizer)


@pytest.mark.parametrize("name", GRAMMARS)
def test_it_writes_what_generate_writes_under_the_same_mask(model, name):
    for prompt in ("A room. ", "x"):
        text = generator(model, GRAMMARS[name], **LIMIT)(prompt, do_sample=False, **LIMIT)
        batch = LOADED.tokenizer([prompt], return_tensors="pt")
        processor = ConstrainedLogitsProcessor(compile_grammar(GRAMMARS[name], VOCABULARY), **LIMIT)
        ids = LOADED.model.generate(**batch, logits_processor=[processor], do_sample=False, **LIMIT)
        written = ids[0, batch["input_ids"].shape[1] :]
        assert text == LOADED.tokenizer.decode(written, skip_special_tokens=True)
        assert GRAMMARS[name].matches(text)


def test_batches_answers_and_beams(model):
    torch.manual_seed(0)
    grammar = GRAMMARS["step"]
    make = generator(model, grammar, **LIMIT)
    for _ in range(2):  # one generator, used again
        assert all(map(grammar.matches, make.batch(["a", "A longer prompt. "], do_sample=True, **LIMIT)))
    three = make("x", do_sample=True, num_return_sequences=3, **LIMIT)
    assert len(three) == 3 and all(map(grammar.matches, three))
    beams = generator(model, grammar, num_beams=3, **LIMIT)
    assert all(map(grammar.matches, beams.batch(["a", "A longer prompt. "], num_beams=3, **LIMIT)))


def test_knowledge_says_what_may_be_done_next(model):
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    first = generator(model, knowledge, **LIMIT)("Question: who? ", **LIMIT)
    assert knowledge.check([first]).ok
    after = knowledge.after("Retrieve[Milhouse]")
    assert after.judge(generator(model, after, **LIMIT)("Question: who? ", **LIMIT))


class Tool(BaseModel):
    name: Literal["search", "lookup"]
    count: int


@pytest.mark.parametrize(
    "kind, right",
    [
        (Literal["yes", "no"], lambda text: text in ("yes", "no")),
        (outlines.regex(r"[0-9]{2,4}"), lambda text: 2 <= len(text) <= 4 and text.isdigit()),
        (outlines.cfg('start: "go" " on"*\n'), Grammar.from_regex("go( on)*").matches),
        (Tool, lambda text: set(json.loads(text)) == {"name", "count"}),
        (bool, lambda text: text in ("True", "False")),
    ],
    ids=["literal", "regex", "lark", "json", "bool"],
)
def test_outlines_own_output_types_are_understood(model, kind, right):
    torch.manual_seed(0)
    assert right(generator(model, kind, max_new_tokens=60)("x", max_new_tokens=60, do_sample=True))


def test_what_it_makes_goes_in_by_outlines_own_door(model):
    backend = ConstrainedBackend(model, **LIMIT)
    make = outlines.Generator(model, processor=backend.get_cfg_logits_processor('start: "a" | "b" start\n'))
    assert Grammar.from_regex("b*a").matches(make("x", **LIMIT))
    compiled = compile_grammar(GRAMMARS["choices"], backend.vocabulary)
    assert outlines.Generator(model, processor=backend.get_grammar_logits_processor(compiled))("x", **LIMIT) in CHOICES


def test_every_end_of_text_token_is_known_and_tokens_the_model_can_not_write_are_not():
    loaded = tiny()
    loaded.model.generation_config.eos_token_id = [1, 20]
    loaded.tokenizer.add_tokens(["<never>"])
    vocabulary = read_vocabulary(outlines.from_transformers(loaded.model, loaded.tokenizer))
    assert vocabulary.eos_token_ids == [1, 20]
    assert vocabulary.size == loaded.logits_width < len(loaded.tokenizer)


def test_numpy_arrays_as_llama_cpp_passes_them():
    """One text at a time, ids and logits without a batch dimension, ids in memory that llama.cpp writes on."""
    compiled = compile_grammar(GRAMMARS["choices"], VOCABULARY)
    processor = ConstrainedOutlinesProcessor(compiled, "numpy", **LIMIT)
    rng = np.random.default_rng(0)
    for _ in range(3):
        processor.reset()
        memory = np.zeros(100, np.intc)
        memory[:4] = [5, 9, 7, 5]
        used, matcher = 4, compiled.matcher()
        while not matcher.is_terminated:
            logits = rng.normal(size=VOCABULARY.size + 3).astype(np.single)
            before = logits.copy()
            out = processor(memory[:used], logits)
            allowed = matcher.allowed_token_ids()
            assert out.dtype == np.single and out.shape == logits.shape
            assert np.array_equal(np.flatnonzero(np.isfinite(out)), allowed)
            assert np.array_equal(out[allowed], before[allowed]) and np.array_equal(logits, before)
            memory[used] = out.argmax()
            assert matcher.advance(int(memory[used]))
            used += 1


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_after_its_whole_budget_a_text_may_only_end(library):
    compiled = compile_grammar(Grammar.from_regex("[ab]{2,}"), VOCABULARY)
    processor = ConstrainedOutlinesProcessor(compiled, library, max_new_tokens=3)
    ids, logits = np.array([[5]]), np.zeros((1, VOCABULARY.size), np.single)
    kind = torch.from_numpy if library == "torch" else np.array
    for step in range(6):
        allowed = np.flatnonzero(np.isfinite(np.asarray(processor(kind(ids), kind(logits)))[0])).tolist()
        assert (allowed == VOCABULARY.eos_token_ids) == (step >= 3)
        if step < 3:
            ids = np.append(ids, [[next(id for id in allowed if id not in VOCABULARY.eos_token_ids)]], 1)


def test_an_error_that_c_code_would_ignore_ends_the_text_all_the_same():
    compiled = compile_grammar(GRAMMARS["choices"], VOCABULARY)
    processor = ConstrainedOutlinesProcessor(compiled, "numpy")
    processor(np.array([5], np.intc), np.zeros(VOCABULARY.size, np.single))
    logits = np.ones(VOCABULARY.size, np.single)
    with pytest.raises(ConstrainedError, match="token 65 .* is not allowed"):
        processor(np.array([5, 65], np.intc), logits)
    assert np.flatnonzero(np.isfinite(logits)).tolist() == VOCABULARY.eos_token_ids


def test_a_batch_moves_its_masks_once_a_step(model, monkeypatch):
    processor = ConstrainedBackend(model).get_grammar_logits_processor(GRAMMARS["choices"])
    moves = []
    move = bitmask.filled
    monkeypatch.setattr(bitmask, "filled", lambda *args: moves.append(args[0]) or move(*args))
    processor(torch.zeros((16, 4), dtype=torch.long), torch.zeros((16, VOCABULARY.size)))
    assert moves == [(16, VOCABULARY.words)]


def test_what_takes_no_processor_is_an_error():
    with pytest.raises(ConstrainedError, match="takes no logits processors"):
        ConstrainedBackend(outlines.from_ollama.__class__)
    with pytest.raises(ConstrainedError, match="no tensor library 'jax'"):
        ConstrainedOutlinesProcessor(compile_grammar(GRAMMARS["choices"], VOCABULARY), "jax")


def test_a_forgotten_limit_cuts_no_text_silently(model):
    long = "take mug 1 from the second drawer on the left of the desk"
    make = generator(model, Grammar.from_choices([long, "no"]), begun="take mug")
    short = generator(model, Grammar.from_choices(["no"]))
    assert short("x") == "no" and list(short.batch(["x", "y"])) == ["no", "no"]
    for write in (make, lambda text: make.batch([text, text])):
        with pytest.raises(ConstrainedError, match="cut off at the model's limit") as error:
            write("x take mug")
        assert "max_new_tokens" in error.value.hint
    assert make("x take mug", max_new_tokens=60) == long.removeprefix("take mug")
    with pytest.raises(ConstrainedError, match="cut off"):
        make("x take mug", num_return_sequences=2, do_sample=True)


SETTINGS = """
import logging, torch, torch._dynamo
import tests.decoding.hosts.conftest
def settings():
    return (
        torch._dynamo.config.get_config_copy(), torch.get_num_threads(), torch.get_default_dtype(),
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.are_deterministic_algorithms_enabled(),
    )
start = settings()
import outlines, outlines.backends, transformers
from transformers.generation.continuous_batching import cb_logits_processors as cb
def tables():
    return (vars(outlines.backends).copy(), vars(cb).copy(), dict(cb.CLASSIC_TO_CB_PROCESSORS_MAP),
            logging.getLogger().level, list(logging.getLogger().handlers))
theirs = tables()
from constrained import Grammar
from constrained.decoding.hosts import hf_continuous, hf_processor, outlines_backend, vllm_processor
from tests.decoding.tiny import tiny
loaded = tiny()
model = outlines.from_transformers(loaded.model, loaded.tokenizer)
text = outlines_backend.generator(model, Grammar.from_choices(["a", "b"]))("x", max_new_tokens=9, do_sample=False)
assert text in ("a", "b"), text
changed = {k for k, v in settings()[0].items() if v != start[0][k]}
assert not changed, changed
assert settings()[1:] == start[1:]
assert tables() == theirs
from outlines.processors import OutlinesLogitsProcessor
OutlinesLogitsProcessor("torch")
print("outlines", {k for k, v in settings()[0].items() if v != start[0][k]})
"""


@pytest.mark.skipif(Version(transformers.__version__) < Version("5.23"), reason="needs transformers 5.23")
def test_nothing_in_the_process_is_changed():
    """In a process of its own; the last line shows that the check would notice what Outlines' own processors do."""
    command = [sys.executable, "-c", SETTINGS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] in ("outlines {'suppress_errors'}", "outlines set()")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_llama_cpp(tmp_path):
    llama_cpp = pytest.importorskip("llama_cpp", reason="needs llama-cpp-python")
    llama = llama_cpp.Llama(str(write_gguf(tmp_path / "tiny.gguf")), n_ctx=128, n_threads=1, verbose=False)
    model = outlines.from_llamacpp(llama, chat_mode=False)
    vocabulary = read_vocabulary(model)
    assert vocabulary.tokens[2:] == tiny().vocabulary.tokens[2:] and vocabulary.eos_token_ids == [1]
    for grammar in GRAMMARS.values():
        make = generator(model, grammar, **LIMIT)
        for temperature in (0.0, 1.0):
            assert grammar.matches(make("A room. ", max_tokens=40, temperature=temperature))
        assert grammar.matches("".join(make.stream("A room. ", max_tokens=40)))
    forgotten = generator(model, Grammar.from_choices(["take mug 1 from the second drawer on the left of the desk"]))
    for write in (forgotten, lambda text: list(forgotten.stream(text))):
        with pytest.raises(ConstrainedError, match="cut off at the model's limit"):
            write("x")
    processor = ConstrainedBackend(model).get_grammar_logits_processor(GRAMMARS["choices"])
    out = llama("x", max_tokens=20, logits_processor=llama_cpp.LogitsProcessorList([processor, meddle_once()]))
    assert out["usage"]["completion_tokens"] <= 2  # the error is printed, for C can't raise it, and the text ends


def meddle_once():
    asked = []

    def meddle(ids, logits):
        asked.append(1)
        return logits if len(asked) > 1 else np.eye(1, len(logits), 65, dtype=np.single)[0]

    return meddle


def test_mlx_lm(tmp_path):
    mlx_lm = pytest.importorskip("mlx_lm", reason="needs mlx-lm")
    LOADED.model.save_pretrained(tmp_path)
    LOADED.tokenizer.save_pretrained(tmp_path)
    model = outlines.from_mlxlm(*mlx_lm.load(str(tmp_path)))
    assert read_vocabulary(model).fingerprint == VOCABULARY.fingerprint
    same = outlines.from_transformers(LOADED.model, LOADED.tokenizer)
    for grammar in GRAMMARS.values():
        make = generator(model, grammar, **LIMIT)
        text = make("A room. ", max_tokens=40)
        assert grammar.matches(text)
        assert text == generator(same, grammar, **LIMIT)("A room. ", do_sample=False, **LIMIT)
        assert grammar.matches("".join(make.stream("A room. ", max_tokens=40)))


def test_the_embedded_model_says_the_next_action_of_a_game():
    """What our own loop writes, and what Outlines writes under our mask, is admitted where the game stands."""
    loaded = load()
    game = HouseholdEnv(make_game(7))
    opening = game.reset()
    knowledge = ActionKnowledge.from_lark("household").bind_view(game.admissible())
    prompt = step_prompt(WorldMemory(player_world(), opening).text(), "act", 1)
    model = outlines.from_transformers(loaded.model, loaded.tokenizer)
    action = generator(model, knowledge, **LIMIT)(prompt, do_sample=False, **LIMIT)
    assert knowledge.judge(action)
    assert action == generate(loaded, prompt, knowledge.next_action(), max_new_tokens=40).text
