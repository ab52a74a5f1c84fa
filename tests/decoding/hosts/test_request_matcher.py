"""One request's text in a server: drafts, limits, and masks filled on several threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import torch

from constrained import Grammar, compile_grammar
from constrained.decoding.hosts.request_matcher import RequestMatcher
from constrained.decoding.hosts.specification import CompiledCache
from constrained.decoding.hosts.vllm_backend import VllmGrammar
from tests.decoding.hosts.texts import GRAMMARS
from tests.decoding.tiny import tiny

VOCABULARY = tiny(padding=13).vocabulary
EOS = VOCABULARY.eos_token_ids[0]


def ids(text):
    return [VOCABULARY.tokens.index(bytes([byte])) for byte in text.encode()]


def mask_of(matcher):
    mask = np.zeros((2, VOCABULARY.words), np.int32)
    matcher.fill(mask, 1)
    return [token for token in range(VOCABULARY.size) if mask[1, token >> 5] >> (token & 31) & 1]


def test_drafts_are_checked_and_taken_back():
    compiled = compile_grammar(Grammar.from_regex("a(b|c)c+"), VOCABULARY)
    matcher = RequestMatcher(compiled.matcher(), Lock())
    start = mask_of(matcher)
    assert matcher.accepts(ids("abx")) == 2 and mask_of(matcher) == start == ids("a")
    assert not matcher.advance(ids("abx")) and matcher.read == 2
    matcher.rollback(2)
    assert mask_of(matcher) == start
    assert matcher.advance([*ids("acc"), EOS]) and mask_of(matcher) == [EOS]


def test_after_a_thought_a_text_is_whole_within_what_is_left(caplog):
    compiled = compile_grammar(Grammar.from_regex("[ab]+cd"), VOCABULARY)
    left = [5]
    matcher = RequestMatcher(compiled.matcher(), Lock(), lambda: left[0])
    assert set(mask_of(matcher)) >= set(ids("ab"))
    left[0] = 3  # the thought went on
    mask_of(matcher)
    assert matcher.advance(ids("a"))
    assert mask_of(matcher) == ids("c")
    matcher.rollback(1)
    left[0] = 2
    assert set(mask_of(matcher)) >= set(ids("ab")) and "will be cut" in caplog.text


def test_the_grammar_object_for_vllm():
    compiled = compile_grammar(GRAMMARS["choices"], VOCABULARY)
    grammar = VllmGrammar(compiled.matcher(), Lock())
    assert grammar.validate_tokens(ids("lox")) == ids("lo") and grammar.read == 0
    assert grammar.accept_tokens("1", [*ids("look"), EOS]) and not grammar.is_terminated()
    mask = torch.zeros((1, VOCABULARY.words), dtype=torch.int32)
    grammar.fill_bitmask(mask, 0)
    assert mask[0, EOS >> 5] == 1 << (EOS & 31) and int((mask != 0).sum()) == 1
    grammar.reset()
    assert grammar.read == 0 and grammar.accept_tokens("1", ids("g")) and not grammar.accept_tokens("1", ids("x"))


def test_masks_of_one_grammar_may_be_filled_and_compiled_on_many_threads():
    cache = CompiledCache(VOCABULARY)
    specification = {"regex": r"(a|b|ab){1,9}c[ab]*"}

    def write(seed):
        rng = np.random.default_rng(seed)
        matcher, text = RequestMatcher(cache.matcher(specification, 20), cache.lock), []
        while True:
            token = int(rng.choice(mask_of(matcher)))
            if token == EOS:
                return b"".join(VOCABULARY.tokens[token] for token in text).decode()
            assert matcher.advance([token])
            text.append(token)

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(write, range(40)))
    grammar = Grammar.from_regex(specification["regex"])
    assert all(map(grammar.matches, texts)) and texts == [write(seed) for seed in range(40)]


def test_the_order_of_a_schemas_properties_is_not_lost():
    cache = CompiledCache(VOCABULARY)
    for names in ("ab", "ba"):
        schema = {"type": "object", "properties": {name: {"const": 1} for name in names}, "required": list(names)}
        matcher = cache.matcher({"json_schema": schema, "whitespace": "compact"})
        text = "{" + ",".join(f'"{name}":1' for name in names) + "}"
        assert all(matcher.advance(token) for token in ids(text)), text


def test_compiled_grammars_are_kept_by_content_and_no_more_than_so_many(monkeypatch):
    monkeypatch.setattr("constrained.decoding.hosts.specification.MAX_COMPILED", 3)
    cache = CompiledCache(VOCABULARY)
    first = cache.matcher({"choices": ["a", "b"]}).compiled
    assert cache.matcher('{"choices": ["a", "b"], "begun": "a"}').compiled is first
    for text in "cdef":
        cache.matcher({"choices": [text]})
        assert cache.matcher({"choices": ["a", "b"]}).compiled is first
    assert len(cache) == 3
