"""constrained bench tau: gold calls are admitted, calls drawn at random are, and the record is compared."""

import json
import lzma

import pytest

from benchmarks import tau
from benchmarks.tau_environment import TauDomain
from constrained.cli import main
from tests.data import shared


@pytest.fixture(scope="module")
def airline():
    shared("tau_bench/tau_bench.tar.xz")
    domain = TauDomain("airline")
    return domain, domain.knowledge()


def test_gold_calls_are_admitted_on_the_real_tools(airline):
    domain, knowledge = airline
    row = tau.replay_gold(domain, knowledge, "test", domain.tasks("test")[:2])
    assert row["admitted"] == row["actions"] > 0 and row["lookups admitted"] == row["lookups"] > 0


def test_gold_calls_that_the_tools_refuse_are_admitted_too():
    """A gift card that holds too little: the tool says so, and changes nothing. A user may be looked for twice."""
    shared("tau_bench/tau_bench.tar.xz")
    domain = TauDomain("retail")
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
    played = tau.play_at_random(tau.TauEnv(domain, domain.tasks("test")[0], knowledge), knowledge, 4)
    assert played["actions"] > 0 == played["not admitted"]


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


def test_conversations_that_cannot_be_read_are_told_before_anything_is_replayed(airline, tmp_path, capsys):
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes(lzma.compress(b'{"traj": []}\n' * 100)[:-20])
    assert main(["bench", "tau", "--conversations", str(path)]) == 1
    told = capsys.readouterr()
    assert "can't read conversations from" in told.err and "retail train" not in told.err
