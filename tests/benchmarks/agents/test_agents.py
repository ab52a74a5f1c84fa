"""The agents benchmark: resumes, counts right, and never admits a wrong action."""

import argparse
import json

import pytest

from benchmarks.agents import command as agents
from benchmarks.agents.prices import Price, dollars
from benchmarks.agents.published import published
from benchmarks.agents.report import table
from constrained.agents.metrics import summarise
from constrained.cli import main
from constrained.environments.suite import Suite
from constrained.errors import ConstrainedError
from tests.data import shared


@pytest.fixture
def arguments(tmp_path):
    parser = argparse.ArgumentParser()
    agents.add_arguments(parser)
    given = [
        "--environment",
        "household",
        "--games",
        "3",
        "--max-steps",
        "6",
        "--batch",
        "1",
        "--output",
        str(tmp_path),
    ]
    return parser.parse_args(given)


def lines(folder):
    (path,) = folder.glob("*masks-on*.jsonl")
    return path, path.read_text(encoding="utf-8").splitlines(keepends=True)


def test_masks_leave_nothing_invalid_and_a_run_resumes(arguments, tmp_path, capsys):
    arguments.level, arguments.random, arguments.json = ["state"], 0, tmp_path / "table.json"
    assert agents.run_command(arguments) == 0
    row = json.loads(arguments.json.read_text())["rows"][0]
    assert row["tasks"] == 3 and row["actions"] >= 3
    assert row["invalid %"] == 0 and row["misordered %"] == 0
    path, whole = lines(tmp_path)
    ends = {number: line for number, line in enumerate(whole) if "end" in json.loads(line)}
    assert len(ends) == 3 and "run" in json.loads(whole[0])

    cut = min(ends) + 3  # killed while writing the second game's third step
    path.write_text("".join(whole[:cut]) + whole[cut][:30], encoding="utf-8")
    agents.run_command(arguments)
    _, again = lines(tmp_path)
    assert again[:cut] == whole[:cut]
    assert [timeless(json.loads(line)) for line in again] == [timeless(json.loads(line)) for line in whole]
    assert "| knowagent | embedded | state | 3 |" in capsys.readouterr().out


def timeless(data):
    if isinstance(data, dict):
        return {key: timeless(value) for key, value in data.items() if key != "seconds"}
    return [timeless(value) for value in data] if isinstance(data, list) else data


USAGE = {"prompt_tokens": 30, "completion_tokens": 10, "forward_passes": 5, "seconds": 1.0}
WON = {
    "kind": "a", "steps": 4, "actions": 4, "success": True, "outcome": {"success": 1.0, "f1": 0.5}, "invalid": 1,
    "misordered": 2, "pruned mass": 0.5, "usage": {"policy": USAGE, "planner": USAGE},
}  # fmt: skip
LOST = {**WON, "kind": "b", "actions": 6, "success": False, "outcome": {}, "invalid": 0, "misordered": 0,
        "usage": {"policy": USAGE}, "failure": "GameError: fire"}  # fmt: skip


def test_summary_counts():
    figures = summarise([WON, LOST], ("success", "f1"))
    assert figures["success %"] == 50 and figures["f1 %"] == 25 and figures["steps of won"] == 4
    assert figures["invalid %"] == 10 and figures["misordered %"] == 20
    assert figures["success % by kind"] == {"a": 100, "b": 0} and figures["failed"] == 1
    assert figures["tokens"] == 15 and figures["prompt tokens"] == 45
    assert figures["tokens by role"]["planner"] == {"prompt_tokens": 30, "completion_tokens": 10}


def test_cost_is_a_tasks_each_role_at_its_price():
    prices = {"policy": Price(1e6, 2e6), "planner": Price(0, 1e6)}
    assert dollars([WON, LOST], prices)["dollars"] == (30 + 20 + 10 + 30 + 20) / 2
    row = {"strategy": "react", "model": "embedded", "level": "state", **summarise([WON]), **dollars([WON], prices)}
    assert "| cost |" in table([row], ("success",)) and "| $60.0000 |" in table([row], ("success",))
    assert dollars([WON], {}) == {}


@pytest.mark.parametrize(
    "options",
    [["--price", "policy=1"], ["--price", "butler=1/2"], ["--explore-steps", "0"], ["--over", "act"],
     ["--over", "act", "--strategy", "react"]],
)  # fmt: skip
def test_what_is_no_price_or_limit_is_told_before_anything_is_played(options, capsys):
    assert main(["bench", "agents", *options]) == 1
    assert options[0] in capsys.readouterr().err


def test_the_papers_have_a_table_of_their_own_with_what_differs():
    row = {"strategy": "react", "model": "embedded", "level": "state", **summarise([WON, LOST])}
    text = table([row], ("success",), published("alfworld/valid_seen"))
    ours, theirs, _, differs, *_ = text.split("\n\n")
    assert "| react | embedded | state | 2 |" in ours and "Llama" not in ours
    lines = theirs.splitlines()
    head = [cell.strip() for cell in lines[0].split("|")]
    (knowagent,) = [line for line in lines if line.startswith("| KnowAgent | Llama-2-70b")]
    assert knowagent.split("|")[head.index("success")].strip() == "77.1 %"
    (wese,) = [line for line in lines if line.startswith("| ReAct + WESE |")]
    assert wese.split("|")[head.index("steps when won")].strip() == "13.7"
    assert "KnowAgent, Table 1: the same 140 games" in differs and "134 other games" in differs
    assert "1 tasks of react failed" in text
    assert published("household/seed 0") == []


@pytest.mark.parametrize("role", ["oracle=x", "planner", "=x"])
def test_a_role_that_is_none_is_an_error(role, capsys):
    assert main(["bench", "agents", "--role", role]) == 1
    assert "the roles are planner" in capsys.readouterr().err


def test_bench_teaches(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "agents", "--help"])
    assert stopped.value.code == 0
    assert "--split" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["household_form", "alfred.pddl"])
def test_agents_held_to_other_knowledge_are_judged_by_the_environments_own(arguments, tmp_path, capsys, name):
    if name == "alfred.pddl":
        shared("alfworld/logic_2.1.1/alfred.pddl")
    arguments.level, arguments.random, arguments.knowledge, arguments.games = ["state"], 0, name, 1
    arguments.json = tmp_path / "table.json"
    assert agents.run_command(arguments) == 0
    [row] = json.loads(arguments.json.read_text())["rows"]
    assert row["knowledge"] == name and row["failed"] == 0
    assert f"| knowagent, held to {name} | embedded | state | 1 |" in capsys.readouterr().out
    head = json.loads(lines(tmp_path)[1][0])["run"]
    assert head["knowledge"]["name"] == name and head["judge"]["name"] == "household"


@pytest.mark.parametrize("over", ["act", "react"])
def test_wese_is_put_over_act_or_react(arguments, tmp_path, capsys, over):
    """Only ReAct's steps have thoughts; the exploration before them is of bare actions in either case."""
    arguments.level, arguments.random, arguments.games = ["state"], 0, 1
    arguments.strategy, arguments.over, arguments.explore_steps = ["wese"], over, 2
    assert agents.run_command(arguments) == 0
    steps = [step for line in lines(tmp_path)[1] if (step := json.loads(line).get("step"))]
    thinks = [step["phase"] == "exploit" and over == "react" for step in steps]
    assert [bool(step["thought"]) for step in steps] == thinks
    assert {step["phase"] for step in steps} == {"explore", "exploit"}
    assert f"| wese over {over} | embedded | state | 1 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"knowledge": "nonsense"}, "nonsense"),
        ({"knowledge": "household_form", "strategy": ["lumos"], "environment": "gsm8k"}, "Lumos"),
        ({"knowledge": "alfred.pddl", "environment": "hotpotqa"}, "doesn't fit hotpotqa"),
    ],
)
def test_knowledge_that_does_not_fit_is_refused(arguments, options, problem):
    if options.get("environment"):
        shared("hotpotqa" if options["environment"] == "hotpotqa" else "gsm8k")
    for name, value in options.items():
        setattr(arguments, name, value)
    with pytest.raises(ConstrainedError, match=problem):
        agents.run_command(arguments)


def test_rewards_are_in_the_columns_of_wese_where_tasks_have_a_score():
    end = {"success": False, "steps": 9, "actions": 9, "invalid": 0, "misordered": 0, "pruned mass": 0, "usage": {}}
    ends = [{**end, "kind": "boil", "outcome": {"score": score}, **first}
            for score, first in [(0.25, {"first reward": 2}), (0.5, {"first reward": 6}), (0.0, {})]]  # fmt: skip
    figures = summarise(ends, ("success", "score"))
    assert (figures["total reward"], figures["steps to reward"], figures["score %"]) == (75, 4, 25)
    assert "total reward" not in summarise(ends, ("success",))
    text = table(
        [{"strategy": "wese", "model": "m", "level": "off", **figures}], ("success", "score"), published("scienceworld")
    )
    assert "| total reward | steps to first reward |" in text and "| 5,317 | 19.6" in text


@pytest.mark.parametrize(
    ("strategy", "suite", "steps"),
    [("wese", "hotpotqa/local", 8), ("sese", "fever/live", 8), ("react", "hotpotqa/local", 10),
     ("wese", "alfworld/valid_seen", 50)],
)  # fmt: skip
def test_wese_has_its_own_limit_on_questions(strategy, suite, steps):
    most = 10 if suite.startswith("hotpotqa") else 50
    assert agents.most_steps(strategy, Suite(suite, "x", ()), most) == steps
