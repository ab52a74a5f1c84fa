"""The vLLM plugin inside stand-ins that keep to vLLM's documentation (vLLM itself can't be installed here)."""

import json

import numpy as np
import pytest
import torch

from constrained import ActionKnowledge
from constrained.decoding.hosts import vllm_requests
from constrained.decoding.hosts.specification import read_specification
from constrained.decoding.hosts.vllm_processor import VllmLogitsProcessor, VllmV1LogitsProcessor, VllmV2LogitsProcessor
from tests.decoding.hosts.texts import CHOICES, text_of
from tests.decoding.hosts.vllm_requests import CACHE, EOS, LOADED, VOCABULARY, noise, requests
from tests.decoding.hosts.vllm_stand_in import EngineV1, EngineV2, Request, SamplingParams, config


def check_row(request, before, after):
    """A row's mask is its own matcher's, read anew; all else, and every row without a constraint, is untouched."""
    specification = vllm_requests.specification_of(request.params)
    if specification is None:
        assert torch.equal(before, after)
        return
    matcher = CACHE.matcher(specification, request.params.max_tokens)
    assert all(map(matcher.advance, request.output))
    allowed = matcher.allowed_token_ids()
    assert np.array_equal(torch.isfinite(after).nonzero().flatten().numpy(), allowed)
    assert torch.equal(before[allowed], after[allowed])


def check_texts(finished):
    for request in finished:
        assert request.finished
        specification = vllm_requests.specification_of(request.params)
        if specification is not None:
            fields = json.loads(specification) if isinstance(specification, str) else specification
            text = fields.get("begun", "") + text_of(VOCABULARY, request.output)
            assert read_specification(fields).matches(text)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["in turn", "asynchronous"])
@pytest.mark.parametrize("seed", range(3))
def test_v1_requests_stay_in_their_grammars_wherever_the_batch_moves_them(settings, seed, asynchronous):
    processor = VllmLogitsProcessor(settings, torch.device("cpu"), False)
    assert isinstance(processor, VllmV1LogitsProcessor)
    engine = EngineV1(processor, noise(seed), EOS, seats=6, seed=seed, asynchronous=asynchronous)
    batch = requests(40, seed)
    engine.run(batch, check_row)
    check_texts(batch)
    assert all(engine.updates.values()), engine.updates  # every operation has happened
    engine.step([])
    assert not processor._rows and not processor.needs_output_token_ids()


def test_v1_operations_are_read_in_the_documented_order(settings):
    """Removed, added, moved: an Add's index is meant before the moves, and may replace what stood there."""
    from tests.decoding.hosts.vllm_stand_in import BatchUpdate, MoveDirectionality

    def params(text):
        return SamplingParams(extra_args={"constrained": {"choices": [text]}})

    processor = VllmLogitsProcessor(settings, torch.device("cpu"), False)
    processor.update_state(BatchUpdate(4, [], [(i, params(t), [], []) for i, t in enumerate("abcd")], []))
    one_way, swap = MoveDirectionality.UNIDIRECTIONAL, MoveDirectionality.SWAP
    processor.update_state(
        BatchUpdate(3, [1], [(0, params("e"), [], []), (1, SamplingParams(), [], [])], [(3, 1, one_way), (0, 2, swap)])
    )
    logits = processor.apply(torch.zeros(3, LOADED.logits_width))
    allowed = [[VOCABULARY.tokens[i] for i in torch.isfinite(row).nonzero().flatten()] for row in logits]
    assert allowed == [[b"c"], [b"d"], [b"e"]]
    processor.update_state(BatchUpdate(3, [], [(1, SamplingParams(), [], [])], [(0, 1, one_way), (2, 0, swap)]))
    assert sorted(processor._rows) == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_v2_requests_stay_in_their_grammars_in_any_slot_and_order(settings, seed):
    engine = EngineV2(lambda states: VllmLogitsProcessor(settings, states), noise(seed), EOS, seats=5, seed=seed)
    assert isinstance(engine.processor, VllmV2LogitsProcessor)
    batch = requests(40, seed)
    engine.run(batch, check_row)
    check_texts(batch)
    assert engine.thrown_out


@pytest.mark.parametrize("seed", range(3))
def test_v2_drafts_are_masked_token_by_token(settings, seed):
    """Drafts of which some tokens are what the masked model takes, some are others, some are forbidden."""
    rng, model = np.random.default_rng(seed), noise(seed)

    def drafter(request):
        specification = vllm_requests.specification_of(request.params)
        matcher = CACHE.matcher(specification, request.params.max_tokens) if specification else None
        if matcher:
            assert all(map(matcher.advance, request.output))
        draft = []
        for _ in range(rng.integers(0, 4)):
            logits = model(request.prompt + request.output + draft)
            allowed = matcher.allowed_token_ids() if matcher else np.arange(len(logits))
            token = int(allowed[logits[allowed].argmax()]) if rng.random() < 0.8 else int(rng.integers(2, 250))
            draft.append(token)
            if matcher and not matcher.advance(token):
                break
        return draft

    def make(states):
        return VllmLogitsProcessor(settings, states)

    batch, alone = requests(30, seed), requests(30, seed)
    engine = EngineV2(make, model, EOS, seats=5, seed=seed, drafter=drafter)
    engine.run(batch, check_row)
    check_texts(batch)
    assert engine.accepted > 50 and engine.rejected > 10
    EngineV2(make, model, EOS, seats=5, seed=seed + 9).run(alone)
    assert [r.output for r in batch] == [r.output for r in alone]  # drafts change the work, not the texts


def test_a_real_model_under_both_interfaces_writes_what_generate_writes(settings):
    from constrained import compile_grammar
    from constrained.decoding.hosts.hf_processor import ConstrainedLogitsProcessor

    @torch.inference_mode()
    def model(tokens):
        return LOADED.model(input_ids=torch.tensor([tokens])).logits[0, -1].clone()

    def some():
        return [
            Request(
                LOADED.tokenizer.encode(prompt), SamplingParams(40, extra_args={"constrained": {"choices": CHOICES}})
            )
            for prompt in ("A room. ", "x", "go")
        ]

    first, second = some(), some()
    EngineV1(VllmLogitsProcessor(settings, device=torch.device("cpu"), is_pin_memory=False), model, EOS).run(first)
    EngineV2(lambda states: VllmLogitsProcessor(settings, req_states=states), model, EOS).run(second)
    compiled = compile_grammar(read_specification({"choices": CHOICES}), VOCABULARY)
    for one, other in zip(first, second):
        ids = LOADED.model.generate(
            torch.tensor([one.prompt]),
            max_new_tokens=40,
            do_sample=False,
            pad_token_id=0,
            logits_processor=[ConstrainedLogitsProcessor(compiled, max_new_tokens=40)],
        )
        assert one.output == other.output == ids[0, len(one.prompt) :].tolist()


@pytest.mark.parametrize("interface", ["v1", "v2"])
def test_a_request_that_can_not_be_served_ends_and_the_others_go_on(settings, interface, caplog):
    """An error in vLLM's worker would take the engine down."""
    small = SamplingParams(2, extra_args={"constrained": {"choices": ["go to desk 1"]}})
    wrong = SamplingParams(9, extra_args={"constrained": {"nonsense": 1}})
    meant = SamplingParams(30, extra_args={"constrained": {"choices": CHOICES}})
    batch = [Request([5, 6], params) for params in (small, meant, wrong, meant)]
    if interface == "v1":
        EngineV1(VllmLogitsProcessor(settings, torch.device("cpu"), False), noise(0), EOS).run(batch)
    else:
        EngineV2(lambda states: VllmLogitsProcessor(settings, states), noise(0), EOS).run(batch)
    assert batch[0].output == batch[2].output == [1]
    assert {text_of(VOCABULARY, request.output) for request in (batch[1], batch[3])} <= set(CHOICES)
    assert "budget of 2 tokens is too small" in caplog.text and "a specification has one of" in caplog.text


def test_a_token_that_was_not_allowed_ends_its_request_never_the_mask(settings, caplog):
    processor = VllmLogitsProcessor(settings, torch.device("cpu"), False)
    engine = EngineV1(processor, noise(0), EOS)
    batch = [Request([5, 6], SamplingParams(30, extra_args={"constrained": {"choices": ["look", "go"]}})) for _ in "ab"]
    engine.step(batch[:2])
    batch[0].output[-1] = 65  # some other part of the host took it
    while not all(request.finished for request in batch):
        engine.step([])
    assert batch[0].output == [65, 1] and text_of(VOCABULARY, batch[1].output) in ("look", "go")
    assert "token 1 of a request: token 65" in caplog.text


def test_placeholders_that_never_became_tokens_are_no_mask_either(settings, caplog):
    processor = VllmLogitsProcessor(settings, torch.device("cpu"), False)
    processor.needs_output_token_ids = lambda: False  # a vLLM that doesn't ask
    request = Request([5], SamplingParams(30, extra_args={"constrained": {"choices": CHOICES}}))
    engine = EngineV1(processor, noise(0), EOS, asynchronous=True)
    engine.step([request])
    engine.step([])
    assert request.output[-1] == 1 and "--no-async-scheduling" in caplog.text


def test_nothing_is_read_until_a_request_asks():
    broken = config("/nowhere", 10)
    engine = EngineV1(VllmLogitsProcessor(broken, torch.device("cpu"), True), noise(0), EOS)
    plain = requests(5, 0, [None])
    engine.run(plain, check_row)
    assert all(request.finished for request in plain)


def test_knowledge_gives_the_actions_that_may_come_next(settings):
    view = {"RECEPTACLE": ["desk 1", "drawer 1"], "OBJECT": {"desk 1": ["mug 1"]}}
    specification = {"knowledge": "household", "view": view, "path": ["go to desk 1"]}
    request = Request([5, 9], SamplingParams(60, extra_args={"constrained": json.dumps(specification)}))
    EngineV1(VllmLogitsProcessor(settings, torch.device("cpu"), False), noise(4), EOS).run([request])
    bound = ActionKnowledge.from_lark("household").bind_view(view).after("go to desk 1")
    assert bound.judge(text_of(VOCABULARY, request.output))
