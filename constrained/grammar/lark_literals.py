"""The strings, regular expressions and ranges of `.lark` files, as nodes.

What an escape means is lark's (`eval_escaping` in `lark/load_grammar.py`): `\\n \\t \\f \\r \\x \\u
\\U` are characters in strings and in regular expressions alike, so that `/[\\x5b]/` is `[[]`;
every other backslash of a regular expression is Python's.
"""

from __future__ import annotations

import re
from itertools import pairwise

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.charset import charset
from constrained.grammar.lark_syntax import Quoted, Range
from constrained.grammar.nodes import Chars, Node
from constrained.grammar.regex import regex_node
from constrained.limits import Limits

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "u": 0}
_CONTROL = {"n": "\n", "t": "\t", "f": "\f", "r": "\r"}
# `\\"` of a regular expression is one backslash and the quote: lark takes quotes out of their escape last
_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\\"|[\s\S]))')


class Fault(Exception):
    """A faulty literal: what is wrong, and at which character of its source text."""

    def __init__(self, message: str, offset: int = 0, hint: str | None = None):
        self.message, self.offset, self.hint = message, offset, hint
        super().__init__(message)


def text_and_flags(literal: Quoted) -> tuple[str, str]:
    """A literal's text, escapes replaced, and its flags; Fault for a bad escape, or nothing to read."""
    quote = literal.text[0]
    end = literal.text.rindex(quote)
    written, flags = literal.text[1:end], literal.text[end + 1 :]
    if not written:
        hint = 'an empty alternative needs no text: `rule: | "a"`'
        raise Fault(f"an empty literal ({literal.text}) matches nothing there is", 0, hint)
    return unescape(written, quote == "/"), flags


def unescape(written: str, regex: bool) -> str:
    """`written` with lark's escapes replaced."""
    if "\\" not in written:
        return written
    return _ESCAPE.sub(lambda found: _character(found, regex), written)


def _character(found: re.Match, regex: bool) -> str:
    code, other = found[1] or found[2] or found[3], found[4]
    if code is not None:
        if int(code, 16) > 0x10FFFF:
            raise Fault(f"there is no character {found[0]}", found.start() + 1, "the last one is \\U0010ffff")
        return chr(int(code, 16))
    if other in _CONTROL:
        return _CONTROL[other]
    if other in ("x", "u", "U"):
        digits = {"x": "two", "u": "four", "U": "eight"}[other]
        raise Fault(
            f"\\{other} needs {digits} hexadecimal digits after it",
            found.start() + 1,
            "as in \\x41, \\u00e9 and \\U0001f600",
        )
    if other == '"':
        return '"'
    if other == '\\"':
        return '\\"'
    return "\\" if other == "\\" and not regex else "\\" + other


def written_offset(literal: Quoted, at: int) -> int:
    """The offset, in a literal's source text, of the character `at` of its unescaped text."""
    done = last = 0
    written = literal.text[1 : literal.text.rindex(literal.text[0])]
    for match in _ESCAPE.finditer(written):
        done += match.start() - last
        if done >= at:
            return 1 + match.start() - (done - at)
        done += len(_character(match, literal.text[0] == "/"))
        last = match.end()
        if done > at:
            return 1 + match.start()
    return 1 + last + at - done


def plain_text(string: str) -> bytes:
    """The text of a string without flags; empty for other literals, and for faulty ones: `literal_node` tells."""
    if string[-1] != '"':
        return b""
    written = string[1:-1]
    try:
        return (unescape(written, regex=False) if "\\" in written else written).encode()
    except (Fault, UnicodeEncodeError):
        return b""


def literal_node(literal: Quoted, limits: Limits) -> Node:
    """The texts of a literal; Fault if it has none."""
    text, flags = text_and_flags(literal)
    if literal.text[0] == '"' and not flags:
        try:
            return nodes.lark_string(text)
        except UnicodeEncodeError:
            hint = "write the character itself, or \\U and eight digits"
            raise Fault("a lone surrogate is not text", 0, hint) from None
    if literal.text[0] == '"':
        text = re.escape(text)
    return regex(literal, text, flags, limits)


def regex(literal: Quoted, text: str, flags: str, limits: Limits, first: int = 0) -> Node:
    """The texts of a regular expression, which begins at character `first` of the unescaped literal."""
    number = 0
    for letter in flags:
        if letter == "l":
            hint = "leave it out: \\w and its like are Unicode's, or ASCII's in (?a:...)"
            raise Fault(
                "the flag l is for patterns over bytes, and Python refuses it for text", len(literal.text) - 1, hint
            )
        number |= _FLAGS[letter]
    try:
        return regex_node(text, number, limits, whole=False)
    except GrammarError as error:
        offset = 0
        if error.column is not None:
            line = error.line or 1
            offset = sum(map(len, text.splitlines(True)[: line - 1])) + error.column - 1
            offset = written_offset(literal, first + offset) if literal.text[0] == "/" else 0
        raise Fault(error.problem, offset, error.hint) from None


def branches(literal: Quoted, limits: Limits) -> list[Node]:
    """A regular expression's alternatives: lark pastes one without flags next to its neighbours as it is.

    In a terminal, `/a|b/ "c"` is therefore `a|bc`.
    """
    if literal.text[0] == '"' or literal.text[-1] != "/" or "|" not in literal.text:
        return [literal_node(literal, limits)]
    text, flags = text_and_flags(literal)
    if re.match(r"\(\?[aimsux]+\)", text):  # flags for the whole of it
        return [literal_node(literal, limits)]
    cuts = [0, *(at + 1 for at in _bars(text)), len(text) + 1]
    return [regex(literal, text[a : b - 1], flags, limits, a) for a, b in pairwise(cuts)]


def _bars(pattern: str) -> list[int]:
    """Where the `|` stand that are in no group."""
    offsets, depth = [], 0
    for part in re.finditer(r"\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|[()|]", pattern):
        depth += (part[0] == "(") - (part[0] == ")")
        if part[0] == "|" and depth == 0:
            offsets.append(part.start())
    return offsets


def range_node(item: Range) -> Node:
    """The characters of a range. Raises Fault: it isn't a range of characters."""
    if item.first.text[-1] == "i" or item.last.text[-1] == "i":
        raise Fault(f"the range {item.text} can't be case-insensitive", 0, 'write both: `"a".."z" | "A".."Z"`')
    ends = [text_and_flags(item.first)[0], text_and_flags(item.last)[0]]
    if any(len(e) != 1 for e in ends):
        raise Fault(f"a range goes from one character to another, not {item.text}", 0, 'as in `"a".."z"`')
    if ends[0] > ends[1]:
        raise Fault(f"empty range {item.text}", 0, "the first character must not come after the second")
    chars = charset([(ord(ends[0]), ord(ends[1]))])
    if not chars:
        raise Fault("lone surrogates are not text", 0, "leave \\ud800 to \\udfff out")
    return Chars(chars)
