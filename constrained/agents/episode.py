"""One task under way: what a strategy works with.

An episode holds the environment, the place on the path of the action knowledge, what is
remembered, and the plan so far; its methods that write are generators (see `asking`). It binds what
is in view before every action, so that with masks on only what is there and in order can be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrained.agents.messages import POLICY, Answer, Ask, Asking, for_role
from constrained.agents.plan import Plan, Step
from constrained.agents.prompts import build_prompt
from constrained.agents.step_formats import action_path, parse_step, read_step, step_grammar, step_prompt
from constrained.automaton import CompiledGrammar, Grammar, compile_grammar
from constrained.environments.base import Environment, Memory
from constrained.errors import KnowledgeError
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import: only who plays pays for it
    from constrained.models import LoadedModel

STEP_TOKENS = 1024
"""Tokens of one text, where the plan has no limit of its own."""

FREE_TOKENS = 160
"""Tokens of one text without masks: nothing else ends it."""

FREE_REASONING = 320
"""The same of a whole chain of thought."""

MAX_ACTIONS = 2000
"""Actions at one step up to which those already tried are left out."""


@dataclass(frozen=True)
class Settings:
    """How an episode is played.

    Attributes
    ----------
    strategy : str
        One of `constrained.agents.strategies.STRATEGIES`.
    step_format : str
        What one step looks like: "act", "react", "knowagent", "cot" or "fireact".
    constrained : bool
        Masks on.
    max_steps : int
        Of each phase.
    max_new_tokens : int or None
        Tokens of the whole plan; None: no limit beyond each text's own.
    repeats : bool
        Admit, with masks on, an action that was done before in the very same situation.
    detours : bool
        Admit, with masks on, what the memory knows to be of no use.
    temperature, top_k, top_p
        See `constrained.decoding.Sampler`.
    seed : int
        Of sampling; each text has a generator of its own, drawn from the seed, the task and its number.
    max_subgoals : int or None
        Of a planner, where a strategy has one; None: as many as there are steps.
    trials : int
        Times that Reflexion plays a task, at most.
    explore_steps : int or None
        Of WESE's exploration; None: `max_steps`.
    retrieved : int or None
        Triples that WESE gives the exploiter at most: 10 in its question answering; None: no limit.
    trace : bool
        Keep with each answer its tokens, and what the model could not write (`constrained.agents.token_trace`).
    """

    strategy: str = "knowagent"
    step_format: str = "knowagent"
    constrained: bool = True
    max_steps: int = 50
    max_new_tokens: int | None = None
    repeats: bool = False
    detours: bool = False
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    max_subgoals: int | None = None
    trials: int = 3
    explore_steps: int | None = None
    retrieved: int | None = 10
    trace: bool = False


@dataclass
class Episode:
    """One task under way.

    Attributes
    ----------
    models : mapping of str to LoadedModel
        By role; "policy" writes where a role has none of its own.
    start : ActionKnowledge
        The knowledge at the beginning of a path.
    plan : Plan
    settings : Settings
    environment : Environment or None
        None: nothing is executed.
    on_step : callable, optional
        Called with each `Step` as it is done.
    knowledge : ActionKnowledge
        The place on the path, bound to what is in view.
    memory : Memory or None
    hints : str
        What a strategy found out, for prompts: reflections, say, or triples.
    phase : str
        Written to the steps; a strategy that begins anew names each beginning.
    over : bool
        The environment is done, a limit is reached, or the path is at its end.
    sift : callable or None
        What a strategy leaves, in this phase, of the actions that masks admit; where it leaves none, the phase is over.
        Default: those of use, where the memory can tell.
    judge : ActionKnowledge or None
        What gives the verdicts, from the beginning of a path, where that isn't the knowledge that masks and prompts are
        made of.
    judging : ActionKnowledge or None
        Its place on the path, bound to what is in view.
    """

    models: Mapping[str, LoadedModel]
    start: ActionKnowledge
    plan: Plan
    settings: Settings
    environment: Environment | None = None
    on_step: Callable[[Step], None] | None = None
    knowledge: ActionKnowledge = field(init=False)
    memory: Memory | None = None
    hints: str = ""
    phase: str = ""
    over: bool = False
    sift: Callable[[list[str]], list[str]] | None = None
    judge: ActionKnowledge | None = None
    judging: ActionKnowledge | None = field(init=False)
    tried: dict[str, set[str]] = field(default_factory=dict)
    _compiled: tuple[object, CompiledGrammar] | None = None

    def __post_init__(self):
        self.knowledge, self.judging = self.start, self.judge

    def loaded(self, role: str = POLICY) -> LoadedModel:
        """The model that writes for a role."""
        return for_role(role, self.models)

    @property
    def steps(self) -> list[Step]:
        """The steps of this phase."""
        return [s for s in self.plan.steps if s.phase == self.phase]

    @property
    def path(self) -> list[str]:
        """What was done in this phase, with effect."""
        return [s.action for s in self.steps if s.had_effect or s.had_effect is None]

    def begin(self, phase: str = "", knowledge: ActionKnowledge | None = None) -> str:
        """Start the environment, anew if need be, and return its first observation.

        Parameters
        ----------
        phase : str
            Its name, for a strategy with several.
        knowledge : ActionKnowledge, optional
            Of this phase; default: the whole.
        """
        self.phase, self.over, self.sift = phase, False, None
        self.tried = {}
        self.plan.success, self.plan.note, self.plan.outcome = False, "", {}
        observation = self.environment.reset()
        self.plan.first_observation = self.plan.first_observation or observation
        remember = getattr(self.environment, "memory", None)
        self.memory = remember(observation) if remember else None
        self._bind(knowledge or self.start, self.judge)
        return observation

    def _bind(self, knowledge: ActionKnowledge, judging: ActionKnowledge | None) -> None:
        """Take these places on the path, bound to what is in view, and to what is remembered."""
        view, remembered = getattr(self.environment, "view", None), getattr(self.memory, "slots", None)
        values = {**(view() if view else {}), **(remembered() if remembered else {})}
        self.knowledge = knowledge.bind_view(values)
        self.judging = judging and judging.bind_view(values)

    # -- writing ---------------------------------------------------------

    def ask(
        self,
        prompt: str,
        grammar: Grammar | CompiledGrammar | None,
        *,
        role: str = POLICY,
        max_new_tokens: int | None = None,
        begun: str = "",
        stop: str | None = "\n",
        free_tokens: int = FREE_TOKENS,
    ) -> Asking[Answer]:
        """Let a role's model write within `grammar`; what it likes, up to `stop`, where masks are off."""
        if not self.settings.constrained or grammar is None:
            tokens = min(max_new_tokens or free_tokens, free_tokens)
            return (yield Ask(prompt, None, role, tokens, begun, stop))
        if isinstance(grammar, Grammar):
            grammar = self.compile(grammar, role)
        return (yield Ask(prompt, grammar, role, max_new_tokens or STEP_TOKENS, begun))

    def compile(self, grammar: Grammar, role: str = POLICY) -> CompiledGrammar:
        """`grammar` for the vocabulary of a role's model."""
        return compile_grammar(grammar, self.loaded(role).vocabulary)

    def left(self) -> int | None:
        """Tokens that the plan may still take; None: no limit."""
        total = self.settings.max_new_tokens
        return None if total is None else total - sum(a.completion_tokens for a in self.plan.answers)

    def affords(self, grammar: Grammar | CompiledGrammar, role: str = POLICY, begun: str = "") -> bool:
        """Whether the plan's tokens are enough for a text of `grammar` that has `begun` so; if not, it is over."""
        left = self.left()
        if left is None:
            return True
        compiled = self.compile(grammar, role) if isinstance(grammar, Grammar) else grammar
        if left < 1 or not compiled.budget.fits(compiled.matcher(begun).state, left):
            self.end(f"stopped at the limit of {self.settings.max_new_tokens} tokens")
            return False
        return True

    def step(self, role: str = POLICY, action: Grammar | None = None) -> Asking[Step | None]:
        """Let a model write the next step, and do it.

        Parameters
        ----------
        role : str
        action : Grammar, optional
            What the action may be; default: `next_action`.

        Returns
        -------
        Step or None
            None if no step may be written; the episode is then over, and the plan's note says why.
        """
        action = action or self.next_action()
        if action is None:
            return None
        if not self.affords(self.step_grammar(action, role), role, self.head(role)):
            return None
        step = yield from self.write(action, self.left(), role)
        self.do(step)
        return step

    def next_action(self) -> Grammar | None:
        """The grammar of the actions that may come next; None where a limit or the path's end is reached."""
        if self.over:
            return None
        if len(self.steps) >= self.settings.max_steps:
            return self.end(f"stopped at the limit of {self.settings.max_steps} steps")
        try:
            action = self.knowledge.next_action()
        except KnowledgeError as error:  # the path is over, though the environment is not
            return self.end(error.message)
        done: set[str] = set()
        if self.memory is not None and not self.settings.repeats:
            # The world answers alike to the like: what was done before in this situation goes round in a circle.
            done = self.tried.get(self.memory.situation(), done)
        return self._left_of(action, done) or self.end("nothing is left that was not done")

    def _left_of(self, action: Grammar, done: set[str]) -> Grammar | None:
        """`action` sifted, and without what was done if that is not all; as it is, if it has too many texts to tell."""
        sift = self.sift or self._of_use()
        texts = action.automaton.start.texts(MAX_ACTIONS) if done or sift else None
        if texts is None:
            return action
        actions = [text.decode() for text in texts]
        sifted = sift(actions) if sift else actions
        left = [one for one in sifted if one not in done] or sifted
        if len(left) == len(actions):
            return action
        return Grammar.from_choices(left) if left else None

    def _of_use(self) -> Callable[[list[str]], list[str]] | None:
        """What leaves out the actions that the memory knows to be of no use; None where they are admitted."""
        return (
            getattr(self.memory, "filter_actions", None)
            if self.settings.constrained and not self.settings.detours
            else None
        )

    def write(self, action: Grammar, tokens: int | None = None, role: str = POLICY) -> Asking[Step]:
        """One step in the step format, its action within `action` if masks are on; nothing is done yet."""
        n = len(self.steps) + 1
        head = self.head(role)
        grammar = self.step_grammar(action, role)
        answer = yield from self.ask(
            self.prompt(role) + head,
            grammar,
            role=role, max_new_tokens=tokens, begun=head, stop="\nObservation",
            free_tokens=FREE_REASONING if self.settings.step_format == "cot" else FREE_TOKENS,
        )  # fmt: skip
        if self.settings.constrained:
            text = parse_step(grammar.grammar, head + answer.text)
        else:
            text = read_step(self.settings.step_format, n, answer.text)
        return self.judged(text.thought, text.action, answer)

    def judged(self, thought: str, action: str, *answers: Answer, subgoal: str = "") -> Step:
        """The next step, written in `answers`, with the knowledge's verdict on its action."""
        judgement = (self.judging or self.knowledge).judge(action)
        n = len(self.steps) + 1
        step = Step(n, thought, action, judgement.verdict, judgement.reason, subgoal=subgoal, phase=self.phase)
        for answer in answers:
            step.add_cost(answer)
        return step

    def prompt(self, role: str = POLICY) -> str:
        """What a model reads before the next step."""
        return build_prompt(
            self.loaded(role),
            self.knowledge.to_text(),
            self.plan.task,
            self.settings.step_format,
            self.memory.text() if self.memory is not None else "",
            self.steps,
            self.hints,
        )

    def head(self, role: str = POLICY) -> str:
        """The step's known text (its path, say), which the prompt ends with.

        Other models cut a space and the word after it as one token, so the last space is left to
        the grammar; the embedded model learned to go on after it.
        """
        head = step_prompt("", self.settings.step_format, len(self.steps) + 1, self.path).removeprefix("\n")
        return head if self.loaded(role).is_embedded else head.rstrip(" ")

    def step_grammar(self, action: Grammar, role: str = POLICY) -> CompiledGrammar:
        """The next step with `action` in it, compiled once for all that is asked of it."""
        key = (self.phase, len(self.plan.steps), action, self.loaded(role).vocabulary)
        if self._compiled is None or self._compiled[0] != key:
            grammar = step_grammar(self.settings.step_format, len(self.steps) + 1, self.path, action)
            self._compiled = key, self.compile(grammar, role)
        return self._compiled[1]

    def fits(self, action: Grammar, tokens: int, role: str = POLICY) -> bool:
        """Whether a step with `action` can be written whole in so many tokens."""
        compiled = self.step_grammar(action, role)
        return compiled.budget.fits(compiled.matcher(self.head(role)).state, tokens)

    # -- doing -----------------------------------------------------------

    def do(self, step: Step, *, as_planned: bool = False) -> None:
        """Do a step's action, remember it, and bind what is in view after it.

        The path goes on from an action that had an effect; `as_planned`, from one that had none, too.
        """
        environment = self.environment
        step.observation, reward, done = environment.step(step.action)
        step.had_effect = getattr(environment, "had_effect", True)
        if step.had_effect or as_planned:
            self.knowledge = _after(self.knowledge, step.action)
            self.judging = self.judging and _after(self.judging, step.action)
        if self.memory is not None:
            self.tried.setdefault(self.memory.situation(), set()).add(step.action)
            self.memory.update(step.action, step.observation)
        self.add(step)
        outcome = getattr(environment, "outcome", None)
        self.plan.outcome = outcome() if outcome else {"success": float(done and reward > 0)}
        self.plan.success = self.plan.outcome["success"] == 1.0
        if done:
            self.over = True
        else:
            self._bind(self.knowledge, self.judging)

    def add(self, step: Step) -> None:
        """Put a step into the plan."""
        if self.settings.step_format == "knowagent":
            step.path = action_path(self.path)
        self.plan.steps.append(step)
        if self.on_step:
            self.on_step(step)

    def end(self, note: str) -> None:
        """Nothing more is done in this phase, and why."""
        self.over, self.plan.note = True, note


def _after(knowledge: ActionKnowledge, action: str) -> ActionKnowledge:
    """The knowledge after an action; where it was, if it doesn't admit it."""
    return knowledge.after(action) if knowledge.judge(action) else knowledge
