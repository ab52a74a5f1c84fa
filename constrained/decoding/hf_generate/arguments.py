"""Check the arguments of a call of `model.generate`, so that none is silently ignored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.generation import EosTokenCriteria, MaxLengthCriteria
from transformers.generation.configuration_utils import GenerationMode
from transformers.generation.streamers import BaseStreamer

from constrained.automaton import CompiledGrammar, Grammar, Matcher, Vocabulary, compile_grammar
from constrained.automaton.refused import not_a_grammar
from constrained.decoding.forward import ALL_LOGITS, NeededLogits, TokenSequence, supports_ragged
from constrained.decoding.ragged_forward import BLOCK, RaggedForward
from constrained.decoding.vocabulary import eos_ids
from constrained.errors import ConstrainedError, ModelError

MODES = {GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE, GenerationMode.BEAM_SEARCH}

CARRIED = {"attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep"}
"""Keywords of the model that the loop carries from step to step."""


def dropped_keywords() -> dict[str, Any]:
    """The keywords of the current call of `generate` that transformers doesn't pass on.

    ``streamer``, ``tokenizer``, ``assistant_model`` and ``synced_gpus`` never reach a custom loop that is a function
    (transformers 4.56 to 5.23: `GenerationMixin._extract_generation_mode_kwargs` gathers them, then overwrites what
    it gathered), not even to be refused. They are looked up in the caller's frame.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        keywords = frame.f_locals.get("kwargs")
        if isinstance(keywords, dict) and callable(keywords.get("custom_generate")):
            return keywords
        frame = frame.f_back
    return {}


@dataclass
class GenerateArguments:
    """The arguments of a call; it has a row for each prompt and beam (or returned sequence)."""

    model: Any
    config: GenerationConfig
    input_ids: torch.Tensor  # int64 [rows, width], padded on the left
    prompts: list[list[int]]  # each row's tokens, without the padding
    processors: LogitsProcessorList
    criteria: list[Any]  # the caller's own; end of text and greatest length are the loop's
    streamer: BaseStreamer | None
    tokenizer: Any
    generator: torch.Generator | None
    measure: bool  # keep the pruned mass
    past: Any

    @property
    def max_steps(self) -> int:
        """Most tokens to write."""
        return self.config.max_length - self.input_ids.shape[1]

    @property
    def copies(self) -> int:
        """Rows of each prompt, next to each other."""
        return max(self.config.num_beams, self.config.num_return_sequences)

    @property
    def limits(self) -> list[int]:
        """Most tokens to write in each row: the model's context may leave fewer."""
        context = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        longest = max(map(len, self.prompts))
        if context is not None and longest >= context:
            raise ModelError(
                f"the prompt of {longest} tokens fills the model's context ({context} tokens)", "shorten the prompt"
            )
        steps = self.max_steps
        return [steps if context is None else min(steps, context - len(prompt)) for prompt in self.prompts]

    def eos(self, eos_token_ids: Sequence[int]) -> int:
        """The id that is appended to a finished text."""
        return next((i for i in eos_ids(self.config.eos_token_id) if i in eos_token_ids), eos_token_ids[0])

    def pad(self, eos_token_ids: Sequence[int]) -> int:
        """The id that fills up rows after their end."""
        pad = self.config.pad_token_id
        return self.eos(eos_token_ids) if pad is None else pad

    def ragged_forward(
        self,
        texts: Sequence[TokenSequence],
        *,
        static: bool = False,
        needed: NeededLogits = ALL_LOGITS,
        own_dtype: bool = False,
    ) -> RaggedForward:
        """A reader of all rows; ConstrainedError if the model's cache or the one asked for can't hold them."""
        config = self.config
        if not supports_ragged(self.model):
            raise ModelError(
                f"the cache of {type(self.model).__name__} can't hold rows of different lengths",
                "use num_beams=1, without device tables",
            )
        if getattr(self.past, "_is_user_defined", False):
            raise ConstrainedError(
                "past_key_values for several rows isn't supported", "give one prompt, or leave it out"
            )
        if config.cache_implementation not in (None, "dynamic", "static"):
            raise ConstrainedError(
                f"cache_implementation={config.cache_implementation!r} works with one prompt only",
                "use 'static' or 'dynamic'",
            )
        static = static or config.cache_implementation == "static"
        longest = max(map(len, self.prompts))
        capacity = longest + BLOCK
        if static:
            capacity = max(longest + self.max_steps, getattr(config, "max_cache_len", None) or 0)
        copies = self.copies if len(texts) == len(self.prompts) else 1
        return RaggedForward(
            self.model, texts, capacity, static=static, needed=needed, copies=copies, own_dtype=own_dtype
        )


def read_arguments(
    model: Any,
    input_ids: torch.Tensor,
    config: GenerationConfig | None,
    processors: LogitsProcessorList | None,
    criteria: StoppingCriteriaList | None,
    keywords: dict[str, Any],
    model_kwargs: dict[str, Any],
    generator: torch.Generator | None,
    measure: bool,
) -> GenerateArguments:
    """Check a call.

    `keywords` are the caller's, as far as they are known (`dropped_keywords`). For what is raised see
    `constrained.decoding.custom_generate`.
    """
    assert config is not None and processors is not None, "generate makes them"
    _check_supported(model, config, keywords, model_kwargs)
    if input_ids.dim() != 2 or not input_ids.shape[1]:
        raise ConstrainedError("the prompt is empty", "begin with the beginning-of-text token")
    if measure and not config.return_dict_in_generate:
        raise ConstrainedError("output_pruned_mass has nowhere to go", "add return_dict_in_generate=True")
    streamer = keywords.get("streamer")
    if streamer is not None and len(input_ids) > 1:
        raise ConstrainedError("a streamer follows one text, not several", "give one prompt, or leave the streamer out")
    past = model_kwargs.get("past_key_values")
    if past is not None and vars(model).get("_cache") is past:
        del model._cache  # a static cache that stays empty, as we keep our own: transformers 4 fails on it next time
    return GenerateArguments(
        model,
        config,
        input_ids,
        _without_padding(input_ids, model_kwargs.get("attention_mask")),
        processors,
        [c for c in criteria or () if not isinstance(c, (EosTokenCriteria, MaxLengthCriteria))],
        streamer,
        keywords.get("tokenizer"),
        generator,
        measure,
        past,
    )


def _check_supported(
    model: Any, config: GenerationConfig, keywords: dict[str, Any], model_kwargs: dict[str, Any]
) -> None:
    """Raise an error for options that the loop doesn't support."""
    if model.config.is_encoder_decoder:
        raise ModelError(
            f"{type(model).__name__} has an encoder; the loop writes with decoder-only models",
            "use a causal language model, or the logits processor for others",
        )
    mode = config.get_generation_mode(keywords.get("assistant_model"))
    if mode not in MODES:
        raise ConstrainedError(
            f"generation mode {mode.value!r} isn't supported within a grammar",
            "use greedy search, sampling, or beam search without sampling",
        )
    asked = [name for name in ("output_logits", "output_attentions", "output_hidden_states") if getattr(config, name)]
    if asked:
        raise ConstrainedError(f"{asked[0]} isn't kept: forced tokens are never asked", "use output_scores")
    if keywords.get("position_ids") is not None:
        raise ConstrainedError("position_ids of your own aren't supported", "leave them out: tokens are counted")
    if keywords.get("synced_gpus"):
        raise ConstrainedError("synced_gpus isn't supported", "let each process generate by itself")
    if getattr(config, "prefill_chunk_size", None) is not None:
        raise ConstrainedError("prefill_chunk_size isn't supported", "leave it out")
    if not model_kwargs.get("use_cache", True):
        raise ConstrainedError("use_cache=False isn't supported", "leave the cache on")
    # transformers itself adds the state of recurrent models; unless the caller gave one, it can be ignored.
    carried = CARRIED | ({"cache_params"} - keywords.keys())
    others = sorted(name for name, value in model_kwargs.items() if value is not None and name not in carried)
    if others:
        raise ConstrainedError(
            f"the loop doesn't know how to carry {others[0]!r} from step to step", "give the prompt as input_ids alone"
        )


def _without_padding(input_ids: torch.Tensor, mask: torch.Tensor | None) -> list[list[int]]:
    """The tokens of each prompt, without its padding."""
    rows = input_ids.tolist()
    if mask is None:
        return rows
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
    return [row[pads:] for row, pads in zip(rows, (~mask).sum(1).tolist())]


def matchers(args: GenerateArguments, grammar: Any, vocabulary: Vocabulary | None) -> list[Matcher]:
    """One matcher a row, its budget set.

    `grammar` is a CompiledGrammar, Grammar or Matcher, or a sequence of them, one a prompt; `vocabulary` is for
    grammars that aren't compiled, by default the tokenizer's.
    """
    prompts = len(args.prompts) // args.copies
    if grammar is None:
        raise ConstrainedError("no grammar", "model.generate(..., custom_generate=custom_generate, grammar=compiled)")
    grammars = list(grammar) if isinstance(grammar, Sequence) and not isinstance(grammar, str) else [grammar]
    if len(grammars) not in (1, prompts):
        raise ConstrainedError(
            f"{len(grammars)} grammars for {prompts} prompts", "give one grammar for all, or one for each prompt"
        )
    width = args.model.config.get_text_config().vocab_size
    if vocabulary is None and args.tokenizer is not None and any(isinstance(g, Grammar) for g in grammars):
        ends = eos_ids(args.config.eos_token_id) or None
        vocabulary = Vocabulary.from_tokenizer(args.tokenizer, eos_token_ids=ends, size=width)
    # A matcher for each row: one grammar for all prompts or one each, and copies for beams and returned sequences.
    starts = [_matcher(g, vocabulary) for g in grammars] * (prompts if len(grammars) == 1 else 1)
    rows = [start.copy() for start in starts for _ in range(args.copies)]
    first = rows[0].compiled.vocabulary
    for matcher in rows[1:]:
        other = matcher.compiled.vocabulary
        if other is not first and other.fingerprint != first.fingerprint:
            raise ConstrainedError("the grammars were compiled for different vocabularies", "compile all for one")
    if first.size > width:
        raise ModelError(
            f"the grammar's vocabulary has {first.size} tokens, the model {width}",
            "compile it for the tokenizer that belongs to the model",
        )
    for matcher, limit in zip(rows, args.limits):
        matcher.set_budget(limit)
    return rows


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
    raise not_a_grammar(grammar)
