"""The settings of an episode."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.agents.levels import STATE


@dataclass(frozen=True)
class Settings:
    """How an episode is played: strategy, masks, limits and sampling.

    Attributes
    ----------
    strategy : str
        One of `constrained.agents.strategies.STRATEGIES`.
    step_format : str
        The form of one step: "act", "react", "knowagent", "cot" or "fireact".
    constrained : bool
        Whether the masks are on.
    level : str
        The level of the masks, one of `LEVELS`.
    max_steps : int
        Limit on the steps of each phase.
    max_new_tokens : int or None
        Limit on the tokens of the whole plan; None: only each text has a limit.
    temperature, top_k, top_p
        See `constrained.decoding.Sampler`.
    seed : int
        For sampling; each text has its own generator, seeded with this, the task and the text's number.
    max_subgoals : int or None
        Limit on a planner's subgoals; None: as many as there are steps.
    trials : int
        How often Reflexion plays a task, at most.
    explore_steps : int or None
        Limit on the steps of WESE's exploration; None: `max_steps`.
    explore_stop : bool
        Whether WESE's explorer may end its exploration before that limit.
    retrieved : int or None
        Most triples that WESE shows in its second phase: 10 in the paper's question answering; None: no limit.
    hops : int
        WESE retrieves the triples on paths of so many relations from what the task is about: 1 in the paper.
    supporting : bool
        Whether chain of thought is shown the sentences that a question's answer rests on (WESE, section 4.2).
    demonstrations : int or None
        Most worked examples in a prompt; None: as many as the step format is the better for.
    knowledge_in_prompt : bool
        Whether prompts tell the action knowledge; without it only its overview (KnowAgent, figure 3).
    trace : bool
        Record the tokens of each text, and those that its masks excluded (`constrained.agents.token_trace`).
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
    explore_stop: bool = False
    retrieved: int | None = 10
    hops: int = 1
    supporting: bool = False
    demonstrations: int | None = None
    knowledge_in_prompt: bool = True
    trace: bool = False
