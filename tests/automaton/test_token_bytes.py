"""The bytes of every token are what its tokenizer's decoder makes of it between two others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.automaton.tokenizers import encode, open_tokenizer, read_tokenizer
from constrained.errors import VocabularyError
from tests.automaton.tokenizers import tokenizer
from tests.data import shared

ADDED = [
    "\u2581\u2581\u2581\u2581",
    "a\u2581b",
    "đem",
    "né",
    "ö",
    "ü",
    "    ",
    "\n\n",
    "ĠĠ",
    "<0x41>",
    "<|tool_call|>",
    "[TOOL_CALLS]",
    "理 x",
]
"""Texts that models add to their tokenizers, or might: runs of spaces (Gemma), letters (DeepSeek), call markers."""

BYTE_LEVEL, SENTENCEPIECE = ("gpt2", "qwen2.5", "embedded"), ("phi3-mini",)


def hugging_face(name: str) -> Tokenizer:
    """A fresh tokenizer, to which tokens can be added."""
    if name == "embedded":
        return open_tokenizer(name)
    return Tokenizer.from_file(str(shared(f"tokenizers/{name}/tokenizer.json")))


def mistral_files() -> list[Path]:
    mistral_common = pytest.importorskip("mistral_common")
    folder = Path(mistral_common.__file__).parent / "data"
    return sorted([*folder.glob("tekken*.json"), *folder.glob("*.model*")])


def check(tokens: list[bytes], decode: Callable[[list[int]], str], beside: list[int], ids: Iterator[int]) -> None:
    """Compare each token between two others with what `decode` makes of the three."""
    assert beside
    for i in ids:
        for other in beside:
            expected = (tokens[other] + tokens[i] + tokens[other]).decode("utf-8", "replace")
            assert decode([other, i, other]) == expected, i


@pytest.mark.parametrize("added", [(), ADDED], ids=["as it is", "with added tokens"])
@pytest.mark.parametrize("name", [*BYTE_LEVEL, *SENTENCEPIECE])
def test_of_hugging_face_tokenizers(name, added):
    inner = hugging_face(name)
    before = inner.get_vocab_size()
    inner.add_tokens([AddedToken(text, normalized=False, special=False) for text in added[::2]])
    inner.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in added[1::2]])
    tokens, _, special = read_tokenizer(inner)
    assert special >= {inner.token_to_id(text) for text in added[1::2]}
    assert not special & {inner.token_to_id(text) for text in added[::2]}
    ids = range(inner.get_vocab_size()) if not added else range(before, inner.get_vocab_size())
    beside = [inner.token_to_id(piece) for piece in ("x", "!")]
    check(tokens, lambda ids: inner.decode(ids, skip_special_tokens=False), beside, iter(ids))


def test_a_run_of_spaces_is_spaces_and_a_byte_level_letter_a_byte():
    inner = hugging_face("phi3-mini")
    inner.add_tokens(["\u2581\u2581\u2581\u2581"])
    run = inner.token_to_id("\u2581\u2581\u2581\u2581")
    words = Vocabulary.from_tokenizer(inner, eos_token_ids=[32_000])
    assert words.tokens[run] == b"    "
    allowed = {rule: allowed_at(words, rule) for rule in (r"\S+", r"\n? +x")}
    assert run not in allowed[r"\S+"] and run in allowed[r"\n? +x"]
    inner = hugging_face("gpt2")
    inner.add_tokens(["đem"])
    letters = inner.token_to_id("đem")
    words = Vocabulary.from_tokenizer(inner, eos_token_ids=[50_256])
    assert words.tokens[letters] == b"\x11em"
    assert letters not in allowed_at(words, "[đem]+") and letters in allowed_at(words, r"\x11[a-z]+")


def allowed_at(words: Vocabulary, rule: str) -> set[int]:
    return set(compile_grammar(Grammar.from_regex(rule), words).matcher().allowed_token_ids().tolist())


PIECES = {"<unk>": 0, "a": 1, "\u2581": 2, "\u2581a": 3, "b": 4, "<0x41>": 5, "<0xC3>": 6, "\u2581\u2581": 7, "é": 8}

DECODERS = {
    "Gemma's": decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]),
    "Llama's": decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    ),
    "Metaspace, no bytes": decoders.Metaspace(),
    "Metaspace that strips": decoders.Metaspace(prepend_scheme="always"),
    "bytes before spaces": decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="never"), decoders.Fuse()]
    ),
    "spaces of its own": decoders.Sequence([decoders.Replace("é", "\u2581"), decoders.ByteFallback(), decoders.Fuse()]),
}


@pytest.mark.parametrize("decoder", DECODERS)
def test_of_whatever_the_decoder_does(decoder):
    inner = Tokenizer(models.BPE(vocab=PIECES, merges=[], unk_token="<unk>", byte_fallback=True))
    inner.decoder = DECODERS[decoder]
    inner.add_tokens(ADDED)
    tokens, _, _ = read_tokenizer(inner)
    check(tokens, lambda ids: inner.decode(ids, skip_special_tokens=False), [1, 4], iter(range(len(tokens))))


def test_a_forgotten_decoder_is_the_inverse_of_what_cuts_the_text():
    inner = Tokenizer(models.BPE(vocab={"a": 0, "Ġ": 1, "Ċ": 2}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert read_tokenizer(inner)[0] == [b"a", b" ", b"\n"]
    inner = Tokenizer(models.BPE(vocab={"a": 0, "\u2581": 1}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    assert read_tokenizer(inner)[0] == [b"a", b" "]


@pytest.mark.parametrize("decoder", [decoders.WordPiece(), decoders.BPEDecoder(), decoders.CTC(), None])
def test_decoders_that_write_a_token_by_what_stands_beside_it_are_refused(decoder):
    inner = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    inner.decoder = decoder
    with pytest.raises(VocabularyError, match="neither byte-level BPE nor SentencePiece with byte fallback"):
        read_tokenizer(inner)


@lru_cache
def mistral(file: Path):
    pytest.importorskip("sentencepiece")
    return pytest.importorskip("mistral_common.tokens.tokenizers.mistral").MistralTokenizer.from_file(str(file))


def alone(inner):
    return inner.instruct_tokenizer.tokenizer


def by_transformers(inner):
    module = pytest.importorskip("transformers.tokenization_mistral_common")
    if not hasattr(module, "MistralCommonBackend"):
        pytest.skip("transformers 4 has no MistralCommonBackend")
    return module.MistralCommonBackend(str(alone(inner).file_path))


def by_vllm(inner):
    """An object with the attributes of vLLM's tokenizer for ``--tokenizer-mode mistral``."""
    innermost = alone(inner)
    return SimpleNamespace(
        mistral=inner,
        instruct=inner.instruct_tokenizer,
        tokenizer=innermost,
        eos_token_id=innermost.eos_id,
        all_special_ids=sorted(innermost.special_ids),
    )


def test_of_mistrals_tokenizers():
    files = mistral_files()
    assert {file.suffix == ".json" for file in files} == {True, False}, "Tekken and SentencePiece"
    for number, file in enumerate(files):
        inner = mistral(file)
        innermost = alone(inner)
        tokens, eos, special = read_tokenizer(inner)
        assert eos == [innermost.eos_id] and {innermost.eos_id, 0, 1} <= special and len(tokens) == innermost.n_words
        assert all(tokens[i] == innermost.id_to_piece(i).encode() for i in special - {0})
        ids = range(number, len(tokens), 1 if number == 0 else 5)
        beside = encode(inner, "\nx")[-1:]
        check(tokens, innermost.decode, beside, (i for i in ids if i not in special))
        assert b"".join(tokens[i] for i in encode(inner, "go né 中\n")).lstrip() == "go né 中\n".encode()


@pytest.mark.parametrize("wrap", [alone, by_transformers, by_vllm])
def test_whatever_wraps_mistrals_tokenizers(wrap):
    for file in (mistral_files()[0], mistral_files()[-1]):
        inner = mistral(file)
        wrapped, plain = wrap(inner), read_tokenizer(inner)
        assert read_tokenizer(wrapped) == plain
        assert encode(wrapped, "go to desk 1") == encode(inner, "go to desk 1") != []


def test_mistrals_tokenizers_are_opened_by_their_files(tmp_path):
    for file in (mistral_files()[0], mistral_files()[-1]):
        plain = read_tokenizer(mistral(file))
        assert read_tokenizer(open_tokenizer(str(file))) == plain
        folder = tmp_path / file.name
        folder.mkdir()
        (folder / ("tekken.json" if file.suffix == ".json" else "tokenizer.model.v3")).symlink_to(file)
        assert read_tokenizer(open_tokenizer(str(folder))) == plain


def test_of_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes((b,)): b for b in range(256)} | {b"ab": 256, "é".encode(): 258}
    special = {"<|endoftext|>": 260, "<|call|>": 261}
    encoding = tiktoken.Encoding("tiny", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens=special)
    for given in (encoding, SimpleNamespace(model=encoding), SimpleNamespace(tokenizer=encoding)):
        tokens, eos, flagged = read_tokenizer(given)
        assert (eos, flagged) == ([260], {260, 261}) and tokens[257] == tokens[259] == b""
        check(tokens, encoding.decode, [256], iter(i for i in range(262) if tokens[i]))
        assert encode(given, "abé<|call|>")[:2] == [256, 258] and 261 not in encode(given, "<|call|>")
    assert read_tokenizer(SimpleNamespace(model=encoding, eos_token_id=261))[1] == [261]


def test_the_hint_names_what_can_be_read():
    with pytest.raises(VocabularyError) as caught:
        read_tokenizer(SimpleNamespace(tokenizer=SimpleNamespace(model=object())))
    assert caught.value.message == "SimpleNamespace is not a tokenizer whose tokens can be read as bytes"
    assert "mistral-common's" in caught.value.hint


def test_the_real_ones_as_transformers_loads_them():
    for name in ("gpt2", "phi3-mini", "qwen2.5"):
        encoder = tokenizer(name)
        tokens, _, _ = read_tokenizer(encoder)
        decode = lambda ids, encoder=encoder: encoder.decode(  # noqa: E731
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        beside = [encoder.convert_tokens_to_ids("x")]
        check(tokens, decode, beside, iter([*range(0, len(encoder), 11), *range(len(encoder) - 40, len(encoder))]))
