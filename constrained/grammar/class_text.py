"""Sets of characters as people write them: `[^\\]\\n]`, `\\d`, `[a-f0-9]`."""

from __future__ import annotations

from constrained.grammar.charset import MAX_CODE_POINT, CharSet, matching

_NAMED = ("\\w", "\\d", "\\s", "\\W", "\\D", "\\S")
_SHOWN = 12
"""Ranges that are written out."""


def class_text(chars: CharSet) -> str:
    """`chars` in the notation of regular expressions; cut short, with a word on it, where it is long."""
    rest = chars.complement()
    if not rest:
        return "(?s:.)"
    negated = chars.ranges[-1][1] == MAX_CODE_POINT and len(rest.ranges) <= len(chars.ranges)
    ranges = rest.ranges if negated else chars.ranges
    if len(ranges) > _SHOWN:
        named = next((name for name in _NAMED if matching(name, 0) is chars), None)
        if named:
            return named
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and not negated:
        return _character(ranges[0][0], ".*+?(){}|$^/[]\\")
    parts = [_range(low, high) for low, high in ranges[:_SHOWN]]
    more = f"... {len(ranges) - _SHOWN} more ranges" if len(ranges) > _SHOWN else ""
    return f"[{'^' if negated else ''}{''.join(parts)}{more}]"


def _range(low: int, high: int) -> str:
    first, last = _character(low), _character(high)
    return first if low == high else f"{first}{last}" if high == low + 1 else f"{first}-{last}"


def _character(code: int, special: str = "]^-[\\") -> str:
    char = chr(code)
    if char in special:
        return f"\\{char}"
    if char in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
    if char.isprintable():
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
