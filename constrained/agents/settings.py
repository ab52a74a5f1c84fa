"""How an episode is played: the strategy, the level of its masks, limits and sampling."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.agents.levels import STATE


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
