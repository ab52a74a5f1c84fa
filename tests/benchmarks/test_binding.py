"""The binding benchmark: its steps are ones that the knowledge admits, and each part has its figures."""

import numpy as np
import pytest

from benchmarks import binding
from constrained import ActionKnowledge, Vocabulary
from constrained.errors import ConstrainedError
from tests.environments.scienceworld.present import needs_scienceworld

KNOWLEDGE = ActionKnowledge.from_lark("household")
BYTES = Vocabulary([*(bytes((b,)) for b in range(256)), b""], [256])
MASK = np.zeros((1, BYTES.words), np.int32)


@pytest.mark.parametrize("steps", [binding.room_steps(KNOWLEDGE, 2), binding.game_steps(KNOWLEDGE, "household", 1)])
def test_every_step_is_admitted_where_it_is_taken(steps):
    steps = list(steps)
    assert len(steps) >= 2
    for step in steps:
        assert len(binding.take(step, list(step.action.encode()), BYTES, MASK)) == len(binding.PARTS + binding.AFTER)


def test_a_step_that_is_not_admitted_is_an_error():
    first = next(binding.room_steps(KNOWLEDGE))
    with pytest.raises(ConstrainedError, match="is not admitted at its step"):
        binding.take(binding.Step(first.knowledge, first.view, "go to the moon"), list(b"go to the moon"), BYTES, MASK)


def test_a_room_has_fifty_receptacles_and_a_hundred_objects():
    step = list(binding.room_steps(KNOWLEDGE, 1))[1]
    (things,) = step.view["OBJECT"].values()
    assert len(things) == 100 and len(step.view["RECEPTACLE"]) + len(step.view["REACH"]) == 50


def test_the_table_has_a_row_for_each_part():
    rows = [
        {"set": "games", "part": part, "steps": 2, "p50": 1.0, "p99": 2.0, "worst": 3.0}
        for part in ("rebinding", "bind")
    ]
    assert binding.table(rows, "tekken", 131_072).splitlines()[2:] == [
        "| games (2 steps) | **rebinding** | 1 µs | 2 µs | 3 µs |",
        "|  | bind | 1 µs | 2 µs | 3 µs |",
    ]


def test_the_gold_actions_of_science_tasks_are_steps_too():
    needs_scienceworld()
    steps = list(binding.science_steps(ActionKnowledge.from_lark("scienceworld"), 1))
    assert len(steps) > 30
    for step in steps[::8]:
        assert len(binding.take(step, list(step.action.encode()), BYTES, MASK)) == len(binding.PARTS + binding.AFTER)
