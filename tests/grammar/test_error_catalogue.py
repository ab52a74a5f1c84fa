"""Every way to get a grammar wrong has its message: what, where, the line with a caret, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrained import ConstrainedError, Grammar, GrammarError

CATALOGUE = Path(__file__).with_name("error_catalogue.txt")


def read_catalogue() -> dict[str, tuple[str, str]]:
    """Name -> grammar, message."""
    cases = {}
    for block in CATALOGUE.read_text(encoding="utf-8").split("\n=== ")[1:]:
        name, rest = block.split("\n", 1)
        grammar, message = rest.split("---\n", 1)
        assert name not in cases, name
        cases[name] = grammar, message.rstrip("\n")
    return cases


CASES = read_catalogue()


def refusal(grammar) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(grammar)
    return caught.value


@pytest.mark.parametrize("case", CASES)
def test_a_broken_grammar_says_what_where_and_what_to_do(case):
    grammar, message = CASES[case]
    error = refusal(grammar)
    assert str(error) == message
    assert isinstance(error, ConstrainedError)
    if error.line is not None:
        assert str(error).startswith(f"<string>:{error.line}:{error.column}: {error.message.split(': ', 1)[1]}"[:20])
        line = grammar.split("\n")[error.line - 1]
        assert error.context == f"{line}\n{' ' * (error.column - 1)}^"


def test_every_case_of_the_catalogue_says_what_to_do():
    assert not [name for name, (_, message) in CASES.items() if "\n  hint: " not in message]


def test_the_caret_stands_below_its_place_after_tabs():
    error = refusal('start:\t"a"\t|\tb\n')
    assert error.context == 'start:\t"a"\t|\tb\n      \t   \t \t^'


def test_lines_may_end_as_windows_ends_them():
    grammar = Grammar.from_lark('start: "a"\r\n  | b // or\r\n\r\n// another\r\nb: "b" \\\r\n "c"\r\n')
    assert grammar.matches("a") and grammar.matches("bc")
    error = refusal('start: "a"\r\n  | b\r\n')
    assert (error.line, error.column, error.context) == (2, 5, "  | b\n    ^")


def test_a_byte_order_mark_is_no_part_of_a_grammar(tmp_path):
    (tmp_path / "inner.lark").write_text('a: "a"\n', encoding="utf-8-sig")
    (tmp_path / "outer.lark").write_text("%import .inner.a\nstart: a\n", encoding="utf-8-sig")
    assert Grammar.from_lark(tmp_path / "outer.lark").matches("a")
    assert Grammar.from_lark('\ufeffstart: "a"\n').matches("a")


def test_of_a_long_line_what_is_around_the_place_is_shown():
    error = refusal("start: " + '"aaaa" ' * 60 + "b " + '"cc" ' * 60 + "\n")
    shown, caret = error.context.split("\n")
    assert len(shown) < 200 and shown[caret.index("^")] == "b"
    assert shown.startswith("...") and shown.endswith("...")


def test_what_is_no_character_to_look_at_is_shown_as_one():
    error = refusal('start: "a" \0\n')
    assert error.message == "<string>:1:12: unexpected character '\\x00'\nstart: \"a\" \ufffd\n           ^"
    assert refusal('start: "a"\r  | "b"\n').message.startswith("<string>:1:11: a lone carriage return is no line end")


@pytest.fixture
def files(tmp_path):
    def write(**texts: str) -> Path:
        for name, text in texts.items():
            (tmp_path / f"{name}.lark").write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(texts))}.lark"

    return write


def test_the_file_at_fault_is_named(files):
    path = files(outer="%import .inner.X\nstart: X\n", inner='// first\nX: "b" |%\n')
    error = refusal(path)
    assert (error.source, error.line, error.column, error.context) == ("inner.lark", 2, 9, 'X: "b" |%\n        ^')
    files(inner="X: /a(/\n")
    error = refusal(path)
    assert error.message == (
        "inner.lark:1:6: regular expression does not parse: missing ), unterminated subpattern "
        "(imported in outer.lark:1)\nX: /a(/\n     ^"
    )


def test_what_an_imported_rule_lacks_is_told_in_its_file(files):
    path = files(outer="%import .inner.list\nstart: list\n", inner='list: item ("," item)*\nitm: "x"\n')
    error = refusal(path)
    assert (error.source, error.line, error.column) == ("inner.lark", 1, 7)
    assert "rule 'item' is not defined (imported in outer.lark:1)" in error.message


def test_files_that_import_each_other_are_told_of_the_circle(files):
    path = files(a="%import .b.x\nstart: x\n", b="%import .c.y\nx: y\n", c="%import .b.x\ny: x\n")
    assert refusal(path).message.startswith(
        "c.lark:1:9: files import each other in a circle: b.lark -> c.lark -> b.lark\n%import .b.x\n"
    )
    assert "a circle: own.lark -> own.lark" in refusal(files(own="%import .own.x\nstart: x\nx: x\n")).message


def test_a_file_of_ones_own_needs_the_dot(files, monkeypatch):
    path = files(outer="%import words.word\nstart: word\n", words='word: "a"\n')
    assert refusal(path).hint == "a file of your own is imported with a dot before it: `%import .words...`"
    monkeypatch.chdir(path.parent)  # where lark itself fails with an AssertionError
    assert "can't import words: no words.lark ships" in refusal("%import words.word\nstart: word\n").message


def test_a_misspelt_file_is_guessed(files):
    path = files(outer="%import .wrods.word\nstart: word\n", words='word: "a"\n')
    error = refusal(path)
    assert error.message.startswith("outer.lark:1:9: can't import wrods: there is no wrods.lark beside outer.lark\n")
    assert error.hint == "did you mean words?"


def test_an_import_that_is_no_text_is_told_of_where_it_is_imported(files):
    path = files(outer="%import .inner.a\nstart: a\n")
    path.with_name("inner.lark").write_bytes('a: "é"\n'.encode("latin-1"))
    error = refusal(path)
    assert (error.source, error.line) == ("outer.lark", 1) and "is not UTF-8 text" in error.message
    path.with_name("inner.lark").unlink()
    path.with_name("inner.lark").mkdir()
    assert "can't import inner: it is not a file" in refusal(path).message


def test_names_that_ship_are_guessed():
    assert refusal("%import houshold.goto\nstart: goto\n").hint == "did you mean household?"
    assert refusal("%import steps.reakt.start -> step\nstart: step\n").hint == "did you mean steps.react?"


def test_an_import_from_nowhere_lists_what_there_is():
    error = refusal("start: A\n%import nowhere.A\n")
    assert error.message == (
        "<string>:2:9: can't import nowhere: no nowhere.lark ships with lark or here\n%import nowhere.A\n        ^"
    )
    assert all(name in error.hint for name in ("household", "steps.react", "common", "%import .nowhere"))
