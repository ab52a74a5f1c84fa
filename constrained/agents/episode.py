"""`Episode`: one task being played, with all that a strategy works with.

Before every action the slots of the knowledge are bound to what is in view, so that under masks a model can name only
what is there. `step_writer` lets a model write the next step.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from constrained.agents.action_space import ActionSpace
from constrained.agents.demonstrations import examples_for
from constrained.agents.levels import FORM, GOAL, GOAL_SOUND
from constrained.agents.messages import FREE_TOKENS, POLICY, STEP_TOKENS, ModelWriter, Requests
from constrained.agents.plan import Plan, Step
from constrained.agents.prompts import Builder, Example
from constrained.agents.settings import Settings
from constrained.agents.step_formats import action_path
from constrained.agents.surroundings import Surroundings
from constrained.automaton import CompiledGrammar, Grammar
from constrained.decoding.choosers import Chooser
from constrained.decoding.request import Generation, Request
from constrained.environments.base import Environment, WithCommands, WithForm, WithView
from constrained.environments.facts import FactsEnvironment
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.knowledge import Knowledge
from constrained.knowledge.continuation import either
from constrained.knowledge.world_state import WorldState

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel, RemoteModel

log = logging.getLogger(__name__)


class Episode:
    """One task being played.

    Parameters
    ----------
    models : mapping of str to LoadedModel, RemoteModel or Chooser
        By role; "policy" writes for roles without a model of their own.
    start : Knowledge
        The knowledge at the beginning of a path.
    plan : Plan
    settings : Settings
    environment : Environment, optional
        None: nothing is executed.
    on_step : callable, optional
        Called with each `Step` as it is done.
    on_text : callable, optional
        Called with each piece of text that a local model writes.
    judge : Knowledge, optional
        Gives the verdicts, if they are not to come from the knowledge behind masks and prompts.
    prompt : Builder, optional
        Builds the prompts before steps; default: `constrained.agents.prompts.conversation`.
    examples : sequence of Example, optional
        Worked examples for the prompts; default: those of the knowledge's file, or of the environment.

    Attributes
    ----------
    writer : ModelWriter
        The models.
    surroundings : Surroundings
        The environment, and what is remembered of it.
    space : ActionSpace
        The actions that may come next.
    hints : str
        What a strategy found out, for prompts: reflections or triples.
    phase : str
        The name of the current phase, recorded in its steps. Only strategies that start the environment several times
        name phases.
    over : bool
        Whether the phase is over: the environment is done, a limit is reached, or the path is at its end.
    choose : callable or None
        Filters the admitted actions in this phase, in place of the level "goal"; the phase is over if none is left.
    may_stop : bool
        Whether the model may end this phase by the action `stop`, as it may where nothing judges the task.
    compiled : tuple or None
        The compiled grammar of the next step, with the key that it depends on (`step_writer.next_grammar`).
    """

    def __init__(
        self,
        models: Mapping[str, LoadedModel | RemoteModel | Chooser],
        start: Knowledge,
        plan: Plan,
        settings: Settings,
        environment: Environment | None = None,
        *,
        on_step: Callable[[Step], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        judge: Knowledge | None = None,
        prompt: Builder | None = None,
        examples: Sequence[Example] | None = None,
    ):
        if not settings.constrained and any(isinstance(model, Chooser) for model in models.values()):
            raise ConstrainedError("a chooser chooses among what the masks admit, but they are off", "turn masks on")
        self.start, self._judge = start, judge
        self.plan, self.settings = plan, settings
        self.on_step, self.on_text = on_step, on_text
        self.prompt, self._examples = prompt, examples
        self.space = ActionSpace(start, judge, self.level == FORM)
        self.writer = ModelWriter(models, plan, settings.max_new_tokens)
        self.surroundings = Surroundings(environment)
        self.hints = self.phase = ""
        self.over = False
        self.choose: Callable[[list[str]], list[str]] | None = None
        self.may_stop = False
        self.compiled: tuple[object, CompiledGrammar] | None = None
        self._warned: set[str] = set()

    @property
    def steps(self) -> list[Step]:
        """The steps of this phase."""
        return [step for step in self.plan.steps if step.phase == self.phase]

    @property
    def path(self) -> list[str]:
        """The actions of this phase that had an effect."""
        return [step.action for step in self.steps if step.had_effect is not False]

    @property
    def examples(self) -> Sequence[Example]:
        """The worked examples in prompts; none in a phase whose task isn't the environment's."""
        if self._examples is None:
            self._examples = examples_for(self.start, self.surroundings.environment, self.settings)
        return () if self.choose is not None else self._examples

    def begin(self, phase: str = "", knowledge: Knowledge | None = None) -> str:
        """Start the environment, and return its first observation.

        Parameters
        ----------
        phase : str
            A name, for strategies with several phases.
        knowledge : Knowledge, optional
            The knowledge of this phase; default: `start`.
        """
        self.phase, self.over, self.choose, self.may_stop = phase, False, None, False
        observation = self.surroundings.reset()
        self.plan.success, self.plan.note, self.plan.outcome = False if self._judged else None, "", {}
        self.plan.first_observation = self.plan.first_observation or observation
        self.space = ActionSpace(knowledge or self.start, self._judge, self.level == FORM)
        if self.level == FORM and isinstance(self.surroundings.environment, WithForm):
            self.space.hold_to(self.surroundings.environment.form(self.space.knowledge))
        self._bind()
        environment = self.surroundings.environment
        if isinstance(environment, FactsEnvironment) and environment.done:  # the goal holds: nothing is left to do
            self.plan.outcome, self.plan.success, self.over = environment.outcome(), True, True
        if not self._judged:
            self.hints = f"When the task is done, write `{self.space.stop}` as the action."
        return observation

    @property
    def _judged(self) -> bool:
        """Whether the environment knows when the task is done; else the model says so, where the rules let it."""
        environment = self.surroundings.environment
        return environment.judged if isinstance(environment, FactsEnvironment) else True

    @property
    def stop(self) -> str | None:
        """The action that says that the task is done; None where it can't be said, or needn't."""
        if self.may_stop:
            return self.space.stop if self.steps else None
        return self.space.stop if not self._judged and self.steps and self.space.knowledge.may_end else None

    @property
    def level(self) -> str | None:
        """The level of the masks; None if they are off."""
        return self.settings.level if self.settings.constrained else None

    def _bind(self) -> None:
        """Bind the slots to what is in view and remembered now."""
        self.space.bind(self.surroundings)
        self._warn_of_missing_slots(self.surroundings.shown)

    def _warn_of_missing_slots(self, view: Mapping[str, object]) -> None:
        """Warn once of each slot that a user's `view()` leaves out, and suggest a misspelled name as the cause.

        The package's own environments always show the same slots, whatever knowledge they are played with.
        """
        environment = self.surroundings.environment
        asked = isinstance(environment, WithView) and not isinstance(environment, WithCommands)
        if type(environment).__module__.startswith("constrained.") or not asked or not view:
            return
        slots = self.space.knowledge.slots
        unknown = sorted(set(view) - slots)
        for slot in sorted(slots.difference(view, self.start.grammar.bindings)):
            named = get_close_matches(slot, unknown, 1) or unknown
            meant = f"it has {', '.join(named)}, which is no slot; " if named else ""
            message = f"view() says nothing of the slot {slot}: {meant}if nothing is there now, return []"
            if message not in self._warned:
                self._warned.add(message)
                warnings.warn(message, stacklevel=2)

    def end(self, note: str) -> None:
        """End this phase; `note` says why."""
        self.over, self.plan.note = True, note

    def next_action(self) -> Grammar | None:
        """The grammar of the actions that may come next; None if there is none, or a limit is reached."""
        if self.over:
            return None
        if len(self.steps) >= self.settings.max_steps:
            self.end(f"stopped at the limit of {self.settings.max_steps} steps")
            return None
        try:
            action = self.space.knowledge.next_action()
        except KnowledgeError as error:  # the path is at its end, though the environment is not
            self.end(error.message)
            return None
        admitted = self.at_level(action)
        return either(admitted, self.stop) if self.stop is not None and admitted is not None else admitted

    def at_level(self, action: Grammar) -> Grammar | None:
        """The next actions that the level of the masks admits; None, and the episode ends, if it admits none."""
        to_goal = self.level in (GOAL_SOUND, GOAL)
        listed = self.surroundings.commands if self.level not in (None, FORM) else None
        if self.choose is None and not to_goal and listed is None:
            return action
        # The cheapest list first: the texts of the grammar if they are few, else the environment's commands.
        texts = action.texts() if listed is None else action.texts(4 * len(listed))
        if texts is not None:
            left = texts if listed is None else [text for text in texts if text in listed]
        elif listed is not None:  # the knowledge admits far more texts than there are commands
            left = sorted(filter(action.matches, listed))
        else:  # too many to filter one by one
            return action
        # Both filters of the goal admit everything rather than nothing.
        if to_goal:
            facts, here, history = self.facts(), self.surroundings.situation(), self.surroundings.history
            left = history.without_dead_ends(left, facts, here)
            if self.level == GOAL and self.choose is None:
                left = history.helpful(left, facts, here)
        if self.choose is not None:
            left = self.choose(left)
        if not left:
            self.end("nothing is left that was not done")
            return None
        same = listed is None and texts is not None and len(left) == len(texts)
        return action if same else Grammar.from_choices(left)  # masks of a list are quicker than those of rules

    def facts(self) -> WorldState | None:
        """The facts known now; in a plan written ahead, those that will hold at this point."""
        return self.surroundings.known_facts() or self.space.knowledge.facts

    def ask(
        self,
        prompt: str,
        grammar: Grammar | CompiledGrammar,
        *,
        role: str = POLICY,
        max_new_tokens: int | None = None,
        begun: str = "",
        stop: str | None = "\n",
        free_tokens: int = FREE_TOKENS,
    ) -> Requests[Generation | None]:
        """Let a role's model write a text; None, and the episode ends, if too few tokens are left.

        Parameters
        ----------
        prompt : str
        grammar : Grammar or CompiledGrammar
            What may be written, with masks on.
        role : str
        max_new_tokens : int, optional
            Default: the tokens left.
        begun : str
            The beginning of the grammar's text, with which the prompt ends.
        stop : str or None
            Ends a text without masks.
        free_tokens : int
            Most tokens of a text without masks.
        """
        tokens = self.writer.tokens_left() if max_new_tokens is None else max_new_tokens
        compiled = self.writer.compile(grammar, role) if isinstance(grammar, Grammar) else grammar
        if not self.writer.fits(compiled, tokens, begun):
            self.end(f"stopped at the limit of {self.settings.max_new_tokens} tokens")
            return None
        if self.settings.constrained:
            return (yield Request(prompt, compiled, tokens or STEP_TOKENS, None, begun, role=role))
        tokens = free_tokens if tokens is None else min(tokens, free_tokens)
        return (yield Request(prompt, None, tokens, stop, begun, role=role))

    def new_step(
        self,
        thought: str,
        action: str,
        *answers: Generation,
        subgoal: str = "",
        prompt: str = "",
        path: str | None = None,
    ) -> Step:
        """Make the next step, which `answers` wrote, with the verdict on its action.

        `path`: the ActionPath, if a model wrote it itself.
        """
        judgement = self.space.judge.judge(action)
        n = len(self.steps) + 1
        step = Step(
            n, thought, action, judgement.verdict, judgement.reason, subgoal=subgoal, phase=self.phase, prompt=prompt
        )
        if self.settings.step_format == "knowagent":
            true = action_path(self.path)
            step.path, step.true_path = (true, "") if path is None else (path, true)
        for answer in answers:
            step.add_cost(answer)
        return step

    def do(self, step: Step, *, as_planned: bool = False) -> None:
        """Do a step's action, and bind the slots to what is in view after it.

        The path continues after an action that had an effect; with `as_planned`, after any action. Where nothing else
        tells when the task is done, the action that says so ends the phase, and is no step.
        """
        if (self.may_stop or not self._judged) and step.action == self.space.stop:
            self.over = True
            return
        result = self.surroundings.step(step.action)
        step.observation, step.had_effect, step.reward = result.observation, result.had_effect, result.reward
        if result.had_effect or as_planned:
            self.space.advance(step.action)
        self.add(step)
        self.plan.outcome = result.outcome
        self.plan.success = result.outcome["success"] == 1.0 if self._judged else None
        if result.done:
            self.over = True
        else:
            self._bind()

    def add(self, step: Step) -> None:
        """Add a step to the plan."""
        self.plan.steps.append(step)
        log.info("%.60s, step %d: %.200s (%s)", self.plan.task, step.n, step.action, step.verdict)
        if self.on_step:
            self.on_step(step)
