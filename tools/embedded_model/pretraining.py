"""The training loop of the embedded model: stops and goes on without a trace.

Started again from its checkpoint, a run gives the very weights it would have
given unbroken: the order of the batches hangs on the seed alone, and there is
no dropout.
"""

from __future__ import annotations

import math
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from constrained.errors import DataError
from tools.embedded_model.batching import IGNORED, Batch, Position, batches


@dataclass(frozen=True)
class Recipe:
    """Sizes and schedule; everything that decides the weights, with the examples.

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


def make_model(recipe: Recipe, tokenizer, context: int = 1024) -> LlamaForCausalLM:
    """A Llama with tied embeddings that reads `context` tokens, its weights drawn from the recipe's seed."""
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
    """Mean cross-entropy of the answers' tokens; logits are made for no others."""
    hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state
    labels = batch.labels[:, 1:]  # [B, T-1]: position t predicts token t+1
    wanted = labels != IGNORED
    return F.cross_entropy(model.lm_head(hidden[:, :-1][wanted]).float(), labels[wanted])


def rate_at(progress: float, recipe: Recipe) -> float:
    """Learning rate after a share of the run: linear warm-up, then half a cosine."""
    if progress < recipe.warmup:
        return recipe.rate * progress / recipe.warmup
    rest = (progress - recipe.warmup) / (1 - recipe.warmup)
    return recipe.rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0))))


class Run:
    """A training run that can be stopped and gone on with.

    Parameters
    ----------
    examples : sequence of Example
    tokenizer : PreTrainedTokenizerFast
    recipe : Recipe
    checkpoint : Path or None
        File to keep the state in; read first where it exists.
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
            self._load()

    def go_on(self, *, steps: int | None = None, minutes: float | None = None, bf16: bool = False, show=None) -> None:
        """Train to the end of the recipe, or for a number of steps.

        Parameters
        ----------
        steps : int, optional
            Stop after so many more steps (the schedule stays the recipe's).
        minutes : float, optional
            End the whole run, schedule included, after so much training time;
            how far it gets then depends on the machine.
        bf16 : bool
            Multiply in bfloat16; weights and optimiser stay float32.
        show : callable, optional
            Called with this run after each step.
        """
        order = batches(
            self.examples,
            self.tokenizer,
            tokens=self.recipe.batch,
            seed=self.recipe.seed,
            position=self.position,
        )
        self.model.train()
        saved = time.monotonic()
        last = self.steps + steps if steps is not None else None
        while self.progress(minutes) < 1 and self.steps != last:
            started = time.monotonic()
            batch, position = next(order)
            for group in self.optimizer.param_groups:
                group["lr"] = rate_at(self.progress(minutes), self.recipe)
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                loss = answer_loss(self.model, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.steps += 1
            self.tokens += batch.ids.numel()
            self.position = position
            self.losses.append(loss.item())
            self.seconds += time.monotonic() - started
            if self.checkpoint and time.monotonic() - saved > 120:
                self.save()
                saved = time.monotonic()
            if show:
                show(self)
        if self.checkpoint:
            self.save()

    def progress(self, minutes: float | None = None) -> float:
        """Share of the run that is done, by tokens or by time, whichever is more."""
        spent = self.seconds / (60 * minutes) if minutes else 0.0
        return max(self.tokens / self.recipe.tokens, spent)

    def save(self) -> None:
        """Write the checkpoint whole or not at all."""
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

    def _load(self) -> None:
        state = torch.load(self.checkpoint, weights_only=True)
        if state["recipe"] != asdict(self.recipe):
            raise DataError(
                f"the checkpoint {self.checkpoint} is of another recipe",
                hint="delete it to start anew, or repeat the arguments it was made with",
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.position = Position(**state["position"])
        self.steps, self.tokens = state["steps"], state["tokens"]
        self.seconds, self.losses = state["seconds"], state["losses"]


def show_progress(run: Run, minutes: float | None = None, every: int = 20) -> None:
    """A line with the loss, the rate and the time left."""
    if run.steps % every:
        return
    done = run.progress(minutes)
    left = run.seconds / max(done, 1e-9) * (1 - done)
    loss = sum(run.losses[-100:]) / len(run.losses[-100:])
    ending = "\r" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty() or run.steps % (5 * every) == 0:
        print(
            f"{done:6.1%}  step {run.steps}  loss {loss:.4f}  "
            f"{run.tokens / run.seconds:,.0f} tokens/s  {left / 60:.1f} min left ",
            end=ending,
            file=sys.stderr,
            flush=True,
        )
