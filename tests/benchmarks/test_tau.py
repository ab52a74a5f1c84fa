"""constrained bench tau: gold calls are admitted, calls drawn at random are, and the record is compared."""

import json
import lzma
import os

import pytest

from benchmarks import tau
from benchmarks.tau_environment import RecordedDomain, TauDomain, TauEnv, find_domain
from benchmarks.tau_play import play_at_random
from constrained.cli import main
from constrained.errors import DataError
from tests.data import shared


def live(name):
    """A domain with tau-bench's own tools, which are no part of the data."""
    if not os.environ.get("TAU_BENCH"):
        pytest.skip("needs tau-bench's tools: set TAU_BENCH to a checkout of sierra-research/tau-bench")
    return TauDomain(name)


def recorded(name):
    return RecordedDomain(name, shared("tau_bench/gold_transcripts.jsonl.xz"))


@pytest.fixture(scope="module")
def airline():
    domain = live("airline")
    return domain, domain.knowledge()


@pytest.mark.parametrize(
    ("name", "split", "every"), [("airline", "test", 1), ("retail", "train", 12), ("retail", "dev", 1)]
)
def test_gold_calls_are_admitted_after_what_the_tools_answered(name, split, every):
    domain = recorded(name)
    tasks = domain.tasks(split)[::every]
    row = tau.replay_gold(domain, domain.knowledge(), split, tasks)
    assert row["tasks"] == len(tasks) and row["not admitted"] == []
    assert row["admitted"] == row["actions"] > len(tasks) and row["lookups admitted"] == row["lookups"] > len(tasks)
    assert row["answered with an error"] == (3 if split == "train" else 0)


def test_gold_calls_are_not_admitted_before_their_lookups():
    domain = recorded("airline")
    tasks = [
        task._replace(steps=[step for step in task.steps if step.kind != "lookup"]) for task in domain.tasks("test")
    ]
    row = tau.replay_gold(domain, domain.knowledge(), "test", tasks[::5])
    assert row["admitted"] < row["actions"] and row["not admitted"][0]["why"]


def test_the_real_tools_answer_what_was_recorded(airline):
    domain, knowledge = airline
    known = recorded("airline")
    assert known.infos == domain.infos
    for task, transcript in list(zip(domain.tasks("test"), known.tasks("test")))[:10]:
        steps = [step[:3] for step in tau.gold_steps(domain, knowledge, task)]
        assert steps == [step[:3] for step in tau.gold_steps(known, knowledge, transcript)]


def test_a_domain_is_recorded_unless_a_checkout_is_named(monkeypatch, tmp_path):
    path = shared("tau_bench/gold_transcripts.jsonl.xz")
    monkeypatch.delenv("TAU_BENCH", raising=False)
    monkeypatch.setenv("CONSTRAINED_DATA", str(path.parent.parent))
    assert type(find_domain("retail")) is RecordedDomain
    monkeypatch.setenv("TAU_BENCH", str(tmp_path))
    with pytest.raises(DataError, match="there is no tau_bench in"):
        find_domain("retail")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "can't read"),
        (b"{}", "can't read"),
        (b'{"domain": "retail", "tools": []}', "no transcripts of 'airline'"),
    ],
)
def test_transcripts_that_cannot_be_read_are_told(tmp_path, lines, message):
    path = tmp_path / "gold.jsonl.xz"
    if lines:
        path.write_bytes(lzma.compress(lines))
    with pytest.raises(DataError, match=message):
        RecordedDomain("airline", path)


def test_play_needs_the_real_tools(monkeypatch, capsys):
    monkeypatch.delenv("TAU_BENCH", raising=False)
    assert main(["bench", "tau", "--play", "1", "--model", "random", "--domain", "retail"]) == 1
    assert "tau-bench's tools aren't there" in capsys.readouterr().err


def test_gold_calls_are_admitted_on_the_real_tools(airline):
    domain, knowledge = airline
    row = tau.replay_gold(domain, knowledge, "test", domain.tasks("test")[:2])
    assert row["admitted"] == row["actions"] > 0 and row["lookups admitted"] == row["lookups"] > 0


def test_gold_calls_that_the_tools_refuse_are_admitted_too():
    """A gift card that holds too little: the tool says so, and changes nothing. A user may be looked for twice."""
    domain = live("retail")
    knowledge = domain.knowledge()
    task = domain.tasks("train")[24]
    finder = ("find_user_id_by_email", {"email": domain.data()["users"][task.user]["email"]})
    row = tau.replay_gold(domain, knowledge, "train", [task._replace(actions=(*task.actions, finder))])
    assert row["answered with an error"] == 1 and row["admitted"] == row["actions"] == 3 and not row["not admitted"]


def test_what_no_tool_shows_forbids_only_by_what_is_said(airline):
    """Whether the airline cancelled a flight: an economy reservation of long ago, without insurance."""
    domain, knowledge = airline
    steps = tau.gold_steps(domain, knowledge, domain.tasks("test")[10])
    name, arguments, memory = next(step[1:] for step in steps if step[1] == "cancel_reservation")
    policy = knowledge.tools.policy

    def admitted(answer: str) -> bool:
        now = policy.told(memory, policy.message, {"content": "What is the reason?"}, answer)
        return not knowledge.tools.unmet(now, name, arguments)

    assert not knowledge.tools.unmet(memory, name, arguments)
    assert admitted("Yes, the airline cancelled my flight.") and not admitted("Yes, I have other plans.")


def test_calls_drawn_at_random_are_admitted(airline):
    domain, knowledge = airline
    env = TauEnv(domain, domain.tasks("test")[0], knowledge)
    play_at_random(env, knowledge, 4)
    assert env.counts["actions"] > 0 == env.counts["no call"] + env.counts["against the policy"]


def test_the_record_is_compared_and_kept(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tau, "RECORD", tmp_path / "tau.json")
    row = {"domain": "airline", "split": "test", "admitted": 5}
    talks = {"errors admitted": 0, "others admitted": 5}
    result = {"gold": [row], "cost": [], "played": [], "conversations": talks}
    assert tau.compare(result, True) == 0
    assert json.loads((tmp_path / "tau.json").read_text())["gold"] == [row]
    assert tau.compare({**result, "gold": [{**row, "admitted": 4}]}, False) == 1
    assert "WORSE: airline, test: admitted: 5 is now 4" in capsys.readouterr().out
    assert tau.compare({**result, "gold": [{**row, "admitted": 6}]}, False) == 0
    assert tau.compare({**result, "conversations": {**talks, "errors admitted": 1}}, False) == 1


@pytest.mark.parametrize("words", [["--exact", "--limit", "1"], ["--update"]])
def test_only_whole_runs_are_compared(capsys, words):
    assert main(["bench", "tau", *words]) == 1
    assert "compare" in capsys.readouterr().err


def test_conversations_that_cannot_be_read_are_told_before_anything_is_replayed(tmp_path, capsys):
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes(lzma.compress(b'{"traj": []}\n' * 100)[:-20])
    assert main(["bench", "tau", "--conversations", str(path)]) == 1
    told = capsys.readouterr()
    assert "can't read conversations from" in told.err and "retail train" not in told.err
