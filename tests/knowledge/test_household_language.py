"""household.lark, bound to what is in view, admits exactly what the game would answer: no more, no less."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.household_solver import solve
from constrained import ActionKnowledge
from constrained.environments.household import HouseholdEnv, load_games, make_game
from tests.data import shared
from tests.environments.household.small_house import small_house
from tests.knowledge.enumerate import texts

HOUSEHOLD = ActionKnowledge.from_lark("household")
IDLE = ("go to", "examine", "look", "inventory", "close")


def play(env: HouseholdEnv, rng: random.Random, steps: int, first=()) -> set[str]:
    """Play at random, comparing at every step; return the kinds of action that were done."""
    knowledge, done = HOUSEHOLD, set()
    for n in range(steps):
        knowledge = knowledge.bind_view(env.admissible())
        admitted = texts(knowledge.next_action())
        assert admitted == set(env.admissible())
        assert knowledge.may_end
        acting = sorted(a for a in admitted if not a.startswith(IDLE))
        action = (
            first[n] if n < len(first) else rng.choice(acting if acting and rng.random() < 0.7 else sorted(admitted))
        )
        env.step(action)
        knowledge = knowledge.after(action)
        done.add(action.split()[0])
        if env.done:
            break
    return done


def test_in_a_small_house_with_everything():
    done = play(HouseholdEnv(small_house()), random.Random(5), 150)
    assert done >= {"go", "take", "put", "open", "close", "use", "slice", "examine", "look", "inventory"}


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), rng=st.randoms(use_true_random=False))
def test_in_made_games(seed, rng):
    play(HouseholdEnv(make_game(seed)), rng, 12)


def test_along_the_solution_of_made_games():
    done = set()
    for seed in range(12):
        game = make_game(seed)
        done |= play(HouseholdEnv(game), random.Random(seed), 30, first=solve(game))
    assert done >= {"go", "open", "take", "put", "clean", "heat", "cool", "use"}


def test_in_alfworlds_games():
    shared("alfworld/games_2.1.1_train.tar.xz")
    rng = random.Random(0)
    for game in load_games("train", every=200):
        play(HouseholdEnv(game), rng, 12, first=solve(game)[:6])


def test_what_has_no_effect_is_never_admitted_and_changes_no_place():
    env = HouseholdEnv(small_house())
    knowledge = HOUSEHOLD.bind_view(env.admissible())
    for action in ("go to table 1", "take knife 1 from table 1"):
        env.step(action)
        knowledge = knowledge.after(action).bind_view(env.admissible())
    before = texts(knowledge.next_action())
    for action in ("take mug 1 from shelf 1", "put knife 1 in/on fridge 1", "heat knife 1 with microwave 1", "sing"):
        env.step(action)
        assert not env.had_effect and not knowledge.judge(action)
        assert texts(knowledge.bind_view(env.admissible()).next_action()) == before
