"""Texts from models: always in the language, always whole, and what each cost."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from constrained import ConstrainedError, Grammar, Vocabulary, compile_grammar
from constrained.decoding import PrefixCache, generate
from constrained.errors import ModelError, VocabularyError
from constrained.models import load
from tests.chance import times
from tests.data import shared
from tests.decoding.grammars import GRAMMARS
from tests.decoding.requests import no_jump_forward
from tests.decoding.tiny import tiny, tiny_llama, tiny_tokenizer

TINY = [tiny(seed=seed, padding=padding) for seed, padding in ((0, 0), (1, 50))]


@pytest.fixture(scope="module")
def stories():
    return load(shared("models/stories260K"))


def check_whole(loaded, grammar, made, limit):
    assert grammar.matches(made.text)
    assert made.complete and made.completion_tokens <= limit
    vocabulary = loaded.vocabulary
    assert b"".join(vocabulary.tokens[i] for i in made.token_ids).decode() == made.text
    assert not set(made.token_ids) & vocabulary.special_set


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("temperature", [0.0, 1.3])
@pytest.mark.parametrize("loaded", TINY, ids=["width", "wide logits"])
def test_every_text_is_in_the_language_and_whole_at_any_budget(loaded, name, temperature):
    grammar = GRAMMARS[name]
    compiled = compile_grammar(grammar, loaded.vocabulary)
    generator = torch.Generator().manual_seed(1)
    least = next(n for n in itertools.count(1) if fits(compiled, n))
    for limit in (least, least + 1, least + 3, least + 10, 80):
        made = generate(
            loaded, "A room. ", compiled, max_new_tokens=limit, temperature=temperature, generator=generator
        )
        check_whole(loaded, grammar, made, limit)


def test_a_control_token_that_the_grammar_names_is_in_the_text():
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["[CALLS]"]})
    loaded = load((tiny_llama(len(tokenizer)), tokenizer))
    grammar = Grammar.from_lark('start: "[CALLS]" "x"')
    made = generate(loaded, "A room. ", grammar, max_new_tokens=2)
    assert made.text == "[CALLS]x" and made.token_ids[0] == tokenizer.convert_tokens_to_ids("[CALLS]")
    made = generate(loaded, "A room. ", grammar, max_new_tokens=20)
    assert made.text == "[CALLS]x" and made.complete


def fits(compiled, tokens) -> bool:
    try:
        compiled.matcher().set_budget(tokens)
    except VocabularyError:
        return False
    return True


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_real_model_writes_inside_the_grammar(stories, name):
    for limit in (60, 90):
        made = generate(stories, "Once upon a time there was a mug.\n", GRAMMARS[name], max_new_tokens=limit)
        check_whole(stories, GRAMMARS[name], made, limit)


def test_a_real_model_tells_its_story(stories):
    """Unmasked and under a mask that admits all it would say, the greedy text is the same, and nothing is pruned."""
    free = generate(stories, "Once upon a time", max_new_tokens=60)
    assert free.text.startswith(", there was a little girl named Lily.")
    assert not free.complete and free.completion_tokens == free.forward_passes == 60
    within = generate(stories, "Once upon a time", Grammar.from_regex(r"(.|\n){0,2000}"), max_new_tokens=60)
    assert within.text == free.text and within.complete
    assert within.pruned_mass.max < 1e-2


@settings(max_examples=25)
@given(st.lists(st.text("abc é", min_size=1, max_size=8), min_size=1, max_size=6, unique=True), st.integers(0, 1))
def test_choices_of_any_kind(choices, which):
    loaded, grammar = TINY[which], Grammar.from_choices(choices)
    made = generate(loaded, "x", grammar, max_new_tokens=20, temperature=1.0)
    assert made.text in choices


def test_the_cache_changes_nothing_but_the_work():
    loaded, cache = TINY[0], PrefixCache()
    prompts = ["You are in a room. You see a desk 1.", "You are in a room. You see a mug.", "Else.", "Else."]
    for prompt in prompts:
        fresh = generate(loaded, prompt, GRAMMARS["step"], max_new_tokens=50)
        reused = generate(loaded, prompt, GRAMMARS["step"], max_new_tokens=50, cache=cache)
        assert reused.token_ids == fresh.token_ids
        assert reused.pruned_mass == pytest.approx(fresh.pruned_mass, abs=1e-4)
        assert reused.forward_passes == fresh.forward_passes
    last = cache.tokens_run
    generate(loaded, "Else.", Grammar.from_choices(["a", "b"]), max_new_tokens=3, cache=cache)
    assert cache.tokens_run - last <= 2  # of the prompt, only its last token runs again


def test_forced_runs_save_forward_passes_and_leave_the_language_alone():
    loaded = TINY[0]
    for grammar in GRAMMARS.values():
        forced = generate(loaded, "A room. ", grammar, max_new_tokens=80)
        with no_jump_forward():
            asked = generate(loaded, "A room. ", grammar, max_new_tokens=80)
        assert grammar.matches(forced.text) and grammar.matches(asked.text)
        assert forced.forward_passes + sum(token.forced for token in forced.tokens) >= forced.completion_tokens
    once = Grammar.from_regex("ActionPath 3: Start->(look|examine)\nAction 3: Finish")
    forced = generate(loaded, "A room. ", once)
    with no_jump_forward():
        asked = generate(loaded, "A room. ", once)
    assert forced.forward_passes == 1 and asked.forward_passes > 3


def test_a_text_without_choice_asks_the_model_nothing():
    made = generate(TINY[0], "x", GRAMMARS["one text"])
    assert made.text == "Start->go to desk 1->take mug 1 from desk 1"
    assert made.forward_passes == 0
    assert all(token.forced and token.probability == 1 and token.pruned_mass == 0 for token in made.tokens)


def test_records_say_what_was_forced_and_what_was_pruned():
    loaded = TINY[0]
    grammar = Grammar.from_choices(["ab", "cd"])
    made = generate(loaded, "x", grammar, max_new_tokens=4)
    ids = loaded.tokenizer.encode("x")
    with torch.inference_mode():
        probabilities = torch.softmax(loaded.model(input_ids=torch.tensor([ids])).logits[0, -1].double(), 0)
    allowed = compile_grammar(grammar, loaded.vocabulary).matcher().allowed_token_ids()
    inside = float(probabilities[allowed].sum())
    first = made.tokens[0]
    assert first.pruned_mass == pytest.approx(1 - inside, abs=1e-5)
    assert first.probability == pytest.approx(float(probabilities[first.id]) / inside, rel=1e-3)
    assert not first.forced and made.tokens[1].forced
    assert made.pruned_mass == pytest.approx((first.pruned_mass,) * 3)
    assert made.forward_passes == 1 and made.prompt_tokens == len(ids)


def test_same_seed_same_text_and_another_seed_another():
    texts = [
        generate(
            TINY[0],
            "x",
            GRAMMARS["free"],
            max_new_tokens=20,
            temperature=1.0,
            generator=torch.Generator().manual_seed(seed),
        ).text
        for seed in (3, 3, 4)
    ]
    assert texts[0] == texts[1] != texts[2]


def letters() -> tuple:
    """A model over the letters a, b, c: small enough to know the probability of every text."""
    tokenizer = tiny_tokenizer(258)
    return load((tiny_llama(len(tokenizer), seed=7), tokenizer)), ["ab", "abc", "ba", "c", "cab"]


def test_texts_come_as_often_as_the_renormalised_model_says():
    loaded, choices = letters()
    compiled = compile_grammar(Grammar.from_choices(choices), loaded.vocabulary)
    chances = {text: text_probability(loaded, compiled, text) for text in choices}
    assert sum(chances.values()) == pytest.approx(1)
    generator, draws = torch.Generator().manual_seed(0), times(600, 6000)
    counts = dict.fromkeys(choices, 0)
    for _ in range(draws):
        counts[generate(loaded, "x", compiled, max_new_tokens=8, temperature=1.0, generator=generator).text] += 1
    for text, chance in chances.items():
        assert abs(counts[text] / draws - chance) <= 4.5 * math.sqrt(chance * (1 - chance) / draws)


def text_probability(loaded, compiled, text) -> float:
    """Product over the tokens of their probability among the allowed ones, the end of text included."""
    matcher, ids, product = compiled.matcher(), loaded.tokenizer.encode("x"), 1.0
    for token in [*loaded.tokenizer.encode(text), *loaded.eos_token_ids]:
        with torch.inference_mode():
            logits = loaded.model(input_ids=torch.tensor([ids])).logits[0, -1].double()
        allowed = matcher.allowed_token_ids()
        product *= float(torch.softmax(logits[allowed], 0)[np.flatnonzero(allowed == token)[0]])
        assert matcher.advance(token)
        ids = [*ids, token]
    return product


class FixedLogits(PrefixCache):
    """A model that wants the same at every step."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def next_logits(self, model, tokens, columns=None):
        self.forward_passes += 1
        return self.logits


def test_any_of_several_end_tokens_ends_a_text_even_one_beyond_the_tokenizer():
    tokenizer = tiny_tokenizer()
    width = len(tokenizer) + 4
    loaded = load((tiny_llama(width, eos=[1, width - 2]), tokenizer))
    assert loaded.eos_token_ids == (1, width - 2)
    for end in loaded.eos_token_ids:
        logits = torch.zeros(width)
        logits[end], logits[tokenizer.encode("a")[0]] = 9, 5
        for grammar in (Grammar.from_regex("[ab]+"), None):
            made = generate(loaded, "x", grammar, max_new_tokens=30, cache=FixedLogits(logits))
            assert made.text == ("a" if grammar else "") and made.complete
            assert made.forward_passes == len(made.tokens) + 1


def test_without_a_grammar_padding_columns_are_never_chosen():
    tokenizer = tiny_tokenizer()
    model = tiny_llama(len(tokenizer) + 64)
    with torch.no_grad():
        model.lm_head.weight[len(tokenizer) :] *= 100
    made = generate(load((model, tokenizer)), "x", max_new_tokens=30)
    assert max(made.token_ids) < len(tokenizer)


def test_a_stop_string_ends_free_text_before_it(stories):
    made = generate(stories, "Once upon a time", max_new_tokens=60, stop="girl named L")
    assert made.text == ", there was a little " and made.complete
    never = generate(stories, "Once upon a time", max_new_tokens=10, stop="time")  # that the prompt holds it is no end
    assert never.completion_tokens == 10 and not never.complete


def test_a_stop_string_is_for_text_without_a_grammar():
    with pytest.raises(ConstrainedError, match="stop"):
        generate(TINY[0], "x", GRAMMARS["regex"], stop="a")


@pytest.mark.parametrize("name, begun", [("step", "Thought: go"), ("choices", "go to d"), ("regex", "abc")])
def test_a_text_that_the_prompt_has_begun_is_finished(name, begun):
    for limit in (20, 80):
        made = generate(TINY[0], "A room. " + begun, GRAMMARS[name], max_new_tokens=limit, begun=begun)
        assert GRAMMARS[name].matches(begun + made.text) and made.completion_tokens <= limit
    with pytest.raises(ConstrainedError, match="begins with"):
        generate(TINY[0], "A room. ", GRAMMARS[name], begun="Nothing")


def test_ids_as_prompt_and_an_empty_prompt():
    loaded = TINY[0]
    as_text = generate(loaded, "go to ", GRAMMARS["choices"])
    as_ids = generate(loaded, loaded.tokenizer.encode("go to "), GRAMMARS["choices"])
    assert as_ids == as_text
    empty = generate(loaded, "", GRAMMARS["choices"])
    assert empty.prompt_tokens == 1 and GRAMMARS["choices"].matches(empty.text)


def test_a_tokenizer_that_closes_its_texts():
    loaded = tiny()
    backend = loaded.tokenizer.backend_tokenizer
    from tokenizers.processors import TemplateProcessing

    backend.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    closing = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    made = generate(load((loaded.model, closing)), "ab", GRAMMARS["choices"])
    assert made.prompt_tokens == len(closing.encode("ab")) - 1


def test_a_prompt_beyond_the_context_is_an_error_and_a_near_one_shortens_the_text():
    loaded = tiny(context=32)
    with pytest.raises(ModelError, match=r"prompt of 40 tokens.*\(32 tokens\)"):
        generate(loaded, [5] * 40, GRAMMARS["choices"])
    made = generate(loaded, [5] * 20, GRAMMARS["free"], max_new_tokens=100)
    assert made.completion_tokens <= 12 and made.complete


def test_a_budget_below_the_shortest_text_is_an_error():
    with pytest.raises(ConstrainedError, match="budget of 2 tokens is too small"):
        generate(TINY[0], "x", GRAMMARS["one text"], max_new_tokens=2)
    with pytest.raises(ConstrainedError, match="max_new_tokens is 0"):
        generate(TINY[0], "x", GRAMMARS["one text"], max_new_tokens=0)


def test_what_belongs_to_another_model_is_an_error():
    other = Vocabulary([b"a", b"b", b""], eos_token_ids=[2])
    with pytest.raises(ModelError, match="another vocabulary"):
        generate(TINY[0], "x", compile_grammar(Grammar.from_choices(["a"]), other))
    with pytest.raises(ModelError, match="knows only 0 to"):
        generate(TINY[0], [10**6], GRAMMARS["choices"])


def test_threads_are_as_before():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        generate(TINY[0], "x", GRAMMARS["choices"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
