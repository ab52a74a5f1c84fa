"""The generation loop on the device: masks, choice and state stay there, and no token is waited for.

Every token is asked, as only the device knows what was chosen; in return the host runs ahead, and the device is never
idle. The loop learns some tokens late that all texts are over; meanwhile finished rows yield padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from constrained.decoding.device.matcher import DeviceMatcher
from constrained.decoding.ragged_forward import RaggedForward
from constrained.errors import ConstrainedError

T = TypeVar("T")

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries make their buffers."""


@dataclass(eq=False)
class Prompt:
    """A row: only its prompt is known on the host."""

    ids: list[int]


def decode_on_device(
    forward: RaggedForward,
    matcher: DeviceMatcher,
    max_steps: int,
    settings: Mapping[str, Any],
    *,
    measure: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Write all rows to their ends; on a CUDA device with a static cache, a step (model, mask, choice) is one graph.

    `forward` is of the prompts, none read yet; `matcher` has the budgets set; `settings` are ``temperature``, ``top_k``
    and ``top_p`` of `DeviceMatcher.step`. Returns the tokens, int64 ``[rows, n]``, with the matcher's padding after
    each end, and if `measure` the pruned mass, float32 ``[rows, n]``, meaningless after the end.
    """
    rows, device = len(matcher), matcher.state.device
    reach = max(len(text.ids) for text in forward.texts)
    out = torch.full((rows, max_steps), matcher.pad, device=device)
    masses = torch.zeros((rows, max_steps), device=device) if measure else None
    positions = torch.tensor([[len(text.ids)] for text in forward.texts], device=device)
    tokens = torch.zeros((rows, 1), dtype=torch.long, device=device)
    column = torch.zeros(1, dtype=torch.long, device=device)

    def choose(logits: torch.Tensor) -> None:
        tokens.copy_(matcher.step(logits, pruned_mass=measure, **settings).unsqueeze(1))
        out.index_copy_(1, column, tokens)
        if masses is not None:
            assert matcher.pruned_mass is not None, "step measured it"
            masses.index_copy_(1, column, matcher.pruned_mass.unsqueeze(1))
        column.add_(1)

    def step() -> None:
        choose(forward.step(tokens, positions, reach))
        positions.add_(1)

    choose(forward.read_prompts())
    if device.type == "cuda" and forward.cache.static and max_steps > 1:
        changed = [matcher.state, matcher.left, matcher.draws, out, positions, tokens, column]
        reach += 1
        step, _ = capture(step, changed if masses is None else [*changed, masses])
    over, written = AsyncFlag(device), 1
    while written < max_steps and not over.look(matcher.finished.all()):
        reach += 1
        step()
        written += 1
    return out[:, :written], None if masses is None else masses[:, :written]


def capture(run: Callable[[], T], keep: Sequence[torch.Tensor]) -> tuple[Callable[[], None], T]:
    """Capture a step of a loop as a CUDA graph: replayed without Python and without kernel launches.

    `run` must read its inputs from tensors that keep their addresses (copy new logits into one, or let it run the
    model itself), and may only do what a graph can hold, such as `DeviceMatcher.step`.

    Parameters
    ----------
    run : callable
        Such as ``lambda: matcher.step(logits, temperature=0.7)``.
    keep : sequence of torch.Tensor
        What `run` changes, restored after the warm-up, such as ``(matcher.state, matcher.left, matcher.draws)``.

    Returns
    -------
    replay : callable
        Runs it again; returns at once.
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
        return _captured(run, keep)


def _captured(run: Callable[[], T], keep: Sequence[torch.Tensor]) -> tuple[Callable[[], None], T]:
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
    with torch.cuda.graph(graph):
        result = run()
    return graph.replay, result


class AsyncFlag:
    """Reads a condition from the device without waiting for it; on a CPU the answer is there at once.

    A loop that asked the device "are all rows finished?" at every token would stall until the token is computed. This
    one starts a copy to pinned memory and looks whether an earlier one has arrived: the loop learns of the end some
    tokens late, which costs those steps and nothing else.
    """

    def __init__(self, device: torch.device | str):
        self._asynchronous = torch.device(device).type == "cuda"
        self._copy = torch.zeros((), dtype=torch.bool, pin_memory=self._asynchronous)
        self._event = torch.cuda.Event() if self._asynchronous else None
        self._pending = False
        self._seen = False

    def look(self, condition: torch.Tensor) -> bool:
        """Whether an earlier condition (on a CPU: this one) was true; once True, always True.

        A condition is a bool tensor of one element on the device, such as ``matcher.finished.all()``.
        """
        self._collect()
        if not self._pending and not self._seen:
            self._copy.copy_(condition.reshape(()), non_blocking=True)
            if self._event is not None:
                self._event.record(torch.cuda.current_stream(condition.device))
            self._pending = True
        self._collect()
        return self._seen

    def _collect(self) -> None:
        if self._pending and (self._event is None or self._event.query()):
            self._pending = False
            self._seen = self._seen or bool(self._copy)
