"""A room prior from the first observation: its receptacles, its task, and what the task needs where it may be."""

import pytest

from benchmarks.household_solver import solve
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.household.generate import prior_game
from constrained.environments.household.task_spec import TASK_TYPES
from constrained.errors import GameError
from tests.environments.household.small_house import small_house

ROOM = "You are in the middle of a room. Looking quickly around you, you see {}.\n\nYour task is to: {}"


def contents(game):
    return game.contents(game.start.state)


@pytest.mark.parametrize("task_type", TASK_TYPES)
@pytest.mark.parametrize("seed", range(3))
def test_it_looks_like_the_room_and_its_task_can_be_done_there(task_type, seed):
    real = HouseholdEnv(make_game(seed, task_type))
    prior = real.prior(real.reset())
    assert prior.reset() == real.reset()
    assert contents(prior.game) != contents(real.game)
    *_, (_, _, done) = [prior.step(action) for action in solve(prior.game)]
    assert done


def test_the_thing_is_wherever_it_may_be_kept_and_nothing_else_is_anywhere():
    game = prior_game(ROOM.format("a fridge 1, a sofa 1, a sidetable 2, and a sidetable 1", "put a mug in sidetable."))
    assert contents(game) == {"fridge 1": {"mug 1"}, "sofa 1": set(), "sidetable 2": set(), "sidetable 1": set()}


def test_what_nobody_has_heard_of_may_be_anywhere_but_where_it_must_go():
    game = prior_game(ROOM.format("a fridge 1, a niche 1, and a safe 1", "put a widget in safe."))
    assert contents(game) == {"fridge 1": {"widget 1"}, "niche 1": {"widget 1"}, "safe 1": set()}


def test_it_does_not_know_what_the_game_knows():
    real = HouseholdEnv(small_house())
    assert "mug 1" in contents(real.game)["shelf 1"]
    prior = real.prior(real.reset())
    assert all("mug 1" in contents(prior.game)[name] for name in ("cabinet 1", "cabinet 2", "shelf 1"))


@pytest.mark.parametrize("text", ["", "You see nothing.", ROOM.format("a desk 1", "sing a song.")])
def test_a_text_that_is_no_task_is_refused(text):
    with pytest.raises(GameError, match="isn't understood"):
        prior_game(text)
