"""Self-learning: Algorithm 1, piece by piece on disk; broken off anywhere, it ends as if it had not been."""

import json
import shutil
from dataclasses import replace

import pytest

from constrained.agents.run_file import read_tasks
from constrained.agents.settings import Settings
from constrained.environments.suite import open_suite
from constrained.errors import ConstrainedError, DataError, TrainingError
from constrained.training import learners
from constrained.training import self_learning as module
from constrained.training.self_learning import Schedule, best, gain, self_learning
from constrained.training.settings import Tuning
from tests.decoding.tiny import tiny

TRAIN = open_suite("household", limit=4, seed=7)
TEST = open_suite("household", limit=1)
SYNTHESIS = Settings("act", "act", max_steps=14, temperature=1.0)
TUNING = Tuning(rank=2, epochs=1, batch=8, accumulation=1, rate=1e-3)
SCHEDULE = Schedule(rounds=2)


def learn(folder, *, synthesis=SYNTHESIS, schedule=SCHEDULE, tuning=TUNING, **options):
    return self_learning(
        TRAIN, [TEST], folder, synthesis=synthesis, schedule=schedule, tuning=tuning, batch=4, **options
    )


def timeless(data):
    """Without times, and what float32 sums make of them."""
    if isinstance(data, float):
        return round(data, 4)
    if isinstance(data, dict):
        return {key: timeless(value) for key, value in data.items() if "seconds" not in key}
    return [timeless(value) for value in data] if isinstance(data, list) else data


def weights(folder):
    return {path.parts[-3]: path.read_bytes() for path in sorted(folder.glob("round-*/adapter/*.safetensors"))}


def merged(folder, number):
    return [json.loads(line) for line in (folder / f"round-{number}" / "merged.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, learn(folder)


def test_a_round_plays_filters_merges_tunes_and_tests(whole):
    folder, reports = whole
    assert [report["round"] for report in reports] == [0, 1, 2]
    assert json.loads((folder / "report.json").read_text()) == reports
    first, later, last = reports
    assert set(first) == {"round", "test"} and set(first["test"]) == {TEST.name}
    for report in (later, last):
        assert report["kept"] + sum(report["dropped"].values()) == report["synthesis"]["tasks"] == len(TRAIN.tasks)
        assert report["merged"] == len(merged(folder, report["round"])) <= len(TRAIN.tasks)
        assert report["texts"] == sum(len(line["texts"]) for line in merged(folder, report["round"]))
        assert report["tuning"]["steps"] > 0
    assert len(set(weights(folder).values())) == 2


def test_masks_keep_invalid_and_misordered_at_0_in_synthesis(whole):
    _, reports = whole
    for report in reports[1:]:
        figures = report["synthesis"]
        assert figures["actions"] > 0 and figures["invalid %"] == figures["misordered %"] == 0
        assert report["dropped"].keys() <= {"not correct"}


def test_the_shorter_path_of_each_task_is_learned_whichever_round_it_is_of(whole):
    folder, _ = whole
    won = {}
    for number in (1, 2):
        for name, played in read_tasks(folder / f"round-{number}" / "synthesis.jsonl")[1].items():
            if played.end["success"]:
                won.setdefault(name, {})[number] = len(played.steps)
    assert {line["task"] for line in merged(folder, 2)} == won.keys()
    for line in merged(folder, 2):
        lengths = won[line["task"]]
        shortest = min(lengths.values())
        assert line["length"] == shortest
        assert line["source"].startswith("2/" if lengths.get(2) == shortest else "1/")


def test_without_masks_exactly_what_breaks_the_knowledge_is_dropped(tmp_path):
    free = Settings("act", "act", constrained=False, max_steps=14, temperature=0.7)
    [_, report] = learn(tmp_path, synthesis=free, schedule=Schedule(rounds=1))
    _, played = read_tasks(tmp_path / "round-1" / "synthesis.jsonl")
    verdicts = {name: [step["verdict"] for step in one.steps] for name, one in played.items()}
    clean = {name for name, one in played.items() if one.end["success"] and set(verdicts[name]) == {"ok"}}
    assert {line["task"] for line in merged(tmp_path, 1)} == clean
    dropped = {line["run"]: line for line in json.loads((tmp_path / "round-1" / "dropped.json").read_text())}
    assert dropped.keys() == played.keys() - clean
    for name, line in dropped.items():
        if line["reason"] == "not correct":
            assert not played[name].end["success"]
        else:
            first = next(step for step in played[name].steps if step["verdict"] != "ok")
            assert (line["reason"], line["action"]) == (f"{first['verdict']} action", first["action"])
    assert report["kept"] == len(clean)


@pytest.mark.parametrize("piece, call", [("play_all", 4), ("replay_texts", 2), ("tune", 1)])
def test_broken_off_before_any_piece_it_ends_as_an_unbroken_run(whole, tmp_path, monkeypatch, piece, call):
    folder, reports = whole
    place = module if piece == "play_all" else learners
    original, calls = getattr(place, piece), []

    def broken(*arguments, **options):
        calls.append(piece)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(place, piece, broken)
        with pytest.raises(KeyboardInterrupt):
            learn(tmp_path)
    assert timeless(learn(tmp_path)) == timeless(reports)
    assert weights(tmp_path) == weights(folder)


def test_more_rounds_go_on_from_those_that_are_there(whole, tmp_path):
    folder, reports = whole
    learn(tmp_path, schedule=Schedule(rounds=1))
    assert timeless(learn(tmp_path)) == timeless(reports)
    assert weights(tmp_path) == weights(folder)


def test_it_stops_when_a_round_gains_no_more_than_epsilon(whole, tmp_path):
    _, reports = whole
    gained = gain(TEST, reports[:2])
    assert len(learn(tmp_path, schedule=Schedule(rounds=2, epsilon=gained))) == 2


def test_the_best_round_has_the_best_score_then_the_shortest_paths_and_comes_first():
    def report(number, success, steps):
        return {"round": number, "test": {"a": {"success %": success, "steps of won": steps}}}

    assert best("a", [report(0, 50.0, 5.0), report(1, 75.0, 9.0), report(2, 75.0, 8.0), report(3, 75.0, 8.0)]) == 2
    assert best("a", [report(0, 0.0, 5.0), {"round": 1, "test": {"a": {"success %": 0.0}}}]) == 0


def test_whole_models_are_refused(tmp_path):
    with pytest.raises(TrainingError, match="an adapter for each round"):
        learn(tmp_path, tuning=Tuning(whole=True))


def test_several_samples_of_a_task_are_played_under_names_of_their_own(tmp_path):
    [_, report] = learn(tmp_path, schedule=Schedule(rounds=1, samples=2))
    assert report["synthesis"]["tasks"] == 2 * len(TRAIN.tasks)
    assert report["merged"] <= len(TRAIN.tasks)
    with pytest.raises(ConstrainedError, match="all alike"):
        learn(tmp_path / "greedy", synthesis=Settings("act", "act"), schedule=Schedule(samples=2))


def test_no_correct_trajectory_is_said_with_the_reasons_and_nothing_is_lost(tmp_path):
    random = tiny(context=4096)
    short = Settings("act", "act", max_steps=1)
    with pytest.raises(ConstrainedError, match="round 1: none of 4 trajectories .*4 not correct"):
        learn(tmp_path, synthesis=short, model=(random.model, random.tokenizer))
    assert len(read_tasks(tmp_path / "round-1" / "synthesis.jsonl")[1]) == 4
    assert len(json.loads((tmp_path / "round-1" / "dropped.json").read_text())) == 4


def test_where_every_environment_breaks_down_the_error_says_how(tmp_path):
    def broken():
        raise OSError("no such room")

    rooms = replace(TRAIN, tasks=[replace(task, make=broken) for task in TRAIN.tasks])
    with pytest.raises(TrainingError, match="4 not correct; 4 were broken off, the first by OSError: no such room"):
        self_learning(rooms, [TEST], tmp_path, synthesis=SYNTHESIS, schedule=SCHEDULE, tuning=TUNING)


def test_another_run_in_the_same_folder_is_refused(whole):
    folder, _ = whole
    with pytest.raises(DataError, match="another run: tuning differs"):
        learn(folder, tuning=Tuning(rank=4))
    with pytest.raises(DataError, match="synthesis, test"):
        learn(folder, synthesis=Settings("react", "react", max_steps=14, temperature=1.0))


@pytest.mark.parametrize("name, text", [("report.json", "{"), ("report.json", "[]"), ("merged.jsonl", '{"task": 1}\n')])
def test_a_damaged_file_is_named(whole, tmp_path, name, text):
    folder = shutil.copytree(whole[0], tmp_path / "run", ignore=shutil.ignore_patterns("round-2"))
    (folder / "round-1" / name).write_text(text)
    with pytest.raises(DataError, match=name):
        learn(folder)
