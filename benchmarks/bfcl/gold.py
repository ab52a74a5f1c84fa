"""Accepted answers as calls: BFCL lists accepted values argument by argument."""

from __future__ import annotations

from typing import Any

from benchmarks.bfcl.questions import Accepted, Call

LEFT_OUT = ""
"""The accepted value that says that an argument, or a member of an object, may be left out."""


def variants(accepted: Accepted) -> list[Call]:
    """Accepted calls in which each accepted value occurs at least once, and each optional argument with and without."""
    [(name, arguments)] = accepted.items()
    return [{name: one} for one in _choices(arguments)]


def _choices(values_of: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Objects with one of the values of each member; as few as show each value once, and what may be left out."""
    given = {name: [v for one in values if one != LEFT_OUT for v in _values(one)] for name, values in values_of.items()}
    longest = max(map(len, given.values()), default=0)
    result = [
        {name: values[i % len(values)] for name, values in given.items() if values} for i in range(max(longest, 1))
    ]
    result.append({name: values[0] for name, values in given.items() if values and LEFT_OUT not in values_of[name]})
    return [one for i, one in enumerate(result) if one not in result[:i]]


def _values(one: Any) -> list[Any]:
    """The values that an accepted value stands for: members of an object, alone or in a list, are lists themselves."""
    if _is_listed(one):
        return _choices(one)
    if isinstance(one, list) and one and all(map(_is_listed, one)):
        choices = [_choices(item) for item in one]
        longest = max(map(len, choices))
        return [[c[i % len(c)] for c in choices] for i in range(longest)]
    return [one]


def _is_listed(one: Any) -> bool:
    return isinstance(one, dict) and all(isinstance(values, list) for values in one.values())
