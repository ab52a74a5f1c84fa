"""Random grammars, engine against lark's Earley parser."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from lark.exceptions import LarkError

from constrained import Grammar, GrammarError
from tests.grammar.oracles import assert_same_language, examples, lark_accepts

RULES = ("start", "one", "two", "three")

token = st.sampled_from(['"a"', '"b"', '"ab"', '"ba"', '"c"', '"a".."b"', "/[ac]/", '"B"i', "A", "BS"])
"""Tokens that `re`, which takes the first alternative that matches, and a language agree on."""


def _expansions(item):
    """Groups, options and counts over `item`."""
    sequence = st.lists(item, min_size=1, max_size=2).map(" ".join)
    group = st.lists(sequence, min_size=1, max_size=2).map(" | ".join)
    return st.one_of(
        sequence,
        group.map("({})".format),
        group.map("[{}]".format),
        st.tuples(group, st.sampled_from(["?", "*", "+", "~0..2", "~1..3", "~2"])).map(lambda g: f"({g[0]}){g[1]}"),
    )


def bodies(names):
    """Alternatives of tokens and of the rules `names`, nested a little."""
    atom = st.one_of(token, token, st.sampled_from(names)) if names else token
    item = st.recursive(atom, _expansions, max_leaves=3)
    sequence = st.lists(item, max_size=2).map(" ".join)
    return st.lists(sequence, min_size=1, max_size=2).map("\n    | ".join)


def tails(name, others):
    """Rules that call, if any, only rules after them, or anything as their last item."""
    last = st.sampled_from([name, *others, "start"])
    head = st.lists(st.one_of(token, token.map("{}?".format)), min_size=1, max_size=2).map(" ".join)
    stop = st.lists(token, min_size=1, max_size=2).map(" ".join)
    step = st.tuples(head, last).map(" ".join)
    return st.tuples(stop, st.lists(step, max_size=2)).map(lambda x: "\n    | ".join([x[0], *x[1]]))


def fronts(name):
    """Rules that call themselves first, and no other."""
    stop = st.lists(token, min_size=1, max_size=2).map(" ".join)
    return st.tuples(stop, st.lists(stop, min_size=1, max_size=2)).map(
        lambda x: "\n    | ".join([x[0], *(f"{name} {s}" for s in x[1])])
    )


TERMINALS = 'A: "a"+\nBS: "b"~1..2 "c"?\n'
IGNORES = st.sampled_from(["", "", '%ignore " "\n', "%ignore /,+/\n"])


@st.composite
def layered(draw):
    """No recursion: each rule calls those after it."""
    parts = [f"{name}: {draw(bodies(RULES[i + 1 :]))}" for i, name in enumerate(RULES)]
    return "\n".join([*parts, TERMINALS + draw(IGNORES)])


@st.composite
def recursive(draw):
    """Rules that call anything at their end; the last one itself at its front."""
    parts = [f"{name}: {draw(tails(name, RULES[1:3]))}" for name in RULES[:3]]
    parts.append(f"three: {draw(fronts('three'))}")
    if draw(st.booleans()):
        parts[0] += ' | "c" three'
    return "\n".join([*parts, TERMINALS + draw(IGNORES)])


@st.composite
def templated(draw):
    """Rules with parameters, handed on; arguments are tokens, rules and other templates."""
    simple = st.one_of(token, st.just("leaf"))
    arg = st.one_of(simple, simple.map(lambda a: f"pair{{{a}, {a}}}"))
    uses = st.lists(
        st.one_of(st.sampled_from(["x", "y", '","', 'x "c"?']), st.just("pair{y, x}")), min_size=1, max_size=3
    )
    first, second = draw(arg), draw(arg)
    outer = "\n    | ".join(" ".join(draw(uses)) for _ in range(draw(st.integers(1, 2))))
    pair = draw(st.sampled_from(["p q", "p | q", "p q?", 'q "-" p', "(p | q)~1..2"]))
    again = draw(st.sampled_from(["", " | x outer{y, x}", ' | "," outer{x, y}']))
    return "\n".join(
        [
            f"start: outer{{{first}, {second}}} {draw(st.sampled_from(['', 'leaf?', 'pair{BS, leaf}']))}",
            f"outer{{x, y}}: {outer}{again}",
            f"pair{{p, q}}: {pair}",
            f"leaf: {draw(bodies([]))}",
            TERMINALS + draw(IGNORES),
        ]
    )


def check(text: str, longest: int):
    try:
        accepts = lark_accepts(text)
    except LarkError:
        assume(False)
    try:
        grammar = Grammar.from_lark(text)
    except GrammarError as error:
        # what lark accepts is refused only for what has no text, or can't be eliminated
        assume("can't be eliminated" not in error.message and "can ever be complete" not in error.message)
        raise
    assert_same_language(grammar, accepts, "abc ," if "%ignore" in text else "abc", longest)


@examples(40)
@given(layered())
def test_grammars_without_recursion(text):
    check(text, 3)


@examples(40)
@given(recursive())
def test_recursive_grammars(text):
    check(text, 3)


@examples(40)
@given(templated())
def test_templates(text):
    check(text, 3)
