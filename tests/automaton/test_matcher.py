"""The matcher's laws: copies are apart, rollback undoes, reset begins anew, every form of the mask agrees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from constrained import BatchMatcher, Grammar, GrammarError, Vocabulary, compile_grammar
from constrained.errors import VocabularyError

BYTES = [bytes((b,)) for b in range(256)]
TOKENS = [*BYTES, b"go to ", b"desk", b" 1", b"10", b"go", b"\xc3\xa9a", b"a\xc3", b"", b"</s>", b"ab", b"ab"]
EOS = [263, 264]
VOCABULARY = Vocabulary(TOKENS, EOS, [7], size=300)

GRAMMARS = [
    Grammar.from_choices(["go to desk 1", "go to desk 10", "go", ""]),
    Grammar.from_regex("[^\\n]{1,6}(\n[abé]{0,2}){0,2}"),
    Grammar.from_lark('%declare S\nstart: t{S} start | "."\nt{x}: x "-" x ","\n').bind(S=["a", "ab", "é"]),
    Grammar.from_lark(
        '%declare P T _STEP\nstart: at{P}\nat{p}: p ":" take{T, p} _STEP (at{P} | "!")\ntake{t, p}: t p\n'
    ).bind(P=["a", "ab", "b"], T={"a": ["x"], "ab": ["x", "xy"]}, _STEP="\n"),
]


class Laws(RuleBasedStateMachine):
    """Several matchers of one compiled grammar, each beside what it should have read."""

    matchers = Bundle("matchers")

    @initialize(target=matchers, grammar=st.sampled_from(GRAMMARS))
    def begin(self, grammar):
        self.grammar = grammar
        self.compiled = compile_grammar(grammar, VOCABULARY)
        self.all = []
        return self.new(self.compiled.matcher(), [])

    def new(self, matcher, read):
        entry = (matcher, read)  # the ids it has read
        self.all.append(entry)
        return entry

    @rule(target=matchers, entry=matchers)
    def copy(self, entry):
        return self.new(entry[0].copy(), list(entry[1]))

    @rule(entry=matchers, data=st.data())
    def advance(self, entry, data):
        matcher, read = entry
        i = data.draw(st.sampled_from(matcher.allowed_token_ids().tolist()))
        assert matcher.advance(i) is True
        read.append(i)

    @rule(entry=matchers, data=st.data())
    def advance_in_vain(self, entry, data):
        matcher, _ = entry
        refused = sorted(set(range(-2, 303)) - set(matcher.allowed_token_ids().tolist()))
        assert matcher.advance(data.draw(st.sampled_from(refused))) is False

    @rule(entry=matchers, data=st.data())
    def rollback(self, entry, data):
        matcher, read = entry
        count = data.draw(st.integers(0, len(read)))
        matcher.rollback(count)
        del read[len(read) - count :]

    @rule(entry=matchers, more=st.integers(1, 3))
    def rollback_too_far(self, entry, more):
        with pytest.raises(ValueError, match=f"can't take back {len(entry[1]) + more} tokens of {len(entry[1])}"):
            entry[0].rollback(len(entry[1]) + more)

    @rule(entry=matchers)
    def reset(self, entry):
        entry[0].reset()
        entry[1].clear()

    @invariant()
    def each_is_where_a_new_one_would_be(self):
        for matcher, read in getattr(self, "all", ())[-4:]:
            ended = any(i in EOS for i in read)
            text = b"".join(TOKENS[i] for i in read if i not in EOS)
            fresh = self.compiled.matcher(text)
            assert matcher.is_terminated == ended and not fresh.is_terminated
            assert matcher.is_complete == fresh.is_complete == self.grammar.matches(text)
            allowed = matcher.allowed_token_ids().tolist()
            assert allowed == (EOS if ended else fresh.allowed_token_ids().tolist())
            assert (set(EOS) <= set(allowed)) == self.grammar.matches(text)
            assert matcher.forced_text() == (b"" if ended else fresh.forced_text())
            mask = np.zeros((1, VOCABULARY.words), np.int32)
            matcher.fill_bitmask(mask)
            assert np.flatnonzero(np.unpackbits(mask.view(np.uint8)[0], bitorder="little")).tolist() == allowed


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=40, stateful_step_count=25)


# masks


def test_one_row_is_written_and_words_beyond_the_vocabulary_are_cleared():
    matcher = compile_grammar(GRAMMARS[1], VOCABULARY).matcher()
    assert VOCABULARY.size == 300 and VOCABULARY.words == 10
    mask = np.full((4, 13), -1, np.int32)
    matcher.fill_bitmask(mask, row=2)
    assert (mask[[0, 1, 3]] == -1).all() and (mask[2, 10:] == 0).all()
    bits = np.unpackbits(mask[2].view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == matcher.allowed_token_ids().tolist()
    last = np.full((4, 10), -1, np.int32)
    matcher.fill_bitmask(last, row=-1)
    assert (last[3] == mask[2, :10]).all()


def test_the_layout_is_bit_i_of_word_i_over_32():
    tokens = [b"x"] * 64 + [b"a"] + [b"x"] * 30 + [b"a", b"a"] + [b""]
    matcher = compile_grammar(Grammar.from_choices(["a"]), Vocabulary(tokens, [97])).matcher()
    mask = np.zeros((1, 4), np.int32)
    matcher.fill_bitmask(mask)
    assert mask.tolist() == [[0, 0, -(2**31) | 1, 1]]
    assert matcher.advance(95)
    matcher.fill_bitmask(mask)
    assert mask.tolist() == [[0, 0, 0, 2]]


def test_a_torch_tensor_is_filled_in_place():
    torch = pytest.importorskip("torch")
    matcher = compile_grammar(GRAMMARS[1], VOCABULARY).matcher()
    array, tensor = np.zeros((2, 10), np.int32), torch.zeros((2, 10), dtype=torch.int32)
    matcher.fill_bitmask(array, 1)
    matcher.fill_bitmask(tensor, 1)
    assert tensor.tolist() == array.tolist() and any(tensor[1].tolist())


@pytest.mark.parametrize(
    "mask",
    [np.zeros((1, 9), np.int32), np.zeros((1, 10), np.int64), np.zeros(10, np.int32), np.zeros((1, 10), np.uint32)],
)
def test_a_mask_of_another_shape_or_type_is_an_error(mask):
    with pytest.raises(VocabularyError, match=r"needs int32 \[rows, 10\]"):
        compile_grammar(GRAMMARS[1], VOCABULARY).matcher().fill_bitmask(mask)


def test_changing_what_was_returned_changes_nothing():
    matcher = compile_grammar(GRAMMARS[1], VOCABULARY).matcher()
    before = matcher.allowed_token_ids()
    expected = before.tolist()
    before[:] = -5
    mask = np.zeros((1, 10), np.int32)
    matcher.fill_bitmask(mask)
    mask[:] = 0
    again = np.zeros((1, 10), np.int32)
    matcher.fill_bitmask(again)
    assert matcher.allowed_token_ids().tolist() == expected
    assert np.flatnonzero(np.unpackbits(again.view(np.uint8)[0], bitorder="little")).tolist() == expected


# the ends of a text


def test_every_eos_ends_a_complete_text_and_only_that():
    matcher = compile_grammar(GRAMMARS[0], VOCABULARY).matcher()
    assert matcher.is_complete and set(EOS) <= set(matcher.allowed_token_ids().tolist())
    assert matcher.advance(ord("g"))
    assert not matcher.is_complete and not set(EOS) & set(matcher.allowed_token_ids().tolist())
    assert not matcher.advance(263) and not matcher.advance(264)
    assert matcher.advance(ord("o"))
    for eos in EOS:
        ended = matcher.copy()
        assert ended.advance(eos) and ended.is_terminated and ended.is_complete
        assert ended.allowed_token_ids().tolist() == EOS, "a row that has ended absorbs padding"
        assert not ended.advance(ord(" ")) and ended.advance(EOS[0])
        ended.rollback(2)
        assert not ended.is_terminated and ended.advance(ord(" "))


def test_special_ids_are_never_content():
    grammar = Grammar.from_regex("(?s).*")
    special = Vocabulary([b"a", b"<s>", b"</s>", b"b", b"<pad>"], [2], [1, 4])
    matcher = compile_grammar(grammar, special).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 2, 3]
    assert not matcher.advance(1) and not matcher.advance(4)
    assert grammar.matches("<s></s><pad>"), "as text they are fine"


def test_a_matcher_can_begin_in_the_middle():
    compiled = compile_grammar(GRAMMARS[0], VOCABULARY)
    for begun in ("go to des", b"go to des"):
        matcher = compiled.matcher(begun)
        assert matcher.forced_text() == b"k 1"
        assert matcher.advance(ord("k"))
        matcher.reset()
        assert matcher.forced_text() == b"k 1", "reset goes back to where it began"
        with pytest.raises(ValueError):
            matcher.rollback(1)
    with pytest.raises(GrammarError, match="no text of the grammar begins with b'stay'"):
        compiled.matcher("stay")


def test_forced_text_ends_where_there_is_a_choice():
    def forced(grammar, begun=""):
        return compile_grammar(grammar, VOCABULARY).matcher(begun).forced_text()

    assert forced(Grammar.from_choices(["go to desk 1", "go to desk 10"])) == b"go to desk 1"
    assert forced(Grammar.from_choices(["go to desk 1", "go to desk 2"])) == b"go to desk "
    assert forced(Grammar.from_choices(["é", "è"])) == b"\xc3", "a choice inside a character"
    assert forced(Grammar.from_choices(["é", "è"]), b"\xc3") == b""
    assert forced(Grammar.from_regex("abc[d]{3}e?")) == b"abcddd"
    assert forced(Grammar.from_regex("(ab){2}c|ababd")) == b"abab"
    assert forced(Grammar.from_lark('start: "a" start | "a" "b"')) == b"a"
    assert forced(Grammar.from_regex("x{3}|x{3}y")) == b"xxx"
    assert (
        forced(Grammar.from_lark('%declare S\nstart: t{S}\nt{x}: x ": " x "!"\n').bind(S=["ab", "abc"]), "abc")
        == b": abc!"
    )
    assert forced(GRAMMARS[0]) == b"", "a text that is complete may end"
    assert forced(Grammar.from_regex("a{5000}")) == b"a" * 4096, "so far it is looked ahead"


def test_forced_text_is_what_every_way_on_begins_with():
    for grammar in GRAMMARS:
        seen, work = set(), [b""]
        while work:
            text = work.pop()
            state = grammar.automaton.read(text)
            forced = state.forced_text()
            for i in range(len(forced)):
                step = state.read(forced[:i])
                assert step.first() == {forced[i]} and not step.accepting
            after = state.read(forced)
            assert after.accepting or len(after.first()) > 1 or len(forced) == 4096
            more = [text + forced + bytes((b,)) for b in sorted(after.first())[:5]]
            work += [m for m in more if len(m) < 10 and m not in seen]
            seen.update(more)


def test_compiling_the_same_grammar_for_two_vocabularies():
    grammar = Grammar.from_regex("(ab)*c")
    one = compile_grammar(grammar, Vocabulary([b"a", b"b", b"c", b""], [3])).matcher()
    two = compile_grammar(grammar, Vocabulary([b"", b"ab", b"abc", b"c", b"bab"], [0])).matcher()
    assert one.allowed_token_ids().tolist() == [0, 2] and two.allowed_token_ids().tolist() == [1, 2, 3]
    assert one.advance(0) and two.advance(1)
    assert one.allowed_token_ids().tolist() == [1] and two.allowed_token_ids().tolist() == [1, 2, 3]


def test_what_outlines_core_lost():
    """outlines_core 0.2.14: `c` after `a` in a(cb)*; `desk_10` where a pattern ends in desk_1|desk_10."""
    vocabulary = Vocabulary([b"a", b"b", b"c", b"ac", b"cb", b"bc", b"acb", b""], [7])
    matcher = compile_grammar(Grammar.from_regex("a(cb)*"), vocabulary).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 3, 6] and matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [2, 4, 7] and matcher.advance(2)
    assert matcher.allowed_token_ids().tolist() == [1, 5]
    vocabulary = Vocabulary([b"desk_", b"1", b"0", b"10", b"desk_1", b"desk_10", b""], [6])
    matcher = compile_grammar(Grammar.from_regex("(desk_1|desk_10)"), vocabulary).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 4, 5] and matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [1, 3] and matcher.advance(1)
    assert matcher.allowed_token_ids().tolist() == [2, 6]
    vocabulary = Vocabulary([b"5", b"0", b"50", b"4", b""], [4])
    matcher = compile_grammar(Grammar.from_regex("[1-9]|[1-4][0-9]|50"), vocabulary).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 2, 3] and matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [1, 4]


def test_what_an_object_shows_of_itself():
    vocabulary = Vocabulary([*(bytes((b,)) for b in range(256)), b""], [256])
    compiled = compile_grammar(Grammar.from_lark('start: "go to " /[a-z]+/ "!"'), vocabulary)
    assert repr(vocabulary) == "Vocabulary(256 tokens, size 257, EOS [256])"
    assert repr(compiled).startswith("CompiledGrammar(Grammar(") and repr(vocabulary) in repr(compiled)
    matcher = compiled.matcher("go")
    matcher.set_budget(20)
    assert repr(matcher) == "Matcher(unfinished, budget 20 tokens, next: ' to ')"
    assert repr(BatchMatcher([matcher])) == f"BatchMatcher([{matcher!r}])"
    ended = compiled.matcher("go to b!")
    assert repr(ended) == "Matcher(complete)" and ended.advance(256) and repr(ended) == "Matcher(terminated)"
