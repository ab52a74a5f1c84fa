"""Arrays whose items differ, and objects whose names do, where what is written has to be remembered."""

import json
import random

import numpy as np
import pytest

from constrained import BatchMatcher, CompiledGrammar, Grammar, GrammarError, Limits, Vocabulary, compile_grammar
from constrained.automaton import native
from constrained.automaton.matcher import Matcher
from constrained.errors import VocabularyError
from tests.automaton.tokenizers import NAMES, vocabulary
from tests.chance import times
from tests.grammar.json_schema.oracle import is_valid, random_text

STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
ANYTHING = {"type": "array", "uniqueItems": True}
OBJECTS = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}, "uniqueItems": True}
NESTED = {
    "type": "array",
    "uniqueItems": True,
    "items": {"type": "object", "properties": {"tags": STRINGS, "n": {"type": "integer"}}, "required": ["tags"]},
}
TAG = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 2}},
       "required": ["k"], "additionalProperties": False}  # fmt: skip
OPEN = {"anyOf": [{**STRINGS, "minItems": 2}, {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}]}
SCHEMAS = {
    "closed objects": {**ANYTHING, "items": TAG, "minItems": 2},
    "closed objects or strings": {
        **ANYTHING, "items": {"anyOf": [{**TAG, "required": ["k", "v"]}, {"type": "string"}]}
    },
    "closed objects with little else": {
        **ANYTHING, "items": {
            "type": "object", "additionalProperties": False, "required": ["n"], "maxProperties": 2,
            "properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"enum": ["x", "xy", 1]},
                           "d": {"type": "array", "items": {"type": "null"}}},
        },
    },
    "few closed objects": {
        **ANYTHING, "items": {"properties": {"a": {"enum": ["x", "xy"]}, "b": {"type": "boolean"}}, "required": ["a"],
                              "type": "object", "additionalProperties": False}
    },
    "closed objects of one kind or another": {**ANYTHING, "items": {"oneOf": [TAG, {**TAG, "required": ["v"],
        "properties": {"v": {"type": "null"}, "w": {"type": "string", "pattern": "^x?y?$"}}}]}},
    "closed objects in closed objects": {
        **ANYTHING, "minItems": 2, "items": {"type": "object", "properties": {"t": TAG, "b": {"const": 1}},
                                             "required": ["t"], "additionalProperties": False}
    },
    "closed arrays": {**ANYTHING, "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
    "closed objects but for a pattern": {
        **ANYTHING, "items": {**TAG, "patternProperties": {"^x-": {}}, "properties": {"k": {"enum": ["a", "ab"]}}}
    },
    "a name asked for": {"type": "object", "properties": {"a": {"type": "integer"}}, "maxProperties": 3,
                         "not": {"additionalProperties": {"type": "string"}, "properties": {"b": {}}}},
    "strings": STRINGS,
    "anything": ANYTHING,
    "objects": OBJECTS,
    "nested": NESTED,
    "open": OPEN,
    "numbers": {**ANYTHING, "items": {"type": "number"}, "minItems": 2},
    "integers in bounds": {**ANYTHING, "items": {"type": "integer", "minimum": 0, "maximum": 2000}},
    "multiples": {**ANYTHING, "items": {"type": "integer", "multipleOf": 250, "minimum": 0, "maximum": 900_000}},
    "pattern": {**ANYTHING, "items": {"type": "string", "pattern": "^(a|ab|b[0-9]{4})$"}},
    "one character": {**ANYTHING, "items": {"type": "string", "maxLength": 1}, "minItems": 2},
    "words or numbers": {**ANYTHING, "items": {"type": ["integer", "boolean", "null"]}, "maxItems": 3},
    "first and others": {**ANYTHING, "prefixItems": [{"type": "string"}], "items": {"type": ["string", "integer"]}},
    "names": {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
    "listed names": {"properties": {"a": {"type": "null"}}, "type": "object", "minProperties": 2, "maxProperties": 3},
    "names of a pattern": {
        "type": "object", "patternProperties": {"^[ab]+$": {"type": "null"}}, "additionalProperties": False,
        "minProperties": 3,
    },
}  # fmt: skip
ITEMS = {
    "closed objects": [{"k": k, **v} for k in ("", "a", "ab", 'q"') for v in ({}, {"v": ""}, {"v": "é"}, {"v": "ab"})],
    "closed objects or strings": ["a", "b", *({"k": k, "v": v} for k in ("a", "b") for v in ("", "a"))],
    "closed objects with little else": [
        {"n": n, **more}
        for n in (1, 10)
        for more in ({}, {"b": True}, {"c": "x"}, {"c": "xy"}, {"d": []}, {"d": [None]})
    ],
    "few closed objects": [{"a": a, **b} for a in ("x", "xy") for b in ({}, {"b": True}, {"b": False})],
    "closed objects of one kind or another": [
        {"k": "a"},
        {"k": "a", "v": "b"},
        {"k": "a", "v": ""},
        {"v": None},
        {"w": "x", "v": None},
        {"v": None, "w": ""},
    ],
    "closed objects in closed objects": [
        {"t": {"k": k, **v}, **b} for k in ("", "a", "a}") for v in ({}, {"v": "a"}) for b in ({}, {"b": 1})
    ],
    "closed arrays": [[], [1], [10], [1, 10], [10, 1], [1, 1]],
    "closed objects but for a pattern": [{"k": "a"}, {"k": "ab"}, {"k": "a", "x-": 1}, {"x-": 1, "k": "a"}],
    "strings": ["a", "b", "desk 1", "desk 10", "", 'a"', "a\\", "é", "\U0001f600", "\n", "/"],
    "objects": [{}, {"a": "b"}, {"a": "b", "c": 1}, {"c": 1, "a": "b"}, {"c": 1.0}, {"a": "", "d": {"a": [1, 1]}}],
    "nested": [{"tags": t, "n": n} for t in ([], ["a"], ["a", "b"], ["b", "a"], ["a", "a"]) for n in (1, 2)],
    "anything": [1, 1.0, True, "1", None, [], [1], [1.0], [True], {}, {"a": 1}, {"a": True}, 0, False, -0.0, "true"],
    "open": ["a", "b", "c"],
    "numbers": [0, 1, 1.0, 10, 100.5, -1, 1e5, 100000],
    "integers in bounds": [0, 1, 10, 100, 1000, 2000],
    "multiples": [0, 250, 2500, 25000],
    "pattern": ["a", "ab", "b0000", "b0001"],
    "one character": ["a", "b", "", "é"],
    "words or numbers": [True, None, 1, 0, 10],
    "first and others": ["a", "b", 1, 2],
}


def escaped(text: str, rng: random.Random) -> str:
    """JSON text with some of its letters as escapes."""
    return "".join(
        f"\\u{ord(c):04x}" if c.isalpha() and c not in "truefalsn" and rng.random() < 0.3 else c for c in text
    )


@pytest.mark.parametrize("name", ITEMS)
def test_arrays_are_those_that_are_valid(name):
    rng, schema = random.Random(name), SCHEMAS[name]
    grammar = Grammar.from_json_schema(schema)
    assert grammar.remembers
    for _ in range(times(30, 1000)):
        value = [rng.choice(ITEMS[name]) for _ in range(rng.randint(0, 4))]
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
        assert grammar.matches(text) == is_valid(schema, value), text


@pytest.mark.parametrize("name", ["names", "listed names", "names of a pattern"])
@pytest.mark.parametrize("any_order", [True, False])
def test_objects_have_enough_names(name, any_order):
    rng, schema = random.Random(name), SCHEMAS[name]
    grammar = Grammar.from_json_schema(schema, any_order=any_order)
    for _ in range(times(30, 1000)):
        names = sorted(rng.choice(("a", "b", "ab", "bb", "c")) for _ in range(rng.randint(0, 5)))
        pairs = ", ".join(f'"{k}": {rng.choice(["null", "1"])}' for k in names)
        valid = is_valid(schema, json.loads(f"{{{pairs}}}"))
        assert grammar.matches(f"{{{pairs}}}") == (valid and len(set(names)) == len(names)), pairs


@pytest.mark.parametrize("name", SCHEMAS)
def test_random_texts_are_valid_and_come_to_an_end(name):
    rng, grammar = random.Random(name), Grammar.from_json_schema(SCHEMAS[name])
    ended = 0
    for _ in range(times(10, 300)):
        text = random_text(grammar, rng)  # fails where nothing can follow
        if text is not None:
            ended += 1
            assert is_valid(SCHEMAS[name], json.loads(text)), text
            assert grammar.matches(text)
    assert ended


@pytest.mark.parametrize("first", [[False], [{"enum": [1]}, False], [{"type": "array", "prefixItems": [False]}, False]])
@pytest.mark.parametrize("rest", [True, {"type": "integer"}])
def test_arrays_that_cannot_grow_are_few_values(first, rest):
    inner = {"type": "array", "prefixItems": first, "items": rest}
    with pytest.raises(GrammarError, match="it isn't plain that there are 3 items that differ"):
        Grammar.from_json_schema({**ANYTHING, "items": inner, "minItems": 3})
    vocabulary, rng = small_vocabulary(), random.Random(0)
    matcher = compile_grammar(Grammar.from_json_schema({**ANYTHING, "items": inner}), vocabulary).matcher()
    for _ in range(100):
        ids = matcher.allowed_token_ids()
        assert len(ids), "a dead end"
        ids = ids[~np.isin(ids, vocabulary.eos_token_ids)]
        if not len(ids):
            break
        assert matcher.advance(rng.choice(ids.tolist()))


def test_escapes_are_the_characters_they_stand_for():
    grammar, rng = Grammar.from_json_schema(STRINGS), random.Random(1)
    for one, other in [("desk", "desk"), ("\U0001f600", "\U0001f600"), ("a/", "a/"), ("x\n", "x\n")]:
        text = f"[{json.dumps(one)}, {escaped(json.dumps(other, ensure_ascii=False), rng)}]"
        assert not grammar.matches(text) and grammar.is_prefix(text[: text.rindex('"')]), text
        assert grammar.matches(text[: text.rindex('"')] + 'x"]')


SMALL = [
    *("[", "]", "{", "}", ",", ", ", ":", '"', "a", "b", "1", "0", ".", "\\", "u0061", "é", "n", " ", "true", "null"),
    *('"a"', '","', '", "', '"a","a"', "1,1", '["a","a"', ",1", "0,", '"}', '"},', '"}]', '"]}', "tr", "1.0,", '":1,"'),
    *('},{"a":"a"}', '"]},{"tags":["a"],"n":1}', '{"a":1,"a"', 'a"', '\\u0061"', '","a'),
    *('"]', " {}", "{},", '}","', '"}"},{"a":"', 'a"}', '[]"]', '\\"]}', 'a\\\\"]}', '"a\\"]","'),
]


def small_vocabulary() -> Vocabulary:
    """Tokens that end several items at once, among all bytes."""
    tokens = [*(bytes((b,)) for b in range(256)), *(t.encode() for t in SMALL if len(t.encode()) > 1)]
    return Vocabulary([*tokens, b"</s>"], [len(tokens)], [len(tokens)])


def walks(name: str, vocabulary: Vocabulary, rng: random.Random, tokens: int):
    """Yield a matcher of the schema after each token of a random walk that likes to repeat what was written."""
    compiled = compile_grammar(Grammar.from_json_schema(SCHEMAS[name]), vocabulary)
    matcher = compiled.matcher()
    liked = [i for i, t in enumerate(vocabulary.tokens) if t.decode("utf-8", "ignore") in SMALL]
    for _ in range(tokens):
        yield matcher
        ids = matcher.allowed_token_ids()
        ids = ids[~np.isin(ids, vocabulary.eos_token_ids)]
        near = np.intersect1d(ids, liked)
        if not len(ids):
            return
        assert matcher.advance(rng.choice((near if len(near) and rng.random() < 0.9 else ids).tolist()))


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_are_the_tokens_that_can_be_read(name):
    known, rng = small_vocabulary(), random.Random(name)
    for _ in range(times(2, 50)):
        for matcher in walks(name, known, rng, 40):
            state = matcher.prefix
            fine = [i for i, t in enumerate(known.tokens[:-1]) if state.read(t) is not None]
            fine += known.eos_token_ids if state.accepting else []
            assert matcher.allowed_token_ids().tolist() == fine
            assert fine, "a dead end"


@pytest.mark.parametrize("tokenizer", NAMES)
@pytest.mark.parametrize("name", ["strings", "anything", "nested", "pattern", "names"])
def test_masks_over_real_tokenizers(tokenizer, name):
    known, rng = vocabulary(tokenizer), random.Random(name)
    for step, matcher in enumerate(walks(name, known, rng, 30)):
        allowed = set(matcher.allowed_token_ids().tolist())
        if step % 5 == 0:
            prefix = matcher.prefix
            for i in matcher.compiled.masks.token_ids(matcher.state).tolist():
                assert (i in allowed) == (prefix.read(known.tokens[i]) is not None), known.tokens[i]


@pytest.mark.parametrize("name", ["strings", "nested", "open", "names"])
def test_the_kernel_and_python_give_the_same_masks(name, monkeypatch):
    known, rng = small_vocabulary(), random.Random(name)
    compiled = compile_grammar(Grammar.from_json_schema(SCHEMAS[name]), known)
    monkeypatch.setattr("constrained.automaton.native.kernel", None)
    plain = CompiledGrammar(compiled.grammar.copy(), known)
    assert plain.engine is None
    one, other = compiled.matcher(), plain.matcher()
    for _ in range(40):
        ids = one.allowed_token_ids()
        assert ids.tolist() == other.allowed_token_ids().tolist()
        token = rng.choice(ids.tolist())
        assert one.advance(token) and other.advance(token)
        if one.is_terminated:
            break


BESIDE = {
    "an array that is never opened": {
        "type": "object", "additionalProperties": False,
        "properties": {"t": {"type": "string"}, "o": {"type": "array", "items": {"type": "integer"}}, "u": STRINGS},
    },
    "arrays within and beside": {
        "type": "array", "items": {"anyOf": [STRINGS, {"type": "object", "properties": {"u": NESTED}}]}
    },
    "an array that may be one or another": {
        "type": "object", "properties": {"a": OPEN, "b": STRINGS}, "required": ["a"]
    },
    "names in a list": {"type": "array", "items": SCHEMAS["names"]},
}  # fmt: skip


def mask_of(matcher) -> np.ndarray:
    out = np.full((1, matcher.compiled.vocabulary.words + 1), -1, np.int32)
    matcher.fill_bitmask(out)
    return out[0]


@pytest.mark.parametrize("budget", [None, 60, 400])
@pytest.mark.parametrize("name", [*BESIDE, "nested", "open"])
def test_the_kernel_has_the_text_outside_of_what_is_remembered(name, budget):
    """Tokens are taken back, texts copied and begun in the middle: at every place the same as with Python alone."""
    known, rng = small_vocabulary(), random.Random(name)
    compiled = compile_grammar(Grammar.from_json_schema({**SCHEMAS, **BESIDE}[name]), known)
    for _ in range(times(4, 1)):
        one, other = compiled.matcher(), Matcher(compiled)
        if budget:
            one.set_budget(budget)
            other.set_budget(budget)
        written = []
        for step in range(60):
            expected = mask_of(other)
            for again in (one, one.copy()):
                assert np.array_equal(mask_of(again), expected) and np.array_equal(mask_of(again), expected)
            ids = one.allowed_token_ids().tolist()
            assert ids == other.allowed_token_ids().tolist()
            assert one.is_complete == other.is_complete and one.forced_text() == other.forced_text()
            if one.is_terminated or not ids:
                break
            wrong = rng.randrange(-1, known.size + 1)
            assert one.copy().advance(wrong) == other.copy().advance(wrong)
            brackets = [i for i in ids if not {*known.tokens[i]}.isdisjoint(b"[]{}")]
            written.append(rng.choice(brackets if brackets and rng.random() < 0.4 else ids))
            assert one.advance(written[-1]) and other.advance(written[-1])
            if rng.random() < 0.25:
                back = rng.randint(0, min(4, len(written)))
                one.rollback(back)
                other.rollback(back)
                del written[len(written) - back :]
            if step % 10 == 9 and not budget:
                begun = compiled.matcher(b"".join(known.tokens[i] for i in written))
                assert np.array_equal(mask_of(begun), mask_of(other))
                assert begun.accepts(begun.allowed_token_ids()[:1]) == 1
                begun.advance(int(begun.allowed_token_ids()[0]))
                begun.reset()
                assert np.array_equal(mask_of(begun), mask_of(other))


@pytest.mark.skipif(native.kernel is None, reason="the C kernel isn't built")
def test_python_is_asked_of_no_mask_where_nothing_is_remembered(monkeypatch):
    known = small_vocabulary()
    compiled = compile_grammar(Grammar.from_json_schema(BESIDE["an array that is never opened"]), known)
    number = {token: i for i, token in enumerate(known.tokens)}
    text = [number[bytes((byte,))] for byte in b'{"t":"a [{b","o":[1,1,1]}']

    def write() -> None:
        matcher = compiled.matcher()
        for token in text:
            mask_of(matcher)
            assert matcher.advance(token)
        assert matcher.is_complete

    write()  # what each place rules out is found once

    def fill(*_):
        raise AssertionError("Python was asked")

    monkeypatch.setattr(Matcher, "_fill_any", fill)
    write()


def test_rollback_copies_and_batches():
    known = small_vocabulary()
    compiled = compile_grammar(Grammar.from_json_schema(STRINGS), known)
    number = {t: i for i, t in enumerate(known.tokens)}
    matcher = compiled.matcher()
    for token in (b"[", b'"', b"a"):
        assert matcher.advance(number[token])
    fork = matcher.copy()
    assert matcher.advance(number[b'","']) and fork.advance(number[b"b"]) and fork.advance(number[b'","'])
    assert matcher.advance(number[b"a"]) and fork.advance(number[b"a"])
    batch = BatchMatcher([matcher, fork])
    mask = batch.fill_bitmask()
    bits = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")
    assert bits[:, number[b'"']].tolist() == [0, 1]
    assert not matcher.advance(number[b'"']) and not matcher.advance(number[b'","'])
    assert matcher.accepts([number[b"b"], number[b'"'], number[b"]"]]) == 3
    matcher.rollback(2)
    assert matcher.advance(number[b'"']) and matcher.advance(number[b"]"]) and matcher.is_complete
    matcher.reset()
    assert not matcher.advance(number[b'["a","a"'])
    assert all(matcher.advance(number[token]) for token in (b"[", b'"a"', b","))
    assert matcher.forced_text() == b""


def test_what_must_come_is_forced():
    """Of the values left, one can be written."""
    schema = {**ANYTHING, "items": {"type": "boolean"}, "prefixItems": [{"type": ["string", "boolean"]}]}
    compiled = compile_grammar(Grammar.from_json_schema(schema, whitespace="compact"), small_vocabulary())
    assert compiled.matcher("[true,").forced_text() == b"false]"
    assert not compiled.grammar.is_prefix("[true,false,")


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ({"type": "object"}, '[{"a": 1}, {"a": 1'),
        ({"type": "array"}, "[[1], [1"),
        (TAG, '[{"k": "", "v": "é"}, {"v": "\\u00e9", "k": ""'),
    ],
)
def test_no_white_space_leaves_only_the_end_of_an_item_that_is_repeated(items, text):
    grammar = Grammar.from_json_schema({**ANYTHING, "items": items})
    for space in (" ", "\n"):
        assert not grammar.is_prefix(text + space)
        assert grammar.is_prefix(text.replace("1", "2", 1).replace('"k": ""', '"k": "a"', 1) + space)  # another item


@pytest.mark.parametrize("name", ["closed objects", "closed objects with little else"])
def test_a_closed_object_may_differ_up_to_its_last_member(name):
    grammar = Grammar.from_json_schema(SCHEMAS[name], whitespace="compact")
    if name == "closed objects":  # v may still come after k, but not after both
        assert grammar.is_prefix('[{"k":"a","v":"b"},{"k":"a"') and not grammar.is_prefix('[{"k":"a"},{"k":"a"}')
        assert not grammar.is_prefix('[{"k":"a","v":"bc"},{"k":"a","v":"bc"')
        assert grammar.is_prefix('[{"k":"a","v":"bc"},{"k":"a","v":"b')
    else:  # two members at most
        assert not grammar.is_prefix('[{"n":1,"c":"x"},{"c":"x","n":1,') and grammar.is_prefix('[{"n":1},{"n":1,"c":1')
        assert not grammar.is_prefix('[{"c":1,"n":1},{"n":1,"c":1')


def test_no_more_is_remembered_than_the_limit():
    grammar = Grammar.from_json_schema(STRINGS, limits=Limits(distinct=2))
    assert grammar.matches('["a", "b"]') and not grammar.is_prefix('["a", "b",')


def test_it_is_known_within_other_grammars():
    outer = Grammar.from_lark('%declare ARGS\nstart: "f" ARGS "g"').bind(ARGS=Grammar.from_json_schema(STRINGS))
    assert outer.remembers
    assert outer.matches('f["a", "b"]g') and not outer.matches('f["a", "a"]g')


@pytest.mark.parametrize(
    ("name", "begun", "repeated"),
    [
        ("nested", '[{"tags": ["a"', '[{"tags": ["a", "a"'),
        ("names of a pattern", '{"a": null, "b', '{"a": null, "a"'),
        ("a name asked for", '{"c": 1, "d', '{"c": 1, "c"'),
        ("closed objects", '[{"k": "a", "v": "b"}, {"k": "a"', '[{"k": "a", "v": "bc"}, {"v": "bc", "k": "a" '),
    ],
)
def test_a_saved_grammar_remembers(name, begun, repeated, tmp_path):
    known = small_vocabulary()
    compiled = compile_grammar(Grammar.from_json_schema(SCHEMAS[name]), known)
    compiled.save(tmp_path / "grammar")
    loaded = CompiledGrammar.load(tmp_path / "grammar", known)
    ids = [one.matcher(begun).allowed_token_ids().tolist() for one in (compiled, loaded)]
    assert loaded.grammar.remembers and ids[0] == ids[1]
    assert not loaded.grammar.is_prefix(repeated)


def test_what_cannot_remember_says_so():
    grammar = Grammar.from_json_schema(STRINGS)
    for write in (grammar.to_gbnf, grammar.to_regex, grammar.to_llguidance):
        with pytest.raises(GrammarError, match="uniqueItems"):
            write()
    with pytest.raises(VocabularyError, match="uniqueItems"):
        compile_grammar(grammar, Vocabulary([b'["', b'"]', b"a", b"</s>"], [3], [3]))


def follow(matcher, chance, budget):
    """A text written within a budget of tokens, each chosen by chance among the allowed ones."""
    known, text = matcher.compiled.vocabulary, b""
    for _ in range(budget + 1):
        ids = matcher.allowed_token_ids().tolist()
        chosen = chance.choice([i for i in ids if known.tokens[i].isascii()] or ids)
        assert matcher.advance(chosen)
        if chosen in known.eos_token_ids:
            return text.decode()
        text += known.tokens[chosen]
    raise AssertionError(f"not finished within the budget: {text!r}")


PATTERNED = {
    "strings that end alike": {**STRINGS, "items": {"type": "string", "pattern": "z$"}, "minItems": 3},
    "names that end alike": {
        "type": "object", "minProperties": 3, "additionalProperties": False,
        "properties": {"n": {"const": 1}}, "patternProperties": {"zz$": {"const": 2}},
    },
}  # fmt: skip
"""Random texts of these are long."""


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), *PATTERNED.values()], ids=[*SCHEMAS, *PATTERNED])
def test_a_text_is_finished_within_its_budget(schema):
    compiled = compile_grammar(Grammar.from_json_schema(schema), small_vocabulary())
    chance = random.Random(str(schema))
    least = compiled.matcher().fewest_tokens()
    for more in [0, 0, 1, 2, 5, 20, 60] * times(1, 20):
        matcher = compiled.matcher()
        matcher.set_budget(least + more)
        assert is_valid(schema, json.loads(follow(matcher, chance, least + more)))
    with pytest.raises(VocabularyError, match="too small"):
        compiled.matcher().set_budget(1)


def test_a_budget_over_a_real_vocabulary():
    known = vocabulary(NAMES[0])
    schema = {"type": "object", "properties": {"tags": {**STRINGS, "minItems": 2}}, "required": ["tags"]}
    compiled = compile_grammar(Grammar.from_json_schema(schema), known)
    chance = random.Random(3)
    for budget in (30, 60):
        matcher = compiled.matcher('{"tags": ["a"')
        matcher.set_budget(budget)
        rest = follow(matcher, chance, budget)
        assert is_valid(schema, json.loads('{"tags": ["a"' + rest))


def test_the_last_tokens_of_a_budget_differ():
    compiled = compile_grammar(Grammar.from_json_schema({**STRINGS, "minItems": 3}), small_vocabulary())
    matcher = compiled.matcher('["", "a", ')
    matcher.set_budget(4)
    assert follow(matcher, random.Random(1), 4)[1] not in '"a'
    with pytest.raises(VocabularyError, match="shortest way to finish takes 4"):
        compiled.matcher('["", "a", ').set_budget(3)
