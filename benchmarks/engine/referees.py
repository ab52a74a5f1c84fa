"""Referees for the two workloads that are not regular: nested calculations, and JSON with its grammar.

JSON here has at most one space after a comma or colon. Strings may contain any character except quote, backslash and
line break, and JSON's escapes.
"""

from __future__ import annotations

from benchmarks.engine.language import Chars, Choice, Name, Node, Repeat, Seq, Token, prefix_pattern, whole_pattern

_HEX = Chars("0-9a-fA-F", 1, 1)
_ESCAPE = Seq("\\", Choice(Chars('"\\/bfnrt', 1, 1), Seq("u", _HEX, _HEX, _HEX, _HEX)))
_STRING = Seq('"', Repeat(Choice(Chars('"\\\n', 1, 1, negated=True), _ESCAPE)), '"')
_DIGITS = Chars("0-9")
_NUMBER = Seq(
    Repeat(Seq("-"), 0, 1),
    Choice("0", Seq(Chars("1-9", 1, 1), Chars("0-9", 0, None))),
    Repeat(Seq(".", _DIGITS), 0, 1),
    Repeat(Seq(Chars("eE", 1, 1), Repeat(Choice("+", "-"), 0, 1), _DIGITS), 0, 1),
)
_WORDS = (b"true", b"false", b"null")
_WHOLE = {"string": whole_pattern(_STRING), "number": whole_pattern(_NUMBER)}
_BEGUN = {"string": prefix_pattern(_STRING), "number": prefix_pattern(_NUMBER)}


def json_rules() -> dict[str, Node]:
    """The grammar of a JSON object."""
    space = Repeat(Seq(" "), 0, 1)
    comma = Seq(",", space)
    pair = Seq(Name("string"), ":", space, Name("value"))
    return {
        "root": Name("object"),
        "value": Choice(Name("object"), Name("array"), Name("string"), Name("number"), "true", "false", "null"),
        "object": Seq("{", Repeat(Seq(pair, Repeat(Seq(comma, pair))), 0, 1), "}"),
        "array": Seq("[", Repeat(Seq(Name("value"), Repeat(Seq(comma, Name("value")))), 0, 1), "]"),
        "string": Token(_STRING),
        "number": Token(_NUMBER),
    }


def begins_object(data: bytes) -> bool:
    """Whether some object begins with `data`."""
    return _read(data) is not None


def is_object(data: bytes) -> bool:
    """Whether `data` is an object."""
    return _read(data) is True


def _read(data: bytes) -> bool | None:
    """True for an object, False for a proper beginning of one, None for neither."""
    if not data.startswith(b"{"):
        return None if data else False
    # A pushdown automaton: `closing` has the brackets that are open, `awaited` what must stand at `at`.
    closing, at, awaited, after_space = [b"}"], 1, "key or end", ""
    while closing:
        if at == len(data):
            return False
        byte = data[at : at + 1]
        if awaited == "space":  # after a comma or a colon
            at, awaited = at + (byte == b" "), after_space
        elif awaited == "colon":
            if byte != b":":
                return None
            at, awaited, after_space = at + 1, "space", "value"
        elif awaited == "comma or end" or (awaited.endswith("or end") and byte == closing[-1]):
            if byte == closing[-1]:
                closing.pop()
            elif byte != b",":
                return None
            else:
                after_space = "key" if closing[-1] == b"}" else "value"
            at, awaited = at + 1, "space" if byte == b"," else "comma or end"
        elif awaited.startswith("value") and byte in b"{[":
            closing.append(b"}" if byte == b"{" else b"]")
            at, awaited = at + 1, "key or end" if byte == b"{" else "value or end"
        else:
            length = _length("key" if awaited.startswith("key") else "value", data[at:])
            if length <= 0:
                return False if length else None
            at, awaited = at + length, "colon" if awaited.startswith("key") else "comma or end"
    return True if at == len(data) else None


def _length(what: str, data: bytes) -> int:
    """Length of the string or scalar at the beginning of `data`; -1 if it may continue, 0 if there is none."""
    if what == "value":
        for word in _WORDS:
            if data.startswith(word):
                return len(word)
            if word.startswith(data):
                return -1
    kind = "string" if what == "key" or data.startswith(b'"') else "number"
    if _BEGUN[kind].fullmatch(data):
        return -1 if kind == "number" or not _WHOLE[kind].fullmatch(data) else len(data)
    match = _WHOLE[kind].match(data)
    return match.end() if match else 0


_CALL = b"Calculator("


def begins_calculation(data: bytes) -> bool:
    """Whether some text ``Calculator(sum)`` begins with `data`; sums nest in parentheses.

    What may come next depends only on the last byte, on whether the current number has a point already, and on how
    many parentheses are open.
    """
    if len(data) <= len(_CALL):
        return _CALL.startswith(data)
    if not data.startswith(_CALL):
        return False
    # `last` is the last character, "0" for any digit.
    depth, last, pointed = 1, "(", False
    for byte in data[len(_CALL) :]:
        character = chr(byte)
        if depth == 0:
            return False
        if character.isascii() and character.isdigit():
            if last == ")":
                return False
            pointed = pointed and last in "0."
            last = "0"
        elif character == ".":
            if last != "0" or pointed:
                return False
            pointed, last = True, "."
        elif character == "(":
            if last in "0).":
                return False
            depth, last, pointed = depth + 1, "(", False
        elif character == ")":
            if last not in "0)":
                return False
            depth, last, pointed = depth - 1, ")", False
        elif character in "+-*/":
            if last not in "0)":
                return False
            last, pointed = character, False
        else:
            return False
    return True


def is_calculation(data: bytes) -> bool:
    """Whether `data` is a whole such text: its last parenthesis is closed."""
    closed = data.count(b"(") == data.count(b")")
    return len(data) > len(_CALL) and closed and data.endswith(b")") and begins_calculation(data)
