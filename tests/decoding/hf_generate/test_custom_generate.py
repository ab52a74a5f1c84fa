"""`model.generate`, as users know it, inside a grammar."""

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache, LogitsProcessorList, MaxTimeCriteria, StaticCache, StoppingCriteria, TextStreamer

from constrained import ConstrainedError, Grammar, Vocabulary, compile_grammar
from constrained.decoding import custom_generate, generate
from constrained.errors import ModelError, VocabularyError
from constrained.models import load
from tests.data import shared
from tests.decoding.grammars import GRAMMARS
from tests.decoding.hf_generate.oracle import MaskProcessor, padding_tokenizer
from tests.decoding.tiny import tiny_llama

TOKENIZER = padding_tokenizer()
MODEL = tiny_llama(len(TOKENIZER) + 20, seed=0)
VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER, size=MODEL.config.vocab_size)
COMPILED = {name: compile_grammar(grammar, VOCABULARY) for name, grammar in GRAMMARS.items()}
PROMPTS = {
    "step": "A room. ", "choices": "x", "regex": "You are in the middle of a room. Looking quickly around you. ",
    "one text": "go", "free": "é",
}  # fmt: skip


def inputs(*prompts):
    return TOKENIZER(list(prompts), return_tensors="pt", padding=True)


def written(grammar, *prompts, model=MODEL, **options):
    """What is written behind each prompt, padding and all: lists of ids."""
    given = inputs(*prompts)
    options = {"max_new_tokens": 60, "tokenizer": TOKENIZER, "do_sample": False} | options
    out = model.generate(**given, custom_generate=custom_generate, grammar=grammar, **options)
    return (out if torch.is_tensor(out) else out.sequences)[:, given.input_ids.shape[1] :].tolist()


def text(ids) -> str:
    return TOKENIZER.decode(ids, skip_special_tokens=True)


def stripped(ids) -> list[int]:
    """Up to the first end-of-text token, which is also the padding."""
    return ids[: ids.index(1) + 1] if 1 in ids else ids


@pytest.mark.parametrize(
    "options", [{}, {"cache_implementation": "static"}, {"cache_implementation": "dynamic"}], ids=str
)
def test_a_batch_writes_what_each_prompt_writes_alone(options):
    """One grammar a row, prompts of all lengths, forced runs where they fall: token for token the same."""
    rows = written(list(COMPILED.values()), *PROMPTS.values(), **options)
    loaded = load((MODEL, TOKENIZER))
    for ids, (name, compiled), prompt in zip(rows, COMPILED.items(), PROMPTS.values()):
        [alone] = written(compiled, prompt, **options)
        assert stripped(ids) == alone and set(ids[len(alone) :]) <= {1}
        assert GRAMMARS[name].matches(text(ids))
        assert generate(loaded, prompt, compiled, max_new_tokens=60).token_ids == [i for i in alone if i != 1]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.text("abc é", max_size=30), st.lists(st.text("abc é1", min_size=1, max_size=12), min_size=1, max_size=4)
        ),
        min_size=2, max_size=5,
    ),
    st.booleans(),
)  # fmt: skip
def test_any_batch_writes_what_its_rows_write_alone(rows, forced):
    prompts = ["<s>" + prompt for prompt, _ in rows]
    grammars = [Grammar.from_choices(choices) for _, choices in rows]
    options = {"max_new_tokens": 30, "vocabulary": VOCABULARY, "tokenizer": TOKENIZER if forced else None}
    for ids, prompt, grammar, (_, choices) in zip(written(grammars, *prompts, **options), prompts, grammars, rows):
        assert text(ids) in choices
        assert written(grammar, prompt, **options) == [stripped(ids)]


@pytest.mark.parametrize("name", GRAMMARS)
def test_greedily_and_without_a_tokenizer_it_is_transformers_own_search_behind_the_mask(name):
    given = inputs(PROMPTS[name])
    mask = MaskProcessor([COMPILED[name]], given.input_ids.shape[1], 40)
    own = MODEL.generate(**given, logits_processor=LogitsProcessorList([mask]), max_new_tokens=40, do_sample=False)
    assert (
        written(COMPILED[name], PROMPTS[name], max_new_tokens=40, tokenizer=None)
        == own[:, given.input_ids.shape[1] :].tolist()
    )


@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 1.7},
        {"no_repeat_ngram_size": 2},
        {"suppress_tokens": [5, 6, 7, 66, 67]},
        {"repetition_penalty": 0.8, "renormalize_logits": True, "sequence_bias": {(66,): -4.0}},
    ],
    ids=str,
)
def test_processors_of_the_generation_config_see_what_they_see_in_transformers(options):
    names = ["step", "free", "free"]
    given = inputs(*(PROMPTS[name] for name in names[:2]), "a longer prompt, for padding")
    compiled = [COMPILED[name] for name in names]
    mask = MaskProcessor(compiled, given.input_ids.shape[1], 30)
    options = {"max_new_tokens": 30, "do_sample": False, **options}
    own = MODEL.generate(**given, logits_processor=LogitsProcessorList([mask]), **options)
    ours = MODEL.generate(**given, custom_generate=custom_generate, grammar=compiled, **options)
    for a, b in zip(own[:, given.input_ids.shape[1] :].tolist(), ours[:, given.input_ids.shape[1] :].tolist()):
        assert stripped(a) == stripped(b)


def test_a_real_model_tells_its_own_story_where_the_grammar_lets_it():
    stories = load(shared("models/stories260K"))
    stories.tokenizer.pad_token = "</s>"
    given = stories.tokenizer(["Once upon a time", "The cat"], return_tensors="pt", padding=True, padding_side="left")
    anything = compile_grammar(Grammar.from_regex(r"(.|\n){0,2000}"), stories.vocabulary)
    width = given.input_ids.shape[1]
    own = stories.model.generate(**given, max_new_tokens=40, do_sample=False)
    for options in ({}, {"tokenizer": stories.tokenizer}, {"cache_implementation": "static"}):
        ours = stories.model.generate(
            **given, custom_generate=custom_generate, grammar=anything, max_new_tokens=70, do_sample=False, **options
        )
        assert torch.equal(ours[:, : width + 40], own)
    two = compile_grammar(Grammar.from_regex("(Lily|Tom) (was|had) [a-z ]{1,20}[.]"), stories.vocabulary)
    for ids in stories.model.generate(
        **given,
        custom_generate=custom_generate,
        grammar=two,
        tokenizer=stories.tokenizer,
        num_beams=3,
        max_new_tokens=30,
    )[:, width:]:
        assert two.grammar.matches(stories.tokenizer.decode(ids, skip_special_tokens=True).strip())


def test_processors_that_leave_nothing_are_an_error():
    ends = [i for i in range(VOCABULARY.size) if i != 1]
    with pytest.raises(ConstrainedError, match="no token is left"):
        written(COMPILED["choices"], "x", suppress_tokens=ends)


@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_are_whole_at_any_length_allowed(name):
    least = max(1, COMPILED[name].matcher().fewest_tokens())
    for steps in (least, least + 1, least + 7):
        for options in ({}, {"do_sample": True, "temperature": 1.5, "num_return_sequences": 3}):
            for ids in written(COMPILED[name], "x", max_new_tokens=steps, **options):
                assert len(ids) <= steps and GRAMMARS[name].matches(text(ids))
    if least > 1:
        with pytest.raises(VocabularyError, match="too small.*\n.*max_new_tokens"):
            written(COMPILED[name], "x", max_new_tokens=least - 1)


def test_the_output_says_what_was_forced_pruned_and_scored():
    given = inputs(PROMPTS["step"])
    out = MODEL.generate(
        **given, custom_generate=custom_generate, grammar=COMPILED["step"], tokenizer=TOKENIZER, max_new_tokens=60,
        do_sample=False, return_dict_in_generate=True, output_scores=True, output_pruned_mass=True,
    )  # fmt: skip
    width, ids = given.input_ids.shape[1], out.sequences[0].tolist()
    matcher = COMPILED["step"].matcher()
    matcher.set_budget(60)
    assert len(out.scores) == out.forced.shape[1] == out.pruned_mass.shape[1] == len(ids) - width
    assert out.complete.tolist() == [True] and out.forced[0, 0] and not out.forced.all()
    for step, token in enumerate(ids[width:]):
        scores = out.scores[step][0]
        assert int(scores.argmax()) == token
        if out.forced[0, step]:
            assert scores.isfinite().sum() == 1 and out.pruned_mass[0, step].isnan()
        else:
            allowed = torch.from_numpy(matcher.allowed_token_ids().astype("int64"))
            with torch.inference_mode():
                logits = MODEL(torch.tensor([ids[: width + step]])).logits[0, -1]
            assert scores.isfinite().nonzero().flatten().tolist() == allowed.tolist()
            assert torch.allclose(scores[allowed], logits[allowed], atol=1e-4)
            assert float(out.pruned_mass[0, step]) == pytest.approx(
                1 - float(logits.softmax(0)[allowed].sum()), abs=1e-5
            )
        assert matcher.advance(token)


def test_forced_runs_cost_no_call_of_the_model():
    options = {"return_dict_in_generate": True, "max_new_tokens": 60, "do_sample": False}
    out = MODEL.generate(
        **inputs("x"), custom_generate=custom_generate, grammar=COMPILED["one text"], tokenizer=TOKENIZER, **options
    )
    assert out.forward_passes == 0 and out.forced.all()
    grammar = Grammar.from_regex("ActionPath 3: Start->(look|examine)\nAction 3: Finish")
    for tokenizer, most in ((TOKENIZER, 1), (None, 30)):
        out = MODEL.generate(
            **inputs("x"),
            custom_generate=custom_generate,
            grammar=grammar,
            vocabulary=VOCABULARY,
            tokenizer=tokenizer,
            **options,
        )
        assert 1 <= out.forward_passes <= most and grammar.matches(text(out.sequences[0, 1:]))


def test_equal_seeds_give_equal_texts():
    def drawn(**options):
        return written(COMPILED["free"], "x", "yy", do_sample=True, max_new_tokens=12, **options)

    torch.manual_seed(5)
    first = drawn()
    torch.manual_seed(5)
    assert drawn() == first != drawn()
    assert (
        drawn(generator=torch.Generator().manual_seed(1)) == drawn(generator=torch.Generator().manual_seed(1)) != first
    )


def test_a_grammar_for_all_or_for_each_compiled_or_not_or_begun():
    for row in written(COMPILED["choices"], "a", "bb", num_return_sequences=2, do_sample=True):
        assert GRAMMARS["choices"].matches(text(row))
    pair = written([GRAMMARS["choices"], GRAMMARS["regex"]], "a", "bb")
    assert [GRAMMARS[n].matches(text(row)) for n, row in zip(("choices", "regex"), pair)] == [True, True]
    matcher = COMPILED["choices"].matcher("go to d")
    for _ in range(2):
        [row] = written(matcher, "A room. go to d")
        assert GRAMMARS["choices"].matches("go to d" + text(row))
    assert matcher.forced_text() == COMPILED["choices"].matcher("go to d").forced_text()


class Collect(TextStreamer):
    def __init__(self):
        super().__init__(TOKENIZER, skip_prompt=True)
        self.ids, self.ended = [], False

    def put(self, value):
        self.ids += value.flatten().tolist()

    def end(self):
        self.ended = True


def test_a_streamer_gets_prompt_and_tokens_as_they_come():
    streamer = Collect()
    [row] = written(COMPILED["step"], "A room. ", streamer=streamer)
    assert streamer.ids == inputs("A room. ").input_ids[0].tolist() + row and streamer.ended


class AfterTokens(StoppingCriteria):
    def __init__(self, width):
        self.width = width

    def __call__(self, input_ids, scores, **kwargs):
        return torch.tensor([int((row != 1).sum()) >= self.width for row in input_ids])


def test_stopping_criteria_cut_rows_one_by_one():
    given = inputs("xx", "y")
    out = MODEL.generate(
        **given, custom_generate=custom_generate, grammar=COMPILED["free"], max_new_tokens=60, do_sample=False,
        stopping_criteria=[AfterTokens(9)], return_dict_in_generate=True,
    )  # fmt: skip
    lengths = [int((row != 1).sum()) for row in out.sequences]
    assert lengths == [9, 9]
    slow = MODEL.generate(
        **given, custom_generate=custom_generate, grammar=COMPILED["step"], max_new_tokens=60, do_sample=False,
        stopping_criteria=[MaxTimeCriteria(0.0)], return_dict_in_generate=True,
    )  # fmt: skip
    assert slow.complete.tolist() == [False, False]


def test_a_cache_of_the_callers_goes_on_and_holds_what_was_read():
    given = inputs("A room. You see a desk 1.")
    options = {"custom_generate": custom_generate, "max_new_tokens": 40, "tokenizer": TOKENIZER, "do_sample": False}
    fresh = MODEL.generate(**given, grammar=COMPILED["step"], **options)
    cache = DynamicCache(config=MODEL.config)
    with torch.no_grad():
        MODEL(given.input_ids[:, :5], past_key_values=cache)
    out = MODEL.generate(**given, grammar=COMPILED["step"], past_key_values=cache, **options)
    assert torch.equal(out, fresh)
    held = cache.get_seq_length()
    assert given.input_ids.shape[1] < held < out.shape[1]
    more = MODEL.generate(out, grammar=COMPILED["choices"], past_key_values=cache, **options)
    assert torch.equal(more, MODEL.generate(out, grammar=COMPILED["choices"], **options))


class Interrupted(StoppingCriteria):
    def __init__(self, calls):
        self.calls = calls

    def __call__(self, input_ids, scores, **kwargs):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return torch.zeros(len(input_ids), dtype=torch.bool)


def cache_of(kind, given):
    """A cache of the caller's that has read the first five tokens."""
    cache = StaticCache(MODEL.config, max_cache_len=80) if kind == "static" else DynamicCache(config=MODEL.config)
    with torch.no_grad():
        MODEL(given.input_ids[:, :5], past_key_values=cache)
    return cache


@pytest.mark.parametrize("where", ["between calls", "within a call"])
@pytest.mark.parametrize("kind, held", [("dynamic", 5), ("static", 0)])
def test_an_interrupted_call_leaves_the_callers_cache_whole(monkeypatch, kind, held, where):
    """As it was; or empty, where it can't go back."""
    given = inputs("A room. You see a desk 1.")
    options = {
        "custom_generate": custom_generate,
        "grammar": COMPILED["free"],
        "max_new_tokens": 20,
        "do_sample": False,
    }
    expected = MODEL.generate(**given, **options)
    second, cache, calls = MODEL.model.layers[1], cache_of(kind, given), []
    forward = second.forward

    def fails_later(*args, **kwargs):  # the first layer has its keys already
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return forward(*args, **kwargs)

    if where == "within a call":
        monkeypatch.setattr(second, "forward", fails_later)
    stops = [Interrupted(3)] if where == "between calls" else []
    with pytest.raises(KeyboardInterrupt):
        MODEL.generate(**given, past_key_values=cache, stopping_criteria=stops, **options)
    monkeypatch.undo()
    assert [int(layer.get_seq_length()) for layer in cache.layers] == [held] * 2
    assert torch.equal(MODEL.generate(**given, past_key_values=cache, **options), expected)


def test_two_threads_with_one_model_and_one_compiled_grammar():
    expected = {name: written(COMPILED[name], PROMPTS[name]) for name in ("step", "free")}
    found = {}

    def work(name):
        found[name] = [written(COMPILED[name], PROMPTS[name]) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(name,)) for name in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: [rows] * 3 for name, rows in expected.items()}


def test_a_prompt_that_leaves_little_of_the_models_context_shortens_the_text():
    model = tiny_llama(VOCABULARY.size, context=32)
    [row] = written(COMPILED["free"], "x" * 20, model=model, max_new_tokens=100)
    assert len([i for i in row if i != 1]) <= 32 - len(TOKENIZER.encode("x" * 20))
    with pytest.raises(ModelError, match="fills the model's context"):
        written(COMPILED["free"], "x" * 40, model=model, max_new_tokens=100)


REFUSED = {
    "no grammar": ({"grammar": None}, "no grammar"),
    "not a grammar": ({"grammar": "abc"}, "a grammar is wanted here, not str"),
    "number of grammars": ({"grammar": [COMPILED["free"]] * 3}, "3 grammars for 1 prompts"),
    "not compiled": ({"grammar": GRAMMARS["free"], "tokenizer": None}, "isn't compiled"),
    "assistant": ({"assistant_model": MODEL}, "assisted_generation"),
    "beam sampling": ({"num_beams": 2, "do_sample": True}, "beam_sample"),
    "logits": ({"output_logits": True, "return_dict_in_generate": True}, "output_logits"),
    "attentions": ({"output_attentions": True, "return_dict_in_generate": True}, "output_attentions"),
    "no cache": ({"use_cache": False}, "use_cache"),
    "guidance": ({"guidance_scale": 2.0}, "guidance_scale"),
    "forced end": ({"forced_eos_token_id": 1}, "forced_eos_token_id"),
    "mass without a place": ({"output_pruned_mass": True}, "return_dict_in_generate"),
    "prefill chunks": ({"prefill_chunk_size": 4}, "prefill_chunk_size"),
    "synced": ({"synced_gpus": True}, "synced_gpus"),
    "beams and criteria": ({"num_beams": 2, "stopping_criteria": [AfterTokens(3)]}, "cut beams short"),
    "tables and scores": (
        {"device_tables": True, "output_scores": True, "return_dict_in_generate": True}, "output_scores would wait"
    ),
    "tables and penalties": ({"device_tables": True, "repetition_penalty": 1.2}, "RepetitionPenalty"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_supported_is_refused(case):
    options, message = REFUSED[case]
    with pytest.raises(ConstrainedError, match=message) as caught:
        written(options.get("grammar", COMPILED["free"]), "x", **{k: v for k, v in options.items() if k != "grammar"})
    assert caught.value.hint


def test_padding_must_be_on_the_left():
    given = inputs("x", "yyyyy")
    with pytest.raises(ConstrainedError, match="left"):
        MODEL.generate(
            given.input_ids.flip(1), attention_mask=given.attention_mask.flip(1), custom_generate=custom_generate,
            grammar=COMPILED["free"], max_new_tokens=5,
        )  # fmt: skip
    with pytest.raises(ConstrainedError, match="one text, not several"):
        written(COMPILED["free"], "x", "y", streamer=Collect())
    with pytest.raises(ConstrainedError, match="several rows"):
        written(COMPILED["free"], "x", "y", past_key_values=DynamicCache(config=MODEL.config))


def test_a_grammar_for_another_vocabulary_is_refused():
    other = compile_grammar(Grammar.from_choices(["a"]), Vocabulary([b"a", b"b", b""], eos_token_ids=[2]))
    with pytest.raises(ConstrainedError, match="different vocabularies"):
        written([COMPILED["free"], other], "x", "y")
    wide = Vocabulary.from_tokenizer(TOKENIZER, size=VOCABULARY.size + 1)
    with pytest.raises(ModelError, match="has .* tokens, the model"):
        written(compile_grammar(GRAMMARS["free"], wide), "x")
