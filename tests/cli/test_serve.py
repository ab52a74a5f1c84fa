"""constrained view, playground and lsp: pages of runs, and what is said if optional packages are missing."""

import subprocess
import sys

import pytest

from constrained.cli import main
from tests.pages.traced import play


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    return play(tmp_path_factory.mktemp("view"), level="form")


def view(capsys, *argv):
    code = main(["view", *map(str, argv)])
    return code, *capsys.readouterr()


def test_a_page_beside_the_run(capsys, run_file):
    code, out, _ = view(capsys, run_file)
    page = run_file.with_suffix(".html")
    assert code == 0 and out.startswith(f"wrote {page}: 2 tasks, ") and "tokens were not recorded (--trace)" in out
    assert page.read_text().startswith("<!doctype html>")


def test_chosen_tasks_in_a_named_file(capsys, run_file, tmp_path):
    page = tmp_path / "new" / "page.html"
    code, out, _ = view(capsys, run_file, "--most", 1, "--output", page)
    assert code == 0 and f"wrote {page}: 1 task, " in out
    assert "left out 1 task: as requested; --task NAME chooses" in out
    code, out, _ = view(capsys, run_file, "--task", "pick_two*", "--output", page)
    assert code == 0 and f"wrote {page}: 1 task, " in out


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ([], "give a run's file or --serve"),
        (["none.jsonl"], "'none.jsonl' is not a file"),
        (["none.jsonl", "--serve"], "give a run's file or --serve"),
        (["none.jsonl", "--most", "0"], "--most is 0"),
        (["none.html", "--output", "none.html"], "is the run itself"),
    ],
)
def test_what_cannot_be_shown_is_an_error(capsys, arguments, problem):
    code, out, err = view(capsys, *arguments)
    assert code == 1 and out == "" and problem in err and "hint: " in err


def test_a_run_is_looked_at_without_torch(run_file):
    script = (
        f"import sys; from constrained.cli import main; code = main(['view', {str(run_file)!r}]); "
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_page_never_replaces_the_run(capsys, run_file, monkeypatch):
    before = run_file.read_bytes()
    monkeypatch.chdir(run_file.parent)
    for name in (run_file, f"../{run_file.parent.name}/{run_file.name}"):
        code, _, err = view(capsys, run_file.name, "--output", name)
        assert code == 1 and "hint: " in err
    assert run_file.read_bytes() == before


@pytest.mark.parametrize(
    "command, package, extra",
    [
        (["playground", "--no-browser"], "starlette", "playground"),
        (["view", "--serve", "."], "starlette", "playground"),
        (["view", "--serve", "."], "uvicorn", "playground"),
        (["lsp"], "pygls", "lsp"),
    ],
)
def test_a_missing_package_is_told_of_with_what_installs_it(capsys, monkeypatch, command, package, extra):
    ours = "constrained.playground.app", "constrained.pages.local_server", "constrained.pages.run_list"
    for name in (*ours, "constrained.language_server.server"):
        room, _, module = name.rpartition(".")
        monkeypatch.delitem(sys.modules, name, raising=False)
        if room in sys.modules:  # where `from ... import` would find it as well
            monkeypatch.delattr(sys.modules[room], module, raising=False)
    for name in {package, *(name for name in sys.modules if name.startswith(f"{package}."))}:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(command) == 1
    err = capsys.readouterr().err
    assert f"needs {package}, which isn't installed" in err and f"'constrained-agents[{extra}]'" in err


def test_a_run_is_looked_at_without_a_server(capsys, run_file, monkeypatch, tmp_path):
    for name in ("starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    assert view(capsys, run_file, "--output", tmp_path / "page.html")[0] == 0
