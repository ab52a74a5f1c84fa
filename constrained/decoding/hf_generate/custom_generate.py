"""`custom_generate`: `model.generate`, but every text stays inside its grammar and ends whole.

A loop in the form that transformers documents for ``custom_generate=``: `generate` reads its arguments, prepares
inputs, cache and processors as always, and this function decodes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.generation import logits_process as hf
from transformers.generation.streamers import BaseStreamer

from constrained.automaton import CompiledGrammar, Grammar, Matcher, Vocabulary
from constrained.decoding.device import DeviceTables
from constrained.decoding.device.loop import Prompt, decode_on_device
from constrained.decoding.device.storage import grammar_digest
from constrained.decoding.forward import devices, supports_ragged
from constrained.decoding.hf_generate.arguments import GenerateArguments, dropped_keywords, matchers, read_arguments
from constrained.decoding.hf_generate.beam_search import search_beams
from constrained.decoding.hf_generate.output import ConstrainedOutput, Streaming, result
from constrained.decoding.hf_generate.processors import ProcessorSampler
from constrained.decoding.loop import GuidedText, PrefixForward, decode
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.request import Token
from constrained.errors import ConstrainedError

TABLES_KEPT = 4
"""Device tables of grammars used last that are kept for later calls; they take up to some hundred MB each."""

_TABLES: OrderedDict[tuple[str, ...], DeviceTables] = OrderedDict()

DEVICE_SETTINGS = {
    hf.TemperatureLogitsWarper: "temperature",
    hf.TopKLogitsWarper: "top_k",
    hf.TopPLogitsWarper: "top_p",
}
"""The logits processors whose work the device's kernels do, and their one number."""


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
        One for all prompts or one for each. A Matcher continues a text that the prompt has begun; it isn't changed.
        Every text is whole within ``max_new_tokens``; an end-of-text token follows where one still fits.
        Tables: see `device_tables`.
    vocabulary : Vocabulary, optional
        For grammars that aren't compiled.
    tokenizer : optional
        The model's. With it, text that must come next is appended in the tokenizer's own tokens and costs no call of
        the model; without it, only single tokens that have no alternative are. Also makes a vocabulary, at every
        call, for grammars that aren't compiled.
    generator : torch.Generator, optional
        Source of random numbers; default: torch's global one (``torch.manual_seed``).
    device_tables : bool
        Visit the grammars ahead of time and keep masks, choice and state on the model's device, which never
        waits for the host then. Greedy, temperature, top-k and top-p only. The tables of the `TABLES_KEPT`
        grammars used last are kept; build `DeviceTables` and pass them as `grammar` to keep more, or for their limits.
        On a GPU, the cache and the CUDA graph of the last few kinds of calls are kept as long as the model, or until
        ``constrained.decoding.device.release(model)``.
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
    # Some versions of transformers pass these as arguments.
    named = {
        "streamer": streamer,
        "tokenizer": tokenizer,
        "assistant_model": assistant_model,
        "synced_gpus": synced_gpus,
    }
    keywords = dropped_keywords() | {k: v for k, v in named.items() if v is not None and v is not False}
    args = read_arguments(
        model, input_ids, generation_config, logits_processor, stopping_criteria, keywords, model_kwargs, generator,
        output_pruned_mass,
    )  # fmt: skip
    if device_tables or isinstance(grammar, DeviceTables):
        return _decode_on_device(args, grammar)
    rows = matchers(args, grammar, vocabulary)
    if args.config.num_beams > 1:
        return search_beams(args, rows)
    return _decode(args, rows)


def _decode(args: GenerateArguments, matchers: Sequence[Matcher]) -> torch.Tensor | ConstrainedOutput:
    """Decode each row by itself: greedily, or by sampling."""
    config = args.config
    texts = [GuidedText(matcher, ids, args.tokenizer) for matcher, ids in zip(matchers, args.prompts)]
    prompts = dict(zip(texts, args.input_ids.tolist()))
    sampler = ProcessorSampler(
        args.processors,
        prompts,
        sample=config.do_sample,
        generator=args.generator,
        measure=args.measure,
        keep_scores=bool(config.return_dict_in_generate and config.output_scores),
    )
    eos = texts[0].vocabulary.eos_token_ids
    streaming = Streaming(args, prompts, args.pad(eos))
    past, passes = _decode_rows(args, texts, sampler, streaming)
    # Append an end-of-text token where there is room, unless one of the caller's stopping criteria ended the text.
    for text in texts:
        if text.end is None and text not in streaming.stopped and len(text.tokens) < args.max_steps:
            text.end = Token(args.eos(eos), forced=True)
    streaming.finish()
    return result(
        args,
        args.input_ids,
        [text.tokens if text.end is None else [*text.tokens, text.end] for text in texts],
        args.pad(eos),
        scores=None if sampler.scores is None else [sampler.scores[text] for text in texts],
        past_key_values=past,
        complete=torch.tensor([text.matcher.is_complete for text in texts]),
        forward_passes=passes,
    )


def _decode_rows(
    args: GenerateArguments, texts: list[GuidedText], sampler: ProcessorSampler, streaming: Streaming
) -> tuple[Any, int]:
    """Write all texts; return the cache (only for a single text) and the number of forward passes."""
    if len(texts) > 1 and supports_ragged(args.model):
        ragged = args.ragged_forward(texts, needed=sampler.needed)
        decode(texts, ragged, sampler, streaming.after)
        return None, ragged.forward.passes
    caches = [PrefixCache() for _ in texts]
    with _keep_consistent(args.past):
        if len(texts) == 1 and args.past is not None:
            caches[0].adopt(args.past, texts[0].ids[: int(args.past.get_seq_length())])
        for text, cache in zip(texts, caches):
            decode([text], PrefixForward(args.model, cache, sampler.needed), sampler, streaming.after)
    return caches[0].past if len(texts) == 1 else None, sum(cache.forward_passes for cache in caches)


@contextmanager
def _keep_consistent(past: Any) -> Iterator[None]:
    """If interrupted, leave the caller's cache with the same tokens in every layer."""
    is_callers = getattr(
        past, "_is_user_defined", hasattr(past, "get_seq_length")
    )  # transformers 4 doesn't tell whose cache it is
    held = int(past.get_seq_length()) if is_callers else None
    try:
        yield
    except BaseException:
        if held is not None:
            try:
                for layer in past.layers:
                    layer.crop(held - int(layer.get_seq_length()))
            except (AttributeError, RuntimeError, ValueError, NotImplementedError):
                past.reset()  # static and sliding caches can't be cropped: an empty one is correct, too
        raise


def _decode_on_device(args: GenerateArguments, grammar: Any) -> torch.Tensor | ConstrainedOutput:
    """Masks, choice and state on the device; see `constrained.decoding.device.loop`."""
    config = args.config
    unsupported = {
        "num_beams": config.num_beams > 1,
        "output_scores": config.output_scores,
        "stopping_criteria": bool(args.criteria),
        "streamer": args.streamer is not None,
    }
    for name, asked in unsupported.items():
        if asked:
            raise ConstrainedError(
                f"{name} would wait for the device at every token", "pass a compiled grammar instead"
            )
    device = devices(args.model)[1]
    tables = _device_tables(grammar, args.tokenizer, device)
    # One grammar for all prompts, or one for each; a prompt's copies stand next to each other.
    grammar_count, prompts = len(tables.start), len(args.prompts) // args.copies
    if grammar_count not in (1, prompts):
        raise ConstrainedError(
            f"tables of {grammar_count} grammars for {prompts} prompts", "build them of one, or one a prompt"
        )
    grammars = [0 if grammar_count == 1 else prompt for prompt in range(prompts) for _ in range(args.copies)]
    pad = args.pad(tables.eos_token_ids)
    texts = [Prompt(ids) for ids in args.prompts]
    forward = args.ragged_forward(texts, static=device.type == "cuda", own_dtype=True)
    settings = device_settings(args.processors, config.do_sample)
    written = decode_on_device(
        forward, tables, grammars, args.max_steps, settings,
        budget=args.limits, pad_token_id=pad, generator=args.generator, measure=args.measure,
    )  # fmt: skip
    tokens = written.tokens[:, : int(written.length.max())]
    sequences = torch.cat((args.input_ids, tokens.to(args.input_ids.device)), 1)
    if not config.return_dict_in_generate:
        return sequences
    fields: dict[str, Any] = {"sequences": sequences, "forward_passes": written.passes}
    if written.pruned_mass is not None:
        after = torch.arange(tokens.shape[1], device=tokens.device) >= written.length.unsqueeze(1)
        fields["pruned_mass"] = written.pruned_mass[:, : tokens.shape[1]].masked_fill(after, torch.nan).cpu()
    return ConstrainedOutput(complete=written.complete.cpu(), **fields)


def device_settings(processors: LogitsProcessorList, sample: bool) -> dict[str, float]:
    """Arguments of `DeviceMatcher.step` that stand for transformers' processors.

    Raises ConstrainedError: a processor that the kernels don't have.
    """
    settings = {"temperature": 1.0} if sample else {"temperature": 0.0}
    for processor in processors:
        name = DEVICE_SETTINGS.get(type(processor))
        if name is None:
            raise ConstrainedError(
                f"{type(processor).__name__} can't work with device tables", "leave it out, or pass a compiled grammar"
            )
        settings[name] = getattr(processor, name)
    return settings


def _device_tables(grammar: Any, tokenizer: Any, device: torch.device) -> DeviceTables:
    """`grammar` itself if it is tables, else the tables of its compiled grammars."""
    if isinstance(grammar, DeviceTables):
        return grammar
    compiled = [grammar] if isinstance(grammar, CompiledGrammar) else grammar
    if not isinstance(compiled, Sequence) or not all(isinstance(item, CompiledGrammar) for item in compiled):
        raise ConstrainedError(
            "device tables are built from compiled grammars", "compile_grammar(grammar, vocabulary), one or a list"
        )
    grammars = tuple(grammar_digest(item.grammar) for item in compiled)
    key = (*grammars, compiled[0].vocabulary.fingerprint, str(device), str(tokenizer is not None))
    if key not in _TABLES:
        _TABLES[key] = DeviceTables.build(compiled, tokenizer=tokenizer, device=device)
        if len(_TABLES) > TABLES_KEPT:
            _TABLES.popitem(last=False)
    _TABLES.move_to_end(key)
    return _TABLES[key]
