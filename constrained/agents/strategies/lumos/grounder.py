"""Lumos's grounding module (section 2): it turns subgoals into actions, which the environment carries out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from constrained.agents.episode import Episode
from constrained.agents.messages import Answer, Asking
from constrained.agents.parse import parse
from constrained.agents.plan import Step
from constrained.agents.step_formats import MAX_THOUGHT
from constrained.agents.strategies.lumos.conversation import (
    Turn,
    conversation_prompt,
    ground,
    ground_next,
    question_prompt,
)
from constrained.agents.strategies.lumos.planner import Wanted, reads_memory
from constrained.agents.strategies.lumos.suites import Unanswered
from constrained.automaton import Grammar
from constrained.environments.executor.actions import action_grammar, further_action

ROLE = "grounder"
ANSWERER = "answerer"
"""The role that answers the questions of the action QA; GPT-3.5 in the paper."""

MOST_ACTIONS = 10
"""Actions for one subgoal; the longest turn in the paper (appendix G) has 6."""

_BETWEEN = re.compile(r";\s+(?![^\[\]()]*[\])])")  # not within an action's brackets


@dataclass
class Grounding:
    """A grounder with its conversation.

    Parameters
    ----------
    episode : Episode
    task : str
        As the environment first described it.
    """

    episode: Episode
    task: str
    turns: list[Turn] = field(default_factory=list)
    brief: str = ""

    def carry_out(self, wanted: Wanted, most: int = MOST_ACTIONS) -> Asking[str]:
        """Do what is wanted, in at most so many actions; returns the result of the last one.

        With masks on each action is written by itself, and done as soon as it is written, so that the next may name
        its result. The grounder is shown no results (section 2.3), so what it reads is the same as if all actions
        were done after its turn.
        """
        episode, more, turn, result = self.episode, True, "", ""
        costs, written = [wanted.answer], []
        if not self.turns:
            self.brief = ground(self.task, {}, wanted.label)
        user = ground_next(wanted.label) if self.turns else ground(self.task, episode.start.actions, wanted.label)
        while most and (written or more) and (action := episode.next_action()) is not None:
            if not written:
                answer, written = yield from self._write(user, turn, action, wanted)
                if answer is None or not written:
                    break
                turn += answer.text
                more = self._goes_on(turn)
                costs.append(answer)
            step = episode.judged("", written.pop(0), *costs, subgoal=wanted.label)
            yield from self._do(step)
            result, costs, most = step.observation, [], most - 1
        self.turns.append(Turn(user, turn.removesuffix(";")))
        return result

    def _do(self, step: Step) -> Asking[None]:
        """Do a step; where its action asks a question, a model answers that first."""
        episode = self.episode
        try:
            episode.do(step)
        except Unanswered as asked:
            prompt, left = question_prompt(episode.loaded(ANSWERER), asked.question, asked.texts), episode.left()
            tokens = left if left is None else max(left, 1)
            answer = yield from episode.ask(prompt, _answer(), role=ANSWERER, max_new_tokens=tokens)
            step.add_cost(answer)
            episode.environment.answer(answer.text)
            episode.do(step)

    def _goes_on(self, turn: str) -> bool:
        """Whether another action may follow in a turn."""
        if not self.episode.settings.constrained or reads_memory(self.episode, ROLE):
            return False
        return turn.endswith(";") or not self._numbers_results

    def _actions_in(self, text: str, begun: str, grammar: Grammar) -> list[str]:
        """The actions in what was written: with masks on one, or none; else as many as there seem to be."""
        if not self.episode.settings.constrained:
            return [piece.strip() for piece in _BETWEEN.split(text.strip().removesuffix(";"))]
        action = parse(grammar, begun + text).get("ACTION")
        if action is None:
            return []
        return [action.removesuffix(";") if self._numbers_results else action]

    @property
    def _numbers_results(self) -> bool:
        """Whether the actions are of Lumos's own spaces, which end with ``;`` themselves where another follows."""
        return "N" in self.episode.start.slots

    def _write(self, user: str, turn: str, action: Grammar, wanted: Wanted) -> Asking[tuple[Answer | None, list[str]]]:
        """The next answer of a turn and its actions; None where a limit leaves no room for it."""
        episode = self.episode
        if reads_memory(episode, ROLE):
            thought = wanted.text[:MAX_THOUGHT] or " "  # another model's plan may be longer; a thought is never empty
            begun = f"{episode.head(ROLE)}{thought}\nAction {len(episode.steps) + 1}:"
            prompt, grammar = episode.prompt(ROLE) + begun, episode.step_grammar(action, ROLE)
        else:
            following = turn and not self._numbers_results
            grammar = further_action(action) if following else action_grammar(action, first=not turn)
            begun, grammar = "", episode.compile(grammar, ROLE)
            prompt = conversation_prompt(episode.loaded(ROLE), self.turns, user, self.brief, turn)
        if not episode.affords(grammar, ROLE, begun):
            return None, []
        answer = yield from episode.ask(prompt, grammar, role=ROLE, max_new_tokens=episode.left(), begun=begun)
        return answer, self._actions_in(answer.text, begun, grammar.grammar)


@cache
def _answer() -> Grammar:
    return Grammar.from_regex(r"[^\n]{1,200}")
