"""Agents held to one knowledge can be judged by another."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import header, label, play
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.household.env import NAME
from constrained.environments.suite import open_suite
from constrained.models import load
from tests.agents.random_model import RANDOM
from tests.agents.scripted import answer_with, may
from tests.environments.household.small_house import small_house

MODELS = {"policy": load((RANDOM.model, RANDOM.tokenizer))}
HOUSEHOLD, FORM = map(ActionKnowledge.from_lark, ("household", "household_form"))
SUITE = open_suite("household", limit=2)


def rollout(knowledge=FORM, judge=HOUSEHOLD, **given):
    environment = HouseholdEnv(small_house())
    plan = Plan(environment.task, knowledge.name, "act", "script", True, 0)
    return Rollout(Episode(MODELS, knowledge, plan, Settings("act", "act", **given), environment, judge=judge))


def test_in_form_only_what_was_shown_can_be_named_anywhere():
    playing = rollout()
    playing.start()
    assert may(playing, " go to shelf 1") and may(playing, " open table 1") and may(playing, " look")
    assert not may(playing, " go to narnia 1") and not may(playing, " take mug 1 from shelf 1")  # not shown yet
    answer_with(playing, " go to shelf 1", " go to fridge 1", " open fridge 1")
    for action in ("take mug 1 from fridge 1", "heat mug 1 with table 1", "use potato 1", "slice mug 1 with potato 1"):
        assert may(playing, f" {action}")
    assert not may(playing, " take mug 10 from shelf 1")


def test_the_verdicts_are_the_judges():
    actions = [" go to shelf 1", " put mug 1 in/on shelf 1", " take mug 1 from shelf 1", " go to fridge 1", " look"]
    plan = answer_with(rollout(), *actions)
    assert [step.verdict for step in plan.steps] == ["ok", "invalid", "ok", "ok", "ok"]
    assert [step.had_effect for step in plan.steps] == [True, False, True, True, True]
    assert plan.invalid == 1 and "put" in plan.steps[1].reason
    alone = answer_with(rollout(judge=None), *actions)
    assert {step.verdict for step in alone.steps} == {"ok"}


def test_who_judges_as_the_masks_do_changes_nothing():
    actions = [" go to shelf 1", " take mug 1 from shelf 1", " go to sinkbasin 1", " clean mug 1 with sinkbasin 1"]
    plans = [answer_with(rollout(HOUSEHOLD, judge), *actions).to_dict() for judge in (None, HOUSEHOLD)]
    assert plans[0] == plans[1] and plans[0]["misordered"] == 0


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_form_only_admits_all_that_is_possible_with_what_was_shown(seed):
    env, rng = HouseholdEnv(make_game(seed)), random.Random(seed)
    memory, place = env.memory(env.reset()), FORM
    for _ in range(12):
        place = place.bind_view(memory.slots())
        shown = set().union(*(memory.slots()[slot] for slot in ("ROOM", "SHOWN")))
        possible = [
            action for action in env.admissible() if shown.issuperset(re.findall(NAME, action.partition(" ")[2]))
        ]
        assert all(place.judge(action) for action in possible)
        action = rng.choice(possible)
        memory.update(action, env.step(action)[0])
        place = place.after(action)
        if env.done:
            break


@pytest.mark.parametrize("batch", [1, 2])
def test_every_game_of_a_run_is_judged_so(batch):
    looking = ActionKnowledge.from_lark('%declare _STEP\nstart: | look\nlook: "look" _STEP start\n')
    settings = Settings("act", "act", max_steps=4, temperature=1.0, seed=4)
    lines = list(play(SUITE.tasks, HOUSEHOLD, MODELS, settings, batch=batch, judge=looking))
    steps = [line["step"] for line in lines if "step" in line]
    assert [step["verdict"] for step in steps] == ["ok" if step["action"] == "look" else "invalid" for step in steps]
    assert sum(line["end"]["invalid"] for line in lines if "end" in line) > len(steps) / 2


def test_runs_under_other_knowledge_are_other_runs():
    own = header(SUITE, HOUSEHOLD, MODELS, Settings())
    other = header(SUITE, FORM, MODELS, Settings(), HOUSEHOLD)
    assert "judge" not in own and other["judge"] == own["knowledge"] != other["knowledge"]
    assert "household_form" in label(other) and "household_form" not in label(own)
    assert len({label(head) for head in (own, other, header(SUITE, FORM, MODELS, Settings()))}) == 3
