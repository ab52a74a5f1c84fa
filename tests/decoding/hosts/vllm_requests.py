"""Requests of all kinds for the vLLM stand-ins, and a model of random logits."""

import json

import numpy as np
import torch

from constrained.decoding.hosts.specification import CompiledCache
from tests.decoding.hosts.texts import CHOICES
from tests.decoding.hosts.vllm_stand_in import Request, SamplingParams
from tests.decoding.tiny import tiny

LOADED = tiny(padding=13)
VOCABULARY = LOADED.vocabulary
EOS = set(VOCABULARY.eos_token_ids)
SPECIFICATIONS = [
    {"choices": CHOICES},
    {"regex": r"(a|b)+c{1,3}é?"},
    {"lark": 'start: "go to " PLACE "!"*\n%declare PLACE\n', "bindings": {"PLACE": ["desk 1", "desk 10"]}},
    json.dumps({"knowledge": "hotpotqa", "path": ["Retrieve[Milhouse]"]}),
    {"regex": "[ab]{1,30}(cd){2}", "begun": "a"},
    None,
]
CACHE = CompiledCache(VOCABULARY)


def noise(seed):
    """A model that knows nothing: its logits are random, and the same for the same text."""

    def model(tokens):
        text = [token % 2**32 for token in tokens]
        return torch.from_numpy(np.random.default_rng([seed, *text]).normal(size=LOADED.logits_width)).float()

    return model


def requests(count, seed, specifications=SPECIFICATIONS):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        specification = specifications[rng.integers(len(specifications))]
        arguments = None if specification is None else {"constrained": specification, "another": 1}
        params = SamplingParams(max_tokens=int(rng.integers(24, 50)), extra_args=arguments)
        out.append(Request(rng.integers(2, 250, rng.integers(1, 9)).tolist(), params))
    return out
