"""constrained explain: on the terminal and as JSON."""

import json
import subprocess
import sys

import pytest

from constrained.cli import main
from tests.data import shared


def run(capsys, *argv):
    code = main(["explain", *map(str, argv)])
    return code, *capsys.readouterr()


def test_on_the_terminal(capsys):
    code, out, err = run(capsys, "hotpotqa", "Search[x]->Look")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
  1  ok          Search[x]
  2  unfinished  Look

what may come next:
  'up['
      rule lookup, hotpotqa.lark:14:9
      lookup: "Lookup[" TEXT "]" _STEP (lookup | search | retrieve | finish)
              ^

next byte:   'u'
next token:  2 of 801 (embedded): 85 'u', 490 'up'
forced text: 'up['
"""
    )


@pytest.mark.parametrize(
    "path, words",
    [
        ("Lookup[x]", ["misordered", "may follow: retrieve, search", "rule start, hotpotqa.lark:5:1"]),
        ("search[x]", ["invalid", "did you mean 'Search['?"]),
        ("Search[x]->Finish[y]->", ["the path is over", "rule finish", "next byte:   none"]),
        ("Search[x]->", ["may follow: search, retrieve, lookup, finish"]),
        ("", ["  0  the start", "may follow: retrieve, search"]),
        ("Search[", ["of those above 0x7f", ", ..."]),
        ("Search[x]", ["0 (end of text)"]),
    ],
)
def test_what_is_said(capsys, path, words):
    code, out, _ = run(capsys, "hotpotqa", path)
    assert code == ("invalid" in words or "misordered" in words)
    assert all(word in out for word in words)


def test_as_json(capsys):
    code, out, _ = run(capsys, "hotpotqa", "Search[x]->Looking", "--json")
    data = json.loads(out)
    assert code == 1 and not data["ok"] and (data["verdict"], data["read"]) == ("invalid", "Look")
    assert data["bytes"] == [ord("u")] and data["forced"] == "up["
    assert data["tokens"]["allowed"] == 2 and data["tokens"]["first"][1] == {"id": 490, "text": "up"}
    assert data["expected"][0]["spot"]["rule"] == "lookup"


def test_a_text_as_it_is(capsys):
    assert "2  unfinished  Search[b->" in run(capsys, "hotpotqa", "Search[a]", "--text", "Search[b->")[1]
    assert run(capsys, "hotpotqa", "--json", "Search[a]")[0] == 0  # options first


def test_a_grammar_without_actions(capsys, tmp_path):
    file = tmp_path / "greeting.lark"
    file.write_text('start: "hello " NAME "!"\nNAME: "you" | "world"\n')
    code, out, _ = run(capsys, file, "hello wo")
    assert code == 0 and "'rld'" in out and "NAME in rule start, greeting.lark:2:7" in out
    assert run(capsys, file, "--text", "hello world!")[0] == 0
    assert run(capsys, file, "hello world?")[0] == 1
    code, _, err = run(capsys, file, "hello", "--text", "hello")
    assert code == 1 and "not both" in err


def test_slots_given_and_slots_that_stand_for_themselves(capsys):
    bound = ["--bind", 'RECEPTACLE=["desk 1","desk 10"]']
    code, out, _ = run(capsys, "household", "go to de", *bound)
    assert code == 0 and "RECEPTACLE: 'sk 1', 'sk 10' (2 values)" in out
    assert "each stands for itself: CLEANER," in out and "RECEPTACLE" not in out.splitlines()[-1]
    assert run(capsys, "household", "go to RECEPTACLE->take OBJECT from REACH")[0] == 0


def test_slots_in_relation_to_each_other(capsys, tmp_path):
    file = tmp_path / "walk.lark"
    file.write_text(
        "%declare _STEP ROOM\n%import relations (another, next)\nstart: go{ROOM}\n"
        'go{r}: "go to " r _STEP (go{another{ROOM, r}} | look{next{ROOM, r}})\nlook{r}: "look to " r\n'
    )
    out = run(capsys, file, "go to hall->go to ", "--bind", 'ROOM=["hall", "attic", "cellar"]')[1]
    assert "ROOM: 'attic', 'cellar' (2 values)" in out and "rule go, walk.lark:4:17" in out
    code, out, _ = run(capsys, file, "go to ROOM->look to ")
    assert code == 0 and "ROOM: 'another ROOM'\n" in out


def test_a_relation_that_stands_in_an_action_itself(capsys, tmp_path):
    file = tmp_path / "move.lark"
    file.write_text(
        '%declare _STEP ROOM\n%import relations (another)\nstart: go{ROOM}\ngo{r}: "from " r " to " another{ROOM, r}\n'
    )
    out = run(capsys, file, "from hall to ", "--bind", 'ROOM=["hall", "attic", "cellar"]')[1]
    assert "ROOM: 'attic', 'cellar' (2 values)" in out and "rule go, move.lark:4:33" in out


def test_the_tokens_of_another_tokenizer(capsys):
    folder = shared("tokenizers/gpt2")
    for name in (folder, folder / "tokenizer.json"):
        out = run(capsys, "hotpotqa", "Search[x]->Look", "--tokenizer", name)[1]
        assert f"next token:  2 of 50,257 ({name}): 84 'u', 929 'up'" in out
    out = run(capsys, "hotpotqa", "Search[x]", "--tokenizer", folder)[1]
    assert "50256 (end of text)" in out


@pytest.mark.parametrize("name", ["none/tokenizer.json", "/none/at/all", "cut.json"])
def test_a_tokenizer_that_can_not_be_read_is_an_error(capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut.json").write_text('{"version": "1.0", "mod')
    code, out, err = run(capsys, "hotpotqa", "Look", "--tokenizer", name)
    assert code == 1 and out == "" and f"can't read the tokenizer {name}: " in err and "hint: " in err


def test_without_torch():
    script = (
        "import sys; from constrained.cli import main; code = main(['explain', 'hotpotqa', 'Search[x]->Look']); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules; sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_world_says_which_conditions_keep_an_action_from_being_possible(capsys):
    code, out, _ = run(capsys, "world", "go to office->go to cellar")
    assert code == 1 and "it needs some x with (at x and door x cellar) and not locked cellar" in out
    code, out, _ = run(capsys, "world", "go to ")
    assert code == 0 and "go to cellar: it needs not locked cellar" in out and "forced text: 'office'" in out
    code, out, _ = run(capsys, "world")
    assert "  unlock cellar: it needs held key" in out and "may follow: go, take" in out
    code, out, _ = run(capsys, "world", "unlock")
    assert code == 1 and "nothing that begins so is possible now" in out
    code, out, _ = run(capsys, "world", "go to office->take key", "--json")
    assert json.loads(out)["follow"] == ["go", "drop"]
