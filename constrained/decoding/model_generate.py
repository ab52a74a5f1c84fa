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
from constrained.decoding.beams import generate_beams
from constrained.decoding.call import Call, dropped_keywords, matchers, read_call
from constrained.decoding.device import DeviceTables
from constrained.decoding.device_loop import generate_on_device
from constrained.decoding.loop import GuidedText, PrefixReader, write
from constrained.decoding.output import ConstrainedOutput
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.processors import Processed
from constrained.decoding.ragged_reader import reads_ragged
from constrained.decoding.record import Token
from constrained.decoding.watch import Watch
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
    grammar: CompiledGrammar
    | Grammar
    | Matcher
    | Sequence[CompiledGrammar | Grammar | Matcher]
    | DeviceTables
    | None = None,
    vocabulary: Vocabulary | None = None,
    tokenizer: Any = None,
    assistant_model: Any = None,
    generator: torch.Generator | None = None,
    min_forced: int = 1,
    device_tables: bool = False,
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
    grammar : CompiledGrammar, Grammar or Matcher, or a sequence of them; or DeviceTables
        One for all prompts or one for each. A Matcher says where a text goes on that the prompt has begun; it isn't
        changed. Every text is whole within ``max_new_tokens``; an end-of-text token follows where one still fits.
        Tables: see `device_tables`.
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
    device_tables : bool
        Visit the grammars ahead of time and let masks, choice and state live on the model's device: no token is
        waited for, but all are asked. Greedy, temperature, top-k and top-p only. At every call; build `DeviceTables`
        and pass them as `grammar` where they are used again.
    output_pruned_mass : bool
        With ``return_dict_in_generate``: keep `ConstrainedOutput.pruned_mass`.

    Returns
    -------
    torch.Tensor or ConstrainedOutput
        int64 ``[rows, prompt + steps]``, or with ``return_dict_in_generate`` everything.

    Notes
    -----
    Where neither `output_pruned_mass` nor ``output_scores`` asks for all logits, only those that a choice depends on
    are computed: the allowed ones where they are few; on a CPU, of large float32 vocabularies, those that an 8-bit copy
    of the output matrix (a quarter of its memory) leaves in question. Neither changes what is written.

    Raises
    ------
    ConstrainedError
        Something was asked for that isn't supported, ``max_new_tokens`` is too small for any text of the grammar,
        or logits processors exclude all that it allows.
    ModelError
        An encoder-decoder model, or logits that are no numbers.
    """
    # Named ones count: other versions of transformers may hand them over.
    named = {
        "streamer": streamer,
        "tokenizer": tokenizer,
        "assistant_model": assistant_model,
        "synced_gpus": synced_gpus,
    }
    keywords = dropped_keywords() | {k: v for k, v in named.items() if v is not None and v is not False}
    call = read_call(
        model, input_ids, generation_config, logits_processor, stopping_criteria, keywords, model_kwargs, generator,
        output_pruned_mass,
    )  # fmt: skip
    if device_tables or isinstance(grammar, DeviceTables):
        return generate_on_device(call, grammar)
    guides = matchers(call, grammar, vocabulary)
    if generation_config.num_beams > 1:
        return generate_beams(call, guides)
    return _generate(call, guides, min_forced)


def _generate(call: Call, guides: Sequence[Matcher], min_forced: int) -> torch.Tensor | ConstrainedOutput:
    """Each row by itself: greedily, or by chance."""
    config = call.config
    texts = [GuidedText(guide, ids, call.tokenizer, min_forced) for guide, ids in zip(guides, call.prompts)]
    choose = Processed(
        call.processors,
        dict(zip(texts, call.input_ids.tolist())),
        sample=config.do_sample,
        generator=call.generator,
        measure=call.measure,
        keep_scores=bool(config.return_dict_in_generate and config.output_scores),
    )
    ends = texts[0].vocabulary.eos_token_ids
    watch = Watch(texts, choose.prompts, call.criteria, call.streamer, call.pad(ends), call.input_ids.device)
    past, passes = _write(call, texts, choose, watch)
    for text in texts:
        if text.end is None and text not in watch.cut and len(text.tokens) < call.steps:
            text.end = Token(call.end(ends), 1.0, 0.0, True)
    watch.finish()
    written = [text.tokens if text.end is None else [*text.tokens, text.end] for text in texts]
    sequences = output.sequences(call.input_ids, written, call.pad(ends))
    if not config.return_dict_in_generate:
        return sequences
    kept = choose.scores and [choose.scores[text] for text in texts]
    return ConstrainedOutput(
        sequences=sequences,
        scores=kept and output.scores(written, kept, call.model.config.get_text_config().vocab_size, call.pad(ends)),
        past_key_values=past,
        pruned_mass=output.pruned_mass(written) if call.measure else None,
        forced=output.forced(written),
        complete=torch.tensor([text.matcher.is_complete for text in texts]),
        forward_passes=passes,
    )


def _write(call: Call, texts: list[GuidedText], choose: Processed, watch: Watch) -> tuple[Any, int]:
    """Write all texts; the cache, if it is of use to anybody, and the calls of the model."""
    if len(texts) > 1 and reads_ragged(call.model):
        reader = call.reader(texts, need=choose.need)
        write(texts, reader, choose, watch.after)
        return None, reader.forward.passes
    caches = [PrefixCache() for _ in texts]
    with _kept_whole(call.past):
        if len(texts) == 1 and call.past is not None:
            caches[0].adopt(call.past, texts[0].ids[: int(call.past.get_seq_length())])
        for text, cache in zip(texts, caches):
            write([text], PrefixReader(call.model, cache, choose.need), choose, watch.after)
    return caches[0].past if len(texts) == 1 else None, sum(cache.forward_passes for cache in caches)


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
