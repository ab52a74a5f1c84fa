"""One task being played: what a strategy works with.

An episode knows its position on the path of the action knowledge. Before every action it binds the knowledge's slots to
what is in view, so that with masks on a model can write only what is there and in order. Its methods that let a model
write are generators (see `messages`).
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from constrained.agents.messages import FREE_TOKENS, POLICY, STEP_TOKENS, ChoiceRequest, Requests, Writer
from constrained.agents.plan import Plan, Step
from constrained.agents.prompts import build_messages, build_prompt
from constrained.agents.step_formats import action_path, parse_step, read_step, step_grammar, step_head
from constrained.agents.world import World
from constrained.automaton import CompiledGrammar, Grammar
from constrained.decoding.choosers import Choice, Chooser
from constrained.decoding.request import Request
from constrained.environments.base import Environment, Facts, WithForm
from constrained.environments.facts import FactsEnvironment
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.decoding.request import Generation
    from constrained.models import LoadedModel, RemoteModel

log = logging.getLogger(__name__)

FREE_REASONING = 320
"""Tokens of a whole chain of thought without masks."""

MAX_ACTIONS = 100_000
"""Actions at one step that are listed, for a chooser and for the levels that leave some out."""


FORM, STATE, GOAL_SOUND, GOAL = LEVELS = ("form", "state", "goal-sound", "goal")
"""The levels of masks, each with all that the one before it holds.

- form: what the grammar says, actions that exist in an order the rules allow;
- state: and whose conditions hold in what is known now;
- goal-sound: and that may still lead to the goal. Left out is only what can't: what leads to a dead end even if nothing
  were ever undone again, and what was done before in the same situation with nothing new behind it;
- goal: and that look useful, a heuristic: the first actions of a plan for the easier problem in which nothing is undone
  (helpful actions), and none that was done before in the same situation.
"""


@dataclass(frozen=True)
class Settings:
    """How an episode is played.

    Attributes
    ----------
    strategy : str
        One of `constrained.agents.strategies.STRATEGIES`.
    step_format : str
        The form of one step: "act", "react", "knowagent", "cot" or "fireact".
    constrained : bool
        Masks on.
    level : str
        What they hold; one of `LEVELS`.
    max_steps : int
        Of each phase.
    max_new_tokens : int or None
        Tokens of the whole plan; None: no limit beyond each text's own.
    temperature, top_k, top_p
        See `constrained.decoding.Sampler`.
    seed : int
        Of sampling; each text has its own generator, seeded with this, the task and the text's number.
    max_subgoals : int or None
        Of a planner; None: as many as there are steps.
    trials : int
        Times that Reflexion plays a task, at most.
    explore_steps : int or None
        Of WESE's exploration; None: `max_steps`.
    retrieved : int or None
        Triples that WESE gives the exploiter at most: 10 in its question answering; None: no limit.
    trace : bool
        Record the tokens of each text, and those its masks excluded (`constrained.agents.token_trace`).
    """

    strategy: str = "knowagent"
    step_format: str = "knowagent"
    constrained: bool = True
    max_steps: int = 50
    max_new_tokens: int | None = None
    level: str = STATE
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    max_subgoals: int | None = None
    trials: int = 3
    explore_steps: int | None = None
    retrieved: int | None = 10
    trace: bool = False


class Episode:
    """One task being played.

    Parameters
    ----------
    models : mapping of str to LoadedModel, RemoteModel or Chooser
        By role; "policy" writes for roles without a model of their own.
    start : ActionKnowledge
        The knowledge at the beginning of a path.
    plan : Plan
    settings : Settings
    environment : Environment, optional
        None: nothing is executed.
    on_step : callable, optional
        Called with each `Step` as it is done.
    on_text : callable, optional
        Called with each piece of text that a model writes here.
    judge : ActionKnowledge, optional
        Gives the verdicts, if that is not the knowledge that masks and prompts are made of.

    Attributes
    ----------
    writer : Writer
        The models.
    world : World
        The environment, and what is remembered of it.
    knowledge, judge : ActionKnowledge
        At the present position on the path, their slots bound to what is in view.
    hints : str
        What a strategy found out, for prompts: reflections or triples.
    phase : str
        Written to the steps; a strategy that starts the environment several times names each time.
    over : bool
        The environment is done, a limit is reached, or the path is at its end.
    choose : callable or None
        Chooses among the admitted actions in this phase; if it leaves none, the phase is over. Default: as the level
        says.
    """

    def __init__(
        self,
        models: Mapping[str, LoadedModel | RemoteModel | Chooser],
        start: ActionKnowledge,
        plan: Plan,
        settings: Settings,
        environment: Environment | None = None,
        *,
        on_step: Callable[[Step], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        judge: ActionKnowledge | None = None,
    ):
        if not settings.constrained and any(isinstance(model, Chooser) for model in models.values()):
            raise ConstrainedError("a chooser chooses among what masks admit, and they are off", "turn the masks on")
        self.start = self.knowledge = start
        self._judge_at_start = self.judge = judge
        self.plan, self.settings = plan, settings
        self.on_step, self.on_text = on_step, on_text
        self.writer = Writer(models, plan, settings.constrained, settings.max_new_tokens)
        self.world = World(environment)
        self.hints = self.phase = ""
        self.over = False
        self.choose: Callable[[list[str]], list[str]] | None = None
        self._compiled: tuple[object, CompiledGrammar] | None = None
        self._warned: set[str] = set()

    @property
    def steps(self) -> list[Step]:
        """The steps of this phase."""
        return [step for step in self.plan.steps if step.phase == self.phase]

    @property
    def path(self) -> list[str]:
        """The actions of this phase that had an effect."""
        return [step.action for step in self.steps if step.had_effect is not False]

    def begin(self, phase: str = "", knowledge: ActionKnowledge | None = None) -> str:
        """Start the environment, and return its first observation.

        Parameters
        ----------
        phase : str
            Its name, for a strategy with several.
        knowledge : ActionKnowledge, optional
            Of this phase; default: the whole.
        """
        self.phase, self.over, self.choose = phase, False, None
        self.plan.success, self.plan.note, self.plan.outcome = False, "", {}
        observation = self.world.reset()
        self.plan.first_observation = self.plan.first_observation or observation
        self.knowledge, self.judge = knowledge or self.start, self._judge_at_start
        if self.only_form and isinstance(self.world.environment, WithForm):
            self.judge = self.judge or self.knowledge
            self.knowledge = self.world.environment.form(self.knowledge)
        self.bind()
        environment = self.world.environment
        if isinstance(environment, FactsEnvironment) and environment.done:  # the goal holds: nothing is left to do
            self.plan.outcome, self.plan.success, self.over = environment.outcome(), True, True
        return observation

    def bind(self) -> None:
        """Bind the slots to what is in view and remembered now."""
        values = self.world.slots()
        self._tell_of_names(values)
        self.knowledge = self.knowledge.bind_view(values)
        self.judge = self.judge and self.judge.bind_view(values)
        facts = self.world.told()
        if facts is not None:
            self.knowledge = self.knowledge if self.only_form else self.knowledge.told(facts)
            self.judge = self.judge and self.judge.told(facts)

    @property
    def only_form(self) -> bool:
        """Whether the masks are to hold no more than the form of actions."""
        return self.settings.constrained and self.settings.level == FORM

    def _tell_of_names(self, view: Mapping[str, object]) -> None:
        """Warn, once of each, of slots that a view says nothing of; names that it has and no slot bears may be why.

        The package's own environments show what they have, whatever knowledge they are played with.
        """
        if type(self.world.environment).__module__.startswith("constrained."):
            return
        slots = self.knowledge.slots
        others = sorted(set(view) - slots)
        for slot in sorted(slots.difference(view, self.start.grammar.bindings)) if view else ():
            named = get_close_matches(slot, others, 1) or others
            meant = f"it has {', '.join(named)}, which is no slot; " if named else ""
            self._warn(f"view() says nothing of the slot {slot}: {meant}if nothing is there now, return []")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, stacklevel=2)

    def end(self, note: str) -> None:
        """End this phase; `note` says why."""
        self.over, self.plan.note = True, note

    # writing a step

    def step(self, role: str = POLICY) -> Requests[Step | None]:
        """Let a role's model write the next step, and do it.

        Returns
        -------
        Step or None
            None if no step may be written: the episode is over, and the plan's note says why.
        """
        action = self.next_action()
        step = None if action is None else (yield from self.write_step(action, role=role))
        if step is not None:
            self.do(step)
        return step

    def next_action(self) -> Grammar | None:
        """The grammar of the actions that may come next; None if there is none, or a limit is reached."""
        if self.over:
            return None
        if len(self.steps) >= self.settings.max_steps:
            self.end(f"stopped at the limit of {self.settings.max_steps} steps")
            return None
        try:
            action = self.knowledge.next_action()
        except KnowledgeError as error:  # the path is at its end, though the environment is not
            self.end(error.message)
            return None
        return self.at_level(action)

    def at_level(self, action: Grammar) -> Grammar | None:
        """What the level of masks leaves of the next actions; None, and the episode ends, if that is nothing."""
        level = self.settings.level if self.settings.constrained else FORM
        if self.choose is None and level not in (GOAL_SOUND, GOAL):
            return action
        texts = action.automaton.start.texts(MAX_ACTIONS)
        if texts is None:  # too many to tell what to leave out
            return action
        actions = left = [text.decode() for text in texts]
        facts = self.facts() if level in (GOAL_SOUND, GOAL) else None
        if level in (GOAL_SOUND, GOAL):
            left = self.world.without_dead_ends(left, facts)
        if self.choose is not None:
            left = self.choose(left)
        elif level == GOAL:
            left = self.world.helpful(left, facts)
        if not left:
            self.end("nothing is left that was not done")
            return None
        return action if len(left) == len(actions) else Grammar.from_choices(left)

    def facts(self) -> Facts | None:
        """What is known as facts now; in a plan written ahead, what will be."""
        return self.world.known_facts() or getattr(self.knowledge, "facts", None)

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
        """Let a role's model write (see `Writer.ask`); None, and the episode ends, if too few tokens are left."""
        tokens = self.writer.tokens_left() if max_new_tokens is None else max_new_tokens
        if tokens is not None:
            grammar = self.writer.compile(grammar, role) if isinstance(grammar, Grammar) else grammar
            if not self.writer.fits(grammar, tokens, begun):
                self.end(f"stopped at the limit of {self.settings.max_new_tokens} tokens")
                return None
        return (
            yield from self.writer.ask(
                prompt, grammar, role=role, max_new_tokens=tokens, begun=begun, stop=stop, free_tokens=free_tokens
            )
        )

    def write_step(
        self, action: Grammar, tokens: int | None = None, role: str = POLICY, stop: str | None = None
    ) -> Requests[Step | None]:
        """Let a role's model write a step, with masks on one whose action is of `action`; nothing is done yet.

        None, and the episode ends, if `tokens` (default: those left) are too few. A chooser is told that `stop` ends
        the plan, if it is given.
        """
        if self.writer.chooser(role) is not None:
            chosen = yield ChoiceRequest("", role=role, choice=self._choice(action, stop))
            return self.new_step("", chosen.text, chosen)
        if self.writer.remote(role) is not None:
            return (yield from self._write_remotely(action, role))
        head, grammar, form = self.head(role), self.step_grammar(action, role), self.settings.step_format
        answer = yield from self.ask(
            self.prompt(role) + head, grammar, role=role, max_new_tokens=tokens, begun=head, stop="\nObservation",
            free_tokens=FREE_REASONING if form == "cot" else FREE_TOKENS,
        )  # fmt: skip
        if answer is None:
            return None
        if self.settings.constrained:
            thought, action_text = parse_step(grammar.grammar, head + answer.text)
        else:
            thought, action_text = read_step(form, len(self.steps) + 1, answer.text)
        return self.new_step(thought, action_text, answer)

    def _write_remotely(self, action: Grammar, role: str) -> Requests[Step]:
        """Let a server's model write a step: the action alone in the form "act", else the whole step."""
        form, n, masks = self.settings.step_format, len(self.steps) + 1, self.settings.constrained
        whole = action if form == "act" else step_grammar(form, n, self.path, action)
        left = self.writer.tokens_left()
        answer = yield Request(
            "", whole if masks else None, STEP_TOKENS if left is None else max(1, left),
            None if masks else "\nObservation", role=role,
            messages=build_messages(
                self.knowledge.to_text(), self.plan.task, form, self.world.facts(), self.steps, self._known_here()
            ),
        )  # fmt: skip
        if form == "act" and masks:
            return self.new_step("", answer.text, answer)
        thought, text = parse_step(whole, answer.text) if masks else read_step(form, n, answer.text)
        return self.new_step(thought, text, answer)

    def _choice(self, action: Grammar, stop: str | None) -> Choice:
        """What a chooser is asked, if `action` writes what is admitted."""
        texts = action.automaton.start.texts(MAX_ACTIONS)
        if texts is None:
            raise ConstrainedError(
                f"a chooser needs a list of the actions, but those of {self.knowledge.name} hold free text here, or "
                f"are more than {MAX_ACTIONS:,}",
                "give a language model",
            )
        last = self.steps[-1].observation if self.steps else self.plan.first_observation
        actions = tuple(text.decode() for text in texts)
        return Choice(
            self.plan.task,
            actions,
            stop,
            tuple(self.path),
            last or "",
            self.world.facts(),
            self.knowledge,
            self.facts(),
            self.world.tried,
        )

    def new_step(self, thought: str, action: str, *answers: Generation, subgoal: str = "") -> Step:
        """The next step, written in `answers`, with the verdict on its action."""
        judgement = (self.judge or self.knowledge).judge(action)
        n = len(self.steps) + 1
        step = Step(n, thought, action, judgement.verdict, judgement.reason, subgoal=subgoal, phase=self.phase)
        for answer in answers:
            step.add_cost(answer)
        return step

    def prompt(self, role: str = POLICY) -> str:
        """What a model reads before the next step."""
        return build_prompt(
            self.writer.model(role), self.knowledge.to_text(), self.plan.task, self.settings.step_format,
            self.world.facts(), self.steps, self._known_here(),
        )  # fmt: skip

    def _known_here(self) -> str:
        """What is in view, and what a strategy found out."""
        view = "" if self.settings.step_format == "fireact" else self.world.in_view(self.knowledge.slots)
        return "\n".join(filter(None, [view, self.hints]))  # FireAct's data has no such lines

    def head(self, role: str = POLICY) -> str:
        """The known beginning of the next step (its path, for instance), with which the prompt ends.

        Most tokenizers join a space to the word after it, so the last space is left to the model; the embedded model
        was trained to continue after it.
        """
        head = step_head(self.settings.step_format, len(self.steps) + 1, self.path)
        return head if self.writer.model(role).is_embedded else head.rstrip(" ")

    def step_grammar(self, action: Grammar, role: str = POLICY) -> CompiledGrammar:
        """The grammar of the next step with `action` in it, compiled once for all uses."""
        key = (self.phase, len(self.plan.steps), action, self.writer.model(role).vocabulary)
        if self._compiled is None or self._compiled[0] != key:
            grammar = step_grammar(self.settings.step_format, len(self.steps) + 1, self.path, action)
            self._compiled = key, self.writer.compile(grammar, role)
        return self._compiled[1]

    # doing it

    def do(self, step: Step, *, as_planned: bool = False) -> None:
        """Do a step's action, and bind what is in view after it.

        The path continues from an action that had an effect; with `as_planned`, from any.
        """
        result = self.world.step(step.action)
        step.observation, step.had_effect = result.observation, result.had_effect
        if result.had_effect or as_planned:
            self.knowledge = after(self.knowledge, step.action)
            self.judge = self.judge and after(self.judge, step.action)
        self.add(step)
        self.plan.outcome, self.plan.success = result.outcome, result.outcome["success"] == 1.0
        if result.done:
            self.over = True
        else:
            self.bind()

    def add(self, step: Step) -> None:
        """Add a step to the plan."""
        if self.settings.step_format == "knowagent":
            step.path = action_path(self.path)
        self.plan.steps.append(step)
        log.info("%.60s, step %d: %.200s (%s)", self.plan.task, step.n, step.action, step.verdict)
        if self.on_step:
            self.on_step(step)


def after(knowledge: ActionKnowledge, action: str) -> ActionKnowledge:
    """The knowledge after an action; unchanged if it doesn't admit the action."""
    return knowledge.after(action) if knowledge.judge(action) else knowledge
