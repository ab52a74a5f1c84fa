"""The file that an import leaves: readable, loaded by lark and by us, and true to what it took for granted."""

import lark
import pytest

from constrained import ActionKnowledge
from constrained.errors import PddlError
from constrained.knowledge.pddl import import_pddl
from constrained.knowledge.pddl.state import State, view
from constrained.planning.wording import read_texts
from tests.data import shared
from tests.knowledge.pddl import domains
from tests.knowledge.pddl.domains import ALL

BLOCKS_FILE = """\
// Where holding b.
holding{b}:
    | put_down{b}
    | stack{b, STACK_C}

// Where hand-empty.
hand_empty:
    | pick_up{PICK_UP_B}
    | unstack{UNSTACK_B, UNSTACK_C}

// pick_up: pick-up B. Needs clear b and on-table b and hand-empty. \
Makes holding b and not clear b and not on-table b and not hand-empty.
pick_up{b}: "pick-up " b _STEP holding{b}
"""


def test_a_hand_that_is_empty_or_holds_becomes_two_places():
    text = import_pddl(domains.BLOCKS).text
    assert BLOCKS_FILE in text
    assert "UNSTACK_B // b of unstack, by c: on b c and clear b" in text
    assert "//   exactly one is true at the start: (holding ?b) | (hand-empty)" in text


@pytest.mark.parametrize("name", ALL)
def test_every_file_is_lark_and_has_each_action_that_is_possible(name):
    imported = import_pddl(ALL[name][0], problem=ALL[name][1])
    lark.Lark(imported.text, parser="earley")
    knowledge = ActionKnowledge.from_lark(imported.text)
    for action in imported.domain.actions:
        rule = imported.domain.spelling[action.name].replace("-", "_")
        assert any(a == rule or a.startswith(f"{rule}_") for a in knowledge.actions)
    assert all(knowledge.actions.values()), "each has a definition"
    assert set(imported.file.slots) == knowledge.slots


def test_what_only_a_problem_can_tell_is_not_taken_for_granted():
    """`clear` moves as `me-at` does, one atom for another: only the initial state tells that many cells are clear."""
    alone = import_pddl(domains.PUSHING)
    assert alone.assumed == [] and alone.offers == ["me-at", "crate-at", "clear"]
    with_problem = import_pddl(domains.PUSHING, problem=domains.PUSHING_PROBLEM)
    assert "// Where me-at c and crate-at c_2." in with_problem.text
    assert "START_CLEAR" not in with_problem.text and with_problem.assumed == []


def test_what_a_person_says_there_is_one_of_is_followed():
    said = import_pddl(domains.GRIPPER, one=["at-robot"])
    knowledge = said.knowledge().bind(START_R=["hall"], ROOM=["hall", "kitchen"])
    knowledge = knowledge.bind(**{slot: {} for slot in knowledge.slots - {"START_R", "ROOM"}})
    assert knowledge.check(["move hall kitchen", "move kitchen hall"]).ok
    assert knowledge.check(["move hall kitchen", "move hall kitchen"]).verdicts == ["ok", "misordered"]
    with pytest.raises(PddlError, match="no type or predicate 'at-robby'"):
        import_pddl(domains.GRIPPER, one=["at-robby"])


def test_an_agent_is_one_unless_there_are_several():
    text = "(define (domain d) (:types agent spot) (:predicates (at ?a - agent ?s - spot)) (:action go :parameters"
    text += " (?a - agent ?s ?t - spot) :precondition (at ?a ?s) :effect (and (at ?a ?t) (not (at ?a ?s)))))"
    assert import_pddl(text).assumed == ["there is one agent", "exactly one is true at the start: (at ?a ?s)"]
    assert import_pddl(text, several=["agent"]).assumed == []


def test_commands_are_written_as_texts_say():
    texts = read_texts("# mine\npick-up = take {b} in hand\nstack: put {b} on {c}\n")
    knowledge = import_pddl(domains.BLOCKS, texts=texts).knowledge()
    knowledge = knowledge.bind(PICK_UP_B=["a"], STACK_C=["b"], UNSTACK_B=["a"], UNSTACK_C=["b"], START_B={})
    assert knowledge.check(["take a in hand", "put a on b", "unstack a b"]).ok
    with pytest.raises(PddlError, match="names {x}, which is no parameter of it"):
        import_pddl(domains.BLOCKS, texts={"stack": "put {x}"})
    with pytest.raises(PddlError, match="line 1: 'nonsense' is no command text"):
        read_texts("nonsense")


def alfred(**options):
    folder = shared("alfworld/logic_2.1.1")
    texts = read_texts((folder / "alfred.twl2").read_text())
    return import_pddl((folder / "alfred.pddl").read_text(), texts=texts, source="alfred.pddl", **options)


def test_alfred_has_a_place_with_empty_hands_and_one_with_a_thing_held():
    imported = alfred()
    knowledge = imported.knowledge()
    assert "at_location_and_holds{l, o}:" in imported.text
    assert "at_location_and_not_holds_any{l}:" in imported.text
    assert 'put_object{o, r, l}: "put " o " in/on " r _STEP at_location_and_not_holds_any{l}' in imported.text
    assert knowledge.rules["pickup_object"] == knowledge.rules["goto_location"]
    assert "pickup_object" not in knowledge.rules["pickup_object"]
    assert "put_object" not in knowledge.rules["put_object"]


def test_a_state_binds_the_slots():
    imported = alfred()
    objects = {"me": "agent", "l1": "location", "l2": "location", "desk 1": "receptacle", "drawer 1": "receptacle",
               "mug 1": "object", "MugType": "otype", "DeskType": "rtype", "DrawerType": "rtype"}  # fmt: skip
    facts = [("atLocation", "me", "l1"), ("receptacleAtLocation", "desk 1", "l1"), ("pickupable", "mug 1"),
             ("receptacleAtLocation", "drawer 1", "l2"), ("openable", "drawer 1"), ("inReceptacle", "mug 1", "desk 1"),
             ("objectType", "mug 1", "MugType"), ("receptacleType", "desk 1", "DeskType"),
             ("receptacleType", "drawer 1", "DrawerType"), ("canContain", "DrawerType", "MugType")]  # fmt: skip
    slots = view(imported.file, State(imported.domain, objects, facts))
    assert slots["PICKUP_OBJECT_O"] == {"desk 1": ["mug 1"]} and slots["PICKUP_OBJECT_R"] == {"l1": ["desk 1"]}
    assert slots["GOTO_LOCATION_R"] == {"l1": ["desk 1"], "l2": ["drawer 1"]}
    assert slots["OPEN_OBJECT_R"] == {} and slots["START_L"] == ["l1"] and slots["START_O"] == {}
    knowledge = imported.knowledge().bind_view(slots)
    assert knowledge.check(["take mug 1 from desk 1", "go to drawer 1"]).ok
    assert knowledge.judge("open drawer 1").verdict == "invalid"
