"""What chooses in a model's place: any admitted action with equal chances, or the shortest path."""

import random
from collections import Counter

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.agents.generate import unfit
from constrained.decoding.choosers import Choice, Shortest, Uniform
from constrained.environments.household import HouseholdEnv, make_game
from constrained.errors import ConstrainedError, ConstrainedWarning, ModelError
from constrained.models import load, load_roles

DESK = ActionKnowledge.from_lark("""
%declare _STEP ORDER REASON

// Help a customer with an order.
start: lookup{ORDER}
// lookup: look up ORDER.
lookup{o}: "look up " o _STEP (refund{o} | lookup{ORDER})
// refund: pay back the order that was looked up.
refund{o}: "refund " o " because " REASON _STEP close
// close: end the conversation.
close: "close"
""").bind(ORDER=["A17", "B42"], REASON=["it was broken", "it was late"])


def test_each_whole_action_is_equally_likely():
    actions = ("a", "abc", "abd", "abe")  # token by token, "a" alone would get far more
    rng = random.Random(0)
    found = Counter(Uniform().choose(Choice("", actions, random=rng)) for _ in range(4000))
    assert all(900 < found[action] < 1100 for action in actions)


def test_the_same_seed_gives_the_same_plan():
    plans = [generate_plan("refund A17", DESK, model="random", seed=seed).path for seed in (1, 1, 2, 3, 4)]
    assert plans[0] == plans[1] and len(set(map(tuple, plans))) > 1
    assert all(DESK.check(path).ok for path in plans)


def test_without_a_model_the_plan_is_the_shortest():
    plan = generate_plan("refund A17", DESK, model="none")
    assert plan.path == ["look up A17", "refund A17 because it was broken", "close"]
    assert plan.model == "none" and plan.usage["completion_tokens"] == 0
    assert Shortest().choose(Choice("", ("b", "a"))) == "a"


def test_a_chooser_of_ones_own_acts_in_an_environment():
    class Last:
        name, digest = "last", "1"

        def choose(self, choice):
            assert choice.knowledge is not None and "Task: " in choice.remembered and choice.observation
            return choice.actions[-1]

    environment = HouseholdEnv(make_game(3))
    plan = generate_plan(environment.task, environment=environment, model=Last(), max_steps=4, strategy="act")
    assert plan.model == "last" and len(plan.steps) == 4 and plan.invalid == plan.misordered == 0


def test_what_a_chooser_cannot_do_is_told():
    class Wrong:
        name, digest = "wrong", ""

        def choose(self, choice):
            return "fly"

    for given, problem in [
        ({"model": "random", "constrained": False}, "masks"),
        ({"model": "random", "strategy": "lumos"}, "planner must write a text"),
        ({"model": Wrong()}, "not admitted"),
    ]:
        with pytest.raises(ConstrainedError, match=problem):
            generate_plan("put a mug in the cabinet", **given)
    with pytest.raises(ConstrainedError, match="free text"):
        generate_plan("who?", "hotpotqa", model="random")
    with pytest.raises(ModelError, match="writes no text"):
        load("random")
    assert load_roles("none")["policy"].name == "none"


def test_the_embedded_model_says_at_once_that_it_knows_only_households():
    assert unfit(None, household=True) == unfit("my/model", household=False) == ""
    for model in (None, "embedded"):
        with pytest.warns(ConstrainedWarning, match="'random' .any admitted action. or 'none'"):
            assert generate_plan("refund A17", DESK, model=model, strategy="act").model == "embedded"
