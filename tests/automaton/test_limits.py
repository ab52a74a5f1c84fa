"""A hostile grammar ends in an error that names the limit it passed, before time or memory run out."""

from __future__ import annotations

import dataclasses
import itertools
import random
import subprocess
import sys

import pytest

from constrained import Grammar, GrammarError, LimitError, Limits, Vocabulary, compile_grammar
from constrained.automaton import native

VOCABULARY = Vocabulary([*(bytes((b,)) for b in range(256)), b"aa", b"aaaa", b""], [258])
LETTERS = Vocabulary([b"a", b"bb", b""], [2])


def write(grammar: Grammar, text: bytes = b"", **limits) -> None:
    """Masks and steps all along `text`."""
    matcher = compile_grammar(grammar, VOCABULARY, limits=Limits(**limits) if limits else None).matcher()
    for byte in text:
        matcher.allowed_token_ids()
        assert matcher.advance(byte)
    matcher.allowed_token_ids()


def lark(text: str, **limits) -> Grammar:
    return Grammar.from_lark(text, limits=Limits(**limits))


def doubling(count: int, last: str) -> Grammar:
    return Grammar.from_lark(
        "\n".join(["start: r0", *(f"r{i}: r{i + 1} r{i + 1}" for i in range(count)), f"r{count}: {last}"])
    )


# name: (limit passed, what passes it)
HOSTILE = {
    "as many positions as alternatives": (
        "state_positions",
        lambda: write(
            Grammar.from_regex("|".join(f"[ab]{{{i}}}b" for i in range(1, 3_000))), b"a", state_positions=2_000
        ),
    ),
    "a few rules that read a text in ever more ways": (
        "joins",
        lambda: lark('start: n start "a" | "b"\nn: "x"? m\nm: "y"* start? |\n', joins=200).matches("yyxbaab" * 12),
    ),
    "rules that double, and may be nothing": ("closure", lambda: write(doubling(60, '"a"?'), closure=10_000)),
    "a mask of many positions": (
        "mask_steps",
        lambda: write(
            Grammar.from_regex("|".join(f"([ab]{{{i}}}|[a-c]{{{i}}})*{i}" for i in range(1, 100))),
            b"ab",
            mask_steps=2_000,
        ),
    ),
    "stacks to be joined in Python, of which each counts as many steps": (
        "mask_steps",
        lambda: write(lark("start: /((a|ab){1,400}b?){1,400}/\n", mask_steps=4_500), b"aab" * 4),
    ),
    "an argument that doubles, entered": (
        "entered",
        lambda: write(
            Grammar.from_lark('start: t{o}\no: "a"?\nt{x}: "(" t{u{x}} | x\nu{y}: y y\n'), b"(" * 40, entered=100_000
        ),
    ),
    "stacks beyond count": (
        "positions",
        lambda: write(Grammar.from_lark('start: "(" start ")" | "x"'), b"(" * 900, positions=1_000),
    ),
    "stacks of rules that are nothing": (
        "frames",
        lambda: write(
            Grammar.from_lark(
                'start: r0 "a" start "b" | "c"\n' + "".join(f"r{i}: r{i + 1} r{i + 1}\n" for i in range(10)) + "r10:\n"
            ),
            b"a" * 300,
            frames=5_000,
        ),
    ),
    "states beyond count": (
        "states",
        lambda: Grammar.from_regex("(a|b)*a(a|b){14}", limits=Limits(states=1_000)).matches(
            bytes(random.Random(1).choices(b"ab", k=5_000))
        ),
    ),
    "a long text": ("characters", lambda: lark("start: " + '"a" ' * 50_000, characters=100_000)),
    "a long pattern": ("characters", lambda: Grammar.from_regex("a" * 1_000_001)),
    "many rules": (
        "nodes",
        lambda: lark(
            "".join(f'{"start" if i == 0 else f"r{i}"}: "a" r{i + 1}\n' for i in range(500)) + 'r500: "b"', nodes=1_000
        ),
    ),
    "left recursion behind much that may be nothing": (
        "nodes",
        lambda: lark("start: " + "A? B? " * 1_500 + 'start "x" | "y"\nA: "a"\nB: "b"', nodes=100_000),
    ),
    "left recursion of all through all": (
        "nodes",
        lambda: lark(
            "start: r0\n" + "".join(f'r{i}: r{(i + 1) % 400} "a" | r{i * 7 % 400} "b" | "c"\n' for i in range(400)),
            nodes=100_000,
        ),
    ),
    "a repeat that no counter holds": ("repeat", lambda: Grammar.from_lark('start: "a"~1..99999999999999')),
    "a repeat in a pattern": ("repeat", lambda: Grammar.from_regex("a{1,1001}", limits=Limits(repeat=1_000))),
    "choices without end": (
        "values",
        lambda: Grammar.from_choices(map(str, range(10**12)), limits=Limits(values=5_000)),
    ),
    "long choices without end": (
        "value_bytes",
        lambda: lark("%declare S\nstart: S", value_bytes=10**6).bind(S=("x" * 10**5 + str(i) for i in range(10**9))),
    ),
    "values for every key": (
        "values",
        lambda: lark("%declare S K\nstart: t{S, K}\nt{x, k}: x k", values=50).bind(S={"k": map(str, range(10**9))}),
    ),
    "a shortest text that is far": (
        "search_positions",
        lambda: (
            compile_grammar(Grammar.from_regex("(ab){20000}"), VOCABULARY, limits=Limits(search_positions=5_000))
            .matcher()
            .set_budget(30_000)
        ),
    ),
    "a text that these tokens may not spell": (
        "search_steps",
        lambda: compile_grammar(
            Grammar.from_lark('start: "a" start "a" | "b" start "b" | "b"'), LETTERS, limits=Limits(search_steps=3_000)
        ),
    ),
    "the same, by the clock": (
        "search_milliseconds",
        lambda: compile_grammar(
            Grammar.from_lark('start: "a" start "a" | "b" start "b" | "b"'),
            LETTERS,
            limits=Limits(search_milliseconds=50),
        ),
    ),
    "masks ahead without end": (
        "precomputed",
        lambda: compile_grammar(
            Grammar.from_lark('start: "(" start ")" | "x"'), VOCABULARY, limits=Limits(precomputed=500)
        ).precompute(),
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_passed_limit_is_named(name):
    limit, attempt = HOSTILE[name]
    with pytest.raises(LimitError) as caught:
        attempt()
    error = caught.value
    assert error.limit == limit
    assert f"the limit `{limit}` is {error.value:,}" in error.message
    assert error.hint.startswith(f"limits=Limits({limit}=...) raises it")
    assert isinstance(error, GrammarError)


def test_raising_the_limit_lets_it_through():
    grammar = Grammar.from_regex("a{1,9}", limits=Limits(repeat=9))
    with pytest.raises(LimitError):
        Grammar.from_regex("a{1,10}", limits=Limits(repeat=9))
    nested = Grammar.from_lark('start: "(" start ")" | "x"', limits=Limits(positions=60))
    with pytest.raises(LimitError):
        write(nested, b"(" * 100)
    write(nested.with_limits(Limits()), b"(" * 100)
    write(nested, b"(" * 100, positions=1_000)
    assert grammar.bind().limits == grammar.limits == Limits(repeat=9)


def test_counts_are_what_a_counter_holds():
    with pytest.raises(GrammarError, match="limit repeat is 2147483648"):
        Limits(repeat=2**31)
    most = Limits(repeat=2**31 - 1)
    for pattern in ("[a-f]{1,2147483647}", "[^a]{2147483640,2147483647}", "(ab|c){1,2147483647}"):
        write(Grammar.from_regex(pattern, limits=most), b"ccc")


def test_what_is_only_large_is_let_through():
    write(Grammar.from_regex("(a|a)*(a*)*(a+a+)+b"), b"a" * 200)
    write(Grammar.from_lark("start: " + "[" * 60 + '"a"' + "]" * 60), b"a")
    write(Grammar.from_lark('start: ("a" "b"?)~1..1000000000'), b"abab")
    write(
        Grammar.from_regex("[" + "".join(chr(0x1000 + 2 * i) for i in range(20_000)) + "]{1,5000}"),
        "\u1000\u1002".encode(),
    )
    slot = Grammar.from_lark('%declare S\nstart: S "," S').bind(S=[f"value {i}" for i in range(200_000)])
    write(slot, b"value 77,value 199999")
    matcher = compile_grammar(Grammar.from_regex("a{20000,}b"), VOCABULARY).matcher()
    matcher.set_budget(10**9)
    assert matcher.allowed_token_ids().tolist() == [97, 256, 257]


def test_imports_that_come_round_are_an_error(tmp_path):
    (tmp_path / "a.lark").write_text("%import .b.x\nstart: x\n")
    (tmp_path / "b.lark").write_text('%import .a.start\nx: "q" start | "z"\n')
    with pytest.raises(GrammarError, match="files import each other"):
        Grammar.from_lark(tmp_path / "a.lark")


@pytest.mark.parametrize("value", [0, -1, 1.5, "10", True, None])
def test_a_limit_is_a_whole_number_above_0(value):
    for field in dataclasses.fields(Limits):
        with pytest.raises(GrammarError, match=f"limit {field.name} is"):
            Limits(**{field.name: value})


@pytest.mark.parametrize(
    ("limit", "kernel"),
    [
        *itertools.product([{"frames": 400}, {"positions": 600}, {"states": 600}], [True, False]),
        ({"entered": 900}, True),
    ],
)
def test_texts_written_before_are_not_what_a_text_fails_by(limit, kernel, monkeypatch):
    """Brackets of two kinds, in every order: each text needs stacks that no text before it had."""
    if not kernel:
        monkeypatch.setattr(native, "kernel", None)
    grammar = Grammar.from_lark('start: "(" start ")" | "[" start "]" | "x"', limits=Limits(**limit))
    compiled, first = compile_grammar(grammar, VOCABULARY), None
    for brackets in itertools.product(b"([", repeat=9):
        matcher = compiled.matcher()
        first = first or matcher
        for byte in brackets:
            assert matcher.advance(byte) and matcher.allowed_token_ids().tolist() == sorted(b"([x")
    assert matcher.compiled is not compiled and first.compiled is compiled
    assert all(first.advance(byte) for byte in b"x" + b")" * 9)  # the first text goes on in what it began with
    assert first.is_complete


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_with_the_default_limits_memory_stays_bounded():
    """In a process of its own: by the system's word, under a gigabyte with all that Python takes."""
    program = """
from pathlib import Path
from constrained import Grammar, LimitError

attempts = {
    "state_positions": lambda: Grammar.from_regex("|".join(f"[ab]{{{i}}}b" for i in range(1, 11_000))).matches("a" * 500),
    "closure": lambda: Grammar.from_lark(
        "\\n".join(["start: r0", *(f"r{i}: r{i + 1} r{i + 1}" for i in range(60)), 'r60: "a"?'])
    ).matches("a"),
    "value_bytes": lambda: Grammar.from_lark("%declare S\\nstart: S").bind(S=("x" * 10**6 + str(i) for i in range(10**9))),
    "nodes": lambda: Grammar.from_lark("start: " + "A? B? " * 1000 + 'start "x" | "y"\\nA: "a"\\nB: "b"'),
}
for limit, attempt in attempts.items():
    try:
        attempt()
    except LimitError as error:
        assert error.limit == limit, error
    else:
        raise AssertionError(limit)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""  # noqa: E501
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # not getrusage's peak: that begins with the size of the process it was started from
    assert int(done.stdout) * 1024 < 1 << 30
