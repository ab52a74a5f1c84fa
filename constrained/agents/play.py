"""The agent's loop: bind what is in view, let the model write one step, do it, remember it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from constrained.agents.plan import Plan, Step
from constrained.agents.prompts import build_prompt
from constrained.agents.steps import step_prompt
from constrained.agents.strategies import read_step, step_grammar
from constrained.automaton import CompiledGrammar, compile_grammar
from constrained.automaton.state import State
from constrained.decoding import Generation, PrefixCache, generate
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.grammar import Grammar
from constrained.knowledge import ActionKnowledge
from constrained.models.load import LoadedModel

STOP = "stop"
"""The extra action by which a model ends an open-loop plan that may end."""

STEP_TOKENS = 1024
"""Tokens of one step, where the plan has no limit of its own."""

MAX_ACTIONS = 2000
"""Actions at one step up to which those already tried are left out."""

FREE_TOKENS = 160
"""Tokens of one step without masks: nothing else ends it."""


@dataclass
class Settings:
    """How steps are written.

    Attributes
    ----------
    strategy : {"act", "react", "knowagent"}
    constrained : bool
        Masks on.
    max_steps : int
    max_new_tokens : int or None
        Tokens of the whole plan; None: no limit beyond each step's own.
    repeats : bool
        Admit, with masks on, an action that was done before in the very same situation.
    temperature, top_k, top_p, generator
        See `constrained.decoding.Sampler`.
    """

    strategy: str = "knowagent"
    constrained: bool = True
    max_steps: int = 50
    max_new_tokens: int | None = None
    repeats: bool = False
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    generator: torch.Generator | None = None


@dataclass
class Run:
    """One plan under way."""

    loaded: LoadedModel
    knowledge: ActionKnowledge
    plan: Plan
    settings: Settings
    memory: Any = None
    tried: dict[str, set[str]] = field(default_factory=dict)
    cache: PrefixCache = field(default_factory=PrefixCache)
    _compiled: tuple[int, Grammar, CompiledGrammar] | None = None

    def compiled(self, action: Grammar) -> CompiledGrammar:
        """The next step with `action` in it, compiled once for all that is asked of it."""
        n = len(self.plan.steps) + 1
        if self._compiled is None or self._compiled[:2] != (n, action):
            grammar = step_grammar(self.settings.strategy, n, self.plan.path, action)
            self._compiled = n, action, compile_grammar(grammar, self.loaded.vocabulary)
        return self._compiled[2]

    def left(self) -> int | None:
        """Tokens that the plan may still take."""
        total = self.settings.max_new_tokens
        return None if total is None else total - sum(s.completion_tokens for s in self.plan.steps)

    def untried(self, action: Grammar) -> Grammar:
        """`action` without what was done before in this very situation.

        The world answers alike to the like, so doing it again could only go round in a circle.
        """
        before = self.tried.get(self.memory.situation())
        texts = action.automaton.start.texts(MAX_ACTIONS) if before else None
        left = [t for t in texts or () if t.decode() not in before]
        return Grammar.from_choices(left) if left else action

    def write(self, action: Grammar, tokens: int | None) -> tuple[Generation, Step]:
        """One step, its action within `action` if masks are on."""
        settings, n = self.settings, len(self.plan.steps) + 1
        began = time.perf_counter()
        known = self.memory.text() if self.memory is not None else ""
        prompt = build_prompt(
            self.loaded, self.knowledge.to_text(), self.plan.task, settings.strategy, known, self.plan.steps
        )
        options: dict[str, Any] = {
            "temperature": settings.temperature, "top_k": settings.top_k, "top_p": settings.top_p,
            "generator": settings.generator, "cache": self.cache,
        }
        head = step_head(self.loaded, settings.strategy, n, self.plan.path)
        if settings.constrained:
            written = generate(
                self.loaded, prompt + head, self.compiled(action), max_new_tokens=tokens or STEP_TOKENS, begun=head,
                **options,
            )
        else:
            written = generate(
                self.loaded, prompt + head, None, max_new_tokens=min(tokens or FREE_TOKENS, FREE_TOKENS),
                stop="\nObservation", **options,
            )
        text = read_step(settings.strategy, n, written.text)
        judgement = self.knowledge.judge(text.action)
        mass = written.pruned_mass if settings.constrained else None
        return written, Step(
            n, text.thought, text.action, judgement.verdict, judgement.reason,
            pruned_mass=mass.mean if mass else 0.0,
            max_pruned_mass=mass.max if mass else 0.0,
            prompt_tokens=written.prompt_tokens,
            completion_tokens=written.completion_tokens,
            forced_tokens=sum(t.forced for t in written.tokens),
            forward_passes=written.forward_passes,
            seconds=time.perf_counter() - began,
        )


def step_head(loaded: LoadedModel, strategy: str, n: int, path: list[str]) -> str:
    """The step's known text (its path, say), which the prompt ends with.

    Other models cut a space and the word after it as one token, so the last space is left to
    the grammar; the embedded model learned to go on after it.
    """
    head = step_prompt("", strategy, n, path).removeprefix("\n")
    return head if loaded.is_embedded else head.rstrip(" ")


def play(run: Run, environment, on_step: Callable[[Step], None] | None = None) -> Plan:
    """Play `environment` to its end or the limits."""
    plan, settings = run.plan, run.settings
    run.knowledge = run.knowledge.bind_view(environment.view())
    while len(plan.steps) < settings.max_steps:
        try:
            action = run.knowledge.next_action()
        except KnowledgeError as error:  # the path is over, though the environment is not
            plan.note = error.message
            break
        if run.memory is not None and not settings.repeats:
            action = run.untried(action)
        left = run.left()
        if left is not None and not _fits(run, action, left):
            plan.note = f"stopped at the limit of {settings.max_new_tokens} tokens"
            break
        _, step = run.write(action, left)
        step.observation, _, done = environment.step(step.action)
        step.had_effect = environment.had_effect
        if step.had_effect and step.verdict == "ok":
            run.knowledge = run.knowledge.after(step.action)
        if run.memory is not None:
            run.tried.setdefault(run.memory.situation(), set()).add(step.action)
            run.memory.update(step.action, step.observation)
        plan.steps.append(step)
        if on_step:
            on_step(step)
        if done:
            plan.success = True
            return plan
        run.knowledge = run.knowledge.bind_view(environment.view())
    plan.success = False
    plan.note = plan.note or f"stopped at the limit of {settings.max_steps} steps"
    return plan


def imagine(run: Run, on_step: Callable[[Step], None] | None = None, world=None) -> Plan:
    """Write a whole path that the knowledge admits, executing nothing.

    `world`: an environment that only serves to bind the slots, as if each action had been done.
    """
    plan, settings = run.plan, run.settings
    plan.open_loop = True
    if world is not None:
        run.knowledge = run.knowledge.bind_view(world.view())
    while len(plan.steps) < settings.max_steps:
        steps_left = _steps_left(run)
        try:
            action = run.knowledge.next_action(steps_left if settings.constrained else None)
        except KnowledgeError:
            raise _too_tight(settings) from None
        if run.knowledge.may_end and plan.steps:
            action = _or_stop(action)
        left = run.left()
        if left is not None and not _fits(run, action, left):
            break
        if left is not None and settings.constrained:
            left -= _reserve(run, steps_left)
        _, step = run.write(action, left)
        if step.action == STOP:
            break
        run.knowledge = run.knowledge.after(step.action) if step.verdict == "ok" else run.knowledge
        if world is not None:
            answer, _, _ = world.step(step.action)
            run.memory.update(step.action, answer)
            run.knowledge = run.knowledge.bind_view(world.view())
        plan.steps.append(step)
        if on_step:
            on_step(step)
        if not any(q.first() for q in run.knowledge.grammar.automaton.start.positions):
            break  # nothing may follow: the path is over
    if settings.constrained and not run.knowledge.may_end:
        raise _too_tight(settings)
    return plan


def _too_tight(settings: Settings) -> ConstrainedError:
    tokens = f" and {settings.max_new_tokens} tokens" if settings.max_new_tokens else ""
    return ConstrainedError(
        f"no whole plan fits in {settings.max_steps} steps{tokens}", "raise max_steps or max_new_tokens"
    )


def _steps_left(run: Run) -> int:
    """Steps in which the path must end: those left, fewer if the tokens won't last."""
    steps = run.settings.max_steps - len(run.plan.steps)
    left = run.left()
    return steps if left is None else max(1, min(steps, left // _step_cost(run)))


def _step_cost(run: Run) -> int:
    """A bound on the tokens of a shortest step, from the steps it could be."""
    try:
        action = run.knowledge.next_action()
    except KnowledgeError:
        return 1
    return _fewest(run, action) + 8


def _reserve(run: Run, steps_left: int) -> int:
    """Tokens kept back so that the path can still be ended after this step."""
    longest = max(run.knowledge.graph.distance.values(), default=1)
    return _step_cost(run) * max(0, min(steps_left, longest) - 1)


def _fewest(run: Run, action: Grammar) -> int:
    return run.compiled(action).budget.fewest(_begun(run, action)) or 1


def _fits(run: Run, action: Grammar, left: int) -> bool:
    return run.compiled(action).budget.fits(_begun(run, action), left)


def _begun(run: Run, action: Grammar) -> State:
    """The state where the model takes over."""
    head = step_head(run.loaded, run.settings.strategy, len(run.plan.steps) + 1, run.plan.path)
    return run.compiled(action).matcher(head).state


def _or_stop(action: Grammar) -> Grammar:
    return _either().bind(A=action)


@cache
def _either() -> Grammar:
    return Grammar.from_lark(f'%declare A\nstart: A | "{STOP}"\n')
