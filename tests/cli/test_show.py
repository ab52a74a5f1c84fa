"""constrained show: the graph as Mermaid or SVG, the knowledge as a model reads it, the list of what ships."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from constrained import ActionKnowledge
from constrained.cli import main
from constrained.grammar import shipped_names


def run(capsys, *argv):
    code = main(["show", *map(str, argv)])
    return code, *capsys.readouterr()


def test_mermaid_on_standard_output(capsys):
    code, out, _ = run(capsys, "hotpotqa", "--mermaid")
    assert code == 0 and out == ActionKnowledge.from_lark("hotpotqa").to_mermaid()
    assert out.startswith("flowchart ") and "    lookup --> finish\n" in out


def test_lines_of_text_as_wide_as_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = run(capsys, "household")
    assert code == 0 and out == ActionKnowledge.from_lark("household").to_table(60)


def test_a_table_of_dots_on_demand(capsys, tmp_path):
    file = tmp_path / "graph.svg"
    assert run(capsys, "hotpotqa", "--matrix", "--output", file)[0] == 0
    assert file.read_text() == ActionKnowledge.from_lark("hotpotqa").to_svg(matrix=True)
    code, _, err = run(capsys, "hotpotqa", "--matrix")
    assert code == 1 and "add --output FILE.svg" in err


def test_a_picture_in_a_file(capsys, tmp_path):
    file = tmp_path / "new" / "graph.svg"
    code, out, _ = run(capsys, "household", "--output", file)
    assert code == 0 and out == f"wrote {file}\n"
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("name, start", [("graph.mmd", "flowchart "), ("graph.MD", "```mermaid\nflowchart ")])
def test_mermaid_in_a_file(capsys, tmp_path, name, start):
    assert run(capsys, "hotpotqa", "--output", tmp_path / name)[0] == 0
    assert (tmp_path / name).read_text().startswith(start)


@pytest.mark.parametrize("name, kind", [("graph.txt", ".txt"), ("graph", "file without ending")])
def test_an_unknown_ending_is_an_error(capsys, tmp_path, name, kind):
    code, out, err = run(capsys, "hotpotqa", "--output", tmp_path / name)
    assert code == 1 and out == "" and list(tmp_path.iterdir()) == []
    assert f"can't draw a {kind}" in err and "hint: use .svg, .mmd or .md" in err


def test_text_and_the_list_of_what_ships(capsys):
    code, out, _ = run(capsys, "household", "--text")
    assert code == 0 and out == ActionKnowledge.from_lark("household").to_text() + "\n"
    code, out, _ = run(capsys)
    assert code == 0 and out.split() == shipped_names()
    assert {"household", "hotpotqa", "alfworld_paper/clean", "steps/act"} <= set(out.split())


def test_an_unknown_name_is_answered_with_the_nearest(capsys):
    code, out, err = run(capsys, "houshold")
    assert code == 1 and out == ""
    assert err.startswith("error: no grammar file 'houshold'") and "did you mean household?" in err


def test_as_a_module_and_without_torch():
    script = (
        "import sys; from constrained.cli import main; code = main(['show', 'hotpotqa', '--text']); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules; sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    command = [sys.executable, "-m", "constrained", "show", "hotpotqa", "--text"]
    module = subprocess.run(command, capture_output=True, text=True)
    assert module.returncode == 0 and module.stdout == ran.stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m constrained show household --text | head -1"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.stdout.count("\n") == 1 and ran.stderr == ""


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("constrained 0.")
