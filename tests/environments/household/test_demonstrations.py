"""Worked examples of the household's tasks: from the transcripts of ALFWorld's expert, or from generated games."""

from functools import partial
from itertools import islice

import pytest

from constrained.agents.demonstrations import check_demonstration
from constrained.agents.prompts import PromptParts, conversation
from constrained.environments.base import WithDemonstrations
from constrained.environments.household import HouseholdEnv, load_games, make_game
from constrained.environments.household.env import EXAMPLE_GAMES
from constrained.environments.household.task_spec import LIGHT, TASK_TYPES, parse_task
from constrained.environments.household.transcripts import STEPS, TRANSCRIPTS, transcribed
from constrained.knowledge import ActionKnowledge
from tests.data import shared


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_examples_are_other_tasks_of_the_same_kind_and_the_knowledge_admits_them(task_type):
    shared(TRANSCRIPTS)
    env = HouseholdEnv(make_game(0, task_type))
    assert isinstance(env, WithDemonstrations)
    examples = env.demonstrations(3)
    specs = [parse_task(example.task) for example in examples]
    assert [spec.task_type for spec in specs] == [task_type] * 3
    assert len({spec.object_kind for spec in [*specs, parse_task(env.task)]}) == 4
    knowledge = env.form(ActionKnowledge.from_lark("household"))
    for example in examples:
        check_demonstration(example, knowledge)
        assert len(example.steps) in STEPS and "You are in the middle of a room" in example.first_observation
    assert env.demonstrations(3) == examples and env.demonstrations(1) == examples[:1] and not env.demonstrations(0)


def test_an_example_is_won_in_its_own_training_game_by_the_answers_it_shows():
    shared("alfworld/games_2.1.1_train.tar.xz")
    shared(TRANSCRIPTS)
    example, *_ = transcribed(LIGHT, "")
    assert any(map(partial(is_won_by, example), map(HouseholdEnv, islice(load_games("train"), 40))))


def is_won_by(example, env):
    said = env.reset() == example.first_observation
    return said and all(not env.done and env.step(s.action)[0] == s.observation for s in example.steps) and env.done


def test_an_example_is_never_from_the_room_that_is_played():
    shared(TRANSCRIPTS)
    anywhere = "look_at_obj_in_light-Mug-None-DeskLamp/seed_1"
    first, second, *_ = transcribed(LIGHT, anywhere)
    here = transcribed(LIGHT, anywhere.replace("DeskLamp/", "DeskLamp-323/"))
    assert "alarmclock" in first.task and first not in here and second in here


def test_a_prompt_holds_them_as_turns():
    shared(TRANSCRIPTS)
    env = HouseholdEnv(make_game(0, "pick_clean_then_place_in_recep"))
    knowledge = ActionKnowledge.from_lark("household")
    (example,) = env.demonstrations(1)
    turns = conversation(
        PromptParts(env.task, knowledge, knowledge.to_text(), "act", [example], first_observation=env.reset())
    )
    assert [turn["content"] for turn in turns if turn["role"] == "assistant"] == [s.action for s in example.steps]
    assert turns[1]["content"] == example.first_observation
    assert env.task in turns[-1]["content"] and example.steps[-2].observation == turns[-3]["content"]


def test_without_transcripts_the_examples_are_generated_games_that_the_expert_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    knowledge = ActionKnowledge.from_lark("household")
    for task_type in TASK_TYPES:
        env = HouseholdEnv(make_game(7, task_type))
        examples = env.demonstrations(2)
        things = {parse_task(one.task).object_kind for one in (env, *examples)}
        assert len(examples) == 2 and len(things) == 3
        for example in examples:
            check_demonstration(example, env.form(knowledge))
            assert all(step.thought for step in example.steps)
            games = (HouseholdEnv(make_game(seed, task_type)) for seed in range(EXAMPLE_GAMES))
            assert any(is_won_by(example, game) for game in games)
    env.task = "tidy up"
    assert env.demonstrations(2) == []
