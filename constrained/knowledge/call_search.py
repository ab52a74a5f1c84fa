"""The text of a value that an automaton admits: its members in some order, its strings and numbers in some spelling.

A verdict is about a value, the masks about one way to write it. Schemas tell the usual way (`misfit.Values.written`);
where conditions of a policy chose other values or another order, it is looked for here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from constrained.automaton.state import Prefix

MOST_ORDERS = 5_000
"""Members tried one after the other to find the order of an object's; beyond, there is none."""

_LONGEST_NUMBER = 100
"""Digits of a number that are written without an exponent."""

_Ends = dict[Prefix, tuple]
"""The states after a text so far, each with the text's pieces as a linked list."""


def find_text(opening: Prefix, before: str, value: Any, after: str) -> str | None:
    """The text that is accepted from `opening`: `before`, the value in some spelling, `after`; None if there is none.

    Raises RecursionError: the value is nested too deeply.
    """
    ends = _read(_Search().value(_read({opening: ()}, before), value), after)
    found = next((pieces for state, pieces in ends.items() if state.accepting), None)
    if found is None:
        return None
    out: list[str] = []
    while found:
        found, piece = found
        out.append(piece)
    return "".join(reversed(out))


def _read(ends: _Ends, *texts: str) -> _Ends:
    """The states after one of some texts, the first ones preferred."""
    result: _Ends = {}
    for text in texts:
        data = text.encode()
        for state, pieces in ends.items():
            if (to := state.read(data)) is not None:
                result.setdefault(to, (pieces, text))
    return result


class _Search:
    def __init__(self) -> None:
        self._left = MOST_ORDERS

    def value(self, ends: _Ends, value: Any) -> _Ends:
        """The states after a value, in any spelling that is admitted."""
        if not ends:
            return ends
        if isinstance(value, dict):
            return self._object(ends, value)
        if isinstance(value, list):
            ends = _read(ends, "[")
            for i, item in enumerate(value):
                ends = self.value(_read(ends, ", ", ",") if i else ends, item)
            return _read(ends, "]")
        if isinstance(value, str):
            return self._string(ends, value)
        return _read(ends, *_numbers(value) if isinstance(value, (int, float)) else ["null"])

    def _string(self, ends: _Ends, value: str) -> _Ends:
        whole = _read(ends, json.dumps(value, ensure_ascii=False))
        if whole:
            return whole
        ends = _read(ends, '"')
        for character in value:
            if not ends:
                break
            ends = _read(ends, *_characters(character))
        return _read(ends, '"')

    def _object(self, ends: _Ends, value: dict[str, Any]) -> _Ends:
        begun = _read(ends, "{")
        usual = begun
        for i, (name, inner) in enumerate(value.items()):
            usual = self._member(usual, name, inner, not i)
        return _read(usual, "}") or _read(self._any_order(begun, value), "}")

    def _member(self, ends: _Ends, name: str, inner: Any, first: bool) -> _Ends:
        ends = self._string(ends if first else _read(ends, ", ", ","), name)
        return self.value(_read(ends, ": ", ":"), inner)

    def _any_order(self, begun: _Ends, value: dict[str, Any]) -> _Ends:
        """The states after all members, in some order."""
        # Depth first; of the states after the same members, each is gone on from once.
        seen: set[tuple[Prefix, frozenset[str]]] = set()
        work: list[tuple[_Ends, frozenset[str]]] = [(begun, frozenset(value))]
        while work:
            ends, left = work.pop()
            if not left:
                return ends
            ways = []
            for name in value:
                if name in left:
                    self._left -= 1
                    if self._left < 0:
                        return {}
                    after = self._member(ends, name, value[name], len(left) == len(value))
                    rest = left - {name}
                    new = {state: pieces for state, pieces in after.items() if (state, rest) not in seen}
                    seen.update((state, rest) for state in new)
                    if new:
                        ways.append((new, rest))
            work += reversed(ways)
        return {}


def _numbers(value: int | float) -> Iterator[str]:
    """Yield the spellings of a number, true or false, those without an exponent first."""
    if isinstance(value, bool):
        yield "true" if value else "false"
        return
    if value == int(value):
        yield str(int(value))
        yield f"{int(value)}.0"
    else:
        plain = format(Decimal(repr(value)), "f")
        if len(plain) <= _LONGEST_NUMBER:
            yield plain
    yield json.dumps(value)


def _characters(character: str) -> list[str]:
    """The spellings of a character within a JSON string."""
    units = character.encode("utf-16-be").hex()
    long = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    return [json.dumps(character, ensure_ascii=False)[1:-1], long]
