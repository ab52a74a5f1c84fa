"""Plans as they come, and without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from constrained import Plan, agenerate_plan, generate_plan, stream_plan
from constrained.agents import Step
from constrained.environments.household import HouseholdEnv
from constrained.errors import ConstrainedError

TASK = "put a mug in the cabinet"


@pytest.fixture(scope="module")
def plan():
    return generate_plan(TASK, strategy="react", max_steps=4)


def test_the_pieces_are_the_texts_and_come_before_their_steps(plan):
    events = list(stream_plan(TASK, strategy="react", max_steps=4))
    assert isinstance(events[-1], Plan) and events[-1].path == plan.path
    assert "".join(event for event in events if isinstance(event, str)) == "".join(a.text for a in plan.answers)
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.action for step in steps] == [step.action for step in plan.steps]
    assert isinstance(events[0], str) and events.index(steps[0]) > 1


def test_text_without_masks_streams_what_stands_before_the_stop():
    pieces: list[str] = []
    plan = generate_plan(TASK, strategy="react", max_steps=2, constrained=False, on_text=pieces.append)
    assert "".join(pieces) == "".join(answer.text for answer in plan.answers)


def test_a_stream_that_is_closed_ends_the_plan():
    events = stream_plan(TASK, strategy="react", max_steps=40)
    assert isinstance(next(events), str)
    events.close()
    assert list(events) == []


def test_errors_reach_the_reader():
    with pytest.raises(ConstrainedError, match="the task is empty"):
        list(stream_plan(" "))


def test_the_event_loop_goes_on_meanwhile(plan, monkeypatch):
    steps: list[Step] = []
    ticked, carry_out = threading.Event(), HouseholdEnv.step

    def step(env, action):
        """A step waits for the event loop's next tick."""
        ticked.clear()
        assert ticked.wait(120)
        return carry_out(env, action)

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.001)
            ticked.set()

    async def main() -> Plan:
        ticking = asyncio.create_task(tick())
        made = await agenerate_plan(TASK, strategy="react", max_steps=4, on_step=steps.append)
        await asyncio.sleep(0)
        ticking.cancel()
        return made

    monkeypatch.setattr(HouseholdEnv, "step", step)
    made = asyncio.run(main())
    assert made.path == plan.path
    assert [step.action for step in steps] == [step.action for step in plan.steps]
