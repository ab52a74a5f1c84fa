"""The conversations of Lumos's figure 3, as planner and grounder read them."""

from constrained.agents.strategies.lumos.conversation import (
    KEEP,
    STOP,
    Turn,
    conversation,
    go_on_after,
    ground,
    ground_next,
    plan_for,
)

TASK = "Who lives longer, Lowell Sherman or Jonathan Kaplan?"


def test_a_planner_reads_the_task_then_each_result():
    turns = [Turn(plan_for(TASK), "Subgoal 1: Query the living period of Lowell Sherman.")]
    assert conversation(turns, go_on_after(1, "46 years")) == (
        "<|user|>\nPlease provide a reasonable subgoal-based plan to solve the given task.\n"
        f"Task: {TASK}\n<|assistant|>\nSubgoal 1: Query the living period of Lowell Sherman.\n"
        "<|user|>\nThe executed result for Subgoal 1 is 46 years. Should we stop planning?\n<|assistant|>\n"
    )


def test_a_whole_conversation_ends_with_the_last_answer():
    turns = [Turn(plan_for(TASK), "Subgoal 1: a"), Turn(go_on_after(1, "b"), f"{KEEP}Subgoal 2: c")]
    text = conversation([*turns, Turn(go_on_after(2, "d"), STOP)])
    assert text.endswith(f"Should we stop planning?\n<|assistant|>\n{STOP}\n")
    assert text.startswith(conversation(turns))


def test_a_grounder_reads_the_actions_once_and_then_the_subgoals():
    first = ground(TASK, {"qa": "QA([R2], Question: q) answers.", "count": ""}, "Subgoal 1: Query it.")
    assert first == (
        "Please ground the given subgoal to corresponding executable actions for solving the given task. "
        "The grounded actions must be the one in available action list.\n"
        f"The available actions are:\nQA([R2], Question: q) answers.\ncount\nTask: {TASK}\n"
        "Subgoal to be grounded: Subgoal 1: Query it."
    )
    assert ground_next("Subgoal 2: Compare.") == "Subgoal to be grounded: Subgoal 2: Compare."


def test_all_subgoals_at_once_are_several():
    assert ground(TASK, {}, "Subgoal 1: a; Subgoal 2: b").startswith("Please ground the given subgoals to ")
    assert ground_next("Subgoal 1: a; Subgoal 2: b") == "Subgoals to be grounded: Subgoal 1: a; Subgoal 2: b"
