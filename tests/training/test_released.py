"""KnowAgent's released runs: what is read from them, and how long they are."""

import gzip
import json

import pytest

from benchmarks.household_solver import solve
from constrained import ActionKnowledge
from constrained.environments.household import make_game
from constrained.errors import DataError
from constrained.training.judging import judge_actions, judge_in_game
from constrained.training.released import ALFWORLD, HOTPOTQA, read_released
from constrained.training.trajectory import filter_trajectories, merge, reason_to_drop
from tests.data import shared

ROOM = """You are in the middle of a room. Looking quickly around you, you see a desk 10, and a desk 1.
Your task is to: put some mug on desk.
"""

GAME = (
    ROOM
    + """> Think: A mug -> desk 1.
> ActionPath: Start
> go to desk 1
On the desk 1, you see a mug 1.
> take mug 1 from desk 1
You pick up the mug 1 from the desk 1.
> go to desk 10
On the desk 10, you see nothing.
> put mug 1 in/on desk 10
You put the mug 1 in/on the desk 10.
"""
)

PROMPT = """Here are examples. ActionPath 9: Start->Search[not ours]->Search[nor this]
Action 9: Search[Invalid Action]
(END OF EXAMPLES)
Question: Wer baute die Größe-Halle → in Łódź?
ActionPath 1: Start
Thought 1: hm
Action 1: Search[Łódź -> Halle]
Observation 1: A hall.
ActionPath 2: Start->Search[Łódź -> Halle]
Thought 2: two
lines
Action 2: Lookup[Größe]
Observation 2: No results.
ActionPath 3: Start->Search[Łódź -> Halle]->Lookup[Größe]
Action 3: Finish[Erna]
Observation 3: Answer is CORRECT
"""

QUESTION = {"question": "Wer baute die Größe-Halle → in Łódź?", "prompt": PROMPT, "correct": True, "reward": 1}


def file_of(tmp_path, *rows, name="runs.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_an_alfworld_run(tmp_path):
    path = file_of(tmp_path, {"name": "put/trial", "result": True, "traj": GAME})
    (run,) = read_released(path)
    assert (run.benchmark, run.task, run.success, run.outcome) == (ALFWORLD, "put/trial", True, {"success": 1.0})
    assert run.actions == ["go to desk 1", "take mug 1 from desk 1", "go to desk 10", "put mug 1 in/on desk 10"]
    assert run.turns[0][1] == "On the desk 1, you see a mug 1."
    assert run.given == ROOM.strip() and run.text == GAME[len(ROOM) :].strip()
    assert run.length == 6  # thoughts and paths are lines, too, each once
    assert run.source == f"{path}:1"


def test_a_hotpotqa_run(tmp_path):
    (run,) = read_released(file_of(tmp_path, QUESTION))
    assert (run.benchmark, run.task, run.success) == (HOTPOTQA, QUESTION["question"], True)
    assert run.outcome == {"success": 1.0, "f1": 1.0}
    assert run.turns == (
        ("Search[Łódź -> Halle]", "A hall."), ("Lookup[Größe]", "No results."), ("Finish[Erna]", "Answer is CORRECT"),
    )  # fmt: skip
    assert [done for _, done in run.paths] == [0, 1, 2]
    assert run.length == 2  # an arrow in brackets is none, and Start is no action
    assert run.given == f"Question: {run.task}" and run.text == PROMPT[PROMPT.index("ActionPath 1") :].strip()


@pytest.mark.parametrize("value, success", [(True, True), (False, False), (0, False), (1, True)])
def test_success_may_be_a_number(tmp_path, value, success):
    assert read_released(file_of(tmp_path, {"name": "n", "traj": GAME, "result": value}))[0].success is success


@pytest.mark.parametrize("value", [None, "True", 2, 0.5, []])
def test_success_is_nothing_else(tmp_path, value):
    rows = [{"name": "n", "traj": GAME, "result": True}, {"name": "m", "traj": GAME, "result": value}]
    path = file_of(tmp_path, *rows)
    with pytest.raises(DataError, match="row 2: .* under 'result' is neither true nor false"):
        read_released(path)


@pytest.mark.parametrize(
    "path, length",
    [
        ("Start", 0),
        ("Start->Search[a]", 1),
        ("Start->Search[a]->Search[a]->Lookup[b -> c]", 3),
        ("Start->Retrieve[a]->Finish[1990]", 1),  # as some wrote it before they finished
        ("Start->Retrieve[Finish]->Lookup[a]", 2),
        ("Start->Search[a [b] -> c]", 2),  # an action ends at its first bracket, for the authors' program, too
        ("Start->Search" + "[" * 1_000_000, 1),
    ],
)
def test_the_length_of_a_path(tmp_path, path, length):
    prompt = PROMPT.replace("Start->Search[Łódź -> Halle]->Lookup[Größe]", path)
    assert read_released(file_of(tmp_path, QUESTION | {"prompt": prompt}))[0].length == length


def test_runs_that_do_not_say_whether_they_succeeded_can_be_judged_but_not_filtered(tmp_path):
    (run,) = read_released(file_of(tmp_path, {"question": "who?", "prompt": PROMPT}))
    acts = judge_actions(run.actions, ActionKnowledge.from_lark("hotpotqa"))
    assert [act.verdict for act in acts] == ["ok", "ok", "ok"]
    with pytest.raises(DataError, match=r"runs\.jsonl:1: nothing says whether this run succeeded"):
        run.trajectory(acts)


@pytest.mark.parametrize("said, reason", [("Invalid Action", "refused action"), ("Search error", "search error")])
def test_what_the_environment_answered_is_looked_for_after_the_examples(tmp_path, said, reason):
    refused = PROMPT.replace("No results.", f"{said}. Try again.")
    plain, troubled = read_released(file_of(tmp_path, QUESTION, QUESTION | {"prompt": refused}))
    assert reason_to_drop(plain.trajectory([]), "released") is None
    assert reason_to_drop(troubled.trajectory([]), "released") == reason


def test_a_run_that_wrote_nothing_is_as_long_as_it_is(tmp_path):
    rows = [QUESTION | {"prompt": ""}, QUESTION | {"prompt": "Action 1: Search[a]\nAction 2: Finish[b]"}]
    empty, pathless = read_released(file_of(tmp_path, *rows))
    assert (empty.length, empty.actions, empty.text) == (0, [], "")
    assert (pathless.length, pathless.actions) == (2, ["Search[a]", "Finish[b]"])
    (game,) = read_released(file_of(tmp_path, {"name": "n", "traj": "", "result": False}))
    assert (game.length, game.actions, game.text) == (0, [], "")


def test_empty_lines_count_for_the_place(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("\n\n" + json.dumps(QUESTION) + "\n\n" + json.dumps(QUESTION) + "\n")
    assert [run.source for run in read_released(path)] == [f"{path}:3", f"{path}:5"]
    assert len(read_released(path, 1)) == 1


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"name": "a", "traj": ""}\n{"name": "b"}\n', "row 2: no text under 'traj'"),
        (b'{"name": "a", "traj": ""}\n{"question": "b", "prompt": ""}\n', "row 2: no text under 'name'"),
        (b'{"question": "a", "prompt": "", "reward": "1"}\n', "row 1: no number under 'reward'"),
        (b'{"question": "a", "prompt": ""}\n{"questio', "row 2: not JSON"),
        (b'{"answer": 1}\n', r"runs of an unknown form \(answer\)"),
        (b"[]\n", "row 1: not an object but a list"),
        (b"\n", "holds no runs"),
    ],
)
def test_a_broken_row_is_one_error_with_its_place(tmp_path, content, message):
    path = tmp_path / "runs.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=message):
        read_released(path)


def test_a_cut_archive_is_an_error(tmp_path):
    path = tmp_path / "runs.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(QUESTION) + "\n" for _ in range(9)).encode())[:-12])
    with pytest.raises(DataError, match="can't read .*runs.jsonl.gz after row"):
        read_released(path)


def test_verdicts_in_a_game_know_what_is_in_view_and_end_with_it():
    game = make_game(3, "pick_and_place_simple")
    plan = solve(game)
    actions = ["dance", plan[0], plan[0], *plan[1:]]
    acts = judge_in_game([*actions, "look"], game, ActionKnowledge.from_lark("household"))
    assert [act.text for act in acts] == actions
    assert [act.had_effect for act in acts] == [False, True, False] + [True] * (len(plan) - 1)
    assert [act.verdict == "ok" for act in acts] == [act.had_effect for act in acts]
    assert all(act.reason for act in acts if not act.had_effect)


@pytest.mark.parametrize(
    "benchmark, runs, correct, merged", [(HOTPOTQA, 500, (132, 140), 184), (ALFWORLD, 510, (134, 182), 218)]
)
def test_by_the_released_rule_as_many_are_kept_and_merged_as_the_authors_had(benchmark, runs, correct, merged):
    rounds = [
        read_released(shared(f"knowagent/KnowAgent{benchmark}_llama-2-13b_{name}.jsonl.gz")) for name in ("D0", "D1")
    ]
    assert [len(one) for one in rounds] == [runs, runs]
    filtered = [filter_trajectories([run.trajectory([]) for run in one], "released") for one in rounds]
    assert tuple(len(one.kept) for one in filtered) == correct
    assert [one.reasons for one in filtered] == [{"not correct": runs - n} for n in correct]
    assert len(merge(filtered[0].kept, filtered[1].kept)) == merged


def test_every_correct_hotpotqa_run_keeps_the_rules():
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    for name, correct in (("D0", 132), ("D1", 140)):
        runs = read_released(shared(f"knowagent/KnowAgentHotpotQA_llama-2-13b_{name}.jsonl.gz"))
        judged = [run.trajectory(judge_actions(run.actions, knowledge)) for run in runs]
        assert len(filter_trajectories(judged, "paper").kept) == correct
        assert any(t.violation for t in judged) == (name == "D0")  # some that are not correct do not
