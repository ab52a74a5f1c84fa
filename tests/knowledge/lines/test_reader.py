"""Which lines a file has: those of a world, or of a policy of tools."""

import pytest

from constrained import ActionKnowledge
from constrained.grammar.source import read_source
from constrained.knowledge.lines.reader import is_policy
from constrained.knowledge.lines.syntax import parse_lines

HEAD = '%declare _STEP ROOM ACT\n//: fact lit\nstart: act | room | end\nend: "end" _STEP\nWAIT: "wait"\n'


@pytest.mark.parametrize(
    ("rules", "policy"),
    [
        ('act: "act" _STEP start\nroom: "go to " ROOM _STEP start\n', False),
        ('act: "act on " ACT _STEP start\nroom: "go to " ROOM _STEP start\n', False),
        ("//: type room\nact: ACT _STEP start\nroom: ROOM _STEP start\n", False),
        ('act: wait\nwait: WAIT _STEP start\nroom: "go to " ROOM _STEP start\n', False),
        ('act: (("a" | ACT)) _STEP start\nroom: "stay" _STEP start\n', False),
        ('act: ACT _STEP start\nroom: "go to " ROOM _STEP start\n', True),
        ('act: (ACT _STEP) start\nroom: "stay" _STEP start\n', True),
        ('act: "wait" _STEP start | [ACT] _STEP start\nroom: "stay" _STEP start\n', True),
    ],
)
def test_a_file_is_a_policy_if_a_rule_writes_a_slot_of_its_own_name(rules, policy):
    source = read_source(HEAD + rules)
    assert is_policy(source, parse_lines(source)) is policy
    if not policy:
        assert ActionKnowledge.from_lark(source).world is not None


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("household", False),
        ("world", False),
        ("scienceworld", False),
        ("tau_retail", True),
        ("tau_airline", True),
        ("tau_telecom", True),
    ],
)
def test_the_files_that_ship(name, policy):
    source = read_source(name)
    assert is_policy(source, parse_lines(source)) is policy
    assert (ActionKnowledge.from_lark(source).world is None) is policy
