"""A model reads what is known now in every environment that tells its facts."""

from constrained import ActionKnowledge
from constrained.agents.surroundings import Surroundings
from constrained.environments.base import AgentMemory, WithMemory
from constrained.environments.memory import WorldMemory
from constrained.environments.pddl import PddlEnvironment
from constrained.environments.world import WorldEnvironment
from constrained.knowledge.world import read_world
from tests.environments.walk import WALK
from tests.knowledge.world.kitchen import KITCHEN

DOMAIN = """(define (domain d) (:predicates (on ?x) (near ?x))
(:action press :parameters (?x) :precondition (near ?x) :effect (on ?x)))"""
PROBLEM = "(define (problem p) (:domain d) (:objects lamp fan) (:init (near lamp)) (:goal (on lamp)))"


def test_a_model_reads_what_is_known_now_in_a_lark_world():
    env = WorldEnvironment(read_world("world"))
    world = Surroundings(env)
    assert isinstance(env, WithMemory) and not world.remembered() and world.reset()
    assert isinstance(world.memory, AgentMemory)
    first = world.remembered().splitlines()
    assert first[:2] == ["Task: lies letter office", "There is: room: hall, office, cellar; thing: key, letter."]
    assert "at: hall" in first and first[-1] == "Last: none"
    before = world.situation()
    world.step("go to office")
    text = world.remembered().splitlines()
    assert "at: office" in text and "lies: key, office" in text and text[-1] == "Last: go to office"
    world.step("take letter")
    assert world.remembered().splitlines()[-1] == "Last: take letter, no effect"
    assert before != world.situation() and before in world.history.tried


def test_shows_lines_say_it_in_other_words():
    env = WorldEnvironment(read_world(f'{WALK}//: shows "Here: " for at(r): "{{r}}", " with a key" if key(r)\n'))
    assert env.reset().splitlines()[0] == "Here: a"
    env.step("go to e")
    assert env.memory("").text().splitlines()[1:] == ["Here: e with a key", "Last: none"]


def test_a_memory_of_answers_alone_tells_all_facts_where_no_line_says_how():
    memory = WorldMemory(read_world(KITCHEN), "Your task is to: put a hot cup in cupboard.")
    memory.update("look", "On the shelf, you see a cup.")
    lines = memory.text().splitlines()
    assert lines[0] == "Task: put a hot cup in cupboard" and lines[-1] == "Last: look"
    assert "at: shelf" in lines and "in: cup, shelf" in lines


def test_a_model_reads_the_facts_of_a_pddl_problem():
    world = Surroundings(PddlEnvironment(DOMAIN, PROBLEM))
    world.reset()
    world.step("press lamp")
    assert world.remembered() == "Task: on lamp\nThere is: object: lamp, fan.\non: lamp\nnear: lamp\nLast: press lamp"


def test_in_a_plan_written_ahead_the_situation_is_what_is_supposed():
    env = PddlEnvironment(DOMAIN, PROBLEM)
    world = Surroundings(env)
    world.reset()
    facts = env.facts_now()
    world.suppose(facts)
    before = world.situation()
    world.suppose(facts.after("press lamp"), "press lamp")
    assert world.situation() != before and world.history.tried[before] == {"press lamp": world.situation()}


def test_the_knowledge_of_a_world_is_not_changed_by_how_it_is_told():
    told = f'{WALK}//: means here(r) if at(r)\n//: shows "Here: " for here(r): "{{r}}"\n'
    domains = [ActionKnowledge.from_lark(one).world.domain for one in (told, WALK)]
    assert vars(domains[0]) == vars(domains[1])
