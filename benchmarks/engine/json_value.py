"""JSON with at most one space after a comma or colon: its grammar, and the referee of it that no regex can be.

Strings may hold any character but quote, backslash and line break, and JSON's escapes; numbers are JSON's.
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


def rules() -> dict[str, Node]:
    """The grammar."""
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
    """True: an object. False: the beginning of one. None: neither."""
    if not data.startswith(b"{"):
        return None if data else False
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
    """Bytes of the string, or other value without brackets, that `data` begins with; -1: it may go on; 0: none."""
    if what == "value":
        for word in _WORDS:
            if data.startswith(word):
                return len(word)
            if word.startswith(data):
                return -1
    kind = "string" if what == "key" or data.startswith(b'"') else "number"
    if _BEGUN[kind].fullmatch(data):
        return -1 if kind == "number" or not _WHOLE[kind].fullmatch(data) else len(data)
    found = _WHOLE[kind].match(data)
    return found.end() if found else 0
