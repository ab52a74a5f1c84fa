"""What is no grammar at all is refused, and a spoilt grammar is read or refused: never another kind of error."""

from __future__ import annotations

import random

import pytest

from constrained import Grammar, GrammarError
from tests.grammar.oracles import mutate


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


@pytest.mark.parametrize("start", ["", "nothing", "$ignore2"])
def test_an_unknown_start_lists_the_rules(start):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark('start: other\nother: "a"\n%ignore " "\n', start=start)
    assert caught.value.problem == f"no rule '{start}' to start from"
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
                assert error.context.split("\n")[1].endswith("^")
    assert 50 < refused < 250


def test_a_rule_is_not_ignored():
    with pytest.raises(GrammarError, match="a rule, 'start', can't be part of a terminal"):
        Grammar.from_lark('start: "a"\n%ignore start\n')


def test_a_misspelt_path_is_answered_with_the_file_beside_it(tmp_path):
    (tmp_path / "hotel.lark").write_text('start: "a"\n')
    for name, told in (("hotle.lark", "hotel.lark?"), ("zzz.lark", "is the path right?"), ("", "name a file in it")):
        with pytest.raises(GrammarError, match="no grammar file") as caught:
            Grammar.from_lark(tmp_path / name)
        assert caught.value.hint.endswith(told)


def test_an_empty_file_is_told_what_to_write():
    with pytest.raises(GrammarError, match="no rule 'start'") as caught:
        Grammar.from_lark("\n")
    assert "write `start: ...`" in caught.value.hint
