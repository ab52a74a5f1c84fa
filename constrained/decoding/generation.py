"""The generation loop: a prompt and a grammar in, a whole text of the grammar out.

The loop asks the model only where there is a choice. What must come next is appended as known tokens; they go
through the model together with the next place where it is asked (`PrefixCache` runs whatever it has not read yet).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from constrained.automaton import CompiledGrammar, Matcher, compile_grammar
from constrained.decoding import bitmask
from constrained.decoding.forced_run import TAIL, forced_run
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.record import Generation, PrunedMass, Token
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
    if stop is not None and (grammar is not None or not stop):
        raise ConstrainedError("stop is for text without a grammar, and not empty", "let the grammar end the text")
    ids = _encode(loaded, prompt)
    room = _room(loaded, len(ids), max_new_tokens)
    sampler = Sampler(temperature, top_k, top_p, generator)
    writer = _Writer(loaded, ids, PrefixCache() if cache is None else cache, sampler)
    with _threads(loaded):
        if grammar is None:
            return _free(writer, room, stop.encode() if stop else b"")
        return _within(writer, _compiled(loaded, grammar).matcher(begun), room, min_forced)


@contextmanager
def _threads(loaded: LoadedModel):
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


class _Writer:
    """A text being written: its tokens, its bytes, and what the model was asked."""

    def __init__(self, loaded: LoadedModel, prompt: list[int], cache: PrefixCache, sampler: Sampler):
        self.loaded, self.cache, self.sampler = loaded, cache, sampler
        self.ids = list(prompt)
        self.prompt_tokens = len(prompt)
        self.data = b"".join(map(self._spell, prompt[-TAIL:]))
        self.begin = len(self.data)
        self.tokens: list[Token] = []
        self.masses: list[float] = []
        self.passes_before = cache.forward_passes

    def _spell(self, token: int) -> bytes:
        vocabulary = self.loaded.vocabulary
        known = token < len(vocabulary.tokens) and token not in vocabulary.special_set
        return vocabulary.tokens[token] if known else b""

    def ask(self, row: np.ndarray) -> Token:
        """Let the model choose among the tokens of a packed mask row."""
        logits = self.cache.next_logits(self.loaded.model, self.ids)
        choice = self.sampler.choose(logits, row)
        self.masses.append(choice.pruned_mass)
        return Token(*choice, False)

    def write(self, token: Token) -> None:
        self.tokens.append(token)
        self.ids.append(token.id)
        self.data += self._spell(token.id)

    def write_forced(self, ids: Sequence[int]) -> None:
        for token in ids:
            self.write(Token(token, 1.0, 0.0, True))

    def result(self, complete: bool, end: int | None = None) -> Generation:
        masses = self.masses
        mean = sum(masses) / len(masses) if masses else 0.0
        return Generation(
            text=self.data[self.begin : end].decode("utf-8", "replace"),
            tokens=tuple(self.tokens),
            prompt_tokens=self.prompt_tokens,
            forward_passes=self.cache.forward_passes - self.passes_before,
            pruned_mass=PrunedMass(mean, max(masses, default=0.0), sum(masses)),
            complete=complete,
        )


def _within(writer: _Writer, matcher: Matcher, room: int, min_forced: int) -> Generation:
    """Write a text of the matcher's grammar in at most `room` tokens; it is always whole."""
    vocabulary = matcher.compiled.vocabulary
    ends = vocabulary.eos_token_ids
    only_end = vocabulary.pack(np.array(ends))
    mask = np.zeros((1, vocabulary.words), np.int32)
    row = mask[0]
    matcher.set_budget(room)
    while True:
        writer.write_forced(forced_run(matcher, writer.loaded.tokenizer, writer.data[-TAIL:], min_forced))
        matcher.fill_bitmask(mask)
        if np.array_equal(row, only_end):
            return writer.result(complete=True)
        if bitmask.count(row) == 1:
            only = int(bitmask.ids(row)[0])
            matcher.advance(only)
            writer.write_forced([only])
            continue
        token = writer.ask(row)
        if token.id in ends:
            return writer.result(complete=True)
        matcher.advance(token.id)
        writer.write(token)


def _free(writer: _Writer, room: int, stop: bytes) -> Generation:
    """Write whatever the model wants, up to an end-of-text token, the stop string or `room` tokens."""
    vocabulary = writer.loaded.vocabulary
    row = vocabulary.pack(np.concatenate((vocabulary.sorted_ids, vocabulary.special_ids)))
    for _ in range(room):
        token = writer.ask(row)
        if token.id in vocabulary.eos_token_ids:
            return writer.result(complete=True)
        before = len(writer.data)
        writer.write(token)
        if stop:
            found = writer.data.find(stop, max(writer.begin, before - len(stop) + 1))
            if found >= 0:
                return writer.result(complete=True, end=found)
    return writer.result(complete=False)


def _encode(loaded: LoadedModel, prompt: str | Sequence[int]) -> list[int]:
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
