"""Carry out the grounder's actions, parsed as trees, and keep their results.

A name such as R1 is a leaf of the tree, so it can't be mistaken for a part of R10. Mathematics runs in a child process
with limits; actions that need an index, a model or a sandbox use the given tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lark import Token

from constrained.environments.executor.actions import (
    ParseTree,
    ToolAction,
    names,
    read_turn,
    rule_of,
    slots,
    terminal_of,
    tokens,
)
from constrained.environments.executor.worker import MathsWorker, shared_worker
from constrained.environments.question.passages import Passage
from constrained.errors import ActionError, ToolError

MATHEMATICS = frozenset({"calculator", "set_equation", "solve_equation", "solve_inequality", "count", "define"})
SEARCHED = 5
"""Number of passages that a search returns."""
RETRIEVED = 2
"""Most paragraphs that ParagraphRetrieve returns."""


@dataclass(frozen=True)
class Tools:
    """The tools that actions use; an action without its tool is refused."""

    # KnowledgeQuery and ParagraphRetrieve: an index's `search`.
    search: Callable[[str, int], Sequence[Passage]] | None = None
    # QA: returns a model's answer to a question, from texts.
    answer: Callable[[str, list[str]], str] | None = None
    # Code: writes and runs a program for a description, and returns what it prints. It must use a sandbox of its own.
    code: Callable[[str], str] | None = None


NO_TOOLS = Tools()


@dataclass(frozen=True)
class Page:
    """The result of KnowledgeQuery: the passages of one title."""

    title: str
    passages: tuple[str, ...]


class Executor:
    """Carries out the actions of one task, turn by turn.

    Parameters
    ----------
    space : {"maths", "qa"}
        The action space; actions of web and WebShop act on their environments instead.
    worker : MathsWorker, optional
        The process for mathematics; by default all executors share one.

    Attributes
    ----------
    actions : list of ToolAction
        The actions carried out so far.
    values : dict of int to value
        The results by number.
    texts : dict of int to str
        The results as texts.
    """

    def __init__(self, space: str, tools: Tools = NO_TOOLS, worker: MathsWorker | None = None):
        if space not in ("maths", "qa"):
            raise ActionError(f"actions of {space!r} are carried out on their pages, not here", "use 'maths' or 'qa'")
        self.space = space
        self.tools = tools
        self.worker = worker or shared_worker
        self.actions: list[ToolAction] = []
        self.values: dict[int, object] = {}
        self.texts: dict[int, str] = {}

    def execute(self, turn: str) -> str:
        """Carry out a turn, ``R1 = ...; R2 = ...``, and return the text of its last result.

        Raises ActionError: the turn can't be parsed (then nothing is done), or one of its actions can't be carried out:
        the message names it, and earlier results are kept.
        """
        return [self.perform(action) for action in read_turn(self.space, turn)][-1]

    def perform(self, action: ToolAction) -> str:
        """Carry out one action, and return the text of its last result.

        Raises ActionError: it can't be carried out; the message begins with the action.
        """
        try:
            repeated = next((number for number in action.results if number in self.values), None)
            if repeated is not None:
                raise ActionError(f"R{repeated} is there already", "give each result a number of its own")
            results = self._perform(action)
        except ActionError as error:
            shown = action.text if len(action.text) <= 100 else f"{action.text[:100]}..."
            raise ActionError(f"{shown}: {error.message}", error.hint) from None
        self.actions.append(action)
        for number, (value, text) in zip(action.results, results, strict=True):
            self.values[number], self.texts[number] = value, text
        return self.last_text

    @property
    def last_text(self) -> str:
        """The text of the last result; empty if there is none."""
        return self.texts[self.actions[-1].results[-1]] if self.actions else ""

    def slots(self) -> dict[str, list[str]]:
        """The current values of the space's slots (see `constrained.environments.executor.actions.slots`)."""
        return slots(self.space, self.actions)

    def _perform(self, action: ToolAction) -> list[tuple[object, str]]:
        if action.kind in MATHEMATICS:
            return self._mathematics(action)
        carry_out = {
            "knowledge_query": self._knowledge_query,
            "paragraph_retrieve": self._paragraph_retrieve,
            "qa": self._qa,
            "code": self._code,
        }[action.kind]
        try:
            return [carry_out(action.tree)]
        except ToolError as error:
            raise ActionError(error.message, error.hint) from None

    def _mathematics(self, action: ToolAction) -> list[tuple[object, str]]:
        parts = [as_tuples(part) for part in action.tree.children]
        results = {number: self._value(number) for number in references(action.tree)}
        defines = (done for done in (*self.actions, action) if done.kind == "define")
        unknowns = [str(name) for define in defines for name in names(define)]
        return self.worker.perform(action.kind, parts, len(action.results), results, unknowns)

    def _knowledge_query(self, tree: ParseTree) -> tuple[Page, str]:
        entity = self._text(tree)
        passages = self._search(entity)
        if not passages:
            raise ActionError(f"there is no page about {entity!r}", "ask for it by another name")
        named = [passage for passage in passages if passage.title.casefold() == entity.strip().casefold()]
        title = (named or passages)[0].title
        page = Page(title, tuple(passage.text for passage in passages if passage.title == title))
        return page, title

    def _paragraph_retrieve(self, tree: ParseTree) -> tuple[str, str]:
        number, query = tree.children
        page = self._value(int(str(number)))
        if not isinstance(page, Page):
            raise ActionError(f"R{number} is no page", "KnowledgeQuery finds one")
        passages = self._search(f"{page.title} {self._text(query)}")
        paragraphs = [passage.text for passage in passages if passage.title == page.title] or list(page.passages)
        text = "\n".join(paragraphs[:RETRIEVED])
        return text, text

    def _search(self, query: str) -> Sequence[Passage]:
        if self.tools.search is None:
            raise ActionError("there is no index to search", "give Tools(search=index.search)")
        return self.tools.search(query, SEARCHED)

    def _qa(self, tree: ParseTree) -> tuple[str, str]:
        if self.tools.answer is None:
            raise ActionError("there is no model that answers questions", "give Tools(answer=...)")
        *context, question = tree.children
        texts = [self._context(number) for part in context for number in references(part)]
        answer = self.tools.answer(self._text(question), texts)
        return answer, answer

    def _context(self, number: int) -> str:
        value = self._value(number)
        return "\n".join(value.passages) if isinstance(value, Page) else self.texts[number]

    def _code(self, tree: ParseTree) -> tuple[str, str]:
        if self.tools.code is None:
            raise ActionError("Code is off", "give Tools(code=...), a function that runs programs in your sandbox")
        printed = self.tools.code(self._text(tree))
        return printed, printed

    def _value(self, number: int) -> object:
        if number not in self.values:
            raise ActionError(f"there is no result R{number}")
        return self.values[number]

    def _text(self, part: ParseTree | Token) -> str:
        """A text as written, with the name of each result replaced by its text."""
        written: list[str] = []
        for token in tokens(part):
            if terminal_of(token) == "RESULT":
                self._value(int(token))
                written[-1] = self.texts[int(token)]  # in place of the R before the number
            else:
                written.append(str(token))
        return "".join(written)


def references(part: ParseTree | Token) -> Iterator[int]:
    """Yield the numbers of the results that a part of an action names."""
    return (int(token) for token in tokens(part) if terminal_of(token) in _RESULT_SLOTS)


_RESULT_SLOTS = {"VALUE", "RESULT", "EQUATION", "INEQUALITY", "LISTED"}


def as_tuples(part: ParseTree | Token) -> tuple:
    """A tree as nested tuples of rule names and texts, which can be sent between processes."""
    if isinstance(part, Token):
        return terminal_of(part), str(part)
    return rule_of(part), *map(as_tuples, part.children)
