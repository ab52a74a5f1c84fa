"""Lumos on questions: pages and paragraphs from the question's own index, answers from a model of their own role."""

from functools import partial

import pytest

from benchmarks.lumos.suites import GroundedQuestion, grounded, most_subgoals
from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.strategies.lumos.grounder import Unanswered
from constrained.environments.base import Environment
from constrained.environments.question.env import Question, QuestionEnv
from constrained.environments.question.index import LocalIndex
from constrained.environments.suite import Suite, Task
from tests.agents.random_model import RANDOM
from tests.agents.scripted import answer_with
from tests.agents.strategies.lumos.hall import HOSTILE, played, seen
from tests.environments.question.small import QUESTION, SMALL

QA = ActionKnowledge.from_lark("lumos/qa")
PAGE = "R1 = KnowledgeQuery(Milhouse Van Houten)"
READ = "R2 = ParagraphRetrieve(R1, Query: Who was Milhouse named after?)"
ASK = "R3 = QA([R2], Question: Who was R1 named after?)"


@pytest.fixture
def make(tmp_path):
    return partial(QuestionEnv, QUESTION, LocalIndex(SMALL, folder=tmp_path))


def rollout(make, strategy="lumos", **settings):
    plan = Plan("q", "qa", strategy, "tiny", True, 0)
    return Rollout(
        Episode({"policy": RANDOM}, QA, plan, Settings(strategy, "react", **settings), GroundedQuestion(make)), name="q"
    )


def test_a_question_is_answered_from_what_was_read(make):
    asks = []
    plan = answer_with(rollout(make), *(seen(asks, text) for text in (
        "Subgoal 1: Find out whom Milhouse was named after.", f"{PAGE};", f" {READ};", f" {ASK}", " Richard  Nixon",
        "Yes, I will stop planning.",
    )))  # fmt: skip
    assert plan.success and plan.outcome["f1"] == 1.0 and plan.invalid == 0
    assert [step.observation for step in plan.steps] == [
        "Milhouse Van Houten",
        plan.steps[1].observation,
        "Richard Nixon",
    ]
    assert "named after U.S. president Richard Nixon" in plan.steps[1].observation
    assert asks[4].role == "answerer" and plan.steps[1].observation in asks[4].prompt
    assert asks[4].prompt.endswith("\nQuestion: Who was Milhouse Van Houten named after?\nAnswer:\n\n")
    assert plan.usage_by_role["answerer"]["completion_tokens"] == 5 and plan.steps[2].completion_tokens == 10
    assert asks[5].prompt.endswith("is Richard Nixon. Should we stop planning?\n<|assistant|>\n")


def test_it_is_an_environment_that_says_what_it_needs(make):
    env = GroundedQuestion(make)
    assert isinstance(env, Environment) and QUESTION.text in env.reset()
    env.step(PAGE), env.step(READ)
    with pytest.raises(Unanswered) as asked:
        env.step(ASK)
    assert asked.value.question == "Who was Milhouse Van Houten named after?" and "R3" not in str(env.view())
    env.answer("nobody\nat all")
    assert env.step(ASK) == ("nobody at all", 0.0, False) and env.outcome()["success"] == 0.0
    with pytest.raises(Unanswered):  # an answer serves one action
        env.step("R4 = QA([R3], Question: who?)")


@pytest.mark.parametrize(
    "action", ["R1 = KnowledgeQuery()", "R2 = QA([R1], Question: x)", f"{PAGE}; {READ}", "Search[x]", ""]
)
def test_what_cant_be_done_is_answered_with_the_reason(make, action):
    env = GroundedQuestion(make)
    assert env.step(action)[0].startswith("Error: ") and not env.had_effect
    assert env.outcome() == {"success": 0.0, "f1": 0.0, "em": 0.0}


@pytest.mark.parametrize("action, gold", [("R1 = Calculator(2 > 1)", "yes"), ("R1 = Calculator(1 > 2)", "no")])
def test_a_comparison_answers_yes_or_no(make, action, gold):
    question = Question("q", "k", "Is two more than one?", gold)
    env = GroundedQuestion(partial(QuestionEnv, question, make().index, ("accuracy",)))
    env.step(action)
    assert env.outcome() == {"success": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize("seed", range(2))
def test_a_random_model_behind_masks_writes_nothing_invalid(make, seed):
    plan = played(rollout(make, temperature=1.5, seed=seed, max_steps=4, max_new_tokens=700))
    assert plan.steps and plan.invalid == plan.misordered == 0


@pytest.mark.parametrize("text", [*HOSTILE, PAGE, f"{PAGE}; {READ}; {ASK}"])
def test_without_masks_whatever_is_written_is_recorded(make, text):
    one = rollout(make, constrained=False, max_steps=4, max_subgoals=3)
    one.start()
    for _ in range(30):
        if not one.over:
            answer_with(one, text)
    assert one.over and all(step.verdict == "ok" or step.reason for step in one.episode.plan.steps)


def test_a_suite_is_played_in_lumos_own_space_where_it_has_one(make):
    suite = Suite("hotpotqa/local", "hotpotqa", [Task("q1", "easy", make)], 10, ("success", "f1", "em"))
    ours = grounded(suite)
    assert (ours.knowledge, ours.name, most_subgoals(suite)) == ("lumos/qa", suite.name, 5)
    assert isinstance(ours.tasks[0].make(), GroundedQuestion)
    household = Suite("household/seed 0", "household", [])
    assert grounded(household) is household and most_subgoals(household) is None
