"""vLLM's plugin: a request's constraint becomes one of vLLM's structured outputs.

Wherever this package is installed beside vLLM, vLLM loads it by itself, and a request asks for a constraint by

    SamplingParams(max_tokens=60, extra_args={"constrained": {"knowledge": "household", "bindings": {...}}})

See `specification` for the possible constraints. Requests without one are left alone, and cost nothing.

There are two entry points. `vllm_backend.register` (group `vllm.general_plugins`) runs when a process of vLLM starts,
and adds the backend to vLLM's engine. `VllmLogitsProcessor` (group `vllm.logits_processors`) processes no logits:
vLLM shows it every request before the engine, so invalid constraints are refused with the reason, and all are refused
where `register` failed. Without it such requests would silently be unconstrained.
"""

from __future__ import annotations

from typing import Any

from constrained.decoding.hosts.specification import check_specification
from constrained.errors import ConstrainedError

try:
    from vllm.v1.sample.logits_processor import LogitsProcessor as V1Interface
except ImportError:  # vLLM isn't installed, or has only the newer interface
    V1Interface = object
try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2Interface
except ImportError:  # vLLM isn't installed, or has no Model Runner V2
    V2Interface = object

KEY = "constrained"
"""The name in `extra_args` and `vllm_xargs`."""

CONFLICTING = ("allowed_token_ids", "bad_words", "min_tokens", "ignore_eos", "structured_outputs")
"""Sampling parameters that can't go together with a constraint: they forbid tokens, too, or write on after its end."""

MISSING: list[str] = [
    "vLLM has not run the plugin 'constrained' of the group vllm.general_plugins; is VLLM_PLUGINS set?"
]
"""Why constraints can't be served in this process; empty: they can."""


def specification_of(sampling_params: Any) -> Any:
    """The request's constraint, or None."""
    return (getattr(sampling_params, "extra_args", None) or {}).get(KEY)


def validate(sampling_params: Any) -> None:
    """Refuse a request that can't be served. Raises ValueError: vLLM answers this one request with it."""
    specification = specification_of(sampling_params)
    if specification is None:
        return
    if MISSING:
        raise ValueError(f"constraints are not served here: {MISSING[0]}")
    for name in CONFLICTING:
        if getattr(sampling_params, name, None):
            raise ValueError(f"{name} and a constraint can't go together")
    try:
        check_specification(specification)
    except ConstrainedError as error:
        raise ValueError(str(error)) from error


_INTERFACES = tuple(c for c in (V1Interface, V2Interface) if c is not object)


class VllmLogitsProcessor(*_INTERFACES):  # type: ignore[misc]  # computed: vLLM checks that a plugin is a subclass
    """Passes each request's parameters to `validate`, by the interfaces of vLLM's V1 sampler and Model Runner V2."""

    def __init__(self, *arguments: Any, **named: Any):
        """Accept the arguments of either interface."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that can't be served: vLLM refuses that one request."""
        validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """True: the processor changes no logits."""
        return True

    def update_state(self, batch_update: Any) -> None:
        """V1: requests come and go."""
        for _, sampling_params, *_ in batch_update.added if batch_update is not None else ():
            self._check_served(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """V2: a request takes a slot; False, its logits are not processed here."""
        self._check_served(sampling_params)
        return False

    def apply_staged_writes(self) -> None:
        """V2: nothing is kept on the device."""

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """The logits as they are."""
        return logits

    @staticmethod
    def _check_served(sampling_params: Any) -> None:
        """Raise ConstrainedError for a constraint that can't be served: not all front ends call `validate_params`."""
        if MISSING and specification_of(sampling_params) is not None:
            raise ConstrainedError(f"constraints are not served here: {MISSING[0]}")
