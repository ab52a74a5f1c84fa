"""BFCL's questions, tools and accepted answers, read from an archive or a folder with the benchmark's own files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constrained.environments.data import archive_files, data_folder, folder_files
from constrained.errors import DataError

CATEGORIES = (
    "simple_python", "multiple", "parallel", "parallel_multiple", "simple_java", "simple_javascript",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
    "irrelevance", "live_irrelevance", "live_relevance",
)  # fmt: skip
"""The single-turn categories; those that the data doesn't have are left out."""

_FILE = re.compile(r"(?:^|/)(possible_answer/)?BFCL_v\d+_(\w+)\.json$")

Call = dict[str, dict[str, Any]]
"""A call as the benchmark holds it: {tool: {argument: value}}."""

Accepted = dict[str, dict[str, list[Any]]]
"""An accepted call: {tool: {argument: [accepted values]}}; the value "" says that it may be left out."""


@dataclass(frozen=True)
class Question:
    """A question with its tools and answers.

    Attributes
    ----------
    name : str
        Its id.
    category : str
        One of `CATEGORIES`.
    messages : list of dict
        The conversation: the user's turn, sometimes with a system turn before it.
    functions : list of dict
        The tools as the benchmark describes them.
    accepted : list of Accepted
        The calls that are wanted, in any order; none where the category has no answers.
    """

    name: str
    category: str
    messages: list[dict[str, str]]
    functions: list[dict[str, Any]]
    accepted: list[Accepted]

    @property
    def language(self) -> str:
        """The language whose values the tools take: python, java or javascript."""
        return self.category.removeprefix("simple_") if self.category.startswith("simple_java") else "python"

    @property
    def wants_calls(self) -> bool:
        """Whether some call is a right answer to the question."""
        return not self.category.endswith("irrelevance")


def read_questions(place: str | Path | None = None) -> dict[str, list[Question]]:
    """Read the questions of each category that the data has, in the benchmark's order.

    Parameters
    ----------
    place : str or Path, optional
        An archive (.tar.xz), or a folder that holds the benchmark's files at any depth, such as `bfcl_eval/data` of the
        package bfcl-eval. Default: `bfcl/bfcl_v4.tar.xz` of the data folder, or else the folder `bfcl` there.

    Raises
    ------
    DataError
        There is no such place, no question in it, or a file of another form.
    """
    place = _default() if place is None else Path(place).expanduser()
    if not place.exists():
        hint = "name an archive or a folder with BFCL's files, such as bfcl_eval/data of the package bfcl-eval"
        raise DataError(f"there is no {place}", hint)
    files = archive_files(place, _is_wanted) if place.is_file() else _in_folder(place)
    rows: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for name, content in files:
        answers, category = _FILE.search(name).groups()  # type: ignore[union-attr]
        key = category, bool(answers)
        if key in rows:
            raise DataError(f"{place} holds {category} twice", "give the folder of one version of BFCL")
        rows[key] = list(_rows(name, content))
    questions = {c: _joined(c, rows[c, False], rows.get((c, True)), place) for c in CATEGORIES if (c, False) in rows}
    if not questions:
        raise DataError(f"{place} holds no questions of BFCL", f"it has files such as BFCL_v4_{CATEGORIES[0]}.json")
    return questions


def _default() -> Path:
    folder = data_folder() / "bfcl"
    archive = folder / "bfcl_v4.tar.xz"
    return folder if folder.is_dir() and not archive.is_file() else archive


def _is_wanted(name: str) -> bool:
    match = _FILE.search(name)
    return match is not None and match[2] in CATEGORIES


def _in_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name, content in folder_files(folder, "**/BFCL_v*.json"):
        if _is_wanted(name) and "unused" not in name:
            yield name, content


def _rows(name: str, content: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a file, one a line."""
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}, line {number}: no JSON: {error}", "fetch it again") from None
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise DataError(f"{name}, line {number}: not an object with an id", "fetch it again")
        yield row


def _joined(category: str, rows: list[dict], answers: list[dict] | None, place: Path) -> list[Question]:
    """Questions with their answers, which stand in the same order."""
    if answers is None and not category.endswith("relevance"):
        raise DataError(f"{place} has no answers to {category}", "they stand in a folder possible_answer")
    if answers is not None and len(answers) != len(rows):
        raise DataError(f"{place}: {category} has {len(rows)} questions and {len(answers)} answers", "fetch it again")
    questions = []
    for number, row in enumerate(rows):
        try:
            [messages] = row["question"]
            turns = [{"role": str(turn["role"]), "content": str(turn["content"])} for turn in messages]
            accepted = [] if answers is None else [_accepted(one) for one in answers[number]["ground_truth"]]
            functions = [{**one, "name": str(one["name"]), "parameters": dict(one["parameters"])}
                         for one in row["function"]]  # fmt: skip
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{place}: {row['id']} has another form: {error!r}", "fetch it again") from None
        questions.append(Question(row["id"], category, turns, functions, accepted))
    return questions


def _accepted(given: dict[str, dict[str, list[Any]]]) -> Accepted:
    [(name, arguments)] = given.items()
    return {name: {key: list(values) for key, values in arguments.items()}}
