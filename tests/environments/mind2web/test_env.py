"""Doing recorded tasks: the recorded actions score 1, others as the paper's measures say."""

import pytest

from constrained.environments.mind2web.env import Mind2WebEnv
from constrained.environments.mind2web.tasks import Operation, StepScore, operation_f1, read_tasks, score_task
from constrained.errors import GameError
from constrained.knowledge import ActionKnowledge
from tests.environments.mind2web import rows
from tests.environments.protocols import is_suite_environment

RIGHT = ["[textbox] Pick-up city -> TYPE: Boston", "[combobox] sort -> SELECT: Price, low to high"]


@pytest.fixture
def tasks(tmp_path):
    return list(read_tasks(rows.write(tmp_path / "train_0.json")))


@pytest.fixture
def short(tasks) -> Mind2WebEnv:
    return Mind2WebEnv(tasks[1])


def test_the_recorded_actions_do_the_task(short):
    assert is_suite_environment(short)
    first = short.reset()
    assert first.startswith("Website: united\nTask: Rent the cheapest car in Boston.\nActions so far:\nnone\n")
    assert "\n[combobox] sort (choices: Price, low to high | Price, high to low)" in first
    page, reward, done = short.step(RIGHT[0])
    assert (reward, done) == (1.0, False)
    assert "Actions so far:\n[textbox]  Pick-up city -> TYPE: Boston\n" in page
    assert short.step(RIGHT[1])[1:] == (1.0, True)
    assert set(short.outcome().values()) == {1.0}
    with pytest.raises(GameError, match="over"):
        short.step("[link] Search -> CLICK")
    assert short.view() == {"ELEMENT": {}, "FIELD": {}, "MENU": {}, "CHOICE": {}}
    assert short.reset() == first and short.outcome()["step_success"] == 0.0


@pytest.mark.parametrize(
    "action, effect, element, f1",
    [
        ("[textbox] Pick-up city -> TYPE: New York", True, 1.0, 0.4),  # one of two words, one of three
        ("[textbox] Pick-up city -> CLICK", True, 1.0, 0.0),
        ("[link] Search -> CLICK", True, 0.0, 0.0),
        ("[link] Search -> TYPE: Boston", False, 0.0, 1.0),  # no field, but the operation is right
        ("[div] -> TYPE: Boston", True, 0.0, 1.0),
        ("[textbox] City -> TYPE: Boston", False, 0.0, 1.0),
        ("[combobox] sort -> SELECT: Colour", False, 0.0, 0.0),
        ("[combobox] sort -> SELECT: ", False, 0.0, 0.0),
        ("[option] 2 -> 4 & more doors -> CLICK", True, 0.0, 0.0),
        ("[textbox] Pick-up city -> HOVER", False, 1.0, 0.0),
        ("", False, 0.0, 0.0),
        ("TYPE: Boston", False, 0.0, 1.0),
        ("x" * 100_000, False, 0.0, 0.0),
    ],
)
def test_element_and_operation_are_scored_apart(short, action, effect, element, f1):
    short.step(action)
    assert short.had_effect == effect
    score = short.scores[0]
    assert (score.element, score.operation_f1) == (element, pytest.approx(f1))
    assert score.success == float(element == f1 == 1.0)


def test_a_step_whose_element_is_gone_is_lost(tasks):
    env = Mind2WebEnv(tasks[0])
    for action in (*RIGHT, "[link] Search -> CLICK", "[textbox] Pick-up city -> CLICK"):
        assert env.step(action)[0] and env.had_effect
    assert env.outcome() == {
        "success": 0.0, "step_success": 0.75, "element_accuracy": 0.75, "operation_f1": 0.75, "recall": 0.75,
    }  # fmt: skip


def test_steps_never_reached_count_as_failed(short):
    short.step(RIGHT[0])
    assert short.outcome()["step_success"] == 0.5
    assert score_task([], 3) == {"success": 0.0, "element_accuracy": 0.0, "operation_f1": 0.0, "step_success": 0.0}
    assert score_task([StepScore(1.0, 1.0)] * 2, 2)["success"] == 1.0


@pytest.mark.parametrize(
    "written, recorded, f1",
    [
        (Operation("CLICK"), Operation("CLICK"), 1.0),
        (Operation("CLICK"), Operation("TYPE", "a"), 0.0),
        (Operation("TYPE", "New York"), Operation("TYPE", "New York City"), 6 / 7),
        (Operation("SELECT", "b a"), Operation("SELECT", "a b"), 1.0),
    ],
)
def test_operations_are_compared_word_by_word(written, recorded, f1):
    assert operation_f1(written, recorded) == operation_f1(recorded, written) == pytest.approx(f1)


def test_as_many_candidates_are_put_forward_as_allowed(tasks):
    few = Mind2WebEnv(tasks[1], candidates=2)
    assert len(few.view()["ELEMENT"]) == 2
    for action in RIGHT:
        few.step(action)
    assert few.outcome()["recall"] <= 1.0
    assert Mind2WebEnv(tasks[1], candidates=0).view()["ELEMENT"] == {}


def test_the_knowledge_admits_what_the_page_does_and_nothing_else(tasks):
    env = Mind2WebEnv(tasks[1])
    place = ActionKnowledge.from_lark("mind2web").bind_view(env.view())
    for right in RIGHT:
        labels = [*env.view()["ELEMENT"], "[link] Absent"]
        done = ("CLICK", "TYPE: Boston", "SELECT: Price, low to high", "SELECT: Absent", "HOVER", "TYPE: ")
        for action in [f"{label} -> {operation}" for label in labels for operation in done]:
            probe = Mind2WebEnv(tasks[1])
            for before in RIGHT[: RIGHT.index(right)]:
                probe.step(before)
            probe.step(action)
            assert bool(place.judge(action)) == probe.had_effect, action
        place = place.after(right)
        env.step(right)
        place = place.bind_view(env.view())
    assert place.may_end
