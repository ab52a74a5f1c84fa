"""Every feature of a regular Lark grammar means what lark's own Earley parser takes it to mean."""

from __future__ import annotations

import pytest

from constrained import Grammar
from tests.grammar.oracles import assert_same_language, lark_accepts

# name: (grammar, alphabet, longest text tried exhaustively, further texts)
FEATURES = {
    "literals in order": ('start: "a" "b" "c"', "abc", 4, ()),
    "alternatives": ('start: "a" | "ab" | "abc" | "c"', "abc", 4, ()),
    "an empty alternative": ('start: "a" start2\nstart2: | "b"', "ab", 3, ()),
    "only the empty text": ("start:", "a", 2, ()),
    "groups": ('start: "a" ("b" | "c" "a") "b"', "abc", 5, ()),
    "optional by ?": ('start: "a"? "b"? "a"', "ab", 4, ()),
    "optional by brackets": ('start: ["a"] "b" ["c" "a"]', "abc", 4, ()),
    "star": ('start: "a" ("b" "c")* "a"', "abc", 6, ()),
    "plus": ('start: ("a" | "bc")+', "abc", 5, ()),
    "repeat of what may be empty": ('start: ("a"? "b"?)* "c"', "abc", 5, ()),
    "counted repeat of what may be empty": ('start: ("a"? "b"?)~2..3 "c"', "abc", 6, ()),
    "repeat within repeat": ('start: ("a"~1..2 "b")~2..3', "ab", 8, ()),
    "star of star": ('start: (("a"*)* "b")* "a"', "ab", 5, ()),
    "exact count": ('start: "ab"~3', "ab", 6, ()),
    "counted range": ('start: "a"~2..4 "b"~0..1', "ab", 6, ()),
    "zero times": ('start: "a"~0 "b"', "ab", 3, ()),
    "counted terminal twice over": ('start: A~2..3 | A~5\nA: "a"', "a", 7, ()),
    "character range": ('start: "b".."d"+', "abcde", 3, ()),
    "range beyond ASCII": ('start: "à".."é" "中".."丰"', "ßàéê一中丰丱", 2, ()),
    "escapes": (r'start: "\n\t\\\"" "\x41\u00e9" /\//', '\n\t\\"Aé/', 1, ('\n\t\\"Aé/', '\n\t\\"Aé', "/")),
    "case-insensitive literal": ('start: "aB"i "c"', "aAbBcC", 4, ("ABc", "abc")),
    "case-insensitive beyond ASCII": ('start: "é"i "ß"i', "éÉßẞsS", 3, ()),
    "regex": (r"start: /[a-c]x?\d{1,2}/", "axd1", 4, ("c77", "cx12")),
    "regex flags": (r"start: /a.b/is /c/i", "aAbB\ncC", 3, ("A\nbC", "a\nBc")),
    "regex without s": (r"start: /a.b/", "ab\n", 3, ()),
    "verbose regex": ("start: /a b  [ ] c/x", "abc ", 4, ()),
    "terminals of terminals": (
        'start: WORD ("," WORD)*\nWORD: LETTER+ DIGIT?\nLETTER: "a" | "b"\nDIGIT: /[0-1]/',
        "a0,",
        5,
        (),
    ),
    "terminal priorities don't narrow": ('start: A B\nA.5: "a"+\nB.1: "a" | "b"', "ab", 5, ()),
    "rule priorities don't narrow": ('start: one | two\none.2: "a" "b"\ntwo.1: "a" "b" "c"?', "abc", 4, ()),
    "aliases": ('start: "a" -> first | "b" start2 -> second\nstart2: "c" -> third', "abc", 3, ()),
    "inlined and kept rules": (
        '?start: _pair | single\n_pair: "a" "b"\n!both: "b" "a"\n?!single: both | A\nA: "a"',
        "ab",
        3,
        (),
    ),
    "comments": ('// above\nstart: "a" // behind\n  | "b"   // another\n# hash\n', "ab", 2, ()),
    "alternatives over lines": ('start: "a"\n     | "b"\n     | "c" "a"\n', "abc", 3, ()),
    "imported terminals": (
        "%import common.DIGIT\n%import common (LETTER, INT)\nstart: LETTER DIGIT INT",
        "ab12",
        4,
        ("a123", "Z999"),
    ),
    "import under another name": ("%import common.INT -> NUMBER\nstart: NUMBER", "12a", 3, ()),
    "imported words and numbers": (
        "%import common (WORD, SIGNED_NUMBER)\nstart: WORD SIGNED_NUMBER",
        "a1+.",
        4,
        ("ab-1.5", "x2e5", "x2e"),
    ),
    "extended terminal": ('start: A\nA: "a"\n%extend A: "b"', "ab", 2, ()),
    "extended rule": ('start: "a"\n%extend start: "b" "c"', "abc", 3, ()),
    "overridden terminal": ('start: A\nA: "a"\n%override A: "b"', "ab", 2, ()),
    "overridden rule": ('start: a\na: "a"\n%override a: "b"', "ab", 2, ()),
    "overridden import": ('%import common.DIGIT\n%override DIGIT: "x"\nstart: DIGIT', "x1", 2, ()),
    "ignored space": ('start: "a" "b"+\n%ignore " "', "ab ", 6, ("  a  b b  ",)),
    "ignored space around an empty text": ('start: "a"?\n%ignore " "', "a ", 4, ()),
    "two things ignored": (
        'start: A ("," A)*\nA: /a+/\n%ignore " "\n%ignore /#[^\\n]*\\n/',
        "a,# \n",
        5,
        ("a #a\n,a",),
    ),
    "ignored by an import": ('%import common.WS\n%ignore WS\nstart: "a" "b"', "ab \n", 5, ()),
    "nothing ignored inside a token": ('start: AB C\nAB: "a" "b"\nC: /c+/\n%ignore " "', "abc ", 5, ()),
    "ignored between the items of a rule's repeat": ('start: "a"~2..3 ["b"]\n%ignore "."', "ab.", 6, ()),
    "ignored around a template's argument": (
        'start: t{"a"} t{B}\nt{x}: x "," x\nB: "b"\n%ignore " "',
        "ab, ",
        5,
        (" a , a b,b ", "a,a b ,b"),
    ),
    "ignored around an argument handed on": (
        'start: f{"a"}\nf{x}: g{x} "!"\ng{y}: "(" y ")"\n%ignore " "',
        "a(!) ",
        5,
        (" ( a ) ! ", "( a)!"),
    ),
    "ignored characters that are text, too": ('start: "a" " " "b"\n%ignore " "', "ab ", 6, ()),
    "ignored before recursion": ('start: "a" start | "b"\n%ignore " "', "ab ", 5, ()),
    "ignored with left recursion": ('start: start "," "a" | "a"\n%ignore " "', "a, ", 6, ()),
    "template": ('start: sep{"a", ","} "!"\nsep{x, s}: x (s x)*', "a,!", 6, ()),
    "template of rules": ('start: pair{a, b}\npair{x, y}: x "-" y | y\na: "a"+\nb: "b" | a', "ab-", 5, ()),
    "template of a terminal with choices": ('start: t{T}\nt{x}: x "," x\nT: "a" | "b"', "ab,", 4, ()),
    "template of a range and a regex": ('start: t{"a".."b"} t{/c|d/}\nt{x}: x x', "abcd", 4, ()),
    "template in a template": (
        'start: wrap{pair{"a"}}\nwrap{x}: "(" x ")"\npair{y}: y "," y',
        "a,()",
        5,
        ("(a,a)", "(a,aa)"),
    ),
    "template argument used at the end and in the middle": (
        'start: t{u{"a"}}\nt{x}: x "b" x\nu{y}: y | y "c"',
        "abc",
        5,
        (),
    ),
    "template with an argument it doesn't use": ('start: t{"a", B}\nt{x, y}: x\nB: "b"', "ab", 3, ()),
    "template that calls itself last": ('start: t{"a"}\nt{x}: x | x "," t{x}', "a,", 7, ()),
    "templates that call each other last": (
        'start: f{"a", "b"}\nf{x, y}: x g{y, x} | "!"\ng{x, y}: x f{y, x} | "?"',
        "ab!?",
        5,
        (),
    ),
    "right recursion": ('start: "a" start | "b"', "ab", 6, ()),
    "right recursion that may stop": ('start: | "a" "b" start', "ab", 6, ()),
    "recursion through an optional": ('start: b ["," start]\nb: "x"?', "x,", 6, ()),
    "recursion that may read nothing": ('start: (b start)?\nb: "x"? "y"?', "xy", 5, ()),
    "mutual recursion at the end": (
        'start: "a" odd | "b"\nodd: "a" start | "c" last\nlast: "d" odd | "e"',
        "abcde",
        5,
        (),
    ),
    "left recursion": ('start: start "," "a" | "a"', "a,", 7, ()),
    "left recursion with an empty base": ('start: start "a" "b" |', "ab", 6, ()),
    "left recursion through another rule": (
        'start: list\nlist: list SEP item | item\nitem: "x" | "yy"\nSEP: ","',
        "xy,",
        6,
        (),
    ),
    "mutual left recursion": ('start: a\na: b "x" | "q"\nb: a "y" | "z"', "xyzq", 5, ()),
    "left recursion among alternatives": (
        'start: e "!"\ne: e "+" t | e "-" t | t\nt: "1" | "2" "0"',
        "1+-!",
        6,
        ("20+1-20!",),
    ),
    "left recursion by a rule of one alternative": ('start: a\na: b\nb: a "x" | "y"', "xy", 5, ()),
    "left recursion behind an optional": ('start: a\na: (a ",")? "x"', "x,", 7, ()),
    "a rule that calls itself and nothing else": ('start: start | "a"', "a", 3, ()),
    "left recursion used twice": ('start: l ";" l\nl: l "a" | "b"', "ab;", 6, ()),
    "unreachable and unused": ('start: "a"\nunused: "b" unused\nUNUSED: /c/', "abc", 2, ()),
    "an alternative that never ends is left out": ('start: "a" | "b" endless\nendless: "c" endless', "abc", 4, ()),
    "characters of many bytes": ('start: /[é中😀]+/ "ü"', "é中😀ü", 4, ()),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_means_what_lark_says(feature):
    text, alphabet, longest, extra = FEATURES[feature]
    text += "\n"
    good = assert_same_language(Grammar.from_lark(text), lark_accepts(text), alphabet, longest, extra)
    assert good


def test_start_may_be_any_rule():
    text = 'start: "a" other\nother: "b" | "c"\n'
    grammar = Grammar.from_lark(text, start="other")
    assert_same_language(grammar, lark_accepts(text, start="other"), "abc", 3)


def test_a_file_imports_from_a_file_beside_it(tmp_path):
    (tmp_path / "words.lark").write_text('word: LETTER+ tail?\ntail: "!" word\nLETTER: "a".."c"\n', encoding="utf-8")
    (tmp_path / "main.lark").write_text(
        '%import .words (word, LETTER)\n%import common.DIGIT -> L\nstart: word "," L LETTER\n', encoding="utf-8"
    )
    path = tmp_path / "main.lark"
    accepts = lark_accepts(path.read_text(encoding="utf-8"), source_path=str(path))
    for given in (path, str(path)):
        assert assert_same_language(Grammar.from_lark(given), accepts, "a1,!", 5, ("abc!a,7b", "abc!,7b"))


def test_an_imported_template_takes_arguments(tmp_path):
    (tmp_path / "lists.lark").write_text("_sep{x, s}: x (s x)*\n", encoding="utf-8")
    (tmp_path / "main.lark").write_text('%import .lists._sep\nstart: _sep{"a", ","}\n', encoding="utf-8")
    path = tmp_path / "main.lark"
    accepts = lark_accepts(path.read_text(encoding="utf-8"), source_path=str(path))
    assert assert_same_language(Grammar.from_lark(path), accepts, "a,", 6)


LIKE_LARK = {
    "a template that takes a template": ('start: t{u}\nu{y}: y "!" | y y\nt{x}: x{"a"} "b"', "ab!", 5),
    "templates handed on to templates": (
        'start: t{u} | t{v}\nt{x}: s{x, "b"}\ns{x, y}: x{y} "c"\nu{y}: y\nv{y}: y y',
        "bc",
        5,
    ),
    "a bar in a terminal's regular expression belongs to no group": ('start: A\nA: /a|b/ "c" | "d"', "abcd", 3),
    "a part of a terminal is set beside its neighbours as it is": ('start: A\nA: B "c"~2\nB: /a|b/', "abc", 4),
    "parts with flags are groups": ('start: A\nA: /a|b/i "c"', "aAbc", 3),
    "an alternation of one terminal in another": ('start: A\nA: B "c"\nB: "a" | /b|d/', "abcd", 3),
    "a line continued by a backslash": ('start: "a" \\\n  "b" | \\ \n  "c"', "abc", 3),
    "comments between alternatives": ('start: "a"\n  // one\n\n  # two\n  | "b" // three\n', "ab", 2),
    "escapes of a backslash and a quote in a class": (r'start: /[^\\"]/', 'a\\"', 2),
    "code points in a regular expression are read before it is": (r"start: /\x5bab]/", "ab[", 2),
}


@pytest.mark.parametrize("feature", LIKE_LARK)
def test_an_odd_feature_means_what_lark_says(feature):
    text, alphabet, longest = LIKE_LARK[feature]
    assert assert_same_language(Grammar.from_lark(text + "\n"), lark_accepts(text + "\n"), alphabet, longest)


def test_strings_of_the_python_grammar_have_no_unescaped_quote_inside():
    grammar = Grammar.from_lark("%import python.STRING\nstart: STRING\n")
    accepts = lark_accepts("%import python.STRING\nstart: STRING\n")
    for text in ('"a"', "'a'", '"a"b"', r'"a\"b"', 'rb"x"', r'"\\"', r'"\"', '""', '"\n"', "'\"'"):
        assert grammar.matches(text) == accepts(text), text


def test_a_string_of_ones_own_made_of_commons_parts_ends_at_its_quote():
    text = '%import common._STRING_ESC_INNER\nstart: A\nA: "|" _STRING_ESC_INNER "|" B?\nB: "x"\n'
    assert_same_language(Grammar.from_lark(text), lark_accepts(text), "|x\\", 5)


def test_what_ships_is_imported_by_its_name_and_ends_actions_with_the_same_step():
    grammar = Grammar.from_lark(
        "%import household (goto, OBJECT, RECEPTACLE)\n%declare _STEP\nstart: goto{RECEPTACLE}\n"
    )
    assert "_STEP" in grammar.slots and "RECEPTACLE" in grammar.slots
