"""Lumos's planning module (section 2), which writes subgoals: each after the result of the last, or all at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from constrained.agents.episode import Episode
from constrained.agents.messages import Requests
from constrained.agents.step_formats import shipped_grammar, thought_grammar
from constrained.agents.step_writer import next_head, next_prompt
from constrained.agents.strategies.lumos.conversation import (
    KEEP,
    STOP,
    Shot,
    Turn,
    conversation_prompt,
    go_on_after,
    numbered,
    plan_for,
    planner_shot,
)
from constrained.automaton import Grammar
from constrained.automaton.parse import parse
from constrained.decoding.request import Generation

ROLE = "planner"

PLAN_SUBGOALS = 10
"""Most subgoals of a plan written at once, if the settings set no limit."""

_LABEL = re.compile(r"(Subgoal \d*:)?\s*")


@dataclass(frozen=True)
class Subgoal:
    """A subgoal for the grounder."""

    label: str  # with its number, as the grounder reads it
    text: str  # without
    answer: Generation  # the planner's answer


@dataclass
class Planner:
    """A planner with its conversation. `task`: as the environment first described it; `shots`: worked examples."""

    episode: Episode
    task: str
    shots: Sequence[Shot] = ()
    turns: list[Turn] = field(default_factory=list)
    subgoals: int = 0

    def next(self, result: str = "") -> Requests[Subgoal | None]:
        """Write the next subgoal, after the `result` of the last; None if the planner stops or a limit is reached."""
        episode, limit = self.episode, self.episode.settings.max_subgoals
        if limit is not None and self.subgoals == limit:
            episode.end(f"stopped at the limit of {limit} subgoals")
            return None
        subgoal = yield from self._thought() if reads_memory(episode, ROLE) else self._in_conversation(result)
        self.subgoals += 1
        return subgoal

    def all(self) -> Requests[Subgoal | None]:
        """Write all subgoals (section 2.2); None if the token limit is too near."""
        grammar = whole_plan(self.episode.settings.max_subgoals or PLAN_SUBGOALS)
        answer = yield from self._ask(plan_for(self.task), grammar)
        return None if answer is None else Subgoal(answer.text, answer.text, answer)

    def _in_conversation(self, result: str) -> Requests[Subgoal | None]:
        n = self.subgoals + 1
        if self.turns:
            answer = yield from self._ask(go_on_after(self.subgoals, result), next_subgoal(n, n))
        else:
            answer = yield from self._ask(plan_for(self.task), first_subgoal())
        if answer is None:
            return None
        text = read_subgoal(answer.text, n) if self.episode.settings.constrained else _free_subgoal(answer.text)
        return None if text is None else Subgoal(numbered(n, text), text, answer)

    def _thought(self) -> Requests[Subgoal | None]:
        """Write the subgoal as the embedded model was trained to: as the thought of a ReAct step."""
        episode = self.episode
        if episode.next_action() is None:
            return None
        head, grammar = next_head(episode, ROLE), thought_grammar(len(episode.steps) + 1)
        answer = yield from episode.ask(next_prompt(episode, ROLE) + head, grammar, role=ROLE, begun=head)
        if answer is None:
            return None
        constrained = episode.settings.constrained
        text = (parse(grammar, head + answer.text)["thought"] if constrained else answer.text).strip()
        return Subgoal(numbered(self.subgoals + 1, text), text, answer)

    def _ask(self, user: str, grammar: Grammar) -> Requests[Generation | None]:
        shots = [planner_shot(shot) for shot in self.shots]
        prompt = conversation_prompt(self.episode.writer.model(ROLE), self.turns, user, shots=shots)
        answer = yield from self.episode.ask(prompt, grammar, role=ROLE)
        if answer is not None:
            self.turns.append(Turn(user, answer.text))
        return answer


def reads_memory(episode: Episode, role: str) -> bool:
    """Whether a role's model reads a memory: it is the embedded model, and there is a memory."""
    return episode.writer.model(role).is_embedded and episode.surroundings.memory is not None


def first_subgoal() -> Grammar:
    """The grammar of the iterative planner's first text: ``Subgoal 1: ...``."""
    return shipped_grammar("lumos/subgoal").bind(N="1")


def next_subgoal(number: int, most: int) -> Grammar:
    """The grammar of its answer to a result: the next subgoal, or (always past `most`) that it stops."""
    return shipped_grammar("lumos/planner_iterative").bind(N=str(number) if number <= most else {})


def whole_plan(most: int) -> Grammar:
    """The grammar of the onetime planner's text: up to `most` subgoals, numbered in order."""
    plan = shipped_grammar("lumos/planner_onetime")
    # From the last subgoal to the first: after the last one no more may follow.
    rest = plan.bind(N=str(most), MORE={})
    for number in range(most - 1, 0, -1):
        rest = plan.bind(N=str(number), MORE=rest)
    return rest


def read_subgoal(text: str, number: int) -> str | None:
    """The sentence of subgoal `number` in a text of the iterative planner; None if it stops.

    Raises ActionError: the text is neither.
    """
    subgoal = parse(first_subgoal() if number == 1 else next_subgoal(number, number), text).get("subgoal")
    return subgoal and subgoal.strip()


def _free_subgoal(text: str) -> str | None:
    """The subgoal in a text that the planner wrote without masks; None if it stops."""
    text = text.strip()
    return None if text.startswith(STOP.rstrip(".")) else _LABEL.sub("", text.removeprefix(KEEP), count=1)
