"""Errors of recorded runs are counted by kind, with examples from different tasks."""

import json

import pytest

from constrained.cli import main

HEADER = {
    "suite": "house",
    "settings": {"strategy": "knowagent", "level": "state", "constrained": False},
    "models": {"policy": {"name": "a/model"}},
}


def step(n, action, verdict="ok", observation="Done.", **more):
    return {"n": n, "action": action, "verdict": verdict, "reason": more.pop("reason", ""), "observation": observation,
            "had_effect": True, "phase": "", **more}  # fmt: skip


def run_file(path, tasks):
    """A run's file with tasks, each its steps and its end."""
    lines = [{"run": HEADER}]
    for name, (steps, end) in tasks.items():
        lines += [{"task": name, "step": one, "answers": [], "sentence": f"do {name}"} for one in steps]
        lines += [{"task": name, "end": end}] if end else []
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


LOST = {"success": False, "note": "stopped at the limit of 3 steps"}
ANSWERED = {"success": False, "note": ""}
WON = {"success": True, "note": ""}


@pytest.mark.parametrize(
    ("steps", "end", "counted"),
    [
        ([step(1, "fly", "invalid", reason="no such action")], LOST, {"invalid": 1}),
        ([step(1, "take mug", "misordered")], LOST, {"misordered": 1}),
        ([step(1, "go", had_effect=False)], LOST, {"ineffective": 1}),
        ([step(1, "go"), step(2, "go")], LOST, {"ineffective": 1}),
        ([step(n, "go" if n % 2 else "come", observation=f"{n % 2}") for n in range(1, 6)], LOST, {"ineffective": 1}),
        ([step(1, "go"), step(2, "go", observation="Something else.")], WON, {}),
        ([step(1, "go", phase="explore"), step(1, "go", phase="exploit")], WON, {}),
        ([step(1, "go"), step(2, "answer")], ANSWERED, {"misunderstood": 1}),
        ([step(1, "go"), step(2, "come")], LOST, {"misunderstood": 1}),
        ([step(1, "fly", "invalid"), step(2, "answer")], ANSWERED, {"invalid": 1, "misunderstood": 1}),
        ([step(1, "go", path="Start->come", true_path="Start")], WON, {"wrong path": 1}),
        ([step(1, "go", path="Start", true_path="Start")], WON, {}),
        ([], LOST, {"misunderstood": 1}),
    ],
)
def test_each_kind_of_error_is_counted_where_it_is_and_nowhere_else(tmp_path, steps, end, counted):
    file = run_file(tmp_path / "run.jsonl", {"one": (steps, end)})
    assert main(["bench", "errors", file, "--json", str(tmp_path / "out.json")]) == 0
    (run,) = json.loads((tmp_path / "out.json").read_text())["runs"]
    assert {kind: number for kind, number in run["errors"].items() if number} == counted
    assert {kind for kind, found in run["examples"].items() if found} == set(counted)


def test_examples_are_of_different_tasks_first_and_tasks_that_are_not_over_do_not_count(tmp_path, capsys):
    wrong = [step(n, f"fly {n}", "invalid", reason="no such action") for n in range(1, 4)]
    tasks = {f"task {n}": (wrong, LOST) for n in range(4)} | {"open": (wrong, None), "dead": (wrong, {"failure": "x"})}
    file = run_file(tmp_path / "run.jsonl", tasks)
    assert main(["bench", "errors", file, "--json", str(tmp_path / "out.json")]) == 0
    (run,) = json.loads((tmp_path / "out.json").read_text())["runs"]
    assert run["tasks"] == 4 and run["errors"]["invalid"] == 12
    assert [one["task"] for one in run["examples"]["invalid"]] == ["do task 0", "do task 1", "do task 2"]
    assert "| knowagent, model, masks off | house | 4 | 0 | 12 | 12 (100.0 %) |" in capsys.readouterr().out


def test_texts_of_models_are_shown_in_one_printable_line(tmp_path, capsys):
    text = "go\n\x1b[31m" + "far " * 100
    file = run_file(tmp_path / "run.jsonl", {"one": ([step(1, text, "invalid")], LOST)})
    assert main(["bench", "errors", file]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- do one")]
    assert "\x1b" not in line and "far far" in line and len(line) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ('{"run": {}}\n', "names no settings"),
        (json.dumps({"run": HEADER}) + "\n", "has no finished task"),
        ("no run\n", "line 1"),
    ],
)
def test_what_is_no_run_is_refused_with_its_place(tmp_path, capsys, text, message):
    (tmp_path / "run.jsonl").write_text(text)
    assert main(["bench", "errors", str(tmp_path / "run.jsonl")]) == 1
    assert message in capsys.readouterr().err


def test_a_folder_of_runs_is_read_and_an_empty_one_refused(tmp_path, capsys):
    assert main(["bench", "errors", str(tmp_path)]) == 1
    assert "has no .jsonl file" in capsys.readouterr().err
    for name in ("a", "b"):
        run_file(tmp_path / f"{name}.jsonl", {"one": ([step(1, "go")], WON)})
    assert main(["bench", "errors", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("| knowagent, model, masks off |") == 2
