"""What a call of `model.generate` asks for, and whether a loop that stays inside a grammar can do it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig
from transformers.generation.configuration_utils import GenerationMode

from constrained.automaton import CompiledGrammar, Matcher, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError, ModelError
from constrained.grammar import Grammar

MODES = {GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE, GenerationMode.BEAM_SEARCH}

USED = {"attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep"}
"""Keywords for the model that the loop knows how to carry from step to step."""


def dropped_keywords() -> dict[str, Any]:
    """Keywords of the call of `generate` under way that transformers takes for itself.

    ``streamer``, ``tokenizer``, ``assistant_model`` and ``synced_gpus`` never reach a custom loop that is a function
    (transformers 4.56 to 5.23: `GenerationMixin._extract_generation_mode_kwargs` gathers them, then overwrites what
    it gathered), not even to be refused. So they are looked up where the call was made.
    """
    frame = sys._getframe(1)
    while frame is not None:
        asked = frame.f_locals.get("kwargs")
        if isinstance(asked, dict) and callable(asked.get("custom_generate")):
            return asked
        frame = frame.f_back
    return {}


def check_call(
    model: Any, input_ids: torch.Tensor, config: GenerationConfig, model_kwargs: dict[str, Any], call: dict[str, Any]
) -> None:
    """Refuse what this loop doesn't do; nothing that was asked for is passed over in silence.

    `call` has the keywords of the caller, as far as they are known (`dropped_keywords`).

    Raises
    ------
    ModelError
        The model is no decoder.
    ConstrainedError
        An option that isn't supported, or a prompt that can't be read.
    """
    if model.config.is_encoder_decoder:
        raise ModelError(
            f"{type(model).__name__} has an encoder; the loop writes with decoder-only models",
            "use a causal language model, or the logits processor for others",
        )
    mode = config.get_generation_mode(call.get("assistant_model"))
    if mode not in MODES:
        raise ConstrainedError(
            f"generation mode {mode.value!r} isn't supported within a grammar",
            "use greedy search, sampling, or beam search without sampling",
        )
    asked = [name for name in ("output_logits", "output_attentions", "output_hidden_states") if getattr(config, name)]
    if asked:
        raise ConstrainedError(f"{asked[0]} isn't kept: forced tokens are never asked", "use output_scores")
    if call.get("position_ids") is not None:
        raise ConstrainedError("position_ids of your own aren't supported", "leave them out: tokens are counted")
    if call.get("synced_gpus"):
        raise ConstrainedError("synced_gpus isn't supported", "let each process generate by itself")
    if config.prefill_chunk_size is not None:
        raise ConstrainedError("prefill_chunk_size isn't supported", "leave it out")
    if not model_kwargs.get("use_cache", True):
        raise ConstrainedError("use_cache=False isn't supported", "leave the cache on")
    others = sorted(name for name, value in model_kwargs.items() if value is not None and name not in USED)
    if others:
        raise ConstrainedError(
            f"the loop doesn't know how to carry {others[0]!r} from step to step", "give the prompt as input_ids alone"
        )
    if input_ids.dim() != 2 or not input_ids.shape[1]:
        raise ConstrainedError("the prompt is empty", "begin with the beginning-of-text token")


def prompts(input_ids: torch.Tensor, model_kwargs: dict[str, Any]) -> list[list[int]]:
    """The tokens of each prompt, without its padding.

    Raises
    ------
    ConstrainedError
        A prompt is nothing but padding, or padded elsewhere than on the left.
    """
    rows = input_ids.tolist()
    mask = model_kwargs.get("attention_mask")
    if mask is not None:
        if mask.shape != input_ids.shape:
            raise ConstrainedError(
                f"attention_mask is {list(mask.shape)}, input_ids {list(input_ids.shape)}",
                "give the whole text in input_ids, what past_key_values holds included",
            )
        mask = mask.bool()
        if bool((mask[:, :-1] & ~mask[:, 1:]).any()) or not bool(mask[:, -1].all()):
            raise ConstrainedError(
                "a prompt has padding elsewhere than on its left", "tokenizer.padding_side = 'left', and no empty prompt"
            )
        rows = [row[pads:] for row, pads in zip(rows, (~mask).sum(1).tolist())]
    return rows


def matchers(grammar: Any, rows: int, copies: int, vocabulary: Vocabulary | None, tokenizer: Any, model: Any) -> list[Matcher]:
    """One matcher a row.

    Parameters
    ----------
    grammar : CompiledGrammar, Grammar or Matcher, or a sequence of them, one a prompt
    rows : int
    copies : int
        Rows of each prompt, next to each other.
    vocabulary, tokenizer : optional
        What grammars are compiled for that aren't yet.
    model : transformers causal language model
    """
    if grammar is None:
        raise ConstrainedError("no grammar", "model.generate(..., custom_generate=custom_generate, grammar=compiled)")
    given = list(grammar) if isinstance(grammar, Sequence) and not isinstance(grammar, str) else [grammar]
    if len(given) not in (1, rows // copies):
        raise ConstrainedError(
            f"{len(given)} grammars for {rows // copies} prompts", "give one grammar for all, or one for each prompt"
        )
    if vocabulary is None and tokenizer is not None and any(isinstance(g, Grammar) for g in given):
        vocabulary = Vocabulary.from_tokenizer(
            tokenizer, eos_token_ids=eos_token_ids(model.generation_config), size=model.config.get_text_config().vocab_size
        )
    begun = [_matcher(g, vocabulary) for g in given] * (rows // copies if len(given) == 1 else 1)
    out = [matcher.copy() for matcher in begun for _ in range(copies)]
    known = out[0].compiled.vocabulary
    for matcher in out[1:]:
        other = matcher.compiled.vocabulary
        if other is not known and other.fingerprint != known.fingerprint:
            raise ConstrainedError("the grammars were compiled for different vocabularies", "compile all for one")
    width = model.config.get_text_config().vocab_size
    if known.size > width:
        raise ModelError(
            f"the grammar's vocabulary has {known.size} tokens, the model {width}",
            "compile it for the tokenizer that belongs to the model",
        )
    return out


def _matcher(grammar: Any, vocabulary: Vocabulary | None) -> Matcher:
    if isinstance(grammar, Grammar):
        if vocabulary is None:
            raise ConstrainedError(
                "the grammar isn't compiled", "compile_grammar(grammar, vocabulary), or pass vocabulary= or tokenizer="
            )
        grammar = compile_grammar(grammar, vocabulary)
    if isinstance(grammar, CompiledGrammar):
        return grammar.matcher()
    if isinstance(grammar, Matcher):
        return grammar
    raise ConstrainedError(
        f"a {type(grammar).__name__} is no grammar", "pass a CompiledGrammar, a Grammar, a Matcher or a list of them"
    )


def eos_token_ids(config: GenerationConfig) -> list[int] | None:
    """The ids that end a text, or None if the configuration names none."""
    ids = config.eos_token_id
    return None if ids is None else [ids] if isinstance(ids, int) else list(ids)
