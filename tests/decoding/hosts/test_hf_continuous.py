"""transformers' continuous batching, really run: its manager, scheduler and paged cache, on the CPU."""

from contextlib import contextmanager

import pytest
import torch
from transformers import GenerationConfig
from transformers.generation import configuration_utils

if not hasattr(configuration_utils, "ContinuousBatchingConfig"):
    pytest.skip("needs transformers 5.23", allow_module_level=True)

from constrained import ConstrainedError, Grammar, compile_grammar
from constrained.decoding.hosts.hf_continuous import Constraint, ContinuousConstraintProcessor, install
from constrained.decoding.hosts.hf_processor import ConstrainedLogitsProcessor
from tests.decoding.hosts.texts import GRAMMARS, text_of
from tests.decoding.tiny import tiny

LOADED = tiny(padding=13)
MODEL, TOKENIZER, VOCABULARY = LOADED.model, LOADED.tokenizer, LOADED.vocabulary
COMPILED = {name: compile_grammar(grammar, VOCABULARY) for name, grammar in GRAMMARS.items()}


@contextmanager
def running(processor, batching=None, **generation):
    """A manager with the processor, started."""
    options = {"num_blocks": 32, "max_batch_tokens": 64, "use_async_batching": False, **(batching or {})}
    manager = MODEL.init_continuous_batching(
        GenerationConfig(eos_token_id=1, **{"do_sample": False, **generation}),
        configuration_utils.ContinuousBatchingConfig(**options),
    )
    install(manager, processor)
    manager.start()
    try:
        yield manager
    finally:
        manager.stop(block=True, timeout=600)


def results(manager, count):
    found = {}
    while len(found) < count:
        result = manager.get_result(timeout=600)
        assert result is not None and result.error is None, result
        if result.is_finished():
            found[result.request_id] = result.generated_tokens
    return found


def test_each_request_has_its_own_grammar_and_writes_what_generate_writes():
    names = [name for name in GRAMMARS for _ in range(3)]
    prompts = [f"Prompt number {i}. " + "x" * i for i in range(len(names))]
    with running(ContinuousConstraintProcessor(VOCABULARY), {"max_requests_per_batch": 5}) as manager:
        ids = [
            manager.add_request(
                TOKENIZER.encode(prompt), max_new_tokens=40, constraint=Constraint(COMPILED[name], max_new_tokens=40)
            )
            for name, prompt in zip(names, prompts)
        ]
        found = results(manager, len(ids))
    for name, prompt, request in zip(names, prompts, ids):
        assert GRAMMARS[name].matches(text_of(VOCABULARY, found[request]))
        batch = TOKENIZER([prompt], return_tensors="pt")
        alone = MODEL.generate(
            **batch,
            max_new_tokens=40,
            do_sample=False,
            pad_token_id=0,
            logits_processor=[ConstrainedLogitsProcessor(COMPILED[name], max_new_tokens=40)],
        )
        assert found[request] == alone[0, batch["input_ids"].shape[1] :].tolist()


def test_requests_without_a_constraint_are_left_alone():
    plain = [TOKENIZER.encode("x"), TOKENIZER.encode("y")]
    batching = configuration_utils.ContinuousBatchingConfig(
        num_blocks=32, max_batch_tokens=64, use_async_batching=False
    )
    generation = GenerationConfig(eos_token_id=1, do_sample=False, max_new_tokens=12)
    free = MODEL.generate_batch(plain, generation, batching)
    with running(ContinuousConstraintProcessor(VOCABULARY)) as manager:
        first = manager.add_request(plain[0], max_new_tokens=12)
        held = manager.add_request(plain[0], max_new_tokens=12, constraint=Constraint(COMPILED["choices"]))
        second = manager.add_request(plain[1], max_new_tokens=12)
        found = results(manager, 3)
    assert [found[first], found[second]] == [free[i].generated_tokens for i in ("req_0", "req_1")]
    assert GRAMMARS["choices"].matches(text_of(VOCABULARY, found[held]))


def test_sampled_with_warpers_of_their_own_and_several_answers_each():
    """The mask comes first, so top-k finds its tokens among the allowed; forked requests go their own ways."""
    processor = ContinuousConstraintProcessor(VOCABULARY, Constraint(COMPILED["step"]))
    options = {"do_sample": True, "temperature": 1.5, "top_k": 3, "num_return_sequences": 3}
    with running(processor, {"per_request_processors": True}, **options) as manager:
        for prompt in ("A room. ", "Another. "):
            manager.add_request(TOKENIZER.encode(prompt), max_new_tokens=40, temperature=2.5, top_k=2)
        found = results(manager, 6)
    texts = [text_of(VOCABULARY, ids) for ids in found.values()]
    assert all(GRAMMARS["step"].matches(text) for text in texts)
    assert len(set(texts)) > 3


def test_texts_are_whole_within_each_requests_own_limit():
    grammar = Grammar.from_regex(r"[ab]{1,30}(cd){2}")
    processor = ContinuousConstraintProcessor(VOCABULARY, Constraint(compile_grammar(grammar, VOCABULARY)))
    with running(processor, do_sample=True, temperature=3.0) as manager:
        limits = {manager.add_request(TOKENIZER.encode("x"), max_new_tokens=n): n for n in (5, 6, 9, 20)}
        found = results(manager, len(limits))
    for request, limit in limits.items():
        assert len(found[request]) <= limit
        assert grammar.matches(text_of(VOCABULARY, found[request]))


def test_requests_that_make_room_for_others_go_on_where_they_were():
    """A cache too small for all: some are thrown out, and come back with their tokens as part of the prompt."""
    grammar = Grammar.from_regex(r"[ab]{30,60}")
    processor = ContinuousConstraintProcessor(VOCABULARY, Constraint(compile_grammar(grammar, VOCABULARY)))
    batching = {"num_blocks": 6, "page_size": 8, "max_batch_tokens": 16, "allow_block_sharing": False}
    with running(processor, batching, do_sample=True) as manager:
        for _ in range(4):
            manager.add_request(TOKENIZER.encode("go to"), max_new_tokens=40)
        found = results(manager, 4)
    for ids in found.values():
        assert grammar.matches(text_of(VOCABULARY, ids)) and len(ids) <= 40


def test_a_request_that_can_not_be_served_is_an_error_where_it_is_made():
    with pytest.raises(ConstrainedError, match="budget of 2 tokens is too small"):
        Constraint(COMPILED["one text"], max_new_tokens=2)
    with pytest.raises(ConstrainedError, match="begins with"):
        Constraint(COMPILED["one text"], begun="Nothing")
    text = "go to d"
    with running(ContinuousConstraintProcessor(VOCABULARY)) as manager:
        manager.add_request(
            TOKENIZER.encode(text), max_new_tokens=30, constraint=Constraint(COMPILED["choices"], begun=text)
        )
        (ids,) = results(manager, 1).values()
    assert GRAMMARS["choices"].matches(text + text_of(VOCABULARY, ids))


def test_a_token_that_was_not_allowed_ends_the_requests_with_the_reason():
    processor = ContinuousConstraintProcessor(VOCABULARY, Constraint(COMPILED["choices"]))
    with running(processor) as manager:
        manager.logit_processor.logits_processor.append(Meddler())
        manager.add_request(TOKENIZER.encode("x"), max_new_tokens=30)
        result = manager.get_result(timeout=600)
    assert result.error and "request req_0, token 1: token 65" in result.error


class Meddler:
    """A processor of somebody else's that wants its own token, whatever it may be."""

    def __call__(self, input_ids, scores):
        return torch.nn.functional.one_hot(torch.full((len(scores),), 65), scores.shape[1]).float()


def test_asynchronous_batching_is_refused_and_so_is_a_manager_that_has_started():
    config = configuration_utils.ContinuousBatchingConfig(num_blocks=32, max_batch_tokens=64, use_async_batching=False)
    manager = MODEL.init_continuous_batching(GenerationConfig(eos_token_id=1), config)
    manager.continuous_batching_config.use_async_batching = True
    with pytest.raises(ConstrainedError, match="use_async_batching=False"):
        install(manager, ContinuousConstraintProcessor(VOCABULARY))
    manager.continuous_batching_config.use_async_batching = False
    manager.warmup()
    with pytest.raises(ConstrainedError, match="right after init_continuous_batching"):
        install(manager, ContinuousConstraintProcessor(VOCABULARY))


def test_a_grammar_that_is_not_compiled_is_refused():
    with pytest.raises(ConstrainedError, match="a compiled grammar is wanted here, not Grammar"):
        Constraint(Grammar.from_choices(["a"]))
