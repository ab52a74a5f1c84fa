"""Carry out the grounder's actions, parsed as trees, and keep their results.

A name such as R1 is a leaf of the tree, so it can't be mistaken for part of R10. Mathematics runs in a process
with limits; actions that need an index, a model or a sandbox use the tools that are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lark import Token

from constrained.environments.executor.actions import (
    Action,
    ParseTree,
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
"""Passages that KnowledgeQuery searches for its page."""
RETRIEVED = 2
"""Paragraphs that ParagraphRetrieve finds."""


@dataclass(frozen=True)
class Tools:
    """The tools of actions; an action whose tool is missing is refused."""

    # for KnowledgeQuery and ParagraphRetrieve: an index's `search`
    search: Callable[[str, int], Sequence[Passage]] | None = None
    answer: Callable[[str, list[str]], str] | None = None  # for QA: a model's answer from the texts of results
    # for Code: writes and runs a program that does what the words say, and returns what it prints. Running it safely is
    # up to this function, which needs a sandbox.
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
        The action space; those of web and WebShop act on their environments instead.
    worker : MathsWorker, optional
        The process for mathematics; by default all executors share one.

    Attributes
    ----------
    actions : list of Action
        Those carried out.
    values : dict of int to value
        The results by number.
    texts : dict of int to str
        The same as texts.
    """

    def __init__(self, space: str, tools: Tools = NO_TOOLS, worker: MathsWorker | None = None):
        if space not in ("maths", "qa"):
            raise ActionError(f"actions of {space!r} aren't carried out here", "use 'maths' or 'qa'")
        self.space = space
        self.tools = tools
        self.worker = worker or shared_worker
        self.actions: list[Action] = []
        self.values: dict[int, object] = {}
        self.texts: dict[int, str] = {}

    def execute(self, turn: str) -> str:
        """Carry out a turn, ``R1 = ...; R2 = ...``, and return the text of its last result.

        Raises ActionError: the turn doesn't parse (then nothing is done), or one of its actions can't be carried out:
        the message names it, and the results before it are kept.
        """
        return [self.perform(action) for action in read_turn(self.space, turn)][-1]

    def perform(self, action: Action) -> str:
        """Carry out one action, and return the text of its last result.

        Raises ActionError: it can't be done; the message begins with the action.
        """
        try:
            repeated = next((number for number in action.results if number in self.values), None)
            if repeated is not None:
                raise ActionError(f"R{repeated} is there already", "give each result a number of its own")
            found = self._perform(action)
        except ActionError as error:
            shown = action.text if len(action.text) <= 100 else f"{action.text[:100]}..."
            raise ActionError(f"{shown}: {error.message}", error.hint) from None
        self.actions.append(action)
        for number, (value, text) in zip(action.results, found, strict=True):
            self.values[number], self.texts[number] = value, text
        return self.texts[action.results[-1]]

    def slots(self) -> dict[str, list[str]]:
        """Return the values of the action space's slots now (see `constrained.environments.executor.actions.slots`)."""
        return slots(self.space, self.actions)

    def _perform(self, action: Action) -> list[tuple[object, str]]:
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

    def _mathematics(self, action: Action) -> list[tuple[object, str]]:
        parts = [plain(part) for part in action.tree.children]
        results = {number: self._value(number) for number in references(action.tree)}
        unknowns = [str(name) for done in (*self.actions, action) if done.kind == "define" for name in names(done)]
        return self.worker.perform(action.kind, parts, len(action.results), results, unknowns)

    def _knowledge_query(self, tree: ParseTree) -> tuple[Page, str]:
        entity = self._text(tree)
        found = self._search(entity)
        if not found:
            raise ActionError(f"there is no page about {entity!r}", "ask for it by another name")
        named = [passage for passage in found if passage.title.casefold() == entity.strip().casefold()]
        title = (named or found)[0].title
        page = Page(title, tuple(passage.text for passage in found if passage.title == title))
        return page, title

    def _paragraph_retrieve(self, tree: ParseTree) -> tuple[str, str]:
        number, query = tree.children
        page = self._value(int(str(number)))
        if not isinstance(page, Page):
            raise ActionError(f"R{number} is no page", "KnowledgeQuery finds one")
        found = self._search(f"{page.title} {self._text(query)}")
        paragraphs = [passage.text for passage in found if passage.title == page.title] or list(page.passages)
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
        """Return a text as written, with each result's name replaced by the result's text."""
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
    return (int(token) for token in tokens(part) if terminal_of(token) in _NAMING)


_NAMING = {"VALUE", "RESULT", "EQUATION", "INEQUALITY", "LISTED"}


def plain(part: ParseTree | Token) -> tuple:
    """Return a tree as nested tuples of rule names and texts, which can be sent between processes."""
    if isinstance(part, Token):
        return terminal_of(part), str(part)
    return rule_of(part), *map(plain, part.children)
