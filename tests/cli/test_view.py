"""constrained view: one file for a run, what is in it and what is left out."""

import subprocess
import sys

import pytest

from constrained.cli import main
from tests.pages.traced import play


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    return play(tmp_path_factory.mktemp("view"), masks="off", trace=False)


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
        (["none.jsonl"], "can't read none.jsonl"),
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
