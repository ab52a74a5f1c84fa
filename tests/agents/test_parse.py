"""What is carried out is what the masks admitted as the action, whatever every other part of a text looks like."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from constrained import ActionKnowledge, Grammar
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.step_formats import (
    FORMATS,
    UNNUMBERED,
    parse_step,
    step_answer,
    step_format,
    step_grammar,
    step_prompt,
)
from constrained.agents.strategies import STEP_FORMATS, STRATEGIES
from constrained.agents.strategies.knowledge_graph import Triple, read_triples
from constrained.agents.strategies.lumos.conversation import KEEP, STOP
from constrained.agents.strategies.lumos.planner import first_subgoal, next_subgoal, read_subgoal
from constrained.agents.strategies.rewoo import read_plan
from constrained.automaton.parse import parse, parses
from constrained.errors import ActionError
from constrained.models import load
from tests.agents.baselines import GENERAL, house
from tests.agents.scripted import answer_with

SPEECH = ActionKnowledge.from_lark("""
%declare _STEP
// Speak.
start: say
// say: say anything at all, on as many lines as it takes.
say: "say " TEXT _STEP [say | stop]
// stop: say no more.
stop: "stop" _STEP [say]
TEXT: /[\\s\\S]{0,60}/
""")

IMITATIONS = [
    "Action 1: say burn the house down", "Action 2: say x", "Action: say x", "Thought 1: x", "Thought: x", "Start->x",
    "ActionPath 1: Start", "Observation 1: done", "Subgoal 1: x", "Subgoal 2: Action 1: say x", KEEP, STOP, "say x",
    "stop", "none", "#E1 = Search[x]", "Plan: x", "Reflection: x", "; say x", "heat spatula. I take it.", "<|user|>",
]  # fmt: skip
line = st.one_of(
    st.sampled_from(IMITATIONS),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1, max_size=30),
    st.lists(st.sampled_from([*IMITATIONS, " ", "\t", "\r", ": "]), min_size=1, max_size=4).map("".join),
).map(lambda text: text[:120])
said = st.lists(line, max_size=2).map("\n".join)
actions = st.one_of(said, said.map(lambda text: f" {text} \n")).map(lambda text: f"say {text[:60]}")


class Room:
    """Takes note of what is carried out."""

    task = "speak"
    had_effect = True

    def __init__(self):
        self.done = []

    def reset(self):
        return "You stand in a room. Your task is to: speak."

    def step(self, action):
        self.done.append(action)
        return "It is said.", 0.0, False

    def view(self):
        return {}

    def close(self):
        pass


def playing(strategy, **settings):
    """A rollout of a strategy that speaks, and what is carried out."""
    room = Room()
    settings = replace(Settings(strategy, STEP_FORMATS[strategy], max_steps=4), **settings)
    plan = Plan("speak", "speech", strategy, "script", settings.constrained, 0)
    return Rollout(Episode({"policy": GENERAL}, SPEECH, plan, settings, room)), room


def whole(n, path, thought, action, form):
    """An answer that writes a whole step, as far as the prompt hasn't begun it."""
    step = step_prompt("", form, n, path).removeprefix("\n")
    step += f"{thought}\nAction: {action}" if form in UNNUMBERED else step_answer(form, n, thought, action)
    return lambda request: step.removeprefix(request.begun)


# a step


@pytest.mark.parametrize("form", (*FORMATS, *UNNUMBERED))
@given(thought=line, action=actions, path=st.lists(actions, max_size=2), n=st.integers(1, 30))
@example(thought="Action 1: burn the house down", action="say  x \n", path=[], n=1)
@example(thought="x", action="say x\nAction 1: say y", path=["say y\nThought 2: z\nAction 2: say x"], n=2)
def test_a_step_has_one_reading_and_it_is_what_was_written(form, thought, action, path, n):
    grammar = step_grammar(form, n, path, SPEECH.next_action())
    head = step_prompt("", form, n, path).removeprefix("\n")
    text = head + (f"{thought}\nAction: {action}" if form in UNNUMBERED else step_answer(form, n, thought, action))
    assert grammar.matches(text)
    [parts] = parses(grammar, text)
    spans = {part.name: text[part.start : part.end] for part in parts}
    assert spans["ACTION"] == action and spans.get("thought", "") == ("" if form == "act" else thought)
    assert parse_step(grammar, text).action == action


@pytest.mark.parametrize(
    "strategy", [name for name, form in STEP_FORMATS.items() if STRATEGIES[name] is STRATEGIES["act"]]
)
@given(turns=st.lists(st.tuples(line, actions), min_size=1, max_size=3))
@example(turns=[("Action 1: burn the house down", "say a")])
@example(turns=[("heat spatula. I take it.", "say a"), ("Action 2: say b\r", "say  c ")])
def test_what_a_step_carries_out_is_its_action(strategy, turns):
    rollout, room = playing(strategy)
    for n, (thought, action) in enumerate(turns, 1):
        answer_with(rollout, whole(n, room.done, thought, action, STEP_FORMATS[strategy]))
    assert room.done == [action for _, action in turns]
    assert [step.action for step in rollout.episode.plan.steps] == room.done


@given(thought=line, action=actions)
@example(thought="Action: say x", action="say y")
def test_fireact_carries_out_its_action(thought, action):
    rollout, room = playing("fireact")
    answer_with(rollout, lambda request: f"Thought: {thought}\nAction: {action}".removeprefix(request.begun))
    assert room.done == [action]


@given(thought=line, action=actions)
@example(thought="stop", action="say stop")
@example(thought="Action 1: stop", action="stop")
@example(thought="x", action="stop")
def test_a_plan_made_ahead_is_ended_by_no_action_of_its_own(thought, action):
    """The knowledge has an action ``stop``; what ends the plan is another word, and no thought ends it."""
    rollout, room = playing("cot", max_steps=3)
    answer_with(rollout, whole(1, [], thought, "say first", "react"))
    answer_with(rollout, whole(2, ["say first"], thought, action, "react"))
    assert rollout.request is not None
    answer_with(rollout, whole(3, ["say first", action], thought, "stop planning", "react"))
    assert room.done == ["say first", action]


@given(reflection=line.filter(lambda text: not text[0].isspace()), thought=line, action=actions)
def test_a_reflection_is_one_line_of_the_next_trial(reflection, thought, action):
    rollout, room = playing("reflexion", max_steps=1, trials=2)
    answer_with(rollout, whole(1, [], thought, action, "react"))
    answer_with(rollout, f" {reflection}")
    assert rollout.episode.hints == f"Trial 1 failed. {reflection.strip()}" and "\n" not in rollout.episode.hints
    answer_with(rollout, whole(1, [], thought, action, "react"))
    assert room.done == [action, action]


# Lumos


subgoals = line.map(lambda text: text.replace(";", ",").strip()).filter(bool)


@given(subgoal=subgoals, number=st.integers(1, 9))
def test_a_subgoal_is_read_whatever_it_looks_like(subgoal, number):
    grammar = first_subgoal() if number == 1 else next_subgoal(number, number)
    text = f"{KEEP if number > 1 else ''}Subgoal {number}: {subgoal}"
    assert grammar.matches(text) and read_subgoal(text, number) == subgoal
    assert len(list(parses(grammar, text))) == 1


@given(one=subgoals, other=subgoals, first=actions, second=actions, third=actions)
@example(one=STOP, other=STOP, first="say ; say x", second="say  ", third="say \n; say")
def test_lumos_carries_out_what_the_grounder_wrote(one, other, first, second, third):
    rollout, room = playing("lumos")
    answer_with(rollout, f"Subgoal 1: {one}", first, f"; {second}", "", f"{KEEP}Subgoal 2: {other}", third)
    assert room.done == [first, second, third]
    assert [step.subgoal for step in rollout.episode.plan.steps] == [f"Subgoal 1: {one}"] * 2 + [f"Subgoal 2: {other}"]


@given(thought=line)
@example(thought="Action 1: go to desk 1")
@example(thought=" ")
def test_the_embedded_planner_s_thought_is_no_action(thought):
    rollout = house("lumos", model=load())
    rollout.start()
    first = rollout.episode.space.knowledge.next_action().texts()[0]
    answer_with(rollout, f"{thought}\n", f" {first}")
    [step] = rollout.episode.plan.steps
    assert step.action == first and step.subgoal == f"Subgoal 1: {thought.strip()}"


# plans and facts


@cache
def _rewoo():
    return Grammar.from_lark("steps/rewoo")


inputs = line.map(lambda text: "".join(c for c in text if c not in "#[]")).filter(
    lambda text: text.strip() == text != ""
)


@given(calls=st.lists(st.tuples(line.map(str.strip).filter(bool), inputs), min_size=1, max_size=3))
def test_a_plan_of_calls_is_read_as_it_was_written(calls):
    grammar = None
    for n in range(len(calls), 0, -1):
        more = {"Search": grammar} if grammar else {}
        over = {} if grammar else {"Search": ""}
        grammar = _rewoo().bind(N=str(n), BEFORE={}, TOOL=["Search"], OVER=over, MORE=more)
    text = "\n".join(f"Plan: {why}\n#E{n} = Search[{given}]" for n, (why, given) in enumerate(calls, 1))
    assert grammar.matches(text)
    assert [(call.why, call.input) for call in read_plan(text)] == calls
    assert [(call.number, call.tool) for call in read_plan(text)] == [(n, "Search") for n in range(1, len(calls) + 1)]


names = st.sampled_from(["none", "mug 1", "Action 1: x", "in/on"])
relations = line.map(lambda text: text.replace("|", "/").strip()[:20].strip()).filter(bool)


@given(triples=st.lists(st.builds(Triple, names, relations, names), min_size=1, max_size=4))
def test_facts_are_read_as_they_were_written(triples):
    grammar = Grammar.from_lark("steps/triples").bind(NAME=["none", "mug 1", "Action 1: x", "in/on"])
    text = "\n".join(map(str, triples))
    assert grammar.matches(text) and read_triples(text) == triples
    assert read_triples("none") == []


def test_what_is_no_step_is_refused():
    grammar = step_grammar("react", 1, [], Grammar.from_choices(["look"]))
    for text in ("", "Thought 1: x", "Thought 1: x\nAction 1: jump", "Thought 1: x\nAction 1: look "):
        with pytest.raises(ActionError, match="is no text of the grammar"):
            parse(grammar, text)
    assert {"N", "ACTION"} == set(step_format("react").slots)
