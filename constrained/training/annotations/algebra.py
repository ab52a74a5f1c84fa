"""Read solutions that set up equations in prose ("Let x be ..."), with letters for the unknowns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from constrained.training.annotations.compose import ReadLine, Solving, solve
from constrained.training.annotations.prose import expression, reach, skip_words, spaced, tokens_of

_LETTER = re.compile(r"(?<![^\W\d_])[A-Za-z](?![^\W\d_]|['’])")
_TRIVIAL = re.compile(r"[a-z]|[\d. ]+")


def algebra_readings(readings: Sequence[ReadLine], read: Callable[[str], ReadLine]) -> Iterator[list[ReadLine]]:
    """Read a solution as equations, in every way that can be solved: first with one unknown, then with two.

    Parameters
    ----------
    readings : sequence of ReadLine
        The lines with their calculations.
    read : callable
        Reads a line's text; lines after an equation are read again with the unknowns' values filled in.

    Yields
    ------
    list of ReadLine
        The lines up to an equation, the equation, and then either nothing or the calculations after it.
    """
    letters = _unknown_letters(readings)
    for count in (1, 2):
        for unknowns in combinations(letters, count):
            result = [(i, e) for i, reading in enumerate(readings) for e in _equations(reading.text, unknowns)]
            for chosen in combinations(result, count):
                if {name for _, equation in chosen for name in equation.unknowns} == {u.lower() for u in unknowns}:
                    yield from _solutions(readings, chosen, read)


def _solutions(
    readings: Sequence[ReadLine], chosen: tuple[tuple[int, Solving], ...], read: Callable[[str], ReadLine]
) -> Iterator[list[ReadLine]]:
    (first, _), (last, last_equation) = chosen[0], chosen[-1]
    names = sorted({name for _, equation in chosen for name in equation.unknowns})
    equations = tuple(pair for _, equation in chosen for pair in equation.equations)
    text, end = readings[last].text, last_equation.end
    # The last unknown gives the last result, so both orders are tried; each with and without the lines before the
    # equation, which may only repeat it, and those after it.
    for order in (names, names[::-1]) if len(names) > 1 else (names,):
        solving = Solving(equations, tuple(order), last_equation.begin if first == last else 0, end)
        values = solve(solving)
        if not values:
            continue
        solved = [*readings[:first], ReadLine(text, (solving,))]
        after = [read(_filled(line, values)) for line in (text[end:], *(r.text for r in readings[last + 1 :]))]
        for begin in (solved[first:], [*solved[first:], *after]):
            yield [*readings[:first], *begin]
            yield begin


def _filled(line: str, values: dict[str, Fraction]) -> str:
    """The line with values in place of unknowns."""
    return _LETTER.sub(lambda found: f"({values[found[0].lower()]})" if found[0].lower() in values else found[0], line)


def _unknown_letters(readings: Sequence[ReadLine]) -> list[str]:
    """The single letters that occur in an equation, the most frequent first."""
    texts = [reading.text for reading in readings]
    counted = Counter(letter for text in texts for letter in _LETTER.findall(text))
    letters = [letter for letter, _ in counted.most_common(6)]
    used = {name for text in texts for equation in _equations(text, tuple(letters)) for name in equation.unknowns}
    return [letter for letter in letters if letter.lower() in used][:4]


def _equations(line: str, unknowns: tuple[str, ...]) -> list[Solving]:
    """The equations in a line that contain an unknown, except those that only state its value."""
    equations = []
    tokens = tokens_of(line, unknowns)
    for equal, token in enumerate(tokens):
        if token.lastgroup != "equal":
            continue
        right, end = expression(tokens, equal + 1, unknowns)
        for first in range(reach(tokens, equal), equal):
            left, after = expression(tokens, first, unknowns)
            if not left or not right or skip_words(tokens, after) != equal:
                continue
            sides = spaced("".join(left)), spaced("".join(right))
            names = tuple(sorted(set(re.findall(r"[a-z]", "".join(sides)))))
            if names and not all(_TRIVIAL.fullmatch(side) for side in sides):
                equations.append(Solving((sides,), names, tokens[first].start(), tokens[end - 1].end()))
            break
    return equations
