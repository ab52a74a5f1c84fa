"""Read calculations in prose, such as ``7 stickers/page * 6 pages = 42``, as formulas of our grammar.

A calculation is accepted if its sides agree: the value of the formula is the stated result, or rounds to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from constrained.environments.executor.executor import Executor
from constrained.errors import ActionError

_SIGNS = str.maketrans({"×": "*", "∙": "*", "⋅": "*", "÷": "/", "–": "-", "−": "-", "—": "-", "[": "(", "]": ")"})
_WORDS = {"equals": "=", "equal": "=", "plus": "+", "minus": "-", "times": "*", "divided by": "/", "multiplied by": "*"}
_SAID = re.compile(rf"(?<=[\d)%])(?P<unit>[^\W\d_ ]*) ({'|'.join(_WORDS)}) (?=[\d.$(])")
_NUMBERS = (
    r"(?P<mixed>\d+(?:\s+and)?\s+\d+/\d+(?!\d))"
    r"|(?P<number>(?:\d[\d,]*\d|\d)?\.\d+|\d[\d,]*\d|\d)(?:\.{2,3}|…)?"
)
_OTHERS = (
    r"(?P<percent>\s?%)?|(?P<sign>\*\*|[-+*/^])|(?P<open>\()|(?P<close>\))|(?P<root>√)"
    r"|(?P<word>[^\W\d_]+(?:['’-][^\W\d_]{2,})*(?:\.(?=\s*=))?)|(?P<equal>=)|(?P<other>\S)"
)
_TOKEN = re.compile(rf"{_NUMBERS}(?:[kKmMgh]\b)?{_OTHERS}")
_TOKEN_WITH_UNKNOWNS = re.compile(_NUMBERS + _OTHERS)
_UNIT = re.compile(r"/\s*(?=[^\W\d_])")
"""In "miles/hour" the slash is part of a unit, not a division."""
_FRACTION = re.compile(r"(?<![\d./])\d+/\d+(?![\d./])")


@dataclass(frozen=True)
class Calculation:
    """One calculation of a line."""

    formula: str  # in the grammar of `grammars/lumos/formula.lark`
    value: Fraction  # the formula's value
    stated: Fraction  # the value in the text: the same, or rounded
    # span of the calculation with its result in the line
    begin: int
    end: int


@lru_cache(maxsize=200_000)
def value_of(formula: str) -> Fraction | None:
    """The value of a formula without names; None if it is not a formula, or its value is not rational."""
    executor = Executor("maths")
    try:
        executor.execute(f"R1 = Calculator({formula})")
    except ActionError:
        return None
    return rational(executor.values[1])


def rational(value) -> Fraction | None:
    """A result of the executor as a fraction; None if it is not rational."""
    return Fraction(int(value.p), int(value.q)) if getattr(value, "is_Rational", False) else None


def calculations(line: str) -> Iterator[Calculation]:
    """Yield the calculations in a line of text, in order."""
    tokens = tokens_of(line)
    at = 0
    while at < len(tokens):
        if tokens[at].lastgroup == "equal" and (found := _around(tokens, at)):
            calculation, at = found
            yield calculation
        else:
            at += 1


def tokens_of(line: str, unknowns: tuple[str, ...] = ()) -> list[re.Match]:
    """The numbers, signs and words of a line; `unknowns` are words even if they could be signs or units."""
    line = re.sub(r"[$£€]", " ", line.translate(_SIGNS))
    line = re.sub(r"(?<=\d) (?=000\b)", ",", line)
    line = _SAID.sub(lambda found: f"{found['unit']} {_WORDS[found[2]]} ".ljust(len(found[0])), line)
    line = _UNIT.sub(lambda found: found[0] if line[found.end()] in unknowns else " " * len(found[0]), line)
    if not {"x", "X"} & set(unknowns):
        line = re.sub(r"(?<=[\d)%\s])[xX](?=\s*[\d.(])", "*", line)
    return list((_TOKEN_WITH_UNKNOWNS if unknowns else _TOKEN).finditer(line))


def _around(tokens: list[re.Match], equal: int) -> tuple[Calculation, int] | None:
    """The longest calculation around the equals sign at `equal` with agreeing sides, and where it ends."""
    sides, after = _right_sides(tokens, equal)
    if not sides:
        return None
    for first in range(reach(tokens, equal), equal):
        left, end = expression(tokens, first)
        if left and skip_words(tokens, end) == equal and (agreement := _agreement([left, *sides])):
            return Calculation(*agreement, tokens[first].start(), tokens[after - 1].end()), after
    return None


def reach(tokens: list[re.Match], equal: int) -> int:
    """The first token that can belong to the left side of an equals sign."""
    at = equal
    while at and tokens[at - 1].lastgroup not in ("equal", "other"):
        at -= 1
    return at


def _right_sides(tokens: list[re.Match], equal: int) -> tuple[list[list[str]], int]:
    """The sides after each equals sign of a chain ``= 7 * 2 = 14``, and where the last ends."""
    sides, after = [], equal
    while after < len(tokens) and tokens[after].lastgroup == "equal":
        side, end = expression(tokens, after + 1)
        if not side:
            break
        sides.append(side)
        after = end
        if (following := skip_words(tokens, end)) < len(tokens) and tokens[following].lastgroup == "equal":
            after = following
    if after < len(tokens) and tokens[after].lastgroup == "equal" and sides:
        after = min(after + 1, len(tokens))  # followed by something other than a number
    return sides, after


def skip_words(tokens: list[re.Match], at: int) -> int:
    """The first token from `at` that is not a unit; single letters don't count as units."""
    while at < len(tokens) and tokens[at].lastgroup == "word" and len(tokens[at][0].rstrip(".")) > 1:
        at += 1
    return at


def expression(tokens: list[re.Match], at: int, unknowns: tuple[str, ...] = ()) -> tuple[list[str], int]:
    """The longest formula from token `at`, and where it ends.

    Words after numbers are taken for units and left out, except letters among `unknowns`.
    """
    # Read tokens while they continue a formula; `whole` is the longest beginning so far that is one by itself.
    pieces: list[str] = []
    whole: tuple[int, int] = (0, at)
    depth, operand = 0, True  # open parentheses; whether a number comes next
    for i in range(at, len(tokens)):
        token, kind = tokens[i], tokens[i].lastgroup
        if operand and kind in ("number", "percent"):
            pieces.append(token["number"].replace(",", "") + ("%" if token["percent"] else ""))
            operand = False
        elif operand and kind == "mixed":
            number, numerator, denominator = re.findall(r"\d+", token[0])
            pieces.append(f"({number} + {numerator}/{denominator})")
            operand = False
        elif kind == "word" and token[0] in unknowns and (operand or token.start() == tokens[i - 1].end()):
            pieces += [token[0].lower()] if operand else [" * ", token[0].lower()]
            operand = False
        elif kind == "open":
            pieces += ["("] if operand else [" * ", "("]
            depth, operand = depth + 1, True
        elif operand and kind == "sign" and token[0] == "-" and (not pieces or pieces[-1] == "("):
            pieces.append("-")
        elif not operand and kind == "sign":
            around = token.string[token.start() - 1] + token.string[token.end() : token.end() + 1]
            pieces.append(f" {token[0]} " if " " in around else token[0])
            operand = True
        elif operand and kind == "root":
            pieces.append("sqrt")
        elif not operand and kind == "close" and depth:
            pieces.append(")")
            depth -= 1
        elif operand or kind != "word" or len(token[0]) == 1:  # a single letter is not a unit
            break
        if not operand and not depth and (kind != "word" or token[0] in unknowns):
            whole = len(pieces), i + 1
    return pieces[: whole[0]], whole[1]


def _agreement(sides: list[list[str]]) -> tuple[str, Fraction, Fraction] | None:
    """The formula, its value, and the stated value; None if no two sides agree.

    The formula is the first side that calculates anything; the stated value is the last side.
    """
    # Tried first with percent signs as hundredths, or as units where the text shows that they are.
    *formulas, last = ["".join(side) for side in sides]
    as_unit = "* 100%" in formulas[0]  # in "6/10 * 100% = 60%" the sign is a unit, in "50% * 8 = 4" a hundredth
    for keep in (not as_unit, as_unit):
        read = (lambda text: text) if keep else (lambda text: text.replace("%", ""))
        stated = value_of(read(last))
        for formula in map(read, formulas):
            if stated is None or not re.search(r"[-+*/^s]", formula.lstrip("-")):
                continue
            for tried in dict.fromkeys((formula, _FRACTION.sub(r"(\g<0>)", formula))):  # "6 / 1/30" is 6 / (1/30)
                value = value_of(tried)
                if value is not None and (fitted := fitted_to(tried, value, stated, last)):
                    return spaced(fitted[0]), fitted[1], stated
    return None


def spaced(formula: str) -> str:
    """The formula with spaces around its signs."""
    return re.sub(r"(?<=[\w)%.])(\*\*|[-+*/^])(?=[\w(.])", r" \1 ", formula)


def fitted_to(formula: str, value: Fraction, stated: Fraction, written: str) -> tuple[str, Fraction] | None:
    """The formula, rounded if needed, and its value, if that is the stated value; else None.

    The formula is rounded if the stated value is a whole number; decimals count as rounded only in the text.
    """
    _, point, decimals = written.rstrip("%").partition(".")
    if value == stated:
        return formula, value
    if point and decimals.isdigit():
        scale = 10 ** len(decimals) * (100 if written.endswith("%") else 1)
        if stated * scale in (math.floor(value * scale), math.floor(value * scale + Fraction(1, 2))):
            return formula, value
    elif stated.denominator == 1 and stated in (math.floor(value), math.ceil(value)):
        return f"{'floor' if stated < value else 'ceil'}({formula})", stated
    return None
