"""Masks over real vocabularies: after a text, exactly the tokens that some text of the language goes on with."""

from __future__ import annotations

import os

import numpy as np
import pytest

from constrained import Grammar, compile_grammar
from tests.automaton.cases import CASES, STEP
from tests.automaton.tokenizers import NAMES, tokenizer, vocabulary


def readable(grammar: Grammar, text: bytes, words: list[bytes]) -> list[bool]:
    """Per token, whether `grammar` has a text that begins with `text` and it; `words` ascending."""
    states, before, out = [grammar.automaton.read(text)], b"", []
    for word in words:
        if states[-1] is None and word.startswith(before):  # nothing begins as the last word did
            out.append(False)
            continue
        shared_part = len(os.path.commonprefix((before, word)))  # noqa: RUF071
        del states[shared_part + 1 :]
        while states[-1] is not None and len(states) <= len(word):
            states.append(states[-1].step(word[len(states) - 1]))
        out.append(states[-1] is not None)
        before = word[: len(states) - 1]  # as far as it was read
    return out


# all of them on the smallest, shared out on the others
SHARED_OUT = (
    [("gpt2", case) for case in CASES]
    + [
        (name, case)
        for i, case in enumerate(CASES)
        for j, name in enumerate(NAMES)
        if name != "gpt2" and (i + j) % 3 == 0
    ]
    + [(name, "a step") for name in NAMES if name != "gpt2"]
)


@pytest.mark.parametrize(("name", "case"), dict.fromkeys(SHARED_OUT))
def test_a_mask_holds_what_can_be_read(name, case):
    words = vocabulary(name)
    grammar, texts = CASES[case]
    compiled = compile_grammar(grammar, words)
    for text in texts:
        text = text.encode() if isinstance(text, str) else text
        matcher = compiled.matcher(text)
        can = np.array(readable(grammar, text, words.sorted_tokens))
        expected = set(words.sorted_ids[can].tolist()) | (set(words.eos_token_ids) if matcher.is_complete else set())
        allowed = matcher.allowed_token_ids()
        assert allowed.tolist() == sorted(expected), text
        mask = np.full((2, words.words + 3), -1, np.int32)
        matcher.fill_bitmask(mask, 1)
        assert np.flatnonzero(np.unpackbits(mask[1].view(np.uint8), bitorder="little")).tolist() == allowed.tolist()
    assert grammar.is_prefix(texts[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_tokenizers_own_cut_of_a_text_is_allowed(name):
    words, encoder = vocabulary(name), tokenizer(name)
    texts = [
        "ActionPath 2: Start->Search[Milhouse]->Lookup[named after]\nThought 2: It's “Nixon”, né en 1913 — 理查德 😀.\nAction 2: Finish[Nixon]",  # noqa: E501
        "ActionPath 1: Start\nThought 1:   two  spaces\tand a tab\nAction 1: Retrieve[Pokémon: Indigo League (season 1)]",  # noqa: E501
    ]
    compiled = compile_grammar(Grammar.from_regex(" ?" + STEP), words)  # SentencePiece begins with a space
    for text in texts:
        if name == "tekken":
            ids = encoder.encode(text, bos=False, eos=False)
        else:
            ids = encoder.encode(text, add_special_tokens=False)
        spelled = b"".join(words.tokens[i] for i in ids)
        assert spelled == (b" " if name == "phi3-mini" else b"") + text.encode()
        matcher = compiled.matcher()
        assert all(matcher.advance(i) for i in ids) and matcher.is_complete and matcher.advance(words.eos_token_ids[0])


@pytest.mark.parametrize("name", ["gpt2", "qwen2.5"])
def test_every_byte_is_a_byte_level_token(name):
    assert vocabulary(name).single_bytes == frozenset(range(256))


def test_every_byte_is_a_sentencepiece_token():
    words = vocabulary("phi3-mini")
    assert words.tokens[3 : 3 + 256] == [bytes((b,)) for b in range(256)], "its byte pieces"
    assert words.tokens.count(b"\n") >= 1 and words.tokens.count(b"a") == 2, "as a piece and as a byte"


def test_tekken_tokens_are_bytes():
    words, encoder = vocabulary("tekken"), tokenizer("tekken")
    assert words.size == encoder.n_words and words.eos_token_ids == [encoder.eos_id]
    assert words.special_ids == list(range(encoder.num_special_tokens))
    assert words.tokens[encoder.get_special_token("[TOOL_CALLS]")] == b"[TOOL_CALLS]"
    for text in ("go to desk 1", "né 中 😀\n\n  x"):
        ids = encoder.encode(text, bos=False, eos=False)
        assert b"".join(words.tokens[i] for i in ids) == text.encode()


@pytest.mark.parametrize(
    ("name", "eos", "special", "content"),
    [
        ("gpt2", [50256], {50256}, {"Ġthe"}),
        ("phi3-mini", [32000], {0, 1, 32000, 32001, 32007, 32010}, {"▁the", "<0x0A>", "</s>"}),
        ("qwen2.5", [151645], {151643, 151644, 151645, 151656}, {"Ġthe", "<tool_call>", "<|fim_prefix|>"}),
    ],
)
def test_special_tokens_are_known(name, eos, special, content):
    words, encoder = vocabulary(name), tokenizer(name)
    assert words.eos_token_ids == eos and special <= set(words.special_ids)
    assert not {encoder.convert_tokens_to_ids(t) for t in content} & set(words.special_ids)
    matcher = compile_grammar(Grammar.from_regex("(?s).+"), words).matcher()
    assert not set(words.special_ids) & set(matcher.allowed_token_ids().tolist())
    assert matcher.advance(words.tokens.index(b"x"))
    assert set(words.special_ids) & set(matcher.allowed_token_ids().tolist()) == set(eos)
