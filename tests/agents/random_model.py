"""A language model of random weights for agents: it wants anything but a good plan, and reads and writes quickly.

One layer, and tokens learned from the knowledge that ships: a step takes a third of the time that it takes with `tiny`.
"""

from __future__ import annotations

from constrained import ActionKnowledge
from constrained.models import LoadedModel, load
from tests.decoding.tiny import CORPUS, tiny_llama, tiny_tokenizer

_KNOWLEDGE = [ActionKnowledge.from_lark(name).to_text() for name in ("household", "hotpotqa")]
_TOKENIZER = tiny_tokenizer(1000, [*CORPUS, *_KNOWLEDGE])


def random_model(seed: int = 0) -> LoadedModel:
    """The same weights for the same seed."""
    return load((tiny_llama(len(_TOKENIZER), seed=seed, context=4096, layers=1), _TOKENIZER))


RANDOM = random_model()
