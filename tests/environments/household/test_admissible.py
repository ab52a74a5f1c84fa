"""What is listed as admissible is what has an effect, in every household."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.original import every_command
from constrained import ActionKnowledge
from constrained.environments.household import HouseholdEnv, load_games, make_game
from tests.data import shared
from tests.environments.household.small_house import small_house, wander


def check_moment(env: HouseholdEnv, tried: list[str]) -> None:
    """The commands tried have an effect exactly if they are admissible."""
    admissible = set(env.admissible())
    for command in tried:
        probe = HouseholdEnv(env.game)
        probe.truth = env.truth
        probe.step(command)
        assert probe.had_effect == (command in admissible), command
        assert probe.had_effect or probe.truth is env.truth


def test_in_the_small_house_exactly_the_admissible_commands_have_an_effect():
    env = HouseholdEnv(small_house())
    for _ in wander(env, random.Random(1), 60):
        check_moment(env, every_command(env.game))


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), walk=st.randoms(use_true_random=False))
def test_in_made_games_exactly_the_admissible_commands_have_an_effect(seed, walk):
    env = HouseholdEnv(make_game(seed))
    spelled = every_command(env.game)
    for _ in wander(env, walk, 12):
        check_moment(env, env.admissible() + walk.sample(spelled, 40))


def test_in_alfworld_games_exactly_the_admissible_commands_have_an_effect():
    shared("alfworld/games_2.1.1_train.tar.xz")
    rng = random.Random(0)
    for game in load_games("train", every=150):
        env = HouseholdEnv(game)
        spelled = every_command(env.game)
        for _ in wander(env, rng, 15):
            check_moment(env, env.admissible() + rng.sample(spelled, 40))


def test_slots_bound_to_the_view_admit_exactly_the_admissible_commands():
    env, knowledge = HouseholdEnv(make_game(3)), ActionKnowledge.from_lark("household")
    env.reset()
    rng = random.Random(0)
    for _ in range(30):
        bound = knowledge.bind_view(env.admissible())
        assert bound.next_actions() == sorted(env.admissible())
        action = rng.choice(env.admissible())
        env.step(action)
        knowledge = bound.after(action)
