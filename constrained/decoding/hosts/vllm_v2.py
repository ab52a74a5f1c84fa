"""vLLM's logits processor interface of Model Runner V2 (`vllm.v1.worker.gpu.sample.logits_processor`).

Newer vLLM runs most models on it, and refuses to start with an installed plugin of the older interface.

vLLM can't be installed where this was written: it is tested against the interface as its source documents it, by a
stand-in, and has not been run inside vLLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from constrained.automaton import BatchMatcher
from constrained.decoding.hosts.follower import Follower
from constrained.decoding.hosts.vllm_requests import Requests, validate

try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor
except ImportError:  # no vLLM here, or one without Model Runner V2
    LogitsProcessor = object


class VllmV2LogitsProcessor(LogitsProcessor):
    """Keeps the requests that ask for it inside their grammars.

    Requests have slots that they keep; the rows of the logits belong to slots, several to one where a draft is being
    checked (speculative decoding). Tokens are on the device only, so a step with constrained requests waits for one
    small copy to the host; steps without any cost nothing.

    Parameters
    ----------
    vllm_config : vllm.config.VllmConfig
    req_states : LogitsProcRequestState
        The model runner's tokens and lengths by slot.
    """

    def __init__(self, vllm_config: Any, req_states: Any):
        self._requests = Requests(vllm_config, req_states.device)
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
        """A request has taken a slot, perhaps again after it had to make room; whether it asks for a constraint."""
        follower = self._requests.begin(sampling_params)
        self._followers.pop(req_idx, None)
        if follower is not None:
            self._followers[req_idx] = follower
        return follower is not None

    def apply_staged_writes(self) -> None:
        """Nothing is kept on the device between steps."""

    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Mask the rows of constrained requests in place.

        Parameters
        ----------
        logits : torch.Tensor
            float ``[rows, width]``.
        ctx : LogitsContext
            Which row belongs to which slot, its position, and the token the model read there.
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
            table[:] = -1  # what stands after a draft's first forbidden token is thrown away
            row = 0
            for slot, rows, draft in drafts:
                self._followers[slot].matcher.fill_draft(table, draft, row)
                row += len(rows)

        return self._requests.apply(logits, [row for _, rows, _ in drafts for row in rows], fill)

    def _read(self, slots: list[int], ctx: Any) -> list[tuple[int, list[int], list[int], list[int]]]:
        """For each slot whose next token is being chosen: its rows, its tokens so far, and the draft after them."""
        prompts = self._states.prompt_len.np
        starts = [int(prompts[slot]) + len(self._followers[slot].read) for slot in slots]
        bounds = dict(zip(ctx.idx_mapping_np.tolist(), ctx.seq_lens_upper_bound_np.tolist()))
        history = self._states.all_token_ids.gpu  # [slots, longest text]
        # As many columns as any of the slots may have tokens that we haven't read: one, as a rule.
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
        for at, (slot, start) in enumerate(zip(slots, starts)):
            rows = np.flatnonzero(owner == slot)
            rows = rows[np.argsort(local[rows], kind="stable")]
            if not len(rows):
                continue
            written = int(position[rows[0]]) + 1 - int(prompts[slot])  # tokens before the one being chosen
            if written < 0:
                continue  # a part of the prompt: nothing is chosen after it
            read = self._followers[slot].read
            known = read[:written] + unread[at, : max(0, written - len(read))].tolist()
            out.append((slot, rows.tolist(), known, token[rows[1:]].tolist()))
        return out
