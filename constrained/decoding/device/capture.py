"""One step of a loop as a CUDA graph: no Python, no launches, one replay a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from constrained.errors import ConstrainedError

T = TypeVar("T")

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries make their buffers."""


def capture(
    run: Callable[[], T], keep: Sequence[torch.Tensor], *, generator: torch.Generator | None = None
) -> tuple[Callable[[], None], T]:
    """Capture what `run` does on the device.

    `run` must read its inputs from tensors that stay (copy new logits into one, or let it run the model itself), and
    may only do what a graph can hold, such as `DeviceMatcher.step`.

    Parameters
    ----------
    run : callable
        Such as ``lambda: matcher.step(logits, temperature=0.7)``.
    keep : sequence of torch.Tensor
        What `run` changes and the warm-up must leave as it was, such as ``(matcher.state, matcher.left)``.
    generator : torch.Generator, optional
        The generator that `run` draws from, if not the device's own.

    Returns
    -------
    replay : callable
        Runs all of it again; returns at once.
    result
        What `run` returned: the same tensors, overwritten by every replay.

    Raises
    ------
    ConstrainedError
        A tensor is not on a CUDA device.
    """
    elsewhere = [t.device for t in keep if t.device.type != "cuda"]
    if elsewhere or not keep:
        raise ConstrainedError(
            f"CUDA graphs need a CUDA device; the tensors are on {elsewhere[0] if elsewhere else 'none'}",
            "run the loop without a graph there",
        )
    with torch.cuda.device(keep[0].device):
        return _captured(run, keep, generator)


def _captured(run: Callable[[], T], keep: Sequence[torch.Tensor], generator) -> tuple[Callable[[], None], T]:
    saved = [tensor.clone() for tensor in keep]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
            for tensor, before in zip(keep, saved):
                tensor.copy_(before)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        result = run()
    return graph.replay, result
