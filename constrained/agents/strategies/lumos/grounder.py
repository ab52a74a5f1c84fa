"""Lumos's grounding module (section 2), which turns subgoals into actions and does them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, runtime_checkable

from constrained.agents.episode import Episode
from constrained.agents.messages import Requests
from constrained.agents.plan import Step
from constrained.agents.step_formats import MAX_THOUGHT
from constrained.agents.step_writer import next_grammar, next_head, next_prompt
from constrained.agents.strategies.lumos.conversation import (
    Shot,
    Turn,
    conversation_prompt,
    ground,
    ground_next,
    grounder_shot,
    question_prompt,
)
from constrained.agents.strategies.lumos.planner import Subgoal, reads_memory
from constrained.automaton import Grammar
from constrained.automaton.parse import parse
from constrained.decoding.request import Generation
from constrained.environments.executor.actions import action_grammar, further_action
from constrained.grammar import ContextFreeGrammar


class Unanswered(Exception):
    """Raised by an environment if a model must first answer a question from texts; see `Asking`."""

    def __init__(self, question: str, texts: list[str]):
        super().__init__(question)
        self.question, self.texts = question, texts


@runtime_checkable
class Asking(Protocol):
    """An environment that raises `Unanswered`; it is then given the answer and told to do the action again."""

    def answer(self, text: str) -> None:
        """Take the answer to the question that the last action raised."""
        ...


ROLE = "grounder"
ANSWERER = "answerer"
"""The role that answers the questions of the action QA; GPT-3.5 in the paper."""

MOST_ACTIONS = 10
"""Most actions for one subgoal; the longest turn in the paper (appendix G) has 6."""

_BETWEEN = re.compile(r";\s+(?![^\[\]()]*[\])])")  # between actions, not within an action's brackets


@dataclass
class Grounder:
    """A grounder with its conversation. `task`: as the environment first described it; `shots`: worked examples."""

    episode: Episode
    task: str
    shots: Sequence[Shot] = ()
    turns: list[Turn] = field(default_factory=list)
    brief: str = ""

    def carry_out(self, subgoal: Subgoal, most: int = MOST_ACTIONS) -> Requests[str]:
        """Do what the subgoal asks for, in at most `most` actions, and return the result of the last one.

        With masks on, each action is written alone and done at once, so that the next can name its result. The grounder
        is shown no results (section 2.3), so its prompt is the same as if all actions were done after its turn.
        """
        episode, more, turn, result = self.episode, True, "", ""
        costs = [subgoal.answer]
        actions: list[str] = []
        # `turn` is the grounder's text so far. With masks on it is written action by action, each with the results of
        # those before it in its slots; without masks at once, and its actions are then taken from the list.
        if not self.turns:
            self.brief = ground(self.task, {}, subgoal.label)
        user = ground_next(subgoal.label) if self.turns else ground(self.task, self._told, subgoal.label)
        while most and (actions or more) and (admitted := episode.next_action()) is not None:
            if not actions:
                answer, actions = yield from self._write(user, turn, admitted, subgoal)
                if answer is None or not actions:
                    break
                turn += answer.text
                more = self._continues(turn)
                costs.append(answer)
            step = episode.new_step("", actions.pop(0), *costs, subgoal=subgoal.label)
            yield from self._do(step)
            result, costs, most = step.observation or "", [], most - 1
        self.turns.append(Turn(user, turn.removesuffix(";")))
        return result

    def _write(
        self, user: str, turn: str, action: Grammar, subgoal: Subgoal
    ) -> Requests[tuple[Generation | None, list[str]]]:
        """Write the next text of a turn, and return it with its actions; None if the token limit is too near."""
        episode, grammar, begun = self.episode, action, ""
        model = episode.writer.model(ROLE)
        if reads_memory(episode, ROLE):
            thought = subgoal.text[:MAX_THOUGHT] or " "  # another model's plan may be longer; no thought is empty
            begun = f"{next_head(episode, ROLE)}{thought}\nAction {len(episode.steps) + 1}:"
            prompt, compiled = next_prompt(episode, ROLE) + begun, next_grammar(episode, action, ROLE)
        else:
            further = turn and not self._numbers_results
            grammar = further_action(action) if further else action_grammar(action, first=not turn)
            compiled = episode.writer.compile(grammar, ROLE)
            shots = [grounder_shot(shot, self._told) for shot in self.shots]
            prompt = conversation_prompt(model, self.turns, user, self.brief, turn, shots)
        answer = yield from episode.ask(prompt, compiled, role=ROLE, begun=begun)
        return answer, [] if answer is None else self._actions_in(answer.text, begun, compiled.grammar)

    def _actions_in(self, text: str, begun: str, grammar: ContextFreeGrammar) -> list[str]:
        """The actions in a text: with masks on one or none, otherwise as many as there seem to be."""
        if not self.episode.settings.constrained:
            return [piece.strip() for piece in _BETWEEN.split(text.strip().removesuffix(";"))]
        action = parse(grammar, begun + text).get("ACTION")
        if action is None:
            return []
        return [action.removesuffix(";") if self._numbers_results else action]

    def _continues(self, turn: str) -> bool:
        """Whether another action may follow in a turn."""
        if not self.episode.settings.constrained or reads_memory(self.episode, ROLE):
            return False
        return turn.endswith(";") or not self._numbers_results

    @property
    def _told(self) -> Mapping[str, str]:
        """The actions with their definitions if prompts contain them, else an empty mapping."""
        return self.episode.start.actions if self.episode.settings.knowledge_in_prompt else {}

    @property
    def _numbers_results(self) -> bool:
        """Whether the actions are of Lumos's own spaces: these end with ``;`` themselves if another follows."""
        return "N" in self.episode.start.slots

    def _do(self, step: Step) -> Requests[None]:
        """Do a step; if its action asks a question, a model answers it first."""
        episode = self.episode
        try:
            episode.do(step)
        except Unanswered as asked:
            prompt = question_prompt(episode.writer.model(ANSWERER), asked.question, asked.texts)
            answer = yield from episode.ask(prompt, _answer(), role=ANSWERER)
            if answer is None:
                return
            step.add_cost(answer)
            assert isinstance(episode.surroundings.environment, Asking), "nothing else asks questions"
            episode.surroundings.environment.answer(answer.text)
            episode.do(step)


@cache
def _answer() -> Grammar:
    return Grammar.from_regex(r"[^\n]{1,200}")
