"""Vocabularies: tokens as bytes, ids that end a text, what is special, and tokenizers that can't be one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.automaton.vocabulary import TokenTexts
from constrained.errors import ConstrainedError, VocabularyError
from constrained.grammar.charset import charset
from tests.automaton.tokenizers import NAMES, vocabulary


def test_tokens_ids_and_sizes():
    words = Vocabulary([b"b", b"", b"a", b"<s>", b"a"], [5, 1, 5], [3], size=40)
    assert (words.size, len(words), words.words) == (40, 40, 2)
    assert words.eos_token_ids == [1, 5] and words.special_ids == [1, 3, 5]
    assert words.sorted_tokens == [b"a", b"a", b"b"] and sorted(words.sorted_ids[:2].tolist()) == [2, 4]
    assert Vocabulary([b"a"], [1]).size == 2 and Vocabulary([b"a", b"b", b"c"], [0], size=2).size == 3
    assert repr(words) == "Vocabulary(3 tokens, size 40, EOS [1, 5])"
    assert Vocabulary((t for t in [b"a", bytearray(b"b")]), iter([np.int64(0)]), iter([])).tokens == [b"a", b"b"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ([b"a"], []),
            "the vocabulary has no EOS token, so no text could ever end",
            "pass eos_token_ids=[...], the ids the model ends a text with",
        ),
        (([], [0]), "the vocabulary has no token that stands for text", None),
        (([b"", b""], [1]), "the vocabulary has no token that stands for text", None),
        (([b"a", b"b"], [0], [1]), "the vocabulary has no token that stands for text", None),
        (([b"a" * 4097], [1]), "a token of 4,097 bytes: there may be 4,096", None),
        (([b"a"], [1], [-1]), "special token id -1 is outside 0..1", None),
        (([b"a"], [1], [7]), "special token id 7 is outside 0..1", None),
        (([b"a"], [-1]), "special token id -1 is outside 0..0", None),
        ((["a"], [1]), "token 0 is not bytes but str", "give each token as the bytes it writes"),
        (([b"a", 5], [1]), "token 1 is not bytes but int", "give each token as the bytes it writes"),
        (([b"a", None], [1]), "token 1 is not bytes but NoneType", "give each token as the bytes it writes"),
    ],
)
def test_what_is_no_vocabulary(arguments, message, hint):
    with pytest.raises(VocabularyError) as caught:
        Vocabulary(*arguments)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert isinstance(caught.value, ConstrainedError)


def test_tokens_may_be_long_and_begin_alike():
    tokens = [*(bytes((b,)) for b in range(256)), *(b"a" * 4000 + bytes((b,)) * 96 for b in b"bcd")]
    known = Vocabulary([*tokens, b"</s>"], [len(tokens)])
    for text, allowed in (('("a" "a" | "b")+', {ord("a"), ord("b"), 256}), ('/[ac]+/ "b"', {ord("a"), ord("c"), 257})):
        matcher = compile_grammar(Grammar.from_lark(f"start: {text}"), known).matcher()
        assert set(matcher.allowed_token_ids().tolist()) == allowed


@given(st.lists(st.binary(max_size=5), min_size=1), st.lists(st.integers(0, 300), min_size=1, max_size=3))
def test_packed_rows_hold_the_ids(tokens, ids):
    words = Vocabulary([b"x", *tokens], [310])
    row = words.pack(np.array(ids))
    assert row.dtype == np.int32 and row.shape == (words.words,)
    assert {i for i in range(words.size) if row[i >> 5] >> (i & 31) & 1} == set(ids)


@given(st.binary(max_size=12), st.lists(st.binary(min_size=1, max_size=3), max_size=8))
def test_the_fewest_tokens_of_a_text(data, tokens):
    tokens += [data[i : i + 1] for i in range(len(data))]
    words = Vocabulary([b"?", *tokens, b""], [len(tokens) + 1])
    ends = words.fewest_tokens(data)
    cut = [data[a:b] for a, b in zip([0, *ends], ends)]
    assert b"".join(cut) == data and set(cut) <= set(words.tokens)
    best = {0: 0}
    for end in range(1, len(data) + 1):
        best[end] = 1 + min(best[a] for a in range(end) if data[a:end] in words.tokens)
    assert len(ends) == best[len(data)]


def test_a_text_no_tokens_spell():
    words = Vocabulary([b"ab", b"c", b""], [2])
    assert words.fewest_tokens(b"") == [] and words.fewest_tokens(b"abc") == [2, 3]
    with pytest.raises(ValueError, match="no tokens spell b'abb'"):
        words.fewest_tokens(b"abb")


def test_equal_vocabularies_have_equal_fingerprints():
    def fingerprint(*arguments, **more):
        return Vocabulary(*arguments, **more).fingerprint

    first = fingerprint([b"a", b"bc"], [2])
    assert first == fingerprint([b"a", b"bc"], [2])
    others = [
        ([b"ab", b"c"], [2]),
        ([b"bc", b"a"], [2]),
        ([b"a", b"bc"], [2, 3]),
        ([b"a", b"bc"], [1]),
        ([b"a", b"bc", b""], [2]),
    ]
    found = [
        first,
        *(fingerprint(*o) for o in others),
        fingerprint([b"a", b"bc"], [2], [0]),
        fingerprint([b"a", b"bc"], [2], size=9),
    ]
    assert len(set(found)) == len(found)


@given(st.lists(st.one_of(st.text(max_size=4).map(str.encode), st.binary(min_size=1, max_size=6)), min_size=1))
def test_which_tokens_are_whole_characters_of_a_set(tokens):
    tokens = sorted({t for t in tokens if t} | {b"a"})
    words = Vocabulary([*tokens, b""], [len(tokens)])
    index = TokenTexts(words.flat, words.offsets, words.lengths)
    sets = [
        charset([(0x61, 0x7A)]),
        charset([(10, 10)]).complement(),
        charset([(0, 0x7F), (0x800, 0xFFFF)]),
        charset([(0x100, 0x10FFFF)]),
    ]
    for i, token in enumerate(words.sorted_tokens):
        try:
            text = token.decode()
        except UnicodeDecodeError:
            text = None
        assert index.whole[i] == (text is not None)
        if text is not None:
            assert index.characters[i] == len(text)
        for chars in sets:
            assert index.inside(chars)[i] == (text is not None and all(ord(c) in chars for c in text)), (token, chars)


@pytest.mark.parametrize("name", NAMES)
def test_facts_about_a_real_vocabulary(name):
    words = vocabulary(name)
    assert words.sorted_tokens == sorted(words.sorted_tokens) and all(words.sorted_tokens)
    assert [words.tokens[i] for i in words.sorted_ids[::97]] == words.sorted_tokens[::97]
    assert words.ranks[words.sorted_ids].tolist() == list(range(len(words.sorted_ids)))
    assert not set(words.sorted_ids.tolist()) & set(words.special_ids)
    whole = words.text.whole
    for i in range(0, len(whole), 53):
        assert whole[i] == (words.sorted_tokens[i].decode("utf-8", "ignore").encode() == words.sorted_tokens[i])


# tokenizers


def byte_level(**special) -> Tokenizer:
    bpe = Tokenizer(models.BPE(vocab={"a": 0, "Ġ": 1, "Ã": 2, "©": 3, "Ġa": 4, "Ċ": 5}, merges=[("Ġ", "a")]))
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.add_special_tokens(["<end>"])
    bpe.add_tokens([AddedToken("<tool>", special=False), AddedToken("<|im|>", special=False), "né"])
    return bpe


def fast(inner: Tokenizer, **options):
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **options)


def test_a_byte_level_tokenizer():
    words = Vocabulary.from_tokenizer(fast(byte_level(), eos_token="<end>"))
    assert words.tokens == [b"a", b" ", b"\xc3", b"\xa9", b" a", b"\n", b"<end>", b"<tool>", b"<|im|>", b"n\xe9"]
    assert words.eos_token_ids == words.special_ids == [6], "what is flagged, whatever it looks like"
    matcher = compile_grammar(Grammar.from_regex("(?s).*"), words).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_the_models_own_eos_ids_and_width():
    words = Vocabulary.from_tokenizer(fast(byte_level()), eos_token_ids=[6, 11], size=64)
    assert words.eos_token_ids == [6, 11] and words.size == 64
    assert Vocabulary.from_tokenizer(byte_level(), eos_token_ids=[6]).eos_token_ids == [6], (
        "a bare tokenizers.Tokenizer"
    )


@pytest.mark.parametrize("given_", [{}, {"eos_token_ids": []}, {"eos_token_ids": None}])
def test_a_tokenizer_without_eos_is_an_error(given_):
    with pytest.raises(VocabularyError, match="names no EOS token, so no text could ever end") as caught:
        Vocabulary.from_tokenizer(fast(byte_level()), **given_)
    assert caught.value.hint == "set tokenizer.eos_token, or pass eos_token_ids=[...]"


def test_a_sentencepiece_tokenizer_with_byte_fallback():
    vocab = {
        "<unk>": 0,
        "</s>": 1,
        **{f"<0x{b:02X}>": 2 + b for b in range(256)},
        "▁": 258,
        "a": 259,
        "▁a": 260,
        "é": 261,
    }
    bpe = Tokenizer(models.BPE(vocab=vocab, merges=[("▁", "a")], unk_token="<unk>", byte_fallback=True))
    bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    bpe.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bpe.add_special_tokens(["<unk>", "</s>"])
    words = Vocabulary.from_tokenizer(fast(bpe, eos_token="</s>", unk_token="<unk>"))
    assert words.tokens[2:258] == [bytes((b,)) for b in range(256)]
    assert words.tokens[258:] == [b" ", b"a", b" a", "é".encode()] and words.special_ids == [0, 1]
    matcher = compile_grammar(Grammar.from_regex("a é"), words).matcher()
    assert matcher.allowed_token_ids().tolist() == [2 + ord("a"), 259] and matcher.advance(259)
    assert matcher.allowed_token_ids().tolist() == [2 + ord(" "), 258]


def wordpiece() -> Tokenizer:
    inner = Tokenizer(models.WordPiece({"[UNK]": 0, "go": 1, "##ing": 2, "[SEP]": 3}, unk_token="[UNK]"))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return inner


def word_level() -> Tokenizer:
    inner = Tokenizer(models.WordLevel({"go": 0, "to": 1}, unk_token="go"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return inner


@pytest.mark.parametrize("make", [wordpiece, word_level])
def test_a_tokenizer_that_is_not_made_of_bytes_is_an_error(make):
    with pytest.raises(VocabularyError, match="neither byte-level BPE nor SentencePiece with byte fallback") as caught:
        Vocabulary.from_tokenizer(fast(make(), eos_token="[SEP]"))
    assert caught.value.hint == "such tokenizers (WordPiece, say) can't write every text; choose another model"


def test_a_byte_level_tokenizer_with_a_piece_that_is_no_bytes():
    inner = json.loads(byte_level().to_str())
    inner["model"]["vocab"]["a中"] = 30
    words = Vocabulary.from_tokenizer(fast(Tokenizer.from_str(json.dumps(inner)), eos_token="<end>"))
    assert words.tokens[30] == "a中".encode(), "the decoder leaves it as it is"


@pytest.mark.parametrize("given_", [None, 5, "gpt2", {"a": 1}, object()])
def test_what_is_no_tokenizer(given_):
    with pytest.raises(VocabularyError, match="is not a tokenizer whose tokens can be read as bytes") as caught:
        Vocabulary.from_tokenizer(given_)
    assert "tokenizer.json" in caught.value.hint


def test_an_empty_tokenizer():
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokenizer(Tokenizer(models.BPE()), eos_token_ids=[0])


def test_a_vocabulary_that_can_not_spell_the_grammar():
    with pytest.raises(
        VocabularyError, match="no text of the grammar can be written with this vocabulary's tokens"
    ) as caught:
        compile_grammar(Grammar.from_regex("ab+"), Vocabulary([b"a", b"c", b""], [2]))
    assert caught.value.hint == "it lacks single-byte tokens that the grammar needs"
