"""A grammar backend for SGLang: `--grammar-backend constrained`.

Wherever this package is installed beside SGLang, SGLang finds `register` by its entry point (group
`sglang.srt.plugins`). A request brings its constraint as JSON text in `ebnf` (see `specification`); `json_schema` and
`regex` are served, too, and `ebnf` that isn't JSON is read as Lark.

As with its own backends, SGLang fills masks while the forward pass runs, checks drafts and takes them back, and with a
reasoning parser begins the constraint after the thought.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
    register_grammar_backend,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import get_serving, get_spec

from constrained.automaton import CompiledGrammar, Vocabulary
from constrained.decoding import bitmask
from constrained.decoding.hosts.request_matcher import RequestMatcher
from constrained.decoding.hosts.specification import CompiledCache
from constrained.decoding.vocabulary import model_vocabulary
from constrained.errors import ConstrainedError

NAME = "constrained"
"""For `--grammar-backend`."""

REQUEST_READY = "sglang.srt.constrained.grammar_manager.GrammarManager._apply_request_reasoning_config"
"""What SGLang calls once a request has its grammar; the request's limits are read there."""


def register() -> None:
    """SGLang's plugin: add the backend, and its name to the choices of the command line."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    if NAME in GRAMMAR_BACKEND_CHOICES:
        return
    GRAMMAR_BACKEND_CHOICES.append(NAME)
    register_grammar_backend(NAME, create)
    HookRegistry.register(REQUEST_READY, begin, HookType.AFTER)


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None) -> BaseGrammarBackend:
    """The backend of a server; with a reasoning parser, inside SGLang's wrapper that leaves thoughts unconstrained.

    Raises ConstrainedError: strict thinking is asked for, or (`VocabularyError`) the tokenizer's tokens can't be read
    as bytes.
    """
    serving = get_serving()
    if serving.enable_strict_thinking:
        raise ConstrainedError("--enable-strict-thinking needs SGLang's own grammar backends", "leave it out")
    backend = SglangBackend(model_vocabulary(tokenizer, vocab_size, eos_token_ids))
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    return ReasonerGrammarBackend(backend, parser, tokenizer)


def begin(result: Any, manager: Any, req: Any) -> None:
    """Set the budget of a request that has got its grammar, so that its text is whole within its limit."""
    grammar = getattr(req.grammar, "grammar", req.grammar)  # in the wrapper for thoughts, if there is one
    if not isinstance(grammar, SglangGrammar):
        return
    try:
        grammar.begin(req, thinks=grammar is not req.grammar and req.require_reasoning)
    except ConstrainedError as error:
        req.set_finish_with_abort(str(error))


class SglangGrammar(RequestMatcher, BaseGrammarObject):
    """SGLang's grammar object for one request; copies are those of other requests with the same constraint."""

    def __init__(self, compiled: CompiledGrammar, begun: str, lock: Any):
        BaseGrammarObject.__init__(self)
        self.compiled, self.begun = compiled, begun
        with lock:
            RequestMatcher.__init__(self, compiled.matcher(begun), lock)

    def copy(self) -> SglangGrammar:
        return SglangGrammar(self.compiled, self.begun, self._lock)

    def begin(self, req: Any, thinks: bool) -> None:
        """Set a request's token budget (after its thought, if it `thinks`). VocabularyError: no text fits in it."""
        limit = req.sampling_params.max_new_tokens
        if limit is None:
            return
        if thinks:
            drafted = get_spec().speculative_num_draft_tokens or 0  # drafted tokens may or may not be written already
            self.left = lambda: limit - len(req.output_ids) - drafted
        else:
            with self._lock:
                self.matcher.set_budget(limit)

    def accept_token(self, token: int) -> None:
        """Read a token. Raises ValueError, which aborts the request: the token is not allowed."""
        if not self.advance([token]):
            raise ValueError(f"token {token} is not allowed by the constraint")
        self.current_token = token

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self.fill(vocab_mask.numpy(), idx)

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return torch.full((batch_size, -(-vocab_size // 32)), -1, dtype=torch.int32, pin_memory=device == "cuda")

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        bitmask.apply(logits, vocab_mask)

    def try_jump_forward(self, tokenizer: Any) -> None:
        return None  # no jump-forward: SGLang's scheduler asks for every token


class SglangBackend(BaseGrammarBackend):
    """Makes the grammar objects of one server, from specifications as JSON text, schemas and regular expressions."""

    def __init__(self, vocabulary: Vocabulary):
        super().__init__()
        self.cache_of_compiled = CompiledCache(vocabulary)

    # SGLang's wrapper for thoughts takes these from the backend.
    allocate_vocab_mask = staticmethod(SglangGrammar.allocate_vocab_mask)
    move_vocab_mask = staticmethod(SglangGrammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(SglangGrammar.apply_vocab_mask)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self._grammar(key_string if key_string.lstrip().startswith("{") else {"lark": key_string})

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        return self._grammar({"json_schema": key_string})

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self._grammar({"regex": key_string})

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject("the backend 'constrained' has no structural tags; write the whole text as Lark")

    def _grammar(self, specification: Any) -> BaseGrammarObject:
        cache = self.cache_of_compiled
        try:
            compiled, begun = cache.compiled(specification)
            return SglangGrammar(compiled, begun, cache.lock)
        except ConstrainedError as error:
            return InvalidGrammarObject(str(error))
