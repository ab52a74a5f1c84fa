"""One step of a loop as a CUDA graph: no Python, no launches, one replay a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from constrained.decoding.device.matcher import DeviceMatcher
from constrained.errors import ConstrainedError

T = TypeVar("T")

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries make their buffers."""


def capture(
    run: Callable[[], T], matcher: DeviceMatcher, *, generator: torch.Generator | None = None
) -> tuple[Callable[[], None], T]:
    """Capture what `run` does on the device.

    The warm-up and the capture leave `matcher` as it was. `run` must read its inputs from tensors that stay (copy new
    logits into one, or let it run the model itself), and may only do what a graph can hold, such as `matcher.step`.

    Parameters
    ----------
    run : callable
        Such as ``lambda: matcher.step(logits, temperature=0.7)``.
    matcher : DeviceMatcher
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
        The matcher is not on a CUDA device.
    """
    if matcher.state.device.type != "cuda":
        raise ConstrainedError(
            f"CUDA graphs need a CUDA device; the tables are on {matcher.state.device}", "call matcher.step itself"
        )
    saved = matcher.state.clone(), matcher.left.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
            _restore(matcher, saved)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        result = run()
    return graph.replay, result


def _restore(matcher: DeviceMatcher, saved: tuple[torch.Tensor, torch.Tensor]) -> None:
    matcher.state.copy_(saved[0])
    matcher.left.copy_(saved[1])
