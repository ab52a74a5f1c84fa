"""F1 and exact match as HotpotQA's and SQuAD's official evaluations define them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.environments.data import read_rows
from constrained.environments.question.env import exact_match, f1, normalise
from tests.data import shared

answers = st.text(alphabet="aAthe nyYoOsES.,'é1", max_size=30)


@pytest.mark.parametrize(
    "answer, gold, expected_f1, expected_em",
    [
        ("Richard Nixon", "Richard Nixon", 1.0, 1.0),
        ("The richard  nixon.", "Richard Nixon", 1.0, 1.0),
        ("President Richard Nixon", "Richard Nixon", 0.8, 0.0),
        ("Nixon Nixon", "Richard Nixon", 0.5, 0.0),
        ("Kennedy", "Richard Nixon", 0.0, 0.0),
        ("", "Richard Nixon", 0.0, 0.0),
        ("yes", "Yes!", 1.0, 1.0),
        ("yes it is", "yes", 0.0, 0.0),
        ("no", "no way", 0.0, 0.0),
        ("noanswer", "an answer", 0.0, 0.0),
        ("not enough info", "NOT ENOUGH INFO", 1.0, 1.0),
        ("U.S.", "us", 1.0, 1.0),
    ],
)
def test_known_answers(answer, gold, expected_f1, expected_em):
    assert f1(answer, gold) == pytest.approx(expected_f1)
    assert exact_match(answer, gold) == expected_em


def test_articles_go_only_as_whole_words():
    assert normalise("A theme: an anthem for the Ape") == "theme anthem for ape"


@given(answers, answers)
def test_f1_is_a_share_and_treats_both_sides_alike(answer, gold):
    assert 0.0 <= f1(answer, gold) == f1(gold, answer) <= 1.0


@given(answers, answers)
def test_an_exact_match_has_full_f1_and_no_other_order_of_words_beats_it(answer, gold):
    if exact_match(answer, gold) and normalise(gold):
        assert f1(answer, gold) == 1.0
    if f1(answer, gold) == 1.0:
        assert sorted(normalise(answer).split()) == sorted(normalise(gold).split())


@given(answers)
def test_normalising_twice_changes_nothing_more_but_articles_that_appear(answer):
    once = normalise(answer)
    assert once == once.strip().lower() and "  " not in once
    assert normalise(once) == once


@pytest.mark.parametrize("runs", ["D0", "D1"])
def test_knowagents_recorded_answers_score_what_they_were_given(runs):
    answered = 0
    for _, run in read_rows(shared(f"knowagent/KnowAgentHotpotQA_llama-2-13b_{runs}.jsonl.gz")):
        played = run["prompt"].rpartition(f"Question: {run['question']}")[2]
        finishes = re.findall(r"(?m)^Action \d+: ?Finish\[(.*)\]\s*$", played)
        if finishes:  # the others ran out of steps
            answered += 1
            assert f1(finishes[-1], run["answer"]) == pytest.approx(run["reward"])
            assert exact_match(finishes[-1], run["answer"]) == run["correct"]
    assert answered == {"D0": 494, "D1": 482}[runs]
