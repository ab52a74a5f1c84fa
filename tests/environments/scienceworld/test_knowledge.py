"""`grammars/scienceworld.lark` against the simulator: what it admits, and what comes of that."""

import random

import pytest

from benchmarks.scienceworld import Trial, bindings, draw
from constrained import ActionKnowledge
from constrained.environments.scienceworld import ScienceWorldEnv
from constrained.environments.scienceworld.env import refused
from constrained.environments.scienceworld.scene import ABLE, choices_of

KNOWLEDGE = ActionKnowledge.from_lark("scienceworld")


def bound(simulator, choices=()):
    return KNOWLEDGE.bind_view(bindings(simulator, choices))


@pytest.mark.parametrize(
    "task",
    ["boil", "chemistry-mix", "find-living-thing", "grow-plant", "identify-life-stages-2", "lifespan-longest-lived",
     "power-component", "test-conductivity-of-unknown-substances", "use-thermometer"],
)  # fmt: skip
def test_the_gold_actions_are_admitted_where_they_stand(simulator, gold, task):
    actions = gold(task)
    simulator.load(task)
    choices = []
    for action in actions:
        judgement = bound(simulator, choices).judge(action)
        assert judgement, judgement
        choices = choices_of(simulator.step(action)[0])


def test_the_slots_are_those_of_the_view():
    assert KNOWLEDGE.slots == {"FREE", "OTHER", "WAIT", "NUMBER", "THING", "WANTED", *ABLE}


def test_the_things_are_those_that_the_simulator_would_name(simulator):
    simulator.load("power-component")
    for action in ("open door to workshop", "go to workshop", "pick up battery"):
        simulator.step(action)
    world = simulator.world()
    room, inventory = world.getAgentVisibleObjects(False)._2(), world.agent()
    shown, known = (
        {name for place in (room, inventory) for name in world.inputParser().getAllReferents(place, hidden)}
        for hidden in (False, True)
    )
    things = bindings(simulator)["THING"]
    assert shown <= {name.lower() for name in things} <= known
    assert "battery anode" in things and "battery in inventory" in things and "apple" not in things


def test_names_with_capitals_are_written_both_ways(simulator):
    simulator.load("test-conductivity-of-unknown-substances")
    for action in ("open door to workshop", "go to workshop"):
        simulator.step(action)
    view = bindings(simulator)
    capital = next(name for name in view["THING"] if name.startswith("unknown substance ") and name != name.lower())
    assert capital.lower() in view["MOVABLE"] and f"{capital} terminal 1" in view["TERMINAL"]


def test_only_what_is_there_is_admitted(simulator):
    simulator.load("boil")
    for action in ("open door to kitchen", "go to kitchen"):
        simulator.step(action)
    here = bound(simulator)
    for action in ("open cupboard", "examine stove", "move thermometer to sink", "close drain", "go to hallway"):
        assert here.judge(action), action
    for action in (
        "pick up metal pot",  # in the cupboard, which is closed
        "go to workshop",  # not next door
        "go to outside",  # its door is closed
        "activate table", "read stove", "eat counter", "move sink to table", "dunk thermometer into sink",
        "open cupboar", "examine stov", "examine", "wait2", "reset task", "teleport to hallway", "0",
    ):  # fmt: skip
        assert not here.judge(action), action
        assert here.judge(action).verdict == "invalid"


def test_while_a_question_is_open_only_its_answers_are_admitted(simulator):
    simulator.load("boil")
    choices = choices_of(simulator.step("look at door")[0])
    here = bound(simulator, choices)
    assert choices and all(here.judge(number) for number in choices) and here.judge("look around")
    for action in (str(len(choices)), "wait", "inventory", "look at door", "open door to kitchen", ""):
        assert not here.judge(action)


@pytest.mark.parametrize("task", ["boil", "grow-fruit", "test-conductivity"])
def test_the_simulator_knows_every_action_that_the_masks_allow(simulator, gold, task):
    actions = gold(task)[:12]
    simulator.load(task)
    rng, trial, choices = random.Random(task), Trial(simulator), []
    for i, action in enumerate(actions):
        if i % 4 == 0 and not choices:
            start = bound(simulator).next_action().automaton.start
            fates = [trial.fate(draw(start, rng)) for _ in range(30)]
            assert "unknown" not in fates and fates.count("refused") < 10
        choices = choices_of(simulator.step(action)[0])


def test_answers_that_refuse_are_told_from_others(simulator):
    """The words of the answer, against what the actions' own checks say of each action before it is done."""
    simulator.load("boil")
    for action in ("open door to kitchen", "go to kitchen", "open cupboard", "pick up thermometer", "open freezer",
                   "move metal pot to sink", "activate sink", "deactivate sink"):  # fmt: skip
        assert not refused(simulator.step(action)[0])
    trial = Trial(simulator)
    things = ["stove", "thermometer", "metal pot", "cupboard", "fridge", "agent", "air", "water", "red apple",
              "kitchen", "door to hallway", "door to outside", "hallway", "outside", "nothing"]  # fmt: skip
    verbs = ["open", "close", "go to", "activate", "deactivate", "disconnect", "look at", "look in", "read", "pick up",
             "eat", "flush", "focus on"]  # fmt: skip
    pairs = [f"{verb} {one} {word} {other}" for verb, word in (("move", "to"), ("pour", "into"), ("dunk", "into"),
             ("connect", "to")) for one in things[:9] for other in things[:6]]  # fmt: skip
    actions = [f"{verb} {thing}" for verb in verbs for thing in things] + random.Random(0).sample(pairs, 60)
    fates = []
    for action in actions:
        if simulator.step("look around")[1] < 0:
            simulator.load("boil")
        fates.append(trial.fate(action))
        observation, _, _ = simulator.step(action)
        assert refused(observation) == (fates[-1] in ("refused", "unknown")), (action, fates[-1], observation)
        while choices := choices_of(observation):
            observation, _, _ = simulator.step(choices[0])
    assert {"done", "refused", "unknown"} <= set(fates)


def test_a_view_is_asked_for_once_a_step(installed):
    env = ScienceWorldEnv("boil")
    env.reset()
    assert env.view() == env.view() and env._view is not None
    env.step("open door to kitchen")
    assert env._view is None and "kitchen" in env.view()["WAY"]
    env.close()
