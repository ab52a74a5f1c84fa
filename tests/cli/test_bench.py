"""constrained bench and plot: tables, JSON, and pictures of recorded results; damage is reported."""

import copy
import json
import re
from pathlib import Path

import pytest

from benchmarks.engine.report import amount
from benchmarks.result_files import DOCS, RESULTS
from constrained.cli import bench, main
from constrained.cli.bench import RECORDED
from tests.data import shared


def test_the_printed_rules_are_held_against_the_expert(capsys, tmp_path):
    shared("alfworld/games_2.1.1_train.tar.xz")
    shared("alfworld/expert_gt_traj_train.tar.xz")
    file = tmp_path / "rules.json"
    assert main(["bench", "rules", "--every", "500", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert sum(f["games"] for f in figures.values()) == 8
    assert all(f["household.lark: forbidden"] == 0 for f in figures.values())
    assert "| rule set | games |" in out and "Forbidden by the printed rules" in out


def test_without_data_the_error_says_what_to_set(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    assert main(["bench", "rules", "--json", str(tmp_path / "rules.json")]) == 1
    err = capsys.readouterr().err
    assert "no data file" in err and "set CONSTRAINED_DATA" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["", "-1", "0", "9" * 30, "nan"])
@pytest.mark.parametrize(
    "option", ["executor --limit", "original --every", "replay --every", "masks --games", "tau --limit"]
)
def test_numbers_that_no_benchmark_takes_are_one_clear_error(capsys, option, number):
    with pytest.raises(SystemExit):
        main(["bench", *f"{option}={number}".split(" ")])
    assert "is not a number from 1 to 10^9" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["bench", "tau", "--package"], ["train", "sft", "--model", "x", "--out"]])
def test_arguments_that_are_no_text_are_one_clear_error(capsys, command):
    assert main([*command, "\ud800"]) == 1
    assert "is not UTF-8 text" in capsys.readouterr().err


def test_an_installed_copy_says_how_to_get_the_benchmarks(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path)
    for arguments in (["bench", "engine", "--exact"], ["plot", "engine"]):
        assert main(arguments) == 1
        assert "clone the repository" in capsys.readouterr().err


matplotlib = pytest.importorskip("matplotlib")

PINNED = re.search(r"(?m)^matplotlib==([\d.]+)", (DOCS.parent / "constraints.txt").read_text())[1]
SVG = {"engine": "engine.svg", "agents": "agents.svg", "self-learning": "self_learning.svg"}


def drawn(tmp_path, kind, *given) -> str:
    """The picture; it is drawn without complaint."""
    picture = tmp_path / "picture.svg"
    assert main(["plot", kind, *map(str, given), "--output", str(picture)]) == 0
    return picture.read_text(encoding="utf-8")


def recorded(kind):
    return json.loads((RESULTS / RECORDED[kind]).read_text(encoding="utf-8"))


def written(tmp_path, data) -> Path:
    path = tmp_path / "result.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def words(svg: str) -> list[str]:
    """What is written in a picture: matplotlib names each text before its outlines."""
    return re.findall(r"<!-- (.*?) -->", svg)


@pytest.mark.parametrize("kind", RECORDED)
def test_the_documents_picture_is_drawn_from_the_recorded_result(tmp_path, kind):
    if matplotlib.__version__ != PINNED:
        pytest.skip(f"the committed pictures are drawn by matplotlib {PINNED}, here is {matplotlib.__version__}")
    assert drawn(tmp_path, kind) == (DOCS / SVG[kind]).read_text(encoding="utf-8"), f"run: constrained plot {kind}"


@pytest.mark.parametrize("kind", RECORDED)
def test_no_picture_needs_colour(tmp_path, kind):
    colours = set(re.findall(r"#[0-9a-f]{6}\b", drawn(tmp_path, kind)))
    assert len(colours) >= 3
    assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in colours), colours


def test_the_engines_picture_names_every_engine_and_who_was_wrong_or_too_slow(tmp_path):
    text = words(drawn(tmp_path, "engine"))
    assert {"constrained", "xgrammar", "llguidance", "outlines_core", "lmformatenforcer"} <= set(text)
    measured = [r for r in recorded("engine")["measurements"] if r["vocabulary"] == "tekken" and r["workload"]]
    assert text.count("over 15 s") == sum(r.get("reason") == "over 15 s" for r in measured)
    step = next(r for r in measured if r["engine"] == "ours" and r["workload"] == "step")
    assert {amount(step["first"]), amount(step["worst"]), "peer with wrong masks"} <= set(text)


def test_the_agents_picture_holds_every_strategy_and_every_row_of_the_papers_tables(tmp_path):
    from benchmarks.papers import KNOWAGENT_TABLE_1, WESE_TABLE_1

    text = words(drawn(tmp_path, "agents"))
    assert {row["strategy"] for row in recorded("agents")["rows"]} <= set(text)
    for (method, model), figures in KNOWAGENT_TABLE_1.items():
        if "ALFWorld seen" in figures:
            assert f"{method}, {model}" in text and f"{figures['ALFWorld seen']:.1f}" in text
    for method, figures in WESE_TABLE_1.items():
        assert f"{' + '.join(method)}, text-davinci-003" in text and f"{100 * figures['success']:.1f}" in text


def test_what_other_papers_measure_has_a_panel_of_its_own(tmp_path):
    text = words(drawn(tmp_path, "agents", RESULTS / "agents_hotpotqa.json"))
    assert {"success", "f1", "48.1", "41.6"} <= set(text)
    assert "as published" not in words(drawn(tmp_path, "agents", RESULTS / "agents_household.json"))


def test_one_runs_rounds_are_drawn_as_train_writes_them(tmp_path):
    rounds = recorded("self-learning")["runs"][0]["rounds"]
    text = words(drawn(tmp_path, "self-learning", written(tmp_path, rounds)))
    assert "alfworld/valid_seen, 140 tasks" in text and "KnowAgent, Llama-2-70b: 77.1" in text


def test_the_result_may_come_after_the_options_and_other_kinds_of_files_are_drawn(tmp_path):
    for suffix, head in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
        picture = tmp_path / "new" / f"picture{suffix}"
        assert main(["plot", "agents", "--output", str(picture), str(RESULTS / "agents_household.json")]) == 0
        assert picture.read_bytes().startswith(head)


def without(data, *path):
    data = copy.deepcopy(data)
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return data


def replaced(data, value, *path):
    data = copy.deepcopy(data)
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return data


AGENTS, ENGINE, ROUNDS = recorded("agents"), recorded("engine"), recorded("self-learning")
MANY = [{**AGENTS["rows"][0], "strategy": str(number)} for number in range(300)]
MEASURED = next(n for n, r in enumerate(ENGINE["measurements"]) if r["workload"] and r["status"] == "measured")


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("agents", '{"suite": "x", "rows": [', "not JSON"),
        ("agents", "", "not JSON"),
        ("agents", "[" * 100_000, "not JSON"),
        ("agents", [], "it is not an object"),
        ("agents", ENGINE, "it has no 'suite'"),
        ("engine", AGENTS, "it has no 'machine'"),
        ("self-learning", AGENTS, "it has no 'runs'"),
        ("agents", replaced(AGENTS, [], "rows"), "nothing was played"),
        ("agents", without(AGENTS, "rows", 3, "invalid %"), "['rows'][3] has no 'invalid %'"),
        ("agents", replaced(AGENTS, "12", "rows", 0, "misordered %"), "['misordered %'] is not a number"),
        ("agents", replaced(AGENTS, float("nan"), "rows", 0, "invalid %"), "is not a number"),
        ("agents", replaced(AGENTS, "on", "rows", 0, "level"), "['rows'][0]['level'] is not one of off, form"),
        ("agents", replaced(AGENTS, 1e300, "rows", 0, "invalid %"), "is not a number"),
        ("agents", replaced(AGENTS, MANY, "rows"), "318 lines are too many"),
        ("engine", replaced(ENGINE, [], "measurements"), "nothing was measured"),
        ("engine", replaced(ENGINE, -1.0, "measurements", MEASURED, "p50"), f"[{MEASURED}]['p50'] is not a time"),
        ("engine", replaced(ENGINE, 7, "measurements"), "['measurements'] is not a list"),
        ("engine", without(ENGINE, "measurements", MEASURED, "correct"), f"[{MEASURED}] has no 'correct'"),
        ("self-learning", replaced(ROUNDS, [], "runs"), "nothing to draw"),
        ("self-learning", replaced(ROUNDS, True, "runs", 0, "rounds", 1, "round"), "['round'] is not a whole number"),
        ("self-learning", replaced(ROUNDS, [1], "runs", 0, "rounds", 1, "test"), "['test'] is not an object"),
    ],
)
def test_damaged_and_foreign_results_are_told_with_their_place(tmp_path, capsys, kind, data, told):
    picture = tmp_path / "picture.svg"
    picture.write_text("as it was")
    assert main(["plot", kind, str(written(tmp_path, data)), "--output", str(picture)]) == 1
    error = capsys.readouterr().err
    assert told in error and error.count("error:") == 1, error
    assert picture.read_text() == "as it was"


@pytest.mark.parametrize("name", ["$\\frac{$", "x" * 5000, "a\nb\tc", "größe 10 < größe 1 --> <b>", "𝔘 漢字", ""])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_may_be_anything(tmp_path, name):
    rows = [{**row, "strategy": name, "model": name} for row in AGENTS["rows"][:2]]
    text = drawn(tmp_path, "agents", written(tmp_path, {**AGENTS, "suite": name, "rows": rows}))
    assert len(text) < 200_000 and "84.3" in words(text)
    runs = [{**run, "name": name, "words": name} for run in ROUNDS["runs"][:1]]
    assert len(drawn(tmp_path, "self-learning", written(tmp_path, {"runs": runs}))) < 250_000


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["agents", "no/such.json"], "no/such.json"),
        (["agents", "."], "can't read"),
        (["agents", "--output", "picture.gif"], "ends in .svg"),
        (["agents", "--output", "folder.svg"], "can't draw folder.svg"),
    ],
)
def test_what_cant_be_read_or_written_is_told(tmp_path, capsys, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    Path("folder.svg").mkdir()
    assert main(["plot", *given]) == 1
    error = capsys.readouterr().err
    assert told in error and "hint:" in error
