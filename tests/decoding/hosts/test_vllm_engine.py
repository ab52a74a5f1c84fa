# ruff: noqa: E402
"""Constraints in vLLM's own engine, on the CPU: all of vLLM but its kernels.

`make hosts` fetches vLLM's wheel and runs these tests; elsewhere they are skipped.
"""

import json
import os
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

if find_spec("vllm") is None:
    pytest.skip("needs vLLM's wheel: make hosts", allow_module_level=True)
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"], os.environ["VLLM_TARGET_DEVICE"] = "0", "cpu"

from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.model_executor.models import ModelRegistry
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.platforms import current_platform
from vllm.sampling_params import StructuredOutputsParams

from constrained import ActionKnowledge, ConstrainedError, Grammar
from constrained.decoding.hosts import vllm_backend, vllm_processor
from constrained.decoding.hosts.specification import read_specification
from constrained.decoding.remote import ENFORCE
from tests.decoding.hosts.vllm_model import RandomModel
from tests.decoding.tiny import tiny

DRAFTS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
ENGINES = {
    "plain": {},
    "asynchronous": {"async_scheduling": True},
    "drafts": {"speculative_config": DRAFTS},
    "thoughts": {"reasoning_parser": "deepseek_r1"},
    "thoughts, asynchronous": {"reasoning_parser": "deepseek_r1", "async_scheduling": True},
    "thoughts, drafts": {"reasoning_parser": "deepseek_r1", "speculative_config": DRAFTS},
}
TOOLS = [{"name": "find", "parameters": {"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"]}}]
CONSTRAINTS = [
    {"choices": ["look", "lark", "é 中"]},
    {"regex": "(a|b)+c{1,3}é?"},
    {"lark": 'start: "a" | "b" start\n'},
    {
        "json_schema": {"type": "object", "properties": {"b": {"enum": [1, 2]}, "a": {"type": "boolean"}}},
        "closed": True,
    },
    {"tools": TOOLS, "call_format": "hermes"},
    {"knowledge": "household", "view": {"RECEPTACLE": ["desk 1", "desk 10"]}},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    loaded, path = tiny(padding=13), tmp_path_factory.mktemp("model")
    loaded.tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    loaded.model.save_pretrained(path)
    loaded.tokenizer.save_pretrained(path)
    vllm_backend.register()
    # Else vLLM imports the class in a process of its own, where torchvision's kernels are not declared (see conftest).
    ModelRegistry.register_model("LlamaForCausalLM", LlamaForCausalLM)
    return path, loaded.tokenizer


def engine(model, monkeypatch, name="plain", made={}):  # noqa: B006 (one engine of a kind for all tests)
    path, tokenizer = model
    if name not in made:
        made[name] = make_engine(path, monkeypatch, name)
    # A wish to end the thought soon, and drafts that are right for a while.
    close, some = tokenizer.convert_tokens_to_ids("</think>"), tokenizer.encode("look aab")
    thinks = "thoughts" in name
    monkeypatch.setattr(RandomModel, "wishes", lambda tokens: {close: 9.0} if thinks and len(tokens) % 7 == 6 else {})
    monkeypatch.setattr(RandomModel, "drafts", lambda tokens: [some[(len(tokens) + i) % len(some)] for i in range(3)])
    return made[name]


def make_engine(path, monkeypatch, name):
    options = dict(ENGINES[name])
    if options.pop("async_scheduling", False):  # on the CPU vLLM switches it off
        platform = type(current_platform)
        own = platform.check_and_update_config.__func__

        def keep(cls, config):
            own(cls, config)
            config.scheduler_config.async_scheduling = True

        monkeypatch.setattr(platform, "check_and_update_config", classmethod(keep))
    llm = LLM(str(path), distributed_executor_backend=RandomModel, max_model_len=256, enforce_eager=True, **options)
    config = llm.llm_engine.vllm_config
    assert config.scheduler_config.async_scheduling == ("asynchronous" in name)
    return llm


def params(constraint=None, max_tokens=90, **options):
    extra = None if constraint is None else {"constrained": constraint}
    return SamplingParams(**{"temperature": 0.0, "max_tokens": max_tokens, "extra_args": extra, **options})


def after_thought(output, tokenizer):
    """The text that the constraint is about."""
    ids, close = list(output.token_ids), tokenizer.convert_tokens_to_ids("</think>")
    ids = ids[ids.index(close) + 1 :] if close in ids else ids
    return tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("name", ENGINES)
def test_every_constrained_text_is_whole_beside_requests_of_all_kinds(model, monkeypatch, name):
    llm = engine(model, monkeypatch, name)
    others = [
        params(max_tokens=20),
        params(max_tokens=20, repetition_penalty=1.3, presence_penalty=0.5),
        params(max_tokens=20, structured_outputs=StructuredOutputsParams(choice=["yes", "no"])),
    ]
    asked = [params(json.dumps(c) if i % 2 else c) for i, c in enumerate(CONSTRAINTS)] + others
    asked.append(params(CONSTRAINTS[1], repetition_penalty=1.3, presence_penalty=0.5))
    prompts = [f"Prompt {i}. " for i in range(len(asked))]
    outputs = [out.outputs[0] for out in llm.generate(prompts, asked, use_tqdm=False)]
    for out, asking in zip(outputs, asked):
        if asking.extra_args:
            constraint = asking.extra_args["constrained"]
            fields = json.loads(constraint) if isinstance(constraint, str) else constraint
            text = after_thought(out, model[1])
            assert read_specification(fields).matches(text), (fields, text)
    assert after_thought(outputs[len(CONSTRAINTS) + 2], model[1]) in ("yes", "no")
    alone = llm.generate(prompts[len(CONSTRAINTS)], others[0], use_tqdm=False)[0].outputs[0]
    assert alone.token_ids == outputs[len(CONSTRAINTS)].token_ids


@pytest.mark.parametrize("name", ["plain", "asynchronous", "drafts", "thoughts", "thoughts, drafts"])
def test_texts_are_whole_within_max_tokens(model, monkeypatch, name):
    llm = engine(model, monkeypatch, name)
    constraint = {"regex": r"[ab]{1,90}(cd){2}"}
    thought = 14 if "thoughts" in name else 0
    asked = [params(constraint, max_tokens=thought + n) for n in (5, 6, 9, 30)]
    for out, asking in zip(llm.generate([f"P{i} " for i in range(4)], asked, use_tqdm=False), asked):
        assert len(out.outputs[0].token_ids) <= asking.max_tokens
        assert read_specification(constraint).matches(after_thought(out.outputs[0], model[1]))


def test_the_context_is_a_limit_too(model, monkeypatch):
    llm = engine(model, monkeypatch)
    out = llm.generate("x" * 240, params({"regex": "[ab]+c"}, max_tokens=200), use_tqdm=False)[0].outputs[0]
    assert read_specification({"regex": "[ab]+c"}).matches(out.text)


def test_drafts_are_used(model, monkeypatch):
    llm = engine(model, monkeypatch, "drafts")
    letters = model[1].encode("abababababababab")
    monkeypatch.setattr(RandomModel, "drafts", lambda tokens: [letters[(len(tokens) + i) % 2] for i in range(3)])
    before = RandomModel.steps
    wanted = "".join("ab"[(2 + i) % 2] for i in range(20))
    out = llm.generate("x.", params({"choices": [wanted]}), use_tqdm=False)[0].outputs[0]
    assert out.text == wanted and RandomModel.steps - before < len(out.token_ids) // 2


def test_several_answers(model, monkeypatch):
    llm = engine(model, monkeypatch)
    out = llm.generate("x", params(CONSTRAINTS[1], n=3, temperature=1.0, seed=1), use_tqdm=False)[0].outputs
    assert len(out) == 3 and all(read_specification(CONSTRAINTS[1]).matches(o.text) for o in out)


@pytest.mark.parametrize(
    "wrong, options, reason",
    [
        ({"chioces": ["a"]}, {}, "a specification has one of"),
        ({"regex": "("}, {}, "regex|group"),
        ({"lark": 'start: "a" X\n%declare X\n'}, {}, "X"),
        ({"choices": ["a"]}, {"min_tokens": 2}, "min_tokens and a constraint"),
        ({"choices": ["a"]}, {"ignore_eos": True}, "ignore_eos and a constraint"),
        ({"choices": ["a"]}, {"bad_words": ["a"]}, "bad_words and a constraint"),
        ({"choices": ["a"]}, {"structured_outputs": StructuredOutputsParams(regex="a")}, "structured_outputs and a"),
    ],
)
def test_wrong_requests_are_refused_with_the_reason_before_the_engine_sees_them(
    model, monkeypatch, wrong, options, reason
):
    llm = engine(model, monkeypatch)
    with pytest.raises(VLLMValidationError, match=reason):
        llm.generate("x", params(wrong, **options), use_tqdm=False)


def test_what_only_the_engine_can_know_ends_that_request_alone(model, monkeypatch, caplog):
    llm = engine(model, monkeypatch)
    asked = [params({"choices": ["look at this"]}, max_tokens=2), params(CONSTRAINTS[0])]
    first, second = (out.outputs[0] for out in llm.generate(["x", "y"], asked, use_tqdm=False))
    assert first.finish_reason == "error" and first.text == "" and second.text in CONSTRAINTS[0]["choices"]
    assert "budget of 2 tokens is too small" in caplog.text


def test_a_thought_without_a_parser_is_refused_and_with_one_it_is_free(model, monkeypatch, caplog):
    llm = engine(model, monkeypatch)
    asked = params(CONSTRAINTS[0])
    inside, after = (out.outputs[0] for out in llm.generate(["x<think>", "<think>x</think>"], asked, use_tqdm=False))
    assert inside.finish_reason == "error" and "--reasoning-parser" in caplog.text
    assert after.text in CONSTRAINTS[0]["choices"]


def test_a_budget_for_a_thought_that_is_constrained_is_refused():
    def backend(**manager):
        return vllm_backend.VllmBackend(SimpleNamespace(tokenizer=None, **manager))

    request = SimpleNamespace(sampling_params=SimpleNamespace(thinking_token_budget=5))
    assert backend(reasoner_cls=object, enable_in_reasoning=False)._thinks(request)
    for parser, inside in ((None, False), (object, True)):
        with pytest.raises(ConstrainedError, match="would overrule"):
            backend(reasoner_cls=parser, enable_in_reasoning=inside)._thinks(request)


def test_where_the_plugin_has_not_run_constraints_are_refused(model, monkeypatch):
    llm = engine(model, monkeypatch)
    monkeypatch.setattr(vllm_processor, "MISSING", ["VLLM_PLUGINS"])
    with pytest.raises(VLLMValidationError, match="constraints are not served here: VLLM_PLUGINS"):
        llm.generate("x", params(CONSTRAINTS[0]), use_tqdm=False)
    assert llm.generate("x", params(max_tokens=3), use_tqdm=False)[0].outputs[0].token_ids


def test_beam_search_over_http_is_refused(model):
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest

    vllm_backend.refuse_beams()
    chat = ChatCompletionRequest(messages=[], vllm_xargs={"constrained": '{"choices": ["a"]}'}, use_beam_search=True)
    text = CompletionRequest(prompt="x", vllm_xargs={"constrained": '{"choices": ["a"]}'}, use_beam_search=True)
    for request in (chat, text):
        with pytest.raises(VLLMValidationError, match="beam search takes no constraint"):
            request.to_beam_search_params(5, {})
    assert CompletionRequest(prompt="x", use_beam_search=True).to_beam_search_params(5, {}).max_tokens == 5


@pytest.mark.parametrize("enforce", ["structured_outputs", "json_schema"])
def test_what_remote_model_sends_to_its_server_is_obeyed(model, monkeypatch, enforce):
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    llm = engine(model, monkeypatch)
    listed = Grammar.from_choices(["go to desk 1", "look"])
    search = Grammar.from_lark('start: "Search[" /[a-z]{1,20}/ "]"\n')
    for grammar, texts in ((listed, ["go to desk 1", "look"]), (search, None)):
        sent = ENFORCE[enforce](grammar, texts)
        if sent is None:
            continue
        sampling = ChatCompletionRequest(messages=[], **sent).to_sampling_params(60, {})
        text = llm.generate("x", sampling, use_tqdm=False)[0].outputs[0].text
        assert grammar.matches(json.loads(text)["action"] if enforce == "json_schema" else text)


def test_both_samplers_take_the_plugin_named_or_not(model, monkeypatch):
    from vllm.v1.sample import logits_processor as v1
    from vllm.v1.worker.gpu.sample.logits_processor import loader as v2

    name = f"{vllm_processor.__name__}:VllmLogitsProcessor"
    for classes in (v1._load_logitsprocs_by_fqcns([name]), v2._load_v2_logitsprocs_by_fqcns([name])):
        assert classes == [vllm_processor.VllmLogitsProcessor]
    processor = classes[0](None, None)
    logits = object()
    assert processor.apply(logits) is logits and not processor.add_request(0, params(CONSTRAINTS[0]))
    monkeypatch.setattr(vllm_processor, "MISSING", ["VLLM_PLUGINS"])
    with pytest.raises(ConstrainedError, match="not served here"):
        processor.add_request(0, params(CONSTRAINTS[0]))


def test_knowledge_goes_on_along_its_path(model, monkeypatch):
    llm, knowledge = engine(model, monkeypatch), ActionKnowledge.from_lark("hotpotqa")
    for _ in range(2):
        constraint = {"knowledge": "hotpotqa", "path": list(knowledge.path)}
        action = llm.generate("Question: ", params(constraint), use_tqdm=False)[0].outputs[0].text
        assert knowledge.judge(action)
        knowledge = knowledge.after(action)
        if knowledge.may_end:
            break
