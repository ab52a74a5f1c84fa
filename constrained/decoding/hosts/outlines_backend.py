"""For Outlines: a backend whose processors drive transformers, llama.cpp and MLX models.

    model = outlines.from_transformers(hf_model, tokenizer)
    generator(model, knowledge.bind(OBJECT=["mug 1"], RECEPTACLE=["desk 1"]))("What next? ", max_new_tokens=40)

Written for Outlines 1.3, which chooses backends from a fixed list of names: ours is made by hand, and its processors
are passed as `outlines.Generator(model, processor=...)`. vLLM's offline models take no processors from Outlines; for
these see docs/hosts.md.

Two things differ from Outlines' own processors. `OutlinesLogitsProcessor.__init__` isn't called, as it sets
`torch._dynamo.config.suppress_errors` for the whole process. And a step moves the masks of all rows to the device at
once, not row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from outlines.backends.base import BaseBackend
from outlines.generator import SteerableGenerator
from outlines.models import MLXLM, LlamaCpp, Transformers
from outlines.processors import OutlinesLogitsProcessor
from outlines.processors.tensor_adapters import tensor_adapters
from outlines.types.dsl import CFG, JsonSchema, python_types_to_terms, to_regex
from outlines_core.json_schema import build_regex_from_schema

from constrained.automaton import CompiledGrammar, Grammar, Vocabulary, compile_grammar
from constrained.decoding import bitmask
from constrained.decoding.hosts.hf_processor import ConstrainedLogitsProcessor
from constrained.decoding.vocabulary import llama_cpp_vocabulary, logits_width, model_vocabulary
from constrained.errors import ConstrainedError
from constrained.knowledge import Knowledge


def generator(model: Any, output_type: Any, **limits: Any) -> Any:
    """Make an Outlines generator whose texts stay inside a grammar, and are whole.

    Parameters
    ----------
    model : outlines.models.Transformers, LlamaCpp or MLXLM
    output_type : Knowledge, Grammar, CompiledGrammar, or any output type of Outlines
        For knowledge: the actions that may come next.
    **limits
        `max_new_tokens`, `begun` and `num_beams` of `ConstrainedOutlinesProcessor`.

    Returns
    -------
    WholeGenerator

    Raises
    ------
    ConstrainedError
        As `ConstrainedBackend` and its methods.
    """
    backend = ConstrainedBackend(model, **limits)
    ours = isinstance(output_type, (Knowledge, Grammar, CompiledGrammar))
    term = None if ours else python_types_to_terms(output_type)
    if term is None:
        processor = backend.get_grammar_logits_processor(output_type)
    elif isinstance(term, CFG):
        processor = backend.get_cfg_logits_processor(term.definition)
    elif isinstance(term, JsonSchema):
        processor = backend.get_json_schema_logits_processor(term.schema, term.whitespace_pattern)
    else:
        processor = backend.get_regex_logits_processor(to_regex(term))
    return WholeGenerator.from_processor(model, processor)


class WholeGenerator(SteerableGenerator):
    """An Outlines generator that raises an error for a text that was cut at the limit.

    The model ends at its own limit (by default 20 tokens in transformers, 16 in llama.cpp), which a processor only
    knows by `max_new_tokens`. A text that was cut there raises ConstrainedError.
    """

    def __call__(self, prompt: Any, **options: Any) -> Any:
        return self._whole(super().__call__(prompt, **options))

    def batch(self, prompts: list[Any], **options: Any) -> list[Any]:
        return [self._whole(text) for text in super().batch(prompts, **options)]

    def stream(self, prompt: Any, **options: Any) -> Iterator[Any]:
        pieces = []
        for piece in super().stream(prompt, **options):
            pieces.append(piece)
            yield piece
        self._whole("".join(pieces))

    def _whole(self, written: Any) -> Any:
        for text in written if isinstance(written, list) else [written]:
            if isinstance(text, list):
                self._whole(text)
            elif isinstance(self.logits_processor, ConstrainedOutlinesProcessor) and self.logits_processor.is_cut(text):
                raise ConstrainedError(
                    f"the text was cut off at the model's limit: {text[-60:]!r}",
                    "give the same max_new_tokens to generator(…) and to the call (max_tokens, for llama.cpp and MLX)",
                )
        return written


class ConstrainedBackend(BaseBackend):
    """Makes logits processors for one model, whose vocabulary is read once.

    Parameters
    ----------
    model : outlines.models.Transformers, LlamaCpp or MLXLM
    **limits
        `max_new_tokens`, `begun` and `num_beams` of every processor it makes.

    Raises
    ------
    ConstrainedError
        A model that takes no processors, or (`VocabularyError`) tokens that can't be read as bytes.
    """

    def __init__(self, model: Any, **limits: Any):
        self.vocabulary = read_vocabulary(model)
        self.tensor_library_name = model.tensor_library_name
        self.limits = limits

    def get_grammar_logits_processor(
        self, grammar: Knowledge | Grammar | CompiledGrammar
    ) -> ConstrainedOutlinesProcessor:
        """A processor for a grammar, or for the actions that knowledge admits next."""
        if isinstance(grammar, Knowledge):
            grammar = grammar.next_action()
        if isinstance(grammar, Grammar):
            grammar = compile_grammar(grammar, self.vocabulary)
        return ConstrainedOutlinesProcessor(grammar, self.tensor_library_name, **self.limits)

    def get_regex_logits_processor(self, regex: str) -> ConstrainedOutlinesProcessor:
        """A processor for the texts that `regex` matches whole."""
        return self.get_grammar_logits_processor(Grammar.from_regex(regex))

    def get_cfg_logits_processor(self, grammar: str) -> ConstrainedOutlinesProcessor:
        """A processor for Lark grammar text."""
        return self.get_grammar_logits_processor(Grammar.from_lark(grammar))

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> ConstrainedOutlinesProcessor:
        """A processor for a JSON schema, by the regex that Outlines makes of it."""
        return self.get_regex_logits_processor(build_regex_from_schema(json_schema, whitespace_pattern))


class ConstrainedOutlinesProcessor(OutlinesLogitsProcessor):
    """Keeps every row of a batch inside its grammar, in the tensors of the model's own library.

    Parameters
    ----------
    grammar : CompiledGrammar or sequence of CompiledGrammar
        One for all prompts, or one for each.
    tensor_library_name : {"torch", "numpy", "mlx"}
    max_new_tokens, begun, num_beams
        As for `constrained.decoding.hosts.hf_processor.ConstrainedLogitsProcessor`.
    """

    def __init__(self, grammar: Any, tensor_library_name: str, **limits: Any):
        if tensor_library_name not in tensor_adapters:
            raise ConstrainedError(
                f"no tensor library {tensor_library_name!r}", "use one of " + ", ".join(tensor_adapters)
            )
        self.tensor_library_name = tensor_library_name
        adapters: Mapping[str, Any] = tensor_adapters
        self.tensor_adapter: Any = adapters[tensor_library_name]()
        self._rows = ConstrainedLogitsProcessor(grammar, **limits)

    def reset(self) -> None:
        """Forget the generation so far: the next step is the first of another."""
        self._rows.reset()

    def is_cut(self, text: str) -> bool:
        """Whether a text of the last generation began as the grammar asks, and ended before it was whole."""
        states = [start.prefix.read(text.encode()) for start in self._rows.starts]
        return any(states) and not any(state is not None and state.accepting for state in states)

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Set the logits of tokens that aren't allowed to minus infinity, in a copy.

        Parameters
        ----------
        input_ids : array or tensor of int, shape [rows, length]
        logits : array or tensor of float, shape [rows, width]

        Raises
        ------
        ConstrainedError
            A row took a token that was not allowed, others have forbidden all that are, or (`VocabularyError`) the
            logits are narrower than the vocabulary.
        """
        if self.tensor_library_name == "torch":
            return self._rows(input_ids, logits)
        rows, width = logits.shape
        bitmask.check_width(self._rows.vocabulary, width)
        try:
            self._rows.follow(np.array(input_ids))
        except ConstrainedError:
            if self.tensor_library_name == "numpy":
                # llama.cpp calls this from C, which only prints an error and uses the logits all the same: the
                # text must end here.
                logits[:] = -np.inf
                logits[:, self._rows.vocabulary.eos_token_ids] = 0
            raise
        mask = np.empty((rows, self._rows.vocabulary.words), np.int32)
        self._rows.fill(mask)
        allowed = bitmask.expand(torch.from_numpy(mask), width).numpy()
        if self.tensor_library_name == "numpy":
            return np.where(allowed, logits, np.array(-np.inf, logits.dtype))
        mlx = self.tensor_adapter.mlx
        return mlx.where(mlx.array(allowed), logits, mlx.array(-np.inf, logits.dtype))


def read_vocabulary(model: Any) -> Vocabulary:
    """The vocabulary of an Outlines model, as wide as its logits, with every id that ends a text.

    Raises ConstrainedError: a model that takes no processors, or (`VocabularyError`) tokens that can't be read as
    bytes.
    """
    if isinstance(model, LlamaCpp):
        return llama_cpp_vocabulary(model.model.model)
    if isinstance(model, MLXLM):
        width = getattr(getattr(model.model, "args", None), "vocab_size", None)
        eos = getattr(model.mlx_tokenizer, "eos_token_ids", None)
        return model_vocabulary(model.tokenizer.tokenizer, width, eos)
    if isinstance(model, Transformers):
        sources = (model.model.config, getattr(model.model, "generation_config", None))
        eos = (getattr(source, "eos_token_id", None) for source in sources)
        return model_vocabulary(model.hf_tokenizer, logits_width(model.model), *eos)
    raise ConstrainedError(
        f"{type(model).__name__} takes no logits processors from Outlines",
        "use from_transformers, from_llamacpp or from_mlxlm; with vLLM, give each request its constraint: see "
        "constrained.decoding.hosts.vllm_processor",
    )
