"""Two devices that compute on the CPU: what mixes tensors of both fails, as on two GPUs.

torch lets Python play an accelerator ("privateuse1"). A tensor of ``two:0`` or ``two:1`` holds one of the CPU, and
every operation is the CPU's, if all that goes into it is on one device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

NAME = "two"
MOVES = {torch.ops.aten._to_copy, torch.ops.aten.copy_}
INDEXED = {torch.ops.aten.index, torch.ops.aten.index_put, torch.ops.aten.index_put_}


class On(torch.Tensor):
    """A tensor on one of the devices; `here` holds its numbers."""

    here: torch.Tensor

    @staticmethod
    def __new__(cls, here: torch.Tensor, device: torch.device) -> On:
        made = torch.Tensor._make_wrapper_subclass(
            cls, here.size(), strides=here.stride(), storage_offset=here.storage_offset(), dtype=here.dtype,
            device=device,
        )  # fmt: skip
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


def _run(function: Any, args: tuple, kwargs: dict) -> Any:
    devices: list[torch.device] = []

    def here(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.dim() or isinstance(value, On):  # numbers may come from the CPU, as on a GPU
            devices.append(value.device)
        return value.here if isinstance(value, On) else value

    computed, options, packet = tree_map(here, args), tree_map(here, kwargs), function.overloadpacket
    target = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
    if target is not None:
        options["device"] = "cpu"
    mixed = set(devices) - ({torch.device("cpu")} if packet in INDEXED else set())  # indices may come from the CPU
    if packet not in MOVES and len(mixed) > 1:
        raise RuntimeError(f"{function} of tensors on {sorted(map(str, mixed))}")
    out = function(*computed, **options)
    if args and isinstance(args[0], On) and out is args[0].here:  # in place
        return args[0]
    device = target or (devices[0] if devices else torch.device("cpu"))
    if device.type != NAME:
        return out
    return tree_map(lambda value: On(value, device) if isinstance(value, torch.Tensor) else value, out)


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """What doesn't come to an operation by itself."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.tensor and torch.device(kwargs.get("device") or "cpu").type == NAME:
            return torch.tensor(*args, **(kwargs | {"device": "cpu"})).to(kwargs["device"])
        if function is torch.Tensor.tolist and isinstance(args[0], On):
            return args[0].here.tolist()
        if function is torch.Tensor.__getitem__ and isinstance(args[1], list):
            args = args[0], torch.tensor(args[1])
        return function(*args, **kwargs)


@cache
def _register() -> None:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(NAME)
    getattr(torch, NAME).get_amp_supported_dtype = lambda: [torch.float32]  # transformers 4 turns autocast off


@contextmanager
def two_devices() -> Iterator[None]:
    """``two:0`` and ``two:1`` are there."""
    _register()
    with _Functions(), _Operations(), torch.no_grad():
        yield
