"""vLLM's plugin: the class behind the entry point `constrained` of the group `vllm.logits_processors`.

Wherever this package is installed beside vLLM, vLLM loads it by itself, and a request asks for a constraint by

    SamplingParams(max_tokens=60, extra_args={"constrained": {"knowledge": "household", "bindings": {...}}})

See `specification` for the possible constraints. Requests without one are left alone, and cost nothing.

vLLM has two interfaces for logits processors, by the model runner in use; the constructor's arguments tell them apart:
that of the V1 sampler (`vllm.v1.sample.logits_processor`, vLLM 0.10 and later), and that of Model Runner V2
(`vllm.v1.worker.gpu.sample.logits_processor`), on which newer vLLM runs most models, and where it refuses to start with
a plugin of the older interface. vLLM can't be installed where this was written: both are tested against stand-ins that
do what its documentation and source say, and have not been run inside vLLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from constrained.automaton import BatchMatcher
from constrained.decoding.hosts.rows import Follower
from constrained.decoding.hosts.vllm_requests import Requests, validate

try:
    from vllm.v1.sample.logits_processor import LogitsProcessor as V1Interface
except ImportError:  # no vLLM here, or one that has only the newer interface
    V1Interface = object
try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2Interface
except ImportError:  # no vLLM here, or one without Model Runner V2
    V2Interface = object


class VllmV1LogitsProcessor(V1Interface):
    """The processor of the V1 sampler.

    The engine says how its batch changes (`update_state`) before each forward pass, and passes the logits after it
    (`apply`). Tokens are read as late as possible, in `apply`: with asynchronous scheduling a request's list of tokens
    ends with a placeholder until then. Some versions of vLLM fill it in only for processors that were named at the
    start, not for plugins; then constrained requests end at once, and the log says what to do. vLLM refuses speculative
    decoding together with this interface. Masks are pinned where the logits are on a GPU, whatever `is_pin_memory`.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool):
        self._requests = Requests(vllm_config)
        self._rows: dict[int, tuple[Follower, list[int]]] = {}  # index in the batch -> follower, generated tokens
        self._batch: BatchMatcher | None = None  # of all rows, in order, until one changes

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that can't be served."""
        validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """False: a mask may forbid the likeliest token."""
        return False

    def needs_output_token_ids(self) -> bool:
        """Whether the lists must hold real tokens, not placeholders."""
        return bool(self._rows)

    def update_state(self, batch_update: Any) -> None:
        """Follow the batch: requests removed, then added, then moved, in vLLM's documented order; None: no change."""
        if batch_update is None:
            return
        rows = self._rows
        for index in batch_update.removed:
            rows.pop(index, None)
        for index, params, _, output_tokens in batch_update.added:
            follower = self._requests.begin(params)
            rows.pop(index, None)  # an added request may replace a finished one
            if follower is not None:
                rows[index] = (follower, output_tokens)
        for source, target, direction in batch_update.moved:
            moved, other = rows.pop(source, None), rows.pop(target, None)
            if moved is not None:
                rows[target] = moved
            if direction.name == "SWAP" and other is not None:
                rows[source] = other
        self._batch = None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Mask the rows of constrained requests in place; `logits` are float ``[requests, width]``."""
        if not self._rows:
            return logits
        for index, (follower, tokens) in list(self._rows.items()):
            after = self._requests.follow(follower, tokens)
            if after is not follower:
                self._rows[index] = (after, tokens)
                self._batch = None
        order = sorted(self._rows)
        if self._batch is None:
            self._batch = BatchMatcher(self._rows[index][0].matcher for index in order)
        return self._requests.apply(logits, order, self._batch.fill_bitmask)


class VllmV2LogitsProcessor(V2Interface):
    """The processor of Model Runner V2.

    Requests keep their slots; the rows of the logits belong to slots, several to one where a draft is being verified
    (speculative decoding). Tokens are on the device only: a step with constrained requests waits for one small copy to
    the host; steps without any cost nothing. `req_states` has the model runner's tokens and lengths by slot.
    """

    def __init__(self, vllm_config: Any, req_states: Any):
        self._requests = Requests(vllm_config)
        self._states = req_states
        self._followers: dict[int, Follower] = {}  # by slot

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that can't be served."""
        validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """False: a mask may forbid the likeliest token."""
        return False

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """A request takes a slot, perhaps again after it was preempted; returns whether it has a constraint."""
        follower = self._requests.begin(sampling_params)
        self._followers.pop(req_idx, None)
        if follower is not None:
            self._followers[req_idx] = follower
        return follower is not None

    def apply_staged_writes(self) -> None:
        """Nothing is kept on the device between steps."""

    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Mask the rows of constrained requests in place; `logits` are float ``[rows, width]``.

        `ctx` has each row's slot, its position, and the token the model read there.
        """
        followers = {int(slot): self._followers.get(int(slot)) for slot in ctx.idx_mapping_np}
        slots = [slot for slot, follower in followers.items() if follower is not None]
        if not slots:
            return logits
        drafts: list[tuple[int, list[int], list[int]]] = []  # slot, its rows, the draft's tokens
        for slot, rows, committed, draft in self._read(slots, ctx):
            self._followers[slot] = self._requests.follow(self._followers[slot], committed)
            drafts.append((slot, rows, draft))
        if not drafts:
            return logits

        def fill(table: np.ndarray) -> None:
            if not any(draft for _, _, draft in drafts):
                BatchMatcher(self._followers[slot].matcher for slot, _, _ in drafts).fill_bitmask(table)
                return
            table[:] = -1  # rows after a draft's first forbidden token are thrown away
            row = 0
            for slot, rows, draft in drafts:
                self._followers[slot].matcher.fill_draft(table, draft, row)
                row += len(rows)

        return self._requests.apply(logits, [row for _, rows, _ in drafts for row in rows], fill)

    def _read(self, slots: list[int], ctx: Any) -> list[tuple[int, list[int], list[int], list[int]]]:
        """Slots whose next token is being chosen, each with its rows, its tokens so far, and the draft after them."""
        prompts = self._states.prompt_len.np
        starts = [int(prompts[slot]) + len(self._followers[slot].read) for slot in slots]
        bounds = dict(zip(ctx.idx_mapping_np.tolist(), ctx.seq_lens_upper_bound_np.tolist()))
        history = self._states.all_token_ids.gpu  # [slots, longest text]
        # As many columns as any of the slots may have unread tokens: usually one.
        columns = max(1, *(bounds[slot] - start for slot, start in zip(slots, starts)))
        where = torch.tensor([slots, starts], device=history.device)
        wanted = (where[1].unsqueeze(1) + torch.arange(columns, device=history.device)).clamp_(max=history.shape[1] - 1)
        news = history[where[0].unsqueeze(1), wanted]  # [slots, columns]
        facts = torch.stack(
            [t.long() for t in (ctx.expanded_idx_mapping, ctx.expanded_local_pos, ctx.pos, ctx.input_ids)]
        )
        host = torch.cat([facts.flatten(), news.long().flatten()]).cpu().numpy()  # the one wait
        owner, local, position, token = host[: facts.numel()].reshape(4, -1)
        unread = host[facts.numel() :].reshape(len(slots), columns)
        out = []
        for index, slot in enumerate(slots):
            rows = np.flatnonzero(owner == slot)
            rows = rows[np.argsort(local[rows], kind="stable")]
            if not len(rows):
                continue
            written = int(position[rows[0]]) + 1 - int(prompts[slot])  # tokens before the one being chosen
            if written < 0:
                continue  # a part of the prompt: no token is chosen after it
            read = self._followers[slot].read
            known = read[:written] + unread[index, : max(0, written - len(read))].tolist()
            out.append((slot, rows.tolist(), known, token[rows[1:]].tolist()))
        return out


_INTERFACES = tuple(c for c in (V1Interface, V2Interface) if c is not object)


class VllmLogitsProcessor(*_INTERFACES):  # type: ignore[misc]  # computed: vLLM checks that a plugin is a subclass
    """A subclass of the interfaces that this vLLM has; makes the processor for the one that calls."""

    def __new__(cls, vllm_config: Any, *arguments: Any, **named: Any):
        """With `req_states` a processor of Model Runner V2; with `device` and `is_pin_memory` one of V1's sampler."""
        runner_v2 = "req_states" in named or len(arguments) + len(named) == 1
        kind = VllmV2LogitsProcessor if runner_v2 else VllmV1LogitsProcessor
        return kind(vllm_config, *arguments, **named)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that can't be served: vLLM refuses that one request."""
        validate(sampling_params)
