"""Whole texts in batches: free, within the grammar by the host's loop, by the device's, and by xgrammar's processor."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import LogitsProcessorList

from benchmarks.gpu.workload import NEW_TOKENS, Workload, waits
from constrained.decoding import custom_generate
from constrained.decoding.device import release

LOOPS = ("unconstrained", "host loop", "device loop", "xgrammar")
FREE_TOKENS = 96
"""Tokens of a text without a grammar, about as many as with one."""


class Texts:
    """Measures whole texts; sampled at temperature 1, so that the rows of a batch differ."""

    def __init__(self, work: Workload):
        self.work = work

    def measure(self, batch: int, loop: str) -> dict:
        """The figures of one loop; its first run prepares what is made once (kernels, a graph, plans of attention)."""
        if loop == "xgrammar" and self.work.xgrammar is None:
            return {"batch": batch, "loop": loop, "reason": "xgrammar isn't installed"}
        first = self._write(loop, batch)["seconds"]
        row = {"batch": batch, "loop": loop, "first call": first} | self._write(loop, batch)
        release(self.work.model)  # the next loop may want the memory
        return row

    def _write(self, loop: str, batch: int) -> dict:
        work, device = self.work, self.work.tables.device
        prompts = torch.tensor([work.prompt] * batch, device=device)
        torch.manual_seed(batch)
        with waits(device) as waited:
            _synchronise(device)
            began = time.perf_counter()
            out = work.model.generate(
                prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0, top_k=0,
                pad_token_id=work.vocabulary.eos_token_ids[0], return_dict_in_generate=True,
                **self._options(loop, batch),
            )  # fmt: skip
            _synchronise(device)
            seconds = time.perf_counter() - began
        # A text within the grammar counts up to its end; the rest of its row is padding.
        written = out.sequences[:, prompts.shape[1] :].tolist()
        if loop != "unconstrained":
            written = [self._until_end(row) for row in written]
        tokens = sum(map(len, written))
        whole = None if loop == "unconstrained" else sum(work.grammar.matches(self._bytes(row)) for row in written)
        steps = max(map(len, written))
        return {
            "seconds": seconds,
            "tokens": tokens,
            "tokens/s": tokens / seconds,
            "passes": getattr(out, "forward_passes", None) or steps,
            "waits per token": None if device.type == "cpu" else len(waited) / steps,
            "whole": whole,
        }

    def _options(self, loop: str, batch: int) -> dict[str, Any]:
        work = self.work
        ends = {"max_new_tokens": NEW_TOKENS, "eos_token_id": list(work.vocabulary.eos_token_ids)}
        if loop == "unconstrained":
            return {"max_new_tokens": FREE_TOKENS, "min_new_tokens": FREE_TOKENS}
        if loop == "host loop":
            return ends | {"custom_generate": custom_generate, "grammar": work.compiled, "tokenizer": work.tokenizer}
        if loop == "device loop":
            return ends | {"custom_generate": custom_generate, "grammar": work.tables}
        from xgrammar.contrib.hf import LogitsProcessor

        return ends | {"logits_processor": LogitsProcessorList([LogitsProcessor([work.xgrammar] * batch)])}

    def _until_end(self, row: list[int]) -> list[int]:
        ends = set(self.work.vocabulary.eos_token_ids)
        return row[: next((i for i, token in enumerate(row) if token in ends), len(row))]

    def _bytes(self, row: list[int]) -> bytes:
        vocabulary = self.work.vocabulary
        return b"".join(vocabulary.tokens[i] for i in row if i not in vocabulary.special_set)


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
