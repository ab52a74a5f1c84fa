"""The C kernel and Python: the same masks, verdicts, forced text and budgets, all along any text."""

from __future__ import annotations

import gc
import itertools
import random
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import BatchMatcher, Grammar, GrammarError, Vocabulary, compile_grammar
from constrained.automaton import native
from constrained.errors import LimitError, VocabularyError
from constrained.limits import Limits
from tests.automaton.cases import CASES, knowledge
from tests.automaton.small_grammars import GRAMMARS, vocabularies
from tests.automaton.tokenizers import NAMES, vocabulary

pytestmark = pytest.mark.skipif(
    native.kernel is None, reason="the C kernel is not built: no C compiler, or CONSTRAINED_KERNEL=python"
)


def both(grammar: Grammar, vocab: Vocabulary):
    """The grammar compiled with the kernel and without."""
    kernel = native.kernel
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "kernel", None)
        plain = compile_grammar(grammar, vocab)
    compiled = compile_grammar(grammar, vocab)
    assert plain.engine is None and isinstance(compiled.engine, kernel.Engine)
    return compiled, plain


def mask(matcher) -> np.ndarray:
    out = np.full((1, matcher.compiled.vocabulary.words), -1, np.int32)
    matcher.fill_bitmask(out)
    return out[0]


def assert_same(matcher, plain) -> np.ndarray:
    """Everything that can be asked of a place; the ids allowed there."""
    row = mask(matcher)
    assert np.array_equal(row, mask(plain))
    ids = matcher.allowed_token_ids()
    assert np.array_equal(ids, plain.allowed_token_ids())
    assert np.array_equal(matcher.compiled.vocabulary.pack(ids), row)
    assert matcher.is_complete == plain.is_complete and matcher.is_terminated == plain.is_terminated
    assert matcher.forced_text() == plain.forced_text()
    assert matcher.state is plain.state
    return ids


def walk_both(matcher, plain, rnd: random.Random, steps: int, budget: int | None = None) -> None:
    """A random text with wrong tokens tried, taken back now and then."""
    if budget is not None:
        try:
            plain.set_budget(budget)
        except VocabularyError:
            with pytest.raises(VocabularyError, match="too small"):
                matcher.set_budget(budget)
            return
        matcher.set_budget(budget)
    size = matcher.compiled.vocabulary.size
    taken = 0
    for _ in range(steps):
        ids = assert_same(matcher, plain).tolist()
        other = rnd.randrange(-1, size + 2)
        assert matcher.copy().advance(other) == plain.copy().advance(other) == (other in ids)
        if not ids or matcher.is_terminated:
            break
        token = rnd.choice(ids)
        assert matcher.advance(token) and plain.advance(token)
        taken += 1
        if rnd.random() < 0.2:
            back = rnd.randint(0, taken)
            matcher.rollback(back)
            plain.rollback(back)
            taken -= back
    before = assert_same(matcher, plain)
    matcher.rollback(taken)
    plain.rollback(taken)
    assert_same(matcher, plain)
    matcher.reset()
    assert np.array_equal(mask(matcher), mask(matcher.compiled.matcher())), before


@pytest.mark.parametrize("name", GRAMMARS)
def test_small_vocabularies(name):
    rnd = random.Random(name)
    for vocab in vocabularies(name).values():
        try:
            pair = both(GRAMMARS[name], vocab)
        except VocabularyError:
            continue
        for budget in (None, None, 1, 2, 5):
            walk_both(pair[0].matcher(), pair[1].matcher(), rnd, 12, budget)


def test_keys_that_are_none_of_the_named_ones():
    rnd = random.Random(1)
    schema = {"properties": {"a": {"type": "null"}, "ab": False, "b": {"type": "string", "maxLength": 2}}}
    pieces = [
        b'{"',
        b'{"a',
        b'{"a"',
        b'ab"',
        b'b":',
        b'":',
        b'":1',
        b'a":null',
        b'":"',
        b'x"}',
        b"\\n",
        b'a\\"',
        b"aba",
    ]
    vocab = Vocabulary([*(bytes((b,)) for b in range(128)), *pieces, b""], [128 + len(pieces)])
    pair = both(Grammar.from_json_schema(schema, whitespace="compact"), vocab)
    for budget in (None, None, None, None, 20, 30):
        walk_both(pair[0].matcher(), pair[1].matcher(), rnd, 25, budget)


def test_json_strings_of_a_pattern_read_by_characters_and_later_by_their_classes():
    pieces = ["".join(word) for n in (2, 3) for word in itertools.product("abcdefAé", repeat=n)]
    pieces += [*"éß€😀", *(word + end for word in pieces[:30] for end in ('"', '"}', "\\n", "\\"))]
    cut = ["aé".encode()[:2], "a😀".encode()[:3], "😀".encode()[1:] + b"a"]
    words = [*(piece.encode() for piece in pieces), *cut]
    vocab = Vocabulary([*(bytes((b,)) for b in range(256)), *words, b""], [256 + len(words)])
    schema = {"type": "string", "pattern": r"^([^A]{2})*(A[^b]*)?$", "maxLength": 9}
    compiled, plain = both(Grammar.from_json_schema(schema), vocab)
    for text in ('"', '"a', '"ab', '"abé', '"aba', '"abaaA', '"ab€bé', '"ababab', '"abababAé', '"ababababA'):
        assert_same(compiled.matcher(text), plain.matcher(text))


@settings(max_examples=60)
@given(knowledge(), st.integers(0, 1000))
def test_random_knowledge_with_bound_slots(case, seed):
    text, bindings = case
    rnd = random.Random(seed)
    pieces = {"".join(rnd.choices("abmgtwd12.", k=rnd.randint(2, 4))).encode() for _ in range(30)}
    vocab = Vocabulary([*(bytes((b,)) for b in range(256)), *sorted(pieces), b""], [256 + len(pieces)])
    try:
        pair = both(Grammar.from_lark(text).bind(**bindings), vocab)
    except GrammarError:
        return  # no text at all: said at once, whichever way
    for _ in range(3):
        walk_both(pair[0].matcher(), pair[1].matcher(), rnd, 15)


@pytest.mark.parametrize("tokenizer", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_real_vocabularies(case, tokenizer):
    grammar, texts = CASES[case]
    pair = both(grammar, vocabulary(tokenizer))
    for text in texts:
        assert np.array_equal(mask(pair[0].matcher(text)), mask(pair[1].matcher(text))), text


@pytest.mark.parametrize("name", ["bounded text", "text, then text", "ambiguous", "tied slot", "counted groups"])
def test_what_is_computed_ahead_is_what_is_computed_on_the_way(name):
    vocab = vocabularies(name)["bytes and pieces"]
    ahead, plain = both(GRAMMARS[name], vocab)
    assert ahead.precompute() == plain.precompute() > 1
    rows = ahead.engine.rows
    for _ in range(5):
        walk_both(ahead.matcher(), plain.matcher(), random.Random(name), 12)
    assert ahead.engine.rows == rows, "no row is left to be made"


@pytest.mark.parametrize(
    "count, calls, looked_up",
    [(40, 1, 1), (256, 1, 1), (257, 1, 0), (12, 1, 0), (150, 1, 1), (40, 7, 1), (40, 8, 0)],
    ids=["some", "as many as may be", "too many", "too few", "one list of two", "in rules", "too deep in rules"],
)
def test_values_after_a_literal_are_looked_up_when_a_grammar_is_compiled(count, calls, looked_up):
    """Their tokens are the same after all such literals. Together they may be 256 values, in 8 rules or sequences."""
    values = " | ".join(f'"box {number}"' for number in range(100, 100 + count))
    others = " | ".join(f'"cup {number}"' for number in range(100, 100 + count if count == 150 else 101))
    start = 'start: "go to " r1 "." | "open " r1 "!" | "get " cup "?"'
    rules = [f"r{number}: r{number + 1}" for number in range(1, calls)]
    grammar = Grammar.from_lark("\n".join([start, *rules, f"r{calls}: {values}", f"cup: {others}"]))
    words = [f"{lead}{name} {end}" for lead in ("", " ") for name in ("box", "cup") for end in range(100, 140)]
    heads = ["go", " to", "open", "get", " ", " b", " bo", " box", " c", " cu", " cup", "0.", *map(chr, range(1, 128))]
    tokens = sorted({*words, *heads})
    compiled, plain = both(grammar, Vocabulary([*map(str.encode, tokens), b"<eos>"], eos_token_ids=[len(tokens)]))
    assert compiled.engine.rows == looked_up
    for text in (
        "",
        "go to",
        "go to ",
        "open",
        "open b",
        "get",
        "get cup 10",
        "go to box 10",
        "go to box 110",
        "open box 110!",
    ):
        assert_same(compiled.matcher(text), plain.matcher(text))


@pytest.mark.parametrize("numbers, looked_up", [(1, 1), (2, 2), (4, 5), (85, 5), (86, 0)])
def test_first_masks_of_a_choice_are_looked_up_when_it_is_compiled(numbers, looked_up):
    """At first, and after the first tokens of at least four of up to 256 texts. Some texts begin others."""
    commands = [f"{verb}{number}" for verb in ("examine ", "go to ", "go") for number in range(1, numbers + 1)]
    heads = ["ex", "amine", "go", " to", "to 1", "ne 2", *map(str, range(100)), *map(chr, range(32, 127))]
    tokens = sorted({*heads, *(f" {number}" for number in range(0, 90, 3)), "go1", "o2"})
    vocab = Vocabulary([*map(str.encode, tokens), b"<eos>"], eos_token_ids=[len(tokens)])
    compiled, plain = both(Grammar.from_choices([*commands, "look"]), vocab)
    assert compiled.engine.rows == looked_up
    for text in ("", "e", "ex", "exam", "examine", "examine 1", "go", "go ", "go to", "go1", "lo", "look"):
        assert_same(compiled.matcher(text), plain.matcher(text))
    for seed in range(10):
        walk_both(compiled.matcher(), plain.matcher(), random.Random(seed), 8)


@pytest.mark.parametrize("count", [2, 16, 17])
def test_literals_that_may_come_at_one_place(count):
    """At most 16 are followed in turns. Some are alike at first, or one is the beginning of another."""
    heads = [
        "look at ",
        "look ",
        "lo",
        "lock ",
        "log",
        "go to ",
        "go",
        "open ",
        "o",
        *(f"say {number}" for number in range(9, 17)),
    ]
    rules = " | ".join(f'"{head}" r{number % 3}' for number, head in enumerate(heads[:count]))
    grammar = Grammar.from_lark(f'start: {rules}\nr0: "k" start | "."\nr1: /[a-z]+/ ";"\nr2: "ok" | "o" "pen" start')
    parts = {head[:end] for head in heads for end in range(1, len(head) + 1)}
    ends = {head[at:] + end for head in heads for at in (0, 2, -1) for end in ("k", "kl", ".", "ok", "open", "a;", "x")}
    tokens = sorted(parts | ends | set(map(chr, range(1, 128))))
    compiled, plain = both(grammar, Vocabulary([*map(str.encode, tokens), b"<eos>"], eos_token_ids=[len(tokens)]))
    rnd = random.Random(count)
    for text in ("", "l", "lo", "look", "look ", "look at k", "lok", "lokgo"):
        if plain.automaton.read(text.encode()):
            assert_same(compiled.matcher(text), plain.matcher(text))
    for _ in range(10):
        walk_both(compiled.matcher(), plain.matcher(), rnd, 8)


DEEP = {
    "brackets": (Grammar.from_lark('start: s\ns: "(" s ")" | "a"'), b"("),
    "arrays": (Grammar.from_lark('start: v\nv: "[" [v ("," v)*] "]" | /[0-9]+/\n%ignore " "'), b"["),
    "objects": (Grammar.from_lark('start: v\nv: "{" [m ("," m)*] "}" | "1"\nm: /"[a-z]*"/ ":" v'), b'{"a":'),
    "rules in turn": (Grammar.from_lark('start: a\na: "(" b ")" | "x"\nb: "[" a "]" | "y"'), b"(["),
    "counts": (Grammar.from_lark('start: s\ns: "(" s "u"~0..3000 ")" | "a"'), b"("),
    "values": (
        Grammar.from_lark('%declare PLACE\nstart: s\ns: "(" s PLACE ")" | "a"').bind(PLACE=["here", "there"]),
        b"(",
    ),
    "arguments": (Grammar.from_lark('start: s{"q"}\ns{p}: "(" s{p} p ")" | "a"'), b"("),
}


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_stack_is_gone_down_a_few_times_and_not_once_a_level(name):
    (grammar, opening), depth = DEEP[name], 1_000
    tokens = [*(bytes((byte,)) for byte in range(256)), b"((", b"[[[", b"))", b"<eos>"]
    compiled, plain = both(grammar, Vocabulary(tokens, eos_token_ids=[259]))
    deep, same = compiled.matcher(opening * depth), plain.matcher(opening * depth)
    for budget in (None, 100 * depth, 8 * depth):
        deep.set_budget(budget)
        same.set_budget(budget)
        np.testing.assert_array_equal(mask(deep), mask(same))
    assert depth <= compiled.engine.frames_passed < 8 * depth


@pytest.mark.parametrize(("limit", "most"), [("closure", 8), ("entered", 12), ("mask_steps", 1)])
def test_what_is_made_ahead_passes_no_limit(limit, most):
    """It isn't needed yet: the place that needs it is refused when a text comes there, as without the kernel."""
    heads = [f'"{"verb" * 9}{number}" n' for number in range(8)]
    grammar = Grammar.from_lark(f'start: "x" act | "y"\nact: {" | ".join(heads)}\nn: "1" act?')
    vocab = Vocabulary([*(bytes([byte]) for byte in range(1, 127)), b"verb" * 9, b"<eos>"], eos_token_ids=[127])
    matcher = compile_grammar(grammar, vocab, limits=Limits(**{limit: most})).matcher()
    assert matcher.allowed_token_ids().tolist() == [ord("x") - 1, ord("y") - 1]
    with pytest.raises(LimitError, match=limit):
        matcher.advance(ord("x") - 1)
        mask(matcher)


def test_values_are_read_alike_whatever_follows_them():
    """What lies inside the values is found once; what reaches past them is found for each text that may follow."""
    values = [f"{name} {number}" for name in ("ant", "antler", "bee", "beetle") for number in range(1, 13)]
    grammar = Grammar.from_lark(
        'start: "a " thing "!" | "b " thing "?" start | "c " thing ("!" | "1" | /[0-9]+x/) | "d" " " thing "1" thing\n'
        "thing: " + " | ".join(f'"{value}"' for value in values)
    )
    parts = {value[:end] for value in values for end in range(1, len(value) + 1)}
    ends = {
        value[at:] + end for value in values for at in (0, 3, -2, -1) for end in ("!", "?", "1", "1!", "?a ", "1x", "9")
    }
    tokens = sorted({lead + part for part in parts | ends for lead in ("", " ")} | set("abcdx!?0123456789"))
    compiled, plain = both(
        grammar, Vocabulary([token.encode() for token in tokens] + [b"<eos>"], eos_token_ids=[len(tokens)])
    )
    for seed in range(12):
        walk_both(compiled.matcher(), plain.matcher(), random.Random(seed), 20)


def test_runs_of_characters_are_read_alike_whatever_follows_them():
    """Which tokens stay in a run's set is found once for a vocabulary; what may follow, for each text."""
    grammars = [
        'start: "n " /[0-9]+/ (";" | "\\n" "x"? | ";" start)',
        'start: "n " /[0-9]+/ /[a-z]+/ "." start?',
        'start: /[0-9]+/ /[0-9]/ "n"',
        'start: "n " /[^;]+/ ";" /[0-9]*/ "n"?',
        'start: /[^\\x00]+/ "\\x00" ("\\x00" | "x" start)',
        'start: (/[é-ü0-9]+/ ("n " | ";"))+',
        'start: (/[0-9]+/ | /[0-9a-z]+/ "x") ("." | ";")',
    ]
    rnd = random.Random(18)
    pieces = ["n ", " ", "0", "12", "345", "é", "ü", "ñ", ";", "\n", "x", "ab", ".", "\0", "\0x", ";n "]
    words = {"".join(rnd.choices(pieces, k=rnd.randint(1, 4))).encode() for _ in range(900)}
    words |= {word[at:] for word in words for at in (1, 2)} - {b""}
    tokens = sorted(words | {bytes((b,)) for b in range(256)})
    vocab = Vocabulary([*tokens, b"<eos>"], eos_token_ids=[len(tokens)])
    for lark in grammars:
        compiled, plain = both(Grammar.from_lark(lark), vocab)
        for seed in range(6):
            walk_both(compiled.matcher(), plain.matcher(), random.Random(seed), 15)


def test_a_batch_rewrites_only_what_changed_and_is_right_all_the_same():
    rnd = random.Random(5)
    vocab = Vocabulary([*(bytes((b,)) for b in range(256)), b"go to", b" desk", b"ab", b"abc", b""], [260])
    names = list(GRAMMARS)
    batch, singles = BatchMatcher(), []
    for _ in range(400):
        action = rnd.random()
        if len(batch) < 3 or action < 0.1:
            matcher = compile_grammar(GRAMMARS[rnd.choice(names)], vocab).matcher()
            if rnd.random() < 0.3:
                matcher.set_budget(12)
            assert batch.add(matcher) == len(singles)
            singles.append(matcher.copy())
        elif action < 0.15:
            row = rnd.randrange(len(batch))
            batch.remove(row)
            singles.pop(row)
        elif action < 0.2:
            a, b = rnd.randrange(len(batch)), rnd.randrange(len(batch))
            batch.swap(a, b)
            singles[a], singles[b] = singles[b], singles[a]
        elif action < 0.25:
            rows = [rnd.randrange(len(batch)) for _ in range(rnd.randint(3, 8))]
            batch.reorder(rows)
            singles = [singles[r].copy() for r in rows]
        else:
            tokens = [None if rnd.random() < 0.3 else int(rnd.choice([*m.allowed_token_ids(), 7])) for m in singles]
            assert batch.advance(tokens) == [t is None or m.advance(t) for m, t in zip(singles, tokens)]
        got = batch.fill_bitmask()
        assert got.shape == (len(singles), vocab.words)
        for row, matcher in enumerate(singles):
            assert np.array_equal(got[row], mask(matcher)), row


def test_a_compiled_grammar_that_nobody_holds_is_freed():
    vocab = Vocabulary([*(bytes((b,)) for b in range(256)), b""], [256])
    compiled = compile_grammar(Grammar.from_regex("a[bc]{1,3}d"), vocab)
    compiled.precompute()
    matcher = compiled.matcher()
    matcher.fill_bitmask(np.zeros((1, vocab.words), np.int32))
    automaton = weakref.ref(compiled.automaton)
    del compiled
    gc.collect()
    assert automaton() is not None, "the matcher needs it"
    del matcher
    gc.collect()
    assert automaton() is None


def test_a_matcher_that_never_began_is_refused():
    from constrained.automaton.matcher import NativeMatcher

    blank = NativeMatcher.__new__(NativeMatcher)
    with pytest.raises(ValueError, match="comes from CompiledGrammar.matcher"):
        blank.advance(1)


def test_a_mask_of_another_kind_is_refused():
    vocab = Vocabulary([bytes((b,)) for b in range(64)], [64])
    matcher = compile_grammar(Grammar.from_choices(["!"]), vocab).matcher()
    for wrong in (
        np.zeros((1, 1), np.int32),
        np.zeros((1, 3), np.int64),
        np.zeros((1, 3), np.float32),
        np.zeros(3, np.int32),
    ):
        with pytest.raises(VocabularyError, match=r"needs int32 \[rows, 3\]"):
            matcher.fill_bitmask(wrong)
    with pytest.raises(IndexError):
        matcher.fill_bitmask(np.zeros((1, 3), np.int32), 1)
    every_other = np.zeros((4, 6), np.int32)[::2, :4]
    matcher.fill_bitmask(every_other, -1)
    assert every_other[1].tolist() == [0, 2, 0, 0] and not every_other[0].any()
