"""`constrained bench ipc` plans instances, checks the plans, and goes on where it ended."""

import json

import pytest

from benchmarks.planbench import ipc
from constrained.cli import main
from tests.data import shared
from tests.planning.domains import FERRY, FERRY_PROBLEM, GRIPPER, ONE_HAND_PROBLEM, PUSHING
from tests.planning.test_search import CORRIDOR

INSTANCES = {
    "boat": (FERRY, FERRY_PROBLEM),
    "crates": (PUSHING, CORRIDOR.replace("GOAL", "(crate-at c7) (crate-at c3)")),
    "hand": (GRIPPER, ONE_HAND_PROBLEM),
    "wrong": (FERRY, FERRY_PROBLEM.replace("(:domain boat)", "(:domain ferry)")),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (domain, problem) in INSTANCES.items():
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "domain.pddl").write_text(domain)
        (tmp_path / "mine" / name / "problem.pddl").write_text(problem)
    return tmp_path


def test_each_instance_has_a_row_and_a_verdict(folder, capsys):
    assert main(["bench", "ipc", "--data", "mine", "--json", "out.json"]) == 0
    out, err = capsys.readouterr()
    rows = {row["name"]: row for row in json.loads((folder / "out.json").read_text())["rows"]}
    ends = {name: row["outcome"] for name, row in rows.items()}
    assert ends == {"boat": "solved", "crates": "no plan exists", "hand": "solved", "wrong": "refused"}
    assert rows["boat"]["length"] == 3 and rows["boat"]["valid"] and rows["hand"]["valid"]
    assert "of the domain ferry, not of boat" in rows["wrong"]["why"]
    assert "4 instances: 2 solved, 1 no plan exists, 1 refused" in out and "boat: facts" in err


def test_a_run_goes_on_where_it_ended_unless_something_changed(folder, capsys, monkeypatch):
    arguments = ["bench", "ipc", "--data", "mine", "--only", "boat", "--only", "hand"]
    assert main(arguments) == 0
    first = (folder / "runs" / "ipc.jsonl").read_text()
    assert main(arguments) == 0
    assert (folder / "runs" / "ipc.jsonl").read_text() == first
    (folder / "mine" / "boat" / "problem.pddl").write_text(FERRY_PROBLEM.replace("(at bus south)", "(at bus north)"))
    assert main(arguments) == 0
    assert len((folder / "runs" / "ipc.jsonl").read_text().splitlines()) == 3
    assert main([*arguments, "--seconds", "30"]) == 0
    assert len((folder / "runs" / "ipc.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    "plan, valid",
    [
        (["board van north", "sail north south", "debark van south"], True),
        (["board van north", "sail north south"], False),
        (["sail north south", "board van north"], False),
        (["board north van"], False),
        (["board van"], False),
        ([], False),
    ],
)
def test_the_simulator_tells_whether_a_plan_is_one(plan, valid):
    assert ipc.is_plan(ipc.Instance("boat", FERRY, FERRY_PROBLEM), map(str.split, plan)) == valid


@pytest.mark.parametrize("arguments", [["--only", "nobody"], ["--data", "nowhere"], ["--seconds", "0"]])
def test_what_is_wrong_is_said(folder, capsys, arguments):
    try:
        code = main(["bench", "ipc", *(["--data", "mine"] if "--data" not in arguments else []), *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code and capsys.readouterr().err.strip()


def test_no_recorded_plan_is_invalid():
    record = json.loads(ipc.RECORD.read_text(encoding="utf-8"))
    assert all(row["valid"] is not False for row in record["rows"])


def test_recorded_instances_are_those_of_the_data():
    shared(ipc.INSTANCES)
    record = json.loads(ipc.RECORD.read_text(encoding="utf-8"))
    assert [(row["name"], row["digest"]) for row in record["rows"]] == [
        (one.name, one.digest) for one in ipc.read_instances()
    ]


@pytest.mark.parametrize("name", ["schedule", "assembly-10", "flashfill-sat18", "hiking-opt14-strips-10"])
def test_middle_sized_problems_are_solved(name):
    shared(ipc.INSTANCES)
    [one] = [one for one in ipc.read_instances() if one.name == name]
    row = ipc.played(one, 60)
    assert row["outcome"] == "solved" and row["valid"]
