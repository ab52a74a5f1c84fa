"""Whatever Python hands to the C kernel is checked there: wrong numbers are exceptions, never a crash."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from constrained import Grammar, LimitError, Limits, Vocabulary, compile_grammar
from constrained.automaton import native
from constrained.automaton.bridge import (
    ALT,
    ASKED,
    CHOICES,
    EXCEPT,
    JSON_TEXT,
    LITERAL,
    LOOP,
    REPEAT,
    SEQ,
    TEXT,
    Bridge,
)
from constrained.grammar import nodes as n
from constrained.grammar.charset import charset
from constrained.grammar.json_text import Table

if native.kernel is None:
    pytest.skip("the C kernel is not built: no C compiler, or CONSTRAINED_KERNEL=python", allow_module_level=True)
KERNEL = native.kernel

VOCABULARY = Vocabulary([*(bytes((b,)) for b in range(256)), b"ab", b"abc", b"go", b""], [259])
LETTERS = charset([(0x61, 0x7A), (0xE9, 0xE9)])
VALUES = (b"ab", b"abc", b"b")
LOOPS = Grammar.from_regex("([a-zé]|-[!]){1,9}").automaton
TABLE = Table((0, 98, 0xD800, 0xE000), (0, 1, -1, 0), ((1, -1, -1), (-1, 0, -1)), (True, False))
ODD_NUMBERS = (-(2**70), -(2**31) - 1, -(2**31), -2, -1, 1, 2, 3, 4, 5, 100, 2**31 - 1, 2**31, 2**70)
WRONG = (
    *ODD_NUMBERS,
    None,
    "x",
    b"x",
    1.5,
    (),
    [],
    {},
    object(),
    SimpleNamespace(number=3),
    SimpleNamespace(number=-7),
)
REFUSED = (ValueError, TypeError, OverflowError, AttributeError)


def table(**wrong) -> SimpleNamespace:
    """The parts of `TABLE`, some of them wrong."""
    names = ("starts", "classes", "after", "ends", "fewest")
    return SimpleNamespace(**{name: getattr(TABLE, name) for name in names} | wrong)


@pytest.fixture
def engine():
    return compile_grammar(Grammar.from_regex("[a-zé]{1,5}(ab|abc|b)!"), VOCABULARY).engine


def positions() -> list[tuple]:
    """A right position of each kind."""
    return [
        (LITERAL, b"abc", None, 1, 0, 0, None),
        (CHOICES, VALUES, None, 0, 3, 0, None),
        (CHOICES, VALUES, None, 0, 2, 1, "x"),
        (TEXT, LETTERS, None, 1, 5, None, None),
        (TEXT, LETTERS, None, 0, -1, next(s for s in LETTERS.edges(None).values() if s[0]), None),
        (EXCEPT, VALUES, None, 0, 3, 0, LETTERS),
        (EXCEPT, VALUES, None, 0, 2, 2, LETTERS),
        (LOOP, LETTERS, None, 0, 9, None, LOOPS.start.positions[0].loop),
        (JSON_TEXT, TABLE, None, 0, -1, 0, None),
        (JSON_TEXT, TABLE, None, 1, 5, 0, None),
        (JSON_TEXT, TABLE, None, 0, 5, 2 << 28, None),
    ]


def test_right_positions_have_masks(engine):
    for position in positions():
        assert np.frombuffer(engine.row([position]), np.int32).any(), position


@pytest.mark.parametrize(
    "wrong",
    [
        (LITERAL, b"abc", None, 3, 0, 0, None),
        (LITERAL, b"abc", None, -1, 0, 0, None),
        (LITERAL, b"", None, 0, 0, 0, None),
        (LITERAL, "abc", None, 0, 0, 0, None),
        (LITERAL, bytearray(b"a"), None, 0, 0, 0, None),
        (CHOICES, VALUES, None, -1, 3, 0, None),
        (CHOICES, VALUES, None, 0, 4, 0, None),
        (CHOICES, VALUES, None, 2, 2, 0, None),
        (CHOICES, VALUES, None, 0, 3, 1, None),
        (CHOICES, VALUES, None, 0, 2, 2, None),
        (CHOICES, VALUES, None, 0, 1, 9, None),
        (CHOICES, (), None, 0, 0, 0, None),
        (CHOICES, (b"",), None, 0, 1, 0, None),
        (CHOICES, (b"b", b"a"), None, 0, 2, 0, None),
        (CHOICES, (b"a", "b"), None, 0, 2, 0, None),
        (CHOICES, [b"a"], None, 0, 1, 0, None),
        (CHOICES, VALUES, None, 0, 3, 0, 7),
        (TEXT, LETTERS, None, -1, 5, None, None),
        (TEXT, LETTERS, None, 3, 2, None, None),
        (TEXT, LETTERS, None, 0, 0, None, None),
        (TEXT, LETTERS, None, 0, -2, None, None),
        (TEXT, LETTERS, None, 0, 5, (9, 9, 9), None),
        (TEXT, object(), None, 0, 5, None, None),
        (EXCEPT, b"abc", None, 0, 0, 0, LETTERS),
        (EXCEPT, VALUES, None, 0, 1, 0, None),
        (EXCEPT, VALUES, None, 0, 1, 9, LETTERS),
        (EXCEPT, VALUES, None, 0, 9, 0, LETTERS),
        (LOOP, LETTERS, None, 0, 1, None, None),
        (JSON_TEXT, TABLE, None, 2, -1, 0, None),
        (JSON_TEXT, TABLE, None, -1, -1, 0, None),
        (JSON_TEXT, TABLE, None, 0, -2, 0, None),
        (JSON_TEXT, TABLE, None, 0, -1, 1, None),
        (JSON_TEXT, TABLE, None, 0, -1, 1 << 28, None),
        (JSON_TEXT, TABLE, None, 0, -1, 7 << 28, None),
        (JSON_TEXT, TABLE, None, 0, -1, 3 << 28 | 4 << 24, None),
        (JSON_TEXT, object(), None, 0, -1, 0, None),
        (JSON_TEXT, table(starts=(0, 98, 90, 0xE000)), None, 0, -1, 0, None),
        (JSON_TEXT, table(starts=(1, 98, 0xD800, 0xE000)), None, 0, -1, 0, None),
        (JSON_TEXT, table(classes=(0, 1, 0)), None, 0, -1, 0, None),
        (JSON_TEXT, table(classes=(0, 2, 0, 0)), None, 0, -1, 0, None),
        (JSON_TEXT, table(after=((1, -1, -1), (-1, 2, -1))), None, 0, -1, 0, None),
        (JSON_TEXT, table(after=((1, -1, -1),)), None, 0, -1, 0, None),
        (JSON_TEXT, table(fewest=(0, -1)), None, 0, -1, 0, None),
        (JSON_TEXT, table(ends=(0, "x")), None, 0, -1, 0, None),
        (7, None, None, 0, 0, 0, None),
        (-1, None, None, 0, 0, 0, None),
        (LITERAL, b"abc", SimpleNamespace(number=2**30), 0, 0, 0, None),
        (LITERAL, b"abc", SimpleNamespace(number=-1), 0, 0, 0, None),
        (LITERAL, b"abc", SimpleNamespace(number="x"), 0, 0, 0, None),
        (LITERAL, b"abc", object(), 0, 0, 0, None),
        (LITERAL, b"abc", SimpleNamespace(number=0), 0, 0, 0, None),  # another frame has that number
        (),
        (LITERAL, b"abc"),
        None,
        7,
    ],
)
def test_wrong_positions_are_refused(engine, wrong):
    for call in (
        lambda: engine.row([wrong]),
        lambda: engine.row([positions()[0], wrong]),
    ):
        with pytest.raises(REFUSED):
            call()
    assert engine.row([positions()[0]]), "and it works as before"


def test_any_field_of_a_position_may_be_anything(engine):
    rnd = random.Random(0)
    for _ in range(3_000):
        fields = list(rnd.choice(positions()))
        for _ in range(rnd.randint(1, 3)):
            fields[rnd.randrange(7)] = rnd.choice(WRONG)
        try:
            row = np.frombuffer(engine.row([tuple(fields)]), np.int32)
            assert len(row) == VOCABULARY.words
        except REFUSED:
            pass


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        [None],
        [()],
        [(LITERAL, b"a", None, 5, 0, 0, None)],
        [(CHOICES, VALUES, None, 0, 9, 0, None)],
        [(9, None, None, 0, 0, 0, None)],
        [(LITERAL, b"a", SimpleNamespace(number=2**40), 0, 0, 0, None)],
    ],
)
def test_the_bridges_successors_are_checked(answer):
    automaton = Grammar.from_choices(["ab", "abc"]).automaton

    class Wrong(Bridge):
        types = (int,) * len(Bridge.types)  # no node is one, so all are asked for

        def construct(self, node, env):
            return (ASKED, *super().construct(node, env)[1:])

        def enter(self, frame):
            return answer

    bridge, root = Wrong(automaton, lambda frame: answer, lambda frame: answer), automaton.root
    with pytest.raises(REFUSED):
        KERNEL.Engine(bridge, VOCABULARY.kernel_tokens, root, 99, 99, 10**6, 10**6, 10**5, 10**6)
    engine = KERNEL.Engine(bridge, VOCABULARY.kernel_tokens, None, 99, 99, 10**6, 10**6, 10**5, 10**6)
    for position in ((LITERAL, b"a", root, 0, 0, 0, None), (CHOICES, VALUES, root, 0, 3, 0, None)):
        with pytest.raises(REFUSED):
            engine.row([position])


@pytest.mark.parametrize(
    "asked", ["after_choice", "construct", "frame", "repeat", "may_be_empty", "join", "capped", "bounds", "tail"]
)
def test_what_the_bridge_says_of_frames_is_checked(asked):
    grammar = Grammar.from_lark("start: e\ne: (A | B | C) [e] [/[xy]{1,3}/]\nA: /a+/\nB: /[ab]+/\nC: /(a|b|ab)+/\n")
    for answer in WRONG:
        bridge = Bridge(grammar.automaton, lambda frame: frame, lambda frame: (0.0, 0.0))
        setattr(bridge, asked, lambda *_, answer=answer: answer)
        try:
            root = grammar.automaton.root
            engine = KERNEL.Engine(bridge, VOCABULARY.kernel_tokens, root, 9_999, 999, 10**6, 10**6, 10**5, 10**6)
            core = KERNEL.Core()
            assert core._begin(None, engine, b"", (260 - 1,), False)
            core._left = 30
            for byte in b"abababababa":
                core.fill_bitmask(np.zeros((1, VOCABULARY.words), np.int32))
                core.advance(byte)
        except (*REFUSED, LimitError):
            pass
    position = (CHOICES, VALUES, grammar.automaton.root, 0, 3, 0, "x")
    if asked == "after_choice":
        with pytest.raises(REFUSED):
            engine.row([position])


def test_the_bridges_constructs_are_checked():
    grammar = Grammar.from_lark('start: (("a" | /[bc]/ | "dd"~2..3)+ rest)?\nrest: "x" start? ("y"?)~4\n')
    automaton, answers = grammar.automaton, []
    rnd, kinds = random.Random(2), (ALT, ASKED, LITERAL, REPEAT, SEQ)

    class Wrong(Bridge):
        types = (int,) * len(Bridge.types)

        def construct(self, node, env):
            found = list(super().construct(node, env))
            answers.append(tuple(found))
            if rnd.random() < 0.3:
                found[rnd.randrange(len(found))] = rnd.choice((*WRONG, *kinds, rnd.choice(answers)))
            return tuple(found)

    for _ in range(300):
        bridge = Wrong(automaton, lambda frame: frame, lambda frame: (0.0, 0.0))
        try:
            root = automaton.root
            engine = KERNEL.Engine(bridge, VOCABULARY.kernel_tokens, root, 999, 99, 10**6, 10**6, 10**5, 10**6)
            core = KERNEL.Core()
            core._begin(None, engine, b"", (259,), False)
            for byte in b"abxadddxyy":
                core.fill_bitmask(np.zeros((1, VOCABULARY.words), np.int32))
                core.advance(byte)
        except (*REFUSED, LimitError, KeyError):
            pass


@pytest.mark.parametrize(
    "node",
    [
        n.Seq(7),
        n.Alt(None),
        n.LiteralText("a"),
        n.Chars("a"),
        n.RuleRef("start", 3),
        n.RuleRef("missing"),
        n.Choices((b"b", b"a")),
        n.Choices(("a",)),
        n.Repeat(n.Seq(()), None, 1),
        n.Repeat(n.Seq(()), -1, 1),
        n.Repeat(n.Chars("a"), 0, 2**40),
    ],
)
def test_nodes_that_the_kernel_reads_by_itself_are_checked(node):
    automaton = Grammar.from_choices(["ab", "abc"]).automaton
    bridge = Bridge(automaton, lambda frame: frame, lambda frame: (0.0, 0.0))
    bridge.after_choice = lambda *_: automaton.frames.frame(node, automaton.root.env, None)
    engine = KERNEL.Engine(bridge, VOCABULARY.kernel_tokens, None, 99, 99, 10**6, 10**6, 10**5, 10**6)
    with pytest.raises((*REFUSED, KeyError)):
        engine.row([(CHOICES, VALUES, automaton.root, 0, 3, 0, "x")])


@pytest.mark.parametrize("types", [None, (), (n.LiteralText,), [n.LiteralText] * 7, (7,) * 7])
def test_the_bridges_types_of_nodes_are_checked(types):
    bridge = Bridge(Grammar.from_choices(["ab"]).automaton, lambda frame: frame, lambda frame: (0.0, 0.0))
    bridge.types = types
    with pytest.raises(REFUSED):
        KERNEL.Engine(bridge, VOCABULARY.kernel_tokens, None, 99, 99, 10**6, 10**6, 10**5, 10**6)


def test_an_engine_is_made_once_and_from_what_fits(engine):
    automaton = Grammar.from_choices(["ab"]).automaton
    bridge = Bridge(automaton, lambda frame: frame, lambda frame: (0, 0))
    root = automaton.root
    for arguments in (
        (bridge, VOCABULARY.kernel_tokens, root, 0, 9, 9, 9, 9, 9),
        (bridge, VOCABULARY.kernel_tokens, root, 9, -1, 9, 9, 9, 9),
        (bridge, VOCABULARY.kernel_tokens, root, 9, 9, 9, 2**70, 9, 9),
        (bridge, VOCABULARY.kernel_tokens, SimpleNamespace(number=0), 9, 9, 9, 9, 9, 9),
        (bridge, VOCABULARY.kernel_tokens, 7, 9, 9, 9, 9, 9, 9),
        (bridge, VOCABULARY, root, 9, 9, 9, 9, 9, 9),
        (object(), VOCABULARY.kernel_tokens, root, 9, 9, 9, 9, 9, 9),
        (bridge, KERNEL.Tokens.__new__(KERNEL.Tokens), root, 9, 9, 9, 9, 9, 9),
        (),
    ):
        with pytest.raises(REFUSED):
            KERNEL.Engine(*arguments)
    with pytest.raises(TypeError):
        engine.__init__(bridge, VOCABULARY.kernel_tokens, root, 9, 9, 9, 9, 9, 9)
    blank = KERNEL.Engine.__new__(KERNEL.Engine)
    for call in (
        lambda: blank.row([]),
        lambda: blank.precompute(3),
        lambda: KERNEL.Core()._begin(None, blank, b"", (), False),
    ):
        with pytest.raises(ValueError):
            call()
    assert blank.nbytes > 0 and blank.rows == 0


def test_the_most_positions_to_visit_is_checked(engine):
    for most in ("x", None, 2**70):
        with pytest.raises(REFUSED):
            engine.precompute(most)
    assert engine.precompute(-5) == -1


def test_a_vocabularys_arrays_are_checked():
    right = VOCABULARY.flat, VOCABULARY.lengths, VOCABULARY.sorted_ids, VOCABULARY.ranks, VOCABULARY.size
    KERNEL.Tokens(*right)
    rnd = random.Random(1)
    for _ in range(400):
        arrays = [array.copy() for array in right[:4]]
        which = rnd.randrange(5)
        size = right[4]
        if which == 4:
            size = rnd.choice([-1, 0, 1, 255, 259, 261, 2**31 - 1])
        elif rnd.random() < 0.5:
            index = rnd.randrange(len(arrays[which]))
            value = rnd.choice([0, 1, 255]) if which == 0 else rnd.choice([-(2**31), -2, -1, 0, 1, 260, 2**31 - 1])
            if arrays[which][index] == value:
                continue
            arrays[which][index] = value
        else:
            arrays[which] = arrays[which][: rnd.randrange(len(arrays[which]))]
        try:
            KERNEL.Tokens(*arrays, size)
        except ValueError:
            continue
        assert which == 0, "other bytes can be in order, too"
    for wrong in ((), right[:4], (*right, 1), (None, *right[1:]), (*right[:4], "x"), (*right[:4], 2**40)):
        with pytest.raises((TypeError, BufferError, OverflowError)):
            KERNEL.Tokens(*wrong)
    with pytest.raises(ValueError):
        KERNEL.Tokens.__new__(KERNEL.Tokens).prepare_text()


def test_a_matchers_arguments_are_checked(engine):
    for arguments in (
        (None, engine, b"", (260,), False),
        (None, engine, b"", (-1,), False),
        (None, engine, b"", (2**70,), False),
        (None, engine, b"", ("x",), False),
        (None, engine, b"", tuple(range(KERNEL.MAX_EOS + 1)), False),
        (None, engine, "x", (), False),
        (None, None, b"", (), False),
        (),
    ):
        core = KERNEL.Core()
        with pytest.raises(REFUSED):
            core._begin(*arguments)
        with pytest.raises(ValueError):
            core._forced(5)
    matcher = compile_grammar(Grammar.from_regex("[a-z]{1,5}"), VOCABULARY).matcher()
    with pytest.raises(ValueError):
        matcher._begin(None, engine, b"", (), False)
    for token in (-(2**70), -1, 260, 2**31, 2**63, 2**70, 1.5e9):
        assert not matcher.advance(token)
    for token in (None, "x", b"", [], object(), float("nan")):
        with pytest.raises((TypeError, ValueError)):
            matcher.advance(token)
    for count in (-1, 1, 2**31, 2**70, None, "x"):
        with pytest.raises(REFUSED):
            matcher.rollback(count)
    with pytest.raises(TypeError):
        matcher.rollback(1, 2)
    for wrong in (-1, 2**70, "x"):
        for name in ("_left", "_spare", "_ask"):
            with pytest.raises(REFUSED):
                setattr(matcher, name, wrong)
        with pytest.raises(REFUSED):
            matcher._go_to([wrong])
    for limit in ("x", None, 2**70):
        with pytest.raises(REFUSED):
            matcher._forced(limit)
    assert matcher._forced(-1) == b"" and matcher.advance(ord("a"))


def test_a_batchs_rows_are_checked(engine):
    for wrong in ((-1, 3), (3, 0), (3, -1), (2**40, 3), ("x", 3), (3,), ()):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            KERNEL.Rows(*wrong)
    rows = KERNEL.Rows(2, VOCABULARY.words)
    matcher = compile_grammar(Grammar.from_regex("[a-z]{1,5}"), VOCABULARY).matcher()
    for wrong in (None, (), [None], [KERNEL.Core()], [matcher] * 3, [matcher, 7]):
        with pytest.raises((TypeError, ValueError)):
            rows.fill(wrong)
    narrow = Vocabulary([b"a", b"b", b""], [2])
    with pytest.raises(TypeError, match="over the batch's vocabulary"):
        rows.fill([compile_grammar(Grammar.from_choices(["ab"]), narrow).matcher()])
    for threads in (0, -1, 65, 2**40, "x", None):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            rows.fill([matcher], threads)
    assert rows.fill([matcher, matcher]) == [] and rows.fill([matcher], 2) == []
    blank = KERNEL.Rows.__new__(KERNEL.Rows)
    with pytest.raises(ValueError):
        blank.fill([matcher])
    assert not memoryview(blank).nbytes


def test_a_list_that_changes_while_it_is_read(engine):
    """Python runs in the middle of a call, and may change what the kernel is looking at."""
    described = []

    class Sly:
        @property
        def number(self):
            described.clear()
            raise ValueError("caught")

    described += [(LITERAL, b"abc", Sly(), 0, 0, 0, None), *positions()]
    with pytest.raises(ValueError, match="caught"):
        engine.row(described)


def test_limits_are_those_of_the_grammar():
    compiled = compile_grammar(
        Grammar.from_regex("[a-z]{1,5}"), VOCABULARY, limits=Limits(frames=2**31, mask_steps=2**40)
    )
    assert len(compiled.matcher().allowed_token_ids()) > 26
