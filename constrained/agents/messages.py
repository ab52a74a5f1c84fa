"""What a strategy asks of a model, and what it is answered.

A strategy never calls a model. It is a generator that yields an `Ask` and is sent the `Answer`;
whoever drives it may answer many strategies in one batch, or answer from the record of a run
that was broken off.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # torch takes seconds to import: only who writes pays for it
    from constrained.automaton import CompiledGrammar
    from constrained.decoding import Generation

POLICY = "policy"
"""The role whose model writes where no other is named."""

ROLES = ("planner", "grounder", "answerer", "explorer", "extractor", "reflector")
"""Roles that may have a model of their own."""

SERVES = {"extractor": "explorer"}
"""Role -> the one whose model it has where it has none of its own, before the policy's: WESE's weak model does both."""


@dataclass(frozen=True)
class Ask:
    """A text that a strategy wants written.

    Attributes
    ----------
    prompt : str
    grammar : CompiledGrammar or None
        What may be written; None: anything.
    role : str
        Whose model writes: `POLICY`, or one of `ROLES`.
    max_new_tokens : int
    begun : str
        Text of the grammar that the prompt ends with already.
    stop : str or None
        Without a grammar: what ends the text.
    """

    prompt: str
    grammar: CompiledGrammar | None
    role: str = POLICY
    max_new_tokens: int = 1024
    begun: str = ""
    stop: str | None = None


@dataclass(frozen=True)
class Answer:
    """What a model wrote, and what that cost.

    Attributes
    ----------
    text : str
    role, model : str
    prompt_tokens, completion_tokens, forced_tokens, forward_passes : int
    pruned_mass, max_pruned_mass : float
        Mean and most of the probability outside the mask, over the tokens the model was asked for; 0 without masks.
    seconds : float
        In a batch, an equal share of its time.
    trace : dict or None
        Token by token (`constrained.agents.token_trace.trace_of`), if that was asked for.
    """

    text: str
    role: str = POLICY
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0
    pruned_mass: float = 0.0
    max_pruned_mass: float = 0.0
    seconds: float = 0.0
    trace: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, written: Generation, ask: Ask, model: str, seconds: float, trace: dict[str, Any] | None = None
    ) -> Answer:
        """The answer to `ask` that a model's generation is."""
        mass = written.pruned_mass if ask.grammar is not None else None
        return cls(
            written.text,
            ask.role,
            model,
            written.prompt_tokens,
            written.completion_tokens,
            sum(token.forced for token in written.tokens),
            written.forward_passes,
            mass.mean if mass else 0.0,
            mass.max if mass else 0.0,
            seconds,
            trace,
        )


Given = TypeVar("Given")


def for_role(role: str, given: Mapping[str, Given]) -> Given:
    """What serves a role, of what is given by role: models, or their prices."""
    for name in (role, SERVES.get(role), POLICY):
        if name in given:
            return given[name]
    raise KeyError(role)


Result = TypeVar("Result")
Asking = Generator[Ask, Answer, Result]
"""The type of a generator that asks, and returns a result."""

Strategy = Generator[Ask, Answer, Any]
