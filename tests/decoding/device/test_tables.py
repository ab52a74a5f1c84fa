"""What is laid out for the device: every state once, few mask rows, few classes, and limits by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding.device import DeviceMatcher, DeviceTables
from constrained.decoding.device.explore import NEVER, TokenClasses, fewest_tokens
from constrained.errors import GrammarError, VocabularyError
from tests.decoding.device.walk import unpack

BYTES = [bytes((b,)) for b in range(256)]
WORDS = Vocabulary([*BYTES, b"desk", b" 1", b"10", b"go", b""], [260])
MANY = Vocabulary([*BYTES, *(a + b for a in BYTES[97:123] for b in BYTES[97:123]), b""], [256 + 26 * 26])
"""Single bytes and every pair of small letters: free text is wide."""


@given(st.lists(st.lists(st.integers(-1, 4), min_size=6, max_size=6), max_size=6))
def test_classes_hold_every_column(rows):
    classes = TokenClasses(6)
    for row in rows:
        classes.add(np.array(row, np.int32))
    table = classes.table()
    assert table[:, classes.of_token].tolist() == rows
    assert len(classes) == max(1, len({tuple(r[i] for r in rows) for i in range(6)}))


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30))
def test_distances_are_the_fewest_steps_backwards(edges):
    source, target = np.array(edges, np.int64).reshape(-1, 2).T
    distance = {0: -1}
    for _ in range(9):
        for a, b in edges:
            if b in distance:
                distance[a] = min(distance.get(a, NEVER), distance[b] + 1)
    distance[0] = -1
    assert fewest_tokens(source, target, 9).tolist() == [distance.get(i, NEVER) for i in range(9)]


def test_a_choice_is_a_list_per_state():
    tables = DeviceTables.build(compile_grammar(Grammar.from_choices(["go desk 1", "go desk 10"]), WORDS))
    assert tables.states == 12, "finished, and a state after each of 0 to 10 characters"
    assert (tables.wide == -1).all() and len(tables.masks) == len(tables.next) == 0
    first = unpack(DeviceMatcher(tables, 1).mask())
    assert first == [[ord("g"), 259]]
    assert tables.fewest[tables.start].tolist() == [4], "go, space, desk, space and 1"


def test_bounded_text_shares_rows_and_classes():
    """Three hundred wide states: mask rows only for counts within a token's reach, classes by characters."""
    compiled = compile_grammar(Grammar.from_regex(r"[a-z]{1,300}"), MANY)
    tables = DeviceTables.build(compiled)
    assert tables.states == 302, "finished, and a state a count"
    assert len(tables.mask_row) == 299, "with one letter left or none, lists are short"
    assert len(tables.masks) == 2, "at the start no EOS, then all alike"
    assert len(tables.next[0]) == 4, "nothing, one letter, two letters, EOS"
    assert tables.nbytes < 60_000
    assert tables.fewest[tables.start].tolist() == [1]


def test_real_bounded_text_is_small():
    from tests.automaton.tokenizers import vocabulary

    compiled = compile_grammar(Grammar.from_regex(r"[^\]\n]{1,60}\]"), vocabulary("gpt2"))
    tables = DeviceTables.build(compiled)
    table = len(tables.next) * tables.size * 4
    assert len(tables.next) >= 60 and tables.nbytes < table / 5, "next states by token would take five times all of it"


def test_equal_grammars_give_equal_tables():
    """Whatever was generated before: states are numbered by the tokens that lead to them."""
    pattern = r"(go|desk) [a-z]{0,9}( 10?)?"
    first, second = (compile_grammar(Grammar.from_regex(pattern), MANY) for _ in range(2))
    matcher = second.matcher()
    for byte in b"desk zz 1":
        matcher.advance(byte)
    one, other = DeviceTables.build(first), DeviceTables.build(second)
    assert all(torch.equal(a, b) for a, b in zip(one.tensors().values(), other.tensors().values()))


def test_several_grammars_stand_side_by_side():
    choices = [compile_grammar(Grammar.from_choices([text]), WORDS) for text in ("go", "desk", "10")]
    tables = DeviceTables.build(choices)
    assert tables.start.tolist() == [1, 2, 3]
    assert tables.states == 1 + 3 + 5 + 3
    assert unpack(DeviceMatcher(tables, [2, 0, 1]).mask()) == [[ord("1"), 258], [ord("g"), 259], [ord("d"), 256]]


def test_what_can_be_begun_but_not_finished_is_left_out():
    vocabulary = Vocabulary([b"a", b"b", b"\xc3", "é".encode(), b"a\xc3", b""], [5])
    compiled = compile_grammar(Grammar.from_regex("[aé]{1,3}b"), vocabulary)
    for narrow in (0, 256):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("constrained.decoding.device.explore.NARROW", narrow)
            matcher = DeviceMatcher(DeviceTables.build(compiled), 1)
        assert unpack(matcher.mask()) == [[0, 3]]
        assert matcher.advance(torch.tensor([2])).tolist() == matcher.advance(torch.tensor([4])).tolist() == [False]


@pytest.mark.parametrize(
    "pattern", [r"[a-z]{2,9}\.", r"[a-z]{0,5}[x-z]+", r"([a-z]{1,4} |[é-ì]{2,3}){1,2}", r"[^.]*\.b"]
)
def test_states_after_many_tokens_are_those_after_each(pattern, monkeypatch):
    """However they are found: walked, or by their number of characters."""
    monkeypatch.setattr("constrained.automaton.masks.FEW", 0)
    compiled = compile_grammar(Grammar.from_regex(pattern), MANY)
    seen, work = set(), [compiled.automaton.start]
    while work and len(seen) < 25:
        state = work.pop()
        ids = compiled.masks.token_ids(state)
        states, which = compiled.masks.states_after(state, ids)
        assert [states[i] for i in which.tolist()] == [state.read(MANY.tokens[i]) for i in ids.tolist()]
        new = {states[i] for i in which.tolist()} - seen
        seen |= new
        work.extend(new)
    assert len(seen) >= 4


NESTED = r"(([a-c]{1,40}d){1,40}e){1,40}"


@pytest.mark.parametrize(
    "limit, says",
    [
        ({"max_states": 50}, "more than 50 states"),
        ({"max_bytes": 9_000}, "bytes after"),
        ({"max_seconds": 0.0}, "states took 0 s"),
    ],
)
def test_a_limit_is_named_with_the_way_round_it(limit, says):
    (name,) = limit
    with pytest.raises(GrammarError, match=f"too large to lie on the device: .*{says}.*limit {name}=") as caught:
        DeviceTables.build(compile_grammar(Grammar.from_regex(NESTED), WORDS), **limit)
    assert f"raise {name} of DeviceTables.build" in caught.value.hint and "Matcher" in caught.value.hint


NESTING = Grammar.from_lark('start: sum\nsum: item ("+" item)*\nitem: /[0-9]/ | "(" sum ")"\n')


def test_texts_that_nest_without_end_are_refused_or_truncated():
    """Truncated: everything still ends whole, and nests only so deep."""
    compiled = compile_grammar(NESTING, WORDS)
    with pytest.raises(GrammarError, match="limit max_states=") as caught:
        DeviceTables.build(compiled, max_states=500)
    assert "truncate=True" in caught.value.hint
    tables = DeviceTables.build(compiled, max_states=20, truncate=True)
    assert tables.truncated and tables.states == 20
    torch.manual_seed(0)
    matcher = DeviceMatcher(tables, 40, budget=60)
    liking = torch.zeros(WORDS.size)
    liking[ord("(")] = 3.0
    written = torch.stack([matcher.step(torch.randn(40, WORDS.size) + liking) for _ in range(61)], 1)
    assert matcher.finished.all()
    for row in written.tolist():
        text = b"".join(WORDS.tokens[i] for i in row)
        assert NESTING.matches(text)
    deepest = max(max(sum({40: 1, 41: -1}.get(t, 0) for t in row[:n]) for n in range(61)) for row in written.tolist())
    assert 3 <= deepest <= 10
    with pytest.raises(GrammarError, match="no text can be finished within the states that are kept"):
        DeviceTables.build(compile_grammar(Grammar.from_choices(["desk"]), WORDS), max_states=2, truncate=True)


@pytest.mark.parametrize("brackets", [0, 1, 4])
def test_a_depth_is_chosen_and_told(brackets):
    """Within it everything is admitted that the host admits; nothing nests deeper. The sum itself is one level."""
    depth = brackets + 1
    tables = DeviceTables.build(compile_grammar(NESTING, WORDS), depth=depth)
    assert tables.truncated and tables.depth == depth and f"nesting {depth} deep" in repr(tables)
    texts = ["1+2", "(" * brackets + "1" + ")" * brackets + "+1"]
    for text in texts:
        matcher = DeviceMatcher(tables, 1)
        for byte in text.encode():
            logits = torch.full((1, WORDS.size), -9.0)
            logits[0, byte] = 9.0
            assert matcher.step(logits).item() == byte
    matcher = DeviceMatcher(tables, 1)
    logits = torch.full((1, WORDS.size), -9.0)
    logits[0, ord("(")] = 9.0
    written = [matcher.step(logits).item() for _ in range(depth)]
    assert written[:brackets] == [ord("(")] * brackets and written[brackets] != ord("(")


def test_what_does_not_nest_has_no_depth():
    assert DeviceTables.build(compile_grammar(Grammar.from_choices(["desk"]), WORDS)).depth == 0
    with pytest.raises(GrammarError, match="no text begins without nesting deeper"):
        DeviceTables.build(compile_grammar(NESTING, WORDS), depth=0)


def test_grammars_over_different_vocabularies_are_refused():
    with pytest.raises(VocabularyError, match="different vocabularies.*\n.*the same one"):
        DeviceTables.build([compile_grammar(Grammar.from_choices(["go"]), v) for v in (WORDS, MANY)])
    with pytest.raises(VocabularyError, match="no grammar"):
        DeviceTables.build([])
