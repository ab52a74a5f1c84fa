"""From masks to text: choose tokens, append what is forced, end whole."""

from constrained.decoding.generation import Generation, PrunedMass, Token, generate
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.sampling import Sampler

__all__ = ["Generation", "PrefixCache", "PrunedMass", "Sampler", "Token", "generate"]
