"""Beam search inside a grammar: the best texts there are, and transformers' own results step by step."""

import math

import pytest
import torch
from transformers import LogitsProcessorList, MambaConfig, MambaForCausalLM

from constrained import ConstrainedError, Grammar, Vocabulary, compile_grammar
from constrained.decoding import custom_generate
from tests.decoding.grammars import GRAMMARS
from tests.decoding.hf_generate.oracle import FiniteLanguage, MaskProcessor, own_log_probability, padding_tokenizer
from tests.decoding.tiny import tiny_llama

TOKENIZER = padding_tokenizer()
VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER)
MODEL = tiny_llama(len(TOKENIZER), seed=2)
TEXTS = ["go to", "go", "take", "é 1"]


def search(model=MODEL, prompts=("A room. ",), **options):
    given = TOKENIZER(list(prompts), return_tensors="pt", padding=True)
    options = {"max_new_tokens": 30, "do_sample": False, "return_dict_in_generate": True} | options
    out = model.generate(**given, custom_generate=custom_generate, **options)
    return out, out.sequences[:, given.input_ids.shape[1] :].tolist()


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, -0.5])
@pytest.mark.parametrize("seed", range(3))
def test_enough_beams_find_the_best_ways_to_write_a_text_of_a_small_language(seed, length_penalty):
    model, prompt = tiny_llama(len(TOKENIZER), seed=seed), TOKENIZER.encode("A room. ")
    language = FiniteLanguage(model, VOCABULARY.tokens, 1, TEXTS, prompt)
    rated = {
        tokens: math.log(chance) / len(tokens) ** length_penalty
        for tokens, chance in language.sequences(own_log_probability)
    }
    best = sorted(rated, key=lambda tokens: -rated[tokens])[:5]
    compiled = compile_grammar(Grammar.from_choices(TEXTS), VOCABULARY)
    out, rows = search(
        model, grammar=compiled, num_beams=len(rated), num_return_sequences=5, length_penalty=length_penalty,
        early_stopping="never",
    )  # fmt: skip
    assert [tuple(row[: row.index(1) + 1]) for row in rows] == best
    assert out.sequences_scores.tolist() == pytest.approx([rated[tokens] for tokens in best], rel=1e-4)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0, -1.0])
@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_the_result_is_that_of_transformers_behind_the_mask(length_penalty, early_stopping):
    names, steps = ["choices", "step", "regex"], 22
    compiled = [compile_grammar(GRAMMARS[name], VOCABULARY) for name in names]
    given = TOKENIZER(["A room. ", "x", "You are in the middle of"], return_tensors="pt", padding=True)
    options = {
        "num_beams": 3, "num_return_sequences": 2, "length_penalty": length_penalty, "early_stopping": early_stopping,
        "max_new_tokens": steps, "do_sample": False, "return_dict_in_generate": True, "output_scores": True,
        "repetition_penalty": 1.2,
    }  # fmt: skip
    ours = MODEL.generate(**given, custom_generate=custom_generate, grammar=compiled, **options)
    mask = MaskProcessor(compiled, given.input_ids.shape[1], steps)
    own = MODEL.generate(**given, logits_processor=LogitsProcessorList([mask]), **options)
    assert torch.equal(ours.sequences, own.sequences)
    assert torch.allclose(ours.sequences_scores, own.sequences_scores, atol=1e-4)


@pytest.mark.parametrize("name", GRAMMARS)
def test_all_results_are_whole_at_any_length_allowed(name):
    compiled = compile_grammar(GRAMMARS[name], VOCABULARY)
    least = max(1, compiled.matcher().fewest_tokens())
    for steps in (least, least + 1, least + 5):
        for cache in ("static", "dynamic"):
            out, rows = search(
                grammar=compiled, num_beams=3, num_return_sequences=3, max_new_tokens=steps, cache_implementation=cache
            )
            assert out.complete[0] and all(len(row) <= steps for row in rows)
            for row, there_is_one in zip(rows, out.complete):
                assert GRAMMARS[name].matches(TOKENIZER.decode(row, skip_special_tokens=True)) or not there_is_one


def test_fewer_texts_than_beams():
    compiled = [compile_grammar(Grammar.from_choices(texts), VOCABULARY) for texts in (["a"], ["b", "c"])]
    out, rows = search(prompts=("x", "yy"), grammar=compiled, num_beams=4, num_return_sequences=3)
    texts = [TOKENIZER.decode(row, skip_special_tokens=True) for row in rows]
    assert texts[:3] == ["a", "", ""] and sorted(texts[3:]) == ["", "b", "c"]
    assert out.complete.tolist() == [True, False, False, True, True, False]
    assert (out.sequences_scores > -torch.inf).tolist() == out.complete.tolist()


def test_every_token_of_a_beam_was_asked_and_its_pruned_mass_is_known():
    compiled = compile_grammar(GRAMMARS["step"], VOCABULARY)
    out, [row] = search(grammar=compiled, num_beams=2, output_pruned_mass=True, tokenizer=TOKENIZER)
    assert not out.forced.any() and out.pruned_mass.isfinite().all() and len(row) == out.pruned_mass.shape[1]
    prompt, matcher = TOKENIZER.encode("A room. "), compiled.matcher()
    matcher.set_budget(30)
    for step, token in enumerate(row):
        with torch.inference_mode():
            chances = MODEL(torch.tensor([prompt + row[:step]])).logits[0, -1].softmax(0)
        inside = float(chances[torch.from_numpy(matcher.allowed_token_ids().astype("int64"))].sum())
        assert float(out.pruned_mass[0, step]) == pytest.approx(1 - inside, abs=1e-4)
        assert matcher.advance(token)


def test_a_model_whose_cache_does_not_fork_is_refused():
    model = MambaForCausalLM(MambaConfig(vocab_size=len(TOKENIZER), hidden_size=16, num_hidden_layers=1, state_size=4))
    with pytest.raises(ConstrainedError, match="MambaForCausalLM can't hold rows"):
        search(model, grammar=compile_grammar(GRAMMARS["free"], VOCABULARY), num_beams=2)


@pytest.mark.parametrize("option", ["suppress_tokens", "bad_words_ids"])
def test_where_processors_forbid_all_that_is_allowed_it_is_an_error(option):
    t = [id for id, token in enumerate(VOCABULARY.tokens) if b"t" in token]
    forbidden = {option: t if option == "suppress_tokens" else [[id] for id in t]}
    compiled = compile_grammar(Grammar.from_choices(["go to", "take"]), VOCABULARY)
    with pytest.raises(ConstrainedError, match="no token is left to choose"):
        search(grammar=compiled, num_beams=3, **forbidden)
    compiled = compile_grammar(Grammar.from_choices(TEXTS), VOCABULARY)  # "go" and "é 1" are left
    out, rows = search(grammar=compiled, num_beams=4, **forbidden)
    assert bool(out.complete.all()) and TOKENIZER.decode(rows[0], skip_special_tokens=True) in ("go", "é 1")
    with pytest.raises(ConstrainedError, match="no token is left to choose"):
        search(grammar=compiled, num_beams=9, num_return_sequences=9, **forbidden)
