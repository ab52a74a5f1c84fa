"""Joined stacks: the same language, and no more positions than there are things to read."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lark.exceptions import LarkError

from constrained import ActionKnowledge, Grammar, LimitError, Limits, Vocabulary, compile_grammar
from constrained.automaton import graph_stack, native
from constrained.automaton.bridge import Bridge
from constrained.automaton.matcher import Matcher
from constrained.grammar.source import read_source
from tests.grammar.grammars import tangled, templated
from tests.grammar.oracles import lark_accepts, words

# name: (grammar, a text of so many levels, whether it is whole)
AMBIGUOUS = {
    "two rules that begin alike": (
        'start: t "b" | u "c" | "x"\nt: "a" start\nu: "a" start\n',
        lambda n: "a" * n + "x" + "bc" * (n // 2),
    ),
    "two literals": (
        'start: "a" f | "a" g | "d"\nf: start "b"\ng: start "c"\n',
        lambda n: "a" * n + "d" + "bc" * (n // 2),
    ),
    "ends that may be missing": ('start: "a" start start | "a" start | "b"\n', lambda n: "a" * n + "b" * (n // 2)),
    "repeats of repeats of repeats": ("start: /((a{1,1000}){1,1000}){1,1000}/\n", lambda n: "a" * n),
    "repeats of what may be nothing": ("start: /((a?){1,1000}){1,1000}/\n", lambda n: "a" * n),
    "counts of two kinds": ("start: /((a|ab){1,400}b?){1,400}/\n", lambda n: "aab" * (n // 3)),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_positions_do_not_grow_with_the_depth(name):
    text, write = AMBIGUOUS[name]
    most = []
    for depth in (60, 240):
        grammar = Grammar.from_lark(text)
        state, counts = grammar.automaton.start, []
        for byte in write(depth).encode():
            state = state.step(byte)
            counts.append(len(state.positions))
        assert state.accepting
        most.append(max(counts))
    assert most[0] == most[1] <= 3 * graph_stack.CROWD


@pytest.mark.parametrize("name", ["two rules that begin alike", "ends that may be missing"])
def test_joined_stacks_remember_what_is_open(name):
    text, write = AMBIGUOUS[name]
    accepts, grammar = lark_accepts(text), Grammar.from_lark(text)
    rng = random.Random(name)
    whole = write(12)
    for _ in range(60):
        tail = "".join(rng.choices("abcx", k=rng.randint(0, 14)))
        assert grammar.matches(whole[:13] + tail) == accepts(whole[:13] + tail)


@settings(max_examples=25, deadline=None)
@given(st.one_of(tangled(), templated()))
def test_joining_every_stack_changes_no_language(text):
    try:
        accepts = lark_accepts(text)
    except LarkError:
        assume(False)
    rng = random.Random(text)
    tried = [*words("abc", 3), *("".join(rng.choices("aabbc", k=rng.randint(4, 9))) for _ in range(25))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_stack, "CROWD", 0)
        grammar = Grammar.from_lark(text)
        good = {word for word in tried if grammar.matches(word)}
        assert good == {word for word in tried if accepts(word)}
        assert all(grammar.is_prefix(word[:i]) for word in good for i in range(len(word)))


SLOTS = """%declare S T
start: t{S} | u{S}
t{x}: "a" start "b" x | x
u{x}: "a" start "c" x | x x
"""


def test_open_parameters_stay_apart():
    """A value that is written later may be another on each stack."""
    grammar = Grammar.from_lark(SLOTS).bind(S=["p", "q"], T=["p"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_stack, "CROWD", 0)
        joined = Grammar.from_lark(SLOTS).bind(S=["p", "q"], T=["p"])
        for word in words("apbcq", 5):
            assert joined.matches(word) == grammar.matches(word), word
        assert joined.matches("aappbpcq") and not joined.is_prefix("aapbpr")


def test_values_that_are_missing_are_not_begun_behind_a_fork():
    text = '%declare K V\nstart: t{K} "b" | u{K} "c" | "x"\nt{k}: "a" k start get{V, k}\nu{k}: "a" k start get{V, k}\nget{v, k}: "." v\n'  # noqa: E501
    bindings = {"K": ["1", "2"], "V": {"1": ["one"]}}
    plain = Grammar.from_lark(text).bind(**bindings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_stack, "CROWD", 0)
        joined = Grammar.from_lark(text).bind(**bindings)
        for word in ("a1x.oneb", "a1x.onec", "a1a1x.oneb.onec", "a1a1x.onec.oneb", "a2", "a1a2", "a1x.oneb.one"):
            assert joined.matches(word) == plain.matches(word)
            assert joined.is_prefix(word) == plain.is_prefix(word)


@pytest.mark.skipif(native.kernel is None, reason="the C kernel is not built")
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_the_kernel_joins_as_python_does(name):
    text, write = AMBIGUOUS[name]
    pieces = [bytes((b,)) for b in b"abcdx"] + [b"aa", b"aaa", b"aab", b"bc", b"cb", b"xb", b"bcbc"]
    vocabulary = Vocabulary([*pieces, b""], eos_token_ids=[len(pieces)])
    compiled = compile_grammar(Grammar.from_lark(text), vocabulary)
    ours, theirs = compiled.matcher(), Matcher(compiled)
    rng = random.Random(name)
    for byte in write(60).encode():
        allowed = ours.allowed_token_ids()
        assert np.array_equal(allowed, theirs.allowed_token_ids())
        assert ours.copy().advance(int(rng.choice(list(allowed))))
        token = pieces.index(bytes((byte,)))
        assert ours.advance(token) and theirs.advance(token)
    assert ours.is_complete and theirs.is_complete


@pytest.mark.skipif(native.kernel is None, reason="the C kernel is not built")
def test_all_that_read_the_same_are_joined_at_once(monkeypatch):
    asked = []

    def join(self, frames):
        asked.append(len(frames))
        return original(self, frames)

    original = Bridge.join
    monkeypatch.setattr(Bridge, "join", join)
    rules = [f't{i}: "x" "y"* "{i}"\n' for i in range(10)]
    grammar = Grammar.from_lark(f'start: "b" ({" | ".join(f"t{i}" for i in range(10))})\n' + "".join(rules))
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], eos_token_ids=[256])
    matcher = compile_grammar(grammar, vocabulary).matcher()
    assert all(map(matcher.advance, b"bxy"))
    assert bytes(matcher.allowed_token_ids().tolist()) == b"0123456789y"
    assert asked and set(asked) == {10}


NESTED = {
    "brackets in a row": 'start: "{" start* "}"\n',
    "brackets of two kinds, or nothing": 'start: "(" start ")" start | "[" start "]" start |\n',
    "json": 'start: v\nv: "{" [p ("," p)*] "}" | "[" [v ("," v)*] "]" | S\np: S ":" v\nS: /"[^"]*"/\n',
    "ends that may be missing": 'start: "(" start "x"? ")" | "[" start* "]"? | "a"*\n',
}


@pytest.mark.skipif(native.kernel is None, reason="the C kernel is not built")
@pytest.mark.parametrize(("near", "deep"), [(1, 1), (2, 3), (4, 4)])
@pytest.mark.parametrize("name", NESTED)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_masks_that_are_shared_by_the_top_of_the_stack_are_those_of_the_whole(name, near, deep, seed):
    """Walks that look below what is shared begin anew: tokens of several brackets do."""
    pieces = [bytes((b,)) for b in b'(){}[]":,xa'] + [
        b"))",
        b")))",
        b"}}}}",
        b"]}",
        b"}]}]",
        b'"}}',
        b'"]',
        b"])",
        b")x)",
        b"}{{",
        b'":["',
        b"a]",
    ]
    vocabulary = Vocabulary([*pieces, b""], eos_token_ids=[len(pieces)])
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_stack, "NEAR", near)
        patch.setattr(graph_stack, "DEEP", deep)
        compiled = compile_grammar(Grammar.from_lark(NESTED[name]), vocabulary)
        for _ in range(2):  # the second time much is known
            ours, theirs = compiled.matcher(), Matcher(compiled)
            for _ in range(40):
                allowed = ours.allowed_token_ids()
                assert np.array_equal(allowed, theirs.allowed_token_ids())
                opening = [i for i in allowed if i < len(pieces) and pieces[i][-1:] in b"({["]
                token = int(rng.choice(opening if opening and rng.random() < 0.6 else list(allowed)))
                assert ours.advance(token) and theirs.advance(token)
                if ours.is_terminated:
                    break


@pytest.mark.parametrize("budget", [40, 200])
def test_a_budget_behind_forks_is_kept(budget):
    """Every way on leaves one to finish, whichever stack the text turns out to have."""
    text, _ = AMBIGUOUS["two rules that begin alike"]
    vocabulary = Vocabulary([b"a", b"b", b"c", b"x", b""], eos_token_ids=[4])
    matcher = compile_grammar(Grammar.from_lark(text), vocabulary).matcher()
    matcher.set_budget(budget)
    rng = random.Random(budget)
    for _ in range(budget):
        allowed = [int(i) for i in matcher.allowed_token_ids()]
        if 4 in allowed:
            break
        assert matcher.advance(0 if 0 in allowed else rng.choice(allowed))
    assert matcher.is_complete


KNOWLEDGE = """%declare _STEP
start: a x | b y | done
a: "go" _STEP start
b: "go" _STEP start
x: "x" _STEP done
y: "y" _STEP done
done: "done" _STEP
"""


def test_a_plan_goes_on_behind_forks():
    """After so many actions that two rules write alike, each may still be either."""
    knowledge = ActionKnowledge.from_lark(KNOWLEDGE)
    for _ in range(6):
        knowledge = knowledge.after("go")
    assert knowledge.judge("done") and not knowledge.judge("x")


def test_what_is_too_much_to_write_out_is_refused():
    grammar = Grammar.from_lark(KNOWLEDGE).with_limits(Limits(nodes=2_000))
    knowledge = ActionKnowledge.from_grammar(grammar, read_source(KNOWLEDGE))
    with pytest.raises(LimitError, match="too many ways to go on after this action"):
        for _ in range(60):
            knowledge = knowledge.after("go")
