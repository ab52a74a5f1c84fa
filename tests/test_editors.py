"""The files for editors: the TextMate grammar's expressions, the problem matcher, and what package.json names."""

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from constrained.cli import main
from constrained.grammar.lark_outline import RULE, read_outline, rule_comments
from constrained.grammar.source import SHIPPED, Source

FOLDER = Path(__file__).parent.parent / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
GRAMMAR = json.loads((FOLDER / PACKAGE["contributes"]["grammars"][0]["path"]).read_text(encoding="utf-8"))
PARTS = GRAMMAR["repository"]
SHIPPED_FILES = sorted(SHIPPED.rglob("*.lark"))


def found(part, line, key="match"):
    """What of a line a part of the grammar takes; its expressions are such as Oniguruma and `re` read alike."""
    match = re.search(PARTS[part][key], line)
    return match and (match[match.lastindex] if match.lastindex else match[0])


def test_every_part_is_used_and_every_expression_can_be_read():
    assert {part["include"] for part in GRAMMAR["patterns"]} == {f"#{name}" for name in PARTS}
    for part in PARTS.values():
        for key in ("match", "begin", "end"):
            re.compile(part.get(key, ""))
    assert GRAMMAR["scopeName"] == PACKAGE["contributes"]["grammars"][0]["scopeName"]
    assert GRAMMAR["injectionSelector"].startswith("L:source.lark")


@pytest.mark.parametrize("file", SHIPPED_FILES, ids=lambda file: str(file.relative_to(SHIPPED)))
def test_every_definition_of_every_shipped_grammar_is_seen(file):
    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")
    for definition in read_outline(Source(text, file.name, file)).definitions:
        if definition.kind != RULE or definition.how != "define":
            continue
        assert re.search(PARTS["definition"]["match"], lines[definition.span.line - 1])[1] == definition.name
    told = filter(None, (re.search(PARTS["definition-comment"]["match"], line) for line in lines))
    defining = {name for name, words in rule_comments(text).items() if words.startswith(f"{name}: ")}
    assert defining <= {comment[2] for comment in told}


@pytest.mark.parametrize(
    "part, line, taken",
    [
        ("definition", '?take{o, r}.2 : "x"', "take"),
        ("definition", "start: a", "start"),
        ("definition", '     | "a:"', None),
        ("definition", "WORD: /a/", None),
        ("step", '"x" _STEP then', "_STEP"),
        ("step", "MY_STEP", None),
        ("relation", "move{another{PLACE, r}}", "another"),
        ("relation", "at{r}", None),
        ("relation", "atom{PLACE}", None),
        ("directive", "%import relations (next)", "%import"),
        ("definition-comment", "// take: take OBJECT.", " take OBJECT."),
        ("definition-comment", "// Note that this: is prose", None),
        ("comment", 'a: "b" // what', "// what"),
    ],
)
def test_a_part_takes_what_it_is_for(part, line, taken):
    assert found(part, line) == taken


def test_the_problem_matcher_reads_what_check_prints(tmp_path, capsys):
    file = tmp_path / "größe 1.lark"
    file.write_text('%declare _STEP PLACE\nstart: one\none: "x" two _STEP\n', encoding="utf-8")
    assert main(["check", str(file)]) == 1
    lines = capsys.readouterr().out.split("\n")
    first, second = (part["regexp"] for part in PACKAGE["contributes"]["problemMatchers"][0]["pattern"])
    problems = [
        (*re.match(first, line).groups(), *re.match(second, after).groups())
        for line, after in pairwise(lines)
        if re.match(first, line)
    ]
    assert ("error", "undefined-rule", "rule 'two' is not defined", str(file), "3", "10") in problems
    assert ("warning", "unused-slot") in {problem[:2] for problem in problems}


def test_what_package_json_names_is_there():
    assert (FOLDER / PACKAGE["main"]).is_file()
    command = PACKAGE["contributes"]["configuration"]["properties"]["constrained.command"]["default"]
    assert command[0] == "constrained"
    with pytest.raises(SystemExit) as stopped:
        main([*command[1:], "--help"])
    assert stopped.value.code == 0


def test_the_client_is_a_script_that_node_reads():
    node = shutil.which("node")
    if not node:
        pytest.skip("needs Node.js")
    subprocess.run([node, "--check", str(FOLDER / "extension.js")], check=True)
