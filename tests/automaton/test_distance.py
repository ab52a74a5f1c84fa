"""Token budgets over grammars that nest: what the bounds promise, and that every text is finished in time."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given, settings

from constrained import Grammar, GrammarError, Limits, Vocabulary, compile_grammar
from constrained.automaton.distance import nesting_calls
from tests.automaton.test_budget import OBJECTS
from tests.chance import times
from tests.grammar.grammars import CALCULATOR, GRAMMARS, tangled
from tests.grammar.json_schema.test_random_schemas import Schemas

WORDS = [
    b"((",
    b"(((((",
    b"))",
    b")+",
    b"+(",
    b"[[",
    b'{"',
    b'":',
    b"ab",
    b"aab",
    b"aaaa",
    b"ii",
    b"1+1",
    b"xx",
    b"(1",
    b"1)",
    b"[1,[",
    b"]]]",
]
VOCABULARY = Vocabulary([*(bytes((b,)) for b in range(128)), *WORDS, b""], [128 + len(WORDS)])

STEP = """
start: "Thought: " /[^\\n]{1,30}/ "\\nAction: " ("Calculator(" sum ")" | "Finish[" /[0-9]{1,4}/ "]")
?sum: sum "+" product | product
?product: product "*" atom | atom
?atom: /[0-9]{1,4}/ | "-" atom | "(" sum ")"
"""


def wander(grammar: Grammar, rnd: random.Random, tokens: int):
    """(compiled, states) along a random text."""
    compiled = compile_grammar(grammar, VOCABULARY)
    matcher = compiled.matcher()
    for _ in range(tokens):
        yield compiled, matcher.state
        if not matcher.advance(rnd.choice(matcher.allowed_token_ids())) or matcher.is_terminated:
            return


def promise_holds(grammar: Grammar, rnd: random.Random, tokens: int = 25) -> float:
    """No token leads further from the end than the horizon of the state before it; the largest horizon seen."""
    farthest = 0.0
    for compiled, state in wander(grammar, rnd, tokens):
        budget = compiled.budget
        horizon = budget.horizon(state)
        farthest = max(farthest, horizon)
        if horizon == math.inf:
            continue
        for token in compiled.masks.token_ids(state).tolist():
            after = state.read(VOCABULARY.tokens[token])
            assert budget._distance.nearest(after) <= horizon, (state.forced_text(), VOCABULARY.tokens[token])
    return farthest


BOUNDED = ["brackets", "two kinds of brackets", "calculator", "json", "as many of each", "in a repeat"]


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_no_token_leads_beyond_the_horizon(name):
    grammar = Grammar.from_lark(GRAMMARS[name][0])
    seen = max(promise_holds(grammar, random.Random(seed)) for seed in range(4))
    if name in BOUNDED:
        assert seen < 400, "nesting has a horizon"


def test_a_step_with_a_calculator_has_a_near_horizon():
    grammar = Grammar.from_lark(STEP)
    assert max(promise_holds(grammar, random.Random(seed), 60) for seed in range(6)) < 80
    calls, begins = nesting_calls(grammar.rules)
    assert begins == {ord("(")} and calls


@settings(max_examples=40)
@given(tangled())
def test_the_same_for_random_recursion(text):
    try:
        promise_holds(Grammar.from_lark(text, limits=Limits(state_positions=300)), random.Random(text), 8)
    except GrammarError:
        assume(False)


def lower_bound_holds(grammar: Grammar, rnd: random.Random, steps: int = 40) -> int:
    """No byte reduces the lower bound by more than one, and at an end it is 0; so it never is too high."""
    nearest, state = grammar.automaton.distance.nearest, grammar.automaton.start
    text = b""
    for _ in range(steps):
        first = sorted(state.first())
        assert not state.accepting or nearest(state) == 0, text
        for byte in rnd.sample(first, min(len(first), 20)):
            after = state.step(byte)
            assert after is None or nearest(state) <= nearest(after) + 1, (text, bytes([byte]))
        marks = [byte for byte in first if byte in b'"{}[],:aeiort01']
        if not first or (state := state.step(byte := rnd.choice(marks or first))) is None:
            break
        text += bytes([byte])
    return len(text)


@pytest.mark.parametrize("name", OBJECTS)
def test_the_lower_bound_of_an_object(name):
    grammar = Grammar.from_json_schema({"type": "object", **OBJECTS[name]})
    assert sum(lower_bound_holds(grammar, random.Random(seed), 120) for seed in range(5)) > 100


def test_the_lower_bound_of_random_schemas():
    read = 0
    for seed in range(times(60, 2000)):
        rnd = random.Random(seed)
        try:
            grammar = Grammar.from_json_schema(Schemas(rnd).whole(), any_order=True)
        except GrammarError:
            continue
        read += lower_bound_holds(grammar, rnd)
    assert read > 500


@pytest.mark.parametrize(
    "text",
    [CALCULATOR, STEP, GRAMMARS["json"][0], GRAMMARS["an operator on both sides"][0], GRAMMARS["even palindromes"][0]],
)
def test_within_a_budget_every_text_is_finished(text):
    grammar = Grammar.from_lark(text)
    compiled = compile_grammar(grammar, VOCABULARY)
    for seed in range(10):
        rnd = random.Random(seed)
        matcher = compiled.matcher()
        need = matcher.fewest_tokens()
        left = need + rnd.choice([0, 1, 5, 30])
        matcher.set_budget(left)
        while not matcher.is_complete or rnd.random() < 0.9:
            ids = [i for i in matcher.allowed_token_ids().tolist() if i not in VOCABULARY.eos_token_ids]
            if not ids:
                break
            # open as much as can be
            opening = [i for i in ids if VOCABULARY.tokens[i][-1:] in b"([{"]
            assert matcher.advance(rnd.choice(opening or ids))
            left -= 1
        assert matcher.is_complete and left >= 0
