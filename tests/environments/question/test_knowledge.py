"""The action knowledge of questions: what may be written, and what of it never fails."""

import random

import pytest

from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.environments.question.env import QuestionEnv
from constrained.environments.question.index import LocalIndex
from constrained.errors import GrammarError
from constrained.models import load
from tests.agents.scripted import answer_with
from tests.decoding.tiny import tiny
from tests.environments.question.small import QUESTION, SMALL


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    made = LocalIndex(SMALL, folder=tmp_path_factory.mktemp("index"))
    yield made
    made.close()


@pytest.mark.parametrize(
    "name, answer, verdict",
    [
        ("strategyqa", "yes", "ok"),
        ("strategyqa", "no", "ok"),
        ("strategyqa", "maybe", "invalid"),
        ("strategyqa", "Yes", "invalid"),
        ("fever", "NOT ENOUGH INFO", "ok"),
        ("fever", "SUPPORTS", "ok"),
        ("fever", "SUPPORTED", "invalid"),
        ("hotpotqa_seen", "anything", "ok"),
    ],
)
def test_only_the_answers_that_there_are_can_be_given(name, answer, verdict):
    knowledge = ActionKnowledge.from_lark(name).bind_view({})
    report = knowledge.check(["Search[a topic]", f"Finish[{answer}]"])
    assert report.verdicts == ["ok", verdict]


@pytest.mark.parametrize("name", ["hotpotqa", "strategyqa", "fever", "hotpotqa_seen"])
def test_nothing_is_looked_up_or_answered_before_something_was_found(name):
    knowledge = ActionKnowledge.from_lark(name).bind(**({"KEYWORD": ["a"], "TITLE": ["b"]} if "seen" in name else {}))
    assert knowledge.check(["Lookup[a]"]).verdicts == ["misordered"]
    answer = {"strategyqa": "yes", "fever": "REFUTES"}.get(name, "x")
    assert knowledge.check([f"Finish[{answer}]"]).verdicts == ["misordered"]


def play(index, knowledge, *texts, **settings):
    tiny_model = tiny(context=4096)
    plan = Plan(QUESTION.text, knowledge, "act", "script", True, 0)
    models = {"policy": load((tiny_model.model, tiny_model.tokenizer))}
    episode = Episode(
        models,
        ActionKnowledge.from_lark(knowledge),
        plan,
        Settings("act", "act", **settings),
        QuestionEnv(QUESTION, index),
    )
    return answer_with(Rollout(episode), *texts)


@pytest.mark.parametrize("knowledge", ["hotpotqa", "hotpotqa_seen"])
def test_a_gold_path_scores_full_marks(index, knowledge):
    plan = play(index, knowledge, " Search[Milhouse of The Simpsons]", " Lookup[named]", " Finish[Richard Nixon]")
    assert plan.success is True and plan.outcome == {"success": 1.0, "f1": 1.0, "em": 1.0}
    assert [step.verdict for step in plan.steps] == ["ok"] * 3


def test_after_a_search_that_found_nothing_no_lookup_can_be_written(index):
    with pytest.raises(GrammarError, match="no text of the grammar begins with .*Lookup"):
        play(index, "hotpotqa", " Search[???]", " Lookup[named]")
    plan = play(index, "hotpotqa", " Search[???]", " Search[Milhouse]", " Lookup[named]", " Finish[Nixon]")
    assert plan.steps[0].had_effect is False and plan.path[0] == "Search[Milhouse]"


@pytest.mark.parametrize("seed", range(20))
def test_what_has_been_seen_can_always_be_retrieved_and_looked_up(index, seed):
    chance = random.Random(seed)
    env = QuestionEnv(QUESTION, index)
    knowledge = ActionKnowledge.from_lark("hotpotqa_seen")
    env.step("Search[planet Milhouse Simpsons]")
    knowledge = knowledge.bind_view({}).after("Search[planet Milhouse Simpsons]")
    for _ in range(30):
        view = env.view()
        knowledge = knowledge.bind_view(view)
        actions = [f"Retrieve[{title}]" for title in view["TITLE"]] + [f"Lookup[{word}]" for word in view["KEYWORD"]]
        action = chance.choice(actions)
        knowledge = knowledge.after(action)
        observation, _, _ = env.step(action)
        assert env.had_effect, (action, observation)
