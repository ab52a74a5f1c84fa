"""The step's texts for the trainer and the step's grammar for the masks are one and the same."""

import pytest

from constrained import ConstrainedError, Grammar
from constrained.agents.step_formats import (
    FORMATS,
    MAX_THOUGHT,
    StepText,
    action_path,
    read_step,
    step_answer,
    step_format,
    step_grammar,
    step_prompt,
)

ACTIONS = Grammar.from_choices(["go to desk 1", "go to desk 10", "look"])
PATHS = [[], ["go to desk 1"], ["go to desk 1", "take mug 1 from desk 1", "examine [the mug]: it's -> new"]]
THOUGHT = {"act": "", "react": "I look.", "knowagent": "Nothing here: go to desk 10, Action 2: maybe."}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("strategy", FORMATS)
def test_what_the_grammar_forces_is_how_the_prompt_ends(strategy, path):
    n = len(path) + 1
    grammar = step_grammar(strategy, n, path, ACTIONS)
    prompt = step_prompt("You hold nothing.", strategy, n, path)
    forced = grammar.automaton.start.forced_text().decode()
    assert prompt == f"You hold nothing.\n{forced}"
    assert (action_path(path) in forced) == (strategy == "knowagent")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("strategy", FORMATS)
def test_an_answer_completes_the_prompt_to_a_text_of_the_grammar(strategy, path):
    n = len(path) + 1
    grammar = step_grammar(strategy, n, path, ACTIONS)
    head = step_prompt("", strategy, n, path).removeprefix("\n")
    answer = step_answer(strategy, n, THOUGHT[strategy], "go to desk 10")
    assert grammar.matches(head + answer)
    assert not grammar.matches(head + step_answer(strategy, n, THOUGHT[strategy], "go to desk 2"))
    assert not grammar.matches(head + answer + "\n")
    for text in (answer, head + answer):
        assert read_step(strategy, n, text) == StepText(THOUGHT[strategy], "go to desk 10")


@pytest.mark.parametrize("strategy", ["react", "knowagent"])
def test_a_thought_is_one_line_of_one_to_200_characters(strategy):
    grammar = step_grammar(strategy, 1, [], ACTIONS)
    head = step_prompt("", strategy, 1).removeprefix("\n")

    def admitted(thought):
        return grammar.matches(head + step_answer(strategy, 1, thought, "look"))

    assert admitted("é" * MAX_THOUGHT) and not admitted("é" * (MAX_THOUGHT + 1))
    assert not admitted("") and not admitted("two\nlines")


def test_number_and_path_are_forced():
    grammar = step_grammar("knowagent", 2, ["look"], ACTIONS)
    assert grammar.matches("ActionPath 2: Start->look\nThought 2: x\nAction 2: look")
    assert not grammar.matches("ActionPath 2: Start\nThought 2: x\nAction 2: look")
    assert not grammar.matches("ActionPath 2: Start->look\nThought 2: x\nAction 3: look")


@pytest.mark.parametrize(
    "strategy, text, thought, action",
    [
        ("act", "Action 3: look\nObservation 3: a desk", "", "look"),
        ("act", "look", "", "look"),
        ("act", "", "", ""),
        ("react", "Thought 3: I look.\nAction 3: look", "I look.", "look"),
        ("react", " I look.\nAction: look \nmore", "I look.", "look"),
        ("react", "no action at all", "no action at all", ""),
        ("react", "Action 3: look", "", "look"),
        ("knowagent", "ActionPath 3: Start->look\nThought 3: hm\nAction 3: go", "hm", "go"),
        ("knowagent", "hm\nAction 3:", "hm", ""),
        ("knowagent", "Reaction 3: no\nAction 4: yes", "Reaction 3: no", "yes"),
    ],
)  # fmt: skip
def test_reading_what_a_model_wrote_without_masks(strategy, text, thought, action):
    assert read_step(strategy, 3, text) == StepText(thought, action)


def test_an_unknown_format_is_an_error():
    with pytest.raises(ConstrainedError, match="no step format 'reflexion'") as caught:
        step_format("reflexion")
    assert caught.value.hint == "use one of act, react, knowagent, cot, fireact"
    with pytest.raises(ConstrainedError, match="no step format"):
        step_prompt("", "reflexion", 1)
