"""The grammars of the planner's texts: a subgoal at a time, or a whole plan; and reading a subgoal back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from constrained.agents.episode import Episode
from constrained.agents.messages import Answer, Asking
from constrained.agents.parse import parse
from constrained.agents.step_formats import thought_grammar
from constrained.agents.strategies.lumos.conversation import (
    KEEP,
    STOP,
    Turn,
    conversation_prompt,
    go_on_after,
    numbered,
    plan_for,
)
from constrained.automaton import Grammar

MOST_SUBGOALS = {"gsm8k": 8, "svamp": 2, "strategyqa": 5, "hotpotqa": 5, "mind2web": 15, "webshop": 5}
"""Subgoals after which the released agents stop planning, by dataset."""


@cache
def _format(name: str) -> Grammar:
    return Grammar.from_lark(f"lumos/{name}")


def first_subgoal() -> Grammar:
    """What the iterative planner says first: ``Subgoal 1: ...``."""
    return _format("subgoal").bind(N="1")


def next_subgoal(number: int, most: int) -> Grammar:
    """What it says to the result of the subgoal before: it goes on with subgoal `number`, or stops.

    Past `most` subgoals it can only stop.
    """
    return _format("planner_iterative").bind(N=str(number) if number <= most else {})


def whole_plan(most: int) -> Grammar:
    """What the onetime planner says: up to `most` subgoals, each with the next number."""
    plan = _format("planner_onetime")
    rest = plan.bind(N=str(most), MORE={})
    for number in range(most - 1, 0, -1):
        rest = plan.bind(N=str(number), MORE=rest)
    return rest


def read_subgoal(text: str, number: int) -> str | None:
    """The sentence of subgoal `number` in what the iterative planner says; None where it stops.

    Raises
    ------
    ActionError
        The text says neither.
    """
    grammar = first_subgoal() if number == 1 else next_subgoal(number, number)
    subgoal = parse(grammar, text).get("subgoal")
    return subgoal and subgoal.strip()


ROLE = "planner"

MOST_SUBGOALS = 10
"""Subgoals of a plan written at once, where the settings set no limit."""

_LABEL = re.compile(r"(Subgoal \d*:)?\s*")


@dataclass(frozen=True)
class Wanted:
    """What a planner wants done.

    Attributes
    ----------
    label : str
        As the grounder reads it, with its number.
    text : str
        Without.
    answer : Answer
        In which it was said.
    """

    label: str
    text: str
    answer: Answer


@dataclass
class Planning:
    """A planner with its conversation.

    Parameters
    ----------
    episode : Episode
    task : str
        As the environment first described it.
    """

    episode: Episode
    task: str
    turns: list[Turn] = field(default_factory=list)
    subgoals: int = 0

    def next(self, result: str = "") -> Asking[Wanted | None]:
        """The next subgoal, after the `result` of the last one; None if it stops planning, or a limit is reached."""
        episode, limit = self.episode, self.episode.settings.max_subgoals
        if limit is not None and self.subgoals == limit:
            return episode.end(f"stopped at the limit of {limit} subgoals")
        wanted = yield from self._thought() if reads_memory(episode, ROLE) else self._said(result)
        self.subgoals += 1
        return wanted

    def all(self) -> Asking[Wanted | None]:
        """All subgoals (section 2.2); None where a limit leaves no room for them."""
        grammar = whole_plan(self.episode.settings.max_subgoals or MOST_SUBGOALS)
        answer = yield from self._ask(plan_for(self.task), grammar)
        return answer and Wanted(answer.text, answer.text, answer)

    def _said(self, result: str) -> Asking[Wanted | None]:
        episode, n = self.episode, self.subgoals + 1
        if self.turns:
            answer = yield from self._ask(go_on_after(self.subgoals, result), next_subgoal(n, n))
        else:
            answer = yield from self._ask(plan_for(self.task), first_subgoal())
        if answer is None:
            return None
        text = read_subgoal(answer.text, n) if episode.settings.constrained else _free_subgoal(answer.text)
        return None if text is None else Wanted(numbered(n, text), text, answer)

    def _thought(self) -> Asking[Wanted | None]:
        """The subgoal as the embedded model learned to write it: the thought of a ReAct step."""
        episode = self.episode
        if episode.next_action() is None:
            return None
        head, grammar = episode.head(ROLE), thought_grammar(len(episode.steps) + 1)
        if not episode.affords(grammar, ROLE, head):
            return None
        prompt, left = episode.prompt(ROLE) + head, episode.left()
        answer = yield from episode.ask(prompt, grammar, role=ROLE, max_new_tokens=left, begun=head)
        constrained = episode.settings.constrained
        text = parse(grammar, head + answer.text)["thought"] if constrained else answer.text
        text = text.strip()
        return Wanted(numbered(self.subgoals + 1, text), text, answer)

    def _ask(self, user: str, grammar: Grammar) -> Asking[Answer | None]:
        episode = self.episode
        if not episode.affords(grammar, ROLE):
            return None
        prompt = conversation_prompt(episode.loaded(ROLE), self.turns, user)
        answer = yield from episode.ask(prompt, grammar, role=ROLE, max_new_tokens=episode.left())
        self.turns.append(Turn(user, answer.text))
        return answer


def _free_subgoal(text: str) -> str | None:
    """The subgoal in what a planner wrote without masks; None where it stops."""
    text = text.strip()
    return None if text.startswith(STOP.rstrip(".")) else _LABEL.sub("", text.removeprefix(KEEP), count=1)


def reads_memory(episode: Episode, role: str) -> bool:
    """Whether a role's model is the embedded one where that reads what it was trained on: a memory, no conversation."""
    return episode.loaded(role).is_embedded and episode.memory is not None
