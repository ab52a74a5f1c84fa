"""What a plan is: its steps, what came of them, and what they cost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass
class Step:
    """One step of a plan.

    Attributes
    ----------
    n : int
        From 1.
    thought, action : str
    verdict : str
        "ok", "invalid" or "misordered", by the action knowledge at that moment.
    reason : str
        Why, where not ok.
    observation : str or None
        The environment's answer; None in an open-loop plan.
    had_effect : bool or None
        Whether the action did anything there.
    pruned_mass : float
        Mean probability that the model put outside the mask where it was asked, 0..1;
        0 without masks.
    max_pruned_mass : float
        The most at one token.
    prompt_tokens, completion_tokens, forced_tokens, forward_passes : int
    seconds : float
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
        Whether the environment's goal was reached; None where nothing was executed.
    open_loop : bool
        Nothing was executed.
    note : str
        What a reader must know: why the plan is open-loop, or why it stopped.
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

    @property
    def path(self) -> list[str]:
        """The actions that count: those with an effect, or all of an open-loop plan."""
        return [s.action for s in self.steps if s.had_effect or s.had_effect is None]

    @property
    def pruned_mass(self) -> list[float]:
        """Mean pruned mass of each step."""
        return [s.pruned_mass for s in self.steps]

    @property
    def invalid(self) -> int:
        """Actions that don't exist, or whose arguments aren't there."""
        return sum(s.verdict == "invalid" for s in self.steps)

    @property
    def misordered(self) -> int:
        """Actions that the rules don't admit where they came."""
        return sum(s.verdict == "misordered" for s in self.steps)

    @property
    def usage(self) -> dict[str, float]:
        """Tokens read, written and forced; forward passes; seconds."""
        keys = ("prompt_tokens", "completion_tokens", "forced_tokens", "forward_passes", "seconds")
        return {key: sum(getattr(s, key) for s in self.steps) for key in keys}

    @property
    def trajectory(self) -> str:
        """The run as text: thoughts, actions and observations, in order."""
        lines = [self.first_observation] if self.first_observation else [f"Task: {self.task}"]
        for s in self.steps:
            if s.thought:
                lines.append(f"Thought {s.n}: {s.thought}")
            lines.append(f"Action {s.n}: {s.action}")
            if s.observation is not None:
                lines.append(f"Observation {s.n}: {s.observation}")
        return "\n".join(lines)

    def to_dict(self) -> dict:
        """Plain data: every field, and the derived figures."""
        return {
            **asdict(self),
            "path": self.path,
            "usage": self.usage,
            "pruned_mass": self.pruned_mass,
            "invalid": self.invalid,
            "misordered": self.misordered,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        outcome = {True: "solved", False: "not solved", None: "not executed"}[self.success]
        return f"Plan({self.task!r}: {outcome}, {len(self.steps)} steps)"
