"""`model.generate`, but every text stays inside its grammar and ends whole.

A loop in the form transformers documents for ``custom_generate=``: `generate` reads its arguments, prepares inputs,
cache and processors as always, and this function decodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from constrained.automaton import CompiledGrammar, Matcher, Vocabulary
from constrained.decoding import output
from constrained.decoding.beams import Beam, Rules, beam_search
from constrained.decoding.call import check_call, dropped_keywords, eos_token_ids, matchers, prompts
from constrained.decoding.loop import GuidedText, PrefixReader, write
from constrained.decoding.output import ConstrainedOutput
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.processors import Processed
from constrained.decoding.ragged_cache import BLOCK
from constrained.decoding.ragged_reader import RaggedReader, reads_ragged
from constrained.decoding.record import Token
from constrained.decoding.watch import Watch
from constrained.errors import ConstrainedError, ModelError
from constrained.grammar import Grammar


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
    check_call(model, input_ids, config, model_kwargs, call)
    if output_pruned_mass and not config.return_dict_in_generate:
        raise ConstrainedError("output_pruned_mass has nowhere to go", "add return_dict_in_generate=True")
    copies, steps = max(config.num_beams, config.num_return_sequences), config.max_length - input_ids.shape[1]
    guides = matchers(grammar, len(input_ids), copies, vocabulary, call.get("tokenizer"), model)
    texts = [
        GuidedText(matcher, prompt, _room(model, prompt, steps), call.get("tokenizer"), min_forced)
        for matcher, prompt in zip(guides, prompts(input_ids, model_kwargs))
    ]
    choose = Processed(
        logits_processor,
        dict(zip(texts, input_ids.tolist())),
        sample=config.do_sample,
        generator=generator,
        measure=output_pruned_mass,
        keep_scores=bool(config.return_dict_in_generate and config.output_scores and config.num_beams == 1),
    )
    vocabulary = guides[0].compiled.vocabulary
    end = next((i for i in eos_token_ids(config) or () if i in vocabulary.eos_token_ids), vocabulary.eos_token_ids[0])
    pad = end if config.pad_token_id is None else config.pad_token_id
    watch = Watch(texts, choose.prompts, stopping_criteria, call.get("streamer"), pad)
    if config.num_beams > 1:
        return _beams(model, texts, choose, watch, config, input_ids, steps)
    past, passes = _write(model, texts, choose, watch, config, model_kwargs.get("past_key_values"), steps)
    for text in texts:
        if text.end is None and text not in watch.cut and len(text.tokens) < steps:
            text.end = Token(end, 1.0, 0.0, True)
    watch.finish()
    written = [text.tokens if text.end is None else [*text.tokens, text.end] for text in texts]
    sequences = output.sequences(input_ids, written, pad)
    if not config.return_dict_in_generate:
        return sequences
    kept = choose.scores
    width = model.config.get_text_config().vocab_size
    return ConstrainedOutput(
        sequences=sequences,
        scores=None if kept is None else output.scores(written, [kept[text] for text in texts], width, pad),
        past_key_values=past,
        pruned_mass=output.pruned_mass(written) if output_pruned_mass else None,
        forced=output.forced(written),
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
    if len(texts) == 1:
        cache = PrefixCache()
        with _kept_whole(past):
            if past is not None:
                cache.adopt(past, texts[0].ids[: int(past.get_seq_length())])
            write(texts, PrefixReader(model, cache, choose.narrow), choose, watch.after)
        return cache.past, cache.forward_passes
    _check_cache(config, past)
    if reads_ragged(model):
        reader = _reader(model, texts, config, steps, narrow=choose.narrow)
        write(texts, reader, choose, watch.after)
        return None, reader.forward.passes
    caches = [PrefixCache() for _ in texts]
    for text, cache in zip(texts, caches):
        write([text], PrefixReader(model, cache, choose.narrow), choose, watch.after)
    return None, sum(cache.forward_passes for cache in caches)


def _beams(
    model: Any, texts: list[GuidedText], choose: Processed, watch: Watch, config: GenerationConfig,
    input_ids: torch.Tensor, steps: int,
) -> torch.Tensor | ConstrainedOutput:  # fmt: skip
    if watch.criteria:
        raise ConstrainedError("stopping criteria would cut beams short", "leave them out, or use num_beams=1")
    if not reads_ragged(model):
        raise ModelError(f"beams can't be forked in the cache of {type(model).__name__}", "use num_beams=1")
    _check_cache(config, None)
    first = texts[:: config.num_beams]
    beams = [Beam(number, list(text.ids), text.prompt_tokens) for number, text in enumerate(first)]
    rules = Rules(config.num_beams, config.length_penalty, config.early_stopping, steps)
    choose.prompts = {beam: choose.prompts[text] for beam, text in zip(beams, first)}
    reader = _reader(model, beams, config, steps)
    found = beam_search(reader, beams, [text.matcher for text in first], rules, choose)
    best = [pair for of_one in found for pair in of_one[: config.num_return_sequences]]
    written = [beam.tokens for _, beam in best]
    prompts_of = torch.tensor([beam.prompt * config.num_beams for _, beam in best], device=input_ids.device)
    sequences = output.sequences(input_ids[prompts_of], written, watch.pad)
    if not config.return_dict_in_generate:
        return sequences
    return ConstrainedOutput(
        sequences=sequences,
        sequences_scores=torch.tensor([score for score, _ in best]),
        pruned_mass=output.pruned_mass(written) if choose.measure else None,
        forced=output.forced(written),
        complete=torch.ones(len(best), dtype=torch.bool),
        forward_passes=reader.forward.passes,
    )


def _check_cache(config: GenerationConfig, past: Any) -> None:
    if getattr(past, "_is_user_defined", False):
        raise ConstrainedError("past_key_values for several rows isn't supported", "give one prompt, or leave it out")
    if config.cache_implementation not in (None, "dynamic", "static"):
        raise ConstrainedError(
            f"cache_implementation={config.cache_implementation!r} works with one prompt only", "'static' or 'dynamic'"
        )


def _reader(model: Any, texts: list[Any], config: GenerationConfig, steps: int, narrow: bool = False) -> RaggedReader:
    static = config.cache_implementation == "static"
    longest = max(text.prompt_tokens for text in texts)
    capacity = max(longest + steps, config.max_cache_len or 0) if static else longest + BLOCK
    return RaggedReader(model, texts, capacity, static=static, narrow=narrow)


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
