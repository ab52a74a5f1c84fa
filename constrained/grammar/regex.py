"""Python regular expressions, parsed by Python's own parser, as grammar nodes.

`re`'s parser decides what a pattern means (escapes, flags, classes, Unicode), so the two can't
disagree. What is not a regular language is refused. Backreferences and conditional groups are not regular
in general; where the group stands in the same sequence as what refers to it, and has few texts, there is
one case for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, product
from re import _constants as C
from re import _parser as parser

from constrained.errors import GrammarError
from constrained.grammar import assertions, nodes
from constrained.grammar.charset import CharSet, charset, matching
from constrained.grammar.nodes import EMPTY, NEVER, Alt, Chars, Node, Repeat, alt, literal, repeat, seq
from constrained.grammar.source import Place, Source
from constrained.grammar.traverse import fold
from constrained.limits import DEFAULT, Limits

_CATEGORY = {
    C.CATEGORY_DIGIT: r"\d",
    C.CATEGORY_NOT_DIGIT: r"\D",
    C.CATEGORY_SPACE: r"\s",
    C.CATEGORY_NOT_SPACE: r"\S",
    C.CATEGORY_WORD: r"\w",
    C.CATEGORY_NOT_WORD: r"\W",
}
# as plain integers: to ask an enumeration for a bit takes a microsecond
_IGNORECASE, _MULTILINE, _DOTALL = int(re.IGNORECASE), int(re.MULTILINE), int(re.DOTALL)
_ASCII, _MEANINGS = int(re.ASCII), int(re.ASCII | re.UNICODE | re.LOCALE)
_NOTHING_FOR_WORDS = int(re.UNICODE | re.MULTILINE | re.DOTALL)
"""Flags that change nothing in a pattern without special characters."""

_REFERENCE = {
    C.GROUPREF: ("a backreference", "it is not a regular language; write the repeated text out"),
    C.GROUPREF_EXISTS: ("a conditional group", "write both branches as an alternation"),
}
_MOST_TEXTS = 64  # of a group that is referred to
_MOST_CASES = 1000  # of all such groups together
_MORE_THAN_WORDS = re.compile(r"[\\.^$*+?{}\[\]()]")
_CLASS = re.compile(r"\[(\^?)((?:[^][\\^&~|-](?:-[^][\\^&~|-])?)+)\]([*+?]?)")
_SHORT = 200
"""Characters of such a class; longer ones, which are rare, are left to `re`'s parser."""
_MEMBER = re.compile(r"(.)(?:-(.))?", re.DOTALL)
_TIMES: dict[str, tuple[int, int | None]] = {"": (1, 1), "*": (0, None), "+": (1, None), "?": (0, 1)}
_MAY_REFER = re.compile(r"\\[0-9]|\(\?P=|\(\?\(")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LOOKING = frozenset((C.AT, C.ASSERT, C.ASSERT_NOT))
_ATOMIC = getattr(C, "ATOMIC_GROUP", None)  # since Python 3.11
_POSSESSIVE = getattr(C, "POSSESSIVE_REPEAT", None)


def regex_node(pattern: str, flags: int = 0, limits: Limits = DEFAULT, whole: bool = True) -> Node:
    """The language ``{t : re.fullmatch(pattern, t, flags)}`` as a node.

    Where the pattern looks around, the node contains `Look` nodes for `lookaround.eliminate_lookaround`.

    `whole`: whether it is matched against a whole text, so that ``^`` before and ``$`` behind it say nothing. Otherwise
    its lazy repeats are `LazyRepeat` nodes, for `assertions.end_early`. Raises GrammarError: the pattern does not
    parse, or is not a regular language.
    """
    if not isinstance(pattern, str):
        raise GrammarError(f"a regular expression is text, not {type(pattern).__name__}")
    if len(pattern) > limits.characters:
        limits.check("characters", len(pattern), f"a regular expression of {len(pattern):,} characters")
    flags = int(flags)
    # Words, alternatives of words and plain classes are most patterns of most grammars: `re`'s parser isn't asked.
    if not _MORE_THAN_WORDS.search(pattern) and not flags & ~_NOTHING_FOR_WORDS:
        return _words(pattern)  # 100 times faster
    if len(pattern) > limits.pattern:
        limits.check("pattern", len(pattern), f"a regular expression of {len(pattern):,} characters")
    if not flags and (node := plain_class(pattern)):
        return node  # three times faster
    try:
        tree = parser.parse(pattern, flags)
        refers = bool(_MAY_REFER.search(pattern)) and bool(_references(tree))
        return _PatternReader(pattern, limits, refers, whole).sequence(tree, tree.state.flags, first=whole, last=whole)
    except re.error as error:
        what, hint = f"regular expression does not parse: {error.msg}", "it is read as Python's `re` reads it"
        line, column = error.lineno or 1, error.colno or (error.pos or 0) + 1
        raise Source(pattern, "regex", None).error(what, hint, line, column) from None
    except RecursionError:
        raise _too_deep() from None
    except (OverflowError, ValueError) as error:  # ValueError: flags that don't go together
        raise GrammarError(f"regular expression does not parse: {error}") from None


def _words(pattern: str) -> Node:
    words = pattern.split("|")
    try:
        return alt([literal(word) for word in words])
    except UnicodeEncodeError:  # a word with a lone surrogate is in no text
        return alt([literal(word) for word in words if not _SURROGATE.search(word)])


def plain_class(pattern: str, place: Place | None = None) -> Node | None:
    """The texts of a class without escapes, and of a repeat of one; None for other patterns."""
    found = _class_and_times(pattern) if len(pattern) <= _SHORT else None
    if found is None:
        return None
    chars, low, high = found
    return repeat(nodes.one_of(chars, place), low, high)


@lru_cache(maxsize=256)
def _class_and_times(pattern: str) -> tuple[CharSet, int, int | None] | None:
    match = _CLASS.fullmatch(pattern)
    if not match:
        return None
    ranges = [(ord(low), ord(high or low)) for low, high in _MEMBER.findall(match[2])]
    if any(low > high for low, high in ranges):
        return None
    return (charset(ranges).complement() if match[1] else charset(ranges), *_TIMES[match[3]])


def _too_deep() -> GrammarError:
    return GrammarError("groups are nested too deeply", hint="name the inner ones as rules of a .lark grammar")


def _references(tree) -> set[tuple[object, int]]:
    """(op, group) for every reference in a piece of `re`'s parse tree."""
    groups, work = set(), [tree]
    while work:
        part = work.pop()
        if isinstance(part, tuple) and len(part) == 2 and part[0] is C.GROUPREF:
            groups.add(part)
        elif isinstance(part, tuple) and len(part) == 2 and part[0] is C.GROUPREF_EXISTS:
            groups.add((C.GROUPREF_EXISTS, part[1][0]))
            work += part[1][1:]
        elif isinstance(part, (tuple, list)) or hasattr(part, "data"):
            work.extend(part)
    return groups


def _few_texts(node: Node) -> list[str] | None:
    """All texts of a tree of characters, each once; None if there may be too many, or it looks around."""

    def few(texts: Iterable[str]) -> list[str] | None:
        found: dict[str, None] = {}
        for text in texts:
            found[text] = None
            if len(found) > _MOST_TEXTS:
                return None
        return list(found)

    def leaf(node: Node) -> list[str] | None:
        match node:
            case nodes.LiteralText():
                return [node.data.decode()]
            case nodes.Choices():
                return few(value.decode() for value in node.values)
            case nodes.Chars():
                return few(chr(code) for low, high in node.chars.ranges for code in range(low, high + 1))
        return None

    def joined(found: list[str] | None, parts: Iterable[list[str] | None], join: Callable) -> list[str] | None:
        for texts in parts:
            if found is None or texts is None:
                return None
            found = few(join(found, texts))
        return found

    def seq(parts: Iterable[list[str] | None]) -> list[str] | None:
        return joined([""], parts, lambda one, other: map("".join, product(one, other)))

    def alt(parts: Iterable[list[str] | None]) -> list[str] | None:
        return joined([], parts, chain)

    def repeat(node: Repeat, item: list[str] | None) -> list[str] | None:
        if item is None or node.high is None or node.high > _MOST_TEXTS:
            return None
        return alt(seq([item] * count) for count in range(node.low, node.high + 1))

    return fold(node, leaf, seq, alt, repeat)


class _PatternReader:
    """Reads one parse tree; `first` and `last` say whether a piece stands at the start and the end of the text."""

    def __init__(self, pattern: str, limits: Limits, refers: bool, whole: bool):
        self.pattern = pattern
        self.limits = limits
        self.refers = refers  # whether anything refers to a group
        self.whole = whole  # whether it is matched against a whole text
        self.depth = 0
        self.atomic = 0  # open atomic groups, in which order counts
        self.loops = 0  # open repeats of more than one round
        self.cases = 1
        self.taken: dict[int, str | bool] = {}  # group -> its text, or whether it took part

    def refusal(self, what: str, hint: str) -> GrammarError:
        shown = self.pattern.replace("\n", "\\n")  # a message is one line
        shown = shown if len(shown) <= 200 else f"{shown[:200]}..."
        return GrammarError(f"{what} is not supported in /{shown}/", hint=hint)

    def sequence(self, items, flags: int, first: bool = False, last: bool = False) -> Node:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise _too_deep()
        items = getattr(items, "data", items)  # a list: asking `re`'s object for one item after another is slow
        out: list[Node] = []
        text: list[str] = []  # literal characters in a row, which are one text unless something looks at one of them
        joins = not flags & _IGNORECASE and not any(op in _LOOKING for op, _ in items)
        for i, (op, value) in enumerate(items):
            if joins and op is C.LITERAL and not 0xD800 <= value <= 0xDFFF:
                text.append(chr(value))
                continue
            if text:
                out.append(literal("".join(text)))
                text = []
            at_start = first and i == 0
            at_end = last and i == len(items) - 1
            asked = self.asked(op, value, items[i + 1 :]) if self.refers else None
            if asked:  # the rest of the sequence is read once for each case
                out.append(self.by_cases(asked, op, value, items[i + 1 :], flags, at_start, last))
                break
            out.append(self.item(op, value, flags, at_start, at_end))
        if text:
            out.append(literal("".join(text)))
        self.depth -= 1
        return seq(out if joins else assertions.narrowed(out))

    def asked(self, op, value, later) -> tuple[int, bool, bool] | None:
        """(group, whether it is optional, whether its text is asked for) for a group that `later` refers to."""
        optional = op in (C.MAX_REPEAT, C.MIN_REPEAT) and value[:2] == (0, 1) and len(value[2]) == 1
        if optional:
            ((op, value),) = value[2]
        group = value[0] if op is C.SUBPATTERN else None
        asking = {op for op, number in _references(later) if number == group}
        if group is None or not asking or self.atomic:  # in an atomic group, cases would change the order of ways
            return None
        if optional and self.loops:  # a group of an earlier round still counts
            return None
        return group, optional, C.GROUPREF in asking

    def by_cases(self, asked: tuple[int, bool, bool], op, value, later, flags: int, first: bool, last: bool) -> Node:
        """The group and what is `later`, once for each of its texts, or for its presence and its absence."""
        group, optional, text_asked = asked
        if optional:
            ((op, value),) = value[2]
        node = self.item(op, value, flags, first, last=False)
        cases: list[tuple[Node, str | bool]] = [(node, True)]
        if text_asked:
            texts = _few_texts(node)
            if texts is None:
                what = "that looks around" if assertions.looks(node) else f"of more than {_MOST_TEXTS} texts"
                raise self.refusal(f"a backreference to a group {what}", _REFERENCE[C.GROUPREF][1])
            cases = [(literal(text), text) for text in texts]
        if optional:
            cases.append((EMPTY, False))
        # Each case reads the rest of the sequence again, and may have groups with cases in it: their numbers multiply.
        self.cases *= max(len(cases), 1)
        if self.cases > _MOST_CASES:
            raise self.refusal(
                f"a pattern whose groups have more than {_MOST_CASES} texts together", _REFERENCE[C.GROUPREF][1]
            )
        out = []
        for before, self.taken[group] in cases:
            out.append(seq([before, self.sequence(later, flags, False, last)]))
        self.taken.pop(group, None)
        return alt(out)

    def reference(self, op, value, flags: int, first: bool, last: bool) -> Node:
        group = value[0] if op is C.GROUPREF_EXISTS else value
        taken = self.taken.get(group)
        if taken is None:
            raise self.refusal(*_REFERENCE[op])
        if op is C.GROUPREF_EXISTS:
            branch = value[2] if taken is False else value[1]
            return self.sequence(branch or (), flags, first, last)
        if not isinstance(taken, str):  # the group took no part: nothing equals its text
            return NEVER
        if flags & _IGNORECASE and taken.lower() != taken.upper():
            raise self.refusal("a backreference to letters of either case", _REFERENCE[op][1])
        return literal(taken)

    def item(self, op, value, flags: int, first: bool, last: bool) -> Node:
        if op is C.LITERAL:
            return nodes.one_of(self.fold(charset([(value, value)]), flags))
        if op is C.NOT_LITERAL:
            return Chars(self.fold(charset([(value, value)]), flags).complement())
        if op is C.ANY:
            newline = charset([(10, 10)])
            return Chars(charset([]).complement() if flags & _DOTALL else newline.complement())
        if op is C.IN:
            return nodes.one_of(self.char_class(value, flags))
        # In an atomic group the order of alternatives and the kind of repeat decide what is read: `alt` and `repeat`,
        # which sort and simplify, would change it.
        if op is C.BRANCH:
            branches = [self.sequence(b, flags, first, last) for b in value[1]]
            return Alt(tuple(branches)) if self.atomic else alt(branches)
        if op is C.SUBPATTERN:
            _, add, remove, body = value
            if add & _MEANINGS:  # (?a:...) or (?u:...): one takes the other's place
                flags &= ~_MEANINGS
            return self.sequence(body, (flags | add) & ~remove, first, last)
        if op in (C.MAX_REPEAT, C.MIN_REPEAT):
            low, high, body = int(value[0]), value[1], value[2]
            high = None if high is C.MAXREPEAT else int(high)
            if max(low, high or 0) > self.limits.repeat:
                self.limits.check("repeat", max(low, high or 0), f"repeat {{{low},{high}}} in a regular expression")
            self.loops += high != 1
            node = self.sequence(body, flags)
            self.loops -= high != 1
            if op is C.MIN_REPEAT and low != high and (self.atomic or not self.whole):
                return assertions.LazyRepeat(node, low, high)
            return Repeat(node, low, high) if self.atomic else repeat(node, low, high)
        if op is _ATOMIC:
            return self.first_way(value, flags)
        if op is _POSSESSIVE:  # `re` does not go back into a finished round either
            low, high, body = value
            rounds = C.MAX_REPEAT, (low, high, [(_ATOMIC, body)])
            return self.first_way([rounds], flags)
        if op is C.AT:
            return self.anchor(value, flags, first, last)
        if op in (C.ASSERT, C.ASSERT_NOT):
            direction, inner = value
            return self.look(direction, inner, op is C.ASSERT, flags)
        if op is C.FAILURE:  # (?!)
            return NEVER
        if op in _REFERENCE:
            return self.reference(op, value, flags, first, last)
        raise self.refusal(str(op).lower().replace("_", " "), "write it with the other means of `re`")

    def first_way(self, body, flags: int) -> Node:
        self.atomic += 1
        node = assertions.Atomic(self.sequence(body, flags))
        self.atomic -= 1
        return node

    def anchor(self, value, flags: int, first: bool, last: bool) -> Node:
        if value in (C.AT_BEGINNING, C.AT_BEGINNING_STRING):
            every_line = value is C.AT_BEGINNING and flags & _MULTILINE
            return EMPTY if first else assertions.line_start() if every_line else assertions.text_start()
        if value is C.AT_END_STRING:
            return EMPTY if last else assertions.text_end()
        if value is C.AT_END:
            return EMPTY if last else assertions.line_end() if flags & _MULTILINE else assertions.last_line_end()
        return assertions.boundary(flags, value is C.AT_BOUNDARY)

    def look(self, direction: int, body, holds: bool, flags: int) -> Node:
        node = self.sequence(body, flags)
        if direction > 0:
            return assertions.ahead(node, holds)
        low, high = body.getwidth()
        if low != high:
            raise re.error("look-behind requires fixed-width pattern", self.pattern)
        return assertions.behind(node, int(low), holds)

    def fold(self, chars: CharSet, flags: int) -> CharSet:
        if not flags & _IGNORECASE:
            return chars
        if flags & _ASCII:
            extra = [(c ^ 32, c ^ 32) for c in (*range(65, 91), *range(97, 123)) if c in chars]
            return charset([*chars.ranges, *extra])
        return chars.fold_case()

    def char_class(self, items, flags: int) -> CharSet:
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[int, int]] = []
        negate = False
        for op, value in items:
            if op is C.NEGATE:
                negate = True
            elif op is C.LITERAL:
                ranges.append((value, value))
            elif op is C.RANGE:
                ranges.append(value)
            elif op is C.CATEGORY:
                categories.extend(matching(_CATEGORY[value], flags & _ASCII).ranges)
            else:
                raise self.refusal(f"{op} in a character class", "use ranges and \\d \\s \\w")
        # `re` looks a character's category up as it is, whatever the case flag says
        chars = charset([*self.fold(charset(ranges), flags).ranges, *categories])
        return chars.complement() if negate else chars
