"""What strings leave out: patterns under not, if, oneOf, and of names, held against `jsonschema`; and limits."""

import json
import random
import re
from itertools import product

import pytest

from constrained import Grammar, GrammarError
from constrained.errors import LimitError
from tests.grammar.json_schema.oracle import accepted, is_valid, random_text

TWELVE = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()
FORTY = (
    TWELVE
    + (
        "omicron rho sigma tau upsilon phi chi psi omega aleph bet gimel dalet vav zayin tet yod kaf lamed mem samekh "
        "ayin tsadi qof resh shin tav alif"
    ).split()
)
LONG = [f"{one}{other}" for one in TWELVE for other in FORTY[:8]]
BEYOND_ASCII = "größe naïve Ωμέγα дом 本語 😀x éclair ñandú straße žena łódź ærø".split()
WORDS = {"twelve": TWELVE, "forty": FORTY, "long": LONG, "beyond ASCII": BEYOND_ASCII}
AROUND = {
    "anywhere": "{}",
    "whole": "^({})$",
    "at the beginning": "^({})",
    "at the end": "({})$",
    "each anchored": "{}",
    "a line": "^.*({}).*$",
}


def pattern(words: list[str], around: str) -> str:
    if around == "each anchored":
        return "|".join(f"^.*{word}$" for word in words)
    return AROUND[around].format("|".join(words))


def texts(words: list[str], rng: random.Random, count: int = 60) -> list[str]:
    """Texts that have some of the words, parts of them, and others."""
    pieces = [*words, *(word[: rng.randint(1, len(word))] for word in words), " ", "-", "x", "é"]
    return ["", *words[:6], *("".join(rng.choices(pieces, k=rng.randint(1, 4))) for _ in range(count))]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("words", WORDS)
def test_words_that_a_text_must_not_have(words, around):
    rng = random.Random(1)
    found = pattern(WORDS[words], around)
    schema = {"type": "string", "not": {"pattern": found}}
    grammar = Grammar.from_json_schema(schema)
    values = texts(WORDS[words], rng)
    verdicts = {value: is_valid(schema, value) for value in values}
    assert {value: accepted(grammar, value) for value in values} == verdicts
    assert len(set(verdicts.values())) == 2


TWELVE_FOUND, OTHER = "|".join(TWELVE), "one|two|three|four|five|six"
BESIDE = {
    "lengths": {"minLength": 3, "maxLength": 12, "not": {"pattern": TWELVE_FOUND}},
    "a great length": {"minLength": 3, "maxLength": 100_000, "not": {"pattern": TWELVE_FOUND}},
    "a format": {"format": "email", "not": {"pattern": TWELVE_FOUND}},
    "another pattern": {"pattern": "^[a-z ]{2,900}$", "not": {"pattern": TWELVE_FOUND}},
    "not not": {"not": {"not": {"pattern": TWELVE_FOUND}}},
    "not not not": {"not": {"not": {"not": {"pattern": TWELVE_FOUND}}}},
    "none of many": {"allOf": [{"not": {"pattern": word}} for word in FORTY]},
    "not any of many": {"not": {"anyOf": [{"pattern": word} for word in FORTY]}},
    "if": {"if": {"pattern": TWELVE_FOUND}, "then": {"maxLength": 9}, "else": {"minLength": 4}},
    "if, then patterns": {"if": {"pattern": TWELVE_FOUND}, "then": {"pattern": "x"}, "else": {"pattern": "a$"}},
    "oneOf": {"oneOf": [{"pattern": TWELVE_FOUND}, {"pattern": OTHER}]},
    "oneOf and not": {"oneOf": [{"not": {"pattern": TWELVE_FOUND}}, {"pattern": OTHER}]},
    "either case": {"not": {"pattern": "(?i)" + TWELVE_FOUND}},
    "lookahead": {"not": {"pattern": f"^(?!.*({OTHER})).*({TWELVE_FOUND})"}},
}


@pytest.mark.parametrize("beside", BESIDE)
def test_what_stands_beside_a_pattern_that_is_left_out(beside):
    rng = random.Random(2)
    schema = {"type": "string", **BESIDE[beside]}
    grammar = Grammar.from_json_schema(schema)
    values = [*texts([*TWELVE, *OTHER.split("|")], rng, 120), "ALPHA", "x a"]
    if beside == "a format":  # of which Python's validator admits more
        assert accepted(grammar, "someone@example.org") and not accepted(grammar, "alpha@example.org")
        return
    assert {value: accepted(grammar, value) for value in values} == {v: is_valid(schema, v) for v in values}


NAMES = {
    "propertyNames": {"propertyNames": {"not": {"pattern": TWELVE_FOUND}}},
    "patternProperties": {
        "patternProperties": {TWELVE_FOUND: {"type": "integer"}},
        "additionalProperties": {"const": ""},
    },
    "no such names": {"patternProperties": {TWELVE_FOUND: False}},
    "beside others": {
        "properties": {"alphabet": {"const": 1}, "letter": {"const": 2}},
        "patternProperties": {TWELVE_FOUND: {"type": "integer"}, OTHER: {"minimum": 1}},
        "additionalProperties": False,
    },
    "if": {"if": {"propertyNames": {"pattern": TWELVE_FOUND}}, "then": {"maxProperties": 1}},
}


@pytest.mark.parametrize("any_order", [True, False])
@pytest.mark.parametrize("names", NAMES)
def test_names_that_match_a_pattern_or_do_not(names, any_order):
    rng = random.Random(3)
    schema = {"type": "object", **NAMES[names]}
    grammar = Grammar.from_json_schema(schema, any_order=any_order)
    keys = texts([*TWELVE, "one", "two", "letter", "alphabet"], rng, 40)
    values = [{}, *({key: value} for key in keys for value in (0, 1, ""))]
    assert [accepted(grammar, v) for v in values] == [is_valid(schema, v) for v in values]


PIECES = [*"abé", "a", "b", "ab", "[ab]", "[^a]", ".", "a*", "b+", "(a|b)", "(ab)*", "(a|ba)?", "[^ab]", "a{2}", "é?"]
SHAPES = {
    "not": lambda p, q: {"not": {"pattern": p}},
    "not of two": lambda p, q: {"not": {"anyOf": [{"pattern": p}, {"pattern": q}]}},
    "one and not the other": lambda p, q: {"pattern": p, "not": {"pattern": q}},
    "not both": lambda p, q: {"not": {"pattern": p, "allOf": [{"pattern": q}]}},
    "if": lambda p, q: {"if": {"pattern": p}, "then": {"pattern": q}},
    "if else": lambda p, q: {"if": {"pattern": p}, "then": {"maxLength": 2}, "else": {"pattern": q}},
    "oneOf": lambda p, q: {"oneOf": [{"pattern": p}, {"pattern": q}]},
    "counted": lambda p, q: {"minLength": 2, "maxLength": 3, "not": {"pattern": p}},
    "at least": lambda p, q: {"minLength": 2, "not": {"pattern": p}},
}


def random_pattern(rng: random.Random) -> str:
    inner = "|".join("".join(rng.choices(PIECES, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3)))
    return rng.choice(["{}", "^({})$", "^{}", "{}$", "^.*({})"]).format(inner)


@pytest.mark.parametrize("shape", SHAPES)
def test_random_patterns_that_are_left_out(shape):
    """All texts of three letters; `jsonschema` reads patterns by Python's `re`, and here none has a line break."""
    rng = random.Random(shape)
    values = ["".join(letters) for size in range(5) for letters in product("abé", repeat=size)]
    for _ in range(12):
        one, other = random_pattern(rng), random_pattern(rng)
        schema = {"type": "string", **SHAPES[shape](one, other)}
        expected = [is_valid(schema, value) for value in values]
        try:
            grammar = Grammar.from_json_schema(schema)
        except GrammarError:  # it has no value at all
            assert not any(expected), schema
            continue
        assert [accepted(grammar, value) for value in values] == expected, schema
        for _ in range(5):
            written = random_text(grammar, rng)
            assert written is None or is_valid(schema, json.loads(written)), schema


MANY_STATES = "[ab]*a[ab]{40}$"
REFUSED = {
    "not": {"type": "string", "not": {"pattern": MANY_STATES}},
    "deep": {"properties": {"a": {"items": {"properties": {"b": {"not": {"pattern": MANY_STATES}}}}}}},
    "if": {"type": "string", "if": {"pattern": MANY_STATES}, "then": {"maxLength": 60}, "else": {"minLength": 3}},
    "oneOf": {"type": "string", "oneOf": [{"pattern": MANY_STATES}, {"pattern": "b$"}]},
    "propertyNames": {"type": "object", "propertyNames": {"not": {"pattern": MANY_STATES}}},
    "patternProperties": {"type": "object", "patternProperties": {MANY_STATES: {"type": "integer"}}},
    "deep patternProperties": {"properties": {"a": {"patternProperties": {MANY_STATES: {"type": "integer"}}}}},
    "a referenced one": {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"not": {"pattern": MANY_STATES}}}}},
    "beside another": {"type": "string", "pattern": "^[ab]*$", "not": {"pattern": MANY_STATES}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_complement_of_too_many_states_is_refused_when_the_schema_is_read(name):
    with pytest.raises(LimitError, match="patterns") as caught:
        Grammar.from_json_schema(REFUSED[name])
    assert caught.value.limit == "pattern_steps"


def test_a_pattern_of_too_many_states_that_texts_must_have_is_still_read_with_its_length():
    schema = {"type": "string", "pattern": MANY_STATES, "minLength": 43, "maxLength": 44, "not": {"pattern": "bbb"}}
    grammar = Grammar.from_json_schema(schema)
    for text in ("a" * 44, "b" + "a" * 43, "ab" * 22, "ab" * 21 + "a", "ab" * 20 + "a", "ba" * 22, "b" * 3 + "a" * 41):
        fits = re.search(MANY_STATES, text) and 43 <= len(text) <= 44 and "bbb" not in text
        assert grammar.matches(f'"{text}"') == bool(fits), text
    assert not grammar.is_prefix('"' + "a" * 45)


COUNTRIES = {"BRA": ["AC", "CA", "SP"], "ITA": ["CA", "SP", "TO"], "CAN": ["AB", "SP", 4.0], "USA": ["CA", None, ["x"]]}
MADE = {
    "const": lambda country: {"const": country},
    "enum of a type": lambda country: {"type": "string", "enum": [country, 7]},
    "enum with a nested value": lambda country: {"enum": [country, {"code": country}]},
}


@pytest.mark.parametrize("made", MADE)
def test_a_choice_of_one_by_an_optional_member_that_lists_its_values(made):
    schema = {
        "type": "object",
        "oneOf": [
            {"properties": {"country": MADE[made](country), "state": {"enum": states}}}
            for country, states in COUNTRIES.items()
        ],
    }
    grammar = Grammar.from_json_schema(schema)
    countries = [None, *COUNTRIES, "x", 7, {"code": "ITA"}]
    states = [None, "AC", "CA", "SP", "TO", "zz", 4, 4.5, ["x"], ["y"]]
    values = [
        {key: value for key, value in (("country", country), ("state", state)) if value is not None}
        for country, state in product(countries, states)
    ]
    verdicts = [is_valid(schema, value) for value in values]
    assert [accepted(grammar, value) for value in values] == verdicts
    assert len(set(verdicts)) == 2


def test_tagged_schemas_that_are_left_out_together_are_told_apart_by_their_tag():
    tagged = [
        {"properties": {"k": {"enum": [f"a{i}", f"b{i}"]}, "v": {"type": "integer"}, "w": {"minLength": 2}}}
        for i in range(10)
    ]
    schema = {"type": "object", "not": {"anyOf": [{**one, "required": ["k"]} for one in tagged]}}
    grammar = Grammar.from_json_schema(schema)
    values = [{}, {"k": "a3"}, {"k": "b3", "v": "x"}, {"k": "c", "v": 1}, {"k": "a1", "w": "x"}]
    assert [accepted(grammar, value) for value in values] == [is_valid(schema, value) for value in values]
