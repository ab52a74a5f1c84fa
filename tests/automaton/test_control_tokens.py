"""Tokens that their tokenizer flags as special: never free text, but admitted for a string of exactly their text."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer

from constrained import ActionKnowledge, BatchMatcher, CompiledGrammar, Grammar, Vocabulary, compile_grammar
from constrained.automaton import native
from constrained.errors import VocabularyError
from tests.automaton.tokenizers import EOS as MADE_EOS
from tests.automaton.tokenizers import make, tokenizer
from tests.data import shared

CALLS, ARGS, EOS = 256, 257, 258
CONTENT = {CALLS: "[CALLS]", ARGS: "[ARGS]", EOS: "</s>"}
WORDS = [b"[C", b"ALLS]", b"] ", "é".encode(), b"\xff\xff", b"[CALLS", b"ab"]
BYTES = [b"" if b == 0xEE else bytes((b,)) for b in range(256)]  # so that no bytes spell the twin's characters
VOCABULARY = Vocabulary([*BYTES, *(text.encode() for text in CONTENT.values()), *WORDS], [EOS], [CALLS, ARGS])

TWIN = {CALLS: "\ue000", ARGS: "\ue001"}
"""The same tokens as content with characters of their own; grammars say "[CALLS]" | "\ue000" for "[CALLS]" then."""

TWINS = Vocabulary(
    [
        (TWIN[i].encode() if i in TWIN else b"" if b"\xff" in token else token)
        for i, token in enumerate(VOCABULARY.tokens)
    ],
    [EOS],
)

C, A = '("[CALLS]" | "\ue000")', '("[ARGS]" | "\ue001")'
FREE = "/[^\ue000\ue001}<]*/"

GRAMMARS = {
    "before free text": (f'start: "[CALLS]" {FREE}', f"start: {C} {FREE}"),
    "between": (
        f'start: /[^\ue000\ue001]{{0,4}}/ "[CALLS]" /[a-c]+/ "[ARGS]" "{{" {FREE} "}}"',
        f'start: /[^\ue000\ue001]{{0,4}}/ {C} /[a-c]+/ {A} "{{" {FREE} "}}"',
    ),
    "strings side by side": ('start: "a" "[CALLS]" "[ARGS]" "b"', f'start: "a" {C} {A} "b"'),
    "in terminals": (
        'start: CALL name\nCALL: "x"? "[CALLS]"\nname: /[a-z]/ ("[ARGS]" /[a-c]/)*',
        f'start: CALL name\nCALL: "x"? {C}\nname: /[a-z]/ ({A} /[a-c]/)*',
    ),
    "among alternatives": (
        'start: "yes" | "[CALLS]" | "[CALLS]" "s" | "a" "[ARGS]" "!"?',
        f'start: "yes" | {C} | {C} "s" | "a" {A} "!"?',
    ),
    "repeated": ('start: ("[CALLS]" | "(" start ")" | "b")~0..3', f'start: ({C} | "(" start ")" | "b")~0..3'),
    "an argument": (
        f'start: tag{{"[CALLS]"}} | tag{{"p"}}\ntag{{t}}: "<" t ">" {FREE} "</" t ">"',
        f'start: tag{{X}} | tag{{"p"}}\ntag{{t}}: "<" t ">" {FREE} "</" t ">"\nX: {C}',
    ),
    "one terminal twice": ('start: C C "[ARGS]" C\nC: "[CALLS]"', f"start: {C} {C} {A} {C}"),
    "a group of a terminal": (
        'start: T | "b"\nT: ("[CALLS]" | "x") "y"? "[ARGS]"~1..2',
        f'start: ({C} | "x") "y"? {A}~1..2 | "b"',
    ),
}
"""Grammars, each with its twin."""


def without_kernel(grammar: Grammar, vocabulary: Vocabulary) -> CompiledGrammar:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "kernel", None)
        return compile_grammar(grammar, vocabulary)


@pytest.mark.parametrize("compile_it", [compile_grammar, without_kernel], ids=["kernel", "python"])
@pytest.mark.parametrize("budget", [None, 12])
@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_those_of_the_twin(name, budget, compile_it):
    rnd = random.Random(name)
    own, twin = map(Grammar.from_lark, GRAMMARS[name])
    compiled, other = compile_it(own, VOCABULARY), compile_it(twin, TWINS)
    named = set()
    for _ in range(25):
        matchers = compiled.matcher(), other.matcher()
        for matcher in matchers:
            matcher.set_budget(budget)
        for _ in range(14):
            ids, expected = (matcher.allowed_token_ids().tolist() for matcher in matchers)
            assert ids == expected
            row = np.zeros((1, VOCABULARY.words), np.int32)
            matchers[0].fill_bitmask(row)
            assert np.array_equal(row[0], VOCABULARY.pack(np.array(ids)))
            named |= set(ids) & {CALLS, ARGS}
            wrong = rnd.randrange(VOCABULARY.size)
            assert matchers[0].copy().advance(wrong) == (wrong in ids)
            if not ids or ids == [EOS]:
                break
            token = rnd.choice([i for i in ids if i in TWIN] or ids)
            assert all(matcher.advance(token) for matcher in matchers)
            if rnd.random() < 0.2:
                assert all(matcher.rollback() is None and matcher.advance(token) for matcher in matchers)
            if token == EOS:
                break
    assert named, "the walk comes to a control token"


def test_free_text_never_admits_one():
    for pattern in ("(?s).*", r"[^x]+", r"\S+", r"(\[|[A-Z]|\])+"):
        compiled = compile_grammar(Grammar.from_regex(pattern), VOCABULARY)
        for text in ("", "a[CALLS]", "["):
            if compiled.grammar.is_prefix(text):
                ids = compiled.matcher(text).allowed_token_ids().tolist()
                assert not {CALLS, ARGS} & set(ids) and len(ids) > 20


def test_texts_that_come_from_elsewhere_never_admit_one():
    schema = {"enum": ["[CALLS]", "a"], "type": "string"}
    grammars = [
        Grammar.from_choices(["[CALLS]", "go"]),
        Grammar.from_choices(["[CALLS]"]),
        Grammar.from_lark("%declare S\nstart: S").bind(S=["[CALLS]", "go"]),
        Grammar.from_lark("%declare S\nstart: S").bind(S="[CALLS]"),
        Grammar.from_json_schema(schema),
        Grammar.from_json_schema({"const": "[CALLS]"}),
        Grammar.from_json_schema(
            {"properties": {"[CALLS]": {}}, "required": ["[CALLS]"], "additionalProperties": False}
        ),
        Grammar.from_json_schema({"type": "string", "pattern": r"^\[CALLS\]$"}),
        Grammar.from_regex(r"\[CALLS\]"),
        Grammar.from_lark(r"start: /\[CALLS\]/"),
        Grammar.from_lark('start: "[CALLS]!" | "![CALLS]"'),
        Grammar.from_lark('start: "[calls]"i'),
        Grammar.from_lark('start: "[CAL" "LS]"'),
    ]
    for grammar in grammars:
        compiled = compile_grammar(grammar, VOCABULARY)
        assert compiled.masks.vocabulary is VOCABULARY
        for text in ("", '"', '{"'):
            if grammar.is_prefix(text):
                assert CALLS not in compiled.matcher(text).allowed_token_ids()


def test_a_grammar_in_a_slot_has_written_text_of_its_own():
    inner = Grammar.from_lark('start: "[CALLS]" /[a-z]+/')
    outer = Grammar.from_lark('%declare CALL\nstart: "I: " CALL')
    keyed = Grammar.from_lark('%declare CALL\nstart: go{CALL, "k"}\ngo{c, k}: "I: " c k')
    for grammar in (outer.bind(CALL=inner), keyed.bind(CALL={"k": inner}), outer.bind(CALL=outer.bind(CALL=inner))):
        text = (
            "I: I: "
            if grammar.bindings["CALL"] is not inner and not isinstance(grammar.bindings["CALL"], dict)
            else "I: "
        )
        matcher = compile_grammar(grammar, VOCABULARY).matcher(text)
        assert matcher.allowed_token_ids().tolist() == [ord("["), CALLS, *sorted({259, 264})]
        assert matcher.advance(CALLS) and matcher.advance(ord("q"))


def test_keys_of_slots_stay_what_they_are():
    grammar = Grammar.from_lark('%declare OBJECT\nstart: take{OBJECT, "[CALLS]"}\ntake{o, r}: r ":" o')
    matcher = compile_grammar(grammar.bind(OBJECT={"[CALLS]": ["mug"]}), VOCABULARY).matcher()
    assert (
        CALLS not in matcher.allowed_token_ids() and all(map(matcher.advance, b"[CALLS]:mug")) and matcher.is_complete
    )


def test_an_eos_token_is_the_end_even_where_it_is_named():
    matcher = compile_grammar(Grammar.from_lark('start: "a" "</s>" "b"'), VOCABULARY).matcher()
    assert matcher.advance(ord("a")) and EOS not in matcher.allowed_token_ids()
    assert all(map(matcher.advance, b"</s>b")) and matcher.allowed_token_ids().tolist() == [EOS]


def test_they_count_as_one_token_of_a_budget():
    compiled = compile_grammar(Grammar.from_lark('start: "[CALLS]" "[ARGS]" "x"'), VOCABULARY)
    matcher = compiled.matcher()
    matcher.set_budget(3)
    assert matcher.allowed_token_ids().tolist() == [CALLS] and matcher.advance(CALLS)
    assert matcher.allowed_token_ids().tolist() == [ARGS]
    with pytest.raises(VocabularyError, match="the shortest way to finish takes 3"):
        compiled.matcher().set_budget(2)


def test_a_saved_grammar_and_a_batch_do_the_same(tmp_path):
    compiled = compile_grammar(Grammar.from_lark(GRAMMARS["between"][0]), VOCABULARY)
    compiled.save(tmp_path / "grammar")
    loaded = CompiledGrammar.load(tmp_path / "grammar", VOCABULARY)
    plain = compile_grammar(Grammar.from_regex("(?s).*"), VOCABULARY)
    rows = BatchMatcher([compiled.matcher("a"), loaded.matcher("a"), plain.matcher("a")])
    masks = rows.fill_bitmask()
    bit = masks[:, CALLS >> 5] >> (CALLS & 31) & 1
    assert np.array_equal(masks[0], masks[1]) and bit.tolist() == [1, 1, 0]
    assert rows.advance([CALLS, CALLS, CALLS]) == [True, True, False]


def test_the_calls_of_a_tool_list_name_them():
    form = '[CALLS][{"name": "NAME", "arguments": ARGUMENTS}]'
    tools = [{"name": "say", "parameters": {"properties": {"[CALLS]": {"enum": ["[CALLS]"]}}}}]
    known = ActionKnowledge.from_tools(tools, call_format=form)
    matcher = compile_grammar(known.next_action(), VOCABULARY).matcher()
    assert CALLS in matcher.allowed_token_ids() and matcher.advance(CALLS)
    assert all(map(matcher.advance, b'[{"name": "say", "arguments": {"'))
    assert CALLS not in matcher.allowed_token_ids() and ord("[") in matcher.allowed_token_ids()


def test_what_may_come_is_shown_without_the_mark():
    matcher = compile_grammar(Grammar.from_lark('start: "[CALLS]" | "b"'), VOCABULARY).matcher()
    assert repr(matcher) == "Matcher(unfinished, next: '[CALLS]', 'b')"
    assert matcher.advance(CALLS) and repr(matcher) == "Matcher(complete)"


def test_the_flag_decides_not_the_look():
    inner = Tokenizer.from_file(str(shared("tokenizers/qwen2.5/tokenizer.json")))
    inner.add_tokens([AddedToken("<|tool_call|>", special=False), AddedToken("[TOOL_CALLS]", special=False)])
    inner.add_special_tokens([AddedToken("plain", special=True), AddedToken("<|ipython|>", special=True)])
    words = Vocabulary.from_tokenizer(inner, eos_token_ids=[inner.token_to_id("<|im_end|>")])
    content = [inner.token_to_id(t) for t in ("<|tool_call|>", "[TOOL_CALLS]", "<|fim_prefix|>", "<tool_call>")]
    control = [inner.token_to_id(t) for t in ("plain", "<|ipython|>", "<|im_start|>")]
    assert set(control) <= words.special_set and not words.special_set & set(content)
    free = compile_grammar(Grammar.from_regex("(?s).*"), words).matcher().allowed_token_ids()
    assert set(content) <= set(free.tolist()) and not set(control) & set(free.tolist())
    for token in (*content, *control):
        text = words.tokens[token].decode()
        matcher = compile_grammar(Grammar.from_lark(f'start: "{text}" "{{" /[^}}]*/ "}}"'), words).matcher()
        assert token in matcher.allowed_token_ids() and matcher.advance(token), text
        assert matcher.forced_text() == b"{"


def test_further_control_tokens_are_named_by_hand(tmp_path):
    """DeepSeek's tokenizers don't flag `<｜User｜>`."""
    inner = make()
    inner.add_tokens(["<｜User｜>"])
    user = inner.token_to_id("<｜User｜>")
    for cache in (None, tmp_path, tmp_path):
        words = Vocabulary.from_tokenizer(inner, eos_token_ids=[MADE_EOS], special_ids=[user], cache=cache)
        assert user in words.special_ids and user not in words.sorted_ids
        matcher = compile_grammar(Grammar.from_lark('start: /[a-z]*/ | "<｜User｜>"'), words).matcher()
        assert user in matcher.allowed_token_ids()
    assert user in Vocabulary.from_tokenizer(inner, eos_token_ids=[MADE_EOS], cache=tmp_path).sorted_ids, "another key"


def test_mistrals_call_marker():
    encoder = tokenizer("tekken")
    words = Vocabulary.from_tokenizer(encoder)
    marker = encoder.get_special_token("[TOOL_CALLS]")
    assert words.tokens[marker] == b"[TOOL_CALLS]" and marker in words.special_ids
    compiled = compile_grammar(Grammar.from_lark('start: /(.|\\n)*/ ("[TOOL_CALLS]" "[{" /[^]]*/ "}]")?'), words)
    matcher = compiled.matcher("I look it up. ")
    ids = set(matcher.allowed_token_ids().tolist())
    assert ids & words.special_set == {marker, *words.eos_token_ids}
    assert matcher.advance(marker) and matcher.forced_text() == b"[{"
