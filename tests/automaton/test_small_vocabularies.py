"""Masks and budgets over small vocabularies, against every token tried on every text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.automaton import native
from constrained.errors import VocabularyError
from tests.automaton.brute import Language, expected_mask, finishing, spellings
from tests.automaton.small_grammars import BYTES, GRAMMARS, TEXTS, patterns, tokens, vocabularies
from tests.grammar.oracles import sample


def check(grammar: Grammar, texts: set[bytes], vocabulary: Vocabulary):
    """Every text that allowed tokens can write, and at each the whole mask, in every form."""
    fewest = finishing(texts, vocabulary)
    if b"" not in fewest:
        with pytest.raises(
            VocabularyError, match="no text of the grammar can be written with this vocabulary's tokens"
        ):
            compile_grammar(grammar, vocabulary)
        return 0
    compiled = compile_grammar(grammar, vocabulary)
    tokens = spellings(vocabulary)
    seen, work = {b""}, [(b"", compiled.matcher())]
    while work:
        text, matcher = work.pop()
        expected = expected_mask(text, texts, fewest, vocabulary)
        allowed = matcher.allowed_token_ids()
        assert allowed.dtype == np.int32 and allowed.tolist() == expected, text
        assert matcher.is_complete == (text in texts)
        mask = np.full((3, vocabulary.words + 1), -1, np.int32)
        matcher.fill_bitmask(mask, 1)
        bits = np.unpackbits(mask[1].view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == expected
        assert (mask[[0, 2]] == -1).all(), "other rows are left alone"
        for i in range(-1, vocabulary.size + 1):
            if i in vocabulary.eos_token_ids:
                continue
            after = matcher.copy()
            assert after.advance(i) == (i in tokens and i in expected), (text, i)
            if i in expected and text + tokens[i] not in seen:
                seen.add(text + tokens[i])
                work.append((text + tokens[i], after))
    return len(seen)


@pytest.fixture(params=["kernel", "one by one", "as arrays"])
def walk(request, monkeypatch):
    """All ways in which tokens are walked, whatever their number."""
    if request.param == "kernel":
        if native.kernel is None:
            pytest.skip("the C kernel is not built")
        return
    monkeypatch.setattr(native, "kernel", None)
    if request.param == "as arrays":
        monkeypatch.setattr("constrained.automaton.masks.FEW", 0)
        monkeypatch.setattr("constrained.automaton.budget.FEW", 0)


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_hold_exactly_the_tokens_that_can_be_finished(name, walk):
    seen = sum(check(GRAMMARS[name], TEXTS[name], v) for v in vocabularies(name).values())
    assert seen > 10


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("kind", ["bytes", "equal tokens", "only pieces", "letters but one"])
def test_a_budget_allows_exactly_what_still_fits(name, kind, walk):
    grammar, texts, vocabulary = GRAMMARS[name], TEXTS[name], vocabularies(name)[kind]
    fewest = finishing(texts, vocabulary)
    if b"" not in fewest:
        return
    compiled = compile_grammar(grammar, vocabulary)
    for begun in sorted(fewest, key=lambda t: (len(t), t))[:40]:
        for left in range(fewest[begun] + 3):
            matcher = compiled.matcher(begun)
            if left < fewest[begun]:
                with pytest.raises(
                    VocabularyError, match=f"the shortest way to finish takes {fewest[begun]}"
                ) as caught:
                    matcher.set_budget(left)
                assert caught.value.hint == "raise max_new_tokens"
                continue
            matcher.set_budget(left)
            expected = expected_mask(begun, texts, fewest, vocabulary, left)
            assert matcher.allowed_token_ids().tolist() == expected, (begun, left)
            assert [i for i in range(vocabulary.size) if matcher.copy().advance(i)] == expected


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_cut_of_a_text_is_allowed(name):
    """Complete: any way to cut an accepted text into tokens goes through, and then EOS, each of them."""
    vocabulary = vocabularies(name)["equal tokens"]
    tokens = spellings(vocabulary)
    compiled = compile_grammar(GRAMMARS[name], vocabulary)
    for text in sorted(TEXTS[name])[:60]:
        work = [(0, compiled.matcher())]
        done = 0
        while work and done < 200:
            at, matcher = work.pop()
            if at == len(text):
                done += 1
                for eos in vocabulary.eos_token_ids:
                    assert matcher.copy().advance(eos)
            for i, token in tokens.items():
                if text.startswith(token, at):
                    after = matcher.copy()
                    assert after.advance(i)
                    work.append((at + len(token), after))


# random grammars and vocabularies


@settings(max_examples=60)
@given(patterns, tokens, st.booleans(), st.integers(0, 6))
def test_random_grammars_and_vocabularies(pattern, words, with_bytes, left):
    grammar = Grammar.from_regex(pattern.replace("[^c]", "[^\0-`c-è\xea-\U0010ffff]"))  # a, b, é
    texts = Language(grammar).texts
    words = [w.encode() if isinstance(w, str) else w for w in words]
    if with_bytes:
        words += [b"a", b"b", b"\xc3", b"\xa9"]
    vocabulary = Vocabulary([*words, b""], [len(words)])
    check(grammar, texts, vocabulary)
    fewest = finishing(texts, vocabulary)
    assume(b"" in fewest)
    compiled = compile_grammar(grammar, vocabulary)
    for begun in sorted(fewest):
        if fewest[begun] <= left:
            matcher = compiled.matcher(begun)
            matcher.set_budget(left)
            assert matcher.allowed_token_ids().tolist() == expected_mask(begun, texts, fewest, vocabulary, left), begun


@settings(max_examples=30)
@given(
    patterns.map(lambda p: f"({p})*x"),
    tokens,
    st.randoms(use_true_random=False),
    st.integers(0, 9),
    st.sampled_from([0, 30]),
)
def test_a_bound_instead_of_a_search_still_keeps_every_budget(pattern, words, rnd, extra, steps):
    """As in a vocabulary too large to search: masks within the budget, equal to what `advance` takes, never empty."""
    grammar = Grammar.from_regex(pattern)
    words = [w.encode() if isinstance(w, str) else w for w in words] + BYTES
    vocabulary = Vocabulary([*words, b""], [len(words)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.automaton.budget.SMALL_VOCABULARY", 0)
        patch.setattr("constrained.automaton.budget.EXACT_STEPS", steps)
        patch.setattr("constrained.automaton.masks.FEW", 3)
        compiled = compile_grammar(grammar, vocabulary)
        matcher = compiled.matcher()
        least = matcher.fewest_tokens()
        matcher.set_budget(least + extra)
        text = b""
        for written in range(least + extra + 1):
            ids = matcher.allowed_token_ids().tolist()
            assert ids, f"stuck after {text!r} with {least + extra - written} tokens left"
            tried = {*rnd.sample(range(vocabulary.size), 40), *rnd.sample(ids, min(9, len(ids)))}
            assert {i for i in tried if matcher.copy().advance(i)} == tried & set(ids)
            long_way = [i for i in ids if i != len(words) and not grammar.matches(text + words[i])]
            i = rnd.choice(long_way or ids)
            if i == len(words):
                break
            matcher.advance(i)
            text += words[i]
        assert matcher.is_complete and grammar.matches(text) and written <= least + extra


@settings(max_examples=30)
@given(patterns.map(lambda p: f"({p})*x"), tokens, st.randoms(use_true_random=False), st.integers(1, 9))
def test_a_budget_is_exact_and_always_kept_in_endless_languages(pattern, words, rnd, extra):
    """Exact for the texts within reach of the budget; a random walk always ends whole within it."""
    grammar = Grammar.from_regex(pattern)
    words = [w.encode() if isinstance(w, str) else w for w in words] + [b"a", b"b", b"c", b"x", b"\xc3", b"\xa9", b"ax"]
    vocabulary = Vocabulary([*words, b""], [len(words)])
    compiled = compile_grammar(grammar, vocabulary)
    matcher = compiled.matcher()
    begun = sample(grammar, rnd, 6).encode()[: rnd.randint(0, 5)]
    try:
        matcher = compiled.matcher(begun)
    except VocabularyError:
        assume(False)
    least = matcher.fewest_tokens()
    layer, count = {begun}, 0
    while not any(map(grammar.matches, layer)):  # fewest, by trying all
        layer = {t + w for t in layer for w in set(words) if grammar.is_prefix(t + w)}
        count += 1
        assume(len(layer) < 3_000)
    assert least == count
    matcher.set_budget(least + extra)
    written, text = 0, begun
    while not (matcher.is_complete and rnd.random() < 0.3):
        ids = [i for i in matcher.allowed_token_ids().tolist() if i not in vocabulary.eos_token_ids]
        if not ids:
            assert matcher.is_complete
            break
        i = rnd.choice(ids)
        assert matcher.advance(i)
        text, written = text + words[i], written + 1
        assert grammar.is_prefix(text)
    assert grammar.matches(text) and written <= least + extra


def test_a_single_missing_byte_shuts_only_what_needs_it():
    """`é` can be spelled whole, not byte by byte: what would end inside it is shut out from the start."""
    vocabulary = Vocabulary([b"a", b"b", b"\xc3", "é".encode(), b"a\xc3", b""], [5])
    matcher = compile_grammar(Grammar.from_regex("[aé]{1,3}b"), vocabulary).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 3]
    assert not matcher.advance(2) and not matcher.advance(4)
    vocabulary = Vocabulary([b"a", b"b", b"\xc3", b"\xa9b", b"\xc3\xa9", b""], [5])
    matcher = compile_grammar(Grammar.from_regex("[aéü]{1,3}b"), vocabulary).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 2, 4] and matcher.advance(2)
    assert matcher.allowed_token_ids().tolist() == [3]
