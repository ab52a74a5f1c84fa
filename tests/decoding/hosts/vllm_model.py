"""A model for vLLM's own engine: everything above the model runner is vLLM's, the logits are random.

vLLM's kernels need a GPU; its front end, engine, scheduler, structured outputs and output processing don't.
"""

from __future__ import annotations

import zlib
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import torch
from vllm.v1.executor.abstract import Executor
from vllm.v1.kv_cache_interface import FullAttentionSpec
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.structured_output.utils import apply_grammar_bitmask

SPEC = FullAttentionSpec(block_size=16, num_kv_heads=1, head_size=8, dtype=torch.float32)


class RandomModel(Executor):
    """Stands in for the workers; chooses the likeliest token by logits that depend on the text so far.

    `drafts` says what to propose after a text (token ids -> token ids), `wishes` the tokens that it would like best.
    """

    drafts = staticmethod(lambda tokens: [])
    wishes = staticmethod(lambda tokens: {})
    steps = 0

    def _init_executor(self):
        self.tokens: dict[str, list[int]] = {}
        self.width = self.vllm_config.model_config.get_vocab_size()

    @classmethod
    def supports_async_scheduling(cls):
        return True

    def check_health(self):
        pass

    def collective_rpc(self, method, timeout=None, args=(), kwargs=None, non_block=False, **_):
        answers = {
            "get_kv_cache_spec": {"layer": SPEC},
            "determine_available_memory": 1 << 24,
            "get_supported_kv_cache_layouts": ["NHD"],
            "get_supported_tasks": ("generate",),
        }
        return [answers.get(method)]

    def compile_or_warm_up_model(self):
        pass

    def execute_model(self, scheduler_output, non_block=False):
        for request in scheduler_output.finished_req_ids:
            self.tokens.pop(request, None)
        for request in scheduler_output.scheduled_new_reqs:
            self.tokens[request.req_id] = list(request.prompt_token_ids)
        self.scheduled = scheduler_output
        nothing = None if scheduler_output.num_scheduled_tokens else ModelRunnerOutput([], {})
        return _answer(nothing, non_block)

    def sample_tokens(self, grammar_output, non_block=False):
        """What a model runner does: masks by vLLM's own function, then the drafts up to the first that is wrong."""
        RandomModel.steps += 1
        scheduled = self.scheduled
        requests = list(scheduled.num_scheduled_tokens)
        drafts = {request: scheduled.scheduled_spec_decode_tokens.get(request, []) for request in requests}
        rows = [self.tokens[r] + drafts[r][:count] for r in requests for count in range(len(drafts[r]) + 1)]
        logits = torch.stack([self._logits(row) for row in rows])
        if grammar_output is not None:
            apply_grammar_bitmask(scheduled, grammar_output, SimpleNamespace(req_ids=requests), logits)
        assert bool(logits.isfinite().any(1).all())
        best, found, row = logits.argmax(1).tolist(), [], 0
        for request in requests:
            chosen = []
            for draft in [*drafts[request], None]:
                chosen.append(best[row + len(chosen)])
                if chosen[-1] != draft:
                    break
            row += len(drafts[request]) + 1
            self.tokens[request] += chosen
            found.append(chosen)
        return _answer(ModelRunnerOutput(requests, {r: i for i, r in enumerate(requests)}, found), non_block)

    def take_draft_token_ids(self):
        requests = [request for request in self.scheduled.num_scheduled_tokens if request in self.tokens]
        return DraftTokenIds(requests, [list(RandomModel.drafts(self.tokens[request])) for request in requests])

    def _logits(self, tokens):
        logits = np.random.default_rng(zlib.crc32(repr(tokens).encode())).normal(size=self.width)
        for token, value in RandomModel.wishes(tokens).items():
            logits[token] = value
        return torch.from_numpy(logits.astype(np.float32))


def _answer(value, non_block):
    if not non_block:
        return value
    future = Future()
    future.set_result(value)
    return future
