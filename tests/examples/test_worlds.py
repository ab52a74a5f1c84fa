"""The worlds in `examples/worlds`: what their sentences ask for is reached by search, or refused if it can't be."""

from pathlib import Path

import lark
import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.errors import ConstrainedError
from constrained.knowledge.lint import check_file

FOLDER = Path(__file__).parent.parent.parent / "examples" / "worlds"

TASKS = {
    "hotel": (
        ("book r303 for bob", 3),
        ("confirm r202 to alice", 4),
        ("sell r303 to carol", 5),
        ("give bob the key of r202", 7),
    ),
    "library": (
        ("bring ulysses to the desk", 2),
        ("lend dracula to ben", 5),
        ("get emma back from dora", 4),
        ("return emma to shelf 1", 5),
    ),
    "workshop": (
        ("pick up the lever", 2),
        ("take the chain off the blue bike", 5),
        ("fit a new tyre to the red bike", 7),
        ("repair the red bike", 8),
    ),
    "bakery": (
        ("let the dough of baguette rise", 2),
        ("bake brioche", 4),
        ("pack baguette", 5),
        ("sell rye bread to mia", 6),
    ),
    "clinic": (
        ("measure the fever of ivan", 2),
        ("have nora seen by dr chen", 3),
        ("get a prescription for ivan", 4),
        ("admit nora to ward 1", 5),
    ),
}
OUT_OF_REACH = {
    "hotel": "book r101 for bob",
    "library": "lend atlas to anna",
    "workshop": "fit a new brake to the red bike",
    "bakery": "sell brioche to tom",
}


def test_every_world_is_here():
    assert {path.stem for path in FOLDER.glob("*.lark")} == TASKS.keys()


@pytest.mark.parametrize("name", TASKS)
def test_nothing_is_wrong_in_the_file_and_lark_loads_it(name):
    path = FOLDER / f"{name}.lark"
    assert not check_file(path).findings
    lark.Lark(path.read_text(encoding="utf-8"), parser="earley")


@pytest.mark.parametrize("name, task, steps", [(name, *task) for name, tasks in TASKS.items() for task in tasks])
def test_what_a_sentence_asks_for_is_reached(name, task, steps):
    plan = generate_plan(task, str(FOLDER / f"{name}.lark"), strategy="act")
    assert plan.success and len(plan.steps) == steps, plan.trajectory
    assert all(step.observation not in ("Done.", "Nothing happens.") for step in plan.steps)


@pytest.mark.parametrize("name", TASKS)
def test_nothing_may_be_done_before_what_it_needs(name):
    for task, _ in TASKS[name]:
        path = generate_plan(task, str(FOLDER / f"{name}.lark"), strategy="act").path
        knowledge = ActionKnowledge.from_lark(FOLDER / f"{name}.lark")
        start = knowledge.for_problem(knowledge.world.problem)
        assert start.check(path).ok and start.judge(path[-1]).verdict == "misordered"


@pytest.mark.parametrize("name, task", OUT_OF_REACH.items())
def test_what_is_out_of_reach_is_refused(name, task):
    with pytest.raises(ConstrainedError, match="can't be reached"):
        generate_plan(task, str(FOLDER / f"{name}.lark"), strategy="act")
