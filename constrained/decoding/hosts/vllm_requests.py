"""Constrained requests of vLLM, as both of its interfaces for logits processors need them.

A request asks for a constraint in `SamplingParams.extra_args["constrained"]`: a specification (see `specification`),
or its JSON as text, for the server's `vllm_xargs`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from constrained.automaton import Grammar, Vocabulary, compile_grammar
from constrained.decoding import bitmask
from constrained.decoding.hosts.rows import Follower, not_allowed
from constrained.decoding.hosts.specification import CompiledCache, check_specification
from constrained.decoding.vocabulary import eos_ids, model_vocabulary
from constrained.errors import ConstrainedError

KEY = "constrained"
"""The name in `extra_args` and `vllm_xargs`."""

CONFLICTING = ("allowed_token_ids", "bad_words", "min_tokens", "structured_outputs", "guided_decoding")
"""Sampling parameters that forbid tokens, too: with both, no token might be left."""

FULL_NAME = "constrained.decoding.hosts.vllm_processor:VllmLogitsProcessor"
"""For vLLM's `--logits-processors` and `LLM(logits_processors=[...])`."""

logger = logging.getLogger(__name__)


def specification_of(sampling_params: Any) -> Any:
    """The request's constraint, or None."""
    return (getattr(sampling_params, "extra_args", None) or {}).get(KEY)


def validate(sampling_params: Any) -> None:
    """Refuse a request that can't be served, before it reaches the engine.

    Raises
    ------
    ValueError
        vLLM answers this one request with it.
    """
    specification = specification_of(sampling_params)
    if specification is None:
        return
    for name in CONFLICTING:
        if getattr(sampling_params, name, None):
            raise ValueError(f"{name} and a constraint can't go together: both forbid tokens")
    try:
        check_specification(specification)
    except ConstrainedError as error:
        raise ValueError(str(error)) from error


class EndingFollower(Follower):
    """Of a request that may only end, whatever it has written."""

    __slots__ = ()

    def follow(self, tokens: Sequence[int]) -> None:
        return None


class Requests:
    """Makes matchers for requests, and applies their masks to the logits.

    The tokenizer that `vllm_config` names is read when the first request asks for a constraint.
    """

    def __init__(self, vllm_config: Any):
        self.config = vllm_config.model_config
        self._cache: CompiledCache | None = None
        self._unreadable: ConstrainedError | None = None

    @property
    def cache(self) -> CompiledCache:
        """Compiled grammars over the model's vocabulary; if that can't be read, over its end-of-text tokens alone."""
        if self._cache is None:
            try:
                vocabulary = read_vocabulary(self.config)
            except (ConstrainedError, OSError, ValueError, TypeError, LookupError, ImportError) as error:
                self._unreadable = ConstrainedError(f"the model's vocabulary can't be read: {error}")
                vocabulary = Vocabulary([b"\0"], _ends(self.config), size=self.config.get_vocab_size())
            self._cache = CompiledCache(vocabulary)
        return self._cache

    def begin(self, sampling_params: Any) -> Follower | None:
        """A follower for a new request; None if it has no constraint."""
        specification = specification_of(sampling_params)
        if specification is None:
            return None
        try:
            cache = self.cache
            if self._unreadable is not None:
                return self.refuse(self._unreadable)
            return Follower(cache.matcher(specification, getattr(sampling_params, "max_tokens", None)))
        except ConstrainedError as error:
            return self.refuse(error)

    def refuse(self, error: ConstrainedError) -> Follower:
        """A follower that lets a request only end; the log says why.

        An error raised in vLLM's worker would take the engine down, and every other request with it.
        """
        logger.error("a constrained request was ended: %s", error)
        nothing = compile_grammar(Grammar.from_choices([""]), self.cache.vocabulary)
        return EndingFollower(nothing.matcher())

    def follow(self, follower: Follower, tokens: list[int]) -> Follower:
        """Read all of a request's tokens; the follower, or one that only ends if a token was not allowed."""
        wrong = follower.follow(tokens)
        if wrong is None:
            return follower
        if tokens[wrong] < 0:
            return self.refuse(
                ConstrainedError(
                    f"token {wrong + 1} of a request is a placeholder that vLLM's asynchronous scheduling left",
                    f"start vLLM with --logits-processors {FULL_NAME}, which makes it fill in tokens in time, or with "
                    "--no-async-scheduling",
                )
            )
        return self.refuse(not_allowed(follower.matcher, tokens[wrong], f"token {wrong + 1} of a request"))

    def apply(self, logits: torch.Tensor, rows: list[int], fill: Callable[[np.ndarray], object]) -> torch.Tensor:
        """Mask some `rows` of the logits, float ``[all rows, width]``, in place.

        `fill` writes their masks into int32 ``[len(rows), >= words]``.
        """
        vocabulary = self.cache.vocabulary
        bitmask.check_width(vocabulary, logits.shape[1])

        def write(table: np.ndarray) -> None:
            fill(table)
            table[:, -1] = rows  # in the same copy

        table = bitmask.filled((len(rows), vocabulary.words + 1), logits.device, write)
        mask = table[:, :-1]
        if rows == list(range(len(logits))):
            return bitmask.apply(logits, mask)
        indices = table[:, -1].long()
        logits[indices] = bitmask.apply(logits[indices], mask)
        return logits


def read_vocabulary(model_config: Any) -> Vocabulary:
    """Vocabulary of vLLM's model, whose tokenizer is read by transformers.

    Raises
    ------
    ConstrainedError
        Tokens that can't be read as bytes, or another kind of tokenizer.
    """
    from transformers import AutoTokenizer

    if getattr(model_config, "tokenizer_mode", "auto") == "mistral":
        raise ConstrainedError("tokenizer_mode 'mistral' is not read here", "start vLLM with --tokenizer-mode hf")
    tokenizer = AutoTokenizer.from_pretrained(
        model_config.tokenizer,
        revision=getattr(model_config, "tokenizer_revision", None),
        trust_remote_code=getattr(model_config, "trust_remote_code", False),
    )
    generation = model_config.try_get_generation_config() or {}
    return model_vocabulary(tokenizer, model_config.get_vocab_size(), generation.get("eos_token_id"))


def _ends(model_config: Any) -> list[int]:
    """End-of-text ids of the model's configurations."""
    generation = model_config.try_get_generation_config() or {}
    hf_config = getattr(model_config, "hf_config", None)
    return eos_ids(generation.get("eos_token_id") or getattr(hf_config, "eos_token_id", None))
