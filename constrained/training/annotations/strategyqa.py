"""StrategyQA's decompositions as Lumos annotations: each question is looked up, read and answered.

``#1`` in a question stands for the answer to the first question, and becomes the name of the result that holds it. The
page for a question is its annotators' evidence. A comparison of two answers is a calculation. The gold answer can't be
computed by rule: it needs the retrieval and the answering model that these actions call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from constrained.environments.data import data_file, fields, read_rows
from constrained.environments.text_search import query_terms
from constrained.errors import DataError
from constrained.training.annotations.annotation import AnnotatedStep, Annotation, subgoal_text

FILE = "strategyqa/train.json.gz"
_REFERENCE = re.compile(r"#(\d+)")
_COMPARISON = re.compile(r"Is #(\d+) (greater|larger|more|higher|bigger|less|smaller|lower|fewer) than #(\d+)\?")
_OPERATION = "operation"
"""The annotators' evidence for a question that needs no page."""


@dataclass(frozen=True)
class DecomposedQuestion:
    """A question with its answer, and the questions of its decomposition with the pages of evidence for each."""

    name: str
    term: str
    question: str
    answer: bool
    facts: tuple[str, ...]
    parts: tuple[str, ...]
    pages: tuple[tuple[str, ...], ...]
    operations: tuple[bool, ...]


def load_problems(path: str | Path | None = None) -> Iterator[DecomposedQuestion]:
    """Yield the problems of a file; default: `FILE`.

    Raises DataError: the file is missing or damaged, or a row is malformed; the message says which.
    """
    for where, row in read_rows(path or data_file(FILE)):
        name, term, question, answer = fields(where, row, qid=str, term=str, question=str, answer=bool)
        facts, parts, evidence = fields(where, row, facts=list[str], decomposition=list[str], evidence=list)
        if not parts:
            raise DataError(f"{where}: nothing under 'decomposition'")
        evidence_by_part = [list(_evidence(evidence, i)) for i in range(len(parts))]
        pages = tuple(tuple(title for title in titles if title != _OPERATION) for titles in evidence_by_part)
        operations = tuple(titles.count(_OPERATION) * 2 > len(evidence) for titles in evidence_by_part)
        yield DecomposedQuestion(
            name, term.strip(), question.strip(), answer, tuple(facts), tuple(parts), pages, operations
        )


def _evidence(evidence: list, part: int) -> Iterator[str]:
    """Yield the evidence for a part: titles of pages (``Julius Caesar-75`` is a paragraph), or "operation"."""
    for annotator in evidence:
        given = annotator[part] if isinstance(annotator, list) and part < len(annotator) else []
        for item in given if isinstance(given, list) else []:
            if item == _OPERATION:
                yield item
            for paragraph in item if isinstance(item, list) else []:
                if isinstance(paragraph, str):
                    yield paragraph.rpartition("-")[0]


def convert(problem: DecomposedQuestion) -> Annotation | str:
    """The actions for each question of the decomposition; else why there are none."""
    steps: list[AnnotatedStep] = []
    answers: list[int] = []  # for each question, the number of the result that answers it
    for i, part in enumerate(problem.parts):
        asked = [int(number) for number in _REFERENCE.findall(part)]
        if any(not 1 <= number <= i for number in asked):
            return "a question refers to an answer that isn't there yet"
        if re.search(r"R\d", part):
            return "a question holds what reads as the name of a result"
        actions = _actions(problem, i, answers)
        answers.append(_results_so_far(steps) + len(actions))
        first = _results_so_far(steps) + 1
        steps.append(
            AnnotatedStep(_subgoal(part, asked), "; ".join(f"R{first + n} = {a}" for n, a in enumerate(actions)))
        )
    answer = "yes" if problem.answer else "no"
    return Annotation(problem.name, "qa", problem.question, tuple(steps), answer, "decomposition")


def subgoal_results(problem: DecomposedQuestion) -> list[str] | None:
    """The result of each subgoal, taken from the row's facts.

    The data doesn't assign facts to questions: each question but the last gets the remaining fact with which it shares
    most words. None if a question shares no words with any of them.
    """
    facts, results = list(problem.facts), []
    for part, pages in zip(problem.parts[:-1], problem.pages):
        asked = set(query_terms(f"{part} {' '.join(pages)}"))
        shared = [len(asked.intersection(query_terms(fact))) for fact in facts]
        if not any(shared):
            return None
        results.append(facts.pop(shared.index(max(shared))).rstrip("."))
    return [*results, "yes" if problem.answer else "no"]


def _results_so_far(steps: list[AnnotatedStep]) -> int:
    """Count the results: each action writes one."""
    return sum(len(re.findall(r"(?:^|; )R\d+ = ", step.turn)) for step in steps)


def _actions(problem: DecomposedQuestion, i: int, answers: list[int]) -> list[str]:
    """The actions that answer question `i`, without the names of their results."""
    # A comparison is computed; an operation on earlier answers asks for no page; all else is looked up and read.
    part, number = problem.parts[i], answers[-1] + 1 if answers else 1
    if found := _COMPARISON.fullmatch(part):
        left, how, right = found.groups()
        sign = "<" if how in ("less", "smaller", "lower", "fewer") else ">"
        return [f"Calculator(R{answers[int(left) - 1]} {sign} R{answers[int(right) - 1]})"]
    question = _text(_REFERENCE.sub(lambda found: f"R{answers[int(found[1]) - 1]}", part))
    named = list(dict.fromkeys(f"R{answers[int(found) - 1]}" for found in _REFERENCE.findall(part)))
    if problem.operations[i] and named:
        return [f"QA([{', '.join(named)}], Question: {question})"]
    entity = _page(part, problem.pages[i]) or (named[0] if named else problem.term)
    context = ", ".join([f"R{number + 1}", *named])
    return [
        f"KnowledgeQuery({_text(entity)})",
        f"ParagraphRetrieve(R{number}, Query: {question})",
        f"QA([{context}], Question: {question})",
    ]


def _page(part: str, titles: tuple[str, ...]) -> str | None:
    """The page to look up: the longest title in the question, else the one that most annotators gave."""
    named = [title for title in titles if title.casefold() in part.casefold()]
    return max(named, key=len) if named else Counter(titles).most_common(1)[0][0] if titles else None


def _text(text: str) -> str:
    """A text that an action can contain: no semicolon, balanced parentheses."""
    text = " ".join(text.replace(";", ",").split())
    return text if _balanced(text) else text.replace("(", "").replace(")", "")


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _subgoal(part: str, asked: list[int]) -> str:
    words = _REFERENCE.sub(lambda found: f"the answer to Subgoal {found[1]}", part)
    return subgoal_text(f"{'Decide' if asked else 'Find out'}: {words}")
