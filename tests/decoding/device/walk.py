"""Host and device side by side: the same texts, token by token, in both."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from constrained import CompiledGrammar, Matcher
from constrained.decoding.device import DeviceMatcher, DeviceTables

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def at(
    tables: DeviceTables,
    states: list[int],
    left: list[int] | None = None,
    backend: str | None = None,
    seed: int = 0,
) -> DeviceMatcher:
    """A matcher whose rows stand at `states`."""
    generator = torch.Generator().manual_seed(seed)
    matcher = DeviceMatcher(tables, len(states), backend=backend, generator=generator)
    matcher.state.copy_(torch.tensor(states))
    if left is not None:
        matcher.left.copy_(torch.tensor(left))
    return matcher


def unpack(mask: torch.Tensor) -> list[list[int]]:
    """Ids of each packed row."""
    bits = np.unpackbits(mask.cpu().numpy().view(np.uint8), axis=1, bitorder="little")
    return [np.flatnonzero(row).tolist() for row in bits]


def side_by_side(
    compiled: CompiledGrammar, tables: DeviceTables, grammar: int = 0, budget: int | None = None, most: int = 200
) -> list[tuple[Matcher, int, int | None]]:
    """Visit what a text can come to, breadth first; at each place masks and steps must be equal.

    Returns
    -------
    list of (Matcher, int, int or None)
        Every place visited: the host's matcher, the device's state, and what is left of the budget.
    """
    first = compiled.matcher()
    first.set_budget(budget)
    size, ends = compiled.vocabulary.size, set(compiled.vocabulary.eos_token_ids)
    rnd = random.Random(0)
    layer, seen, out = [(first, int(tables.start[grammar]), budget)], set(), []
    while layer and len(out) < most:
        out += layer
        hosts, states, left = zip(*layer)
        device = at(tables, list(states), list(left) if budget is not None else None)
        masks = unpack(device.mask())
        pairs, following = [], []
        for row, host in enumerate(hosts):
            allowed = host.allowed_token_ids().tolist()
            assert masks[row] == allowed
            shut = next((i for i in range(size) if i not in allowed), None)
            tokens = rnd.sample(allowed, min(12, len(allowed))) + sorted(ends & set(allowed))
            pairs += [(row, token) for token in [*tokens, *([] if shut is None else [shut]), -1, size]]
        forked = device.gather(torch.tensor([row for row, _ in pairs], device=DEVICE))
        before = forked.state.clone()
        taken = forked.advance(torch.tensor([token for _, token in pairs], device=DEVICE)).tolist()
        for i, (row, token) in enumerate(pairs):
            after = hosts[row].copy()
            assert taken[i] == (token < 0 or after.advance(token))
            if token < 0 or not taken[i]:
                assert forked.state[i] == before[i] and forked.left[i] == device.left[row]
                continue
            number = int(forked.state[i])
            assert (number == 0) == after.is_terminated and bool(forked.complete[i]) == after.is_complete
            rest = None if budget is None else int(forked.left[i])
            if (number, rest) not in seen:
                seen.add((number, rest))
                following.append((after, number, rest))
        layer = following
    return out


class AsksTheHost(TorchDispatchMode):
    """Notes the operations that on a GPU would wait for a value or give a shape that depends on one."""

    WAITS = (
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "is_nonzero",
        "unique",
        "repeat_interleave",
        "equal.default",
    )

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function)
        by_mask = "index" in name and any(
            t is not None and t.dtype == torch.bool
            for a in args
            if isinstance(a, (list, tuple))
            for t in a
            if t is None or isinstance(t, torch.Tensor)
        )
        if by_mask or any(word in name for word in self.WAITS):
            self.found.append(name)
        return function(*args, **(kwargs or {}))
