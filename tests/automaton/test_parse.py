"""A text is parsed by the grammar that wrote it, templates and slots included."""

import pytest

from constrained import Grammar
from constrained.automaton.parse import parse, parses
from constrained.errors import ActionError


def test_what_is_no_text_of_the_grammar_is_refused():
    grammar = Grammar.from_lark('%declare SAID\nstart: "say " SAID ["!"]').bind(SAID=["look", "looking"])
    for text in ("", "say ", "say jump", "say look "):
        with pytest.raises(ActionError, match="is no text of the grammar"):
            parse(grammar, text)
    assert parse(grammar, "say looking!")["SAID"] == "looking"


def test_parts_that_may_be_left_out_or_come_again():
    grammar = Grammar.from_lark('start: [a] b* "c"~1..2\na: "x"\nb: "y" | "zé"\n')
    assert list(parses(grammar, "xc")) != [] and "b" not in parse(grammar, "xc")
    [parts] = parses(grammar, "yzéycc")
    assert [part.name for part in parts] == ["start", "b", "b", "b"] and parse(grammar, "zéc")["b"] == "zé"
    assert len(list(parses(Grammar.from_lark('start: a a?\na: "x"*\n'), "x"))) > 1


def test_a_parameter_has_one_text_and_a_slot_without_values_any():
    grammar = Grammar.from_lark(
        '%declare _STEP WORD PLACE\nstart: twice{WORD, PLACE}\n'
        'twice{w, p}: "say " w " and " w " at " p _STEP end{w}\nend{w}: w\n'
    )  # fmt: skip
    [parts] = parses(grammar, "say it and it at home")
    found = {part.name: "say it and it at home"[part.start : part.end] for part in parts}
    assert found["WORD"] == "it" and found["PLACE"] == "home"
    assert not list(parses(grammar, "say it and that at home"))


def test_other_pieces_are_read_by_their_automaton():
    grammar = Grammar.from_lark('start: NAME "." REST\nNAME: /(?!not)[a-z]+/\nREST: /[0-9]{2}/')
    assert parse(grammar, "now.12")["start"] == "now.12"
    with pytest.raises(ActionError):
        parse(grammar, "not.12")
