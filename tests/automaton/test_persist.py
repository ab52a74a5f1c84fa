"""Compiled grammars from disk: the same masks as those of the grammar that was saved; and damaged files."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constrained import ActionKnowledge, CompiledGrammar, Grammar, LimitError, Limits, Vocabulary, compile_grammar
from constrained.automaton import native
from constrained.errors import ConstrainedError, DataError, VocabularyError
from constrained.grammar import nodes
from constrained.grammar.nodes import Rule

WORDS = [
    b"go to ",
    b"take ",
    b" from ",
    b"shelf",
    b"aa",
    b"ab",
    b"a,b",
    b"((",
    b"))",
    b" 1",
    "é".encode(),
    "日本".encode(),
]
VOCABULARY = Vocabulary([*(bytes((b,)) for b in range(256)), *WORDS, b"<eos>"], [256 + len(WORDS)])

HOUSE = ActionKnowledge.from_lark("household").bind_view(
    {
        "RECEPTACLE": ["shelf 1", "shelf 2", "desk 1"],
        "REACH": {"desk 1": ["desk 1", "drawer 1"]},
        "OBJECT": {"desk 1": ["mug 1", "mug 10"], "drawer 1": ["pen 1"]},
        "CLOSED": {"desk 1": ["drawer 1"]},
        "FITS": {"desk 1": ["desk 1"]},
        "EXAMINABLE": {"desk 1": ["desk 1", "mug 1"]},
        "CLEANER": {},
    }
)
TIES = '%declare S K\nstart: t{S, K} | u{S, K}\nt{x, k}: k ": " x "," x\nu{x, k}: "(" x ")" v{k} x?\nv{k}: "<" k ">"\n'

GRAMMARS = {
    "free text": lambda: Grammar.from_regex(r"[^\n\]]{1,300}\]"),
    "counted words": lambda: Grammar.from_regex("([a-z]{1,20} ){1,5000}[.é]"),
    "choices": lambda: Grammar.from_choices([f"go to shelf {i}" for i in range(1, 40)]),
    "nested brackets": lambda: Grammar.from_lark('start: e\ne: e "+" t | t\nt: "(" e ")" | /[0-9a]{1,5}/\n'),
    "ignored space": lambda: Grammar.from_lark('start: list{"a", ","}\nlist{x, s}: x (s x)*\n%ignore " "\n'),
    "a pattern of bounded length": lambda: Grammar.from_json_schema(
        {"type": "string", "maxLength": 9, "pattern": "^([^a]+ ){0,2}[^é]+$"}
    ),
    "a pattern of more states than a table has": lambda: Grammar.from_json_schema(
        {"type": "string", "pattern": "^(?!aab)[a-c]{600}[d-f]{600}$", "minLength": 300}
    ),
    "members in any order": lambda: Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": {"enum": ["u", True]}, "é": {"enum": [1, 2]}},
            "patternProperties": {"^x$": {"type": "boolean"}},
            "additionalProperties": False,
            "required": ["b"],
            "maxProperties": 3,
        },
        whitespace="single",
    ),
    "characters, or something else": lambda: Grammar.from_regex("([ab]|-[cé]){2,9}[.]"),
    "not ASCII": lambda: Grammar.from_regex("(日本|é)+[^a]?"),
    "arguments that grow": lambda: Grammar.from_lark('start: a{c}\nc: "c"\na{x}: x | "(" a{b{x}}\nb{y}: y ")"\n'),
    "a slot that is a grammar": lambda: Grammar.from_lark('%declare S T\nstart: S "-" T\n').bind(
        S=Grammar.from_regex("[ab]{1,9}"), T=Grammar.from_lark("%declare U\nstart: U+\n").bind(U=["x", "yy"])
    ),
    "values tied": lambda: Grammar.from_lark(TIES).bind(
        S={"k": ["a", "ab"], "kk": ["b"], "none": []}, K=["k", "kk", "none"]
    ),
    "values in an order of their own": lambda: Grammar.from_lark(
        "%import relations (before, at)\n%declare P S\nstart: t{P}\nt{p}: p before{P, p} at{S, p}\n"
    ).bind(P=["b", "ab", "a"], S={"ab": ["y", "x"], "a": ["z"]}),
    "a house": lambda: HOUSE.next_action(),
    "a house later": lambda: HOUSE.after("go to desk 1").next_action(),
    "a house's paths": lambda: HOUSE.grammar.bind(_STEP="\n"),
}


@pytest.fixture(params=["kernel", "python"])
def either(request, monkeypatch):
    """With the C kernel, and without."""
    if request.param == "python":
        monkeypatch.setattr(native, "kernel", None)
    elif native.kernel is None:
        pytest.skip("the C kernel is not built")


def wander(compiled: CompiledGrammar, seed: int, steps: int = 25) -> list[tuple[list[int], int]]:
    """Masks along a random text, and the tokens taken."""
    matcher, rnd, out = compiled.matcher(), random.Random(seed), []
    for _ in range(steps):
        ids = matcher.allowed_token_ids().tolist()
        token = rnd.choice(ids)
        out.append((ids, token))
        assert matcher.advance(token)
        if matcher.is_terminated:
            break
    return out


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_same_masks(name, tmp_path, either):
    compiled = compile_grammar(GRAMMARS[name](), VOCABULARY)
    compiled.save(tmp_path / "fresh")
    texts = [wander(compiled, seed) for seed in range(6)]
    compiled.save(tmp_path / "used")
    for file in ("fresh", "used"):
        again = CompiledGrammar.load(tmp_path / file, VOCABULARY)
        assert [wander(again, seed) for seed in range(6)] == texts
        fresh = compile_grammar(GRAMMARS[name](), VOCABULARY)
        assert wander(again, 77) == wander(fresh, 77), "and on ways not taken before"


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "b"},
        {"pattern": "^(a|é)*$", "minLength": 2, "maxLength": 5},
        {"pattern": "^(?!no)[n-p]", "maxLength": 3},
        {"not": {"pattern": "^x|/"}},
    ],
    ids=str,
)
def test_a_string_that_a_table_reads_is_exported_from_a_file(schema, tmp_path):
    compiled = compile_grammar(Grammar.from_json_schema({"type": "string"} | schema), VOCABULARY)
    compiled.save(tmp_path / "c")
    again = CompiledGrammar.load(tmp_path / "c", VOCABULARY).grammar
    pattern = re.compile(again.to_regex(), re.DOTALL)
    texts = {b'""', b'"b"', b'"\\/"', b'"no\\u006e"', b'"\\u00e9a"', b'"\\u00c9a"'}
    for seed in range(40):
        text = b"".join(VOCABULARY.tokens[token] for _, token in wander(compiled, seed)[:-1])
        texts |= {text, text[:-1], b'"' + text[2:], text[:-1] + b'b"'}
    found = {text.decode() for text in texts if begins_text(text)}
    assert {text for text in found if pattern.fullmatch(text)} == {text for text in found if again.matches(text)}
    for export in (again.to_gbnf(), again.to_llguidance()):
        assert export.isascii() and "::=" in export or export.startswith("start: ")


def begins_text(data: bytes) -> bool:
    """Whether it is UTF-8."""
    with suppress(UnicodeDecodeError):
        return bool(data.decode())
    return False


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(GRAMMARS)), st.integers(0, 10**6), st.integers(1, 40))
def test_saved_in_the_middle_of_a_text(tmp_path, name, seed, steps):
    compiled = compile_grammar(GRAMMARS[name](), VOCABULARY)
    wander(compiled, seed, steps)
    compiled.save(tmp_path / "c")
    assert wander(CompiledGrammar.load(tmp_path / "c", VOCABULARY), seed, 50) == wander(compiled, seed, 50)


def test_budgets_and_forced_text_go_on(tmp_path, either):
    compiled = compile_grammar(GRAMMARS["nested brackets"](), VOCABULARY)
    compiled.save(tmp_path / "c")
    matchers = [c.matcher(b"((((1") for c in (compiled, CompiledGrammar.load(tmp_path / "c", VOCABULARY))]
    for matcher in matchers:
        matcher.set_budget(4)
    assert np.array_equal(*(m.allowed_token_ids() for m in matchers))
    house = compile_grammar(GRAMMARS["a house later"](), VOCABULARY)
    house.save(tmp_path / "h")
    again = CompiledGrammar.load(tmp_path / "h", VOCABULARY)
    assert again.matcher("go").forced_text() == house.matcher("go").forced_text() != b""


def test_another_vocabulary_is_refused(tmp_path):
    compile_grammar(GRAMMARS["choices"](), VOCABULARY).save(tmp_path / "c")
    others = [Vocabulary([*VOCABULARY.tokens[:-2], b"other", b""], [len(VOCABULARY.tokens) - 1])]
    others.append(Vocabulary(VOCABULARY.tokens, [*VOCABULARY.eos_token_ids, 5]))
    others.append(Vocabulary(VOCABULARY.tokens, VOCABULARY.eos_token_ids, size=VOCABULARY.size + 1))
    for other in others:
        with pytest.raises(VocabularyError, match="was compiled for another vocabulary") as caught:
            CompiledGrammar.load(tmp_path / "c", other)
        assert "compile the grammar again" in caught.value.hint


def test_a_file_that_is_no_compiled_grammar(tmp_path):
    path = tmp_path / "c"
    for data in (b"", b"hello", b"\x80\x04\x95", b"{}", b"[]\n[]", b"[" * 100_000):
        path.write_bytes(data)
        with pytest.raises(DataError, match="is not a compiled grammar"):
            CompiledGrammar.load(path, VOCABULARY)
    with pytest.raises(DataError, match="can't read"):
        CompiledGrammar.load(tmp_path / "none", VOCABULARY)
    compile_grammar(GRAMMARS["choices"](), VOCABULARY).save(path)
    whole = path.read_bytes()
    rnd = random.Random(1)
    for at in [0, 20, len(whole) - 1, *(rnd.randrange(len(whole)) for _ in range(40))]:
        path.write_bytes(whole[:at])
        with pytest.raises(DataError):
            CompiledGrammar.load(path, VOCABULARY)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(DataError):
            CompiledGrammar.load(path, VOCABULARY)


def spoil(value, rnd: random.Random):
    """`value` with one number, name or list inside it changed."""
    if isinstance(value, dict):
        key = rnd.choice(sorted(value))
        return {**value, key: spoil(value[key], rnd)}
    if isinstance(value, list) and value and rnd.random() < 0.9:
        i = rnd.randrange(len(value))
        return [*value[:i], spoil(value[i], rnd), *value[i + 1 :]]
    return rnd.choice([-1, 0, 1, 10**6, 2**70, -(2**40), 1.5, "x", "start", None, [], [0], {}, True])


@pytest.mark.parametrize(
    "name", ["values tied", "nested brackets", "a house later", "a slot that is a grammar", "free text"]
)
def test_a_file_made_to_harm_is_an_error_or_a_grammar(name, tmp_path):
    """With its checksum right, any entry can be anything: then it is a grammar, or one of our errors."""
    path = tmp_path / "c"
    compile_grammar(GRAMMARS[name](), VOCABULARY).save(path)
    header, content = map(json.loads, path.read_bytes().split(b"\n"))
    rnd, refused = random.Random(name), 0
    for _ in range(250):
        body = json.dumps(content | {"objects": spoil(content["objects"], rnd)}).encode()
        path.write_bytes(json.dumps(header | {"sha256": sha256(body).hexdigest()}).encode() + b"\n" + body)
        try:
            found = CompiledGrammar.load(path, VOCABULARY, limits=Limits(positions=50_000, nodes=10_000))
        except (DataError, VocabularyError, LimitError):
            refused += 1
            continue
        assert isinstance(found.grammar, Grammar)
        with suppress(ConstrainedError):  # another grammar, perhaps one that no text completes
            wander(found, seed=0, steps=5)
    assert refused > 50


def test_a_string_without_a_table_is_read_by_a_rule(tmp_path):
    path = tmp_path / "c"
    compile_grammar(GRAMMARS["a pattern of more states than a table has"](), VOCABULARY).save(path)
    header, content = map(json.loads, path.read_bytes().split(b"\n"))
    (text,) = (entry for entry in content["objects"] if entry[0] == "JsonText")
    assert text[2] is None and content["objects"][text[1]][0] == "RuleRef"
    for other in (None, next(i for i, entry in enumerate(content["objects"]) if entry[0] == "LiteralText")):
        text[1] = other
        body = json.dumps(content).encode()
        path.write_bytes(json.dumps(header | {"sha256": sha256(body).hexdigest()}).encode() + b"\n" + body)
        with pytest.raises(DataError, match="is not a compiled grammar"):
            CompiledGrammar.load(path, VOCABULARY)


FLIP = """
import random, sys
from types import SimpleNamespace
from constrained import Grammar, Limits, Vocabulary, compile_grammar
from constrained.automaton import persist
from constrained.automaton.matcher import CompiledGrammar
from constrained.errors import ConstrainedError

persist.sha256 = lambda _: SimpleNamespace(hexdigest=lambda: "")  # as if every damaged file had the right checksum
vocabulary = Vocabulary([*(bytes((b,)) for b in range(256)), b"ab", b"((", b""], [258])
text = 'start: "go" (a | /[b-z]{1,9}/)~1..4 ["x" b]\\na: "(" a ")" | "ab"\\nb: "1" | "12" | "3"\\n'
compiled = compile_grammar(Grammar.from_lark(text), vocabulary)
compiled.matcher("go(((ab)))").allowed_token_ids()
path, rnd, refused = sys.argv[1], random.Random(3), 0
compiled.save(path)
whole = open(path, "rb").read()
for _ in range(400):
    data = bytearray(whole)
    for _ in range(rnd.randint(1, 3)):
        data[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
    open(path, "wb").write(data)
    try:
        matcher = CompiledGrammar.load(path, vocabulary, limits=Limits(positions=50_000, nodes=10_000)).matcher()
        for _ in range(6):
            ids = matcher.allowed_token_ids()
            if not len(ids) or not matcher.advance(int(rnd.choice(ids))):
                break
    except ConstrainedError as error:
        assert str(error)
        refused += 1
print(refused)
"""


def test_flipped_bits_are_an_error_or_a_grammar_and_never_a_crash(tmp_path):
    """In a process of its own, so that a crash would be seen; the checksums are blind there."""
    command = [sys.executable, "-c", FLIP, str(tmp_path / "c")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 100


def test_limits_hold_for_files(tmp_path):
    compile_grammar(Grammar.from_regex("[a-z]{1,5000}"), VOCABULARY).save(tmp_path / "c")
    with pytest.raises(LimitError) as caught:
        CompiledGrammar.load(tmp_path / "c", VOCABULARY, limits=Limits(repeat=100))
    assert caught.value.limit == "repeat"
    assert CompiledGrammar.load(tmp_path / "c", VOCABULARY, limits=Limits(values=7)).grammar.limits.values == 7


def test_rules_made_during_generation_are_not_saved(tmp_path):
    lazy = Rule("start", nodes.LazyText(lambda: nodes.literal("a"), 1))
    compiled = compile_grammar(Grammar({"start": lazy}, nodes.RuleRef("start")), VOCABULARY)
    with pytest.raises(DataError, match="made during generation"):
        compiled.save(tmp_path / "c")
