"""From masks to text: choose tokens, append what is forced, end whole."""

from constrained.decoding.custom_generate import custom_generate
from constrained.decoding.generation import generate
from constrained.decoding.output import ConstrainedOutput
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.record import Generation, PrunedMass, Token
from constrained.decoding.sampling import Sampler

__all__ = [
    "ConstrainedOutput",
    "Generation",
    "PrefixCache",
    "PrunedMass",
    "Sampler",
    "Token",
    "custom_generate",
    "generate",
]
