"""Grammars in other engines' notations: the same texts, as Python's `re` and the engines themselves read them."""

from __future__ import annotations

import atexit
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from constrained import ActionKnowledge, Grammar, GrammarError, LimitError
from constrained.automaton.export import START, write_out
from constrained.environments.household import HouseholdEnv, make_game
from constrained.grammar.nodes import RuleRef
from constrained.limits import Limits
from tests.automaton.brute import Language
from tests.automaton.cases import knowledge
from tests.automaton.small_grammars import BYTES, GRAMMARS, TEXTS
from tests.decoding.gguf_file import write_gguf
from tests.decoding.tiny import tiny

EOS = 256
LONGEST = 13
CALCULATION = 'start: sum\nsum: sum "+" item | item\nitem: "(" sum ")" | ("0".."9")~1..2 | "é"\n'
LOOP = 'start: "a" b | "c"\nb: "x" start | "y" b | "z"\n'


def written_out(grammar: Grammar) -> Grammar:
    return Grammar(write_out(grammar, grammar.automaton.templates), RuleRef(START))


@settings(max_examples=80)
@given(knowledge())
def test_writing_out_templates_keeps_the_language(case):
    text, bindings = case
    try:
        bound = Grammar.from_lark(text).bind(**bindings)
        texts = Language(bound, LONGEST).texts
        assume(len(texts) < 3_000)
        other = written_out(bound)
    except GrammarError:
        assume(False)
    assert Language(other, LONGEST).texts == texts
    try:
        pattern = re.compile(bound.to_regex(), re.DOTALL)
    except GrammarError as error:
        assert "it nests" in error.message or isinstance(error, LimitError)
        return
    for data in texts:
        assert pattern.fullmatch(data.decode())
        for shorter in (data[:-1], data[1:], data + b"x"):
            assert bool(pattern.fullmatch(shorter.decode())) == bound.matches(shorter)


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_regex_has_the_same_texts(name):
    pattern = re.compile(GRAMMARS[name].to_regex())
    texts = {text.decode() for text in TEXTS[name]}
    letters = {c for text in texts for c in text} | {"q", "\n"}
    for text in texts | {t[:i] + c + t[i:] for t in texts for i in range(len(t) + 1) for c in letters}:
        assert bool(pattern.fullmatch(text)) == (text in texts), text


def test_recursion_at_the_end_becomes_a_loop():
    grammar = Grammar.from_lark(LOOP)
    pattern = re.compile(grammar.to_regex())
    words = [""]
    for _ in range(6):
        words = [word + c for word in words for c in "acxyz"]
        for word in words:
            assert bool(pattern.fullmatch(word)) == grammar.matches(word), word


@pytest.mark.parametrize("special", ["a.b*c", "[x-y]^&&~~--", "\\d\"'/#", "\n\t\r \x00\x7f", "{2}(?:|)", "😀é中"])
def test_special_characters(special):
    for grammar in (Grammar.from_choices([special, "z"]), Grammar.from_regex(f"[{re.escape(special)}]{{1,2}}!")):
        pattern = re.compile(grammar.to_regex())
        for text in (special, f"{special[0]}!", f"{special[-1]}!", "z", "d!", "_!", "1!"):
            assert bool(pattern.fullmatch(text)) == grammar.matches(text), text


def test_what_a_notation_cannot_say_is_refused_by_name():
    with pytest.raises(GrammarError, match="what rule 'item' says: it nests"):
        Grammar.from_lark(CALCULATION).to_regex()
    with pytest.raises(GrammarError, match="is not whole characters"):
        Grammar.from_choices([b"\xc3", b"a"]).to_gbnf()
    with pytest.raises(GrammarError, match="slot S is not bound"):
        Grammar.from_lark("%declare S\nstart: S\n").to_gbnf()
    grows = Grammar.from_lark(
        'start: t{"a"}\nt{x}: x | "(" t{more{x}} ")"\nmore{x}: "b" x\n', limits=Limits(nodes=1000)
    )
    with pytest.raises(LimitError, match="too large once templates"):
        grows.to_gbnf()
    names = {"type": "object", "properties": {f"name {n}": {"type": "integer"} for n in range(30)}}
    with pytest.raises(LimitError, match="any_order=False takes the schema's order"):
        Grammar.from_json_schema(names, limits=Limits(nodes=20_000)).to_gbnf()


def test_the_next_action_of_shipped_knowledge():
    action = ActionKnowledge.from_lark("hotpotqa").next_action()
    pattern = re.compile(action.to_regex())
    assert pattern.fullmatch("Search[Milhouse]") and not pattern.fullmatch("Search[Milhouse")
    assert not pattern.fullmatch("Burn[Milhouse]")


def xgrammar_follower(grammar: Grammar) -> Callable[[bytes], set[int]]:
    xgrammar = pytest.importorskip("xgrammar", reason="XGrammar isn't installed")
    info = xgrammar.TokenizerInfo([*BYTES, b"</s>"], xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[EOS])
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(grammar.to_gbnf())
    mask = xgrammar.allocate_token_bitmask(1, 257)

    def allowed(text: bytes) -> set[int]:
        matcher = xgrammar.GrammarMatcher(compiled)
        assert all(matcher.accept_token(byte) for byte in text)
        matcher.fill_next_token_bitmask(mask)
        return bits(mask.numpy()[0])

    return allowed


def llguidance_follower(grammar: Grammar) -> Callable[[bytes], set[int]]:
    llguidance = pytest.importorskip("llguidance", reason="llguidance isn't installed")
    numpy = pytest.importorskip("llguidance.numpy")

    class Tokenizer:
        def __init__(self) -> None:
            self.bos_token_id, self.eos_token_id, self.special_token_ids = None, EOS, [EOS]
            self.tokens = [*BYTES, b"</s>"]

        def __call__(self, text) -> list[int]:
            return list(text if isinstance(text, bytes) else text.encode())

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    matcher = llguidance.LLMatcher(tokenizer, grammar.to_llguidance())
    assert not matcher.is_error(), matcher.get_error()
    mask = numpy.allocate_token_bitmask(1, 257)

    def allowed(text: bytes) -> set[int]:
        matcher.reset()
        assert matcher.consume_tokens(list(text))
        numpy.fill_next_token_bitmask(matcher, mask)
        return bits(mask[0])

    return allowed


@cache
def tiny_llama_cpp() -> Any:
    """llama.cpp with a tiny model; its tokens are single bytes, among others."""
    import llama_cpp

    with TemporaryDirectory() as folder:
        path = str(write_gguf(Path(folder) / "tiny.gguf"))
        model = llama_cpp.Llama(path, n_ctx=64, n_threads=1, verbose=False, use_mmap=False)
    atexit.register(model.close)  # later, when modules are torn down, it would print an error
    return model


def llama_cpp_follower(grammar: Grammar) -> Callable[[bytes], set[int]]:
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python isn't installed")
    model = tiny_llama_cpp()
    ids = {piece[0]: token for token, piece in enumerate(tiny().vocabulary.tokens) if len(piece) == 1}
    meaning = {token: byte for byte, token in ids.items()} | {model.token_eos(): EOS}
    sampler = llama_cpp.llama_sampler_init_grammar(
        llama_cpp.llama_model_get_vocab(model.model), grammar.to_gbnf().encode(), b"root"
    )
    assert sampler, "llama.cpp refuses it"
    candidates = llama_cpp._internals.LlamaTokenDataArray(n_vocab=model.n_vocab())

    def allowed(text: bytes) -> set[int]:
        llama_cpp.llama_sampler_reset(sampler)
        for byte in text:
            llama_cpp.llama_sampler_accept(sampler, ids[byte])
        candidates.copy_logits(np.zeros(model.n_vocab(), np.single))
        llama_cpp.llama_sampler_apply(sampler, candidates.candidates)
        data = candidates.candidates_data
        return {meaning[token] for token in data.id[np.isfinite(data.logit)].tolist() if token in meaning}

    return allowed


def begins_utf8(data: bytes) -> bool:
    """Whether some text begins with these bytes."""
    for ending in (b"", b"\x80", b"\x80\x80", b"\xa0\x80", b"\x80\x80\x80", b"\x90\x80\x80"):
        with suppress(UnicodeDecodeError):
            (data + ending).decode()
            return True
    return False


def bits(row: np.ndarray) -> set[int]:
    return {i for i in range(257) if row[i // 32] >> (i % 32) & 1}


def beginnings(grammar: Grammar, longest: int) -> Iterator[tuple[bytes, set[int]]]:
    """Texts that some text of the grammar begins with, and what may follow them: bytes, or the end."""
    work = [(b"", grammar.automaton.start)]
    for text, state in work:
        follows = state.first()
        yield text, follows | ({EOS} if state.accepting else set())
        if len(text) < longest:
            work += [(text + BYTES[byte], after) for byte in sorted(follows) if (after := state.step(byte))]
        assert len(work) < 200_000


ENGINES = {"xgrammar": xgrammar_follower, "llguidance": llguidance_follower, "llama.cpp": llama_cpp_follower}
LONG = {
    **{name: (grammar, 40) for name, grammar in GRAMMARS.items() if name != "inside characters"},
    "calculation": (Grammar.from_lark(CALCULATION), 4),
    "empty rounds": (Grammar.from_lark('start: ("a"? b)~2..3 "c"\nb: ("d"? | "e"*)+ | ["f" start]\n'), 4),
    "empty rounds in rounds": (Grammar.from_lark('start: (("a" | b~2) ["!"])~0..2 "."\nb: "b"? | c~2\nc: "c"?\n'), 6),
    "rounds of nothing": (Grammar.from_lark('start: "a" (b~2 "c"?)~2 "."\nb:\n'), 6),
    "loop": (Grammar.from_lark(LOOP), 6),
    "prefixes": (Grammar.from_lark('start: ("a" | "ab" | "b" n)+\nn: "(" start ")" |\n'), 6),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_allows_the_same_after_every_beginning(engine, name):
    grammar, longest = LONG[name]
    allowed = ENGINES[engine](grammar)
    for number, (text, follows) in enumerate(beginnings(grammar, longest)):
        assert allowed(text) == follows, text
        if number == 3000:
            break


def shipped() -> dict[str, Grammar]:
    """What is sent to a server at a step: of knowledge that ships, and of tools with schemas."""
    environment = HouseholdEnv(make_game(3))
    environment.reset()
    household = ActionKnowledge.from_lark("household").bind_view(environment.admissible())
    arguments = {
        "city": {"type": "string", "maxLength": 9},
        "days": {"type": "integer", "minimum": -2, "maximum": 14},
        "units": {"enum": ["°C", 'say "F"\n', None, 1.5]},
        "near": {"type": "array", "items": {"type": "number"}, "maxItems": 3},
    }
    schema = {"type": "object", "properties": arguments, "required": ["city"]}
    tools = [{"name": "weather", "parameters": schema}, {"name": "time_in", "parameters": {"properties": {}}}]
    return {
        "household": household.next_action(),
        "hotpotqa": ActionKnowledge.from_lark("hotpotqa").next_action(),
        "tools": ActionKnowledge.from_tools(tools, call_format="hermes").next_action(),
    }


SCHEMAS = {
    "a pattern beside a length": {"pattern": "b.?c", "minLength": 3, "maxLength": 7, "type": "string"},
    "a pattern that looks ahead": {"pattern": "^(?!no|é)", "maxLength": 5, "type": "string"},
    "seven names in any order": {
        "type": "object", "properties": {f"a{n}": {"enum": [n]} for n in range(7)}, "additionalProperties": False,
    },
    "four names and others": {"type": "object", "properties": {f"a{n}": {"type": "string"} for n in range(4)}},
}  # fmt: skip


@pytest.mark.parametrize("name", ["household", "hotpotqa", "tools", *SCHEMAS])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_writes_whole_texts(engine, name):
    grammar = Grammar.from_json_schema(SCHEMAS[name]) if name in SCHEMAS else shipped()[name]
    chance = random.Random(0)
    allowed = ENGINES[engine](grammar)
    for _ in range(6):
        text, state = b"", grammar.automaton.start
        while len(text) < 250:
            follows = state.first() | ({EOS} if state.accepting else set())
            # in classes, XGrammar and llama.cpp admit bytes that no text holds there; llama.cpp never admits a null
            found = {byte for byte in allowed(text) if byte == EOS or begins_utf8(text + BYTES[byte])}
            assert found == follows - ({0} if engine == "llama.cpp" else set()), text
            byte = chance.choice(sorted(follows - {0}))
            if byte == EOS:
                break
            text, state = text + BYTES[byte], state.step(byte)


def test_states_of_texts_between_markers_are_written_out():
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 14}}}
    knowledge = ActionKnowledge.from_tools([{"name": "t", "parameters": schema}], call_format="hermes")
    grammar = knowledge.next_action()
    other = written_out(grammar)
    for value in ("ab", "a", "</tool_call>", "</tool_callx", "a" * 14, "a" * 15, "<<<"):
        text = f'<tool_call>\n{{"name": "t", "arguments": {{"a": "{value}"}}}}\n</tool_call>'
        assert other.matches(text) == grammar.matches(text) == (value not in ("a", "</tool_call>", "a" * 15)), value


def test_an_object_in_any_order_is_written_out_with_every_order():
    schema = {"type": "object", "properties": {"a": {"const": 1}, "ab": {"const": 2}}, "required": ["ab"]}
    grammar = Grammar.from_json_schema({**schema, "additionalProperties": {"const": 3}}, whitespace="compact")
    pattern = re.compile(grammar.to_regex().encode())
    members = ['"a":1', '"ab":2', '"ab":3', '"c":3', '"abc":3', '"":3', '"\\u00e9":3', '"é":3', '"\\u0061":3']
    texts = [f"{{{','.join(pairs)}}}" for size in range(4) for pairs in permutations(members, size)]
    assert [text for text in texts if pattern.fullmatch(text.encode())] == list(filter(grammar.matches, texts))
    assert grammar.matches('{"c":3,"ab":2,"a":1}') and not grammar.matches('{"ab":3}')
