"""Word problems with answers, from GSM8K (Cobbe et al., 2021) and SVAMP (Patel et al., 2021); numbers in texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from constrained.environments.data import data_file, fields, read_rows
from constrained.environments.similarity import families
from constrained.errors import DataError

GSM8K = "gsm8k/train.jsonl.gz"
SVAMP = "svamp/SVAMP_first700.json"

HELD_OUT = 10
"""One in so many of GSM8K's training problems is held out."""
HELD_OUT_FAMILIES = 6
"""One in so many of SVAMP's families of problems is held out."""
MAX_NUMBER = 100
"""Most characters of a number in an answer."""
MAX_DIGITS = 15
"""Most characters of a number in a formula (`grammars/lumos/formula.lark`)."""

_ANSWER = re.compile(
    r"[$€£]? ?([-+]?[$€£]?)((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?: ?/ ?(\d+))? ?%?\.?", re.ASCII
)
_FIGURES = re.compile(r"(?:(?:\d[\d,]*\d|\d)?\.\d+|\d[\d,]*\d|\d)(?P<percent>%?)", re.ASCII)
_WORD = re.compile(r"[a-z]+")
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
_NUMBER_WORDS: dict[str, tuple[str, ...]] = {
    **{word: (str(number),) for number, word in enumerate(_ONES.split())},
    **{word: (str(10 * tens),) for tens, word in enumerate(_TENS.split(), 2)},
    "half": ("0.5", "2"), "quarter": ("0.25", "4"), "twice": ("2",), "double": ("2",), "triple": ("3",),
    "dozen": ("12",),
}  # fmt: skip


@dataclass(frozen=True)
class WordProblem:
    """A word problem."""

    name: str  # unique among the problems of a file
    kind: str  # for breakdowns: GSM8K's number of calculations, SVAMP's operation
    question: str  # the whole text
    # as in the data. GSM8K: sentences with marks such as <<48/2=24>>, one a line; SVAMP: an equation
    solution: str
    answer: Fraction
    asked: str = ""  # SVAMP: the question itself, the last sentence of the text


def load_gsm8k(path: str | Path | None = None) -> list[WordProblem]:
    """The problems of a file of GSM8K; default: its 7,473 training problems.

    Raises DataError: the file is missing or damaged, or a row is malformed; it says which.
    """
    problems = []
    for number, (where, row) in enumerate(read_rows(path or data_file(GSM8K)), 1):
        question, text = fields(where, row, question=str, answer=str)
        solution, mark, last = text.rpartition("####")
        answer = read_number(last)
        if not mark or answer is None:
            raise DataError(f"{where}: the solution doesn't end in #### and a number")
        steps = solution.count("<<")
        kind = f"{steps} calculation{'' if steps == 1 else 's'}"
        problems.append(WordProblem(f"gsm8k-{number}", kind, question.strip(), solution.strip(), answer))
    return problems


def load_svamp(path: str | Path | None = None) -> list[WordProblem]:
    """The problems of a file of SVAMP; default: its first 700. Raises DataError: as `load_gsm8k`."""
    problems = []
    for where, row in read_rows(path or data_file(SVAMP)):
        names = {"ID": str, "Type": str, "Body": str, "Question": str, "Equation": str}
        name, kind, body, asked, equation = fields(where, row, **names)
        answer = read_number(str(row.get("Answer")))
        if answer is None:
            raise DataError(f"{where}: no number under 'Answer'")
        body, asked = body.strip().rstrip(","), asked.strip()
        question = f"{body}{'' if body.endswith(('.', '?', '!')) else '.'} {asked}"
        problems.append(WordProblem(name, kind, question, equation, answer, asked))
    return problems


def is_held_out(problem: WordProblem) -> bool:
    """Whether a problem of GSM8K's training part is held out from training, to be played.

    GSM8K's test part isn't in the data folder, so one in `HELD_OUT` problems of the training part is held out, chosen
    by the digest of its question, so that order and further rows change nothing.
    """
    return _drawn(problem.question, HELD_OUT)


def svamp_parts(problems: Sequence[WordProblem]) -> tuple[list[WordProblem], list[WordProblem]]:
    """Split SVAMP's problems into those to train on and those held out.

    SVAMP was made by varying a hundred problems (Patel et al., 2021, section 4), and doesn't say which of its problems
    are variations of the same one. Variations stay together (`similarity.families`): one family in `HELD_OUT_FAMILIES`
    is held out, chosen by the digest of its alphabetically first question, so that order changes nothing.
    """
    members: dict[int, list[WordProblem]] = {}
    for problem, family in zip(problems, families([problem.question for problem in problems])):
        members.setdefault(family, []).append(problem)
    held_out = {
        problem.name
        for family in members.values()
        if _drawn(min(problem.question for problem in family), HELD_OUT_FAMILIES)
        for problem in family
    }
    return [p for p in problems if p.name not in held_out], [p for p in problems if p.name in held_out]


def _drawn(question: str, one_in: int) -> bool:
    digest = hashlib.sha256(question.encode()).digest()
    return int.from_bytes(digest[:4], "big") % one_in == 0


def read_number(text: str) -> Fraction | None:
    """The exact value of an answer such as ``"1,080"``, ``"$2.50"``, ``"-3/4"``; None if it isn't a number.

    Currency signs, a percent sign and a full stop at the end are ignored.
    """
    match = _ANSWER.fullmatch(text.strip()) if len(text) <= MAX_NUMBER else None
    if match is None or (match[3] is not None and not int(match[3])):
        return None
    number = Fraction(match[2].replace(",", "").rstrip(".")) / int(match[3] or 1)
    return -number if match[1].startswith("-") else number


def same_number(text: str, answer: Fraction) -> bool:
    """Whether `text` is exactly that number."""
    return read_number(text) == answer


def numbers_given(text: str) -> list[str]:
    """The numbers of a text, in figures or words, each once, as formulas write them: ``"1080"``, ``"0.5"``."""
    numbers = [(m.start(), _spellings(m[0].replace(",", ""), m["percent"])) for m in _FIGURES.finditer(text)]
    numbers += [(m.start(), _NUMBER_WORDS[m[0]]) for m in _WORD.finditer(text.casefold()) if m[0] in _NUMBER_WORDS]
    return list(dict.fromkeys(spelling for _, spellings in sorted(numbers) for spelling in spellings))


def _spellings(number: str, percent: str) -> tuple[str, ...]:
    """The spellings of a number: as written, 2.50 as 2.5, 20% as 0.2, and 0.2 as .2; none if it is too long."""
    number = number.removesuffix(percent)
    if len(number) > MAX_DIGITS:
        return ()
    spellings = [number]
    for value in (Decimal(number), Decimal(number) / 100)[: 2 if percent else 1]:
        shortest = f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"
        spellings += [shortest, shortest.removeprefix("0")]
    return tuple(filter(None, spellings))
