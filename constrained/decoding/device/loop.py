"""The generation loop on the device: masks, choice and state stay there, and the device never waits for the host.

Only the device knows the chosen tokens. The host stays a pass ahead, so that the device always has one to begin, and
learns a pass late that all texts have ended. A pass reads as many columns as cost nothing: a row's chosen token, and
the forced text after it.

With a static cache, as on every CUDA device, what a step reads and writes keeps its address and shape: later calls
write into the same buffers, and replay the CUDA graph that the first one captured.
"""

from __future__ import annotations

import copy
import logging
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from constrained.decoding.device.matcher import DeviceMatcher
from constrained.decoding.device.tables import DeviceTables
from constrained.decoding.ragged_forward import CALL_COST, CALL_COST_ON_DEVICE, RaggedCache, RaggedForward
from constrained.errors import ConstrainedError

log = logging.getLogger(__name__)

T = TypeVar("T")

KEPT = 4
"""Buffers with their caches and graphs that are kept for later calls of one model; those used last."""

WARM_UP = 3
"""Runs before the capture, for compiling kernels and allocating libraries' buffers."""

_CAPTURING = threading.Lock()
"""Graphs are captured one at a time: to begin, the whole device is waited for, which a capture under way forbids."""

_KEPT: weakref.WeakKeyDictionary[nn.Module, OrderedDict[tuple, _Buffers]] = weakref.WeakKeyDictionary()


@dataclass(eq=False)
class Prompt:
    """A row as the host knows it: its prompt only."""

    ids: list[int]


class DecodedRows(NamedTuple):
    """The result of `decode_on_device`."""

    tokens: torch.Tensor  # int64 [rows, max_steps], with the padding after each end
    # int64 [rows]: tokens of each row, the end-of-text token included, which may be one more than fit
    length: torch.Tensor
    complete: torch.Tensor  # bool [rows]: the text is in the language
    pruned_mass: torch.Tensor | None  # float32 [rows, max_steps], 0 where forced
    passes: int  # calls of the model


def decode_on_device(
    forward: RaggedForward,
    tables: DeviceTables,
    grammars: Sequence[int],
    max_steps: int,
    settings: Mapping[str, Any],
    *,
    budget: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
    generator: torch.Generator | None = None,
    measure: bool = False,
) -> DecodedRows:
    """Write all rows to their ends.

    `forward` is of the prompts, none read yet; `settings` are ``temperature``, ``top_k`` and ``top_p`` of
    `DeviceMatcher.step`; `measure` asks for the pruned mass; the others are those of `DeviceMatcher`.
    """
    model, static = forward.forward.model, forward.cache.static
    pad = tables.eos_token_ids[0] if pad_token_id is None else pad_token_id
    sampled = settings["temperature"] != 0
    choice = (sampled, *(settings.get(name) if sampled else None for name in ("top_k", "top_p")))
    if static:
        forward.cache.capacity = _rounded(forward.cache.capacity)
    room = forward.cache.capacity if static else max_steps
    key = (room, len(grammars), tables.room, choice, pad, measure, *(_traits(model) if static else ()))

    def run(forward: RaggedForward) -> DecodedRows:
        cache = _KEPT.setdefault(model, OrderedDict())
        # Removed from the cache, so that no other thread uses it meanwhile, and so that it is dropped after an error.
        buffers = cache.pop(key, None) if static else None
        if buffers is None:
            buffers = _Buffers(tables, grammars, room, choice, pad, measure, forward.cache)
        forward.cache = buffers.cache
        buffers.begin(tables, [len(text.ids) for text in forward.texts], settings["temperature"])
        buffers.matcher.restart(grammars, budget=budget, generator=generator)
        passes = buffers.run(forward, max_steps)
        written = buffers.written(max_steps, passes)
        if static:
            cache[key] = buffers
            while len(cache) > KEPT:
                cache.popitem(last=False)
        return written

    try:
        return run(copy.copy(forward))
    except torch.OutOfMemoryError:  # try again without the cached buffers
        _KEPT.pop(model, None)
    return run(forward)


def release(model: nn.Module) -> None:
    """Free the memory that is cached for later calls of a model: key-value caches and CUDA graphs."""
    _KEPT.pop(model, None)


class _Buffers:
    """The texts so far on the device, and what the model reads next of each."""

    def __init__(
        self,
        tables: DeviceTables,
        grammars: Sequence[int],
        room: int,
        choice: tuple[bool, int | None, float | None],
        pad: int,
        measure: bool,
        cache: RaggedCache,
    ):
        self.cache, self.measure = cache, measure
        self.matcher = DeviceMatcher(tables.with_room() if cache.static else tables, grammars, pad_token_id=pad)
        rows, device = len(self.matcher), tables.device
        self.temperature = torch.zeros(rows, device=device)
        sampled, top_k, top_p = choice
        self.settings: dict[str, Any] = {
            "temperature": self.temperature if sampled else 0.0,
            "top_k": top_k,
            "top_p": top_p,
        }
        # One column more than is returned: what doesn't belong to a text is written there.
        self.out = torch.full((rows, room + 1), pad, device=device)
        self.masses = torch.zeros((rows, room + 1 if measure else 0), device=device)
        self.prompts = torch.zeros((rows, 1), dtype=torch.long, device=device)
        self.length = torch.zeros_like(self.prompts)  # tokens of each text, without its prompt
        # Columns for forced text: as many as cost no more than the call itself; one if no text is ever forced.
        cost = CALL_COST if device.type == "cpu" else CALL_COST_ON_DEVICE
        columns = min(1 + self.matcher.tables.longest_run, max(1, cost // rows))
        self.tokens = torch.zeros((rows, columns), dtype=torch.long, device=device)
        self.slots = torch.zeros_like(self.tokens)  # right-aligned; -1 is no token
        self.replay: Callable[[], None] | None = None  # the step as a graph
        self._tried = False  # whether capturing it was tried
        self._holds = weakref.ref(tables)  # whose contents the matcher's tables have

    def begin(self, tables: DeviceTables, prompts: Sequence[int], temperature: float) -> None:
        """Reset all rows; `prompts` are the lengths of the new texts' prompts."""
        if self._holds() is not tables:
            self.matcher.tables.overwrite(tables)
            self._holds = weakref.ref(tables)
        self.temperature.fill_(temperature)
        self.prompts.copy_(torch.tensor(prompts).unsqueeze(1))
        self.out.fill_(self.matcher.pad)
        for tensor in (self.masses, self.length, *self.cache.tensors()):
            tensor.zero_()

    def run(self, forward: RaggedForward, max_steps: int) -> int:
        """Write the texts; return the number of forward passes."""
        reach = max(len(text.ids) for text in forward.texts)
        end = reach + max_steps

        def step() -> None:
            self.write(forward.step(self.tokens, self.slots, reach))

        # The first step can only be captured once the prompts are read; a graph reads all slots that will be used.
        self.write(forward.read_prompts())
        if not self._tried and max_steps > 1 and _graphable(forward):
            reach, self._tried = end, True
            self.replay = _captured(step, self._changed(), type(forward.forward.model).__name__)
        over, passes = AsyncFlag(self.tokens.device), 1
        while passes < max_steps and not over.look(self.matcher.finished.all()):
            reach = min(reach + self.tokens.shape[1], end)
            (self.replay or step)()
            passes += 1
        return passes

    def _changed(self) -> list[torch.Tensor]:
        """The tensors that `write` modifies."""
        matcher = self.matcher
        return [matcher.state, matcher.left, matcher.draws, self.out, self.masses, self.length, self.tokens, self.slots]

    def written(self, max_steps: int, passes: int) -> DecodedRows:
        """A copy of the result."""
        complete = self.matcher.complete | self.matcher.finished
        masses = self.masses[:, :max_steps].clone() if self.measure else None
        return DecodedRows(self.out[:, :max_steps].clone(), self.length.squeeze(1).clone(), complete, masses, passes)

    def write(self, logits: torch.Tensor) -> None:
        """Choose a token in each row, append forced text, and set the model's next input.

        A row in the middle of forced text isn't asked.
        """
        tokens, slots, past = self.tokens, self.slots, self.out.shape[1] - 1
        matcher, columns = self.matcher, tokens.shape[1]
        # Choose in every row, as shapes are fixed, but keep the step only in rows that are asked and not finished.
        running, before = ~matcher.finished, (matcher.state.clone(), matcher.left.clone())
        asked = torch.ones_like(running) if columns == 1 else matcher.forced_length() == 0
        chosen = matcher.step(logits, pruned_mass=self.measure, **self.settings)
        for now, then in zip((matcher.state, matcher.left), before):
            now.copy_(torch.where(asked, now, then))
        asked = (asked & running).long()
        # The next input of a row, right-aligned: its chosen token, if it was asked, and the forced text after it.
        run, forced = matcher.read_forced(columns - asked)
        count = (asked + forced).unsqueeze(1)
        at = torch.arange(columns, device=tokens.device) - (columns - count)  # of each column, among the row's tokens
        asked = asked.unsqueeze(1)
        of_run = run.long().gather(1, (at - asked).clamp(0, run.shape[1] - 1))
        tokens.copy_(torch.where((at == 0) & (asked == 1), chosen.unsqueeze(1), of_run))
        slots.copy_(torch.where(at >= 0, self.prompts + self.length + at, -1))
        # Column `past` takes what doesn't belong to the text: padding, and what is beyond the limit.
        place = torch.where(at >= 0, self.length + at, past).clamp(max=past)
        self.out.scatter_(1, place, tokens)
        if self.measure:
            assert matcher.pruned_mass is not None, "step measured it"
            first = torch.where(asked == 1, self.length, past).clamp(max=past)
            self.masses.scatter_(1, first, matcher.pruned_mass.unsqueeze(1))
        self.length.add_(count)


def _rounded(tokens: int) -> int:
    """Round the cache's capacity up, by at most a quarter, so that prompts of other lengths share it."""
    step = 1 << max(0, tokens.bit_length() - 3)
    return -(-tokens // step) * step


def _traits(model: nn.Module) -> tuple:
    """What a captured graph depends on: the addresses of the model's weights, and its modules' settings."""
    plain = (bool, int, float, str)
    out: list[Any] = []
    for module in model.modules():  # in one go: `model.parameters()` would go through all modules again
        for name, value in vars(module).items():
            if module is model and name.startswith("_"):  # attributes that `generate` sets
                continue
            if isinstance(value, plain) or (isinstance(value, list) and all(isinstance(item, plain) for item in value)):
                out.append(str(value))
        for tensor in chain(module._parameters.values(), module._buffers.values()):
            out.append(None if tensor is None else (tensor.data_ptr(), tensor.dtype, tensor.shape))
        out += [*module._forward_hooks, *module._forward_pre_hooks, id(vars(module).get("forward"))]
    return (*out, getattr(getattr(model, "config", None), "_attn_implementation", None))


def _graphable(forward: RaggedForward) -> bool:
    """Whether a step can be a CUDA graph: all of it happens on one such device, at addresses that stay."""
    devices = {weight.device for weight in forward.forward.model.parameters()}
    return forward.cache.static and len(devices) == 1 and devices.pop().type == "cuda"


def _captured(step: Callable[[], None], keep: Sequence[torch.Tensor], model: str) -> Callable[[], None] | None:
    """The step as a graph; None, with a warning in the log, where the model can't be captured."""
    try:
        return capture(step, keep)[0]
    except RuntimeError as error:  # it waits for a value, there is no memory left, ...
        reason = str(error).strip().split("\n", 1)[0]
        log.warning("%s can't be captured as a CUDA graph; the loop runs without one, slower: %s", model, reason)
        return None


def capture(run: Callable[[], T], keep: Sequence[torch.Tensor]) -> tuple[Callable[[], None], T]:
    """Capture a step of a loop as a CUDA graph: replayed without Python and without kernel launches.

    `run` must read its inputs from tensors that keep their addresses; `keep` is what it changes, and is restored.

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
    RuntimeError
        Something in `run` can't be part of a graph.
    """
    elsewhere = [t.device for t in keep if t.device.type != "cuda"]
    if elsewhere or not keep:
        raise ConstrainedError(
            f"CUDA graphs need a CUDA device; the tensors are on {elsewhere[0] if elsewhere else 'none'}",
            "run the loop without a graph there",
        )
    saved = [tensor.clone() for tensor in keep]
    try:
        with _CAPTURING, torch.cuda.device(keep[0].device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    run()
                    for tensor, before in zip(keep, saved):
                        tensor.copy_(before)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads go on meanwhile
                result = run()
        return graph.replay, result
    finally:
        for tensor, before in zip(keep, saved):
            tensor.copy_(before)


class AsyncFlag:
    """A condition on the device that the host reads some steps later, so that the device never waits.

    A loop that asked the device "are all rows finished?" at every token would leave it idle from the end of a step
    until the host has launched the next. One that never asked would launch all steps long before the first has run.
    This class copies each condition to pinned memory and waits for the copy of `ahead` steps ago: the loop learns that
    late of the end, which costs those steps and nothing else.

    Parameters
    ----------
    device : torch.device or str
    ahead : int
        Steps that the host may be ahead of the device, at least 1.
    """

    def __init__(self, device: torch.device | str, ahead: int = 1):
        self.ahead, self._seen = ahead, False
        self._asynchronous = torch.device(device).type == "cuda"
        self._pending: deque[tuple[torch.Tensor, torch.cuda.Event]] = deque()  # the oldest first

    def look(self, condition: torch.Tensor) -> bool:
        """Whether the condition of `ahead` looks ago (on a CPU: this one), or one before it, was true.

        A condition is a bool tensor of one element on the device, such as ``matcher.finished.all()``.
        """
        if not self._asynchronous:
            self._seen |= bool(condition)
        elif not self._seen:
            if len(self._pending) < self.ahead:
                copied, event = torch.zeros((), dtype=torch.bool, pin_memory=True), torch.cuda.Event()
            else:
                copied, event = self._pending.popleft()
                event.synchronize()
                self._seen = bool(copied)
            copied.copy_(condition.reshape(()), non_blocking=True)
            event.record(torch.cuda.current_stream(condition.device))
            self._pending.append((copied, event))
        return self._seen
