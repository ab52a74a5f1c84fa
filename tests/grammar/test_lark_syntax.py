"""Random grammars over the whole of lark's syntax: the engine, the chart, and lark's parser on the same texts.

The chart is exact and is held against lark's parser as it goes: what lark accepts, the chart must, and the other way
round where every terminal is one that `re`, which takes the first alternative that fits, reads wholly.
``pytest --hypothesis-profile=thousands`` makes thousands of grammars of it.
"""

from __future__ import annotations

import random

from hypothesis import assume, event, given
from hypothesis import strategies as st
from lark.exceptions import LarkError

from constrained import Grammar, GrammarError
from tests.grammar.chart import Chart
from tests.grammar.oracles import completion, examples, lark_accepts, mutate, sample, words

LONGEST = 4
"""Characters of the texts that are all tried."""

WHOLE = [
    '"a"',
    '"b"',
    '"ab"',
    '"c"',
    '"bc"',
    '"A"i',
    '"aB"i',
    '"a".."b"',
    "/[ac]/",
    "/a+/",
    "/[ab]{1,2}c/",
    "/[^a\\n ,]/",
    "/b*c/",
]
"""Tokens whose texts `re` reads wholly, whatever follows."""
CUT = ["/a|ab/", "/(a|b)*c?/", "/(b|ba|a){1,2}/", "/a?/", "/(?:ab|a)(?:c|bc)?/", "/(?i:A)b?/", "/[a-c]{,2}/"]
"""Tokens of which `re` takes only the first that fits, or that may be empty; lazy repeats have tests of their own."""
COUNTS = ["?", "*", "+", "~0..2", "~1..3", "~2"]


def pieces(atom):
    """Sequences, groups, options and repeats over `atom`."""
    sequence = st.lists(atom, min_size=1, max_size=2).map(" ".join)
    group = st.lists(sequence, min_size=1, max_size=2).map(" | ".join)
    return st.one_of(
        sequence,
        group.map("({})".format),
        group.map("[{}]".format),
        st.tuples(group, st.sampled_from(COUNTS)).map(lambda g: f"({g[0]}){g[1]}"),
    )


def expansions(atom, leaves: int = 3, empty: bool = True):
    """The right side of a definition."""
    sequence = st.lists(st.recursive(atom, pieces, max_leaves=leaves), min_size=0 if empty else 1, max_size=2).map(
        " ".join
    )
    return st.lists(sequence, min_size=1, max_size=3).map("\n    | ".join)


def terminals(draw, tokens, composed: bool = True) -> str:
    """Terminals, each of tokens and of those after it; else of one token, which a terminal of `WHOLE` ones may cut."""
    names = ["A", "BS", "C_1"]
    if not composed:
        return "".join(f"{name}: {draw(st.sampled_from(tokens))}\n" for name in names)
    atoms = [st.sampled_from([*tokens, *names[i + 1 :]]) for i in range(3)]
    return "".join(
        f"{name}{draw(st.sampled_from(['', '', '.2', '.-1']))}: {draw(expansions(atom, 2, empty=False))}\n"
        for name, atom in zip(names, atoms)
    )


@st.composite
def plain(draw, tokens, composed, rules=("start", "one", "_two")):
    """Rules that call any rule anywhere: left, right, hidden and mutual recursion, cycles, what may be empty."""
    atom = st.sampled_from([*tokens[:9], "A", "BS", "C_1", *tokens, *rules[1:], *rules])
    marks = {"start": ["", "?", "!"], "one": ["", "?", "?!"]}
    lines = [f"{draw(st.sampled_from(marks.get(rule, [''])))}{rule}: {draw(expansions(atom))}" for rule in rules]
    if draw(st.booleans()):  # else half of them have no end
        lines = [f'{line}\n    | "{end}"' for line, end in zip(lines, "abc")]
    changes = [
        "",
        "",
        '\n%extend one: "c" one',
        '\n%override _two: "b" | start "a"',
        '\n%extend A: "cc"',
        "\n%import common.LCASE_LETTER -> X\n%extend one: X",
    ]
    return "\n".join(lines) + draw(st.sampled_from(changes)) + "\n" + terminals(draw, tokens, composed) + draw(ignored)


ignored = st.sampled_from(
    ["", "", "", '%ignore " "\n', "%ignore /,+/\n", '%ignore " "\n%ignore ","\n', "%ignore C_1\n", '%ignore "c"\n']
)


@st.composite
def templates(draw, tokens):
    """Templates that call themselves and each other with their parameters, by turns and swapped."""
    token = st.sampled_from([*tokens, "A", "BS"])
    arg = st.one_of(
        token,
        token,
        st.sampled_from(["one", "pair{A, one}", 'pair{"a", BS}', 'nest{"b"}', '"a" | "b" "c"', '("a" one)*']),
    )
    inner = st.sampled_from(["x", "y", "x", "y", "pair{x, y}", "pair{y, x}", "nest{x}", *tokens[:4], "A", "one"])
    uses = st.one_of(inner, inner, st.sampled_from(["outer{x, y}", "outer{y, x}"]))
    pair = st.sampled_from(["p", "q", '"c"', "p", "q", "BS"])
    nest = st.sampled_from(["z", '"a"', "z", "nest{z}", '"c"', "pair{z, z}"])
    call = st.tuples(arg, arg).map(lambda a: f"outer{{{a[0]}, {a[1]}}}")
    first = draw(expansions(st.one_of(call, call, token, st.just("one")), 2))
    return "\n".join(
        [
            f"start: {draw(call)} {first}",
            f"outer{{x, y}}: {draw(expansions(uses, 3))}\n    | {draw(st.sampled_from(['x', 'y', 'x y', '']))}",
            f"pair{{p, q}}: {draw(expansions(pair, 2))}",
            f"nest{{z}}: {draw(expansions(nest, 2))}\n    | z",
            f"one: {draw(expansions(token, 2))}",
            terminals(draw, tokens) + draw(ignored),
        ]
    )


def check(text: str, exact: bool):
    """Engine and chart agree on every short text, on what begins one, and on random longer ones.

    Where a token begins as what is ignored does, the engine may take less of it than the longest stretch, but
    no text is refused for that, nor one admitted that has no reading at all.
    """
    try:
        chart, loose = Chart(text), Chart(text, any_stretch=True)
    except LarkError:
        assume(False)
    letters = "abc ," if "%ignore" in text else "abcA"
    longest = LONGEST if len(letters) < 5 else LONGEST - 1
    good = chart.texts(letters, longest)
    try:
        grammar = Grammar.from_lark(text)
    except GrammarError as error:
        if "can ever be complete" in error.message:
            assert not good
            event("no text at all")
            return
        assert "{" in text and "can't be eliminated" in error.message
        event("a template's left recursion refused")
        return
    event("no short text" if not good else "few texts" if len(good) < 20 else "many texts")
    for word in words(letters, longest):
        assert (word in good and chart.accepts(word)) <= grammar.matches(word) <= (word in good), word
    good = set(filter(grammar.matches, good))
    check_prefixes(grammar, loose, good, letters, longest)
    rnd = random.Random(text)
    for _ in range(4):
        word = sample(grammar, rnd, 12)
        assert loose.accepts(word), f"the engine writes {word!r}"
        spoilt = mutate(word, letters, rnd)
        assert chart.accepts(spoilt) <= grammar.matches(spoilt) <= loose.accepts(spoilt), spoilt
    check_lark(text, chart, good, rnd, letters, exact)


def check_prefixes(grammar: Grammar, chart: Chart, good: set[str], letters: str, longest: int):
    begun = {word[:i] for word in good for i in range(len(word) + 1)}
    for word in words(letters, longest - 1):
        if word in begun:
            assert grammar.is_prefix(word), f"{word!r} begins a text"
        elif grammar.is_prefix(word):
            whole = (word.encode() + completion(grammar, word.encode())).decode()
            assert chart.accepts(whole), f"{word!r} begins no text, not even {whole!r}"


def check_lark(text: str, chart: Chart, good: set[str], rnd: random.Random, letters: str, exact: bool):
    try:
        accepts = lark_accepts(text)
    except (LarkError, ValueError):  # tokens that may be empty
        return
    some = sorted(good)
    tried = {
        *rnd.sample(some, min(6, len(some))),
        *("".join(rnd.choices(letters, k=rnd.randint(0, 4))) for _ in range(6)),
    }
    for word in tried:
        try:
            accepted = accepts(word)
        except RuntimeError as error:  # lark's own, where text is ignored behind a start that is nullable
            assert "Please report this bug" in str(error)
            continue
        if accepted:
            assert chart.accepts(word), f"lark accepts {word!r}, the chart does not"
        else:
            assert not (exact and chart.accepts(word)), f"the chart accepts {word!r}, lark does not"


@examples(25)
@given(plain(WHOLE, composed=False))
def test_rules_of_every_kind_of_recursion(text):
    check(text, exact="%extend A" not in text)


@examples(25)
@given(plain(WHOLE + CUT, composed=True))
def test_terminals_are_their_full_language(text):
    check(text, exact=False)


@examples(25)
@given(templates(WHOLE))
def test_templates_of_every_kind_of_recursion(text):
    check(text, exact=False)
