"""Sampling inside a grammar is the model's own distribution, conditioned step by step on what the masks allow."""

import math

import pytest
import torch

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding import custom_generate
from tests.decoding.hf_generate.oracle import FiniteLanguage, padding_tokenizer, warped
from tests.decoding.tiny import tiny_llama

TOKENIZER = padding_tokenizer()
MODEL = tiny_llama(len(TOKENIZER), seed=3)
VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER)
TEXTS = ["go to desk 1", "go to desk 10", "go to drawer 1", "go", "take mug", "tak"]
COMPILED = compile_grammar(Grammar.from_choices(TEXTS), VOCABULARY)
PROMPT = TOKENIZER.encode("A room. ")
LANGUAGE = FiniteLanguage(MODEL, VOCABULARY.tokens, 1, TEXTS, PROMPT)
DRAWS = 1500
STRICT = 1e-6
"""A right sampler fails so often; seeds are fixed, so that it either always does or never."""

SETTINGS = [
    {"temperature": 2.5},
    {"temperature": 0.7, "top_k": 3, "top_p": 1.0},
    {"temperature": 3.0, "top_p": 0.8},
    {"temperature": 2.0, "top_k": 4, "top_p": 0.9},
]


def draw(**options) -> list[tuple[int, ...]]:
    """`DRAWS` texts' tokens, each up to its end."""
    out = MODEL.generate(
        torch.tensor([PROMPT]), custom_generate=custom_generate, do_sample=True, max_new_tokens=20,
        num_return_sequences=DRAWS, return_dict_in_generate=True, **{"top_k": 0} | options,
    )  # fmt: skip
    return [tuple(row[: row.index(1) + 1]) for row in out.sequences[:, len(PROMPT) :].tolist()]


def g_test(drawn: list[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """Probability that right draws deviate so much (likelihood-ratio test); outcomes expected rarely go together."""
    assert set(drawn) <= expected.keys()
    counts = dict.fromkeys(expected, 0)
    for outcome in drawn:
        counts[outcome] += 1
    cells, rest = [], [0, 0.0]
    for outcome, chance in expected.items():
        if chance * len(drawn) >= 5:
            cells.append((counts[outcome], chance * len(drawn)))
        else:
            rest = [rest[0] + counts[outcome], rest[1] + chance * len(drawn)]
    cells += [tuple(rest)] if rest[1] else []
    g = 2 * sum(seen * math.log(seen / hoped) for seen, hoped in cells if seen)
    return (
        1.0
        if len(cells) == 1
        else float(torch.special.gammaincc(torch.tensor((len(cells) - 1) / 2.0), torch.tensor(g / 2)))
    )


WAYS = {
    "allowed columns only": {},
    "all columns": {"output_pruned_mass": True},  # which needs all logits
    "device tables": {"device_tables": True},
}


CASES = [(settings, way) for settings in SETTINGS for way in WAYS if way == "allowed columns only" or len(settings) > 2]
CASES += [({}, way) for way in WAYS]


@pytest.mark.parametrize("settings, way", CASES, ids=str)
def test_token_sequences_come_as_often_as_the_conditioned_model_says(settings, way):
    expected = dict(LANGUAGE.sequences(warped(**settings)))
    assert sum(expected.values()) == pytest.approx(1) and len(expected) > 5
    torch.manual_seed(20)
    assert g_test(draw(grammar=COMPILED, **WAYS[way], **settings), expected) > STRICT


def test_the_test_notices_another_distribution():
    torch.manual_seed(20)
    drawn = draw(grammar=COMPILED)
    for other in ({"temperature": 1.4}, {"temperature": 0.7}, {"top_p": 0.9}, {"top_k": 4}):
        expected = dict(LANGUAGE.sequences(warped(**other)))
        assert not set(drawn) <= expected.keys() or g_test(drawn, expected) < STRICT
