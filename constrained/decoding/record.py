"""What a generation leaves behind: its text, its tokens, and what the model had wanted instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Forbidden(NamedTuple):
    """The likeliest token that a mask excluded.

    Attributes
    ----------
    id : int
    probability : float
        By the model's whole distribution, before temperature, top-k and top-p.
    """

    id: int
    probability: float


class Token(NamedTuple):
    """One generated token.

    Attributes
    ----------
    id : int
    probability : float
        Among the allowed tokens, before temperature, top-k and top-p; 1 where forced.
    pruned_mass : float
        Probability the model put on tokens outside the mask; 0 where forced (it was not asked).
    forced : bool
        True if the grammar left no choice.
    forbidden : Forbidden or None
        What the model would rather, or next, have written outside the mask; None where it was not asked for.
    """

    id: int
    probability: float
    pruned_mass: float
    forced: bool
    forbidden: Forbidden | None = None


class PrunedMass(NamedTuple):
    """Probability the model put outside the masks, over the steps where it was asked."""

    mean: float
    max: float
    sum: float


@dataclass(frozen=True)
class Generation:
    """One generated text.

    Attributes
    ----------
    text : str
    tokens : tuple of Token
        Without the end-of-text token.
    prompt_tokens, completion_tokens, forward_passes : int
        What it cost; the first pass is the one over the prompt. In a batch, where texts share their passes, those
        that this one asked for, which are as many as it takes alone.
    pruned_mass : PrunedMass
        The end-of-text step counts too. Without a grammar, what the logits' padding columns hold.
    complete : bool
        True if the text ended by itself: always with a grammar; without one, by an end-of-text token or the stop
        string rather than at the limit.
    end : Token or None
        The end-of-text token, where the model was asked and chose one.
    """

    text: str
    tokens: tuple[Token, ...]
    prompt_tokens: int
    forward_passes: int
    pruned_mass: PrunedMass
    complete: bool
    end: Token | None = None

    @property
    def token_ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def completion_tokens(self) -> int:
        return len(self.tokens)
