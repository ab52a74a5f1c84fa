"""Other forms of annotations that Lumos compares with its own (appendix E): low-level subgoals, and ReWOO's plans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from constrained.agents.strategies.rewoo import ASK, PlannedCall
from constrained.environments.executor.actions import ToolAction, read_turn
from constrained.training.annotations.annotation import AnnotatedStep, Annotation, subgoal_text

MOST_BEFORE, MOST_AFTER = 120, 60
"""Most characters of a call before the first evidence that it names, and after each (`grammars/steps/rewoo.lark`)."""

SEARCH = "Search"
"""The tool of a ReWOO plan that looks up a page, as `grammars/strategyqa.lark` names it."""

_RESULT = re.compile(r"\bR(\d+)\b")
_SUBGOAL = re.compile(r"\bSubgoal (\d+)\b")
_NAMED_ANSWER = re.compile(r"the (?:answer to|result of) Subgoal (\d+)\b")
_COMPARED = re.compile(r"(.*?) ?(>|<) ?(.*)")


def low_level(annotation: Annotation) -> Annotation:
    """The annotation with a subgoal of its own for each action; a subgoal that had one action keeps its words."""
    steps: list[AnnotatedStep] = []
    last: dict[int, int] = {}  # a subgoal of the annotation -> that of its last action
    writes: dict[int, int] = {}  # a result -> the subgoal whose action writes it
    for number, step in enumerate(annotation.steps, 1):
        actions = read_turn(annotation.space, step.turn)
        for action in actions:
            words = step.subgoal if len(actions) == 1 else _in_words(action, writes)
            if len(actions) == 1:
                words = _SUBGOAL.sub(lambda found: f"Subgoal {last.get(int(found[1]), int(found[1]))}", words)
            steps.append(AnnotatedStep(subgoal_text(words), action.text.removesuffix(";")))
            writes.update(dict.fromkeys(action.results, len(steps)))
        last[number] = len(steps)
    return replace(annotation, steps=tuple(steps))


def rewoo_plan(annotation: Annotation) -> str | None:
    """The annotation of a question as one plan in ReWOO's form; None if a text is too long for it.

    A page is searched for, and each subgoal ends in a question to a language model, from the evidence so far; its
    answers, in order, are the results of the subgoals.

    Raises ValueError: the annotation is of another action space than questions.
    """
    if annotation.space != "qa":
        raise ValueError(f"ReWOO's plans are made of questions, and this annotation is of {annotation.space}")
    calls: list[PlannedCall] = []
    evidence: dict[int, str] = {}  # a result -> how the plan names it
    answers: dict[int, str] = {}  # a subgoal -> how the plan names its answer
    pages: dict[int, str] = {}  # the result of a KnowledgeQuery -> what it looks up

    def add(why: str, tool: str, given: str, *results: int) -> None:
        calls.append(PlannedCall(len(calls) + 1, why, tool, re.sub(r"[\[\]]", "", given)))
        evidence.update(dict.fromkeys(results, f"#E{len(calls)}"))

    for number, step in enumerate(annotation.steps, 1):
        why = _NAMED_ANSWER.sub(lambda found: answers.get(int(found[1]), found[0]), step.subgoal)
        for action in read_turn(annotation.space, step.turn):
            (result,) = action.results
            first, asked = _arguments(action)
            named = [int(page) for page in _RESULT.findall(first)]
            if action.kind == "knowledge_query":
                pages[result] = _named(first, evidence)
            elif action.kind == "paragraph_retrieve":  # one search stands for the page and its paragraphs
                add(why, SEARCH, pages[named[0]], result, named[0])
            else:
                for page in pages.keys() & set(named) - evidence.keys():
                    add(why, SEARCH, pages[page], page)
                add(f"Answer: {why}", ASK, _question(action, first, asked, evidence), result)
        answers[number] = f"#E{len(calls)}"
    return "\n".join(map(str, calls)) if all(_fits(call.input) for call in calls) else None


def _fits(given: str) -> bool:
    """Whether the grammar of ReWOO's plans admits an input, by its length."""
    before, *between = re.split(r"#E\d+", given)
    return len(before) <= MOST_BEFORE and all(len(text) <= MOST_AFTER for text in between)


def _question(action: ToolAction, first: str, asked: str, evidence: Mapping[int, str]) -> str:
    """The question to a language model in place of a QA, or of a comparison."""
    if action.kind == "calculator" and (compared := _COMPARED.fullmatch(first)):
        left, sign, right = (_named(part, evidence) for part in compared.groups())
        return f"Is {left} {'greater' if sign == '>' else 'less'} than {right}?"
    sources = [evidence[int(number)] for number in _RESULT.findall(first)]
    question = _named(asked or first, evidence)
    unnamed = [name for name in sources if name not in re.findall(r"#E\d+", question)]
    return f"{question} Given {', '.join(unnamed)}" if unnamed else question


def _arguments(action: ToolAction) -> tuple[str, str]:
    """An action's first argument, and the text after "Query: " or "Question: "."""
    written = action.text.removesuffix(";").partition("(")[2].removesuffix(")")
    if action.kind in ("paragraph_retrieve", "qa"):
        first, _, asked = written.partition(", Query: " if action.kind == "paragraph_retrieve" else ", Question: ")
        return first, asked
    return written, ""


def _named(text: str, evidence: Mapping[int, str]) -> str:
    """A text with results by the names of a plan's evidence."""
    return _RESULT.sub(lambda found: evidence.get(int(found[1]), found[0]), text.replace("#", ""))


def _in_words(action: ToolAction, writes: Mapping[int, int]) -> str:
    """A subgoal for one action."""
    first, asked = (
        _RESULT.sub(lambda found: f"the result of Subgoal {writes.get(int(found[1]), found[1])}", text)
        for text in _arguments(action)
    )
    forms = {
        "knowledge_query": "Look up {first}.",
        "paragraph_retrieve": "Find what {first} tells about: {asked}",
        "qa": "Answer: {asked}",
        "define": "Name it: {first}.",
        "set_equation": "Set up the equation {first}.",
        "solve_equation": "Solve {first}.",
    }
    return forms.get(action.kind, "Compute {first}.").format(first=first, asked=asked)
