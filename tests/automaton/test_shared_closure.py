"""Constructs that many stacks reach are entered once: the same language and masks, at a cost that doesn't multiply."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from constrained import Grammar, Vocabulary
from constrained.automaton import graph_stack, native
from tests.automaton.test_kernel import both, mask
from tests.grammar.grammars import tangled, templated
from tests.grammar.oracles import examples, lark_accepts, mutate, sample, words

LATEX = Path(sympy.__file__).parent / "parsing" / "latex" / "lark" / "grammar" / "latex.lark"
FORMULAS = [r"\frac{a}{b}", r"x^{2}+\sin y", r"\int_0^1 x dx", r"\left(\alpha_1 + b\right)!", r"\sum_{i=0}^n i^2 = 3"]
WRONG = [r"\frac{a}{", r"x^{2", r"x++", r"\int_0^1 x", r"(\alpha", r"\sum_{i}^n i", "d", r"a=b=c", ""]

OPERATORS = ["+", "-", "*", "/", "^", "=", "<", "&", "|", "%", "?", ":"]
EXPRESSIONS = {
    "one rule, every operator": (
        "start: e\ne: " + " | ".join(f'e "{o}" e' for o in OPERATORS) + ' | "(" e ")" | "x" | "y" e\n%ignore " "\n'
    ),
    "a rule for each operator": (
        "start: "
        + " | ".join(f"c{i}" for i in range(12))
        + "\n"
        + "\n".join(f'c{i}: e "{o}" e' for i, o in enumerate(OPERATORS))
        + '\ne: "x" | e e | "(" e ")" | "x" "!"\n%ignore " " | "~"\n'
    ),
    "what may be empty before and after": (
        "start: s+\ns: "
        + " | ".join(f'e? "{o}" o e?' for o in OPERATORS)
        + '\no: "!"*\ne: s | "x" o | "(" start ")" o\n%ignore /[ ~]/\n'
    ),
    "calls side by side": (
        "start: f+\nf: "
        + " | ".join(f'n "{o}" f | n f "{o}"' for o in OPERATORS[:6])
        + ' | n\nn: /[a-z]/ | /[a-z]x?/ "(" [f ("," f)*] ")"\n%ignore " "\n'
    ),
}
SHARED = pytest.mark.parametrize("crowded", [0, graph_stack.CROWDED])


def pieces(text: str, more: str = "") -> Vocabulary:
    """Single bytes, and the parts of a text."""
    parts = {text[i : i + size] for size in (2, 3, 5) for i in range(len(text))} | set(more.split())
    tokens = [bytes((byte,)) for byte in range(256)] + [part.encode() for part in sorted(parts) if len(part) > 1]
    return Vocabulary([*tokens, b"<eos>"], [len(tokens)])


def assert_same_masks(grammar: Grammar, text: str, more: str = "") -> None:
    """With the kernel, without it, and as the automaton reads each token, all along a text."""
    vocabulary = pieces(text, more)
    compiled, plain = both(grammar, vocabulary)
    for at in range(len(text) + 1):
        begun = text[:at].encode()
        found = mask(compiled.matcher(begun))
        np.testing.assert_array_equal(found, mask(plain.matcher(begun)))
        state = grammar.automaton.read(begun)
        read = [i for i, token in enumerate(vocabulary.tokens) if token and state.read(token) is not None]
        ends = list(vocabulary.eos_token_ids) if state.accepting else []
        ids = [i for i in read if i not in vocabulary.eos_token_ids] + ends
        np.testing.assert_array_equal(found, vocabulary.pack(np.array(ids)))


@pytest.fixture(scope="module")
def latex() -> Grammar:
    return Grammar.from_lark(LATEX, "latex_string")


def test_a_formula_is_read_as_lark_reads_it(latex):
    parser = Lark.open(str(LATEX), start="latex_string", parser="earley", lexer="dynamic_complete")

    def accepts(text: str) -> bool:
        try:
            parser.parse(text)
        except LarkError:
            return False
        return True

    for text in [*FORMULAS, *WRONG]:
        assert latex.matches(text) == accepts(text), text
    assert all(map(latex.matches, FORMULAS))


@pytest.mark.skipif(native.kernel is None, reason="the C kernel isn't built")
@pytest.mark.parametrize("text", FORMULAS)
def test_masks_of_formulas_are_the_same_with_and_without_the_kernel(latex, text):
    assert_same_masks(latex, text, r"xy abc \frac \fra }{ ^{ }+ \sin( =0 dx x_ x_{")


def test_a_construct_is_entered_once_and_not_once_a_context(latex):
    """Before, the start alone took 25,000 frames, and one letter after it as many again."""
    automaton = latex.copy().automaton
    counts = []
    for text in (b"", b"a", b"ab", b"abc", b"abc+", b"abc+d", b"abc+d^{2}"):
        assert automaton.read(text) is not None
        counts.append(len(automaton.frames))
    assert counts[0] < 1_000 and counts[-1] < 10_000


@pytest.mark.parametrize("name", EXPRESSIONS)
@SHARED
def test_expressions_are_read_as_lark_reads_them(name, crowded, monkeypatch):
    monkeypatch.setattr(graph_stack, "CROWDED", crowded)
    accepts, grammar, rnd = lark_accepts(EXPRESSIONS[name]), Grammar.from_lark(EXPRESSIONS[name]), random.Random(name)
    for _ in range(25):
        text = sample(grammar, rnd, 10)
        assert accepts(text)
        other = mutate(text, "x+*( )!", rnd)
        assert grammar.matches(other) == accepts(other)


@pytest.mark.skipif(native.kernel is None, reason="the C kernel isn't built")
@pytest.mark.parametrize("name", EXPRESSIONS)
@SHARED
def test_masks_of_expressions_are_the_same_with_and_without_the_kernel(name, crowded, monkeypatch):
    monkeypatch.setattr(graph_stack, "CROWDED", crowded)
    grammar, rnd = Grammar.from_lark(EXPRESSIONS[name]), random.Random(name)
    for _ in range(3):
        assert_same_masks(grammar, sample(grammar, rnd, 12), "x+x (( )) x! !! +( ~x")


@examples(25)
@given(st.one_of(tangled(), templated()))
def test_sharing_every_closure_changes_no_language(text):
    try:
        accepts = lark_accepts(text)
    except LarkError:
        assume(False)
    rnd = random.Random(text)
    tried = [*words("abc", 3), *("".join(rnd.choices("aabbc", k=rnd.randint(4, 9))) for _ in range(15))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_stack, "CROWDED", 0)
        patch.setattr(graph_stack, "CROWD", 0)
        grammar = Grammar.from_lark(text)
        good = {word for word in tried if grammar.matches(word)}
        assert good == {word for word in tried if accepts(word)}
        if native.kernel is not None and good:
            assert_same_masks(grammar, max(good, key=len), "ab ba abc cab aa")
