"""Mind2Web's tasks, read from its JSON files, and the paper's scores (Deng et al., *Mind2Web*, 2023, section 4.1).

A file (huggingface.co/datasets/osunlp/Mind2Web) is a list of tasks; a task has ``annotation_id``, ``website``,
``domain``, ``subdomain``, ``confirmed_task``, ``action_reprs`` and ``actions``; an action has ``action_uid``,
``cleaned_html``, ``operation`` (``op``, ``value``), ``pos_candidates`` and ``neg_candidates``, each of which has a
``backend_node_id``.

Every step is scored by itself, given the true steps before it. *Element accuracy*: whether the chosen element is a
right one. *Operation F1*: of the words of operation and value, against the recorded ones. *Step success*: both are
right. *Task success*: all steps of the task succeed. The first three are means over a task's steps, then over tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained.environments.data import check_object, fields, read_rows
from constrained.environments.mind2web.page import MAX_PAGE
from constrained.errors import DataError

OPERATIONS = ("CLICK", "TYPE", "SELECT")


@dataclass(frozen=True)
class Operation:
    """An operation on an element."""

    name: str  # one of `OPERATIONS`
    value: str = ""  # the text typed or the choice selected; empty for a click

    def __str__(self) -> str:
        return f"{self.name} {self.value}".rstrip()


@dataclass(frozen=True)
class RecordedStep:
    """One recorded action and the page before it."""

    html: str  # the page (cleaned_html)
    candidates: tuple[str, ...]  # the node ids of its elements, in the file's order
    targets: frozenset[str]  # the right elements; empty if cleaning the page has removed them
    operation: Operation
    action: str  # as written in the data set


@dataclass(frozen=True)
class WebTask:
    """One task with its recorded steps."""

    name: str
    website: str
    domain: str
    task: str
    steps: tuple[RecordedStep, ...]


@dataclass(frozen=True)
class StepScore:
    """The scores of one step, each from 0 to 1."""

    element: float = 0.0
    operation_f1: float = 0.0

    @property
    def success(self) -> float:
        """1 if element and operation are both right, else 0."""
        return float(self.element == 1.0 and self.operation_f1 == 1.0)


def score_step(step: RecordedStep, node: str | None, operation: Operation | None) -> StepScore:
    """Score an operation on a node; None for a node or an operation that was not understood.

    If the page has lost the right elements, all scores of the step are 0, as in the released evaluation.
    """
    if not step.targets:
        return StepScore()
    return StepScore(float(node in step.targets), operation_f1(operation, step.operation) if operation else 0.0)


def operation_f1(written: Operation, recorded: Operation) -> float:
    """The F1 of two operations' words, taken as sets; for a click it is 1 or 0."""
    words, gold = set(str(written).split()), set(str(recorded).split())
    return 2 * len(words & gold) / (len(words) + len(gold))


def score_task(scores: Sequence[StepScore], steps: int) -> dict[str, float]:
    """A task's scores; steps that were never reached count as failed."""
    succeeded = sum(score.success for score in scores)
    return {
        "success": float(succeeded == steps),
        "element_accuracy": sum(score.element for score in scores) / steps,
        "operation_f1": sum(score.operation_f1 for score in scores) / steps,
        "step_success": succeeded / steps,
    }


def read_tasks(path: str | Path) -> Iterator[WebTask]:
    """Yield the tasks of a file, ``.json`` or ``.jsonl``, compressed or not.

    Raises DataError: the file is missing or cut short, or a row is malformed; the message names row and step.
    """
    for where, row in read_rows(path):
        name, website, domain, task, written, actions = fields(
            where, row, annotation_id=str, website=str, domain=str, confirmed_task=str, action_reprs=list, actions=list
        )
        if not actions or len(written) != len(actions) or not all(isinstance(text, str) for text in written):
            raise DataError(f"{where}: 'action_reprs' must have a text for each of at least one 'actions'")
        steps = (_step(f"{where}, step {number}", *pair) for number, pair in enumerate(zip(actions, written), 1))
        yield WebTask(name, website, domain, " ".join(task.split()), tuple(steps))


def _step(where: str, action: object, written: str) -> RecordedStep:
    html, operation, positive, negative = fields(
        where, check_object(where, action), cleaned_html=str, operation=dict, pos_candidates=list, neg_candidates=list
    )
    if len(html) > MAX_PAGE:
        raise DataError(f"{where}: a page of {len(html):,} characters, over the limit of {MAX_PAGE:,}")
    name, value = fields(f"{where}, operation", {"value": "", **operation}, op=str, value=str)
    if name not in OPERATIONS:
        raise DataError(f"{where}: the operation {name[:20]!r} is none of {', '.join(OPERATIONS)}")
    targets = _nodes(f"{where}, positive candidate", positive)
    others = _nodes(f"{where}, negative candidate", negative)
    value = "" if name == "CLICK" else " ".join(value.split())
    return RecordedStep(
        html, tuple(dict.fromkeys(targets + others)), frozenset(targets), Operation(name, value), written
    )


def _nodes(where: str, candidates: list) -> list[str]:
    """The node ids of candidates."""
    numbered = ((f"{where} {number}", candidate) for number, candidate in enumerate(candidates, 1))
    return [fields(at, check_object(at, candidate), backend_node_id=str)[0] for at, candidate in numbered]
