"""Random grammars, engine against lark's Earley parser."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from lark.exceptions import LarkError

from constrained import Grammar, GrammarError
from tests.grammar.grammars import circular, layered, recursive, templated
from tests.grammar.oracles import assert_same_language, examples, lark_accepts


def check(text: str, longest: int):
    try:
        accepts = lark_accepts(text)
    except LarkError:
        assume(False)
    try:
        grammar = Grammar.from_lark(text)
    except GrammarError as error:
        # what lark accepts is refused only for what has no text, or can't be eliminated
        assume("can't be eliminated" not in error.message)
        assert "can ever be complete" in error.message
        assert not any(accepts("".join(letters)) for n in range(longest + 1) for letters in product("abc", repeat=n))
        return
    assert_same_language(grammar, accepts, "abc ," if "%ignore" in text else "abc", longest)


@examples(25)
@given(layered())
def test_grammars_without_recursion(text):
    check(text, 3)


@examples(25)
@given(recursive())
def test_recursive_grammars(text):
    check(text, 3)


@examples(25)
@given(templated())
def test_templates(text):
    check(text, 3)


@examples(20)
@given(circular())
def test_templates_that_are_given_rules_that_lead_back(text):
    check(text, 3)
