"""What the README shows is so."""

import re
from pathlib import Path

import lark

from constrained import ActionKnowledge, Grammar, compile_grammar
from constrained.models.load import load
from tests.documents import blocks

PAGE = Path(__file__).parent.parent / "README.md"
README = PAGE.read_text(encoding="utf-8")


def test_the_knowledge_shown_loads_here_and_in_lark():
    (text,) = (block.text for block in blocks(PAGE) if block.language == "lark")
    lark.Lark(text, parser="earley")
    knowledge = ActionKnowledge.from_lark(text)
    assert list(knowledge.actions) == ["goto", "take", "put"]
    bound = knowledge.bind(RECEPTACLE=["desk 1", "desk 10"], OBJECT={"desk 1": ["mug 1"]})
    report = bound.check(["go to desk 1", "take mug 1 from desk 1", "put mug 1 on desk 10"])
    assert report.ok and report.finished
    assert bound.check(["go to desk 10", "take mug 1 from desk 1"]).verdicts[1] != "ok"


def test_the_python_shown_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    loaded = load()
    grammar = Grammar.from_choices(["go to desk 1", "go to desk 10"])
    compiled = compile_grammar(grammar, loaded.vocabulary)
    names = {
        "tokenizer": loaded.tokenizer, "model": loaded.model, "inputs": loaded.tokenizer("Action 1: ", return_tensors="pt"),
        "grammar": grammar, "compiled": compiled, "other": compiled,
        "token": int(compiled.matcher().allowed_token_ids()[0]),
    }  # fmt: skip
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), names)
    assert names["plan"].success and "misordered" not in capsys.readouterr().out


def test_the_check_shown_is_ok():
    (path,) = re.findall(r"knowledge\.check\(\[(.*?)\]\)\)", README)
    actions = re.findall(r'"([^"]+)"', path)
    assert len(actions) == 3
    assert ActionKnowledge.from_lark("hotpotqa").check(actions).ok


def test_every_file_and_command_named_is_there():
    root = Path(__file__).parent.parent
    for name in re.findall(r"(?:\]\(|src(?:set)?=\")(?!https?:)([^)\"]+)", README):
        assert (root / name).exists(), name
    for folder in re.findall(r"`((?:grammars|constrained)/[\w/.]+)`", README):
        assert (root / folder).exists(), folder
