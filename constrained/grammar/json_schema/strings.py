r"""Strings: pattern, format, lengths and values left out, as one language, and how its characters are written.

A free string has every spelling there is: a character itself, or any escape of it (RFC 8259, section 7).
Where a schema constrains the characters, each is written as `json.dumps` writes it, with or without
`ensure_ascii`: itself where that is allowed, a short escape where one is needed, and beyond ASCII
also as ``\uXXXX`` (two of these above U+FFFF).
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import pairwise
from json.encoder import encode_basestring, encode_basestring_ascii

from constrained.grammar import nodes
from constrained.grammar.assertions import looks
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.json_schema.shape import ANYTHING, Schema, Shape, parsed
from constrained.grammar.json_text import NEEDLESS_ESCAPE, JsonText, Table, TextState
from constrained.grammar.nodes import EMPTY, Node
from constrained.grammar.patterns.character_automata import State, Texts
from constrained.grammar.patterns.ecma import end_differently
from constrained.grammar.patterns.finite_automata import ANY, few_texts
from constrained.grammar.patterns.formats import format_node
from constrained.grammar.patterns.trees import example, prefix, within
from constrained.limits import Limits

RAW = charset([(0x20, 0x21), (0x23, 0x5B), (0x5D, MAX_CODE_POINT)])
"""Characters that stand for themselves: no control characters, quote or backslash."""

RANGES = 64
"""A set of more ranges, such as all letters, has escapes beyond ASCII only in a table (`json_text.py`): as rules, they
would be thousands."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

_FEW = 16
"""Texts of a pattern that are tried one by one."""

_CONTROL = charset([(0, 0x1F), (0x7F, 0x7F)])
_LONG = charset([(0, 0x1F), (0x7F, MAX_CODE_POINT)])
_SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
SPELT_OUT = 2
"""The characters that a text must at least have are written by where its first escape stands, if they are no more than
these; so such a text, too, begins with a run of plain characters."""

_PLAIN = frozenset(range(0x20, 0x7F)) - set(_SHORT)


def _one_of(characters: str) -> nodes.Chars:
    return nodes.Chars(charset((ord(c), ord(c)) for c in characters))


_HEX = _one_of("0123456789abcdefABCDEF")
_HIGH_DIGIT, _LOW_DIGIT = _one_of("89abAB"), _one_of("cdefCDEF")
_UNICODE = nodes.alt(
    [
        nodes.seq([_one_of("0123456789abcefABCEF"), nodes.repeat(_HEX, 3, 3)]),
        nodes.seq([_one_of("dD"), _one_of("01234567"), nodes.repeat(_HEX, 2, 2)]),
        nodes.seq(
            [
                _one_of("dD"),
                _HIGH_DIGIT,
                nodes.repeat(_HEX, 2, 2),
                nodes.literal("\\u"),
                _one_of("dD"),
                _LOW_DIGIT,
                nodes.repeat(_HEX, 2, 2),
            ]
        ),
    ]
)
_ESCAPE = nodes.seq([nodes.literal("\\"), nodes.alt([_one_of('"\\/bfnrt'), nodes.seq([nodes.literal("u"), _UNICODE])])])

FREE_CHARACTER = nodes.alt([nodes.Chars(RAW), _ESCAPE])
"""Any one character."""
_MORE = nodes.repeat(nodes.seq([_ESCAPE, nodes.repeat(nodes.Chars(RAW), 0, None)]), 0, None)
FREE = nodes.seq([nodes.repeat(nodes.Chars(RAW), 0, None), _MORE])
"""Any text. Not ``(RAW | ESCAPE)*``: a run of characters of one set is the engine's quickest construct."""


def free(low: int, high: int | None) -> Node:
    """Any text of `low` to `high` characters."""
    if high is not None:
        return nodes.repeat(FREE_CHARACTER, low, high)
    if not low:
        return FREE
    if low > SPELT_OUT:
        return nodes.seq([nodes.repeat(FREE_CHARACTER, low - SPELT_OUT, low - SPELT_OUT), free(SPELT_OUT, None)])
    raw = nodes.Chars(RAW)
    begun = [nodes.seq([nodes.repeat(raw, at, at), _ESCAPE, free(low - at - 1, None)]) for at in range(low)]
    return nodes.alt([nodes.seq([nodes.repeat(raw, low, None), _MORE]), *begun])


def guarded(text: str, closing: str) -> str:
    """JSON text in whose strings `closing` is written with an escape of its first character."""
    if not closing or closing not in text:
        return text
    escaped = f"\\u{ord(closing[0]):04x}{closing[1:]}"
    return _STRING.sub(lambda found: found[0].replace(closing, escaped), text)


def _free_without(closing: str, low: int) -> Node:
    """Any text of `low` characters or more, 0 or 1, in which `closing` doesn't stand literally."""
    # After each beginning of it comes a character that breaks it off, an escape, another beginning, or the end.
    raw = RAW & _one(closing[0]).complement()
    plain = nodes.repeat(nodes.Chars(raw), 0, None)
    ways = [nodes.seq([_ESCAPE, plain])]
    for i, after in enumerate(closing[1:], 1):
        breaking = raw & _one(after).complement()
        broken_off = nodes.repeat(nodes.seq([nodes.Chars(breaking), plain]), 0, 1)
        ways.append(nodes.seq([nodes.literal(closing[:i]), broken_off]))
    way = nodes.alt(ways)
    if not low:
        return nodes.seq([plain, nodes.repeat(way, 0, None)])
    return nodes.seq([nodes.alt([nodes.seq([nodes.Chars(raw), plain]), way]), nodes.repeat(way, 0, None)])


@lru_cache(maxsize=64)
def _table_without(closing: str, low: int, most: int) -> Table | None:
    """What reads texts of `low` characters or more without `closing` standing literally; None: it is too large."""
    letters, size = sorted(set(closing)), len(closing)
    if (low + 1) * size * (len(letters) + 2) > most:
        return None
    others = len(letters)
    begins = {0: others, 0xD800: -1, 0xE000: others}
    begins |= {ord(c) + 1: others for c in letters} | {ord(c): i for i, c in enumerate(letters)}

    def state(count: int, read: int) -> int:
        return min(count, low) * size + read

    after = []
    for count in range(low + 1):
        for read in range(size):
            row = [state(count + 1, int(c == closing[0])) for c in [*letters, ""]]
            row[letters.index(closing[read])] = -1 if read == size - 1 else state(count + 1, read + 1)
            after.append((*row, state(count + 1, 0)))
    starts = sorted(begins)
    ends = tuple(count >= low for count in range(low + 1) for _ in range(size))
    return Table(tuple(starts), tuple(begins[at] for at in starts), tuple(after), ends)


def _one(character: str) -> CharSet:
    return charset([(ord(character), ord(character))])


@lru_cache(maxsize=64)
def _holding(text: str) -> Node:
    """The tree of the texts that hold another."""
    every = nodes.repeat(nodes.Chars(ANY), 0, None)
    return nodes.seq([every, nodes.literal(text), every])


def _may_hold(trees: list[Node], text: str) -> bool:
    """Whether texts of some trees together may hold another text, as far as their characters show."""
    return all(all(_has(tree, character) for character in set(text)) for tree in trees)


def _has(tree: Node, character: str) -> bool:
    code = ord(character)
    for node in nodes.walk(tree):
        if isinstance(node, nodes.Chars) and code in node.chars:
            return True
        if isinstance(node, nodes.LiteralText) and character.encode() in node.data:
            return True
        if isinstance(node, nodes.Choices) and any(character.encode() in value for value in node.values):
            return True
    return False


def quoted(content: Node) -> Node:
    """A JSON string with that content."""
    return nodes.seq([nodes.literal('"'), content, nodes.literal('"')])


def texts(value: str, closing: str = "") -> set[bytes]:
    """The spellings of one JSON string, quotes included, without `closing` in it."""
    ways = (encode_basestring(value), encode_basestring_ascii(value))  # as json.dumps writes it
    return {guarded(way, closing).encode() for way in ways}


def spelled(node: Node) -> Node:
    """A tree of characters as the text between the quotes of a JSON string."""
    if isinstance(node, nodes.LiteralText):
        return nodes.seq(
            [
                nodes.literal(c) if ord(c) in _PLAIN else character(charset([(ord(c), ord(c))]))
                for c in node.data.decode()
            ]
        )
    if isinstance(node, nodes.Chars):
        return character(node.chars)
    if isinstance(node, nodes.Choices):
        return nodes.choices(text[1:-1] for v in node.values for text in texts(v.decode()))
    if isinstance(node, nodes.Repeat):
        if isinstance(node.item, nodes.Chars) and node.high is None:
            chars, before = node.item.chars, max(node.low - 1, 0)
            return nodes.seq([nodes.repeat(character(chars), before, before), run(chars, node.low > 0)])
        return nodes.repeat(spelled(node.item), node.low, node.high)
    assert isinstance(node, (nodes.Seq, nodes.Alt))
    items = [spelled(item) for item in node.items]
    return nodes.seq(items) if isinstance(node, nodes.Seq) else nodes.alt(items)


def run(chars: CharSet, some: bool = False) -> Node:
    """Any number of characters of a set, but at least one if `some`."""
    if chars is ANY:
        return free(int(some), None)
    raw, escape = _written(chars)
    if escape is nodes.NEVER:
        return nodes.repeat(raw, int(some), None)
    loop = nodes.repeat(raw, 0, None)
    escaped = nodes.seq([escape, loop])
    first = nodes.alt([nodes.repeat(raw, 1, None), escaped]) if some else loop
    return nodes.seq([first, nodes.repeat(escaped, 0, None)])


@lru_cache(maxsize=256)
def character(chars: CharSet) -> Node:
    """One character of a set."""
    return FREE_CHARACTER if chars is ANY else nodes.alt(_written(chars))


@lru_cache(maxsize=256)
def _written(chars: CharSet) -> tuple[Node, Node]:
    """The characters of the set that stand for themselves, and the escapes of the others."""
    raw = chars & RAW
    escapes = [nodes.choices(b"\\" + e.encode() for c, e in _SHORT.items() if c in chars)]
    long = chars & (_LONG if len(chars.ranges) <= RANGES else _CONTROL)
    escapes.append(nodes.seq([nodes.literal("\\u"), nodes.alt([_code(a, b) for a, b in long.ranges])]))
    return nodes.Chars(raw) if raw else nodes.NEVER, nodes.alt([e for e in escapes if e is not nodes.NEVER])


def _code(low: int, high: int) -> Node:
    """The characters `low` to `high` as the digits after ``\\u``."""
    out = []
    if low <= 0xFFFF:
        out.append(_digits(low, min(high, 0xFFFF), 4))
    ends = {0xD800 + (end - 0x10000 >> 10) for end in (low, high) if end >= 0x10000}
    for lead in sorted(ends):  # what is not cut in two comes as one range of leads, below
        first = 0x10000 + ((lead - 0xD800) << 10)
        a, b = max(low, first), min(high, first + 0x3FF)
        if a <= b and (a > first or b < first + 0x3FF):
            tail = _digits(0xDC00 + (a & 0x3FF), 0xDC00 + (b & 0x3FF), 4)
            out.append(nodes.seq([_digits(lead, lead, 4), nodes.literal("\\u"), tail]))
    first = max(0, -(-(low - 0x10000) >> 10)) if low > 0x10000 else 0
    last = (high + 1 - 0x10000 >> 10) - 1
    if first <= last:
        leads = _digits(0xD800 + first, 0xD800 + last, 4)
        out.append(nodes.seq([leads, nodes.literal("\\u"), _digits(0xDC00, 0xDFFF, 4)]))
    return nodes.alt(out)


def _digits(low: int, high: int, width: int) -> Node:
    """The numbers `low` to `high` in hexadecimal, `width` digits, lower or upper case."""
    if not width:
        return nodes.EMPTY
    if (low, high) == (0, 16**width - 1):
        return nodes.repeat(_HEX, width, width)
    size = 16 ** (width - 1)
    parts: dict[tuple[int, int], list[int]] = {}
    for digit in range(low // size, high // size + 1):
        inner = (max(low - digit * size, 0), min(high - digit * size, size - 1))
        parts.setdefault(inner, []).append(digit)
    out = []
    for (a, b), digits in parts.items():
        letters = "".join(f"{d:x}" for d in digits)
        out.append(nodes.seq([_one_of(letters + letters.upper()), _digits(a, b, width - 1)]))
    return nodes.alt(out)


_ESCAPED = nodes.seq(
    [
        nodes.repeat(nodes.Chars(RAW), 0, None),
        _written(charset([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, MAX_CODE_POINT)]))[1],
        FREE,
    ]
)
"""Any text with an escape, the first one of a character that is written so by `json.dumps`."""


_NEEDLESS = nodes.alt([nodes.literal("\\/"), nodes.seq([nodes.literal("\\u"), _code(0x20, 0x7E)])])
"""The escapes of characters that need none."""


def read_by(table: Table, high: int | None) -> Node:
    """The texts of at most `high` characters that a table reads, as nodes: one for each state and count."""
    made: dict[tuple[int, int], nodes.Lazy] = {}

    def node(state: int, count: int) -> nodes.Lazy:
        return made.setdefault((state, count), nodes.Lazy(partial(written, state, count)))

    def written(state: int, count: int) -> Node:
        after: dict[int, list[tuple[int, int]]] = {}
        for to, first, last in table.onward(state):
            if high is None or count + 1 + table.fewest[to] <= high:
                after.setdefault(to, []).append((first, last))
        loop: Node = EMPTY
        ways: list[Node] = [EMPTY if table.ends[state] else nodes.NEVER]
        for to, ranges in after.items():
            one = character(charset(pair for pair in ranges if pair != NEEDLESS_ESCAPE))
            if NEEDLESS_ESCAPE in ranges and one is not FREE_CHARACTER:
                one = nodes.alt([one, _NEEDLESS])
            if to == state and high is None:
                loop = nodes.repeat(one, 0, None)
            else:
                ways.append(nodes.seq([one, node(to, count + (high is not None))]))
        return nodes.seq([loop, nodes.alt(ways)])

    return node(0, 0)


class _States:
    """The states of an automaton of characters as nodes of the text between the quotes."""

    def __init__(self, texts: Texts, name: str):
        self.texts, self.name = texts, name
        self.nodes: dict[State, TextState] = {}

    def node(self, state: State) -> TextState:
        if state not in self.nodes:
            name = f"{self.name}:{len(self.nodes)}"
            made = TextState(partial(self._written, state), name, partial(self.texts.fewest, state), self.texts.high)
            self.nodes.setdefault(state, made)  # another thread may have come first
        return self.nodes[state]

    def _written(self, state: State) -> Node:
        after = self.texts.after(state)
        loop = run(after.pop(state)) if state in after else EMPTY
        ways = [nodes.seq([character(chars), self.node(to)]) for to, chars in after.items()]
        return nodes.seq([loop, nodes.alt([*ways, EMPTY if self.texts.may_end(state) else nodes.NEVER])])


def what_is_said(shape: Shape) -> tuple:
    """A key that is equal for shapes that the same strings fit."""
    said = shape.strings
    denied = tuple(value for value in shape.denied if isinstance(value, str))
    return said.patterns, said.formats, said.unmatched, said.no_formats, denied, said.low, said.high


def trees(shape: Shape, limits: Limits, widely: bool = False) -> list[Node]:
    """The trees of characters that every string must fit; `widely`: in the reading of some validator."""
    said = shape.strings
    found = [parsed(_place(shape, pattern), "pattern", pattern, limits, widely) for pattern in said.patterns]
    return found + [format_node(name, widely) for name in dict.fromkeys(said.formats)]


def unmatched(shape: Shape, limits: Limits, widely: bool = False) -> list[Node]:
    """The trees of characters that no string may fit: patterns, formats, and values left out."""
    said, either = shape.strings, not widely
    found = [parsed(_place(shape, pattern), "pattern", pattern, limits, either) for pattern in said.unmatched]
    found += [format_node(name, either) for name in said.no_formats]
    return found + any_of([value for value in shape.denied if isinstance(value, str)])


def _place(shape: Shape, pattern: str) -> Schema:
    """The schema that a pattern is of."""
    parts = shape.parts or (ANYTHING,)
    return next((one for one in parts if pattern in one.shape.strings.patterns + one.shape.strings.unmatched), parts[0])


def any_of(values: list[str]) -> list[Node]:
    """The tree of a list of strings; none for none."""
    return [_choices(tuple(values))] if values else []


@lru_cache(maxsize=256)
def _choices(values: tuple[str, ...]) -> Node:
    return nodes.choices(value.encode("utf-8", "ignore") for value in values)


def language(
    fitting: list[Node],
    without: list[Node],
    low: int,
    high: int | None,
    name: str,
    limits: Limits,
    closing: str = "",
) -> Node:
    """The strings of `low` to `high` characters that fit all of some trees and none of others, unquoted.

    Where anything else may stand, `closing` is written with an escape; elsewhere, and where bounds on the length are
    written without a table (`JsonText.written`), it may not be in them. `name` is what its states are named after.
    """
    if high is not None and high < low:
        return nodes.NEVER
    limits.check("repeat", max(low, high or 0), f"strings of {max(low, high or 0)} characters")
    # From the simplest form to the most general: any text; one pattern, as nodes that the automaton reads by itself;
    # any text but a few; else a table of the states of all patterns together, or rules where it would be too large.
    without = [tree for tree in without if not _begin_differently([*fitting, tree])]
    fitting = [tree for tree in fitting if not _is_any_text(tree)]
    if high is not None and high < len(closing):
        closing = ""  # it doesn't fit in
    any_text = not fitting and not without
    if any_text and not closing:
        return free(low, high)
    if any_text and low < 2 and high is None:
        return _free_without(closing, low)
    if closing and _may_hold(fitting, closing):
        without = [*without, _holding(closing)]
    if len(fitting) == 1 and not without and not looks(fitting[0]) and not has_large_sets(fitting[0]):
        node = within(fitting[0], low, high)
        if node is not None:
            return spelled(node)
    if _begin_differently(fitting):
        return nodes.NEVER
    if not fitting and not low and high is None and all(isinstance(tree, nodes.Choices) for tree in without):
        node = others([text.decode() for tree in without if isinstance(tree, nodes.Choices) for text in tree.values])
        if node is not None:
            return node
    texts = Texts(fitting, without, low, high, limits)
    texts.check()
    if not texts.lives(texts.start):
        return nodes.NEVER
    write = partial(_States(texts, name).node, texts.start)
    make = partial(_table_without, closing, low, limits.pattern_steps) if any_text else texts.table
    node = JsonText(write, make, texts.high)
    return nodes.alt([node, nodes.EMPTY]) if texts.may_end(texts.start) else node


def _is_any_text(tree: Node) -> bool:
    """Whether it is plain that every text has a tree."""
    items = tree.items if isinstance(tree, nodes.Seq) else (tree,)
    return bool(items) and all(
        isinstance(item, nodes.Repeat)
        and not item.low
        and item.high is None
        and isinstance(item.item, nodes.Chars)
        and item.item.chars is ANY
        for item in items
    )


def is_written(tree: Node) -> bool:
    """Whether a tree of characters has texts and can be written as it is, without a table or a search for an end."""
    return not looks(tree) and not has_large_sets(tree) and all(node is not nodes.NEVER for node in nodes.walk(tree))


def has_large_sets(tree: Node) -> bool:
    """Whether there are sets of characters in a tree whose escapes only a table holds."""
    return any(len(node.chars.ranges) > RANGES for node in nodes.walk(tree) if isinstance(node, nodes.Chars))


def others(values: list[str]) -> Node | None:
    """The strings that are none of some, unquoted; None where a text of these has escapes.

    A string that is written with escapes begins with one of a character that none of the texts has.
    """
    if not values:
        return FREE
    if not all(_PLAIN.issuperset(value.encode("utf-8", "replace")) for value in values):
        return None
    unlike = nodes.Except(RAW, tuple(sorted({value.encode() for value in values})))
    return nodes.alt([unlike, _ESCAPED])


def some_in_both(one: Shape, other: Shape, limits: Limits) -> bool:
    """Whether some string is admitted by one, and by some validator's reading of the other."""
    both = one.strings.meet(other.strings)
    low, high = both.low, both.high
    if high is not None and high < low:
        return False
    if any(end_differently(a, b) for a in one.strings.patterns for b in other.strings.patterns):
        return False
    if what_is_said(one) == what_is_said(other):
        return True

    def some(widely: bool, widely2: bool) -> bool:
        fitting = trees(one, limits, widely) + trees(other, limits, widely2)
        without = unmatched(one, limits, widely) + unmatched(other, limits, widely2)
        return not (fitting or without) or has_text(fitting, without, low, high, limits)

    return some(True, True) and (some(False, True) or some(True, False))  # the first tells most schemas apart


def has_text(fitting: list[Node], without: list[Node], low: int, high: int | None, limits: Limits) -> bool:
    """Whether there are such strings (see :func:`language`)."""
    if _begin_differently(fitting):
        return False
    texts = Texts(fitting, without, low, high, limits)
    # Likely ones are tried before a search, which is long where many are ruled out: an example of each tree, which may
    # have the others, too, and all examples in a row, as patterns that are found anywhere are all found in it. Where
    # a pattern has few texts, these tell.
    examples = [example(node) or "" for node in fitting] or ["~"]
    for likely in dict.fromkeys(["".join(examples), *examples]):
        if texts.accepts(likely):
            return True
    for node in fitting:
        few = few_texts(node, _FEW, limits)
        if few is not None:
            return any(map(texts.accepts, few))
    return texts.lives(texts.start)


def _begin_differently(trees: list[Node]) -> bool:
    """Whether two trees plainly have no text in common."""
    begun = sorted(filter(None, map(prefix, trees)), key=len)
    return any(not other.startswith(one) for one, other in pairwise(begun))
