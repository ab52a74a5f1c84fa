"""From token masks to text: sample allowed tokens, append forced tokens, end with a complete text.

`generate` and `generate_batch` are the library's own loop; `custom_generate` is the same inside transformers'
``model.generate``; `hosts` has the processors for hosts that run their own loop; `device` keeps masks on a GPU.
"""

import importlib
from typing import TYPE_CHECKING, Any

from constrained.decoding.request import Generation, PrunedMass, Request, Token

if TYPE_CHECKING:
    from constrained.decoding.generation import generate, generate_batch
    from constrained.decoding.hf_generate.custom_generate import custom_generate
    from constrained.decoding.hf_generate.output import ConstrainedOutput
    from constrained.decoding.prefix_cache import PrefixCache
    from constrained.decoding.sampling import Sampler

__all__ = [
    "ConstrainedOutput",
    "Generation",
    "PrefixCache",
    "PrunedMass",
    "Request",
    "Sampler",
    "Token",
    "custom_generate",
    "generate",
    "generate_batch",
]

# torch and transformers take seconds to import: they load with the first of these.
_MODULES = {
    "ConstrainedOutput": "hf_generate",
    "PrefixCache": "prefix_cache",
    "Sampler": "sampling",
    "custom_generate": "hf_generate",
    "generate": "generation",
    "generate_batch": "generation",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
