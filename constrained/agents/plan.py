"""Plans: the steps of an episode, its outcome and its cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from constrained import html
from constrained.decoding.request import Generation
from constrained.knowledge.commands import on_one_line

COSTS = ("prompt_tokens", "completion_tokens", "forced_tokens", "forward_passes", "seconds")


@dataclass
class Step:
    """One step of a plan.

    Attributes
    ----------
    n : int
        Number of the step in its phase, from 1.
    thought, action : str
    verdict : str
        "ok", "invalid" or "misordered", by the action knowledge at that moment.
    reason : str
        The reason for a verdict other than "ok".
    observation : str or None
        The environment's answer; None in an open-loop plan.
    had_effect : bool or None
        Whether the environment could do the action.
    reward : float
        The environment's reward for the action; 0 in an open-loop plan.
    replaced : str
        The text that a server's model wrote, if it was not admitted and the nearest admitted action was taken.
    pruned_mass : float
        Mean probability that the model put outside the mask, over the tokens that were not forced; 0 without masks.
    max_pruned_mass : float
        The largest such probability at one token.
    prompt_tokens, completion_tokens, forced_tokens, forward_passes : int
    seconds : float
    path : str
        The ActionPath as written, if the step format has one.
    true_path : str
        The path as it was, where the model wrote `path` itself (masks off); else empty.
    subgoal : str
        The planner's subgoal that this step serves, with its number; all subgoals if they were written at once.
    phase : str
        Name of the phase; only strategies that start the environment several times name phases.
    prompt : str
        All that the model read before it wrote the step; not in records. Empty for a chooser.
    """

    n: int
    thought: str
    action: str
    verdict: str
    reason: str = ""
    observation: str | None = None
    had_effect: bool | None = None
    pruned_mass: float = 0.0
    max_pruned_mass: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0
    seconds: float = 0.0
    path: str = ""
    true_path: str = ""
    reward: float = 0.0
    subgoal: str = ""
    phase: str = ""
    replaced: str = ""
    prompt: str = field(default="", repr=False, compare=False)

    def to_dict(self) -> dict:
        """The step as plain data: all fields but the prompt, which would be most of a record."""
        return {name: value for name, value in vars(self).items() if name != "prompt"}

    def add_cost(self, answer: Generation) -> None:
        """Add the cost of `answer`; pruned mass is averaged over the tokens that were not forced."""
        asked = self.completion_tokens - self.forced_tokens
        more = answer.completion_tokens - answer.forced_tokens
        if asked + more:
            self.pruned_mass = (self.pruned_mass * asked + answer.pruned_mass.mean * more) / (asked + more)
        self.replaced = self.replaced or answer.replaced
        self.max_pruned_mass = max(self.max_pruned_mass, answer.pruned_mass.max)
        for key in COSTS:
            setattr(self, key, getattr(self, key) + getattr(answer, key))


@dataclass
class Plan:
    """The result of :func:`~constrained.agents.generate.generate_plan`.

    Attributes
    ----------
    task, knowledge, strategy, model : str
    constrained : bool
        Whether the masks were on.
    seed : int
    steps : list of Step
    success : bool or None
        Whether the environment's goal was reached; None if nothing was executed, or if there was no goal.
    open_loop : bool
        Whether nothing was executed.
    note : str
        Why the plan is open-loop, or why it stopped.
    outcome : dict of str to float
        The environment's measures, including "success".
    answers : list of Generation
        All texts that models wrote for the plan, in order.
    level : str
        The level of the masks, if they were on.
    """

    task: str
    knowledge: str
    strategy: str
    model: str
    constrained: bool
    seed: int
    steps: list[Step] = field(default_factory=list)
    success: bool | None = None
    open_loop: bool = False
    note: str = ""
    first_observation: str = ""
    outcome: dict[str, float] = field(default_factory=dict)
    answers: list[Generation] = field(default_factory=list)
    level: str = "state"

    @property
    def last_phase(self) -> list[Step]:
        """The steps of the last phase: all, unless the strategy started the environment several times."""
        return [s for s in self.steps if s.phase == self.steps[-1].phase]

    @property
    def path(self) -> list[str]:
        """The actions of the last phase that had an effect; all of an open-loop plan."""
        return [s.action for s in self.last_phase if s.had_effect or s.had_effect is None]

    @property
    def pruned_mass(self) -> list[float]:
        """Mean pruned mass of each step."""
        return [s.pruned_mass for s in self.steps]

    @property
    def invalid(self) -> int:
        """Number of actions that don't exist, or whose arguments aren't there."""
        return sum(s.verdict == "invalid" for s in self.steps)

    @property
    def misordered(self) -> int:
        """Number of actions that the rules don't admit at their position on the path."""
        return sum(s.verdict == "misordered" for s in self.steps)

    @property
    def wrong_paths(self) -> int:
        """Number of steps whose ActionPath, written by the model itself, isn't what was done."""
        return sum(s.path != s.true_path for s in self.steps if s.true_path)

    @property
    def usage(self) -> dict[str, float]:
        """Tokens read, written and forced; forward passes; seconds."""
        return _total(self.answers)

    @property
    def usage_by_role(self) -> dict[str, dict[str, float]]:
        """The same by role, because models have different prices."""
        roles = dict.fromkeys(answer.role for answer in self.answers)
        return {role: _total(a for a in self.answers if a.role == role) for role in roles}

    @property
    def trajectory(self) -> str:
        """The run as text: subgoals, thoughts, actions and observations, in order."""
        lines = [self.first_observation] if self.first_observation else [f"Task: {self.task}"]
        phase = subgoal = ""
        for s in self.steps:
            if s.phase != phase:
                phase = s.phase
                lines.append(f"[{phase}]")
            if s.subgoal != subgoal:  # a subgoal may take several steps
                subgoal = s.subgoal
                lines.append(subgoal)
            lines += step_lines(s)
        return "\n".join(lines)

    def to_dict(self) -> dict:
        """The plan as plain data: all fields except the answers, and the derived figures."""
        fields = {name: value for name, value in vars(self).items() if name != "answers"}
        fields["steps"] = [step.to_dict() for step in self.steps]
        return {
            **fields,
            "path": self.path,
            "usage": self.usage,
            "usage_by_role": self.usage_by_role,
            "pruned_mass": self.pruned_mass,
            "invalid": self.invalid,
            "misordered": self.misordered,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @property
    def came_to(self) -> str:
        """The outcome in words."""
        unknown = "not executed" if self.open_loop else "not judged"
        return {True: "solved", False: "not solved", None: unknown}[self.success]

    def __str__(self) -> str:
        return f"Plan({self.task!r}: {self.came_to}, {len(self.steps)} steps)"

    def _repr_html_(self) -> str:
        """Show the task, the outcome, and each step with verdict, observation and pruned mass."""
        usage = self.usage
        measures = [f"{name} {value:g}" for name, value in self.outcome.items() if name != "success"]
        steps = f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"
        outcome = f"{self.came_to}: {self.invalid} invalid, {self.misordered} misordered actions"
        model = f"model {self.model}" if self.model else ""
        masks = "masks on" if self.constrained else "masks off"
        settings = [self.strategy, model, f"knowledge {self.knowledge}", masks, f"seed {self.seed}"]
        facts = [
            f"<strong>{html.escaped(self.task)}</strong>",
            "; ".join([f"{steps}, {outcome}", *map(html.escaped, measures)]),
            html.faint(html.escaped(", ".join(filter(None, settings)))),
            f"Note: {html.escaped(self.note)}" if self.note else "",
        ]
        cost = (
            f"{usage['completion_tokens']:,.0f} tokens written, {usage['forced_tokens']:,.0f} of them forced; "
            f"{usage['prompt_tokens']:,.0f} read; {usage['seconds']:.1f} s"
        )
        # Columns that would be empty in every row are left out.
        columns: dict[str, Callable[[Step], str | int]] = {"step": lambda step: step.n}
        if any(step.thought for step in self.steps):
            columns["thought"] = lambda step: html.escaped(step.thought)
        columns["action"] = lambda step: html.code(step.action)
        columns["verdict"] = lambda step: html.badge(step.verdict, step.reason)
        if any(step.observation is not None for step in self.steps):
            columns["observation"] = lambda step: html.escaped(step.observation or "")
        if self.constrained:
            columns["pruned mass"] = lambda step: html.Figure(f"{step.pruned_mass:.1%}")
        rows = [[cell(step) for cell in columns.values()] for step in self.steps]
        table = html.table(list(columns), rows, _headings(self.steps))
        return html.output(
            *map(html.paragraph, facts), table, html.paragraph(html.faint(cost)) if usage["forward_passes"] else ""
        )

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(str(self))


def _headings(steps: Sequence[Step]) -> dict[int, str]:
    """The headings of a table of steps: row -> the phase and subgoal that begin there."""
    headings: dict[int, str] = {}
    phase = subgoal = ""
    for row, step in enumerate(steps):
        new = [step.phase] if step.phase != phase else []
        new += [step.subgoal] if step.subgoal != subgoal else []
        phase, subgoal = step.phase, step.subgoal
        if any(new):
            headings[row] = ": ".join(filter(None, new))
    return headings


def step_lines(step: Step) -> list[str]:
    """A step's lines, as prompts and trajectories show them."""
    lines = [f"Thought {step.n}: {step.thought}"] if step.thought else []
    lines.append(f"Action {step.n}: {on_one_line(step.action)}")  # a line of it could be taken for another step
    if step.observation is not None:
        lines.append(f"Observation {step.n}: {step.observation}")
    return lines


def _total(answers: Iterable[Generation]) -> dict[str, float]:
    answers = list(answers)
    return {key: sum(getattr(a, key) for a in answers) for key in COSTS}
