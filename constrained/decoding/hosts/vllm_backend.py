"""A structured-output backend for vLLM: constraints are compiled and followed in its engine, beside the scheduler.

As with its own backends, vLLM fills masks while the forward pass runs, checks drafts (speculative decoding) and takes
them back, lets asynchronous scheduling wait for the tokens that a mask needs, and begins the constraint after the
thought where a reasoning parser is configured.

vLLM chooses its backends from a fixed list of names, so `install` wraps two functions of its engine, the same from
vLLM 0.11 to 0.33: where a request's parameters become a structured output, and where its grammar is made.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import Any

import torch

from constrained.decoding.hosts.request_matcher import RequestMatcher
from constrained.decoding.hosts.specification import CompiledCache
from constrained.decoding.hosts.vllm_processor import KEY, MISSING, specification_of, validate
from constrained.decoding.vocabulary import model_vocabulary
from constrained.errors import ConstrainedError

logger = logging.getLogger(__name__)

THOUGHT = ("<think>", "</think>")
"""Tokens that open and close a thought, in the models that have them."""

PROTOCOLS = {
    "vllm.entrypoints.openai.completion.protocol": "CompletionRequest",
    "vllm.entrypoints.openai.chat_completion.protocol": "ChatCompletionRequest",
}
"""Requests over HTTP whose beam search drops `vllm_xargs`."""


class VllmGrammar(RequestMatcher):
    """vLLM's `StructuredOutputGrammar` for one request."""

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        return self.advance(tokens)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return tokens[: self.accepts(tokens)]

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self.fill(bitmask.numpy(), batch_index)

    def is_terminated(self) -> bool:
        """False: vLLM allows everything once a grammar says that it has ended; ours allows end-of-text."""
        return False

    def reset(self) -> None:
        self.rollback(self.read)


class VllmBackend:
    """Makes the grammars of one engine; `manager` is its `StructuredOutputManager`."""

    def __init__(self, manager: Any):
        self.manager = manager
        self._reading = threading.Lock()

    @cached_property
    def cache(self) -> CompiledCache:
        """Compiled grammars over the model's vocabulary; end-of-text are the tokens at which vLLM stops by itself."""
        config = self.manager.vllm_config.model_config
        generation = config.try_get_generation_config() or {}
        return CompiledCache(
            model_vocabulary(self.manager.tokenizer, config.get_vocab_size(), generation.get("eos_token_id"))
        )

    def grammar(self, request: Any) -> VllmGrammar:
        """The grammar of a request.

        Raises ConstrainedError, ValueError: the request can't be served; vLLM answers it with the reason.
        """
        try:
            validate(request.sampling_params)
            specification, thinks = specification_of(request.sampling_params), self._thinks(request)
            with self._reading:
                cache = self.cache
            if thinks:
                return VllmGrammar(cache.matcher(specification), cache.lock, lambda: self._left(request))
            return VllmGrammar(cache.matcher(specification, self._left(request)), cache.lock)
        except (ConstrainedError, ValueError) as error:
            logger.error("request %s is refused: %s", request.request_id, error)
            raise

    def _left(self, request: Any) -> int:
        """How many tokens the request may still take; pending drafts count as taken."""
        longest = self.manager.vllm_config.model_config.max_model_len - request.num_prompt_tokens
        written = len(request.output_token_ids)
        return min(request.max_tokens, longest) - written - (len(request.spec_token_ids) if written else 0)

    def _thinks(self, request: Any) -> bool:
        """Whether vLLM leaves a thought unconstrained first."""
        manager = self.manager
        if manager.reasoner_cls is not None and not manager.enable_in_reasoning:
            return True
        if getattr(request.sampling_params, "thinking_token_budget", None) is not None:
            raise ConstrainedError(
                "thinking_token_budget would overrule the constraint",
                "start vLLM with --reasoning-parser, and without enable_in_reasoning",
            )
        if manager.enable_in_reasoning:
            return False
        opens, closes = (manager.tokenizer.get_vocab().get(token) for token in THOUGHT)
        prompt = list(request.prompt_token_ids or [])
        if opens in prompt and closes not in prompt[len(prompt) - prompt[::-1].index(opens) :]:
            raise ConstrainedError(
                "the prompt ends within <think>, so the constraint would apply to the thought",
                "start vLLM with --reasoning-parser; if it is meant, with enable_in_reasoning",
            )
        return False


def register() -> None:
    """vLLM's plugin: where its code is not as expected, constrained requests are refused with the reason."""
    try:
        install()
    except (ImportError, AttributeError, ConstrainedError) as error:
        MISSING[:] = [f"the backend can't be added to this version of vLLM: {error}"]
    else:
        MISSING.clear()


def install() -> None:
    """Let this process's vLLM serve constraints.

    Raises
    ------
    ConstrainedError, ImportError, AttributeError
        This version's code is not as expected.
    """
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar
    from vllm.v1.structured_output.request import StructuredOutputRequest

    if "Exception" not in str(StructuredOutputRequest.__annotations__.get("_grammar")):
        raise ConstrainedError("its engine stops where the grammar of a request can't be compiled")
    if not hasattr(StructuredOutputManager, "_get_reasoner"):
        raise ConstrainedError("its structured outputs are not those of 0.33")
    if hasattr(StructuredOutputManager.grammar_init, "constrained"):
        return  # vLLM loads plugins more than once
    # vLLM checks the class of a grammar. The two functions that follow take vLLM's own path for all other requests.
    StructuredOutputGrammar.register(VllmGrammar)
    make_request, make_grammar = StructuredOutputRequest.from_sampling_params, StructuredOutputManager.grammar_init

    def from_sampling_params(sampling_params: Any) -> Any:
        specification = specification_of(sampling_params)
        if specification is None:
            return make_request(sampling_params)
        params = StructuredOutputsParams(
            grammar=specification if isinstance(specification, str) else json.dumps(specification)
        )
        params._backend = KEY
        return StructuredOutputRequest(params=params)

    def grammar_init(self: Any, request: Any) -> None:
        structured = request.structured_output_request
        if structured is None or structured.params._backend != KEY:
            make_grammar(self, request)
            return
        if not hasattr(self, "constrained"):
            self.constrained = VllmBackend(self)
        if self._grammar_bitmask is None:
            self._grammar_bitmask = _bitmask(self.vllm_config)
        if hasattr(self, "executor") and self._use_async_grammar_compilation:
            structured.grammar = self.executor.submit(self.constrained.grammar, request)
        else:
            structured.grammar = _at_once(lambda: self.constrained.grammar(request))

    grammar_init.constrained = True  # type: ignore[attr-defined]
    StructuredOutputRequest.from_sampling_params = staticmethod(from_sampling_params)
    StructuredOutputManager.grammar_init = grammar_init
    refuse_beams()


def _at_once(make: Callable[[], VllmGrammar]) -> Future[VllmGrammar]:
    done: Future[VllmGrammar] = Future()
    try:
        done.set_result(make())
    except Exception as error:  # the scheduler answers the request with it
        done.set_exception(error)
    return done


def _bitmask(vllm_config: Any) -> torch.Tensor:
    """Allocate a mask as vLLM's backends do: a row for each request, and for each token of its draft."""
    rows = vllm_config.scheduler_config.max_num_seqs * (1 + vllm_config.num_speculative_tokens)
    return torch.full((rows, -(-vllm_config.model_config.get_vocab_size() // 32)), -1, dtype=torch.int32)


def refuse_beams() -> None:
    """Refuse constraints in beam search over HTTP, which would drop them; in the process of the server only."""
    for module, name in PROTOCOLS.items():
        request = getattr(sys.modules.get(module), name, None)
        if request is not None and not hasattr(request.to_beam_search_params, KEY):
            request.to_beam_search_params = _checked(request.to_beam_search_params)


def _checked(make: Callable[..., Any]) -> Callable[..., Any]:
    def to_beam_search_params(self: Any, *arguments: Any, **named: Any) -> Any:
        if KEY in (self.vllm_xargs or {}):
            from vllm.exceptions import VLLMValidationError

            raise VLLMValidationError("vLLM's beam search takes no constraint; leave out use_beam_search")
        return make(self, *arguments, **named)

    to_beam_search_params.constrained = True  # type: ignore[attr-defined]
    return to_beam_search_params
