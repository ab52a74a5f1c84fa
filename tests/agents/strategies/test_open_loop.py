"""Chain of thought: one text where an answer can be given, a whole plan written blindly where it can't."""

from dataclasses import replace

import pytest

from constrained import generate_plan
from tests.agents.baselines import GENERAL, house, may_say, question, resumed_anywhere, says
from tests.environments.question.small import MILHOUSE, QUESTION


def test_a_question_is_answered_in_one_text_without_tools():
    rollout = question("cot")
    plan = says(rollout, "Thought: He has Nixon's middle name. So it was he.\nAction: Finish[Richard Nixon]")
    assert rollout.over and plan.success and plan.outcome["f1"] == 1.0
    (step,) = plan.steps
    assert (step.action, step.verdict) == ("Finish[Richard Nixon]", "ok")
    assert step.thought == "He has Nixon's middle name. So it was he."


def test_it_is_shown_the_supporting_sentences_where_the_setting_says_so():
    known = replace(QUESTION, supporting=MILHOUSE.sentences[1:2])
    shown = []
    for setting in (True, False):
        rollout = question("cot", asked=known, supporting=setting)
        rollout.start()
        shown.append(MILHOUSE.sentences[1] in rollout.request.prompt)
    assert shown == [True, False]


def test_supporting_sentences_that_nobody_knows_are_an_error():
    rollout = question("cot", supporting=True)
    rollout.start()
    assert "no supporting sentences are known" in str(rollout.failure)


@pytest.mark.parametrize(
    "wrong", ["Thought: x\nAction: Search[Nixon]", "Action: Finish[x]", "Thought: x\nAction: Finish[]"]
)
def test_masks_leave_nothing_but_thought_and_answer(wrong):
    rollout = question("cot")
    rollout.start()
    assert may_say(rollout, "Thought: x\nAction: Finish[x]")
    assert not may_say(rollout, wrong)


def test_the_prompt_holds_the_answer_and_no_tool():
    rollout = question("cot")
    rollout.start()
    assert "Finish[answer]" in rollout.request.prompt and "Search" not in rollout.request.prompt


def test_without_masks_a_tool_is_invalid_as_there_is_none():
    plan = says(question("cot", constrained=False), "Thought: hm\nAction: Search[Milhouse]\n")
    assert plan.invalid == 1 and not plan.success


def test_in_a_house_the_whole_plan_is_written_before_anything_is_done():
    rollout = house("cot")

    actions = ["go to shelf 1", "take mug 1 from shelf 1", "go to sinkbasin 1"]
    actions += ["clean mug 1 with sinkbasin 1", "put mug 1 in/on sinkbasin 1"]
    for n, action in enumerate(actions, 1):
        assert rollout.episode.plan.steps == []
        plan = says(rollout, f"Thought {n}: go on\nAction {n}: {action}")
    assert rollout.over and plan.success  # the mug happens to be there
    assert [s.action for s in plan.steps] == actions and plan.invalid == plan.misordered == 0


def test_an_action_whose_object_is_elsewhere_does_nothing():
    plan = says(
        house("cot"),
        "Thought 1: x\nAction 1: go to cabinet 1",
        "Thought 2: x\nAction 2: open cabinet 1",
        "Thought 3: x\nAction 3: take mug 1 from cabinet 1",
        "Thought 4: x\nAction 4: stop",
    )
    assert [s.had_effect for s in plan.steps] == [True, True, False]
    assert plan.steps[2].observation == "Nothing happens." and plan.invalid == plan.misordered == 0


def test_it_goes_on_wherever_it_was_broken_off():
    texts = ["Thought 1: x\nAction 1: go to cabinet 1", "Thought 2: x\nAction 2: stop"]
    assert resumed_anywhere(lambda: house("cot"), says(house("cot"), *texts).answers)


def test_without_an_environment_the_answer_is_the_plan():
    plan = generate_plan("Who?", "hotpotqa", strategy="cot", model=(GENERAL.model, GENERAL.tokenizer), temperature=1.0)
    assert plan.open_loop and plan.success is None and plan.invalid == plan.misordered == 0
    assert len(plan.steps) == 1 and plan.steps[0].action.startswith("Finish[")
