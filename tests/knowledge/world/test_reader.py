"""The `//:` lines of a file become a planning domain; what is wrong in them is said with its place."""

import lark
import pytest

from constrained import ActionKnowledge
from constrained.errors import GrammarError
from constrained.knowledge.world import read_world
from constrained.knowledge.world_state import WorldState
from constrained.planning import PlanningTask
from constrained.planning.task import GroundAction
from tests.knowledge.world.kitchen import KITCHEN


@pytest.fixture(scope="module")
def world():
    return read_world(KITCHEN)


def texts(world, task, state):
    return sorted(WorldState(world, task, state).actions)


def test_a_file_without_such_lines_has_no_world():
    assert read_world("household") is None or read_world("household").domain.actions
    assert read_world('start: "a"  //: type place\n') is None  # a comment behind a rule is a comment


def test_lark_and_we_still_load_the_file(world):
    lark.Lark(KITCHEN, parser="earley")
    knowledge = ActionKnowledge.from_lark(KITCHEN)
    assert knowledge.actions["goto"] == "goto: go to a place."
    assert "//:" not in knowledge.to_text() and "It needs: not at PLACE." in knowledge.to_text()


def test_the_meaning_is_that_of_a_planning_domain(world):
    task = PlanningTask(world.domain, world.problem)
    state = task.initial
    assert texts(world, task, state) == ["go to cupboard", "go to microwave 1", "look", "take cup from shelf"]
    for text in (
        "take cup from shelf",
        "go to cupboard",
        "open cupboard",
        "go to microwave 1",
        "heat cup with microwave 1",
    ):
        (action,) = WorldState(world, task, state).actions[text]
        state = task.apply(state, action)
    assert not task.reached_goal(state) and ("at", "cupboard") not in state
    assert ("in", "cup", "shelf") not in state
    state = task.apply(state, GroundAction("goto", ("cupboard",)))
    state = task.apply(state, GroundAction("put", ("cup", "cupboard")))
    assert task.reached_goal(state) and ("held", "cup") not in state


def test_an_action_is_read_from_its_text(world):
    assert list(world.read("take cup from shelf")) == [("take", {"?t": "cup", "?p": "shelf"})]
    assert list(world.read("sing")) == []


def test_a_list_says_several_facts_and_a_type_those_of_its_objects():
    world = read_world(
        "//: type place, thing; tool: thing\n//: fact in(thing, place), sharp(thing)\n"
        "//: object box, bag: place; saw, axe: tool; cup: thing\n"
        "//: init in([tool, cup], box), in(cup, [bag]), sharp(tool)\nstart: go{PLACE}\n"
        '%declare _STEP PLACE\n// go: go.\n//: needs some t: thing (in(t, p))\ngo{p}: "go to " p _STEP start\n'
    )
    assert world.problem.init == (
        ("in", "saw", "box"), ("in", "axe", "box"), ("in", "cup", "box"), ("in", "cup", "bag"),
        ("sharp", "saw"), ("sharp", "axe"),
    )  # fmt: skip


def test_parameters_get_their_types_from_slots_and_from_facts(world):
    types = {a.name: [p.type for p in a.parameters] for a in world.domain.actions}
    assert types["heat"] == ["thing", "microwave"] and types["take"] == ["thing", "place"]
    plain = read_world(
        "%declare _STEP A B\n//: type place, thing\n//: fact in(thing, place)\n"
        "start: take{A, B}\n//: needs in(t, p)\n"
        'take{t, p}: "take " t " from " p _STEP start\n'
    )
    assert [p.type for p in plain.domain.actions[0].parameters] == ["thing", "place"]


def test_a_task_sentence_says_what_is_wanted(world):
    goal, pattern, holes = world.goal_of("Put a hot cup in the cupboard.")
    assert pattern == 0 and holes == {"k": "cup", "p": "cupboard"} and goal.wider == {"k": "thing", "p": "place"}
    assert world.goal_of("sing a song") is None


HEAD = "//: type place, thing\n//: fact at(place), in(thing, place), ready\n"
RULE = 'start: go\n{}\ngo: "go" _STEP start\n'


@pytest.mark.parametrize(
    "text, place, message",
    [
        ("//: fact near(plaec)", "3:15", "no type `plaec`"),
        ("//: fact at(place)", "3:10", "the fact at is declared twice"),
        ("//: type cup: cup", "3:15", "would belong to itself"),
        ("//: type place", "3:10", "the type place is declared twice"),
        ("//: neds at(p)", "3:5", "unexpected `neds`"),
        ("//: fact at(", "3:13", "the lines end"),
        ("//: object a.py: place", "3:13", 'if it is a name, write it in quotes: `"a.py"`'),
        ("//: init at(mug 1)", "3:17", 'if it is a name, write it in quotes: `"mug 1"`'),
        ("//: needs ready", "3:11", "stands above no rule"),
        ("//: init ready(a)", "3:10", "`ready` has 0 arguments, not 1"),
        ("//: object a: place\n//: init in(a, a)", "4:13", "a is a place, where a thing belongs"),
        ("//: object a: place\n//: init at([a, b])", "4:17", "no object `b`"),
        ("//: object a: place\n//: init at([[a, a]])", "4:15", "a name belongs here"),
        (
            "//: init at(a)",
            "3:13",
            "no object `a`\n//: init at(a)\n            ^\n  hint: declare it: `//: object a: place`",
        ),
        ("//: object Alice Smith: place", "3:18", 'if it is a name, write it in quotes: `"Alice Smith"`'),
        ("//: object 101, 102: place", "3:12", 'if it is a name, write it in quotes: `"101"`'),
        ("//: object a\n//: init at(a)", "4:13", "a has no type, where a place belongs"),
        ("//: init ready && ready", "3:16", "write `and`, or a comma for `&`; here belongs"),
        ("//: object a: place, b", "3:20", "the type comes after its objects"),
        ("//: object place: a, b", "3:20", "the type comes after its objects"),
        ("//: goal: ready", "3:9", "write no `:` after `goal`"),
        ("//: says ready", "3:5", "no line begins with `says`, but with type, fact, object"),
        ("//: goal exists p: place (at(p))", "3:17", "write `some` for `exists`"),
        ('//: goal "go to {P}": at({P})', "3:28", "write the name without braces"),
        ("//: goal at(_)", "3:13", "`*` stands for any object"),
        ("//: facts lit", "3:11", "did you mean `fact`, at the beginning of the line?"),
        (RULE.format("//: needs no ready"), "4:14", "write `not` for `no`"),
        (RULE.format("//: makes ready and ready"), "4:17", "join what an action makes by commas"),
        (RULE.format("//: needs at(x)"), "4:14", "its parameters are none; another is given to the rule"),
        ('//: goal "go to PLACE": at(PLACE)', "3:28", "write {PLACE} in the sentence, or `some place: place (...)`"),
        ("//: maybe redy", "3:11", "no fact `redy`"),
        ('//: tells in(t, p) by "The {p} is full."', "3:11", "nothing says which `t`"),
        ('//: tells at(p) by "The {p is full."', "3:25", "a hole is written"),
        ('//: goal "take {K}": ready', "3:10", "the goal doesn't use {K}"),
        (RULE.format("//: needs at(p)"), "4:14", "no parameter, variable or object in the action go called `p`"),
        (RULE.format("//: makes some p: place (at(p))"), "4:11", "an effect applies to `every` object"),
        (RULE.format("//: makes every p: place (every p: thing (in(p, p)))"), "4:33", "there is another p here"),
        (RULE.format("//: needs 2 > 1"), "4:13", "`>` compares values"),
        (RULE.format("//: makes at(*)"), "4:14", "only conditions may have `*`"),
        (RULE.format("//: needs asks ready"), "4:16", "only `means` and `shows` lines may have `asks`"),
        (RULE.format("//: action go\n//: needs ready") + '//: action Go\nrun: "run" _STEP', "7:12", "two actions Go"),
        ("//: again place(p)", "3:11", "place is not a declared fact"),
        ("//: means lit(p) if at(p)\n//: means lit if ready", "4:11", "`lit` has 1 arguments elsewhere"),
        ('//: tells at(p) by "The {p}) is full."', "3:28", "closes nothing"),
        (RULE.format("//: needs p in ready"), "4:11", "a world has facts: only a policy of tools looks at values"),
        (RULE.format("//: needs ready.x == 1"), "4:11", "a name belongs here"),
        (RULE.format("//: needs at([])"), "4:14", "a name belongs here"),
        (RULE.format("//: needs [] == ready"), "4:11", "a name belongs here"),
        (RULE.format('//: needs ""'), "4:11", "a fact belongs here"),
        (RULE.format("//: needs ready + ready"), "4:11", "only a policy of tools looks at values"),
        (RULE.format("//: needs {}"), "4:11", "only a policy of tools looks at values"),
        (RULE.format("//: needs not (ready if ready else ready)"), "4:16", "only a policy of tools looks at values"),
        (RULE.format("//: needs -1"), "4:11", "only a policy of tools looks at values"),
        (RULE.format("//: makes x = 1"), "4:11", "only a policy of tools assigns values"),
        (RULE.format("//: makes every p in [1]: (ready)"), "4:11", "only a policy of tools assigns values"),
        ("//: init x = 1", "3:10", "only a policy of tools assigns values"),
        ("//: tells seen[@.id] = $ by look", "3:11", "only a policy of tools tells what the results"),
        ("//: tells ready by look", "3:20", "a fact is told by a text in an answer"),
        ("//: let f(x) = x", "3:9", "a world has no `let` lines"),
        ("//: message say", "3:13", "a world has no `message` lines"),
        (RULE.format("//: needs some p: place (in(p, p))"), "4:29", "`p` is a place, where a thing belongs"),
        (RULE.format("//: needs " + "(" * 70 + "ready"), "4:71", "brackets nest deeper"),
        ('start: go{"x"}\n//: needs at(p)\ngo{p}: ("a" | "b") p _STEP start\n', "5:1", "its text isn't plain"),
        ('start: go{"x"}\n//: needs at(p), in(p, p)\ngo{p}: "a" p _STEP start\n', "4:21", "both a place and a thing"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, place, message):
    with pytest.raises(GrammarError) as caught:
        read_world(HEAD + text + "\n")
    assert f":{place}: " in str(caught.value) and message in str(caught.value), str(caught.value)
    assert "^" in str(caught.value) and caught.value.hint


@pytest.mark.parametrize(
    "name, told", [(f'"{"x" * 1_001}"', "1,001 characters"), ("a\0b", r"unexpected `\\x00`")], ids=["long", "zero"]
)
def test_names_that_nobody_means_are_one_clear_error(name, told):
    with pytest.raises(GrammarError, match=told) as caught:
        read_world(
            f'%declare _STEP\n//: type t\n//: object {name}: t\n//: goal done\n//: fact done\nstart: "a" _STEP\n'
        )
    assert "\0" not in (caught.value.hint or "")


def test_the_variables_of_an_answer_stand_in_the_order_in_which_the_file_names_them():
    """Findings list them: an order by hashes would be another one in each process."""
    world = read_world(HEAD + '//: fact many(place, thing, place, thing, place, thing)\n'
                       '//: tells many(e, b, d, a, f, c) by "{e} {b} {d} {a} {f} {c}"\n')  # fmt: skip
    assert list(world.tells[0].types) == ["?e", "?b", "?d", "?a", "?f", "?c"]
