"""A budget is a guarantee: whatever is written within it, the text is whole at its end."""

from __future__ import annotations

import json
import random

import pytest

from constrained import Grammar, Limits, Vocabulary, compile_grammar
from constrained.automaton import budget
from constrained.automaton.matcher import CompiledGrammar, Matcher
from constrained.errors import VocabularyError
from tests.data import shared
from tests.grammar.json_schema.oracle import is_valid

WORDS = [
    "the",
    " end",
    "ab",
    "LONG",
    "q0q1",
    " zz",
    "\nAction: ",
    "0123",
    "xyz",
    "go to",
    " desk 1",
    "é",
    "ing",
    "tion",
    ", ",
]
LARGE = Vocabulary([*(bytes((b,)) for b in range(256)), *(w.encode() for w in WORDS), b""], [256 + len(WORDS)])
"""Too large for free text to be searched out, so that bounds take the search's place."""

INNER = Grammar.from_regex("q0q1q2q3q4q5q6q7q8q9q0[xyz]{20}")
STEPS = """
%declare _STEP PLACE THING
start: "go to " at{PLACE}
at{p}: p _STEP "take " pick{THING, p}
pick{t, p}: t " from " p _STEP ("go to " at{PLACE} | "put " t " down")
"""

GRAMMARS = {
    "a short way beside a long literal": Grammar.from_lark(
        'start: /[a-z]{1,500}/ ("!" /[0-9]/ | "' + "LONG q " * 30 + '")\n'
    ),
    "a literal as an argument": Grammar.from_lark(
        'start: /[a-z ]{1,500}/ t{"0123456789 zz 0123456789 qq 7 7 7 7"}\nt{x}: "(" x ")"\n'
    ),
    "a rule as an argument handed on": Grammar.from_lark(
        'start: /[a-z ]{1,500}/ f{body}\nf{x}: g{x}\ng{y}: "(" y\nbody: "q0q1q2q3q4q5q6q7q8q9q0" /[xyz]{20}/\n'
    ),
    "a grammar as an argument": Grammar.from_lark('%declare S\nstart: /[a-z ]{1,500}/ f{S}\nf{x}: "(" x\n').bind(
        S=INNER
    ),
    "an argument handed round": Grammar.from_lark(
        'start: /[a-z]{1,500}/ f{"0123456789 0123456789"}\nf{x}: "." x | "," g{x}\ng{y}: f{y} | y\n'
    ),
    "two short ways": Grammar.from_lark('start: /[a-z]{1,500}/ ("!" /(xq|yz|zx){8}/ | "?" /[QJX]{15}/)\n'),
    "an end in the letters of what is before": Grammar.from_lark('start: /[a-z ]{1,500}/ " the end"\n'),
    "text of many bytes": Grammar.from_lark('start: /[^\\n]{1,500}/ "\\n" /[中-丰]{9}/ ("é" | "è")~7\n'),
    "text at least": Grammar.from_lark('start: /[a-z]{30,500}/ "." /[a-c]{20,60}/\n'),
    "counted groups": Grammar.from_lark('start: ("ab" | /[c-e]{2}/)~20..90 "."\n'),
    "whole paths": Grammar.from_lark(STEPS).bind(
        _STEP="\n",
        PLACE=["a", "a very long place name 77", "b"],
        THING={"a": ["some thing with a long name"], "b": []},
    ),
    "never the same end": Grammar.from_lark('start: "x" start | "y" next\nnext: "," start | ";" /[0-9]{12}/\n'),
}


def write(grammar: Grammar, vocabulary: Vocabulary, budget: int, rnd: random.Random, greedy: bool) -> bytes:
    """A text by random choice; `greedy`: always a token that leaves the text unfinished, while there is one."""
    matcher = compile_grammar(grammar, vocabulary).matcher()
    matcher.set_budget(budget)
    eos, text = set(vocabulary.eos_token_ids), b""
    for _ in range(budget + 1):
        ids = matcher.allowed_token_ids().tolist()
        assert ids, f"stuck after {text!r}"
        on = [i for i in ids if i not in eos]
        short = [i for i in on if len(vocabulary.tokens[i]) == 1 and vocabulary.tokens[i].islower()]
        i = rnd.choice((short or on or ids) if greedy else ids)
        if i in eos:
            return text
        assert matcher.advance(i)
        text += vocabulary.tokens[i]
    raise AssertionError(f"not finished within {budget} tokens: {text!r}")


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_text_is_whole_within_its_budget(name):
    grammar, rnd = GRAMMARS[name], random.Random(name)
    least = compile_grammar(grammar, LARGE).matcher().fewest_tokens()
    for extra in (0, 1, 2, 5, 17, 40):
        for greedy in (True, True, False):
            assert grammar.matches(write(grammar, LARGE, least + extra, rnd, greedy))


@pytest.mark.parametrize("tokenizer", ["gpt2", "phi3-mini"])
def test_every_text_is_whole_within_its_budget_with_a_real_vocabulary(tokenizer):
    transformers = pytest.importorskip("transformers")
    vocabulary = Vocabulary.from_tokenizer(
        transformers.AutoTokenizer.from_pretrained(shared(f"tokenizers/{tokenizer}"))
    )
    for name, grammar in GRAMMARS.items():
        rnd = random.Random(name + tokenizer)
        least = compile_grammar(grammar, vocabulary).matcher().fewest_tokens()
        for extra, greedy in ((0, False), (4, True), (23, True)):
            assert grammar.matches(write(grammar, vocabulary, least + extra, rnd, greedy)), name


@pytest.mark.parametrize("name", GRAMMARS)
def test_near_its_end_a_budgets_mask_is_what_advance_takes(name):
    grammar, rnd = GRAMMARS[name], random.Random(name)
    compiled = compile_grammar(grammar, LARGE)
    matcher = compiled.matcher()
    least = matcher.fewest_tokens()
    for left in range(least + 12, 0, -1):
        if matcher.is_terminated:
            break
        matcher.set_budget(max(left, matcher.fewest_tokens()))
        ids = matcher.allowed_token_ids().tolist()
        assert [i for i in range(LARGE.size) if matcher.copy().advance(i)] == ids
        matcher.advance(rnd.choice(ids))


def test_a_budget_with_room_rules_nothing_out():
    compiled = compile_grammar(Grammar.from_regex("[a-z]{1,20}!{3}"), LARGE)
    free, tight = compiled.matcher(), compiled.matcher()
    tight.set_budget(200)
    for letter in b"abcdefgh":
        assert tight.allowed_token_ids().tolist() == free.allowed_token_ids().tolist()
        assert free.advance(letter) and tight.advance(letter)


def test_a_budget_counts_tokens_from_where_it_is_set():
    matcher = compile_grammar(Grammar.from_regex("[ab]*c"), LARGE).matcher()
    for _ in range(50):
        assert matcher.advance(ord("a"))
    matcher.set_budget(3)
    assert matcher.advance(ord("a")) and matcher.advance(ord("b"))
    assert matcher.allowed_token_ids().tolist() == [ord("c")] and not matcher.advance(ord("a"))
    matcher.rollback(1)
    assert ord("a") in matcher.allowed_token_ids(), "the budget is rolled back, too"
    matcher.set_budget(1)
    assert matcher.allowed_token_ids().tolist() == [ord("c")]
    matcher.set_budget(None)
    assert {ord("a"), ord("c")} < set(matcher.allowed_token_ids().tolist())
    matcher.set_budget(1)
    matcher.reset()
    assert ord("a") in matcher.allowed_token_ids() and matcher.advance(ord("b")), "reset lifts the budget"


def test_eos_is_not_counted():
    matcher = compile_grammar(Grammar.from_choices(["ab", "abab"]), Vocabulary([b"ab", b"a", b"b", b""], [3])).matcher()
    matcher.set_budget(1)
    assert matcher.allowed_token_ids().tolist() == [0] and matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [3] and matcher.advance(3) and matcher.is_terminated


def test_a_budget_that_is_too_small_says_what_it_takes():
    compiled = compile_grammar(Grammar.from_choices(["abcabc"]), Vocabulary([b"abc", b"a", b"b", b"c", b""], [4]))
    for tokens in (1, 0, -3):
        with pytest.raises(VocabularyError) as caught:
            compiled.matcher().set_budget(tokens)
        assert caught.value.message == f"a budget of {tokens} tokens is too small: the shortest way to finish takes 2"
        assert caught.value.hint == "raise max_new_tokens"
    matcher = compiled.matcher()
    with pytest.raises(VocabularyError):
        matcher.set_budget(1)
    assert matcher.advance(1), "a budget that was refused is not set"


# a large vocabulary without single bytes, as SentencePiece's without byte fallback are

LETTERS = "abcdefghijklmnopqrstuvwxyzABDFLPRSTGHIM 0123456789->[]:.,é中"
PIECES = sorted({*LETTERS, *(a + b for a in LETTERS[:40] for b in LETTERS[:45]), "Start", "Action", "the", " é"})
WORDY = Vocabulary([*(p.encode() for p in PIECES), b""], [len(PIECES)])


@pytest.mark.parametrize("budget", [None, 40, 90])
def test_a_large_vocabulary_without_single_bytes(budget):
    """No byte of `;` or of other scripts is there: what needs them is shut, the rest can always be finished."""
    grammar = Grammar.from_regex(
        r"ActionPath [0-9]: Start(->(Search|Lookup;)\[[^\]\n]{1,60}\]){0,8}\. Thought: [^\n]{1,300}\. Action: (Find|Get)\[[^\]\n]{1,60}\]"  # noqa: E501
    )
    compiled = compile_grammar(grammar, WORDY)
    assert compiled.budget.needed
    rnd = random.Random(str(budget))
    for _ in range(3):
        matcher = compiled.matcher()
        matcher.set_budget(budget)
        text = b""
        for _ in range(budget or 60):
            ids = matcher.allowed_token_ids().tolist()
            assert ids, f"stuck after {text!r}"
            on = [i for i in ids if i != len(PIECES)]
            if not on:
                break
            i = rnd.choice([i for i in on if WORDY.tokens[i].isalpha()] or on)
            assert matcher.advance(i)
            text += WORDY.tokens[i]
        assert matcher.is_complete if budget else grammar.is_prefix(text)
        assert b"Lookup" not in text
    assert compiled.matcher("ActionPath 1: Start->").allowed_token_ids().tolist() == sorted(
        PIECES.index(p) for p in ("S", "Se")
    )


def test_a_large_vocabulary_that_can_not_spell_the_shortest_text_but_another():
    compiled = compile_grammar(Grammar.from_regex("(;|ab)[^\\n]{2,40}(;|cd)"), WORDY)
    assert compiled.budget.needed
    matcher = compiled.matcher()
    assert {WORDY.tokens[i] for i in matcher.allowed_token_ids()} == {b"a", b"ab"}
    with pytest.raises(VocabularyError, match="no text of the grammar can be written"):
        compile_grammar(Grammar.from_regex("(;|ab)x{2,40};"), WORDY)


@pytest.mark.parametrize("kind", [CompiledGrammar.matcher, Matcher])
def test_after_the_last_token_of_a_budget_nothing_is_read_even_where_the_text_could_end(kind):
    vocabulary = Vocabulary([b"a", b"b", b"ab", b""], eos_token_ids=[3])
    matcher = kind(compile_grammar(Grammar.from_regex("[ab]{1,4}"), vocabulary))
    matcher.set_budget(1)
    assert matcher.advance(0) and matcher.is_complete
    assert not any(matcher.advance(token) for token in range(3))
    assert matcher.allowed_token_ids().tolist() == [3]


def test_a_shortest_string_of_a_pattern_is_found_without_trying_every_character():
    grammar = Grammar.from_json_schema({"type": "string", "pattern": "[一-龥]{3}", "maxLength": 9})
    compiled = compile_grammar(grammar, LARGE)
    for begun, fewest in (("", 11), ('"', 10), ('"一é一一', 4), ('"一一龥', 1), ('"\\u4e', 9), ('"\\', 11)):
        assert compiled.matcher(begun).fewest_tokens() == fewest, begun


# objects of JSON Schema, whose names may come in any order

ARN = {"type": "string", "maxLength": 2048, "pattern": "arn:[-.a-z0-9]{1,63}:[-.a-z0-9]{0,63}:[^/].{0,1023}"}
OPTIONS = {f"option_{i}": {"type": "string", "minLength": i % 3} for i in range(40)}
OBJECTS = {
    "a long string is required beside items that differ": {
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "id": {"type": "string", "pattern": "^(?!0{8})[0-9a-f]{8}-[0-9a-f]{24}$", "minLength": 33},
            "name": {"type": "string"},
        },
        "required": ["id", "name"],
        "additionalProperties": False,
    },
    "one of two sets of names is required": {
        "properties": OPTIONS | {name: {"type": "string"} for name in ("role", "left", "right", "centre")},
        "required": ["role"],
        "oneOf": [{"required": ["left", "right"]}, {"required": ["centre", "option_9"]}],
        "additionalProperties": False,
    },
    "one of two names is required beside items that differ": {
        "properties": OPTIONS | {"tags": {"items": {"enum": [1, 2, 3]}, "uniqueItems": True}},
        "anyOf": [{"required": ["option_33"]}, {"required": ["option_35"]}],
        "additionalProperties": False,
    },
    "other names than those that are listed": {"properties": OPTIONS, "required": ["option_7"], "minProperties": 3},
    "a string of a pattern with a far bound on its length": {
        "properties": OPTIONS | {"arn": ARN},
        "required": ["arn"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("name", OBJECTS)
def test_the_end_of_an_object_is_found_straight(name):
    schema = {"type": "object", **OBJECTS[name]}
    grammar = Grammar.from_json_schema(schema, limits=Limits(search_positions=400))
    least = compile_grammar(grammar, LARGE).matcher().fewest_tokens()
    for seed in range(4):
        for extra, greedy in ((0, False), (3, True), (40, False)):
            text = write(grammar, LARGE, least + extra, random.Random(seed), greedy)
            assert is_valid(schema, json.loads(text)), text


@pytest.mark.parametrize("name", OBJECTS)
def test_a_search_that_takes_long_goes_on_in_haste_and_keeps_the_promise(name, monkeypatch):
    monkeypatch.setattr("constrained.automaton.shortest.PATIENCE", 3)
    schema = {"type": "object", **OBJECTS[name]}
    grammar = Grammar.from_json_schema(schema)
    least = compile_grammar(grammar, LARGE).matcher().fewest_tokens()
    for extra, greedy in ((0, False), (12, True)):
        assert is_valid(schema, json.loads(write(grammar, LARGE, least + extra, random.Random(extra), greedy)))


def test_a_budget_does_not_ask_for_every_state_of_a_pattern():
    grammar = Grammar.from_json_schema({**ARN, "minLength": 300})
    compiled = compile_grammar(grammar, LARGE)
    matcher = compiled.matcher('"arn:aws:')
    assert matcher.fewest_tokens() == 302 - len('"arn:aws:')
    matcher.set_budget(400)
    assert len(matcher.allowed_token_ids()) and len(grammar.all_rules()) < 100


DEEP = {
    "brackets": ('start: s\ns: "(" s ")" | "a"\n', b"("),
    "rules in turn": ('start: a\na: "(" b ")" | "x"\nb: "[" a "]" | "<" a ">" | "yy"\n', b"(["),
    "values with white space": (
        'start: v\nv: "[" [v ("," v)*] "]" | "{" [p ("," p)*] "}" | /[0-9]+/\np: /"[a-z]*"/ ":" v\n%ignore /[ \\n]+/\n',
        b"[ ",
    ),
    "names": ('start: v\nv: "{" p ("," p)* "}" | "1"\np: /"[a-z]{2,9}"/ ":" v\n', b'{"ab":'),
    "counts": ('start: s\ns: "(" s x~2..9 ")" | "a"\nx: "u" | "v"\n', b"("),
    "characters of several bytes": ('start: s\ns: "(" s /[é-ì]/ ")" | /[中-丮]{2}/\n', b"("),
}


@pytest.mark.parametrize("name", DEEP)
def test_under_a_deep_stack_the_least_budget_is_found_without_going_to_the_end(name, monkeypatch):
    """Each frame keeps what is after it: no mask searches a text to the end anew."""
    text, opening = DEEP[name]
    ends = [
        b"))",
        b"))))",
        b"]]",
        b"]]]",
        b"}}",
        b"}}}",
        b")]",
        b"])])",
        b"u)",
        b"uu)",
        b"1}",
        b"0]",
        b"0]]",
        b"a)",
        b"x]",
    ]
    tokens = [*(bytes((byte,)) for byte in range(256)), *ends, b"<eos>"]
    compiled = compile_grammar(Grammar.from_lark(text), Vocabulary(tokens, eos_token_ids=[len(tokens) - 1]))

    def search(*_):
        raise AssertionError("the end was searched for")

    monkeypatch.setattr(budget, "shortest", search)
    rng = random.Random(name)
    for spare in (0, 1, 7):
        matcher = compiled.matcher(opening * 300)
        least = matcher.fewest_tokens()
        matcher.set_budget(least + spare)
        written = 0
        while not matcher.is_complete:
            matcher.advance(int(rng.choice(matcher.allowed_token_ids())))
            written += 1
        assert written <= least + spare
