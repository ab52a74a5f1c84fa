"""Reflexion: trials, and what one leaves to the next."""

import pytest

from constrained.agents.scheduler import schedule
from constrained.models import load
from tests.agents.baselines import house, may_say, question, resumed_anywhere, says

EMBEDDED = load()


def trial(answer, reflection=None):
    texts = ["Thought 1: look\nAction 1: Search[Milhouse]", f"Thought 2: done\nAction 2: Finish[{answer}]"]
    return texts + ([f"Reflection: {reflection}"] if reflection else [])


def test_a_failed_trial_is_reflected_on_and_the_next_one_reads_it():
    rollout = question("reflexion")
    says(rollout, *trial("Matt Groening"))
    assert rollout.request.role == "reflector"
    assert "Action 2: Finish[Matt Groening]" in rollout.request.prompt and rollout.request.prompt.endswith(
        "Reflection:"
    )
    says(rollout, "Reflection: I answered with the author. Look up `named` next time.")
    assert "Trial 1 failed. I answered with the author." in rollout.request.prompt.replace("Reflection: ", "")
    plan = says(rollout, *trial("Richard Nixon"))
    assert rollout.over and plan.success
    assert [(s.phase, s.n) for s in plan.steps] == [("trial 1", 1), ("trial 1", 2), ("trial 2", 1), ("trial 2", 2)]
    assert len(plan.last_phase) == 2 and plan.usage_by_role["reflector"]["completion_tokens"] == 5


def test_a_success_ends_it_at_once():
    rollout = question("reflexion")
    assert says(rollout, *trial("Richard Nixon")).success and rollout.over


def test_no_reflection_after_the_last_trial():
    rollout = question("reflexion", trials=2)
    plan = says(rollout, *trial("x", "not x"), *trial("y"))
    assert rollout.over and plan.success is False
    assert [a.role for a in plan.answers] == ["policy", "policy", "reflector", "policy", "policy"]


def test_no_more_than_three_reflections_are_shown():
    rollout = question("reflexion", trials=6)
    says(rollout, *(text for i in range(1, 6) for text in trial(f"wrong {i}", f"lesson {i}")))
    assert [f"lesson {i}" in rollout.request.prompt for i in range(1, 6)] == [False, False, True, True, True]


def test_it_goes_on_wherever_it_was_broken_off():
    answers = says(question("reflexion", trials=2), *trial("x", "not x"), *trial("y")).answers
    assert resumed_anywhere(lambda: question("reflexion", trials=2), answers)


@pytest.mark.parametrize("constrained", [True, False])
def test_where_tokens_run_out_there_is_no_other_trial(constrained):
    rollout = question("reflexion", constrained=constrained, max_new_tokens=150)
    plan = says(rollout, *trial("x"))
    assert rollout.over and {s.phase for s in plan.steps} == {"trial 1"}


def test_the_embedded_model_takes_its_memory_along_instead():
    rollout = house("reflexion", EMBEDDED, max_steps=2)
    moves = ["Thought 1: x\nAction 1: go to shelf 1", "Thought 2: x\nAction 2: take mug 1 from shelf 1"]
    says(rollout, *moves)
    assert rollout.episode.phase == "trial 2" and rollout.request.role == "policy"
    assert "Seen: mug 1 at shelf 1" in rollout.request.prompt and "Hold: none" in rollout.request.prompt


def test_what_was_done_in_the_very_same_situation_is_not_done_again():
    rollout = house("reflexion", EMBEDDED, max_steps=1, level="goal")
    go = "Thought 1: x\nAction 1: go to shelf 1"
    says(rollout, go)  # what stands there is learned,
    assert may_say(rollout, go)
    says(rollout, go)  # and now nothing new
    assert not may_say(rollout, go)


def test_with_masks_the_embedded_model_wins_in_a_later_trial_and_breaks_no_rule():
    rollout = house("reflexion", EMBEDDED, max_steps=4)  # one too few to see the house and do the task, too
    for _ in schedule([rollout]):
        pass
    plan = rollout.episode.plan
    assert plan.success is False and plan.invalid == plan.misordered == 0
    assert [len([s for s in plan.steps if s.phase == f"trial {n}"]) for n in (1, 2, 3)] == [4, 4, 4]
