"""Inside `model.generate`, every row's text is in its grammar."""

import numpy as np
import pytest
import torch

from constrained import ActionKnowledge, ConstrainedError, Grammar, Vocabulary, compile_grammar
from constrained.decoding import generate
from constrained.decoding.hosts.hf_processor import ConstrainedLogitsProcessor
from constrained.models import load
from tests.decoding.hosts.texts import CHOICES, GRAMMARS, text_of
from tests.decoding.requests import no_jump_forward
from tests.decoding.tiny import tiny

LOADED = tiny(padding=13)
MODEL, TOKENIZER, VOCABULARY = LOADED.model, LOADED.tokenizer, LOADED.vocabulary
COMPILED = {name: compile_grammar(grammar, VOCABULARY) for name, grammar in GRAMMARS.items()}


@pytest.fixture(autouse=True)
def padding():
    TOKENIZER.pad_token, TOKENIZER.padding_side = "<s>", "left"


def write(prompts, processor, **options):
    """Generated ids, a row each."""
    batch = TOKENIZER(prompts, return_tensors="pt", padding=True)
    options = {"max_new_tokens": 40, "do_sample": False, "pad_token_id": 0, **options}
    out = MODEL.generate(**batch, logits_processor=[processor], **options)
    return out[:, batch["input_ids"].shape[1] :]


@pytest.mark.parametrize("name", GRAMMARS)
def test_greedy_writes_what_our_own_loop_writes(name):
    """Token for token, where the loop leaves forced text to the model, too."""
    for prompt in ("A room. ", "x"):
        (ids,) = write([prompt], ConstrainedLogitsProcessor(COMPILED[name], max_new_tokens=40))
        with no_jump_forward():
            ours = generate(LOADED, prompt, COMPILED[name], max_new_tokens=40)
        assert [i for i in ids.tolist() if i not in VOCABULARY.eos_token_ids] == list(ours.token_ids)
        assert GRAMMARS[name].matches(text_of(VOCABULARY, ids))


def test_forced_text_is_cut_by_the_model_here_and_by_the_tokenizer_in_our_own_loop():
    (ids,) = write(["x"], ConstrainedLogitsProcessor(COMPILED["one text"]))
    ours = generate(LOADED, "x", COMPILED["one text"])
    assert text_of(VOCABULARY, ids) == ours.text == "Start->go to desk 1"
    assert list(ours.token_ids) == TOKENIZER.encode(ours.text) and ours.forward_passes == 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "temperature": 2.0},
        {"do_sample": True, "top_k": 1},
        {"do_sample": True, "top_p": 0.01},
        {"do_sample": True, "num_return_sequences": 3},
        {"num_beams": 3},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 2, "do_sample": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["choices", "regex", "step"])
def test_every_row_of_every_way_to_generate_is_in_the_grammar(name, options):
    torch.manual_seed(0)
    processor = ConstrainedLogitsProcessor(COMPILED[name], max_new_tokens=40, num_beams=options.get("num_beams", 1))
    prompts = ["A room. ", "go", "You are in the middle of it. "]
    rows = write(prompts, processor, **options)
    assert len(rows) == len(prompts) * options.get("num_return_sequences", 1)
    for row in rows:
        assert GRAMMARS[name].matches(text_of(VOCABULARY, row))


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"do_sample": True, "num_return_sequences": 2}], ids=str)
def test_each_prompt_has_its_own_grammar(options):
    torch.manual_seed(1)
    names = ["regex", "choices", "step"]
    processor = ConstrainedLogitsProcessor(
        [COMPILED[n] for n in names], max_new_tokens=40, num_beams=options.get("num_beams", 1)
    )
    rows = write(["same", "same", "same"], processor, **options)  # only the place tells which grammar is whose
    share = len(rows) // 3
    for at, row in enumerate(rows):
        assert GRAMMARS[names[at // share]].matches(text_of(VOCABULARY, row))


@pytest.mark.parametrize("name", ["choices", "regex", "step"])
@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("draft", ["prompt lookup", "assistant"])
def test_drafts_are_checked_and_change_nothing(name, draft, sample):
    torch.manual_seed(0)
    assistant = tiny(seed=3, padding=13).model
    helper = {"prompt_lookup_num_tokens": 4} if draft == "prompt lookup" else {"assistant_model": assistant}
    for prompt in ("go to desk 9 go to desk 10 look aab Thought: go to desk", "x"):
        processor = ConstrainedLogitsProcessor(COMPILED[name], max_new_tokens=40, assisted=True)
        (ids,) = write([prompt], processor, do_sample=sample, **helper)
        assert GRAMMARS[name].matches(text_of(VOCABULARY, ids))
        if not sample:
            (alone,) = write([prompt], ConstrainedLogitsProcessor(COMPILED[name], max_new_tokens=40))
            assert ids.tolist() == alone.tolist()


def test_drafts_may_hold_anything_and_are_taken_back():
    """Forbidden tokens, what comes after them, and ends of text: no trace is left of them."""
    compiled = compile_grammar(Grammar.from_choices(["go", "gone"]), VOCABULARY)
    go, n, end, forbidden = TOKENIZER.encode("go")[0], TOKENIZER.encode("n")[0], 1, 65
    rows = ConstrainedLogitsProcessor(compiled, assisted=True, max_new_tokens=4)
    for shown in ([], [go], [go, forbidden], [go, forbidden, n], [go], [go, end], [go, end, n], [go, n], [go]):
        rows.follow(np.array([[7, 8, *shown]]))
        mask = np.zeros((1, VOCABULARY.words), np.int32)
        rows.fill(mask)
        matcher = compiled.matcher()
        if not all(matcher.is_terminated or matcher.advance(token) for token in shown):
            assert (mask == -1).all()  # thrown away in any case; with nothing allowed, sampling would fail
            continue
        expected = np.zeros_like(mask)
        matcher.fill_bitmask(expected)
        assert np.array_equal(mask, expected), shown


def test_beams_find_the_likeliest_text_of_the_grammar():
    """As many beams as there are prefixes: the search is exhaustive, and must agree with scoring every text."""
    texts = ["ab", "abc", "ba", "c", "cab"]
    letters = load_letters()
    compiled = compile_grammar(Grammar.from_choices(texts), letters.vocabulary)
    ids = letters.tokenizer("x", return_tensors="pt")
    processor = ConstrainedLogitsProcessor(compiled, num_beams=12)
    out = letters.model.generate(
        **ids,
        logits_processor=[processor],
        num_beams=12,
        max_new_tokens=8,
        length_penalty=0.0,
        pad_token_id=0,
        output_scores=True,
        return_dict_in_generate=True,
        early_stopping="never",
    )
    best = text_of(letters.vocabulary, out.sequences[0, ids["input_ids"].shape[1] :])
    scores = {text: log_probability(letters, text) for text in texts}
    assert best == max(scores, key=scores.get)
    assert float(out.sequences_scores[0]) == pytest.approx(scores[best], abs=1e-3)


def load_letters():
    from tests.decoding.tiny import tiny_llama, tiny_tokenizer

    tokenizer = tiny_tokenizer(258)
    return load((tiny_llama(len(tokenizer), seed=7), tokenizer))


def log_probability(loaded, text) -> float:
    """The model's own, not renormalised: what a beam search adds up."""
    prompt, total = loaded.tokenizer.encode("x"), 0.0
    written = [*loaded.tokenizer.encode(text), 1]
    with torch.inference_mode():
        logits = loaded.model(input_ids=torch.tensor([prompt + written])).logits[0]
    for at, token in enumerate(written):
        total += float(torch.log_softmax(logits[len(prompt) + at - 1].double(), 0)[token])
    return total


@pytest.mark.parametrize("least", [5, 6, 9, 20])
def test_texts_are_whole_within_max_new_tokens(least):
    torch.manual_seed(least)
    grammar = Grammar.from_regex(r"[ab]{1,30}(cd){2}")
    compiled = compile_grammar(grammar, VOCABULARY)
    processor = ConstrainedLogitsProcessor(compiled, max_new_tokens=least)
    for row in write(["A", "B b", "C"], processor, max_new_tokens=least, do_sample=True, temperature=3.0):
        assert grammar.matches(text_of(VOCABULARY, row))


def test_a_text_that_the_prompts_have_begun_is_finished():
    processor = ConstrainedLogitsProcessor(COMPILED["choices"], begun="go to d")
    for row in write(["I go to d", "Now: go to d"], processor):
        assert "go to d" + text_of(VOCABULARY, row) in CHOICES


def test_inside_the_mask_the_distribution_is_the_models_own():
    seen = []

    def spy(input_ids, scores):
        seen.append((input_ids[0].tolist(), scores[0].clone()))
        return scores

    batch = TOKENIZER(["A room. "], return_tensors="pt")
    before = batch["input_ids"].shape[1]
    MODEL.generate(
        **batch,
        max_new_tokens=40,
        do_sample=False,
        logits_processor=[ConstrainedLogitsProcessor(COMPILED["step"]), spy],
    )
    assert len(seen) > 10
    for ids, scores in seen:
        matcher = COMPILED["step"].matcher()
        assert matcher.accepts(ids[before:]) == len(ids) - before
        for token in ids[before:]:
            matcher.advance(token)
        allowed = matcher.allowed_token_ids()
        with torch.inference_mode():
            own = MODEL(input_ids=torch.tensor([ids])).logits[0, -1]
        torch.testing.assert_close(scores[allowed], own[allowed], atol=1e-4, rtol=1e-4)
        forbidden = np.setdiff1d(np.arange(len(own)), allowed)
        assert bool((scores[forbidden] == -torch.inf).all())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_it_writes_what_it_writes_on_the_cpu():
    model = tiny(padding=13).model
    batch = TOKENIZER(["A room. ", "x"], return_tensors="pt", padding=True)
    rows = []
    for device in ("cpu", "cuda"):
        processor = ConstrainedLogitsProcessor(COMPILED["step"], max_new_tokens=40)
        out = model.to(device).generate(
            **batch.to(device), max_new_tokens=40, do_sample=False, pad_token_id=0, logits_processor=[processor]
        )
        rows.append(out.tolist())
    assert rows[0] == rows[1]


def test_the_raw_logits_are_left_as_they_are():
    batch = TOKENIZER(["x"], return_tensors="pt")
    out = MODEL.generate(
        **batch,
        max_new_tokens=3,
        output_logits=True,
        return_dict_in_generate=True,
        do_sample=False,
        logits_processor=[ConstrainedLogitsProcessor(COMPILED["choices"])],
    )
    assert all(torch.isfinite(step).all() for step in out.logits)


def test_a_processor_serves_one_generation_after_another():
    processor = ConstrainedLogitsProcessor(COMPILED["choices"])
    for prompts in (["x"], ["x"], ["A longer prompt. "], ["a", "b"], ["b", "a"]):
        for row in write(prompts, processor):
            assert text_of(VOCABULARY, row) in CHOICES
    first = TOKENIZER(["x"], return_tensors="pt")["input_ids"]
    for _ in range(4):  # what was written becomes the next prompt, as agents do
        first = MODEL.generate(
            input_ids=first, max_new_tokens=40, logits_processor=[processor], pad_token_id=0, do_sample=False
        )
    text = TOKENIZER.decode(first[0]).replace("</s>", "|")
    assert text.count("|") == 4 and set(text[1:].split("|")) <= {*CHOICES, ""}


def test_where_a_generation_was_cut_off_reset_begins_another():
    processor = ConstrainedLogitsProcessor(COMPILED["choices"])
    batch = TOKENIZER(["x"], return_tensors="pt")
    cut = MODEL.generate(**batch, max_new_tokens=2, logits_processor=[processor], do_sample=False)
    processor.reset()
    out = MODEL.generate(input_ids=cut, max_new_tokens=40, logits_processor=[processor], do_sample=False)
    assert text_of(VOCABULARY, out[0, cut.shape[1] :]) in CHOICES


def test_prompt_length_takes_what_stands_after_it_for_generated_text():
    ids = TOKENIZER.encode("x") + TOKENIZER.encode("go to de")
    processor = ConstrainedLogitsProcessor(COMPILED["choices"], prompt_length=len(TOKENIZER.encode("x")))
    out = MODEL.generate(
        input_ids=torch.tensor([ids]), max_new_tokens=40, logits_processor=[processor], do_sample=False
    )
    assert text_of(VOCABULARY, out[0, len(TOKENIZER.encode("x")) :]) in ("go to desk 1", "go to desk 10")


def test_a_token_that_was_not_allowed_is_an_error():
    def meddle(input_ids, scores):
        return torch.nn.functional.one_hot(torch.tensor([65]), scores.shape[1]).float()

    batch = TOKENIZER(["x"], return_tensors="pt")
    with pytest.raises(ConstrainedError, match=r"row 0, token 1: token 65 .* is not allowed here; allowed: b'g'"):
        MODEL.generate(
            **batch,
            max_new_tokens=5,
            do_sample=False,
            logits_processor=[ConstrainedLogitsProcessor(COMPILED["choices"]), meddle],
        )


@pytest.mark.parametrize("sample", [False, True])
def test_where_others_forbid_all_that_is_allowed_it_is_an_error(sample):
    for most in (6, 40):  # "look" has at most four tokens: at the next only the end is allowed, and forbidden
        processor = ConstrainedLogitsProcessor(compile_grammar(Grammar.from_choices(["look"]), VOCABULARY))
        with pytest.raises(ConstrainedError, match=r"row 0: every token .* forbidden before\n.*min_new_tokens"):
            write(["x"], processor, min_new_tokens=6, max_new_tokens=most, do_sample=sample)


@pytest.mark.parametrize("beams", [1, 3])
def test_after_its_whole_budget_a_text_may_only_end(beams):
    """The host's limit is above the processor's: no second text begins."""
    grammar = Grammar.from_regex(r"[ab]{2,}")
    for least in (2, 5):
        processor = ConstrainedLogitsProcessor(
            compile_grammar(grammar, VOCABULARY), max_new_tokens=least, num_beams=beams
        )
        torch.manual_seed(least)
        for row in write(["A", "B b"], processor, max_new_tokens=30, num_beams=beams, do_sample=beams == 1):
            text = text_of(VOCABULARY, row)
            assert grammar.matches(text) and len(text) <= least and 1 in row.tolist()


@pytest.mark.parametrize("option", ["suppress_tokens", "bad_words_ids"])
def test_beams_raise_where_others_forbid_all_that_is_allowed(option):
    k = [id for id, token in enumerate(VOCABULARY.tokens) if b"k" in token]
    compiled = compile_grammar(Grammar.from_choices(["look", "lark"]), VOCABULARY)
    forbidden = {option: k if option == "suppress_tokens" else [[id] for id in k]}
    for sample in (False, True):
        with pytest.raises(ConstrainedError, match=r"row \d: every token .* forbidden before"):
            write(["x"], ConstrainedLogitsProcessor(compiled, num_beams=3), num_beams=3, do_sample=sample, **forbidden)


def test_what_can_not_work_is_an_error_at_once():
    with pytest.raises(ConstrainedError, match="budget of 2 tokens is too small"):
        ConstrainedLogitsProcessor(COMPILED["one text"], max_new_tokens=2)
    for wrong in ([], [GRAMMARS["choices"]], GRAMMARS["choices"]):
        with pytest.raises((ConstrainedError, TypeError), match="compiled grammar|not iterable"):
            ConstrainedLogitsProcessor(wrong)
    with pytest.raises(ConstrainedError, match="max_new_tokens is 0"):
        ConstrainedLogitsProcessor(COMPILED["choices"], max_new_tokens=0)
    with pytest.raises(ConstrainedError, match="3 rows for 2 grammars"):
        write(["a", "b", "c"], ConstrainedLogitsProcessor([COMPILED["choices"], COMPILED["regex"]]))
    wide = Vocabulary([bytes([i]) for i in range(256)], eos_token_ids=[5000])
    with pytest.raises(ConstrainedError, match=r"logits have \d+ columns.*5001 tokens"):
        write(["a"], ConstrainedLogitsProcessor(compile_grammar(Grammar.from_regex("a+"), wide)))
    with pytest.raises(ConstrainedError, match="prompt_length is 90"):
        write(["a"], ConstrainedLogitsProcessor(COMPILED["choices"], prompt_length=90))


def test_rows_are_found_wherever_a_beam_search_puts_them():
    """Random moves, forks and dead ends against matchers that read each row anew."""
    rng = np.random.default_rng(0)
    compiled = compile_grammar(Grammar.from_regex(r"(a|b|ab){1,9}c"), VOCABULARY)
    for _ in range(30):
        rows = ConstrainedLogitsProcessor(compiled, num_beams=4)
        ids = np.tile(rng.integers(2, 200, 5), (4, 1))
        for _ in range(8):
            batch = rows.follow(ids)
            mask = np.zeros((4, VOCABULARY.words), np.int32)
            rows.fill(mask)
            for row in range(4):
                fresh = compiled.matcher()
                read = (fresh.is_terminated or fresh.advance(token) for token in ids[row, 5:])
                if not all(read):
                    assert not mask[row].any()
                    continue
                expected = np.zeros_like(mask)
                fresh.fill_bitmask(expected)
                assert np.array_equal(mask[row], expected[0])
                assert batch[row].is_terminated == fresh.is_terminated
            order = rng.integers(0, 4, 4)
            tokens = [
                int(rng.choice(batch[r].allowed_token_ids())) if rng.random() < 0.9 else int(rng.integers(2, 200))
                for r in order
            ]
            ids = np.concatenate([ids[order], np.array(tokens)[:, None]], 1)


def test_what_is_not_compiled_is_refused_with_what_to_pass():
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    for given, hint in (
        (knowledge, "compile_grammar(knowledge.next_action(), "),
        (knowledge.next_action(), "compile_grammar(grammar, "),
    ):
        with pytest.raises(ConstrainedError, match="a compiled grammar is wanted here") as error:
            ConstrainedLogitsProcessor(given)
        assert hint in error.value.hint
    for wants in (
        lambda: Grammar.from_lark("%declare A\nstart: A\n").bind(A=knowledge),
        lambda: generate(LOADED, "x", knowledge),
    ):
        with pytest.raises(ConstrainedError) as error:
            wants()
        assert "knowledge.next_action() is the grammar of the next action" in error.value.hint
