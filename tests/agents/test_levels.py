"""The levels of masks: each holds what the one before it holds, and only the last is a heuristic."""

from types import SimpleNamespace

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.agents.episode import Episode
from constrained.agents.levels import FORM, GOAL, GOAL_SOUND, LEVELS, STATE, GoalPaths, History
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.surroundings import Surroundings
from constrained.decoding.choosers import Uniform
from constrained.environments.household import HouseholdEnv, make_game
from constrained.errors import ConstrainedError
from constrained.planning import GroundAction, PlanningTask, read_domain, read_problem_of
from constrained.planning.relaxed import Relaxed
from tests.planning import domains
from tests.planning.small import PROBLEMS, task_of

KNOWLEDGE = ActionKnowledge.from_lark("household")


def admitted(level: str, actions: list[str]) -> list[str]:
    """What may be written in a household after some actions."""
    environment = HouseholdEnv(make_game(5))
    plan = Plan(environment.task, "household", "act", "random", True, 0)
    episode = Episode({"policy": Uniform()}, KNOWLEDGE, plan, Settings("act", "act", level=level), environment)
    rollout = Rollout(episode)
    rollout.start()
    for action in actions:
        episode.do(episode.new_step("", action))
    grammar = episode.next_action()
    return [text.decode() for text in grammar.automaton.start.texts(10_000)]


def test_each_level_admits_a_part_of_the_one_before():
    first = next(action for action in admitted(STATE, []) if action.startswith("go to "))
    for done in ([], [first], [first, "look"]):
        found = [set(admitted(level, done)) for level in LEVELS]
        assert found[0] >= found[1] >= found[2] >= found[3] and len(found[0]) > len(found[1])


def test_what_changed_nothing_is_not_done_again_for_the_goal():
    assert "inventory" in admitted(STATE, ["inventory"])
    assert "inventory" not in admitted(GOAL_SOUND, ["inventory"])


class Remembering:
    """An environment and its memory: rooms with ways between them."""

    def __init__(self, ways):
        self.ways, self.here = ways, "a"
        self.task = "find the way out"

    def reset(self):
        self.here = "a"
        return "a"

    def step(self, action):
        self.here = self.ways[self.here][action]
        return self.here, float(self.here == "out"), self.here == "out"

    def memory(self, _):
        return self

    def update(self, action, observation):
        pass

    def text(self):
        return self.here

    situation = text


def test_what_was_done_is_left_out_only_if_nothing_new_lies_behind_it():
    ways = {"a": {"left": "b", "right": "dead"}, "b": {"back": "a", "on": "out"}, "dead": {"wait": "dead"}}
    world = Surroundings(Remembering(ways))
    world.reset()

    def open_now():
        actions = sorted(world.environment.ways[world.environment.here])
        return world.history.without_dead_ends(actions, None, world.situation())

    assert open_now() == ["left", "right"]
    world.step("left")
    assert open_now() == ["back", "on"]
    world.step("back")
    assert open_now() == [
        "left",
        "right",
    ]  # `left` was done, but `on` behind it was not: `right` alone would be the end
    world.environment.ways["b"].pop("on")
    world.history.admitted["b"] = {"back"}
    assert open_now() == ["right"]


def facts_after(name, *actions):
    task = task_of(*PROBLEMS[name])
    state = task.initial
    for action, *arguments in map(str.split, actions):
        state = task.apply(state, GroundAction(action, tuple(arguments)))
    possible = {str(action): [action] for action in task.applicable(state)}
    return SimpleNamespace(task=task, state=state, optimistic=(), actions=possible)


def test_facts_alone_tell_dead_ends_and_what_is_helpful():
    facts, history = facts_after("a road of one way", "load a t x", "drive t x y"), History()
    actions = [*facts.actions, "something the facts don't know"]
    kept = history.without_dead_ends(actions, facts, facts.state)
    assert set(actions) - set(kept) == {"(drive t y z)"} and "something the facts don't know" in kept
    helpful = history.helpful(kept, facts, facts.state)
    assert set(helpful) < set(kept) and helpful == ["(drive t y x)"]


def test_what_cannot_be_undone_is_safe_only_if_a_way_is_found_after_it():
    """A crate pushed too far can't be pulled back, though the relaxed task thinks that one can walk round it."""
    domain = read_domain(domains.PUSHING)
    text = domains.PUSHING_PROBLEM.replace("(:goal (crate-at c5))", "(:goal (and (crate-at c3) (me-at c1)))")
    task, ways = PlanningTask(domain, read_problem_of(domain, text)), GoalPaths()
    actions = {str(action): [action] for action in task.applicable(task.initial)}
    facts = SimpleNamespace(task=task, state=task.initial, optimistic=(), actions=actions)
    assert not Relaxed.of(task).dead_end(task.apply(task.initial, actions["(push c2 c3 c4)"][0]))
    assert {text: ways.safe(facts, text) for text in actions} == {"(walk c2 c1)": True, "(push c2 c3 c4)": False}
    assert ways.from_state(task, task.initial) and str(ways.known[task.initial]) == "(walk c2 c1)"


def test_an_unknown_level_is_told():
    with pytest.raises(ConstrainedError, match="form, state, goal-sound, goal"):
        generate_plan("put a mug in the cabinet", level="gaol")
    assert FORM in LEVELS and GOAL in LEVELS
