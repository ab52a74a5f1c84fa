"""The training loop of the embedded model, with its batches.

A run resumed from its checkpoint ends with exactly the weights of an unbroken one: the order of the batches depends on
the seed alone and can be entered anywhere, and there is no dropout. A batch holds examples of similar length, so there
is little padding.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn import functional as F
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM

from constrained.errors import DataError
from constrained.training.batching import collate
from constrained.training.encoding import IGNORED, Encoded
from tools.embedded_model.examples import Example

POOL = 2048
"""Examples that are encoded and sorted by length together."""
LONGEST = 512
"""Tokens; longer examples (late steps with a long path) are left out."""
FORMATS = {"act": 0.20, "react": 0.50, "knowagent": 0.30}
"""Step format -> its share of the examples."""
SECONDS_BETWEEN = 120
"""Between two checkpoints."""


@dataclass(frozen=True)
class Recipe:
    """Sizes and schedule: together with the examples they determine the weights.

    Attributes
    ----------
    tokens : int
        Tokens to train on, padding included; the learning rate falls over them.
    batch : int
        Tokens in a batch, at most.
    rate : float
        Peak learning rate of AdamW.
    """

    hidden: int = 192
    layers: int = 4
    heads: int = 6
    inner: int = 512
    entries: int = 1024
    tokens: int = 24_000_000
    batch: int = 2048
    rate: float = 3e-3
    warmup: float = 0.03
    decay: float = 0.1
    seed: int = 0


Batch = dict[str, torch.Tensor]
"""As `collate` makes it: "input_ids" and "labels", int64 ``[examples, tokens]``; `IGNORED` outside answers."""


@dataclass(frozen=True)
class Position:
    """A position in the endless order of batches: the next batch of a pool of an epoch."""

    epoch: int = 0
    pool: int = 0
    batch: int = 0


def encode(tokenizer, texts: Sequence[tuple[str, str, str]]) -> list[Encoded]:
    """The tokens of each example with its end token; all but its prompt are learned."""
    pieces = tokenizer([piece for parts in texts for piece in parts], add_special_tokens=False)
    pieces = pieces["input_ids"] if pieces else []
    found = []
    for prompt, before, action in zip(pieces[::3], pieces[1::3], pieces[2::3]):
        answer = [*before, *action, tokenizer.eos_token_id]
        found.append(Encoded((*prompt, *answer), (*[IGNORED] * len(prompt), *answer)))
    return found


def batches(
    examples: Sequence[Example], tokenizer, *, tokens: int, seed: int, position: Position | None = None
) -> Iterator[tuple[Batch, Position]]:
    """Endless batches of at most `tokens` tokens, each with the position after it."""
    position = position or Position()
    while True:
        # Order and formats depend on the epoch alone, cuts on the pool: a run can be taken up at any batch.
        rng = random.Random(f"batches {seed} {position.epoch}")
        order = list(range(len(examples)))
        rng.shuffle(order)
        formats = rng.choices(list(FORMATS), weights=list(FORMATS.values()), k=len(order))
        for pool in range(position.pool, -(-len(order) // POOL)):
            span = range(pool * POOL, min(len(order), (pool + 1) * POOL))
            rows = encode(tokenizer, [examples[order[i]].texts(formats[i]) for i in span])
            cuts = _split(sorted((r for r in rows if len(r.ids) <= LONGEST), key=lambda r: len(r.ids)), tokens)
            random.Random(f"pool {seed} {position.epoch} {pool}").shuffle(cuts)
            for number in range(position.batch, len(cuts)):
                position = Position(position.epoch, pool, number + 1)
                yield collate([[row] for row in cuts[number]], packing=False), position
            position = Position(position.epoch, pool + 1, 0)
        position = Position(position.epoch + 1, 0, 0)


def _split(rows: list[Encoded], tokens: int) -> list[list[Encoded]]:
    """Split rows, sorted by length, into batches of at most `tokens` tokens with padding."""
    cuts: list[list[Encoded]] = []
    for row in rows:
        if cuts and (len(cuts[-1]) + 1) * len(row.ids) <= tokens:
            cuts[-1].append(row)
        else:
            cuts.append([row])
    return cuts


def make_model(recipe: Recipe, tokenizer, context: int = 1024) -> LlamaForCausalLM:
    """A Llama with tied embeddings and a context of `context` tokens, initialised from the recipe's seed."""
    torch.manual_seed(recipe.seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=recipe.hidden,
            intermediate_size=recipe.inner,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            max_position_embeddings=context,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def answer_loss(model: LlamaForCausalLM, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the answers' tokens; logits are computed for no others."""
    hidden = model.model(input_ids=batch["input_ids"], use_cache=False).last_hidden_state
    labels = batch["labels"][:, 1:]  # [B, T-1]: position t predicts token t+1
    wanted = labels != IGNORED
    return F.cross_entropy(model.lm_head(hidden[:, :-1][wanted]).float(), labels[wanted])


def rate_at(progress: float, recipe: Recipe) -> float:
    """The learning rate after a share of the run: linear warm-up, then half a cosine."""
    if progress < recipe.warmup:
        return recipe.rate * progress / recipe.warmup
    rest = (progress - recipe.warmup) / (1 - recipe.warmup)
    return recipe.rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0))))


class Run:
    """A training run that can be interrupted and resumed.

    Parameters
    ----------
    examples : sequence of Example
    tokenizer : PreTrainedTokenizerFast
    recipe : Recipe
    checkpoint : Path or None
        File for the state; read first if it exists.
    """

    def __init__(self, examples, tokenizer, recipe: Recipe, checkpoint: Path | None = None):
        self.examples, self.tokenizer, self.recipe = examples, tokenizer, recipe
        self.checkpoint = checkpoint
        self.model = make_model(recipe, tokenizer)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim == 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": recipe.decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=recipe.rate,
            betas=(0.9, 0.98),
        )
        self.position = Position()
        self.steps = 0
        self.tokens = 0
        self.seconds = 0.0
        self.losses: list[float] = []
        if checkpoint and checkpoint.exists():
            self._load(checkpoint)

    def train(
        self, *, steps: int | None = None, bf16: bool = False, on_step: Callable[[Run], None] | None = None
    ) -> None:
        """Train to the end of the recipe, or for at most `steps` more steps.

        With `bf16`, products are computed in bfloat16; weights and optimiser stay float32.
        """
        recipe = self.recipe
        order = batches(self.examples, self.tokenizer, tokens=recipe.batch, seed=recipe.seed, position=self.position)
        self.model.train()
        saved = time.monotonic()
        last = self.steps + steps if steps is not None else None
        with tqdm(total=recipe.tokens, initial=self.tokens, unit="token", unit_scale=True, disable=None) as bar:
            while self.tokens < recipe.tokens and self.steps != last:
                started = time.monotonic()
                batch, self.position = next(order)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate_at(self.tokens / recipe.tokens, recipe)
                with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    loss = answer_loss(self.model, batch)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
                self.steps += 1
                self.tokens += batch["input_ids"].numel()
                self.losses.append(loss.item())
                self.seconds += time.monotonic() - started
                if self.checkpoint and time.monotonic() - saved > SECONDS_BETWEEN:
                    self.save()
                    saved = time.monotonic()
                bar.set_postfix_str(f"loss {self.mean_loss():.4f}", refresh=False)
                bar.update(batch["input_ids"].numel())
                if on_step:
                    on_step(self)
        if self.checkpoint:
            self.save()

    def mean_loss(self) -> float:
        """Mean loss of the last hundred steps, in nats a token."""
        return sum(self.losses[-100:]) / len(self.losses[-100:])

    def save(self) -> None:
        """Write the checkpoint, completely or not at all."""
        assert self.checkpoint is not None
        state = {
            "recipe": asdict(self.recipe),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "position": asdict(self.position),
            "steps": self.steps,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "losses": self.losses,
        }
        partial = self.checkpoint.with_suffix(".partial")
        torch.save(state, partial)
        os.replace(partial, self.checkpoint)

    def _load(self, checkpoint: Path) -> None:
        state = torch.load(checkpoint, weights_only=True)
        if state["recipe"] != asdict(self.recipe):
            raise DataError(
                f"the checkpoint {checkpoint} is of another recipe",
                hint="delete it to start anew, or repeat the arguments it was made with",
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.position = Position(**state["position"])
        self.steps, self.tokens = state["steps"], state["tokens"]
        self.seconds, self.losses = state["seconds"], state["losses"]
