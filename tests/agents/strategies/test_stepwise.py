"""FireAct: the task in Alpaca's form, steps as its data writes them; with the embedded model, ReAct."""

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
