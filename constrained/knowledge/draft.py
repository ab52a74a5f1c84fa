"""Draft action knowledge line by line, so that the draft always loads.

A context-free grammar can't require that all names are defined. So the draft is written in lines, each under a grammar
whose slots are bound to what the lines before allow: names that are not taken yet, and lists of the names that exist.
Only such lists are offered that every action can still reach the end and be reached from the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import ConstrainedError
from constrained.grammar.traverse import reached

MAX_ACTIONS = 10
"""The most actions of a draft; 2 to this power lists of them are offered."""

TERMINALS = {
    "text": r"/[^\[\]\n]{1,120}/",
    "word": r"/[^\[\],\s]{1,40}/",
    "number": r"/-?[0-9]{1,9}/",
}
"""The terminal for an argument of each kind; a "thing" is a slot, bound at run time."""

_NAME = r"[A-Z][a-z]{2,11}(?:[A-Z][a-z]{2,11})?"

Write = Callable[[str, Grammar], str]
"""``write(so_far, grammar)`` returns a text of the grammar that continues the draft so far."""


@dataclass
class DraftAction:
    """A drafted action; `after` names the actions that may follow, none if the plan ends there.

    An action that a file with slots lent has the beginning of its rule from there, `take{o, r}: "take " o " from " r`,
    and is called as there, `take{OBJECT, REACH}`.
    """

    name: str
    arguments: tuple[str, ...]
    definition: str
    after: tuple[str, ...] = ()
    written: str = ""
    called: str = ""

    @property
    def rule(self) -> str:
        """The name of the action's rule."""
        return _snake(self.name)

    @property
    def command(self) -> str:
        """How the action is written, with the names of its arguments: "Search[topic]"."""
        return f"{self.name}[{', '.join(self.arguments)}]" if self.arguments else self.name

    @property
    def call(self) -> str:
        """How other rules refer to it."""
        return self.called or self.rule


@dataclass(frozen=True)
class Given:
    """Actions of which only the order is to be drafted; the other fields are as in `Draft`."""

    actions: Sequence[DraftAction]
    declared: tuple[str, ...] = ()
    open_end: bool = False


@dataclass
class Draft:
    """Drafted action knowledge."""

    task: str
    overview: str = ""
    actions: list[DraftAction] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)  # argument -> "text", "word", "number" or "thing"
    first: tuple[str, ...] = ()  # actions that may come first
    lines: str = ""  # the draft as written
    declared: tuple[str, ...] = ()  # lines that declare the slots of given actions
    open_end: bool = False  # a path may end after every action: the environment says when the task is over

    def to_lark(self, heading: str = "") -> str:
        """The `.lark` file, for a person to refine."""
        things = [a for a, kind in self.kinds.items() if kind == "thing"]
        head = [f"// {line}" for line in heading.split("\n") if line]
        if any(a.after for a in self.actions):
            head += ["", "%declare _STEP  // ends one action: there the environment answers"]
        head += [f"%declare {a.upper()}  // {a}: what is there now, bound at run time" for a in things]
        head += self.declared
        rules = [f"// {self.overview}\nstart: {self._either(self.first)}"]
        for action in self.actions:
            command = "" if action.written else f"{action.command}. "
            rules.append(f"// {action.rule}: {command}{action.definition}\n{self._rule(action)}")
        terminals = [f"{a.upper()}: {TERMINALS[kind]}\n" for a, kind in self.kinds.items() if kind != "thing"]
        return "\n".join(head) + "\n\n" + "\n\n".join(rules) + "\n" + ("\n" + "".join(terminals) if terminals else "")

    def _rule(self, action: DraftAction) -> str:
        text = f'{action.rule}: "{action.name}"'
        if action.arguments:
            inside = ' ", " '.join(a.upper() for a in action.arguments)
            text = f'{action.rule}: "{action.name}[" {inside} "]"'
        opening, closing = "[]" if self.open_end else "()"
        after = f" _STEP {opening}{self._either(action.after)}{closing}" if action.after else ""
        return f"{action.written or text}{after}"

    def _either(self, names: tuple[str, ...]) -> str:
        calls = {action.name: action.call for action in self.actions}
        return " | ".join(calls[name] for name in names)


def draft(
    task: str,
    write: Write,
    actions: int | None = None,
    on_line: Callable[[str], None] | None = None,
    given: Given | None = None,
) -> Draft:
    """Draft action knowledge.

    Parameters
    ----------
    task : str
        What is to be done.
    write : callable
        ``write(so_far, grammar)`` returns a text of the grammar that continues `so_far`.
    actions : int, optional
        How many; by default `write` decides, up to 10.
    on_line : callable, optional
        Called with each line when it is complete.
    given : Given, optional
        The actions, if only their order is to be drafted.

    Raises
    ------
    ConstrainedError
        `actions` is less than 1 or more than 10, or the task is empty.
    """
    task = " ".join(task.split())
    if not task:
        raise ConstrainedError("the task is empty", "say what is to be done, such as 'plan a journey by train'")
    if actions is not None and not 1 <= actions <= MAX_ACTIONS:
        raise ConstrainedError(f"actions is {actions}", f"use 1 to {MAX_ACTIONS}, or leave it out")
    if given and not len(given.actions) <= MAX_ACTIONS:
        raise ConstrainedError(f"{len(given.actions)} actions are given", f"give {MAX_ACTIONS} or fewer")
    return _Drafter(Draft(task), write, on_line or (lambda line: None)).run(actions, given)


class _Drafter:
    def __init__(self, draft: Draft, write: Write, on_line: Callable[[str], None]):
        self.draft, self.write, self.on_line = draft, write, on_line

    def run(self, actions: int | None, given: Given | None = None) -> Draft:
        draft = self.draft
        draft.lines = f"Task: {draft.task}\n"
        if given:
            draft.overview, draft.declared, draft.open_end = draft.task, given.declared, given.open_end
            draft.actions = [replace(action, after=()) for action in given.actions]
            draft.kinds = dict.fromkeys((a for action in draft.actions for a in action.arguments), "text")
            draft.lines += "Actions:\n" + "".join(f"{a.command}: {a.definition}\n" for a in draft.actions) + "\n"
            self.add_order()
            return draft
        draft.overview = self.line("Overview:", "overview")
        draft.lines += "Actions:\n"
        while len(draft.actions) < (actions or MAX_ACTIONS) and self.add_action(actions):
            pass
        for argument in dict.fromkeys(a for action in draft.actions for a in action.arguments):
            draft.kinds[argument] = self.line(f"{argument}:", "kind")
        self.add_order()
        return draft

    def line(self, head: str, rule: str, **slots: Any) -> str:
        """Have the rest of a line written that begins with `head`."""
        grammar = _line_grammar(rule)
        self.draft.lines += head
        values: dict[str, Any] = {**{slot: {} for slot in grammar.slots}, **slots}
        text = self.write(self.draft.lines, grammar.bind(**values))
        self.draft.lines += text
        self.on_line(head + text.rstrip("\n"))
        return text.strip()

    def add_action(self, wanted: int | None) -> bool:
        """Have one more action written; False if the writer wants no more."""
        taken = [a.name for a in self.draft.actions]
        enough = "\n" if taken and wanted is None else {}
        text = self.line("", "action", OPENING=_new_name(taken, r"\["), ALONE=_new_name(taken, ":"), ENOUGH=enough)
        if not text:
            return False
        command, _, definition = text.partition(": ")
        name, _, arguments = command.rstrip("]").partition("[")
        self.draft.actions.append(DraftAction(name, tuple(arguments.split(", ")) if arguments else (), definition))
        return True

    def add_order(self) -> None:
        """Have the order written: the last action, what may follow each of the others, and what may come first.

        Where a path may end after every action none is the last one.
        """
        actions = {a.name: a for a in self.draft.actions}
        last = "" if self.draft.open_end else self.line("The last action:", "choice", CHOICE=list(actions))
        ending = {last} if last else set(actions)  # actions from which the plan can end
        lists = [names for n in range(1, len(actions) + 1) for names in combinations(actions, n)]
        for name, action in actions.items():
            if name != last:
                action.after = self.choose(f"After {name}:", [names for names in lists if ending & set(names)])
                ending.add(name)
        self.draft.first = self.choose("First:", [names for names in lists if _reaches_all(actions, names)])

    def choose(self, head: str, lists: list[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(self.line(head, "choice", CHOICE=[", ".join(names) for names in lists]).split(", "))


def _reaches_all(actions: dict[str, DraftAction], first: tuple[str, ...]) -> bool:
    """Whether paths that begin with one of `first` reach every action."""
    return len(reached(first, lambda name: actions[name].after)) == len(actions)


@cache
def _line_grammar(rule: str) -> Grammar:
    return Grammar.from_lark("knowledge/draft", start=rule)


def _new_name(taken: list[str], end: str) -> Grammar:
    """A name that is neither taken nor the name of the rule `start`, followed by `end` (a regular expression)."""
    return Grammar.from_regex(f"(?!(?:{'|'.join(['Start', *taken])}){end}){_NAME}{end}")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
