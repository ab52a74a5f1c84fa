"""The generation loop on the device: masks, choice and state stay there, and no token is waited for.

The host runs ahead, as only the device knows what was chosen, and the device is never idle. The loop learns some passes
late that all texts are over. A pass reads as many columns as cost nothing: a row's chosen token, and the forced text
behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch

from constrained.decoding.device.matcher import DeviceMatcher
from constrained.decoding.ragged_forward import CALL_COST, CALL_COST_ON_DEVICE, RaggedForward
from constrained.errors import ConstrainedError

T = TypeVar("T")

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries make their buffers."""


@dataclass(eq=False)
class Prompt:
    """A row: only its prompt is known on the host."""

    ids: list[int]


class Written(NamedTuple):
    """What `decode_on_device` returns."""

    tokens: torch.Tensor  # int64 [rows, max_steps], with the matcher's padding after each end
    # int64 [rows]: tokens of each row, the end-of-text token included, which may be one more than fit
    length: torch.Tensor
    pruned_mass: torch.Tensor | None  # float32 [rows, max_steps], 0 where forced
    passes: int  # calls of the model


def decode_on_device(
    forward: RaggedForward,
    matcher: DeviceMatcher,
    max_steps: int,
    settings: Mapping[str, Any],
    *,
    measure: bool = False,
) -> Written:
    """Write all rows to their ends; on a CUDA device with a static cache, a step (model, mask, choice) is one graph.

    `forward` is of the prompts, none read yet; `matcher` has the budgets set; `settings` are ``temperature``, ``top_k``
    and ``top_p`` of `DeviceMatcher.step`; `measure` asks for the pruned mass.
    """
    rows, device = len(matcher), matcher.state.device
    writer = _Writer(matcher, max_steps, measure, [len(text.ids) for text in forward.texts])
    columns = writer.columns(CALL_COST if device.type == "cpu" else CALL_COST_ON_DEVICE)
    tokens = torch.zeros((rows, columns), dtype=torch.long, device=device)
    slots = torch.zeros_like(tokens)
    reach = longest = max(len(text.ids) for text in forward.texts)

    def choose(logits: torch.Tensor) -> None:
        writer.write(logits, settings, tokens, slots)

    def step() -> None:
        choose(forward.step(tokens, slots, reach))

    choose(forward.read_prompts())
    if device.type == "cuda" and forward.cache.static and max_steps > 1:
        reach = longest + max_steps
        step, _ = capture(step, [*writer.tensors(), tokens, slots])
    over, passes = AsyncFlag(device), 1
    while passes < max_steps and not over.look(matcher.finished.all()):
        reach = min(reach + columns, longest + max_steps)
        step()
        passes += 1
    return Written(writer.out[:, :-1], writer.length.squeeze(1), writer.masses[:, :-1] if measure else None, passes)


class _Writer:
    """The texts so far on the device, and what the model reads next of each."""

    def __init__(self, matcher: DeviceMatcher, max_steps: int, measure: bool, prompts: Sequence[int]):
        self.matcher, self.max_steps, self.measure = matcher, max_steps, measure
        rows, device = len(matcher), matcher.state.device
        # One column more than is returned: what doesn't belong to a text is written there.
        self.out = torch.full((rows, max_steps + 1), matcher.pad, device=device)
        self.masses = torch.zeros((rows, max_steps + 1 if measure else 0), device=device)
        self.prompts = torch.tensor(prompts, device=device).unsqueeze(1)
        self.length = torch.zeros((rows, 1), dtype=torch.long, device=device)  # of each text, without its prompt

    def columns(self, call_cost: int) -> int:
        """Tokens that a pass reads of each row: as many as cost no more than the call, if any are ever forced."""
        return min(1 + self.matcher.tables.longest_run, max(1, call_cost // len(self.matcher)))

    def tensors(self) -> list[torch.Tensor]:
        """What `write` changes."""
        matcher = self.matcher
        return [matcher.state, matcher.left, matcher.draws, self.out, self.masses, self.length]

    def write(self, logits: torch.Tensor, settings: Any, tokens: torch.Tensor, slots: torch.Tensor) -> None:
        """Choose a token in each row, add what is forced, and set what is read next.

        `tokens` and `slots` are int64 ``[rows, columns]``, right-aligned; a slot of -1 is no token. A row in the middle
        of forced text isn't asked.
        """
        matcher, columns = self.matcher, tokens.shape[1]
        running, before = ~matcher.finished, (matcher.state.clone(), matcher.left.clone())
        asked = torch.ones_like(running) if columns == 1 else matcher.forced_length() == 0
        chosen = matcher.step(logits, pruned_mass=self.measure, **settings)
        for now, then in zip((matcher.state, matcher.left), before):
            now.copy_(torch.where(asked, now, then))
        asked = (asked & running).long()
        run, forced = matcher.read_forced(columns - asked)
        count = (asked + forced).unsqueeze(1)
        at = torch.arange(columns, device=tokens.device) - (columns - count)  # of each column, among the row's tokens
        asked = asked.unsqueeze(1)
        of_run = run.long().gather(1, (at - asked).clamp(0, run.shape[1] - 1))
        tokens.copy_(torch.where((at == 0) & (asked == 1), chosen.unsqueeze(1), of_run))
        slots.copy_(torch.where(at >= 0, self.prompts + self.length + at, -1))
        place = torch.where(at >= 0, self.length + at, self.max_steps).clamp(max=self.max_steps)
        self.out.scatter_(1, place, tokens)
        if self.measure:
            assert matcher.pruned_mass is not None, "step measured it"
            first = torch.where(asked == 1, self.length, self.max_steps).clamp(max=self.max_steps)
            self.masses.scatter_(1, first, matcher.pruned_mass.unsqueeze(1))
        self.length.add_(count)


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
