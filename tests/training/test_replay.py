"""Recorded play as training texts: prompts as they were asked, what was written learned, nothing else."""

from dataclasses import replace

import pytest

from constrained import ActionKnowledge
from constrained.agents.run_file import read_tasks
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import play_all
from constrained.decoding import Generation, Request
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from constrained.models import load
from constrained.training.encoding import Span
from constrained.training.replay import join_texts, replay_texts
from tests.decoding.tiny import tiny
from tools.embedded_model.examples import Example

HOUSEHOLD = ActionKnowledge.from_lark("household")
SUITE = open_suite("household", limit=1)
[TASK] = SUITE.tasks


def recorded(folder, models, settings):
    path = folder / "run.jsonl"
    play_all(SUITE, HOUSEHOLD, models, settings, path)
    return read_tasks(path)[1][TASK.name]


@pytest.mark.parametrize("step_format", ["act", "react", "knowagent"])
def test_the_embedded_model_is_tuned_on_the_texts_it_was_trained_on(tmp_path, step_format):
    models = {"policy": load()}
    settings = Settings(step_format, step_format, max_steps=6)
    begun = recorded(tmp_path, models, settings)
    texts = replay_texts(TASK, begun.answers, HOUSEHOLD, models, settings)
    assert len(texts) == len(begun.steps) > 1

    env = HouseholdEnv(make_game(0))
    memory, path = env.memory(env.reset()), []
    for text, step in zip(texts, begun.steps):
        example = Example(memory.text(), step["n"], tuple(path), step["thought"], step["action"])
        prompt, before, action = example.texts(step_format)
        learned = [Span(before, True)] if before else []
        assert list(text.spans) == [Span(prompt, False), *learned, Span(action, True)] and text.ends
        memory.update(step["action"], env.step(step["action"])[0])
        path += [step["action"]] if env.had_effect else []


def test_a_history_becomes_one_text_in_which_each_step_is_learned_once(tmp_path):
    random = tiny(context=8192)
    models = {"policy": load((random.model, random.tokenizer))}
    settings = Settings("react", "react", max_steps=3, temperature=1.0, max_new_tokens=400)
    begun = recorded(tmp_path, models, settings)
    player_texts = replay_texts(TASK, begun.answers, HOUSEHOLD, models, settings)
    whole = ["".join(span.text for span in text.spans) for text in player_texts]
    learned = "".join(span.text for text in player_texts for span in text.spans if span.learned)
    for answer in begun.answers:
        assert learned.count(answer.text) >= 1
        assert any(answer.text in text for text in whole)
    for step in begun.steps[:-1]:
        assert step["observation"] not in learned


def ask(prompt, stop=None):
    return Request(prompt, None, stop=stop)


def test_prompts_that_go_on_are_joined_and_what_ends_a_text_is_learned():
    [text] = join_texts(
        [
            (ask("Task\nAction 1:", "\nObservation"), Generation(" go"), "go"),
            (ask("Task\nAction 1: go\nObservation 1: a desk\nAction 2:", "\nObservation"), Generation(" look"), "look"),
        ],
        bounded=False,
    )
    assert [(span.text, span.learned) for span in text.spans] == [
        ("Task\nAction 1:", False),
        (" go", True),
        ("\nObservation", True),
        (" 1: a desk\nAction 2:", False),
        (" look", True),
    ]
    assert text.ends


def test_prompts_that_begin_anew_are_texts_of_their_own():
    texts = list(join_texts([(ask("A: "), Generation("x"), "x"), (ask("B: "), Generation("y z"), "z")], bounded=True))
    assert [[span.text for span in text.spans] for text in texts] == [["A: ", "x"], ["B: ", "y ", "z"]]


def test_a_task_that_takes_another_course_is_refused(tmp_path):
    models = {"policy": load()}
    settings = Settings("act", "act", max_steps=4)
    begun = recorded(tmp_path, models, settings)
    other = replace(TASK, make=lambda: HouseholdEnv(make_game(5)))
    with pytest.raises(DataError, match="recorded course"):
        replay_texts(other, begun.answers[:-1], HOUSEHOLD, models, settings)
