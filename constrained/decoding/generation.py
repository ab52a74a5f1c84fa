"""A prompt and a grammar in, a whole text of the grammar out, with what it cost and what the model had wanted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from constrained.automaton import CompiledGrammar, compile_grammar
from constrained.decoding.loop import FreeText, GuidedText, PrefixReader, Text, write
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.record import Generation, PrunedMass
from constrained.decoding.sampling import Sampler
from constrained.errors import ConstrainedError, ModelError
from constrained.grammar import Grammar

if TYPE_CHECKING:  # models are to the right of decoding: only the name is needed here
    from constrained.models.load import LoadedModel

SMALL_MODEL = 30_000_000
"""Weights up to which a model on the CPU writes with one thread."""


def generate(
    loaded: LoadedModel,
    prompt: str | Sequence[int],
    grammar: Grammar | CompiledGrammar | None = None,
    *,
    max_new_tokens: int = 256,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    stop: str | None = None,
    cache: PrefixCache | None = None,
    min_forced: int = 1,
    begun: str = "",
) -> Generation:
    """Continue a prompt, within a grammar if one is given.

    Parameters
    ----------
    loaded : LoadedModel
    prompt : str or sequence of int
        Text (the tokenizer adds its beginning-of-text token), or ids to be used as they are.
    grammar : Grammar or CompiledGrammar, optional
        Every token keeps the text inside it, and the text ends whole within `max_new_tokens`.
    max_new_tokens : int
        Most tokens to generate, the end-of-text token not counted; less if the model's context leaves less.
    temperature, top_k, top_p, generator
        See `Sampler`; greedy by default. Equal seeds give equal texts.
    stop : str, optional
        Without a grammar: end before the first occurrence of this text.
    cache : PrefixCache, optional
        Keys and values of the last call, to reuse what the prompts share.
    min_forced : int
        Runs of fewer forced bytes are left to the model, under the mask.
    begun : str
        Text of the grammar that the prompt ends with; generation goes on after it.

    Returns
    -------
    Generation

    Raises
    ------
    ConstrainedError
        If a number is out of range, the prompt doesn't fit in the model's context, or the shortest text of the
        grammar doesn't fit in the tokens allowed.
    """
    text = begin(loaded, prompt, grammar, max_new_tokens=max_new_tokens, stop=stop, min_forced=min_forced, begun=begun)
    sampler = Sampler(temperature, top_k, top_p, generator)
    reader = PrefixReader(loaded.model, PrefixCache() if cache is None else cache)
    with threads_for(loaded):
        write([text], reader, lambda _, logits, __: [sampler.choose(logits[0], text.row)])
    return generation_of(text)


def begin(
    loaded: LoadedModel,
    prompt: str | Sequence[int],
    grammar: Grammar | CompiledGrammar | None,
    *,
    max_new_tokens: int,
    stop: str | None,
    min_forced: int,
    begun: str,
) -> Text:
    """The text that `generate` goes on with; for the parameters and what is raised see there."""
    if stop is not None and (grammar is not None or not stop):
        raise ConstrainedError("stop is for text without a grammar, and not empty", "let the grammar end the text")
    ids = prompt_ids(loaded, prompt)
    room = _room(loaded, len(ids), max_new_tokens)
    if grammar is None:
        return FreeText(loaded.vocabulary, ids, room, stop.encode() if stop else b"")
    matcher = _compiled(loaded, grammar).matcher(begun)
    matcher.set_budget(room)
    return GuidedText(matcher, ids, loaded.tokenizer, min_forced)


@contextmanager
def threads_for(loaded: LoadedModel):
    """One thread for a small model on the CPU, as long as it writes.

    Its matrices are too small to gain from more, and on a machine where other work holds a core every operation
    waits for the thread that isn't scheduled: 260,000 weights wrote 60 tokens a second with two threads beside two
    busy processes, 1,140 with one (torch 2.13, two cores); on an idle machine 1,170 and 1,140.
    """
    threads = torch.get_num_threads()
    if loaded.device.type != "cpu" or threads == 1 or loaded.parameters > SMALL_MODEL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def generation_of(text: Text) -> Generation:
    """What was written, once it is done."""
    masses = text.masses
    mean = sum(masses) / len(masses) if masses else 0.0
    return Generation(
        text=text.data[text.begin : text.cut].decode("utf-8", "replace"),
        tokens=tuple(text.tokens),
        prompt_tokens=text.prompt_tokens,
        forward_passes=len(masses),
        pruned_mass=PrunedMass(mean, max(masses, default=0.0), sum(masses)),
        complete=text.complete,
        end=text.end,
    )


def prompt_ids(loaded: LoadedModel, prompt: str | Sequence[int]) -> list[int]:
    """Ids of the prompt, at least one, none of which the model doesn't know."""
    tokenizer = loaded.tokenizer
    if isinstance(prompt, str):
        ids = list(tokenizer.encode(prompt))
        # Some tokenizers close every text with an end-of-text token; nothing would follow it.
        if ids and ids[-1] in loaded.eos_token_ids and not prompt.endswith(tokenizer.convert_ids_to_tokens(ids[-1])):
            ids.pop()
    else:
        ids = [int(token) for token in prompt]
    if not ids:  # a model needs something to read: what stands at the beginning of every text
        first = getattr(tokenizer, "bos_token_id", None)
        ids = [loaded.eos_token_ids[0] if first is None else first]
    unknown = [token for token in ids if not 0 <= token < loaded.logits_width]
    if unknown:
        raise ModelError(
            f"the prompt holds token {unknown[0]}, but {loaded.name} knows only 0 to {loaded.logits_width - 1}",
            "use the tokenizer that belongs to the model",
        )
    return ids


def _room(loaded: LoadedModel, prompt_tokens: int, max_new_tokens: int) -> int:
    """Tokens that may be generated."""
    if max_new_tokens < 1:
        raise ConstrainedError(f"max_new_tokens is {max_new_tokens}", "use 1 or more")
    if loaded.max_context is None:
        return max_new_tokens
    left = loaded.max_context - prompt_tokens
    if left < 1:
        raise ModelError(
            f"the prompt of {prompt_tokens} tokens fills the context of {loaded.name} ({loaded.max_context} tokens)",
            "shorten the prompt, or use a model with a longer context",
        )
    return min(max_new_tokens, left)


def _compiled(loaded: LoadedModel, grammar: Grammar | CompiledGrammar) -> CompiledGrammar:
    if isinstance(grammar, Grammar):
        return compile_grammar(grammar, loaded.vocabulary)
    ours, theirs = loaded.vocabulary, grammar.vocabulary
    if theirs is not ours and theirs.fingerprint != ours.fingerprint:
        raise ModelError(
            f"the grammar was compiled for another vocabulary than that of {loaded.name}",
            "compile_grammar(grammar, loaded.vocabulary)",
        )
    return grammar
