"""Stand-ins for vLLM, which can't be installed here: its data classes, and engines that keep to what it documents.

`EngineV1` goes through the steps of docs.vllm.ai, "Custom Logits Processors", section "How the vLLM engine builds the
BatchUpdate data structure": finished requests are replaced by new ones from the lowest index on (Add); then the batch
grows at its end (Add), or what is left over is taken out (Remove) and the holes are filled from the end, the lowest
first (Move, unidirectional); then requests change places (Move, swap). `removed`, `added` and `moved` are meant in
this order, and the update is None if there are none. Lists of output tokens are handed over by reference.

`EngineV2` keeps requests in slots that are used again through a free list, as the docstrings of
vllm/v1/worker/gpu/sample/logits_processor/interface.py have it: rows of the logits in any order, several to a request
whose draft is checked, prompts in pieces, and requests that are thrown out and come back with their tokens.

A model is a function from a request's tokens to its logits; the engines take the likeliest token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

PLACEHOLDER = -1


@dataclass
class SamplingParams:
    max_tokens: int | None = 16
    min_tokens: int = 0
    extra_args: dict[str, Any] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    structured_outputs: Any = None


class MoveDirectionality(Enum):
    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass(frozen=True)
class BatchUpdate:
    batch_size: int
    removed: list[int]
    added: list[tuple[int, SamplingParams, list[int] | None, list[int]]]
    moved: list[tuple[int, int, MoveDirectionality]]


def config(tokenizer_path: str, width: int, eos: Any = None) -> SimpleNamespace:
    """What the processors read of a VllmConfig."""
    model = SimpleNamespace(
        tokenizer=tokenizer_path,
        tokenizer_mode="auto",
        tokenizer_revision=None,
        trust_remote_code=False,
        get_vocab_size=lambda: width,
        try_get_generation_config=lambda: {} if eos is None else {"eos_token_id": eos},
    )
    return SimpleNamespace(model_config=model)


@dataclass(eq=False)
class Request:
    prompt: list[int]
    params: SamplingParams
    output: list[int] = field(default_factory=list)
    finished: bool = False

    def write(self, token: int, eos: set[int]) -> None:
        self.output.append(token)
        self.finished = token in eos or len(self.output) == self.params.max_tokens


def _fill_in(running: list[tuple[Request, int]]) -> None:
    for request, token in running:
        request.output[-1] = token


Model = Callable[[list[int]], torch.Tensor]
Check = Callable[[Request, torch.Tensor, torch.Tensor], None]


class EngineV1:
    """Runs requests in batches of at most `seats`; `asynchronous` scheduling hands placeholders to `update_state`."""

    def __init__(self, processor: Any, model: Model, eos: set[int], *, seats=4, seed=0, asynchronous=False):
        self.processor, self.model, self.eos, self.seats = processor, model, eos, seats
        self.rng = np.random.default_rng(seed)
        self.asynchronous = asynchronous
        self.batch: list[Request | None] = []
        self.updates = {"replaced": 0, "removed": 0, "added": 0, "moved": 0, "swapped": 0, "none": 0}

    def run(self, requests: list[Request], check: Check | None = None) -> None:
        waiting = list(requests)
        while waiting or any(not r.finished for r in self.batch):
            free = self.seats - sum(not r.finished for r in self.batch)
            arrived = int(self.rng.integers(0, free + 1)) if any(not r.finished for r in self.batch) else free
            new, waiting = waiting[:arrived], waiting[arrived:]
            self.step(new, check)

    def step(self, new: list[Request], check: Check | None = None) -> None:
        running = [(request, request.output[-1]) for request in self.batch if request.output]
        if self.asynchronous:
            for request, _ in running:
                request.output[-1] = PLACEHOLDER
        self.processor.update_state(self._update(list(new)))
        if self.processor.needs_output_token_ids():
            _fill_in(running)  # vLLM does so right before processors are applied
        texts = [request.prompt + request.output for request in self.batch]
        before = torch.stack([self.model(text) for text in texts]) if texts else torch.empty(0, 0)
        after = self.processor.apply(before.clone()) if texts else before
        _fill_in(running)
        for request, old, row in zip(self.batch, before, after):
            if check:
                check(request, old, row)
            request.write(int(row.argmax()), self.eos)

    def _update(self, new: list[Request]) -> BatchUpdate | None:
        batch, added, moved = self.batch, [], []
        removed = [index for index, request in enumerate(batch) if request.finished]
        self.updates["replaced"] += min(len(removed), len(new))
        while new:
            index = removed.pop(0) if removed else len(batch)
            request = new.pop(0)
            added.append((index, request.params, request.prompt, request.output))
            batch[index : index + 1] = [request]
        for index in removed:
            batch[index] = None
        for hole in removed:
            while batch and batch[-1] is None:
                batch.pop()
            if hole < len(batch):
                moved.append((len(batch) - 1, hole, MoveDirectionality.UNIDIRECTIONAL))
                batch[hole] = batch.pop()
        for _ in range(int(self.rng.integers(0, 3)) if len(batch) > 1 else 0):
            one, other = (int(i) for i in self.rng.choice(len(batch), 2, replace=False))
            moved.append((one, other, MoveDirectionality.SWAP))
            batch[one], batch[other] = batch[other], batch[one]
            self.updates["swapped"] += 1
        self.updates["removed"] += len(removed)
        self.updates["added"] += len(added)
        self.updates["moved"] += sum(d is MoveDirectionality.UNIDIRECTIONAL for _, _, d in moved)
        if not (removed or added or moved):
            self.updates["none"] += 1
            return None
        return BatchUpdate(len(batch), sorted(removed, reverse=True), added, moved)


class EngineV2:
    """Runs requests in slots; `drafter` proposes tokens, which the model then checks in rows of their own."""

    def __init__(
        self,
        make: Callable[[Any], Any],
        model: Model,
        eos: set[int],
        *,
        seats=4,
        seed=0,
        longest=128,
        drafter: Callable[[Request], list[int]] = lambda request: [],
    ):
        self.model, self.eos, self.seats, self.drafter = model, eos, seats, drafter
        self.rng = np.random.default_rng(seed)
        self.tokens = torch.zeros((seats, longest), dtype=torch.int32)
        self.prompt_len = np.zeros(seats, np.int32)
        states = SimpleNamespace(
            device=torch.device("cpu"),
            max_num_reqs=seats,
            all_token_ids=SimpleNamespace(gpu=self.tokens),
            prompt_len=SimpleNamespace(np=self.prompt_len),
        )
        self.processor = make(states)
        self.free = list(range(seats))
        self.slots: dict[int, tuple[Request, int]] = {}  # slot -> request, how much of its tokens the model has read
        self.thrown_out = self.accepted = self.rejected = 0

    def run(self, requests: list[Request], check: Check | None = None) -> None:
        waiting = list(requests)
        while waiting or self.slots:
            while waiting and self.free and (not self.slots or self.rng.random() < 0.7):
                self._enter(waiting.pop(0))
            self.processor.apply_staged_writes()
            self.step(check)
            if self.slots and self.rng.random() < 0.1:
                slot = int(self.rng.choice(list(self.slots)))
                waiting.insert(0, self._leave(slot))
                self.thrown_out += 1

    def _enter(self, request: Request) -> None:
        slot = self.free.pop()
        self.tokens[slot] = int(self.rng.integers(0, 200))  # another request's tokens stood there
        written = request.prompt + request.output
        self.tokens[slot, : len(written)] = torch.tensor(written)
        self.prompt_len[slot] = len(request.prompt)
        self.slots[slot] = (request, 0)
        self.processor.add_request(slot, request.params)

    def _leave(self, slot: int) -> Request:
        self.free.append(slot)
        return self.slots.pop(slot)[0]

    def step(self, check: Check | None = None) -> None:
        order = [int(slot) for slot in self.rng.permutation(list(self.slots))]
        rows: list[tuple[int, int, int, int]] = []  # slot, offset in its request, position, token read
        logits, drafts, whole, bounds = [], {}, {}, []
        for slot in order:
            request, read = self.slots[slot]
            written = request.prompt + request.output
            end = len(written)
            if end - read > 3 and self.rng.random() < 0.5:
                end = read + 3  # a piece of the prompt: its row's choice is thrown away
            whole[slot] = end == len(written)
            draft = self.drafter(request) if whole[slot] else []
            drafts[slot] = draft
            for offset in range(len(draft) + 1):
                text = written[:end] + draft[:offset]
                rows.append((slot, offset, len(text) - 1, text[-1]))
                logits.append(self.model(text))
            bounds.append(end + len(draft) + int(self.rng.integers(0, 2)) * bool(draft))
            self.slots[slot] = (request, end)
        columns = [torch.tensor(column) for column in zip(*rows)]
        context = SimpleNamespace(
            expanded_idx_mapping=columns[0].int(),
            expanded_local_pos=columns[1].int(),
            pos=columns[2],
            input_ids=columns[3].int(),
            idx_mapping=torch.tensor(order, dtype=torch.int32),
            idx_mapping_np=np.array(order, np.int32),
            seq_lens_upper_bound_np=np.array(bounds, np.int32),
        )
        before = torch.stack(logits)
        after = self.processor.apply(before.clone(), context)
        for slot in order:
            if whole[slot]:
                self._commit(
                    slot, drafts[slot], [i for i, row in enumerate(rows) if row[0] == slot], before, after, check
                )

    def _commit(self, slot, draft, rows, before, after, check) -> None:
        """Take tokens as long as the draft agrees, and one more."""
        request, _ = self.slots[slot]
        for offset, row in enumerate(rows):
            if check:
                check(request, before[row], after[row])
            token = int(after[row].argmax())
            self.tokens[slot, len(request.prompt) + len(request.output)] = token
            request.write(token, self.eos)
            agreed = offset < len(draft) and draft[offset] == token
            self.accepted += agreed
            self.rejected += offset < len(draft) and not agreed
            if request.finished:
                self._leave(slot)
                return
            if not agreed:
                return
