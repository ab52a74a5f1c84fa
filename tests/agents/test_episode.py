"""Agents that would walk in circles don't, where the memory knows better."""

import pytest

from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.levels import GOAL, GOAL_SOUND, STATE
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout, schedule
from constrained.agents.settings import Settings
from constrained.environments.household import HouseholdEnv, make_game
from constrained.models import load
from tests.agents.random_model import RANDOM
from tests.agents.scripted import answer_with, may
from tests.environments.household.small_house import small_house

MODELS = {"policy": load((RANDOM.model, RANDOM.tokenizer))}
KNOWLEDGE = ActionKnowledge.from_lark("household")


def rollout(environment, **settings):
    plan = Plan(environment.task, "household", "act", "random", True, 0)
    return Rollout(Episode(MODELS, KNOWLEDGE, plan, Settings("act", "act", **settings), environment), name="task")


def back_and_forth(playing):
    """Go where one was last, if one may; else to the first place one may go to, or do what else there is to do."""
    gone = [step.action for step in playing.episode.plan.steps if step.action.startswith("go to ")]
    environment = playing.episode.surroundings.environment
    anywhere = [f"go to {name}" for name in environment.game.receptacles]
    others = [action for action in environment.admissible() if not action.startswith("go to ")]
    opening = [action for action in others if action.startswith("open ")]
    return next(f" {a}" for a in [*gone[::-1], *anywhere, *opening, *others] if may(playing, f" {a}"))


@pytest.mark.parametrize("seed", range(6))
def test_a_loop_is_a_search_at_level_goal(seed):
    steps = {}
    for level in (GOAL, STATE):
        playing = rollout(HouseholdEnv(make_game(seed)), level=level, max_steps=50)
        playing.start()
        while not playing.over and not playing.episode.surroundings.memory.shown.things("k"):
            answer_with(playing, back_and_forth(playing))
        gone = [action for action in playing.episode.path if action.startswith("go to ")]
        assert level == STATE or len(gone) == len(set(gone))
        steps[level] = len(playing.episode.plan.steps)
        assert playing.episode.plan.invalid == playing.episode.plan.misordered == 0
    assert steps[GOAL] <= steps[STATE]


def test_only_level_goal_leaves_out_what_looks_useless():
    for level in (STATE, GOAL_SOUND, GOAL):
        playing = rollout(HouseholdEnv(small_house()), level=level)
        answer_with(playing, " go to fridge 1", " go to shelf 1")  # where the mug is that is to be cleaned
        assert may(playing, " go to fridge 1") == may(playing, " look") == (level != GOAL)
        assert may(playing, " take mug 1 from shelf 1")


@pytest.mark.parametrize("seed", range(4))
def test_with_random_weights_nothing_is_wrong(seed):
    playing = rollout(HouseholdEnv(make_game(seed)), temperature=1.0, seed=seed, max_steps=15, level=GOAL)
    for _ in schedule([playing]):
        pass
    plan = playing.episode.plan
    assert playing.failure is None and plan.invalid == plan.misordered == 0
    assert all(step.had_effect for step in plan.steps)
