"""Planning problems as environments: what an action changes, what is missing, and plans to the goal."""

from random import Random

import pytest

from benchmarks.planbench.simulator import Simulator
from constrained import generate_plan
from constrained.decoding.choosers import Uniform
from constrained.environments.base import Environment, WithEffect, WithFacts, WithForm, WithOutcome, WithView
from constrained.environments.pddl import PddlEnvironment
from constrained.errors import DataError, PddlError
from constrained.knowledge.pddl import import_pddl
from constrained.planning import FactSet, PlanningTask
from tests.decoding.tiny import tiny
from tests.planning.domains import ALL, FERRY, FERRY_PROBLEM
from tests.planning.problems import PLANBENCH, planbench
from tests.planning.small import distances, drawn, task_of


def ferry(**options) -> PddlEnvironment:
    return PddlEnvironment(FERRY, FERRY_PROBLEM, **options)


def test_it_has_the_abilities_of_an_environment():
    kinds = Environment, WithEffect, WithFacts, WithForm, WithOutcome, WithView
    assert all(isinstance(ferry(), kind) for kind in kinds)


def test_an_action_changes_the_facts_and_an_impossible_one_says_what_is_missing():
    env = ferry()
    first = env.reset()
    assert (
        "shore: north, south; car: van, bus.\n" in first
        and "at: bus, south; van, north\n" in first
        and first.endswith("Your task is to: at van south")
    )
    assert env.step("board bus north") == ("Nothing happens: it needs at bus north.", 0.0, False)
    assert not env.had_effect
    assert env.step("jump") == ("Nothing happens: there is no such action.", 0.0, False)
    answer, _, _ = env.step("board van north")
    assert answer == "Now: aboard van, not at van north, not no-car-aboard." and env.had_effect
    env.step("sail north south")
    assert env.step("debark van south")[1:] == (1.0, True) and env.outcome() == {"success": 1.0}
    env.reset()
    assert env.outcome() == {"success": 0.0} and env.facts_now().state == FactSet(env.facts.task.initial)


def test_files_are_read_and_named_in_errors(tmp_path):
    (tmp_path / "boat.pddl").write_text(FERRY)
    (tmp_path / "cross.pddl").write_text(FERRY_PROBLEM.replace("at van south", "at van west"))
    with pytest.raises(PddlError, match=r"cross.pddl:3:\d+: no object 'west'"):
        PddlEnvironment(tmp_path / "boat.pddl", tmp_path / "cross.pddl")
    with pytest.raises(DataError, match="can't read .*nowhere"):
        PddlEnvironment(tmp_path / "nowhere", tmp_path / "cross.pddl")


def test_a_constant_that_no_action_names_is_an_object_of_every_problem():
    domain = (
        "(define (domain d) (:types t) (:constants a b - t) (:predicates (p ?x - t) (q ?x - t))"
        " (:action go :parameters (?x - t) :precondition (q ?x) :effect (p ?x)))"
    )
    problem = "(define (problem p) (:domain d) (:objects c - t) (:init (q a) (q c)) (:goal (p a)))"
    env = PddlEnvironment(domain, problem)
    env.reset()
    assert env.applicable() == ["go a", "go c"]
    assert env.step("go a")[1:] == (1.0, True)


def test_actions_are_written_as_the_knowledge_writes_them():
    knowledge = import_pddl(FERRY, texts={"board": "drive {c} aboard at {s}"}).knowledge()
    env = PddlEnvironment(None, FERRY_PROBLEM, knowledge=knowledge)
    assert env.applicable() == ["sail north south", "drive van aboard at north"]
    assert env.step("drive van aboard at north")[0].startswith("Now: aboard van")


def plans(domain: str, problem: str, level: str, played: bool, **options):
    env = PddlEnvironment(domain, problem)
    options = {"model": "random", "strategy": "act", "level": level, **options}
    return generate_plan(env.task, env.knowledge, environment=env if played else None, **options)


def executed(domain: str, problem: str, path: list[str]) -> bool:
    """Whether a simulator of our own can do every action; whether the goal holds then."""
    simulator = Simulator(domain, problem)
    state = simulator.start
    for action in path:
        possible = simulator.applicable(state)
        assert action.lower() in possible
        state = simulator.after(possible[action.lower()], state)
    return simulator.holds(simulator.goal, {}, state)


@pytest.mark.parametrize("name", [name for name in ALL if name != "office"])
@pytest.mark.parametrize("played", [True, False])
def test_plans_are_executable_and_end_where_the_goal_holds(name, played):
    plan = plans(*ALL[name], "goal", played)
    assert plan.success == executed(*ALL[name], plan.path) and plan.invalid == plan.misordered == 0
    assert plan.success and plan.open_loop == (not played)


@pytest.mark.parametrize("name", PLANBENCH)
def test_whole_plans_of_planbench_are_executable(name):
    domain, problems = planbench(name)
    problem = problems[0]
    plan = plans(domain, problem, "state", False, max_steps=6)
    assert executed(domain, problem, plan.path) == plan.success and len(plan.path) <= 6
    if not plan.success:
        assert plan.note.startswith("the plan ends without its goal, at the limit of 6 steps: missing is ")


@pytest.mark.filterwarnings("ignore:the embedded model knows only households")
def test_a_text_model_writes_a_whole_plan_token_by_token():
    plan = plans(FERRY, FERRY_PROBLEM, "state", False, model="embedded", max_steps=4)
    executed(FERRY, FERRY_PROBLEM, plan.path)
    assert plan.usage["completion_tokens"] > 0 and plan.path


@pytest.mark.parametrize("name", ["blocks", "gripper", "ferry", "logistics"])
@pytest.mark.parametrize("tokens", [1, 30, 90, 500])
def test_a_text_ends_only_where_the_goal_holds_or_says_which_limit_it_met(name, tokens):
    model = tiny(seed=tokens, context=4_000)
    plan = plans(*ALL[name], "state", False, model=model, max_steps=12, max_new_tokens=tokens)
    assert executed(*ALL[name], plan.path) == plan.success
    assert len(plan.path) <= 12 and plan.usage["completion_tokens"] <= tokens
    if not plan.success:
        met = "the limit of 12 steps" if len(plan.path) == 12 else f"the limit of {tokens} tokens"
        assert plan.note.startswith("the plan ends without its goal") and met in plan.note


class Watched(Uniform):
    """A random choice that holds what it is given against brute force."""

    def __init__(self, task: PlanningTask):
        self.goals, states = distances(task, 3_000)
        self.ways = {state: {str(a): task.apply(state, a) for a in task.applicable(state)} for state in states}
        self.seen = 0

    def choose(self, choice):
        here = choice.facts.state
        meant = [str(one) for text in choice.actions for one in choice.facts.actions[text]]
        begun = {action for action, after in self.ways[here].items() if self.leads_on(after, here)}
        assert not begun or begun & set(meant), "the last way to the goal was cut off"
        self.seen += 0 < len(begun) < len(self.ways[here])
        return super().choose(choice)

    def leads_on(self, after: FactSet, here: FactSet) -> bool:
        """Whether the goal can be reached from a state without coming back to another."""
        seen, work = {here, after}, [after] if after != here else []
        for state in work:
            new = set(self.ways[state].values()) - seen
            seen |= new
            work += new
        return any(self.goals.get(state) == 0 for state in work)


@pytest.mark.parametrize("name", ["blocks", "logistics", "sokoban"])
@pytest.mark.parametrize("played", [True, False])
def test_sound_pruning_never_cuts_the_last_way(name, played):
    """Delete relaxation together with what was done before, along whole episodes of drawn problems."""
    seen = 0
    for seed in range(12):
        domain, problem = drawn(name, Random(f"{name} {seed}"))
        watched = Watched(task_of(domain, problem))
        if watched.goals and next(iter(watched.ways)) in watched.goals:
            plans(domain, problem, "goal-sound", played, model=watched, max_steps=40, seed=seed)
            seen += watched.seen
        if seen > 10:
            return
    raise AssertionError(f"too few choices in which something leads on and something doesn't: {seen}")


def test_the_last_steps_are_kept_for_the_goal():
    """Three steps are needed: with a limit of three, none of them is wasted, at the level `state`, too."""
    for seed in range(5):
        assert plans(FERRY, FERRY_PROBLEM, "state", False, max_steps=3, seed=seed).success


def test_at_the_level_form_actions_may_be_impossible_and_are_judged():
    plan = plans(FERRY, FERRY_PROBLEM, "form", True, max_steps=15)
    assert plan.misordered > 0 and plan.invalid == 0
    assert all(step.had_effect == (step.verdict == "ok") for step in plan.steps)


def test_a_goal_out_of_reach_is_said_before_anything_is_planned():
    with pytest.raises(PddlError, match="the goal can't be reached"):
        PddlEnvironment(FERRY, FERRY_PROBLEM.replace("(boat-at north)", ""))


def test_its_own_knowledge_is_the_default():
    plan = generate_plan("take the van across", environment=ferry())
    assert plan.success and plan.knowledge == ferry().knowledge.name and plan.invalid == 0


@pytest.mark.parametrize("model", [None, "random"])
def test_a_goal_that_holds_at_the_start_is_reached_in_no_steps(model):
    solved = FERRY_PROBLEM.replace("(:goal (at van south))", "(:goal (at van north))")
    assert solved != FERRY_PROBLEM
    plan = generate_plan("nothing", environment=PddlEnvironment(FERRY, solved), model=model)
    assert plan.success and not plan.steps and plan.outcome == {"success": 1.0}
    plan = generate_plan("nothing", knowledge=import_pddl(FERRY).knowledge().for_problem(solved), model=model)
    assert plan.success and not plan.steps
