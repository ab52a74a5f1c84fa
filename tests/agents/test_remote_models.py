"""Plans of models behind servers."""

from __future__ import annotations

import random

import pytest

from constrained import generate_plan
from constrained.decoding.remote import RemoteModel
from constrained.errors import ConstrainedError, ModelError
from tests.decoding.openai_server import Server

pytest.importorskip("openai", reason="needs the extra remote")


@pytest.fixture
def server():
    """Answers with actions of which many are not admitted; in the form that its system message asks for."""
    dice = random.Random(0)

    def reply(body: dict) -> str:
        action = dice.choice(["go to desk 1", "burn the house down", "look", "take mug 1 from desk 1", ""])
        return f"Thought 1: {action}\nAction 1: {action}" if "Thought" in body["messages"][0]["content"] else action

    running = Server(reply)
    yield running
    running.http.shutdown()
    running.http.server_close()


@pytest.mark.parametrize("strategy", ["act", "react", "knowagent"])
def test_nothing_is_done_that_is_not_admitted_and_the_plan_says_what_was_replaced(server, strategy):
    model = RemoteModel(server.url, "tiny", enforce="nothing", attempts=2)
    plan = generate_plan("put a mug in the cabinet", model=model, strategy=strategy, max_steps=6)
    assert len(plan.steps) == 6 and plan.invalid == plan.misordered == 0
    assert all(step.had_effect for step in plan.steps)
    replaced = [step for step in plan.steps if step.replaced]
    assert replaced and all(step.replaced != step.action for step in replaced)
    assert plan.to_dict()["steps"][0]["replaced"] == plan.steps[0].replaced
    roles = [message["role"] for message in server.bodies[-2]["messages"]]
    assert roles[0] == "system" and roles[1::2] == ["user"] * len(roles[1::2]) and "assistant" in roles


def test_without_masks_what_it_writes_is_judged_and_done(server):
    model = RemoteModel(server.url, "tiny", enforce="grammar")
    plan = generate_plan("put a mug in the cabinet", model=model, strategy="act", max_steps=6, constrained=False)
    assert plan.invalid and not any("grammar" in body for body in server.bodies)
    assert not any(step.replaced for step in plan.steps)


def test_an_address_is_a_model(server):
    plan = generate_plan("put a mug in the cabinet", model=f"{server.url}#tiny", strategy="act", max_steps=1)
    assert plan.model == f"tiny at {server.url}"


def test_a_server_that_is_away_fails_the_plan():
    with pytest.raises(ModelError, match="no server answers"):
        generate_plan("put a mug in the cabinet", model=RemoteModel("http://127.0.0.1:9/v1", retries=0), strategy="act")


def test_other_texts_than_steps_are_refused(server):
    with pytest.raises(ConstrainedError, match="a model behind a server writes only steps"):
        generate_plan("put a mug in the cabinet", model=RemoteModel(server.url, "tiny"), strategy="lumos")
