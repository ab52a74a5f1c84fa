"""Every example of the documentation is so (see `documents`)."""

import importlib
import itertools
import json
import re
import shlex
from pathlib import Path

import pytest

from constrained.cli import knowledge_files, make_parser
from constrained.knowledge.lint import CODES
from tests.documents import Block, blocks, matches_lines, run_page

DOCS = Path(__file__).parent.parent / "docs"
HOSTS = DOCS / "hosts.md"  # needs a model: tests/decoding/hosts/test_hosts_doc.py
TUTORIAL = DOCS / "environment_tutorial.md"


@pytest.mark.parametrize("page", sorted(set(DOCS.glob("*.md")) - {HOSTS, TUTORIAL}), ids=lambda page: page.name)
def test_every_example_of_a_page_is_so(page, tmp_path):
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_file_that_a_page_links_to_is_there(page):
    for name in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / name).exists(), name


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("*.md")), DOCS.parent / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_every_path_and_module_that_a_page_names_is_there(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(
        r"`((?:constrained|tests|grammars|benchmarks|tools/embedded_model|examples|docs|editors)/[\w./]+)`", text
    ):
        assert (DOCS.parent / path).exists(), path
    for module in re.findall(r"(?:`|from |import |-m )(constrained(?:\.\w+)+)\b", text):
        parts = module.split(".")
        folder = DOCS.parent.joinpath(*parts)
        assert folder.is_dir() or folder.with_suffix(".py").exists() or defines(parts), module


def test_every_row_of_the_papers_has_a_command_that_the_parser_takes():
    """In the last column; an option alone is one of `bench agents`. What is not there at all has no command."""
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and " | " in line]
    shown = {row[0]: re.findall(r"`([^`]+)`", row[-1]) for row in rows if len(row) == 4 and row[0] != "in the paper"}
    assert len(shown) > 50
    assert [name for name, commands in shown.items() if not commands] == ["a graph kept for all tasks"]
    for command in itertools.chain.from_iterable(shown.values()):
        words = shlex.split(command if command[0] != "-" else f"bench agents {command}")
        _, rest = make_parser(words[0]).parse_known_args(knowledge_files.with_kind(words))
        assert not rest, command


def defines(parts: list[str]) -> bool:
    """Whether the last of the dotted names is an attribute of the module that the others name."""
    try:
        return hasattr(importlib.import_module(".".join(parts[:-1])), parts[-1])
    except ImportError:
        return False


def test_the_tutorial_in_python_ends_with_a_robot_that_has_learned(tmp_path):
    run_page(TUTORIAL, tmp_path)
    assert (tmp_path / "library.svg").read_text() == (DOCS / "library.svg").read_text()
    first, *_, last = json.loads((tmp_path / "learned" / "report.json").read_text())
    before, after = (report["test"]["library:40-80"] for report in (first, last))
    # Wide bounds: other machines round otherwise, and three rounds of chance follow from that.
    assert before["success %"] < 60 and after["success %"] > before["success %"] + 30
    assert after["invalid %"] == after["misordered %"] == before["invalid %"] == 0


def test_the_linters_page_has_every_code_with_its_severity():
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", (DOCS / "check.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted((code, str(severity)) for code, severity in CODES.items())


# the runner itself


def page_of(tmp_path, text) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


GOOD = """
```lark one.lark
start: "a" | "b"
```
Refused:
```lark error
start: nothing
```
```text
<string>:1:8: rule 'nothing' is not defined
start: nothing
       ^
  hint: define it: `nothing: ...`
```
```python
from constrained import Grammar
grammar = Grammar.from_lark("one.lark")
```
```python
assert grammar.matches("a")
# needs: this is no first line
```
```python
# needs another machine
raise SystemError
```
```python program.py
print(__name__)
```
```console
$ python program.py
__main__
$ constrained show hotpotqa --text
Answer a question in steps: ...
...
```
"""


def test_a_page_that_is_so(tmp_path):
    page = page_of(tmp_path, GOOD.replace("Answer a question in steps: ...\n", ""))
    assert run_page(page, tmp_path)["grammar"].matches("b")
    assert (tmp_path / "one.lark").read_text() == 'start: "a" | "b"\n'
    assert blocks(page)[0] == Block("lark", ("one.lark",), 'start: "a" | "b"\n', "page.md:3", 3)


@pytest.mark.parametrize(
    "wrong",
    [
        "```lark\nstart: nothing\n```\n",
        '```lark\n%declare _STEP\nstart: "a"\n```\n',
        '```lark error\nstart: "a"\n```\n```text\nx\n```\n',
        "```lark error\nstart: nothing\n```\n```text\nx\n```\n",
        "```lark error\nstart: nothing\n```\n",
        "```python\nassert False\n```\n",
        "```console\n$ constrained show hotpotqa --text\n```\n",
        "```console\n$ constrained show hotpotqa --text\n...\nThis is not its end\n```\n",
        "```console\n$ rm file\n```\n",
        "```console\nconstrained show\n```\n",
        "```python two.py\nprint(2)\n```\n```console\n$ python two.py\n3\n```\n",
    ],
)
def test_a_page_that_is_not_so(tmp_path, wrong):
    with pytest.raises(AssertionError):
        run_page(page_of(tmp_path, wrong), tmp_path)


@pytest.mark.parametrize(
    "printed, expected, same",
    [
        ("a\nb\nc\n", "a\n...\nc\n", True),
        ("a\nc\n", "a\n...\nc\n", True),
        ("a\nb\n", "...\n", True),
        ("a  \n\n", "a\n", True),
        ("a\nb\n", "a\n", False),
        ("a.c\n", "abc\n", False),
        ("won 3 of 4\n", "won … of 4\n", True),
        ("won 3\nof 4\n", "won … of 4\n", False),
        ("abc\n", "a.c\n", False),
    ],
)
def test_lines_are_compared_whole(printed, expected, same):
    assert matches_lines(printed, expected) is same
