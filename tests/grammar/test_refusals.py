"""A broken or refused grammar says what is wrong, where, and what to do."""

from __future__ import annotations

import random

import pytest

from constrained import ConstrainedError, Grammar, GrammarError
from tests.grammar.oracles import mutate

SYNTAX = "see the Lark grammar reference; a rule is `name: expansion`, a terminal `NAME: ...`"
DEFINE = "define it, or `%declare` it if it is a slot bound at run time"
LEFT = "rule '{}' comes to itself before it has read anything, and can't be turned round"
CYCLE = "give the cycle an end, such as an action without _STEP or an empty alternative"
RE = "it is read as Python's `re` reads it"
BESIDE = "let what stands beside the token always decide it, or take the lookaround out and write what it asks for as text"
COUNTS = "write two counts, the smaller one first"

# name: (grammar, line, column, message, hint)
BROKEN = {
    "no colon": ('start "a"\n', 1, 7, "Expecting rule or terminal definition (missing colon)", SYNTAX),
    "an open group": ('start: "a"\n     | ("b"\n', 2, 12, "the line ends too early", SYNTAX),
    "an empty group": ('start: "a" (\n', 1, 13, "Unclosed parenthesis", SYNTAX),
    "a closing bracket too many": ('start: "a" )\n', 1, 12, "unexpected )", SYNTAX),
    "an open string": ('start: "ab\n', 1, 8, "Unexpected input", SYNTAX),
    "an unknown directive": ('start: "a"\n%foo bar\n', 2, 1, "Unexpected input", SYNTAX),
    "an alias without a name": ('start: "a" ->\n', 1, 14, "Alias expects lowercase name", SYNTAX),
    "an operator out of place": ('start: a | !b\n', 1, 12, "Misplaced operator", SYNTAX),
    "an unknown rule": ('start: "a" | other\n', 1, 14, "Rule 'other' used but not defined (in rule start)", DEFINE),
    "an unknown terminal": ('start: "a"\n  | OTHER\n', 2, 5, "Rule 'OTHER' used but not defined (in rule start)", DEFINE),
    "an unknown rule named in a comment": (
        '// other\nstart: other\n', 2, 8, "Rule 'other' used but not defined (in rule start)", DEFINE),
    "a rule twice": (
        'start: "a"\nstart: "b"\n', 2, 1, "Rule 'start' defined more than once",
        "keep one, or write `%override` or `%extend` before the other"),
    "a slot that is defined, too": (
        'start: A\n%declare A\nA: "b"\n', 3, 1, "Terminal 'A' defined more than once",
        "keep one, or write `%override` or `%extend` before the other"),
    "a declared rule": ('%declare a\nstart: a\n', 1, 10, "rule 'a' is declared but not defined", None),
    "a recursive terminal": (
        'start: A\nA: "a" B\nB: "b" A?\n', 1, 8,
        "Recursion in terminal 'A' (recursion is only allowed in rules, not terminals)",
        "terminals can't be recursive: make it a rule (lower case)"),
    "an empty literal": (
        'start: "a"\n    | "b" ""\n', 2, 11, 'Empty terminals are not allowed ("")',
        'an empty alternative needs no text: `rule: | "a"`'),
    "arguments for a plain rule": (
        'start: a{"x"}\na: "b"\n', 1, 8,
        "Wrong number of template arguments used for a (expected 0, got 1) (in rule start)", None),
    "too many arguments": (
        'start: t{"a", "b"}\nt{x}: x\n', 1, 8,
        "Wrong number of template arguments used for t (expected 1, got 2) (in rule start)", None),
    "a template without arguments": ('start: "b" t\nt{x}: x\n', 1, 12, "template 't' stands without its arguments", None),
    "a parameter twice": ('t{x, x}: x\nstart: t{"b", "c"}\n', 1, 1, "Duplicate Template Parameter x (in template t)", None),
    "a parameter as a template": ('start: t{u}\nu{y}: y\nt{x}: x{"c"}\n', 1, 10, "template 'u' stands without its arguments", None),
    "a template as start": ('start{x}: x\n', 1, 1, "'start' is a template and can't be the start", None),
    "no start": ('first: "a"\n', None, None, "no rule 'start' to start from", "the rules are: first"),
    "no rules at all": ("// nothing here\n", None, None, "no rule 'start' to start from", "the rules are: none"),
    "an import from nowhere": ('start: A\n%import nowhere.A\n', 2, 9, "can't import nowhere: No such file or directory", None),
    "a count that can't be": ('start: "a"\n   "b"~3..2\n'.replace("\n   ", " "), 1, 15, "repeat ~3..2 can never be met", COUNTS),
    "a negative count": ('start: "a"~-1\n', 1, 11, "repeat ~-1..-1 can never be met", COUNTS),
    "an empty range": (
        'start: "b".."a"\n', 1, 8, 'empty range "b".."a"', "the first character must not come after the second"),
    "a range of words": (
        'start: "a"\n  | "ab".."c"\n', 2, 5, 'a range goes from one character to another, not "ab".."c"', None),
    "a range of surrogates": ('start: "\\ud800".."\\udfff"\n', 1, 8, "lone surrogates are not text", None),
    "a lone surrogate": ('start: "a"\n  | "\\ud800"\n', 2, 5, "a lone surrogate is not text", None),
    "a broken regex": (
        'start: "a".."c"~2 "é"\n  | /b(c/\n', 2, 7,
        "regular expression does not parse: missing ), unterminated subpattern", RE),
    "a broken regex in a terminal": (
        'start: A\nA: "b" /[a/\n', 2, 9, "regular expression does not parse: unterminated character set", RE),
    "lookahead that sees beyond its terminal": (
        'start: A ("y" | "z")\n\nA: "b" /x(?=y)/\n', 3, 8,
        "the lookaround sees beyond its token: 'bx' is read before 'y', not before 'z'", BESIDE),
    "lookbehind that sees beyond its terminal": (
        'start: "x"? /(?<!x)y/\n', 1, 13,
        "the lookaround sees beyond its token: 'y' is read after the start, not after 'x'", BESIDE),
    "a backreference": (
        'start: /(a|b)\\1/\n', 1, 8, "a backreference is not supported in /(a|b)\\1/",
        "it is not a regular language; write the repeated text out"),
    "an anchor inside a text": (
        'start: A "!"\nA: /^ab$/\n', 2, 4, "what the lookaround asks for never stands beside its token",
        "^ and $ are the whole text's start and end: leave them out; a lookaround sees the text around the token"),
    "a template that begins with itself, with other arguments": (
        'start: t{"a", "b"}\nt{x, y}: x "!" | t{y, x}\n  | t{y, x} "?"\n', 2, 1, LEFT.format("t"),
        "hand the same parameters on in the same order, or put some text before"),
    "a template that begins with itself through another rule": (
        'start: t{"a"}\nt{x}: x | u{x} "!"\nu{x}: t{x} "?"\n', 2, 1, LEFT.format("t"),
        "a template may call itself first, but not through another rule"),
    "a rule that begins with itself through an argument": (
        'start: wrap{start} | "x"\nwrap{y}: y ")"\n', 1, 1, LEFT.format("start"),
        "write the template's text out here, or put some text before"),
    "a rule that begins with itself after an argument that may be empty": (
        'start: t{o}\nt{x}: x t{x} "b" | "c"\no: "a"?\n', 2, 1, LEFT.format("t"),
        "what stands before the recursion may be empty: put some text there"),
    "a rule that begins with itself after a template that may be empty": (
        'start: may{"a"} start "b" | "c"\nmay{x}: x?\n', 1, 1, LEFT.format("start"),
        "may{...} may be empty and hides the recursion: put some text before"),
    "no end": (
        'start: "x" rest\nrest: "a" rest | "b" rest\n', 1, 1,
        "no text of 'start' can ever be complete: every way through it comes round again", CYCLE),
    "no end through others": (
        '// a\nstart: "x" a\na: "a" b\nb: "b" a\n', 2, 1,
        "no text of 'start' can ever be complete: every way through it comes round again", CYCLE),
    "only itself": ("start: start\n", 1, 1, "no text of 'start' can ever be complete: every way through it comes round again", CYCLE),
    "only what matches nothing": (
        'start: "a" /[^\\s\\S]/\n', 1, 1, "no text of 'start' can ever be complete: every way through it comes round again", CYCLE),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_grammar_says_where_and_what_to_do(case):
    text, line, column, message, hint = BROKEN[case]
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text)
    error = caught.value
    assert (error.line, error.column, error.hint) == (line, column, hint)
    place = ""
    if line is not None:
        assert error.context == text.split("\n")[line - 1] + "\n" + " " * (column - 1) + "^"
        place = f"<string>:{line}:{column}: "
    assert str(error) == place + message + (f"\n{error.context}" if line else "") + (f"\n  hint: {hint}" if hint else "")
    assert isinstance(error, ConstrainedError)


def test_the_file_at_fault_is_named(tmp_path):
    (tmp_path / "inner.lark").write_text('// first\nX: "b" |%\n', encoding="utf-8")
    (tmp_path / "outer.lark").write_text("%import .inner.X\nstart: X\n", encoding="utf-8")
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(tmp_path / "outer.lark")
    error = caught.value
    assert (error.source, error.line, error.column, error.context) == ("inner.lark", 2, 9, 'X: "b" |%\n        ^')
    (tmp_path / "inner.lark").write_text("X: /a(/\n", encoding="utf-8")
    with pytest.raises(GrammarError, match=r"unterminated subpattern \(in the imported X, its line 1\)") as caught:
        Grammar.from_lark(tmp_path / "outer.lark")
    assert (caught.value.source, caught.value.line, caught.value.column) == ("outer.lark", 1, 16)


def test_a_missing_file_names_what_ships(tmp_path):
    with pytest.raises(GrammarError, match="no grammar file 'nowhere'") as caught:
        Grammar.from_lark("nowhere")
    assert "hotpotqa" in caught.value.hint and "household" in caught.value.hint
    for name in ("", "a\0b", "x" * 5000, str(tmp_path), tmp_path / "none.lark"):
        with pytest.raises(GrammarError, match="no grammar file"):
            Grammar.from_lark(name)
    (tmp_path / "latin.lark").write_bytes('start: "é"'.encode("latin-1"))
    with pytest.raises(GrammarError, match="is not UTF-8 text"):
        Grammar.from_lark(tmp_path / "latin.lark")


@pytest.mark.parametrize("given", [None, 5, b'start: "a"\n', ["start"], object])
def test_what_is_neither_text_nor_path_is_an_error(given):
    with pytest.raises(GrammarError, match="a grammar is text or a path, not"):
        Grammar.from_lark(given)


@pytest.mark.parametrize("start", ["", "nothing", "START", "$ignore2"])
def test_an_unknown_start_lists_the_rules(start):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark('start: other\nother: "a"\n%ignore " "\n', start=start)
    assert caught.value.message == f"no rule '{start}' to start from"
    assert caught.value.hint == "the rules are: other, start"


def test_spoilt_grammars_are_read_or_refused_and_nothing_else():
    """Random edits of a grammar with everything in it: never another kind of error."""
    text = (
        '%declare SLOT _STEP\n%import common.INT -> N\n// about\nstart: one | two{SLOT, "b"} _STEP start | (A B)~1..3\n'
        '?one.2: "x"i [B] -> name | /a{1,3}[^b-d](e|f)*?/s N\ntwo{p, q}: p ":" q? | three{p}\n_three: "z"\n'
        'three{p}: p "," three{p} | _three "\\u00e9"\nA.1: "a".."c"+\nB: A "b" | "\\\\"\n%ignore " "\n%extend B: "q"\n'
    )
    Grammar.from_lark(text)
    rnd, refused = random.Random(7), 0
    for _ in range(250):
        spoilt = text
        for _ in range(rnd.randint(1, 4)):
            spoilt = mutate(spoilt, "{}()[]|:.~,%?!*+/\\\"'\nabAB_ 12", rnd)
        try:
            grammar = Grammar.from_lark(spoilt)
            grammar.bind(**{name: ["v"] for name in grammar.slots}).is_prefix("x")
        except GrammarError as error:
            refused += 1
            assert str(error)
            if error.line is not None:
                assert error.context.split("\n")[1] == " " * (error.column - 1) + "^"
    assert 50 < refused < 250
