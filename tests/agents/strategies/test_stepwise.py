"""FireAct: the task in Alpaca's form, steps as its data writes them. KnowAgent: the path, given or written."""

import pytest

from constrained.agents.metrics import summarise
from constrained.agents.run_file import summary
from constrained.agents.scheduler import schedule
from constrained.models import load
from tests.agents.baselines import house, may_say, question, resumed_anywhere, says
from tests.environments.question.small import QUESTION

STEPS = ["Thought: I look him up.\nAction: Search[Milhouse]", "Thought: I have it.\nAction: Finish[Richard Nixon]"]


def test_prompt_and_steps_have_the_form_of_its_data():
    rollout = question("fireact")
    rollout.start()
    first = rollout.request.prompt
    assert first.endswith(f"### Instruction:\n{QUESTION.text}\n\n### Response:\nThought:")
    says(rollout, STEPS[0])
    history = "Thought: I look him up.\nAction: Search[Milhouse]\nObservation: Milhouse Van Houten: Milhouse is"
    assert rollout.request.prompt.startswith(first.removesuffix("Thought:") + history)
    plan = says(rollout, STEPS[1])
    assert plan.success and [s.verdict for s in plan.steps] == ["ok", "ok"]


def test_masks_come_from_the_knowledge():
    rollout = question("fireact")
    rollout.start()
    assert not may_say(rollout, "Thought: I know it.\nAction: Finish[x]")  # nothing has been looked up


def test_without_masks_lines_are_read_as_written():
    plan = says(question("fireact", constrained=False), " I know it.\nAction: Finish[Richard Nixon]\n")
    assert (plan.steps[0].thought, plan.steps[0].action) == ("I know it.", "Finish[Richard Nixon]")
    assert plan.misordered == 1


def test_what_is_remembered_of_a_house_is_the_input():
    rollout = house("fireact")
    rollout.start()
    assert "### Input:\nTask: put a clean mug in sinkbasin\nHold: none" in rollout.request.prompt


def test_it_goes_on_wherever_it_was_broken_off():
    assert resumed_anywhere(lambda: question("fireact"), says(question("fireact"), *STEPS).answers)


def test_with_the_embedded_model_it_is_react():
    paths = []
    for strategy in ("fireact", "react"):
        rollout = house(strategy, load(), max_steps=5)
        for _ in schedule([rollout]):
            pass
        paths.append([(s.thought, s.action) for s in rollout.episode.plan.steps])
    assert paths[0] == paths[1] and len(paths[0]) == 5


# KnowAgent's ActionPath


SEARCHED = "Start->Search[Milhouse]"


@pytest.mark.parametrize(
    ("written", "read", "wrong"),
    [
        (SEARCHED, SEARCHED, 0),
        ("Start -> Search[Milhouse] ", SEARCHED, 0),
        ("Start", "Start", 1),
        ("Start->Search[Nixon]", "Start->Search[Nixon]", 1),
        ("", "", 1),
    ],
)
def test_without_masks_the_model_writes_the_path_and_its_errors_are_counted(written, read, wrong):
    rollout = question("knowagent", constrained=False)
    rollout.start()
    assert rollout.request.prompt.endswith("ActionPath 1:")
    says(rollout, "ActionPath 1: Start\nThought 1: I look him up.\nAction 1: Search[Milhouse]")
    assert rollout.request.prompt.endswith("ActionPath 2:")
    plan = says(rollout, f"ActionPath 2: {written}\nThought 2: I have it.\nAction 2: Finish[Richard Nixon]")
    first, second = plan.steps
    assert (first.path, first.true_path, first.thought) == ("Start", "Start", "I look him up.")
    assert (second.path, second.true_path, second.action) == (read, SEARCHED, "Finish[Richard Nixon]")
    assert plan.success and plan.wrong_paths == wrong
    end = {**summary(plan), "kind": "question"}
    assert (end["paths"], end["wrong paths"]) == (2, wrong)
    assert summarise([end])["wrong paths %"] == 50 * wrong


def test_with_masks_the_path_is_given_and_none_is_counted():
    rollout = question("knowagent")
    rollout.start()
    assert rollout.request.prompt.endswith("ActionPath 1: Start\nThought 1:")
    plan = says(
        rollout,
        "ActionPath 1: Start\nThought 1: hm\nAction 1: Search[Milhouse]",
        f"ActionPath 2: {SEARCHED}\nThought 2: hm\nAction 2: Finish[Richard Nixon]",
    )
    assert [step.path for step in plan.steps] == ["Start", SEARCHED] and not any(s.true_path for s in plan.steps)
    assert "paths" not in summary(plan)


def test_the_embedded_model_which_never_learnt_to_write_a_path_is_given_it_without_masks_too():
    rollout = house("knowagent", load(), constrained=False)
    rollout.start()
    assert rollout.request.prompt.endswith("ActionPath 1: Start\nThought 1: ")


def test_the_path_goes_on_wherever_it_was_broken_off():
    texts = ("Start\nThought 1: a\nAction 1: Search[Milhouse]", "Start\nThought 2: b\nAction 2: Finish[x]")
    whole = says(question("knowagent", constrained=False), *texts)
    assert resumed_anywhere(lambda: question("knowagent", constrained=False), whole.answers)
