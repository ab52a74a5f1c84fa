"""What agents are told of their environment, and environments of other makes."""

import warnings

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.agents.prompts import PromptParts, build_messages, build_prompt
from constrained.agents.surroundings import Surroundings
from constrained.errors import ConstrainedError
from constrained.knowledge.tools import CALL_FORMATS
from constrained.models import load

DESK = """
%declare _STEP ORDER REASON
// Help.
start: lookup{ORDER} | close
// lookup: look up an order.
lookup{o}: "look up " o _STEP (close | refund{o})
// refund: pay back.
refund{o}: "refund " o " " REASON _STEP start
// close: end.
close: "close"
"""


class Desk:
    """A desk that answers as Gymnasium's environments do, or in three values."""

    def __init__(self, view, gymnasium=False):
        self.shown, self.gymnasium = view, gymnasium

    def reset(self):
        return ("A customer calls.", {"info": 1}) if self.gymnasium else "A customer calls."

    def view(self):
        return self.shown

    def step(self, action):
        return ("Fine.", 1.0, False, True, {}) if self.gymnasium else ("Fine.", 1.0, True)


@pytest.mark.parametrize("gymnasium", [False, True])
def test_environments_answer_in_three_values_or_in_gymnasiums_five(gymnasium):
    world = Surroundings(Desk({}, gymnasium))
    assert world.reset() == "A customer calls."
    assert world.step("close") == ("Fine.", True, {"success": 1.0}, True, 1.0)


@pytest.mark.parametrize("reward", [None, "much"])
def test_a_reward_that_is_no_number_is_one_clear_error(reward):
    desk = Desk({})
    desk.step = lambda action: ("Fine.", reward, True)
    with pytest.raises(ConstrainedError, match=f"the reward {reward!r}, not a number"):
        Surroundings(desk).step("close")


def test_a_step_of_two_values_is_one_clear_error():
    world = Surroundings(Desk({}))
    world.environment.step = lambda action: ("Fine.", 1.0)
    with pytest.raises(ConstrainedError, match="not three values"):
        world.step("close")


def test_what_is_there_is_in_the_prompt_of_other_models():
    world = Surroundings(Desk({"ORDER": ["A 1", "B2"], "REASON": {"A 1": ["late"], "B2": []}, "OTHER": ["x"]}))
    world.reset()
    world.slots(ActionKnowledge.from_lark(DESK))
    told = world.in_view({"ORDER", "REASON"})
    assert told == "What can be named now:\nORDER: A 1, B2\nREASON: at A 1: late; at B2: none"
    parts = PromptParts("help", ActionKnowledge.from_lark(DESK), "", "act", view=told)
    assert told in build_prompt(load(), parts) and told in build_messages(parts)[-1]["content"]


def test_names_that_don_t_fit_are_told_once_and_none_is_none():
    knowledge = ActionKnowledge.from_lark(DESK)
    with pytest.warns(UserWarning) as told:
        plan = generate_plan("help", knowledge, environment=Desk({"ORDER": [], "REASONS": ["late"]}), strategy="act")
    assert plan.path == ["close"]
    assert [text for one in told if "view()" in (text := str(one.message))] == [
        "view() says nothing of the slot REASON: it has REASONS, which is no slot; if nothing is there now, return []"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the embedded model")
        generate_plan("help", knowledge, environment=Desk({"ORDER": [], "REASON": []}), strategy="act")


def test_an_environment_of_the_package_shows_what_it_has():
    class Shipped(Desk):
        __module__ = "constrained.environments.desk"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the embedded model")
        generate_plan(
            "help", ActionKnowledge.from_lark(DESK), environment=Shipped({"ORDER": [], "GIVEN": []}), strategy="act"
        )


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (5, "5 is no environment"),
        (Desk, "Desk is a class, not an environment"),
        (Desk(5), "view.. gave 5"),
        (Desk([]), "view.. gave "),
        (Desk({5: []}), "view.. gave "),
    ],
)
def test_what_is_no_environment_is_one_clear_error(environment, told):
    with pytest.raises(ConstrainedError, match=told):
        generate_plan("help", ActionKnowledge.from_lark(DESK), environment=environment, model="random")


TOOLS = [
    {"name": "look", "inputSchema": {"type": "object", "properties": {"order": {"enum": ["A1", "B 2 "]}}}},
    {"name": "note", "inputSchema": {"type": "object", "properties": {"text": {"enum": ["a\nb", " c "]}}}},
]


@pytest.mark.parametrize("call_format", [*CALL_FORMATS, " NAME ARGUMENTS \n", "NAME\n\nARGUMENTS"])
@pytest.mark.parametrize("strategy", ["act", "knowagent"])
def test_a_call_is_read_back_whole_whatever_its_form(call_format, strategy):
    knowledge = ActionKnowledge.from_tools(TOOLS, call_format=call_format)
    desk = Desk({})
    done = []
    desk.step = lambda action: (done.append(action) or "ok", 0.0, len(done) == 3)
    plan = generate_plan("look", knowledge, environment=desk, strategy=strategy, max_steps=3)
    assert [step.verdict for step in plan.steps] == ["ok"] * 3
    assert done == [step.action for step in plan.steps]
