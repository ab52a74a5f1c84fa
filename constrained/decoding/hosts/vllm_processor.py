"""vLLM's plugin: the class behind the entry point `constrained` of the group `vllm.logits_processors`.

Wherever this package is installed beside vLLM, vLLM loads it by itself, and a request asks for a constraint by

    SamplingParams(max_tokens=60, extra_args={"constrained": {"knowledge": "household", "bindings": {...}}})

See `specification` for what may stand there. Requests that ask for nothing are left alone, and cost nothing.

vLLM has two interfaces, by the model runner in use; what it passes to the constructor tells them apart.
"""

from __future__ import annotations

from typing import Any

from constrained.decoding.hosts import vllm_v1, vllm_v2
from constrained.decoding.hosts.vllm_requests import validate

_INTERFACES = tuple(c for c in (vllm_v1.LogitsProcessor, vllm_v2.LogitsProcessor) if c is not object)


class VllmLogitsProcessor(*_INTERFACES):
    """A subclass of whichever interfaces this vLLM has; makes the processor for the one that calls."""

    def __new__(cls, vllm_config: Any, *arguments: Any, **named: Any):
        """With `req_states` a processor of Model Runner V2; with `device` and `is_pin_memory` one of V1's sampler."""
        runner_v2 = "req_states" in named or len(arguments) + len(named) == 1
        kind = vllm_v2.VllmV2LogitsProcessor if runner_v2 else vllm_v1.VllmV1LogitsProcessor
        return kind(vllm_config, *arguments, **named)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that can't be served: vLLM refuses that one request."""
        validate(sampling_params)
