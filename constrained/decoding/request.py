"""Requests and generations: a text to be written, and the text that was written. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from constrained.arguments import TEXT, WHOLE, check

if TYPE_CHECKING:  # torch takes seconds to import; strategies make requests without it
    import torch

    from constrained.automaton import CompiledGrammar, Grammar


Message: TypeAlias = "Mapping[str, str]"
"""A turn of a conversation: its "role" and "content"."""


@dataclass(frozen=True, eq=False)
class Request:
    """A text to be written.

    Attributes
    ----------
    prompt : str or sequence of int
        Text (the tokenizer adds its beginning-of-text token), or ids to be used as they are.
    grammar : Grammar or CompiledGrammar, optional
        Every token keeps the text inside it, and the text ends whole within `max_new_tokens`. None: free text.
    max_new_tokens : int
        Most tokens to generate, the end-of-text token not counted; less if the model's context leaves less. None: 256.
    stop : str or sequence of str, optional
        Without a grammar: end before the first occurrence of this text, or of one of these.
    begun : str
        Beginning of the grammar's text that the prompt ends with; generation continues after it.
    generator : torch.Generator, optional
        Random numbers for this text alone, so that its samples don't depend on the rest of the batch.
    show_forbidden : bool
        Keep with each token the likeliest one that its mask excluded.
    role : str
        The role whose model writes, where roles have their own models; decoding only copies it to the generation.
    on_text : callable, optional
        Called with each piece of text as it is written; the pieces join to the text. If it returns False, the text
        ends there, and is not complete.
    messages : sequence of Message
        The prompt for a model behind a server (`constrained.models.RemoteModel`), whose `grammar` isn't compiled.
    """

    prompt: str | Sequence[int]
    grammar: Grammar | CompiledGrammar | None = None
    max_new_tokens: int = 256
    stop: str | Sequence[str] | None = None
    begun: str = ""
    generator: torch.Generator | None = None
    show_forbidden: bool = False
    role: str = "policy"
    on_text: Callable[[str], bool | None] | None = None
    messages: Sequence[Message] = ()

    def __post_init__(self):
        for name, kind in (("max_new_tokens", WHOLE), ("begun", TEXT), ("role", TEXT)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(Request, name))
            check(name, getattr(self, name), kind)

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts of `stop`."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


class Forbidden(NamedTuple):
    """The likeliest token that a mask excluded."""

    id: int
    probability: float  # in the model's whole distribution, before temperature, top-k and top-p


class Token(NamedTuple):
    """One generated token.

    Attributes
    ----------
    id : int
    probability : float
        Among the allowed tokens, before temperature, top-k and top-p; 1 where forced.
    pruned_mass : float
        Probability the model put on tokens outside the mask; 0 where forced, as the model wasn't asked.
    forced : bool
        True if the grammar left no choice.
    forbidden : Forbidden or None
        The likeliest token outside the mask, if `Request.show_forbidden` asked for it.
    """

    id: int
    probability: float = 1.0
    pruned_mass: float = 0.0
    forced: bool = False
    forbidden: Forbidden | None = None


class PrunedMass(NamedTuple):
    """Probability the model put outside the masks, over the tokens it was asked for."""

    mean: float = 0.0
    max: float = 0.0
    sum: float = 0.0

    @classmethod
    def of(cls, masses: Sequence[float]) -> PrunedMass:
        """Summarize the masses of some tokens."""
        return cls(sum(masses) / len(masses), max(masses), sum(masses)) if masses else cls()


@dataclass(frozen=True)
class Generation:
    """A text that was written, and what it cost.

    Attributes
    ----------
    text : str
    role : str
        The request's.
    model : str
        Name of the model that wrote it.
    prompt_tokens, completion_tokens, forced_tokens : int
        The end-of-text token isn't counted.
    forward_passes : int
        The first is the one over the prompt. In a batch, where texts share their passes: as many as it takes alone.
    pruned_mass : PrunedMass
        Includes the choice of the end-of-text token; zeros without a grammar.
    seconds : float
        In a batch, an equal share of its time.
    complete : bool
        True if the text ended by itself: always with a grammar; without one, by an end-of-text token or the stop
        string rather than at the limit.
    tokens : tuple of Token
        Without the end-of-text token.
    end : Token or None
        The end-of-text token, if the model was asked and chose one.
    replaced : str
        The answer of a server's model that was not admitted and was replaced by `text`.
    trace : dict or None
        The token trace that agents record; decoding leaves it empty.
    """

    text: str
    role: str = "policy"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0
    pruned_mass: PrunedMass = field(default_factory=PrunedMass)
    seconds: float = field(default=0.0, compare=False)
    complete: bool = True
    tokens: tuple[Token, ...] = ()
    end: Token | None = None
    replaced: str = ""
    trace: dict[str, Any] | None = None

    @property
    def token_ids(self) -> list[int]:
        return [token.id for token in self.tokens]
