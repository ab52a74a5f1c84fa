"""Lumos's grounding module (section 2): turns subgoals into actions, which the environment carries out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from constrained.agents.episode import Episode
from constrained.agents.messages import Requests
from constrained.agents.parse import parse
from constrained.agents.plan import Step
from constrained.agents.step_formats import MAX_THOUGHT
from constrained.agents.step_writer import next_grammar, next_head, next_prompt
from constrained.agents.strategies.lumos.conversation import (
    Turn,
    conversation_prompt,
    ground,
    ground_next,
    question_prompt,
)
from constrained.agents.strategies.lumos.planner import Subgoal, reads_memory
from constrained.automaton import Grammar
from constrained.decoding.request import Generation
from constrained.environments.base import Binding, TaskEnvironment
from constrained.environments.executor.actions import action_grammar, further_action, read_turn
from constrained.environments.executor.executor import Executor, Tools
from constrained.environments.question.env import MEASURES, QuestionEnv, exact_match
from constrained.errors import ActionError
from constrained.grammar import ContextFreeGrammar

_TRUTH = {"True": "yes", "False": "no"}  # the value of a comparison -> the answer to a question


class Unanswered(Exception):
    """An action can't be done before a model has answered a question from texts; see `GroundedQuestion.answer`."""

    def __init__(self, question: str, texts: list[str]):
        super().__init__(question)
        self.question, self.texts = question, texts


class GroundedQuestion:
    """Answer one question; the last result is the answer.

    Parameters
    ----------
    make : callable
        Opens the `QuestionEnv` whose question, index and measures these are.

    Attributes
    ----------
    task : str
        The question.
    had_effect : bool
        Whether the last action could be carried out.
    """

    def __init__(self, make: Callable[[], TaskEnvironment]):
        environment = make()
        assert isinstance(environment, QuestionEnv), "other environments have no questions"
        self._env = environment
        self.task = self._env.task
        self.reset()

    def reset(self) -> str:
        """Forget all results, and return the question."""
        self._executor = Executor("qa", Tools(search=self._env.index.search, answer=self._answered))
        self._answer: str | None = None
        self.had_effect = True
        return self._env.reset()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; one that can't be carried out is answered with the reason, and changes nothing.

        Raises Unanswered: a model must answer a question first: give its answer to `answer`, and do the action again.
        """
        try:
            found = read_turn("qa", action.strip())
            if len(found) != 1:
                raise ActionError(f"{len(found)} actions where one is to be done")
            observation, self.had_effect = self._executor.perform(found[0]), True
        except ActionError as error:
            observation, self.had_effect = f"Error: {error.message}", False
        self._answer = None
        return observation, 0.0, False

    def answer(self, text: str) -> None:
        """Take the answer to what the action just tried asks for."""
        self._answer = " ".join(text.split())

    def view(self) -> Mapping[str, Binding]:
        """Return which results there are, and what each can be used for."""
        return self._executor.slots()

    def outcome(self) -> dict[str, float]:
        """Return success (an exact match) and the question's measures, of the last result."""
        actions, gold = self._executor.actions, self._env.question.answer
        last = self._executor.texts[actions[-1].results[-1]] if actions else ""
        given = _TRUTH.get(last, last)
        return {"success": exact_match(given, gold), **{m: MEASURES[m](given, gold) for m in self._env.measures}}

    def _answered(self, question: str, texts: list[str]) -> str:
        if self._answer is None:
            raise Unanswered(question, texts)
        return self._answer


ROLE = "grounder"
ANSWERER = "answerer"
"""The role that answers the questions of the action QA; GPT-3.5 in the paper."""

MOST_ACTIONS = 10
"""Actions for one subgoal; the longest turn in the paper (appendix G) has 6."""

_BETWEEN = re.compile(r";\s+(?![^\[\]()]*[\])])")  # not within an action's brackets


@dataclass
class Grounder:
    """A grounder with its conversation. `task`: as the environment first described it."""

    episode: Episode
    task: str
    turns: list[Turn] = field(default_factory=list)
    brief: str = ""

    def carry_out(self, subgoal: Subgoal, most: int = MOST_ACTIONS) -> Requests[str]:
        """Do what the subgoal asks for, in at most `most` actions; returns the result of the last one.

        With masks on, each action is written alone and done at once, so that the next can name its result. The grounder
        is shown no results (section 2.3), so it reads the same as if all actions were done after its turn.
        """
        episode, more, turn, result = self.episode, True, "", ""
        costs = [subgoal.answer]
        actions: list[str] = []
        if not self.turns:
            self.brief = ground(self.task, {}, subgoal.label)
        user = ground_next(subgoal.label) if self.turns else ground(self.task, episode.start.actions, subgoal.label)
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
        """The next text of a turn, and its actions; None if a limit leaves no room for it."""
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
            prompt = conversation_prompt(model, self.turns, user, self.brief, turn)
        answer = yield from episode.ask(prompt, compiled, role=ROLE, begun=begun)
        return answer, [] if answer is None else self._actions_in(answer.text, begun, compiled.grammar)

    def _actions_in(self, text: str, begun: str, grammar: ContextFreeGrammar) -> list[str]:
        """The actions in a text: with masks on one, or none; otherwise as many as there seem to be."""
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
    def _numbers_results(self) -> bool:
        """Whether the actions are of Lumos's own spaces, which end with ``;`` themselves if another follows."""
        return "N" in self.episode.start.slots

    def _do(self, step: Step) -> Requests[None]:
        """Do a step; if its action asks a question, a model answers that first."""
        episode = self.episode
        try:
            episode.do(step)
        except Unanswered as asked:
            prompt = question_prompt(episode.writer.model(ANSWERER), asked.question, asked.texts)
            answer = yield from episode.writer.ask(prompt, _answer(), role=ANSWERER)
            step.add_cost(answer)
            assert isinstance(episode.world.environment, GroundedQuestion), "nothing else asks questions"
            episode.world.environment.answer(answer.text)
            episode.do(step)


@cache
def _answer() -> Grammar:
    return Grammar.from_regex(r"[^\n]{1,200}")
