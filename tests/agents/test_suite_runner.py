"""A run's record: written as it happens, taken up where it broke off, held by one process at a time."""

import json
from dataclasses import replace
from functools import partial

import pytest

from constrained import ActionKnowledge
from constrained.agents.run_file import RunFile, read_run
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import header, label, play_suite
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.suite import Suite, Task, open_suite
from constrained.errors import DataError, GameError
from constrained.models import load
from tests.agents.random_model import RANDOM

MODELS = {"policy": load((RANDOM.model, RANDOM.tokenizer))}
KNOWLEDGE = ActionKnowledge.from_lark("household")
SETTINGS = Settings("act", "act", max_steps=4, temperature=1.0, seed=3)
SUITE = open_suite("household", limit=4)


def run(path, suite=SUITE, settings=SETTINGS, batch=1, stop_after=None):
    """What came of every task; broken off after so many lines, if asked for."""
    with RunFile(path, header(suite, KNOWLEDGE, MODELS, settings)) as file:
        if stop_after is not None:
            file.write = partial(_write_some, file.write, [stop_after])
        return {task.name: end for task, end in play_suite(suite, KNOWLEDGE, MODELS, settings, file, batch)}


def _write_some(write, left, line):
    if not left[0]:
        raise KeyboardInterrupt
    left[0] -= 1
    write(line)


def timeless(data):
    """Without times; masses as far as they don't hang on what the model had read before (float32 sums)."""
    if isinstance(data, float):
        return round(data, 5)
    if isinstance(data, dict):
        return {key: timeless(value) for key, value in data.items() if key != "seconds"}
    return [timeless(value) for value in data] if isinstance(data, list) else data


def by_task(path):
    """The lines of each task, in order, times aside."""
    found = {}
    for line in list(read_run(path))[1:]:
        found.setdefault(line["task"], []).append(timeless(line))
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "whole.jsonl"
    return path, run(path)


def test_every_step_and_every_end_is_a_line(whole):
    path, ends = whole
    lines = by_task(path)
    assert lines.keys() == ends.keys() == {task.name for task in SUITE.tasks}
    for name, (*steps, end) in lines.items():
        assert [line["step"]["n"] for line in steps] == [1, 2, 3, 4][: len(steps)]
        assert all(line["answers"][0]["text"].endswith(line["step"]["action"]) for line in steps)
        assert end["end"] == timeless(ends[name])
        assert end["end"]["invalid"] == end["end"]["misordered"] == 0
    assert next(read_run(path))["run"]["settings"]["seed"] == 3


@pytest.mark.parametrize("lines", range(0, 20, 3))
def test_a_run_broken_off_anywhere_ends_as_an_unbroken_one(whole, tmp_path, lines):
    path = tmp_path / "broken.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(path, stop_after=lines)
    kept = list(read_run(path))
    assert timeless(run(path)) == timeless(whole[1])
    assert list(read_run(path))[: len(kept)] == kept  # nothing was played twice
    assert by_task(path) == by_task(whole[0])


@pytest.mark.parametrize("batch", [2, 3, 10])
def test_side_by_side_comes_to_the_same(whole, tmp_path, batch):
    path = tmp_path / "batch.jsonl"
    assert timeless(run(path, batch=batch)) == timeless(whole[1])
    assert by_task(path) == by_task(whole[0])


def test_a_line_cut_short_is_played_again(whole, tmp_path):
    text = whole[0].read_bytes()
    path = tmp_path / "cut.jsonl"
    for size in (len(text) - 40, len(text) // 2, 10):
        path.write_bytes(text[:size])
        assert timeless(run(path)) == timeless(whole[1])
        assert by_task(path) == by_task(whole[0])


def test_one_process_writes_at_a_time(tmp_path):
    head = header(SUITE, KNOWLEDGE, MODELS, SETTINGS)
    with RunFile(tmp_path / "run.jsonl", head), pytest.raises(DataError, match="another run is writing"):
        run(tmp_path / "run.jsonl")
    run(tmp_path / "run.jsonl")


def test_the_record_of_another_run_is_refused(whole, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(whole[0].read_bytes())
    with pytest.raises(DataError, match="record of another run"):
        run(path, settings=replace(SETTINGS, seed=4))
    heads = [header(SUITE, KNOWLEDGE, MODELS, replace(SETTINGS, seed=seed)) for seed in (3, 3, 4)]
    assert label(heads[0]) == label(heads[1]) != label(heads[2])


@pytest.mark.parametrize("text, place", [("{broken}\n", "line 1"), ('{"run": 1}\n[]\n', "line 2"), ("\n", "line 1")])
def test_a_damaged_record_is_named_and_kept(tmp_path, text, place):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=f"run.jsonl, {place}"):
        list(read_run(path))
    with pytest.raises(DataError):
        run(path)
    assert path.read_text() == text


class Faulty(HouseholdEnv):
    """A household that dies at its third step, as long as a file is there."""

    def __init__(self, game, sign):
        super().__init__(game)
        self.sign, self.steps = sign, 0

    def step(self, action):
        self.steps += 1
        if self.steps == 3 and self.sign.exists():
            raise GameError("the machine caught fire")
        return super().step(action)


def test_an_environment_that_dies_ends_no_other_game_and_is_taken_up_again(whole, tmp_path):
    sign, path = tmp_path / "fire", tmp_path / "run.jsonl"
    sign.touch()
    first, second, *rest = SUITE.tasks
    faulty = Task(second.name, second.kind, partial(Faulty, make_game(1), sign))
    suite = Suite(SUITE.name, SUITE.knowledge, [first, faulty, *rest])
    ends = run(path, suite)
    assert ends.pop(second.name)["failure"] == "GameError: the machine caught fire"
    assert timeless(ends) == {name: timeless(end) for name, end in whole[1].items() if name != second.name}
    sign.unlink()
    assert timeless(run(path, suite)) == timeless(whole[1])
    steps = [line["step"]["n"] for line in by_task(path)[second.name] if "step" in line]
    assert steps == [1, 2, 3, 4]


def test_a_world_that_answers_otherwise_than_before_is_played_anew(whole, tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(path, stop_after=2)
    lines = list(read_run(path))
    lines[1]["step"]["observation"] = "You see a dragon."
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert timeless(run(path)) == timeless(whole[1])
    assert any(line.get("again") for line in list(read_run(path))[1:])


def test_a_traced_run_goes_on_with_its_traces(tmp_path):
    settings = replace(SETTINGS, trace=True)

    def tokens(path):
        lines = (line for line in read_run(path) if "step" in line)
        return {
            (line["task"], line["step"]["n"]): [t["text"] for a in line["answers"] for t in a["trace"]["tokens"]]
            for line in lines
        }

    run(tmp_path / "whole.jsonl", settings=settings)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken.jsonl", settings=settings, stop_after=6)
    run(tmp_path / "broken.jsonl", settings=settings)
    assert tokens(tmp_path / "broken.jsonl") == tokens(tmp_path / "whole.jsonl")


class Bare:
    """An environment that has nothing but what it must; it is over at once, with the reward it is told to give."""

    task = "look"

    def __init__(self, reward):
        self.reward = reward

    def reset(self):
        return "You see nothing."

    def step(self, action):
        return "So be it.", self.reward, True


def test_an_environment_needs_no_more_than_reset_and_step_and_wins_by_a_reward(tmp_path):
    suite = Suite(
        "bare", "household", [Task(f"worth {reward}", "bare", partial(Bare, reward)) for reward in (0.0, 0.5)]
    )
    ends = run(tmp_path / "bare.jsonl", suite)
    assert {name: end["success"] for name, end in ends.items()} == {"worth 0.0": False, "worth 0.5": True}
    assert not any("failure" in end for end in ends.values())
