"""constrained check: what a knowledge file says, whether a path keeps to it, what published runs did."""

import gzip
import io
import json
import re

import pytest

from benchmarks.household_solver import solve
from constrained.cli import main
from constrained.environments.household import load_games
from tests.data import shared


def run(capsys, *argv):
    code = main(["check", *map(str, argv)])
    out, err = capsys.readouterr()
    return code, out, err


# a broken file, where actions are judged or drawn by it

BROKEN = '%declare _STEP\nstart: a | b\na: "A" _STEP (a | \nb: "B"\n'


@pytest.mark.parametrize("command", [["check", "--file", "-"], ["show"], ["plan", "task", "--knowledge"]])
def test_a_broken_file_is_shown_with_its_place(capsys, tmp_path, command):
    grammar, output = tmp_path / "broken.lark", tmp_path / "out.svg"
    grammar.write_text(BROKEN)
    assert main([*command, str(grammar), "--output", str(output)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and not output.exists() and list(tmp_path.iterdir()) == [grammar]
    first, line, caret, *hint = err.splitlines()
    assert re.match(r"error: broken\.lark:3:\d+: .", first)
    assert line == 'a: "A" _STEP (a | ' and re.fullmatch(r" *\^", caret)
    assert len(caret) == int(first.split(":")[3])
    assert hint[0].startswith("  hint: ")


# a path


def test_a_path_that_keeps_to_the_rules(capsys):
    code, out, _ = run(capsys, "hotpotqa", "Search[Milhouse]", "Lookup[named after]", "Finish[Richard Nixon]")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()[:3]] == ["ok", "ok", "ok"]
    assert out.splitlines()[-1] == "the path may end here"


def test_a_path_that_does_not_gives_exit_code_1_and_reasons(capsys, tmp_path):
    file = tmp_path / "report.json"
    code, out, err = run(capsys, "hotpotqa", "Lookup[x]", "Jump[y]", "--json", "--output", file)
    report = json.loads(out)
    assert code == 1 and err == "" and json.loads(file.read_text()) == report
    assert (report["misordered"], report["invalid"]) == (1, 1)
    code, out, _ = run(capsys, "hotpotqa", "Lookup[x]")
    assert code == 1
    assert "lookup is not admitted at the start; may follow: retrieve, search" in out


def test_a_path_in_a_world_is_judged_by_its_problem_s_facts(capsys, tmp_path):
    world = str(tmp_path / "den.lark")
    assert main(["new", "--world", world]) == 0
    assert main(["check", world, "go to office", "take key"]) == 0
    assert main(["check", world, "drop key"]) == 1
    assert "'drop key' is not possible here: it needs held key" in capsys.readouterr().out


def test_a_path_from_a_file_or_standard_input(capsys, tmp_path, monkeypatch):
    file = tmp_path / "path.txt"
    file.write_text("Search[Müller]\n\n  Finish[a]  \n", encoding="utf-8")
    assert run(capsys, "hotpotqa", "--file", file)[0] == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("Search[a]\nSearch[b"))
    code, out, _ = run(capsys, "hotpotqa", "--file", "-")
    assert code == 1 and "stops fitting after 'Search[b'" in out
    code, _, err = run(capsys, "hotpotqa", "--file", tmp_path / "none.txt")
    assert code == 1 and "can't read" in err and "none.txt" in err


def test_slots_are_bound_by_json(capsys):
    bound = ["--bind", 'RECEPTACLE=["desk 1"]', "--bind", 'OBJECT={"desk 1": ["mug 1"]}', "--bind", "HELD={}"]
    paper = "alfworld_paper/pick"
    assert run(capsys, paper, *bound, "go to desk 1", "take mug 1 from desk 1")[0] == 0  # options first
    assert run(capsys, paper, "go to desk 1", "take mug 1 from desk 1", *bound)[0] == 0
    assert run(capsys, paper, *bound, "go to desk 2")[0] == 1


@pytest.mark.parametrize(
    "binding, message",
    [
        ("RECEPTACLE", "is not SLOT=JSON"),
        ("RECEPTACLE=[", "is not SLOT=JSON"),
        ("RECEPTACLE=5", "is not SLOT=JSON"),
        ("RECEPTACLE=[]", "slot RECEPTACLE: nothing to choose from"),
        ("RECEPTACLE=[1]", "1 is not text"),
        ('OBJECT={"desk 1": 5}', "5 is not text"),
        ('TABLE=["desk 1"]', "no slot 'TABLE'"),
        ('_STEP=["x"]', "no slot '_STEP'"),
        ('RECEPTACLE=["desk 1"]', "slot HELD is not bound"),
    ],
)
def test_a_binding_that_cannot_be_is_an_error(capsys, binding, message):
    code, out, err = run(capsys, "alfworld_paper/pick", "--bind", binding, "go to desk 1")
    assert code == 1 and out == "" and err.startswith("error: ") and message in err


def test_an_action_that_is_no_text_is_an_error(capsys):
    code, out, err = run(capsys, "hotpotqa", "Search[\udcff]")  # as Python hands on bytes that are no UTF-8
    assert code == 1 and out == "" and "is not UTF-8 text" in err


def test_an_output_that_cannot_be_written_is_an_error(capsys, tmp_path):
    code, _, err = run(capsys, "hotpotqa", "--output", tmp_path)
    assert code == 1 and "it is a folder" in err
    (tmp_path / "file").write_text("x")
    code, _, err = run(capsys, "hotpotqa", "--output", tmp_path / "file" / "below.json")
    assert code == 1 and err.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_unknown_option_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as stopped:
        run(capsys, "hotpotqa", "Search[a]", "--fast")
    assert stopped.value.code == 2 and "unrecognized arguments: --fast" in capsys.readouterr().err


# runs


QUESTION = """(examples) Action 1: Search[not ours]
(END OF EXAMPLES)
Question: who?
ActionPath 1: Start
Thought 1: hm
Action 1: Search[a]
Observation 1: nothing
ActionPath 2: Start->Search[b]
Thought 2: hm
Action 2: Jump[a]
ActionPath 3: Start->Search[a]->Jump[a]
Action 3: Finish[a]
"""


def question_runs(path, rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_question_runs_are_counted(capsys, tmp_path, name):
    short = "ActionPath 1: Start\nAction 1: Lookup[a]\nObservation 1: No results found."
    rows = [{"question": "who?", "prompt": QUESTION}, {"question": "what?", "prompt": short}]
    file = question_runs(tmp_path / name, rows)
    code, out, _ = run(capsys, "hotpotqa", "--runs", file, "--json")
    assert code == 0
    figures = json.loads(out)[name]
    wrong = figures.pop("disagreements")
    assert figures == {
        "runs": 2, "actions": 4, "ok": 2, "invalid": 1, "misordered": 1,
        "written ActionPaths": 4, "of these other than the real history": 1,
        "Retrieve": 0, "of these without a page": 0, "Lookup": 1, "of these without a result": 1,
    }  # fmt: skip
    assert [d["action"] for d in wrong] == ["Jump[a]", "Lookup[a]"] and all(d["reason"] for d in wrong)
    code, out, _ = run(capsys, "hotpotqa", "--runs", file, "--limit", 1)
    assert code == 0 and "'Jump[a]': no admitted action begins like this" in out and "Lookup[a]" not in out


def test_household_runs_are_played_against_the_game(capsys, tmp_path):
    shared("alfworld/games_2.1.1_train.tar.xz")
    game = next(iter(load_games("train", every=3000)))
    actions = solve(game)
    lines = ["You are in the middle of a room.", "> think: let me see", "OK.", f"> {actions[0]}", "There.",
             f"> {actions[0]}", "Nothing happens.", "> dance", "Nothing happens."]  # fmt: skip
    lines += [line for action in actions[1:] for line in (f"> {action}", "Done.")] + ["> look", "x"]
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"name": game.name, "traj": "\n".join(lines), "result": True}) + "\n")
    code, out, _ = run(capsys, "household", "--runs", file, "--json")
    assert code == 0
    assert json.loads(out)["runs.jsonl"] == {
        "runs": 1, "actions": len(actions) + 2, "nothing happens": 2, "of these admitted": 0, "of these invalid": 2,
        "of these misordered": 0, "with effect": len(actions), "with effect and admitted": len(actions),
        "after the end": 1, "disagreements": [],
    }  # fmt: skip
    file.write_text(json.dumps({"name": "no such game", "traj": ""}) + "\n")
    code, _, err = run(capsys, "household", "--runs", file)
    assert code == 1 and "no game 'no such game' in train" in err


def test_published_runs_sampled(capsys):
    file = shared("knowagent/KnowAgentALFWorld_llama-2-13b_D0.jsonl.gz")
    shared("alfworld/games_2.1.1_train.tar.xz")
    code, out, _ = run(capsys, "household", "--runs", file, "--limit", 8, "--json")
    figures = json.loads(out)[file.name]
    assert code == 0 and figures["runs"] == 8
    assert figures["of these admitted"] == 0 and figures["nothing happens"] > 0
    assert figures["with effect and admitted"] == figures["with effect"] > 0


def damaged(tmp_path, kind):
    good = question_runs(tmp_path / "good.jsonl.gz", [{"question": str(i), "prompt": QUESTION * 9} for i in range(200)])
    data = good.read_bytes()
    good.unlink()
    file = tmp_path / f"{kind.replace(' ', '_')}.jsonl.gz"
    middle = len(data) // 2
    plain = {
        "cut short": data[:-20],
        "cut to the head": data[:5],
        "changed inside": data[:middle] + bytes(64) + data[middle + 64 :],
        "not compressed": b'{"question": "a", "prompt": "b"}\n',
        "not json": gzip.compress(b'{"question": "a", "prompt": "b"}\n{"question": "a", "pro'),
        "not utf-8": gzip.compress(b'{"question": "\xff", "prompt": "b"}\n'),
        "empty": gzip.compress(b"\n"),
        "of another form": gzip.compress(b'{"x": 1}\n'),
        "no objects": gzip.compress(b"[1, 2]\n"),
        "a row of another form": gzip.compress(b'{"question": "a", "prompt": "b"}\n{"question": "c"}\n'),
        "a value of another type": gzip.compress(b'{"question": "a", "prompt": null}\n'),
    }
    file.write_bytes(plain[kind])
    return file


@pytest.mark.parametrize(
    "kind, message",
    [
        ("cut short", "can't read"),
        ("cut to the head", "can't read"),
        ("changed inside", "changed_inside"),
        ("not compressed", "can't read"),
        ("not json", "row 2: not JSON"),
        ("not utf-8", "can't read"),
        ("empty", "holds no runs"),
        ("of another form", "runs of an unknown form (x)"),
        ("no objects", "row 1: not an object but a list"),
        ("a row of another form", "row 2: no text under 'prompt'"),
        ("a value of another type", "row 1: no text under 'prompt'"),
    ],
)
def test_damaged_runs_are_an_error_and_nothing_is_written(capsys, tmp_path, kind, message):
    file = damaged(tmp_path, kind)
    code, out, err = run(capsys, "hotpotqa", "--runs", file, "--output", tmp_path / "report.json")
    assert code == 1 and out == ""
    assert err.startswith("error: ") and message in err and file.name in err
    assert list(tmp_path.iterdir()) == [file]


def test_missing_runs_and_a_limit_of_none(capsys, tmp_path):
    code, _, err = run(capsys, "hotpotqa", "--runs", tmp_path / "none.jsonl.gz")
    assert code == 1 and "can't read" in err and "none.jsonl.gz" in err
    file = question_runs(tmp_path / "runs.jsonl", [{"question": "who?", "prompt": QUESTION}])
    for limit in (0, -1):
        code, _, err = run(capsys, "hotpotqa", "--runs", file, "--limit", limit)
        assert code == 1 and f"--limit is {limit}" in err


def test_a_report_never_replaces_what_was_checked(capsys, tmp_path, monkeypatch):
    file = tmp_path / "mine.lark"
    file.write_text('start: "a"\n')
    monkeypatch.chdir(tmp_path)
    for name in ("mine.lark", str(file), f"../{tmp_path.name}/mine.lark"):
        assert main(["check", "mine.lark", "--output", name]) == 1
        assert "can't be the output" in capsys.readouterr().err
    assert file.read_text() == 'start: "a"\n'


def test_json_schemas_are_told_of_keywords_without_effect(capsys, tmp_path):
    misspelt, fine, wrong = (tmp_path / f"{name}.json" for name in ("misspelt", "fine", "wrong"))
    misspelt.write_text('{"type": "string", "maxLenght": 5}')
    fine.write_text('{"type": "object"}')
    wrong.write_text('{"type": "nonsense"}')
    code, out, _ = run(capsys, misspelt, fine)
    assert code == 0 and "#/maxLenght" in out and "fine.json: no findings" in out
    assert run(capsys, misspelt, "--strict")[0] == 1
    code, out, _ = run(capsys, wrong, tmp_path / "missing.json", "--json")
    assert code == 1 and ["#/type" in one["error"] or "can't read" in one["error"] for one in json.loads(out)["files"]]
