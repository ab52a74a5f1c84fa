"""For `transformers`' continuous batching: requests come and go, each with its own grammar.

    manager = model.init_continuous_batching(generation_config, ContinuousBatchingConfig(use_async_batching=False))
    install(manager, ContinuousConstraintProcessor(vocabulary))
    manager.start()
    manager.add_request(ids, max_new_tokens=60, constraint=Constraint(compiled, max_new_tokens=60))

Written for transformers 5.23. Its processors for continuous batching have two halves: on the host each request's
arguments become one int32, and on the device, perhaps in a CUDA graph, the scores are changed by these. Here the int32
is the request's row in a table of masks with a fixed address on the device; row 0 allows everything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
from transformers.generation.continuous_batching.continuous_api import ContinuousBatchingManager
from transformers.generation.continuous_batching.requests import FutureRequestState, RequestState

from constrained.automaton import BatchMatcher, CompiledGrammar, Matcher, Vocabulary
from constrained.automaton.refused import not_compiled
from constrained.decoding import bitmask
from constrained.decoding.bitmask import check_width
from constrained.decoding.hosts.hf_processor import not_allowed
from constrained.decoding.prefix_cache import common_prefix
from constrained.errors import ConstrainedError

MAX_FOLLOWED = 8192
"""Most requests whose matchers are kept; the tokens of others are read again from their beginning."""

_WARMUP = "__warmup_"  # the prefix of the request names with which transformers captures CUDA graphs


class Constraint:
    """A request's grammar; `add_request(..., constraint=Constraint(compiled))`.

    Errors are raised here, where the request is made; in the generation thread they would end every other request, too.

    Parameters
    ----------
    grammar : CompiledGrammar
    max_new_tokens : int, optional
        The number given to `add_request`, checked against the shortest text.
    begun : str
        Beginning of the grammar's text that the prompt ends with.

    Raises
    ------
    ConstrainedError
        No text begins so, or the budget is below the shortest text.
    """

    def __init__(self, grammar: CompiledGrammar, *, max_new_tokens: int | None = None, begun: str = ""):
        if not isinstance(grammar, CompiledGrammar):
            raise not_compiled(grammar)
        self.grammar = grammar
        self.max_new_tokens = max_new_tokens
        self._start = grammar.matcher(begun)
        self.matcher(max_new_tokens)

    def matcher(self, max_new_tokens: int | None) -> Matcher:
        """A matcher for a request with a limit of tokens."""
        limits = [limit for limit in (max_new_tokens, self.max_new_tokens) if limit is not None]
        matcher = self._start.copy()
        matcher.set_budget(min(limits, default=None))
        return matcher

    def __deepcopy__(self, memo: object) -> Constraint:
        return self  # immutable; transformers deep-copies the arguments of forked and restarted requests


class Follower:
    """The matcher of one request, and how many of the request's tokens it has read.

    `matcher` is at the request's beginning; it isn't copied.
    """

    __slots__ = ("matcher", "read")

    def __init__(self, matcher: Matcher):
        self.matcher = matcher
        self.read: list[int] = []

    def follow(self, tokens: Sequence[int]) -> int | None:
        """Read up to the end of `tokens`, all that has been generated so far; roll back what the host took back.

        Returns the index of the first token that is not allowed, where reading stopped; None if there is none.
        """
        shared = common_prefix(self.read, list(tokens))
        self.matcher.rollback(len(self.read) - shared)
        del self.read[shared:]
        for token in tokens[shared:]:
            if not self.matcher.advance(token):
                return len(self.read)
            self.read.append(token)
        return None


class ContinuousConstraintProcessor(ContinuousBatchingLogitsProcessor):
    """Keeps every request that has a constraint inside its grammar.

    `vocabulary`: all grammars must be compiled for it. `default`: for requests without one.
    """

    supported_kwargs = {"constraint": Constraint}  # noqa: RUF012 (the base class declares it so)
    ignored_kwargs = ()

    def __init__(self, vocabulary: Vocabulary, default: Constraint | None = None):
        self.vocabulary = vocabulary
        self.default = default
        self._followed: OrderedDict[str, Follower] = OrderedDict()

    def prepare(self, requests: int, device: torch.device) -> None:
        """Forget all requests, and allocate a table of masks on `device`; called by `install`."""
        self._followed.clear()
        self._masks = torch.full((1 + requests, self.vocabulary.words), -1, dtype=torch.int32, device=device)
        self._host = torch.empty((requests, self.vocabulary.words), dtype=torch.int32, pin_memory=device.type == "cuda")

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[FutureRequestState]) -> torch.Tensor:
        """Read the new tokens and fill the table of masks; return each request's row in it, int32 ``[requests]``.

        Raises ConstrainedError: a token was not allowed, or the tokens allowed are fewer than the shortest text.
        """
        rows, batch = [], BatchMatcher()
        for request in requests_with_new_token:
            matcher = self._matcher(request.state)
            rows.append(0 if matcher is None else 1 + batch.add(matcher))
        if len(batch):
            host = self._host[: len(batch)]
            batch.fill_bitmask(host.numpy())
            # A blocking copy: the next forward pass runs on another stream and needs the new masks.
            self._masks[1 : 1 + len(batch)].copy_(host)
        return torch.tensor(rows, dtype=torch.int32)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Mask scores, float ``[rows, width]``, by the table's rows in `tensor_arg`, int32 ``[>= rows]``."""
        check_width(self.vocabulary, scores.shape[1])
        rows = tensor_arg[: len(scores)]
        allowed = bitmask.expand(self._masks[rows], scores.shape[1])
        return scores.masked_fill(~(allowed | (rows == 0).unsqueeze(1)), -torch.inf)

    def _matcher(self, state: RequestState) -> Matcher | None:
        constraint = state.logit_processor_kwargs.get("constraint", self.default)
        if constraint is None or state.request_id.startswith(_WARMUP):
            return None
        # A preempted request comes back with its tokens as part of its prompt.
        generated = state.to_generation_output().generated_tokens
        before = len(generated) - state.generated_len()
        follower = self._followed.get(state.request_id)
        if follower is None or not generated:  # a request without tokens is new, even if its name was used before
            limit = None if state.max_new_tokens is None else state.max_new_tokens + before
            follower = self._followed[state.request_id] = Follower(constraint.matcher(limit))
            while len(self._followed) > MAX_FOLLOWED:
                self._followed.popitem(last=False)
        self._followed.move_to_end(state.request_id)
        wrong = follower.follow(generated)
        if wrong is not None:
            raise not_allowed(follower.matcher, generated[wrong], f"request {state.request_id}, token {wrong + 1}")
        return follower.matcher


def install(manager: ContinuousBatchingManager, processor: ContinuousConstraintProcessor) -> None:
    """Add the processor to a manager that has not started, before temperature, top-k and top-p.

    transformers makes a manager's processors from the generation configuration, and has no argument for others.

    Raises
    ------
    ConstrainedError
        The manager has started, or batches asynchronously: the next step is then prepared before the last token is
        known, too early for its mask.
    """
    if manager.continuous_batching_config.use_async_batching:
        raise ConstrainedError(
            "with asynchronous batching a step is prepared before the last token is known, so masks come too late",
            "pass ContinuousBatchingConfig(use_async_batching=False)",
        )
    if manager.batch_processor is not None or manager.is_running():
        raise ConstrainedError(
            "the manager has already made its buffers", "install the processor right after init_continuous_batching"
        )
    requests = manager.continuous_batching_config.max_requests_per_batch
    assert requests is not None, "the manager has set it"
    processor.prepare(requests, manager.model.device)
    processors = manager.logit_processor
    processors.logits_processor.insert(0, processor)
    processors.tensors_required += 1
    processors.supported_keys.update(processor.supported_kwargs)
    processors.do_processing = True
