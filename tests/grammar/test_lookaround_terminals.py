"""Terminals that look around: what they read among their neighbours, by a pattern with the terminal's between them.

lark's own parser is an oracle only where a token's verdict does not come from outside it: to try a shorter token, it
cuts the text off there.
"""

# ruff: noqa: E501  # one case, one line

from __future__ import annotations

import ast
import itertools
import random
import re
from pathlib import Path

import lark
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constrained import Grammar, GrammarError
from tests.grammar.looking import ALPHABET, patterns
from tests.grammar.oracles import assert_same_language, lark_accepts, mutate, sample, words

I, S, A, M = re.IGNORECASE, re.DOTALL, re.ASCII, re.MULTILINE  # noqa: E741  # as in `re`

# terminals: (grammar, alphabet, longest) that lark reads exactly, as no token's verdict comes from outside it

INSIDE = {
    "a string up to its quote": ('start: S ("," S)*\nS: /"(?:(?!").)*"/', '",a', 7),
    "a comment": (r'start: C+' + '\n' + r'C: "/*" /(?:(?!\*\/)[\s\S])*/ "*/"', "/*a", 7),
    "a lookbehind at another piece of the terminal": ('start: A "!"\nA: "x" /(?:(?<=x)a|(?<=y)b)/', "xab!", 4),
    "a lookahead at another piece of the terminal": ('start: A "!"\nA: /(?:a(?!b)|a(?=bb))/ ("b" | "c") "b"?', "abc!", 5),
    "in a terminal of terminals": ('start: B "!"\nB: A "c"+\nA: /(?:a(?=cc)|b)/', "abc!", 5),
    "between case-insensitive pieces": ('start: A ";"\nA: "x"i /(?:(?<=X)a|b)/', "xXab;", 3),
    "a keyword that is no name": ('start: NAME ";"\nNAME: /(?!if;)(?!in\\b)[a-z]+/', "ifn;", 4),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_a_terminal_that_asks_of_itself_means_what_lark_says(name):
    text, alphabet, longest = INSIDE[name]
    text += "\n"
    assert assert_same_language(Grammar.from_lark(text), lark_accepts(text), alphabet, longest)


# terminals whose neighbours decide: (grammar, the same as one regex, alphabet, longest)

BESIDE = {
    "a number that is cut nowhere": ('start: N ("," N)*\nN: /[0-9]+(?![0-9])/', r"\d+(?!\d)(,\d+(?!\d))*", "01,", 6),
    "a name that is no keyword": (
        'start: NAME ("(" NAME ")")? " "?\nNAME: /(?!if\\b)[a-z]+/', r"(?!if\b)[a-z]+(\((?!if\b)[a-z]+\))? ?", "ifx( )", 5),
    "words among ignored space": (
        'start: W ("," W)*\n%ignore " "\nW: /\\ba+\\b/', r" *\ba+\b *(, *\ba+\b *)*", "a, ", 6),
    "a lookbehind at the rule's text": ('start: "x" A | A\nA: /(?<=x)a|b/', r"x?(?:(?<=x)a|b)", "xab", 3),
    "a lookbehind where one thing precedes": ('start: "x" A\nA: /(?<=x)a|(?<!x)b/', r"x(?:(?<=x)a|(?<!x)b)", "xab", 3),
    "the same terminal in two places": (
        'start: A "x" | A "y"\nA: /a(?=x)|b(?=y)|c/', r"(?:a(?=x)|b(?=y)|c)x|(?:a(?=x)|b(?=y)|c)y", "abcxy", 3),
    "through rules that may be empty": (
        'start: A sep? e? "!"\nsep: ","\ne:\nA: /a+(?=[,!])/', r"a+(?=[,!]),?!", "a,!", 5),
    "in a recursion": (
        'start: "(" start ")" | N\nN: /1+(?!1)/', r"1+(?!1)|\(1+(?!1)\)|\(\(1+(?!1)\)\)", "1()", 5),
    "in a left recursion": ('start: start "+" N | N\nN: /\\b1+\\b/', r"\b1+\b(\+\b1+\b)*", "1+", 6),
    "in a template": ('start: l{N}\nl{x}: x ("," x)*\nN: /1+(?!1)/', r"1+(?!1)(,1+(?!1))*", "1,", 6),
    "anchors of the only token": ("start: A\nA: /^ab$/", r"^(?:^ab$)\Z", "ab\n", 3),
    "an anchor at the start": ('start: A "b"?\nA: /^a|b/', r"(?:^a|b)b?", "ab", 3),
    "lines": ('start: L ("\\n" L)*\nL: /^a+$/m', r"(?m)^a+$(\n^a+$)*", "a\n", 6),
    "what is ignored looks, too": ('start: "a" "b"?\n%ignore /#(?:(?!ab)[ab])*;/', r"(?:#b*a*;)*a(?:(?:#b*a*;)*b)?(?:#b*a*;)*", "ab#;", 6),
    "a token that can't be read there": ('start: A "b" | "c"\nA: /a(?!b)/', "c", "abc", 3),
    "digits follow": ("start: N+\nN: /[0-9]+(?![0-9])/", r"\d+", "01", 5),
    "a letter may follow": ('start: N "x"?\nN: /(?!if\\b)[a-z]+/', r"(?!if\b)[a-z]+", "ifx", 5),
    "more than one character behind it": (
        'start: A (";" | "c") ("b" | "d")?\nA: /a+(?=;b|c)/', r"a+(?=;b|c)[;c][bd]?", "a;cbd", 5),
    "more than one character before it": ('start: "x"? "y" A\nA: /(?<=xy)a/', "xya", "xya", 4),
    "something before it": ('start: "x"? A\nA: /(?<=x)a/', "xa", "xa", 3),
    "a comment to the end of a line": (
        'start: "a"\n%ignore /#.*$/m\n%ignore "\\n"', r"(?:#[^\n]*(?:\n|\Z)|\n)*a(?:#[^\n]*(?:\n|\Z)|\n)*", "a#\n", 5),
    "only one piece of the terminal looks": ('start: A "b"?\nA: "x" | "y" /a(?!b)/', r"xb?|ya", "xyab", 4),
    "words": ('start: (WORD | /[ -]/)+\nWORD: /\\b\\w+\\b/', r"[\w -]+", "ab -", 5),
    "words among others": ('start: (WORD | "b")+\nWORD: /\\ba+\\b/', r"(?:\ba+\b|b)+", "ab", 6),
    "lark's operators": (
        'start: (A OP? | "?")+\nA: /[a-z]/\nOP: /[+*]|[?](?![a-z])/', r"(?:[a-z](?:[+*]|\?(?![a-z]))?|\?)+", "ab?+", 5),
    "as often as counted": ('start: (A | "b")~2..4\nA: /a(?!a)/', r"(?:a(?!a)|b){2,4}", "ab", 6),
    "in what is repeated and may be empty": ('start: (A? "c"?)~0..3 e\ne: "a"*\nA: /a(?!a)/', r"(?:(?:a(?!a))?c?){0,3}a*", "ac", 5),
    "in a list of templates": (
        'start: l{A} "a"?\nl{x}: x (c{",", x})*\nc{s, x}: s x\nA: /a+(?!a)/', r"a+(?!a)(?:,a+(?!a))*", "a,", 6),
    "two that ask at once": ('start: A B? "c"? "d"?\nA: /a(?!c|bd)/\nB: /b(?!cd)/', r"a(?!c|bd)(?:b(?!cd))?c?d?", "abcd", 4),
    "counted, and it looks back": (
        'start: A\nA: /[ab]{0,2}b{0,2}[ab]|(?<=a)a?/', r"[ab]{0,2}b{0,2}[ab]|(?<=a)a?", "ab", 6),
    "two rules' texts": ('start: one | two\none: "x" A\ntwo: "y" A\nA: /(?<=x)a|b/', r"x(?:(?<=x)a|b)|y(?:(?<=x)a|b)", "xyab", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_a_terminal_that_its_neighbours_decide_is_the_regex_in_its_place(name):
    text, pattern, alphabet, longest = BESIDE[name]
    compiled = re.compile(pattern)
    grammar = Grammar.from_lark(text + "\n")
    if name == "in a recursion":
        assert all(grammar.matches(t) == (compiled.fullmatch(t) is not None) for t in words(alphabet, longest))
    else:
        assert assert_same_language(grammar, lambda t: compiled.fullmatch(t) is not None, alphabet, longest)


sides = st.lists(st.sampled_from(["", "a", "b", "ab", "aa", "\\n"]), min_size=1, max_size=2, unique=True)


@settings(max_examples=150)
@given(patterns, sides, sides)
def test_random_terminals_among_random_neighbours(pattern, before, after):
    """Where it is not refused, a terminal reads what `re` reads between each pair of neighbours."""
    try:
        re.compile(pattern)
    except re.error:
        assume(False)
    one_of = ["(" + " | ".join(f'"{text}"' if text else "" for text in side) + ")" for side in (before, after)]
    expected = set()
    for left in (text.replace("\\n", "\n") for text in before):
        for right in (text.replace("\\n", "\n") for text in after):
            rest = re.compile(f"(?:{pattern})(?=(?s:.{{{len(right)}}})\\Z)")  # so that it ends where `right` begins
            for text in words(ALPHABET, 4):
                if rest.match(left + text + right, len(left)):
                    expected.add(left + text + right)
    try:
        grammar = Grammar.from_lark(f"start: {one_of[0]} A {one_of[1]}\nA: /{pattern}/\n")
    except GrammarError as error:
        whys = ("sees beyond its token", "never stands beside", "can ever be complete", "limit `lookaround`")
        assert any(why in error.message for why in whys)
        assert any(why in error.message for why in (whys[0], whys[3])) or not expected
        return
    assert {text for text in words(ALPHABET, 4) if grammar.matches(text)} == {t for t in expected if len(t) <= 4}
    assert all(map(grammar.matches, expected))


SIDE_BY_SIDE = {
    "(A | B)+": "[AB]+",
    '(A B? "a"?)*': "(AB?a?)*",
    '(A~1..2 | ("b" | "a" B)+)+': "(A{1,2}|(b|aB)+)+",
    "l{A} | l{B}~2": "A(bA)*a?|(B(bB)*a?){2}",
}
"""Rules, and the same as patterns of token names."""

nonempty = st.tuples(patterns, st.sampled_from(["(?:{})[ab]", "[ab](?:{})", "a|(?<=a)b(?:{})"])).map(
    lambda x: x[1].format(x[0]).replace("*?", "*").replace("??", "?")  # lazy repeats are tested below
)


@settings(max_examples=25)
@given(nonempty, nonempty, st.sampled_from(sorted(SIDE_BY_SIDE)))
def test_random_terminals_side_by_side(first, second, body):
    """A text is read if it can be cut into tokens so that `re` matches each one in its place in the whole text."""
    try:
        re.compile(first), re.compile(second)
    except re.error:
        assume(False)
    expected = set()
    for text in words("ab\n", 4):
        cuts: list[set[str]] = [{""}, *(set() for _ in text)]  # the names of the tokens that lead to each offset
        for start, end in itertools.combinations(range(len(text) + 1), 2):
            names = [text[start:end]] if text[start:end] in ("a", "b") else []
            for name, pattern in ("A", first), ("B", second):
                there = re.compile(f"(?:{pattern})(?=(?s:.{{{len(text) - end}}})\\Z)")
                names += [name] if there.match(text, start) else []
            cuts[end].update(before + name for before in cuts[start] for name in names)
        if any(re.fullmatch(SIDE_BY_SIDE[body], names) for names in cuts[-1]):
            expected.add(text)
    try:
        grammar = Grammar.from_lark(f'start: {body}\nl{{x}}: x ("b" x)* "a"?\nA: /{first}/\nB: /{second}/\n')
    except GrammarError as error:
        whys = ("never stands beside", "can ever be complete", "limit `lookaround`")
        assert any(why in error.message for why in whys)
        assert whys[2] in error.message or not expected
        return
    assert {text for text in words("ab\n", 4) if grammar.matches(text)} == expected
    assert all(grammar.is_prefix(text[:i]) for text in expected for i in range(len(text) + 1))


REFUSED = {
    "a slot follows": ("%declare X\nstart: A X\nA: /a\\b/", 3, 4, "behind"),
    "a slot comes as an argument": ("%declare X\nstart: t{X}\nt{x}: /a\\b/ x", 3, 7, "behind"),
    "an action ends": ('%declare _STEP\nstart: /a\\b/ _STEP "b"', 2, 8, "behind"),
    "a slot is before it": ("%declare X\nstart: X A\nA: /(?<=x)a/", 3, 4, "before"),
    "a slot may be before it": ('%declare X\nstart: (X | "y")* A\nA: /(?<=x)a/', 3, 4, "before"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_terminal_that_a_slot_decides_is_refused(name):
    text, line, column, where = REFUSED[name]
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text + "\n")
    error = caught.value
    assert (error.line, error.column) == (line, column)
    what = f"the lookaround sees beyond its token, and a slot can stand {where} it"
    assert error.message.endswith(f"{what}\n{error.context}")
    assert error.hint == (
        "let text stand beside the token, or take the lookaround out and write what it asks for as text"
    )


def test_a_slot_inside_a_terminal_that_looks_around_is_refused():
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark('%declare X\nstart: A\nA: X "b" /(?<=b)c/\n')
    assert (caught.value.line, caught.value.column) == (3, 10)
    assert "a slot is part of a terminal that looks around" in caught.value.message


def test_a_terminal_of_too_many_pieces_to_look_around_is_refused():
    doubled = "".join(f"T{i}: T{i - 1} T{i - 1}\n" for i in range(1, 20))
    with pytest.raises(GrammarError, match="3:9: a terminal that looks around has too many pieces"):
        Grammar.from_lark(f'start: A\n\nA: T19? /(?<=b)c/\nT0: "b"\n{doubled}')


# lark's own grammars

LARKS = Path(lark.__file__).parent / "grammars"
EXPRESSION = "%import python (eval_input, COMMENT)\nstart: eval_input\n%ignore /[\\t \\f]+/\n"


def test_larks_grammar_of_itself_reads_what_lark_reads():
    text = (LARKS / "lark.lark").read_text().replace("%ignore COMMENT", "")  # of those, lark takes the longest only
    grammar, accepts, rnd = Grammar.from_lark(text), lark_accepts(text), random.Random(0)
    for _ in range(40):
        sampled = sample(grammar, rnd, 24)
        for word in (sampled, mutate(sampled, "a?+ :|\n", rnd)):
            assert accepts(word) == grammar.matches(word), word
    whole = Grammar.from_lark((LARKS / "lark.lark").read_text())
    assert all(whole.matches(path.read_text()) for path in LARKS.glob("[cl]*.lark"))


def test_larks_grammar_of_python_reads_what_lark_reads():
    grammar, accepts, rnd = Grammar.from_lark(EXPRESSION), lark_accepts(EXPRESSION), random.Random(0)
    for _ in range(25):
        sampled = sample(grammar, rnd)
        for word in (sampled, mutate(sampled, "'\"0a ", rnd)):
            assert accepts(word) == grammar.matches(word), word
    found = {
        ast.unparse(node) for node in ast.walk(ast.parse(Path(ast.__file__).read_text())) if isinstance(node, ast.expr)
    }
    for text in sorted(found)[::40]:
        assert grammar.matches(text) == accepts(text)


# lazy repeats of terminals


@pytest.mark.parametrize("name", ["ESCAPED_STRING", "ESCAPED_STRING -> S"])
def test_an_escaped_string_has_no_bare_quote_inside(name):
    grammar = Grammar.from_lark(f"%import common.{name}\nstart: {name.split()[-1]}\n")
    compiled = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
    assert_same_language(grammar, lambda t: compiled.fullmatch(t) is not None, '"\\a\n', 5)


def ends_early(before: str, item: str, low: int, high: int | None, rest: str, text: str) -> bool:
    """Whether `text` is ``before item{low,high}? rest``, and `rest` can be read nowhere before that."""
    for first in range(len(text) + 1):
        if not re.fullmatch(before, text[:first]):
            continue
        for last in range(first + low, len(text) + 1):
            rounds = re.fullmatch(f"(?:{item}){{{low},{'' if high is None else high}}}", text[first:last])
            sooner = any(re.compile(rest).match(text, early) for early in range(first + low, last))
            if rounds and re.compile(rest).fullmatch(text, last) and not sooner:
                return True
    return False


@settings(max_examples=60)
@given(
    st.sampled_from(["", "a", "[ab]?"]),
    st.sampled_from(["[ab]", "[abc]", "c", "(?!b)[abc]"]),
    st.integers(0, 2),
    st.sampled_from([None, 2, 3]),
    st.sampled_from(["", "c", "cc?", "ab", "(?<!b)c", "(?:bc|c)", "c+", "b?", "(?<!a)(?:bb)*c"]),
    st.booleans(),
)
def test_a_lazy_repeat_of_a_terminal_ends_as_soon_as_it_can(before, item, low, high, rest, pasted):
    lazy = f"(?:{item}){{{low},{'' if high is None else high}}}?"
    pieces = [f"/{piece}/" for piece in (before, lazy, rest) if piece]
    text = f"start: T\nT: A\nA: {' '.join(pieces)}\n" if pasted else f"start: /{before}{lazy}{rest}/\n"
    assume(low + bool(before) + bool(rest))
    try:
        grammar = Grammar.from_lark(text)
    except GrammarError as error:
        assume("beyond its token" not in error.message)
        raise
    assert_same_language(grammar, lambda t: ends_early(before, item, low, high, rest, t), "abc", 5)


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('start: "<" /.*?>/ | /[a>]/', ["<a>", "<>", "a"], ["<a>a>", "<>>"]),
        ('start: C*\nC: "/*" /(.|\\n)*?/ "*/"\n', ["/*a*/", "/***/", "/**//**/"], ["/**/*/", "/*a*/a*/"]),
        ("start: S\n%import python.STRING -> S\n", ["'a'", "r'\\''", '"a"'], ["'a'a'", '"""', "'\\'"]),
        ("start: S\n%import python.LONG_STRING -> S\n", ['"""a"b"""', "'''\n'''"], ['"""a""""""', '""""']),
        ("start: /(a+?b)+/", ["ab", "aabab"], ["a"]),  # inside a repeat it reads what a greedy one does
    ],
)
def test_lazy_repeats_as_lark_files_write_them(text, good, bad):
    grammar = Grammar.from_lark(text)
    assert all(map(grammar.matches, good)) and not any(map(grammar.matches, bad))


def test_a_lazy_repeat_beside_a_slot_reads_what_a_greedy_one_does():
    grammar = Grammar.from_lark('%declare X\nstart: T\nT: X /.*?/ "b"\n').bind(X=["x", "xb"])
    assert grammar.matches("xb") and grammar.matches("xbab")


def test_lark_refuses_what_a_lazy_repeat_does_not_read():
    text = 'start: S "," S\nS: "\\"" _INNER "\\""\n_INNER: /(.|[\\t\\n])*?/\n'
    grammar = Grammar.from_lark(text)
    for parser in (lark.Lark(text), lark.Lark(text, parser="lalr"), lark.Lark(text, lexer="dynamic_complete")):
        for word in ('"a","b"', '"","\n"', '"a"b","c"', '"a",""c"'):
            try:
                accepted = bool(parser.parse(word))
            except lark.exceptions.LarkError:
                accepted = False
            assert accepted == grammar.matches(word)
