"""The keyword `pattern`: regular expressions of ECMA-262 as trees of characters.

JSON Schema's patterns are ECMA-262's, but validators often read them as regular expressions of their own
language. So that every validator accepts what was written, a pattern means here what both ECMA-262 and Python's
`re` make of it: ``\\d`` is an ASCII digit, and ``\\D`` no digit of any script. Where the question is what doesn't
match, it means what either makes of it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.charset import categories, charset, matching
from constrained.grammar.nodes import EMPTY, Chars, Node, repeat
from constrained.grammar.patterns.finite_automata import ANY, nfa
from constrained.grammar.regex import regex_node
from constrained.limits import Limits

ANY_TEXT = r"[\s\S]*"
"""Any text, as a pattern of `re`."""

_ASCII_WORD = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACES = [(9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)]
_FEWEST = {
    "d": charset([(0x30, 0x39)]),
    "w": charset(_ASCII_WORD),
    "s": charset([*_SPACES, (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]),
}
"""The characters that both languages count in a category; Python's sets are the larger ones."""
_BYTE_ORDER_MARK = (0xFEFF, 0xFEFF)  # white space to ECMA-262 only
_LINE_ENDS = r"\n\r\u2028\u2029"
_SAME_TO_BOTH = "tnrfv"
# Python's boundary of Unicode words, and ECMA-262's of ASCII ones
_BOTH = {kind: rf"(?:\{kind}(?a:\{kind}))" for kind in "bB"}
_EITHER = {kind: rf"(?:\{kind}|(?a:\{kind}))" for kind in "bB"}
_LOOKING = frozenset([r"\A", r"\Z", "(?=", "(?!", "(?<=", "(?<!", *_BOTH.values(), *_EITHER.values()])


_LINE_BREAK = r"\n?"
_FLAGS = re.compile(r"\(\?([is]+)\)")
_PROPERTY = re.compile(r"\{(?:(?:gc|General_Category)=)?(\w+)\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CATEGORIES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
    "Punctuation": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi", "Final_Punctuation": "Pf", "Other_Punctuation": "Po",
    "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So",
    "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
    "Other": "C", "Control": "Cc", "Format": "Cf", "Surrogate": "Cs", "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip
"""Long names of Unicode's general categories -> their short ones."""


@lru_cache(maxsize=1024)
def pattern_node(pattern: str, limits: Limits, either: bool = False) -> Node:
    """The texts in which `pattern` is found, as a tree of characters (where it looks around, with `Look` nodes).

    Parameters
    ----------
    either : bool
        Whether it is enough that one of the two languages finds the pattern.

    Raises
    ------
    GrammarError
        It does not parse, is not regular, or exists in one of the languages only.
    """
    limits.check("characters", len(pattern), f"a pattern of {len(pattern)} characters")
    translation = _Translation(pattern, either)
    alternatives = (tuple(one) for every in translation.alternatives for one in _unwrapped(every))
    return _found_in_one(tuple(alternatives), translation.flags, limits)


_PIECE = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])+\]|[^\\\[]", re.DOTALL)
_BEGINS = re.compile(r"\^([\w ,;:/@#%&=~'\"<>!-]*)", re.ASCII)
_ENDS = re.compile(r"(?<![\w\\])([\w ,;:/@#%&=~'\"<>!-]*)\$$", re.ASCII)


@lru_cache(maxsize=1024)
def literal_ends(pattern: str) -> tuple[str, str]:
    """What every text that has a pattern plainly begins with, and ends with but for a last line break."""
    pieces = _PIECE.findall(pattern)
    depth = 0
    for piece in pieces:
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth or depth < 0:
            return "", ""
    if "".join(pieces) != pattern or pattern.startswith("(?"):  # perhaps with flags
        return "", ""
    begins, ends = _BEGINS.match(pattern), _ENDS.search(pattern)
    first, last = begins[1] if begins else "", ends[1] if ends else ""
    if begins and pattern[begins.end() :][:1] in ("?", "*", "{"):
        first = first[:-1]
    return first, last


def end_differently(one: str, other: str) -> bool:
    """Whether it is plain by how they begin or end that no text has both patterns."""
    (begin, end), (begin2, end2) = literal_ends(one), literal_ends(other)
    apart = not begin.startswith(begin2) and not begin2.startswith(begin)
    return apart or not end.endswith(end2) and not end2.endswith(end)


@lru_cache(maxsize=4096)
def matches(pattern: str, name: str, limits: Limits) -> tuple[bool, bool]:
    """Whether a name has a pattern in both languages, and in either."""
    first, last = literal_ends(pattern)
    if not (name.startswith(first) and name.endswith((last, f"{last}\n"))):
        return False, False
    both = nfa(pattern_node(pattern, limits), limits).accepts(name)
    return both, both or nfa(pattern_node(pattern, limits, True), limits).accepts(name)


@lru_cache(maxsize=1024)
def _found_in_one(alternatives: tuple[tuple[str, ...], ...], flags: int, limits: Limits) -> Node:
    """The texts in which one of some alternatives is found; many patterns have the same in both readings."""
    return nodes.alt([_found(list(alternative), flags, limits) for alternative in alternatives])


def _unwrapped(tokens: list[str]) -> list[list[str]]:
    """The alternatives of a group that is all there is, so that what anchors them stands outermost."""
    if tokens[:1] not in (["("], ["(?:"]) or tokens[-1] != ")":
        return [tokens]
    out: list[list[str]] = [[]]
    depth = 1
    for token in tokens[1:-1]:
        depth += token.startswith("(") - (token == ")")
        if not depth:
            return [tokens]
        if token == "|" and depth == 1:
            out.append([])
        else:
            out[-1].append(token)
    return [one for alternative in out for one in _unwrapped(alternative)]


def _found(tokens: list[str], flags: int, limits: Limits) -> Node:
    """The texts in which one alternative, as tokens of `re`, is found."""
    begins, ends = tokens[:1] == [r"\A"], tokens[-1:] == [r"\Z"]
    breaks = ends and tokens[-2:-1] == [_LINE_BREAK]
    inner = tokens[begins : len(tokens) - ends - breaks]
    if any(token in _LOOKING for token in inner):
        text, rest = "".join(inner), _LINE_BREAK if breaks else "" if ends else ANY_TEXT
        return regex_node(f"{'' if begins else ANY_TEXT}(?:{text}){rest}", flags, limits)
    anything = repeat(Chars(ANY), 0, None)
    after = repeat(nodes.literal("\n"), 0, 1) if breaks else EMPTY if ends else anything
    return nodes.seq([EMPTY if begins else anything, regex_node("".join(inner), flags, limits), after])


def _written(ranges: tuple[tuple[int, int], ...], in_class: bool) -> str:
    text = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return text if in_class else f"[{text}]"


class _Translation:
    """A pattern as tokens of Python's `re`, one list for each alternative of its outermost level."""

    def __init__(self, pattern: str, either: bool):
        begun = _FLAGS.match(pattern)
        self.pattern, self.at = pattern, len(begun[0]) if begun else 0
        self.flags = re.IGNORECASE if begun and "i" in begun[1] else 0
        self.any_character = bool(begun and "s" in begun[1])
        self.alternatives: list[list[str]] = [[]]
        self.either = [either]  # per open group; a negative lookaround inverts it
        while self.at < len(pattern):
            token = self.token()
            if token == "|" and len(self.either) == 1:
                self.alternatives.append([])
            else:
                self.alternatives[-1].append(token)

    def refuse(self, what: str, hint: str):
        raise GrammarError(f"{what} in the pattern {self.pattern!r}", hint=hint)

    def take(self, length: int = 1) -> str:
        self.at += length
        return self.pattern[self.at - length : self.at]

    def token(self) -> str:
        rest = self.pattern[self.at :]
        first = rest[0]
        if first == "\\":
            return self.escape(in_class=False, negated=False)
        if first == "[":
            return self.char_class()
        if first == "(":
            return self.group(rest)
        if first == ")":
            if len(self.either) > 1:
                self.either.pop()
        elif first == ".":
            self.take()
            if self.any_character:
                return r"[\s\S]"
            return r"[^\n]" if self.either[-1] else f"[^{_LINE_ENDS}]"
        elif first in "^$":
            self.take()
            if first == "$" and self.either[-1]:
                self.alternatives[-1].append(_LINE_BREAK)  # Python's may stand before a last line break
            return r"\A" if first == "^" else r"\Z"
        elif rest.startswith("{,"):
            self.refuse("a repeat without its lower bound", "write {0,n}: ECMA-262 and Python read {,n} apart")
        return self.take()

    def group(self, rest: str) -> str:
        either = self.either[-1]
        for head in ("(?=", "(?!", "(?<=", "(?<!", "(?:"):
            if rest.startswith(head):
                self.either.append(either != head.endswith("!"))
                return self.take(len(head))
        self.either.append(either)
        if rest.startswith("(?<") and ">" in rest:
            self.take(rest.index(">") + 1)
            return "("
        if rest.startswith("(?"):
            self.refuse(f"{rest[:3]!r}", "of flags there are (?i) and (?s), at the beginning of the pattern")
        return self.take()

    def char_class(self) -> str:
        self.take()
        negated = self.pattern.startswith("^", self.at)
        self.take(negated)
        out = ["[^" if negated else "["]
        while self.at < len(self.pattern) and self.pattern[self.at] != "]":
            if self.pattern[self.at] == "\\":
                out.append(self.escape(in_class=True, negated=negated))
            else:
                character = self.take()
                out.append("\\" + character if character in "[&~|" else character)
        if self.at == len(self.pattern):
            self.refuse("a [ without its ]", "close the class, or write \\[")
        self.take()
        if len(out) == 1:
            if not negated:
                self.refuse("the empty class []", "it matches nothing: leave it out")
            return r"[\s\S]"
        return "".join(out) + "]"

    def escape(self, in_class: bool, negated: bool) -> str:
        start = self.at
        self.take()
        kind = self.take()
        if kind and kind in "dwsDWS":
            return self.category(kind, in_class, negated != self.either[-1])
        if kind and kind in "bB" and not in_class:
            return (_EITHER if self.either[-1] else _BOTH)[kind]
        if kind and kind in "AZz" and not in_class:  # Python's alone
            return r"\A" if kind == "A" else r"\Z"
        if kind and kind in "pP":
            return self.property(kind, in_class, negated != self.either[-1], start)
        if kind == "b":
            return r"\x08"
        if kind == "0" and not self.pattern[self.at : self.at + 1].isdigit():
            return r"\x00"
        if kind and kind in "xu":
            return self.code(kind, start, in_class)
        if kind == "c" and self.pattern[self.at : self.at + 1].isalpha():
            return f"\\x{ord(self.take()) % 32:02x}"
        if kind == "k" or kind.isdigit():
            self.refuse("a backreference", "it is not a regular language; write the repeated text out")
        if kind.isalpha() and kind not in _SAME_TO_BOTH or not kind:
            self.refuse(f"'\\{kind}'", "write the characters out as a class, such as [A-Za-z]")
        return f"\\{kind}"

    def category(self, kind: str, in_class: bool, inverted: bool) -> str:
        """The characters of a category: those that both languages mean, or those that either does."""
        name, positive = kind.lower(), kind.islower()
        if positive != inverted:
            chars = _FEWEST[name]
        elif name != "s":  # as Python has it
            return f"\\{kind}"
        else:
            chars = charset([*matching(r"\s").ranges, _BYTE_ORDER_MARK])
        ranges = (chars if positive else chars.complement()).ranges
        return _written(ranges, in_class)

    def property(self, kind: str, in_class: bool, inverted: bool, start: int) -> str:
        """The characters of a Unicode category (ECMA-262's alone).

        Characters that no Unicode version of today assigns belong to any category, or none: whichever is safe.
        """
        found = _PROPERTY.match(self.pattern, self.at)
        name = found[1] if found else ""
        self.take(len(found[0]) if found else 0)
        short = _CATEGORIES.get(name, name)
        if short not in categories():
            hint = "there are the general categories, such as \\p{L}; or write the characters out as a class"
            self.refuse(repr(self.pattern[start : self.at]), hint)
        chars = categories()[short] if kind == "p" else categories()[short].complement()
        unassigned = categories()["Cn"]
        known = chars & unassigned.complement()
        return _written((charset([*chars.ranges, *unassigned.ranges]) if inverted else known).ranges, in_class)

    def code(self, kind: str, start: int, in_class: bool) -> str:
        rest = self.pattern[self.at :]
        if kind == "u" and rest.startswith("{") and "}" in rest:
            digits = self.take(rest.index("}") + 1)[1:-1]
        else:
            digits = self.take(2 if kind == "x" else 4)
        try:
            value = int(digits, 16)
            low = _LOW_SURROGATE.match(self.pattern[self.at :])
            if 0xD800 <= value < 0xDC00 and low:
                value = 0x10000 + ((value - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
                self.take(6)
            # in a class, half a pair stands for no character and does no harm
            if 0xD800 <= value <= 0xDFFF and not in_class or value > 0x10FFFF:
                raise ValueError
        except ValueError:
            self.refuse(repr(self.pattern[start : self.at]), "it is no character: write \\uXXXX with its code")
        return f"\\U{value:08x}"
