"""Whether an expression can begin so: the referee of the workload that no regex describes."""

from __future__ import annotations

_HEAD = b"Calculator("


def begins_calculation(data: bytes) -> bool:
    """Whether some text ``Calculator(sum)`` begins with `data`; sums nest in parentheses.

    The language is deterministic: what may come next depends on the last byte, on whether the number at hand has a
    point already, and on how many parentheses are open.
    """
    if len(data) <= len(_HEAD):
        return _HEAD.startswith(data)
    if not data.startswith(_HEAD):
        return False
    depth, last, pointed = 1, "(", False
    for byte in data[len(_HEAD) :]:
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
    """Whether `data` is such a text: its last parenthesis is closed."""
    closed = data.count(b"(") == data.count(b")")
    return len(data) > len(_HEAD) and closed and data.endswith(b")") and begins_calculation(data)
