"""`model.generate`, but every text stays inside its grammar and ends whole.

A loop in the form transformers documents for ``custom_generate=``: `generate` reads its arguments, prepares inputs,
cache and processors as always, and this function decodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.generation import GenerateDecoderOnlyOutput
from transformers.generation.streamers import BaseStreamer

from constrained.automaton import CompiledGrammar, Matcher, Vocabulary
from constrained.decoding.call import check_call, dropped_keywords, eos_token_ids, matchers, prompts
from constrained.decoding.loop import GuidedText, PrefixReader, write
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.processors import Processed
from constrained.decoding.ragged_cache import BLOCK
from constrained.decoding.ragged_reader import RaggedReader, reads_ragged
from constrained.decoding.record import Token
from constrained.decoding.watch import Watch
from constrained.errors import ConstrainedError, ModelError
from constrained.grammar import Grammar


@dataclass
class ConstrainedOutput(GenerateDecoderOnlyOutput):
    """What `model.generate` returns with ``return_dict_in_generate=True``.

    Attributes
    ----------
    sequences : torch.Tensor
        int64 ``[rows, prompt + steps]``, padded after each text's end.
    scores : tuple of torch.Tensor, optional
        With ``output_scores``: float32 ``[rows, width]`` for each step, masked and processed; where a token was
        forced, 0 for it and minus infinity for all others.
    sequences_scores : torch.Tensor, optional
        Of beams: float32 ``[rows]``, the sum of log-probabilities over the length to the power of the penalty.
    pruned_mass : torch.Tensor, optional
        With ``output_pruned_mass``: float32 ``[rows, steps]``, the probability that the model put on tokens outside
        the mask; NaN where it wasn't asked.
    forced : torch.Tensor
        bool ``[rows, steps]``: the token had no alternative.
    complete : torch.Tensor
        bool ``[rows]``: the text is whole; False only where a stopping criterion of the caller's cut it.
    forward_passes : int
        Calls of the model.
    past_key_values : Cache, optional
        Of one prompt without beams: what the model has read; forced tokens at the end may be missing.
    """

    sequences_scores: torch.Tensor | None = None
    pruned_mass: torch.Tensor | None = None
    forced: torch.Tensor | None = None
    complete: torch.Tensor | None = None
    forward_passes: int | None = None


def custom_generate(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList | None = None,
    stopping_criteria: StoppingCriteriaList | None = None,
    generation_config: GenerationConfig | None = None,
    synced_gpus: bool = False,
    streamer: BaseStreamer | None = None,
    *,
    grammar: CompiledGrammar | Grammar | Matcher | Sequence[CompiledGrammar | Grammar | Matcher] | None = None,
    vocabulary: Vocabulary | None = None,
    tokenizer: Any = None,
    assistant_model: Any = None,
    generator: torch.Generator | None = None,
    min_forced: int = 1,
    output_pruned_mass: bool = False,
    **model_kwargs: Any,
) -> torch.Tensor | ConstrainedOutput:
    """Decode inside a grammar: ``model.generate(**inputs, custom_generate=custom_generate, grammar=compiled, ...)``.

    The usual arguments mean what they always mean: ``max_new_tokens``, ``do_sample``, ``temperature``, ``top_k``,
    ``top_p``, ``num_beams``, ``length_penalty``, ``early_stopping``, ``num_return_sequences``, ``logits_processor``,
    ``stopping_criteria``, ``streamer``, ``cache_implementation``, ``past_key_values``, ``return_dict_in_generate``,
    ``output_scores`` ... Processors see the masked scores, in transformers' order. Beams are compared by the model's
    own log-probabilities, as transformers does it.

    Parameters
    ----------
    grammar : CompiledGrammar, Grammar or Matcher, or a sequence of them
        One for all prompts or one for each. A Matcher says where a text goes on that the prompt has begun; it isn't
        changed. Every text is whole within ``max_new_tokens``; an end-of-text token follows where one still fits.
    vocabulary : Vocabulary, optional
        For grammars that aren't compiled.
    tokenizer : optional
        The model's. With it, text that must come next is appended in the tokenizer's own tokens and costs no call of
        the model; without it, only single tokens that have no alternative are. Also makes a vocabulary, at every
        call, for grammars that aren't compiled.
    generator : torch.Generator, optional
        Source of chance; default: torch's global one (``torch.manual_seed``).
    min_forced : int
        Runs of fewer forced bytes are left to the model, under the mask.
    output_pruned_mass : bool
        With ``return_dict_in_generate``: keep `ConstrainedOutput.pruned_mass`.

    Returns
    -------
    torch.Tensor or ConstrainedOutput
        int64 ``[rows, prompt + steps]``, or with ``return_dict_in_generate`` everything.

    Raises
    ------
    ConstrainedError
        Something was asked for that isn't supported, ``max_new_tokens`` is too small for any text of the grammar,
        or logits processors exclude all that it allows.
    ModelError
        An encoder-decoder model, or logits that are no numbers.
    """
    config = generation_config
    # Named ones count: other versions of transformers may hand them over.
    named = {"streamer": streamer, "tokenizer": tokenizer, "assistant_model": assistant_model, "synced_gpus": synced_gpus}
    call = dropped_keywords() | {name: value for name, value in named.items() if value}
    streamer, tokenizer = call.get("streamer"), call.get("tokenizer")
    check_call(model, input_ids, config, model_kwargs, call)
    if output_pruned_mass and not config.return_dict_in_generate:
        raise ConstrainedError("output_pruned_mass has nowhere to go", "add return_dict_in_generate=True")
    copies, steps = max(config.num_beams, config.num_return_sequences), config.max_length - input_ids.shape[1]
    texts = [
        GuidedText(matcher, prompt, _room(model, prompt, steps), tokenizer, min_forced)
        for matcher, prompt in zip(
            matchers(grammar, len(input_ids), copies, vocabulary, tokenizer, model), prompts(input_ids, model_kwargs)
        )
    ]
    if streamer is not None and len(texts) > 1:
        raise ConstrainedError("a streamer follows one text, not a batch", "give one prompt, or leave the streamer out")
    choose = Processed(
        logits_processor,
        dict(zip(texts, input_ids.tolist())),
        sample=config.do_sample,
        generator=generator,
        measure=output_pruned_mass,
        keep_scores=bool(config.return_dict_in_generate and config.output_scores),
    )
    vocabulary = texts[0].vocabulary
    end = next((i for i in eos_token_ids(config) or () if i in vocabulary.eos_token_ids), vocabulary.eos_token_ids[0])
    pad = end if config.pad_token_id is None else config.pad_token_id
    watch = Watch(texts, choose.prompts, stopping_criteria, streamer, pad)
    past, passes = _write(model, texts, choose, watch, config, model_kwargs.get("past_key_values"), steps)
    for text in texts:
        if text.end is None and text not in watch.cut and len(text.tokens) < steps:
            text.end = Token(end, 1.0, 0.0, True)
    watch.finish()
    written = [text.tokens if text.end is None else [*text.tokens, text.end] for text in texts]
    sequences = _sequences(input_ids, written, pad)
    if not config.return_dict_in_generate:
        return sequences
    return ConstrainedOutput(
        sequences=sequences,
        scores=_scores(written, [choose.scores[text] for text in texts], sequences, pad) if choose.scores else None,
        past_key_values=past,
        pruned_mass=_table([[math.nan if t.forced else t.pruned_mass for t in row] for row in written], math.nan)
        if output_pruned_mass
        else None,
        forced=_table([[t.forced for t in row] for row in written], False),
        complete=torch.tensor([text.matcher.is_complete for text in texts]),
        forward_passes=passes,
    )


def _room(model: Any, prompt: list[int], steps: int) -> int:
    """Tokens that may be written after `prompt`."""
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if context is not None and len(prompt) >= context:
        raise ModelError(
            f"the prompt of {len(prompt)} tokens fills the model's context ({context} tokens)", "shorten the prompt"
        )
    return steps if context is None else min(steps, context - len(prompt))


def _write(
    model: Any, texts: list[GuidedText], choose: Processed, watch: Watch, config: GenerationConfig, past: Any, steps: int
) -> tuple[Any, int]:
    """Write all texts; the cache, if it is of use to anybody, and the calls of the model."""
    kind = config.cache_implementation
    if len(texts) == 1:
        cache = PrefixCache()
        with _kept_whole(past):
            if past is not None:
                cache.adopt(past, texts[0].ids[: int(past.get_seq_length())])
            write(texts, PrefixReader(model, cache, choose.narrow), choose, watch.after)
        return cache.past, cache.forward_passes
    if getattr(past, "_is_user_defined", False):
        raise ConstrainedError("past_key_values for a batch isn't supported", "give one prompt, or leave the cache out")
    if kind not in (None, "dynamic", "static"):
        raise ConstrainedError(f"cache_implementation={kind!r} works with one prompt only", "'static' or 'dynamic'")
    if reads_ragged(model):
        longest = max(text.prompt_tokens for text in texts) + steps
        capacity = max(longest, config.max_cache_len or 0) if kind == "static" else longest - steps + BLOCK
        reader = RaggedReader(model, texts, capacity, static=kind == "static", narrow=choose.narrow)
        write(texts, reader, choose, watch.after)
        return None, reader.forward.passes
    caches = [PrefixCache() for _ in texts]
    for text, cache in zip(texts, caches):
        write([text], PrefixReader(model, cache, choose.narrow), choose, watch.after)
    return None, sum(cache.forward_passes for cache in caches)


@contextmanager
def _kept_whole(past: Any):
    """Whatever happens, the caller's cache holds the same tokens in every layer."""
    held = int(past.get_seq_length()) if getattr(past, "_is_user_defined", False) else None
    try:
        yield
    except BaseException:
        if held is not None:
            try:
                for layer in past.layers:
                    layer.crop(held - int(layer.get_seq_length()))
            except (AttributeError, RuntimeError, ValueError, NotImplementedError):
                past.reset()  # static and sliding caches can't go back: emptied, they are right, too
        raise


def _sequences(input_ids: torch.Tensor, written: list[list[Token]], pad: int) -> torch.Tensor:
    longest = max(map(len, written))
    tokens = [[t.id for t in row] + [pad] * (longest - len(row)) for row in written]
    return torch.cat((input_ids, torch.tensor(tokens, dtype=torch.long, device=input_ids.device)), 1)


def _table(rows: list[list[Any]], fill: Any) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def _scores(
    written: list[list[Token]], kept: list[dict[int, torch.Tensor]], sequences: torch.Tensor, pad: int
) -> tuple[torch.Tensor, ...]:
    """Each step's scores, one tensor a step; what wasn't asked is certain."""
    width = next(len(row) for steps in kept for row in steps.values()) if any(kept) else int(sequences.max()) + 1
    out = []
    for step in range(max(map(len, written))):
        table = torch.full((len(written), width), -torch.inf, device=sequences.device)
        for row, (tokens, steps) in enumerate(zip(written, kept)):
            if step in steps:
                table[row] = steps[step]
            else:
                table[row, tokens[step].id if step < len(tokens) else pad] = 0.0
        out.append(table)
    return tuple(out)
