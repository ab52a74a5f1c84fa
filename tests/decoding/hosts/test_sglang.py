"""Constraints in SGLang's own grammar manager, mask and draft code, on the CPU: all of SGLang but its model.

`make hosts` fetches SGLang's wheel and runs these tests; elsewhere they are skipped.
"""

import json
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

if find_spec("sglang") is None:
    pytest.skip("needs SGLang's wheel: make hosts", allow_module_level=True)

from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.managers.schedule_batch import FINISH_ABORT, Req
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.runtime_context import get_context, get_parallel
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative.spec_utils import generate_token_bitmask

from constrained import Grammar
from constrained.decoding.hosts import sglang_backend
from constrained.decoding.hosts.specification import read_specification
from constrained.decoding.remote import ENFORCE
from tests.decoding.tiny import tiny

LOADED = tiny(padding=13)
LOADED.tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
TOKENIZER, WIDTH, EOS = LOADED.tokenizer, LOADED.logits_width, 1
TOKENIZER.additional_stop_token_ids = None  # as SGLang sets it on every tokenizer
CLOSE = TOKENIZER.convert_tokens_to_ids("</think>")
REGEX = {"regex": "(a|b)+c{1,3}é?"}
SCHEMA = {
    "type": "object",
    "properties": {"b": {"enum": [1, 2]}, "a": {"type": "boolean"}},
    "additionalProperties": False,
}
REQUESTS = [
    ({"ebnf": json.dumps({"choices": ["look", "lark", "é 中"]})}, {"choices": ["look", "lark", "é 中"]}),
    ({"ebnf": 'start: "a" | "b" start\n'}, {"lark": 'start: "a" | "b" start\n'}),
    ({"regex": REGEX["regex"]}, REGEX),
    ({"json_schema": json.dumps(SCHEMA)}, {"json_schema": SCHEMA}),
    (
        {"ebnf": json.dumps({"knowledge": "household", "view": {"RECEPTACLE": ["desk 1", "desk 10"]}})},
        {"knowledge": "household", "view": {"RECEPTACLE": ["desk 1", "desk 10"]}},
    ),
]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    sglang_backend.register()
    sglang_backend.register()  # each process does it once, some twice
    HookRegistry.apply_hooks()


@pytest.fixture(autouse=True)
def pipeline():
    with get_parallel().override(pp_rank=0, pp_size=1, tp_rank=0):
        yield


@pytest.fixture(params=[None, "deepseek-r1"], ids=["plain", "thoughts"])
def manager(request):
    with get_context().override_server_args(grammar_backend="constrained", reasoning_parser=request.param):
        yield make_manager()


def make_manager():
    group = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
    model = SimpleNamespace(vocab_size=WIDTH, hf_eos_token_id={EOS}, think_end_ids=[CLOSE])
    return GrammarManager(
        SimpleNamespace(
            server_args=None, tokenizer=TOKENIZER, model_config=model, dp_tp_cpu_group=None, dp_tp_group=group,
            pp_group=None,
        )
    )  # fmt: skip


def ask(manager, max_new_tokens=60, thinks=False, **constraint):
    """A request that has its grammar."""
    params = SamplingParams(max_new_tokens=max_new_tokens, **constraint)
    params.normalize(None)
    req = Req("1", "x", TOKENIZER.encode("x"), params, eos_token_ids={EOS}, vocab_size=WIDTH)
    req.tokenizer, req.require_reasoning = TOKENIZER, thinks
    if manager.process_req_with_grammar(req):
        while manager.has_waiting_grammars():
            manager.get_ready_grammar_requests()
    return req


def mask_of(reqs):
    """The mask as SGLang makes it for a batch, and the logits it leaves of zeros."""
    info = SimpleNamespace(
        grammars=[req.grammar for req in reqs], temperatures=[1.0] * len(reqs), vocab_size=WIDTH, device="cpu"
    )
    SamplingBatchInfo.update_regex_vocab_mask(info)
    logits = torch.zeros(len(reqs), WIDTH)
    if info.grammar_mask is not None:
        info.grammar_mask.apply(logits)
    return logits


def write(reqs, seed=0):
    """Random tokens among the allowed, as SGLang's scheduler reads them, until all requests are finished."""
    rng = np.random.default_rng(seed)
    while waiting := [req for req in reqs if not req.finished()]:
        for req, row in zip(waiting, mask_of(waiting)):
            allowed = np.flatnonzero(row.isfinite().numpy())
            token = int(rng.choice(allowed))
            if req.require_reasoning and CLOSE not in req.output_ids:
                token = CLOSE if len(req.output_ids) == 5 else 70
            req.output_ids.append(token)
            req.grammar.accept_token(token)
            req.update_finish_state()
            req.grammar.finished = req.finished()


def text_of(req):
    ids = list(req.output_ids)
    ids = ids[ids.index(CLOSE) + 1 :] if req.require_reasoning else ids
    return TOKENIZER.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("seed", range(3))
def test_every_text_is_whole_within_its_limit(manager, seed):
    thinks = manager.server_args is None and type(manager.grammar_backend).__name__ == "ReasonerGrammarBackend"
    for limit in (45, 60):
        reqs = [ask(manager, limit, thinks, **constraint) for constraint, _ in REQUESTS for _ in range(2)]
        assert not any(req.finished() for req in reqs), [req.finished_reason for req in reqs]
        write(reqs, seed)
        for req, (_, specification) in zip(reqs, [pair for pair in REQUESTS for _ in range(2)]):
            assert len(req.output_ids) <= limit + 1 and read_specification(specification).matches(text_of(req))


def test_a_thought_is_free_and_the_text_after_it_is_not():
    with get_context().override_server_args(grammar_backend="constrained", reasoning_parser="deepseek-r1"):
        manager = make_manager()
        req, other = ask(manager, thinks=True, **REQUESTS[0][0]), ask(manager, thinks=False, **REQUESTS[0][0])
        free, held = mask_of([req, other])
        assert bool(free.isfinite().all()) and not bool(held.isfinite().all())
        req.grammar.accept_token(CLOSE)
        assert torch.equal(mask_of([req])[0], held)


@pytest.mark.parametrize("wrong, reason", [
    ({"ebnf": '{"chioces": []}'}, "a specification has one of"),
    ({"ebnf": "{"}, "not JSON"),
    ({"regex": "("}, "missing"),
    ({"json_schema": '{"type": "objekt"}'}, "objekt"),
    ({"structural_tag": "{}"}, "no structural tags"),
])  # fmt: skip
def test_wrong_constraints_are_refused_with_the_reason(manager, wrong, reason):
    for _ in range(2):  # the second time it is known
        req = ask(manager, **wrong)
        assert isinstance(req.to_finish, FINISH_ABORT) and reason in req.to_finish.message


def test_a_limit_below_the_shortest_text_is_refused():
    with get_context().override_server_args(grammar_backend="constrained"):
        req = ask(make_manager(), 2, ebnf='{"choices": ["look at this"]}')
        assert isinstance(req.to_finish, FINISH_ABORT) and "budget of 2 tokens" in req.to_finish.message


def test_a_token_that_is_not_allowed_aborts_the_request():
    with get_context().override_server_args(grammar_backend="constrained"):
        req = ask(make_manager(), **REQUESTS[0][0])
        with pytest.raises(ValueError, match="token 65 is not allowed"):
            req.grammar.accept_token(65)


def test_trees_of_drafts_are_masked_and_leave_no_trace():
    """SGLang's own traversal: a chain a-b-x with a sibling c of b, against fresh matchers."""
    with get_context().override_server_args(grammar_backend="constrained"):
        req = ask(make_manager(), regex="a(b|c)c+")
        a, b, c, x = (TOKENIZER.encode(letter)[0] for letter in "abcx")
        tokens = torch.tensor([[5, a, b, x, c]])
        following, sibling = torch.tensor([[1, 2, 3, -1, -1]]), torch.tensor([[-1, -1, 4, -1, -1]])
        before = mask_of([req])
        mask, grammar = generate_token_bitmask([req], following, sibling, tokens, WIDTH)
        logits = torch.zeros(5, WIDTH)
        grammar.apply_vocab_mask(logits, mask)
        allowed = [set(row.isfinite().nonzero().flatten().tolist()) for row in logits]
        assert [allowed[0], allowed[1], allowed[2], allowed[4]] == [{a}, {b, c}, {c}, {c}]
        assert torch.equal(mask_of([req]), before) and req.grammar.read == 0


def test_the_fields_that_remote_model_sends_are_its_servers():
    from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest

    for name in ("ebnf", "regex"):
        sent = ENFORCE[name](Grammar.from_choices(["look", "stay"]), ["look", "stay"])
        request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], **sent)
        assert request.to_sampling_params(None, {}, None)[name] == sent[name]
