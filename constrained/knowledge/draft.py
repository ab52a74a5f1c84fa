"""Draft action knowledge line by line, so that what is drafted always loads.

That every name used is defined is no context-free rule, so no one grammar says it. The draft
is written in lines instead, each within a grammar whose slots are bound to what the lines
before leave: names not taken yet, lists of the names there are. Of those lists only such are
offered as leave every action a way to the end, and the beginning a way to every action.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

from constrained.errors import ConstrainedError
from constrained.grammar import Grammar

MAX_ACTIONS = 10
"""Actions of a draft: all lists of them are offered, two to this power."""

TERMINALS = {
    "text": r"/[^\[\]\n]{1,120}/",
    "word": r"/[^\[\],\s]{1,40}/",
    "number": r"/-?[0-9]{1,9}/",
}
"""What an argument of each kind is written as; a "thing" is a slot, bound at run time."""

_NAME = r"[A-Z][a-z]{2,11}(?:[A-Z][a-z]{2,11})?"

Write = Callable[[str, Grammar], str]
"""Continues the draft so far with a text of the grammar."""


@dataclass
class DraftAction:
    """An action as it was drafted; `after` names what may follow, nothing where the plan ends."""

    name: str
    arguments: tuple[str, ...]
    definition: str
    after: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The name of its rule."""
        return _snake(self.name)

    @property
    def command(self) -> str:
        """ "Search[topic]"."""
        return f"{self.name}[{', '.join(self.arguments)}]" if self.arguments else self.name


@dataclass
class Draft:
    """Drafted knowledge.

    Attributes
    ----------
    task, overview : str
    actions : list of DraftAction
    kinds : dict of str to str
        Argument -> "text", "word", "number" or "thing".
    first : tuple of str
        Actions a plan may begin with.
    lines : str
        The draft as it was written.
    """

    task: str
    overview: str = ""
    actions: list[DraftAction] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    lines: str = ""

    def to_lark(self, heading: str = "") -> str:
        """The `.lark` file, for a person to refine."""
        things = [a for a, kind in self.kinds.items() if kind == "thing"]
        head = [f"// {line}" for line in heading.split("\n") if line]
        if any(a.after for a in self.actions):
            head += ["", "%declare _STEP  // ends one action: there the environment answers"]
        head += [f"%declare {a.upper()}  // {a}: what is there now, bound at run time" for a in things]
        rules = [f"// {self.overview}\nstart: {self._either(self.first)}"]
        for action in self.actions:
            rules.append(f"// {action.rule}: {action.command}. {action.definition}\n{self._rule(action)}")
        ends = [f"{a.upper()}: {TERMINALS[kind]}" for a, kind in self.kinds.items() if kind != "thing"]
        return (
            "\n".join(head)
            + "\n\n"
            + "\n\n".join(rules)
            + "\n"
            + "".join(f"\n{end}" for end in ends)
            + "\n" * bool(ends)
        )

    def _rule(self, action: DraftAction) -> str:
        text = f'"{action.name}"'
        if action.arguments:
            inside = ' ", " '.join(a.upper() for a in action.arguments)
            text = f'"{action.name}[" {inside} "]"'
        after = f" _STEP ({self._either(action.after)})" if action.after else ""
        return f"{action.rule}: {text}{after}"

    @staticmethod
    def _either(names: tuple[str, ...]) -> str:
        return " | ".join(map(_snake, names))


def draft(task: str, write: Write, actions: int | None = None, on_line: Callable[[str], None] | None = None) -> Draft:
    """Draft action knowledge.

    Parameters
    ----------
    task : str
        What is to be done.
    write : callable
        ``write(so_far, grammar)`` gives a text of the grammar that goes on where `so_far` ends.
    actions : int, optional
        Exactly so many; by default as many as `write` likes, up to 10.
    on_line : callable, optional
        Called with each line once it is whole.

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
    return _Drafting(Draft(task), write, on_line or (lambda line: None)).run(actions)


class _Drafting:
    def __init__(self, draft: Draft, write: Write, on_line: Callable[[str], None]):
        self.draft, self.write, self.on_line = draft, write, on_line

    def run(self, actions: int | None) -> Draft:
        draft = self.draft
        draft.lines = f"Task: {draft.task}\n"
        draft.overview = self.line("Overview:", "overview")
        draft.lines += "Actions:\n"
        while len(draft.actions) < (actions or MAX_ACTIONS) and self.action(actions):
            pass
        for argument in dict.fromkeys(a for action in draft.actions for a in action.arguments):
            draft.kinds[argument] = self.line(f"{argument}:", "kind")
        self.follow()
        return draft

    def line(self, begun: str, rule: str, **slots) -> str:
        """One line of the draft, without how it was begun."""
        grammar = _line_grammar(rule)
        self.draft.lines += begun
        text = self.write(self.draft.lines, grammar.bind(**{**dict.fromkeys(grammar.slots, {}), **slots}))
        self.draft.lines += text
        self.on_line(begun + text.rstrip("\n"))
        return text.strip()

    def action(self, wanted: int | None) -> bool:
        """One more action; False where there are enough."""
        taken = [a.name for a in self.draft.actions]
        slots = {"OPENING": _new_name(taken, r"\["), "ALONE": _new_name(taken, ":")}
        slots["ENOUGH"] = "\n" if taken and wanted is None else {}
        text = self.line("", "action", **slots)
        if not text:
            return False
        command, _, definition = text.partition(": ")
        name, _, inside = command.rstrip("]").partition("[")
        self.draft.actions.append(DraftAction(name, tuple(inside.split(", ")) if inside else (), definition))
        return True

    def follow(self) -> None:
        """Which action is the last, what may follow each other one, and what begins."""
        actions = {a.name: a for a in self.draft.actions}
        last = self.line("The last action:", "choice", CHOICE=list(actions))
        ending = {last}
        lists = [names for n in range(1, len(actions) + 1) for names in combinations(actions, n)]
        for name, action in actions.items():
            if name != last:
                action.after = self.choose(f"After {name}:", [names for names in lists if ending & set(names)])
                ending.add(name)
        self.draft.first = self.choose("First:", [names for names in lists if _reaches_all(actions, names)])

    def choose(self, begun: str, lists: list[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(self.line(begun, "choice", CHOICE=[", ".join(names) for names in lists]).split(", "))


def _reaches_all(actions: dict[str, DraftAction], first: tuple[str, ...]) -> bool:
    """Whether paths that begin with `first` come to every action."""
    seen, work = set(first), list(first)
    while work:
        for name in actions[work.pop()].after:
            if name not in seen:
                seen.add(name)
                work.append(name)
    return len(seen) == len(actions)


@cache
def _line_grammar(rule: str) -> Grammar:
    return Grammar.from_lark("knowledge/draft", start=rule)


def _new_name(taken: list[str], end: str) -> Grammar:
    """A name that is not taken, and not that of the rule `start`, with what ends it."""
    return Grammar.from_regex(f"(?!(?:{'|'.join(['Start', *taken])}){end}){_NAME}{end}")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
