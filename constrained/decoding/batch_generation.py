"""Many prompts at once, each with a grammar, limits and source of chance of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from constrained.automaton import CompiledGrammar
from constrained.decoding.generation import begin, generation_of, threads_for
from constrained.decoding.loop import PrefixReader, Text, write
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.ragged_cache import BLOCK
from constrained.decoding.ragged_reader import RaggedReader, reads_ragged
from constrained.decoding.record import Generation
from constrained.decoding.sampling import Choice, Sampler
from constrained.errors import ConstrainedError
from constrained.grammar import Grammar

if TYPE_CHECKING:  # models are to the right of decoding: only the name is needed here
    from constrained.models.load import LoadedModel

ROWS = 32
"""Texts read side by side."""


@dataclass(frozen=True, eq=False)
class Request:
    """One text to be written; the fields are those of `generate`, but for `show_forbidden`.

    Attributes
    ----------
    prompt : str or sequence of int
    grammar : Grammar or CompiledGrammar, optional
    max_new_tokens : int
    stop : str, optional
        Without a grammar only.
    begun : str
    generator : torch.Generator, optional
        Source of chance, this text's alone: what is drawn then doesn't depend on who is in the batch.
    show_forbidden : bool
        Keep with each token the likeliest one that its mask excluded.
    """

    prompt: str | Sequence[int]
    grammar: Grammar | CompiledGrammar | None = None
    max_new_tokens: int = 256
    stop: str | None = None
    begun: str = ""
    generator: torch.Generator | None = None
    show_forbidden: bool = False


def generate_batch(
    loaded: LoadedModel,
    requests: Sequence[Request],
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_forced: int = 1,
    rows: int = ROWS,
    cache: PrefixCache | None = None,
) -> list[Generation]:
    """Write all texts, side by side where the model can.

    Parameters
    ----------
    loaded : LoadedModel
    requests : sequence of Request
    temperature, top_k, top_p, min_forced
        As for `generate`, for all texts.
    rows : int
        At most so many at a time.
    cache : PrefixCache, optional
        Keys and values of the last text that was read by itself; rows read side by side have none, as steps of an
        agent share too little of their prompts for it to pay.

    Returns
    -------
    list of Generation
        In the order of `requests`; each is what `generate` makes of it alone, up to rounding: a batch's matrices are
        multiplied in another order, so that the last digits of probabilities differ.

    Raises
    ------
    ConstrainedError
        As `generate`, before anything is written; or two requests share a generator.
    """
    if rows < 1:
        raise ConstrainedError(f"rows is {rows}", "use 1 or more")
    generators = [request.generator for request in requests if request.generator is not None]
    if len(set(map(id, generators))) < len(generators):
        raise ConstrainedError(
            "requests of a batch share a generator: what is drawn would depend on their order",
            "give each its own: torch.Generator().manual_seed(…)",
        )
    texts = [
        begin(
            loaded, r.prompt, r.grammar, max_new_tokens=r.max_new_tokens, stop=r.stop, min_forced=min_forced,
            begun=r.begun,
        )
        for r in requests
    ]  # fmt: skip
    samplers = {t: Sampler(temperature, top_k, top_p, r.generator, r.show_forbidden) for t, r in zip(texts, requests)}

    def choose(asked: Sequence[Text], logits: torch.Tensor, _: np.ndarray | None) -> list[Choice]:
        return [samplers[text].choose(row, text.row) for text, row in zip(asked, logits)]

    side_by_side = rows if reads_ragged(loaded.model) else 1
    cache = PrefixCache() if cache is None else cache
    with threads_for(loaded), torch.no_grad():
        for first in range(0, len(texts), side_by_side):
            some = texts[first : first + side_by_side]
            if len(some) == 1:
                reader = PrefixReader(loaded.model, cache)
            else:
                reader = RaggedReader(loaded.model, some, max(len(text.ids) for text in some) + BLOCK)
            write(some, reader, choose)
    return [generation_of(text) for text in texts]
