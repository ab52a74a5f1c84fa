"""Weights of choosers: one safetensors file holds those of several domains, under the key of their signature."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from constrained.errors import DataError
from constrained.files import write_whole
from constrained.models.chooser.graphs import Vocabulary
from constrained.models.chooser.network import Network
from constrained.planning import Domain

EMBEDDED = Path(__file__).with_name("weights.safetensors")
"""The weights that come with this package."""

FORMAT = "constrained chooser 1"
"""The entry of the file's metadata that holds the widths by domain."""

MAX_BYTES = 100 << 20
"""Most bytes of a file of weights; the embedded one has under 10 MB."""


Weights = Mapping[str, tuple[int, Mapping[str, torch.Tensor]]]
"""Domain's key -> width and tensors of its network."""


def read_file(path: Path, kind: str, hint: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """Read one entry of a file's metadata, as JSON, and the file's tensors.

    Raises
    ------
    DataError
        The file is missing, too large, or holds something else.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}", hint)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
        with safe_open(path, "pt") as file:
            head = (file.metadata() or {}).get(kind)
            if head is None:
                raise ValueError("it holds something else")
            return json.loads(head), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"can't read {path}: {error}", hint) from None


@lru_cache(maxsize=8)
def read_weights(path: Path = EMBEDDED) -> dict[str, tuple[int, dict[str, torch.Tensor]]]:
    """Domain's key -> width and tensors; errors as of `read_file`."""
    hint = "give what `constrained train self-learning --pddl` wrote"
    widths, tensors = read_file(path, FORMAT, hint)
    try:
        found: dict[str, tuple[int, dict[str, torch.Tensor]]] = {key: (int(w), {}) for key, w in widths.items()}
        for name, tensor in tensors.items():
            key, _, parameter = name.partition("/")
            found[key][1][parameter] = tensor
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"can't read {path}: {error}", hint) from None
    return found


def load_network(domain: Domain, path: Path = EMBEDDED) -> Network | None:
    """The network for a domain in a file; raises as `fitted` and `read_weights`."""
    return fitted(domain, read_weights(path), str(path))


def fitted(domain: Domain, weights: Weights, source: str) -> Network | None:
    """The network for a domain, by its structure; None if there are no weights for it.

    Raises
    ------
    DataError
        The weights don't fit the domain.
    """
    vocabulary = Vocabulary(domain)
    held = weights.get(vocabulary.signature.key)
    if held is None:
        return None
    network = Network(vocabulary, held[0])
    try:
        network.load_state_dict(held[1])
    except RuntimeError as error:
        words = str(error).strip().splitlines()[-1].strip()
        raise DataError(f"{source}: the weights don't fit the domain: {words}", "train them again") from None
    return network.eval()


def save_networks(path: Path, networks: Mapping[str, Network]) -> None:
    """Write the networks of several domains, by key."""
    tensors = {
        f"{key}/{name}": value.detach().contiguous()
        for key, network in networks.items()
        for name, value in network.state_dict().items()
    }
    widths = {key: network.width for key, network in networks.items()}
    write_whole(path, save(tensors, {FORMAT: json.dumps(widths)}))  # one entry: their order is not fixed
