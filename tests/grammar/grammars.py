"""Grammars for tests: recursive ones with their texts, and strategies that make random ones."""

# ruff: noqa: E501  # one case, one line

from __future__ import annotations

from hypothesis import strategies as st

CALCULATOR = """
start: sum
?sum: sum "+" product | sum "-" product | product
?product: product "*" atom | product "/" atom | atom
?atom: NUMBER | "-" atom | "(" sum ")"
NUMBER: /[12]/
"""

# name: (grammar, alphabet, length of all texts tried, longer texts)
GRAMMARS = {
    "brackets": ('start: "(" start ")" | "x"', "()x", 6, ("((((x))))",)),
    "brackets side by side": ('start: ("(" start ")")*', "()", 10, ("(()())()",)),
    "two kinds of brackets": ('start: "(" start ")" start | "[" start "]" start | ', "()[]", 5, ("([()])[]",)),
    "calculator": (CALCULATOR, "1+*()-", 4, ("((1+2)*(1-(2/1)))", "-(1)*-(-2)", "(1+(2)")),
    "calculator that ignores spaces": (CALCULATOR + '%ignore " "\n', "1+() ", 4, (" ( 1 +2 )* 1 ", "( 1 2 )")),
    "an operator on both sides": ('start: start "+" start | start "*" start | "(" start ")" | "1"', "1+*()", 5, ("(1+1)*(1)+1",)),
    "the same twice": ('start: start start | "a" | "(" start ")"', "a()", 6, ()),
    "the same twice, or nothing": ('start: start start start | start start | "a" |', "a", 8, ()),
    "through others": ('start: a\na: "x" b "y" | "z"\nb: c\nc: a | "q"', "xyzq", 5, ("xxxqyyy",)),
    "through a template's argument": ('start: "x" | t{start}\nt{p}: "y" | p "z"', "xyz", 6, ("xzzzzzzz",)),
    "through an argument, twice": ('start: t{start} | "x"\nt{p}: p p | "y"', "xy", 7, ()),
    "through arguments of arguments": ('start: "x" | t{u{start}}\nu{q}: q "a"\nt{p}: "y" | p "z"', "xyza", 5, ("xazazaz",)),
    "beside an argument that is a text": ('start: "x" | t{start, "a"}\nt{p, q}: "y" q | p q "z"', "xyza", 5, ("yaazaz",)),
    "after an argument that may be empty": ('start: t{o}\nt{x}: x t{x} "b" | "c"\no: "a"?', "abc", 6, ("aacbbbbb",)),
    "after a template that may be empty": ('start: may{"a"} start "b" | "c"\nmay{x}: x?', "abc", 6, ("aacbbbbb",)),
    "arguments that change places": ('start: t{"a", "b"}\nt{x, y}: x "!" | t{y, x} | t{y, x} "?"', "ab!?", 5, ("b!????",)),
    "in a repeat": ('start: ("a" start "b")+ | "c"', "abc", 6, ("aacbbacb",)),
    "in a counted repeat": ('start: "(" start~0..2 ")" | "x"', "()x", 6, ("((xx)(x))",)),
    "front and end": ('start: start "a" | "b" start | "c"', "abc", 6, ("bbcaa",)),
    "even palindromes": ('start: "a" start "a" | "b" start "b" |', "ab", 8, ("abbaabba",)),
    "as many of each": ('start: "a" start "b" | "ab"', "ab", 8, ("aaaabbbb",)),
    "not one parse tree": ('start: "i" start | "i" start "e" start | "s"', "ies", 6, ("iisesesi",)),
    "many ways that begin alike": ('start: "a" start "b" | "a" start "c" | "d"', "abcd", 6, ("aaadbcb",)),
    "hidden left recursion": ('start: b? start "x" | "y"\nb: "z"', "xyz", 6, ("zzyxx",)),
    "left recursion behind a rule that may be empty": ('start: b start "x" | "y"\nb: "z" | c\nc: "w"?', "xyzw", 5, ("zwyxx",)),
    "left recursion behind itself": ('start: start start "x" | "y" |', "xy", 7, ("yyxxy",)),
    "mutual and hidden": ('start: a "1" | "s"\na: o start "2" | o a "3" | "t"\no: "o"*', "123sto", 4, ("oos2131",)),
    "mutual, of three": ('start: a | "s"\na: b "1" | start "a"\nb: start "2" | a "3" | "b"', "s123ab", 4, ("b1a231",)),
    "left recursion around brackets": ('start: start "," i | i\ni: "[" start? "]" | "1"', "[],1", 6, ("[1,[]],1",)),
    "a unit cycle": ('start: a\na: b | "x"\nb: a | "(" a ")"', "x()", 6, ()),
    "a left recursive list of anything": ('start: list{i}\nlist{x}: list{x} "," x | x\ni: "1" | "(" list{i} ")"', "1,()", 6, ("(1,(1,1)),1",)),
    "a template over itself": ('start: wrap{start} | "x"\nwrap{y}: "(" y ")"', "()x", 6, ("(((x)))",)),
    "an argument without text": ('start: "c" t{/a\\Za/, o}\nt{p, q}: p "a" | q q | p? "d"\no: "b"?', "abcd", 4, ()),
    "in an argument, an argument without text": ('start: "c" t{u{/a\\Za/}}\nt{p}: p "a" | "b"\nu{q}: q | "d"', "abcd", 4, ()),
    "an argument without text, whatever it is given": ('start: "c" t{o}\nt{p}: u{e{p}} | p\nu{q}: q | "b"\ne{p}: p e{p}\no: "a"', "abc", 4, ()),
    "an argument that leads back, whatever it is given": ('start: t{o}\nt{p}: u{e{p}} | p\nu{q}: q | "b"\ne{p}: p u{e{p}}\no: "a"', "ab", 5, ()),
    "a template used both ways": ('start: t{"1"}\nt{x}: x | "(" t{x} ")" | t{x} "+" x', "1+()", 6, ("((1)+1)+1",)),
    "json": (
        'start: v\nv: o | a | S | "1"\no: "{" [p ("," p)*] "}"\np: S ":" v\na: "[" [v ("," v)*] "]"\nS: /"[ab]*"/',
        '{}[]:,"a1', 3, ('{"a":[1,{"b":"ab"}],"":{}}', '[1,[1,"a"],{}]', '{"a":1,}')),
}  # fmt: skip

RULES = ("start", "one", "two", "three")

token = st.sampled_from(['"a"', '"b"', '"ab"', '"ba"', '"c"', '"a".."b"', "/[ac]/", '"B"i', "A", "BS"])
"""Tokens that `re`, which takes the first alternative that matches, and a language agree on."""


def _expansions(item):
    """Groups, options and counts over `item`."""
    sequence = st.lists(item, min_size=1, max_size=2).map(" ".join)
    group = st.lists(sequence, min_size=1, max_size=2).map(" | ".join)
    return st.one_of(
        sequence,
        group.map("({})".format),
        group.map("[{}]".format),
        st.tuples(group, st.sampled_from(["?", "*", "+", "~0..2", "~1..3", "~2"])).map(lambda g: f"({g[0]}){g[1]}"),
    )


def bodies(names):
    """Alternatives of tokens and of the rules `names`, nested a little."""
    atom = st.one_of(token, token, st.sampled_from(names)) if names else token
    item = st.recursive(atom, _expansions, max_leaves=3)
    sequence = st.lists(item, max_size=2).map(" ".join)
    return st.lists(sequence, min_size=1, max_size=2).map("\n    | ".join)


def tails(name, others):
    """Rules that call, if any, only rules after them, or anything as their last item."""
    last = st.sampled_from([name, *others, "start"])
    head = st.lists(st.one_of(token, token.map("{}?".format)), min_size=1, max_size=2).map(" ".join)
    stop = st.lists(token, min_size=1, max_size=2).map(" ".join)
    step = st.tuples(head, last).map(" ".join)
    return st.tuples(stop, st.lists(step, max_size=2)).map(lambda x: "\n    | ".join([x[0], *x[1]]))


def fronts(name):
    """Rules that call themselves first, and no other."""
    stop = st.lists(token, min_size=1, max_size=2).map(" ".join)
    return st.tuples(stop, st.lists(stop, min_size=1, max_size=2)).map(
        lambda x: "\n    | ".join([x[0], *(f"{name} {s}" for s in x[1])])
    )


TERMINALS = 'A: "a"+\nBS: "b"~1..2 "c"?\n'
IGNORES = st.sampled_from(["", "", '%ignore " "\n', "%ignore /,+/\n"])


@st.composite
def layered(draw):
    """No recursion: each rule calls those after it."""
    parts = [f"{name}: {draw(bodies(RULES[i + 1 :]))}" for i, name in enumerate(RULES)]
    return "\n".join([*parts, TERMINALS + draw(IGNORES)])


@st.composite
def recursive(draw):
    """Rules that call anything at their end; the last one itself at its front."""
    parts = [f"{name}: {draw(tails(name, RULES[1:3]))}" for name in RULES[:3]]
    parts.append(f"three: {draw(fronts('three'))}")
    if draw(st.booleans()):
        parts[0] += ' | "c" three'
    return "\n".join([*parts, TERMINALS + draw(IGNORES)])


@st.composite
def templated(draw):
    """Rules with parameters, handed on; arguments are tokens, rules and other templates."""
    simple = st.one_of(token, st.just("leaf"))
    arg = st.one_of(simple, simple.map(lambda a: f"pair{{{a}, {a}}}"))
    uses = st.lists(
        st.one_of(st.sampled_from(["x", "y", '","', 'x "c"?']), st.just("pair{y, x}")), min_size=1, max_size=3
    )
    first, second = draw(arg), draw(arg)
    outer = "\n    | ".join(" ".join(draw(uses)) for _ in range(draw(st.integers(1, 2))))
    pair = draw(st.sampled_from(["p q", "p | q", "p q?", 'q "-" p', "(p | q)~1..2"]))
    again = draw(st.sampled_from(["", " | x outer{y, x}", ' | "," outer{x, y}']))
    return "\n".join(
        [
            f"start: outer{{{first}, {second}}} {draw(st.sampled_from(['', 'leaf?', 'pair{BS, leaf}']))}",
            f"outer{{x, y}}: {outer}{again}",
            f"pair{{p, q}}: {pair}",
            f"leaf: {draw(bodies([]))}",
            TERMINALS + draw(IGNORES),
        ]
    )


@st.composite
def circular(draw):
    """Templates that are given the rules they stand in, or rules without any text, and may not read them."""
    argument = st.sampled_from(["start", "one", "two", "never", r"/a\Za/", "A", "t{one}"])
    piece = st.one_of(
        token, st.sampled_from(["one", "two"]), argument.map("t{{{}}}".format), argument.map("u{{{}}}".format)
    )
    inside = st.lists(st.sampled_from(['"a"', '"b"', "p", "p?", 'p "c"', "t{p}"]), min_size=1, max_size=2).map(" ".join)

    def body(item, end):
        options = draw(st.lists(st.lists(item, min_size=1, max_size=2).map(" ".join), min_size=1, max_size=2))
        return " | ".join([*options, *end])

    rules = [f"{name}: {body(piece, draw(st.sampled_from([[], ['BS']])))}" for name in ("start", "one", "two")]
    first = " | ".join(draw(st.lists(inside, min_size=1, max_size=2)))
    second = draw(st.sampled_from(['"c"', '"a" p', 'p "b"', '"a" t{p}', "p?"]))
    return "\n".join([*rules, f't{{p}}: {first} | "c"', f"u{{p}}: {second}", 'never: "a" never', TERMINALS])


@st.composite
def tangled(draw):
    """Rules that call any rule, themselves included, anywhere."""
    parts = [f"{name}: {draw(bodies(RULES))}" for name in RULES]
    parts = [f'{part}\n    | "{end}"' for part, end in zip(parts, "abca")]
    return "\n".join([*parts, TERMINALS + draw(IGNORES)])
