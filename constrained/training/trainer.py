"""The Trainer of transformers with our batches and loss, complete checkpoints, and one progress bar."""

from __future__ import annotations

import inspect
import math
import os
import time
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch.nn import functional as F
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from constrained.errors import TrainingError
from constrained.training.batching import BatchSampler, RowDataset, collate
from constrained.training.encoding import IGNORED
from constrained.training.output_folder import PARTIAL, seal
from constrained.training.settings import SCHEDULES, Tuning

SECONDS_BETWEEN = 60.0
"""Least seconds of training between two checkpoints."""

SHARE_OF_TIME = 0.05
"""Share of the time that checkpoints may take: slow checkpoints are written less often."""

_DIVERGED = "lower the learning rate, raise the warm-up, or use precision bf16 or fp32; begin in another folder"


class TextTrainer(Trainer):
    """A Trainer whose batches are laid out beforehand, in one long epoch.

    The loss is the mean cross-entropy of a step's learned tokens, over all rows and processes. If the model supports
    it, logits are computed only at positions that some row learns.
    """

    def __init__(
        self, model: Any, arguments: TrainingArguments, dataset: RowDataset, sampler: BatchSampler, packing: bool
    ):
        self.dataset, self.sampler, self.packing = dataset, sampler, packing
        self.progress = Progress(self)
        plain = model.get_base_model() if isinstance(model, PeftModel) else model
        self.keeps_logits = "logits_to_keep" in inspect.signature(plain.forward).parameters
        super().__init__(model, arguments, train_dataset=dataset, callbacks=[self.progress])
        self.remove_callback(PrinterCallback)
        # Divide the loss by the learned tokens of all batches in a step, not by the number of batches.
        self.model_accepts_loss_kwargs = True

    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(self.dataset, batch_sampler=self.sampler, collate_fn=lambda rows: collate(rows, self.packing))

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")[:, 1:]  # [B, T-1]: position t predicts token t+1
        keep = inputs["logits_to_keep"] if self.keeps_logits else inputs.pop("logits_to_keep")
        outputs = model(**inputs, use_cache=False)
        logits = outputs.logits if self.keeps_logits else outputs.logits[:, keep]
        loss = F.cross_entropy(
            logits.float().flatten(0, 1), labels[:, keep].flatten(), ignore_index=IGNORED, reduction="sum"
        )
        # Gradients are averaged over processes, and each process has only a part of the sum.
        loss = loss * self.sampler.processes / num_items_in_batch
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        self.progress.loss = self.progress.loss + loss
        return loss

    def save_model(self, output_dir=None, _internal_call=False):
        if self.args.should_save:
            # PEFT would ask the hub whether the vocabulary has grown.
            options = {"save_embedding_layers": False} if isinstance(self.model, PeftModel) else {}
            self.model.save_pretrained(output_dir, **options)

    def floating_point_ops(self, inputs) -> int:
        """Always 0: the count is not used, and computing it takes longer than a small model's step."""
        return 0


class Progress(TrainerCallback):
    """Logs the loss of each step, decides when checkpoints are due, and moves the progress bar.

    The log is the Trainer's own history, which is part of checkpoints.
    """

    def __init__(self, trainer: TextTrainer):
        self.trainer = trainer
        self.loss: torch.Tensor | float = 0.0
        self.bar: tqdm | None = None

    def on_train_begin(self, args, state, control, **_):
        disable = None if state.is_local_process_zero else True  # None: disabled unless on a terminal
        self.bar = tqdm(total=state.max_steps, initial=state.global_step, desc="tuning", unit="step", disable=disable)
        self.began = self.saved = time.monotonic()
        self.cost = 0.0

    def on_step_end(self, args, state, control, **_):
        now = time.monotonic()
        due = now - self.saved > max(SECONDS_BETWEEN, self.cost / SHARE_OF_TIME)
        # All processes must agree on the loss and on whether to save, or they would wait for each other for ever.
        accelerator = self.trainer.accelerator
        if accelerator.num_processes > 1:
            # The main process's clock decides for all of them.
            sent = [float(self.loss), float(due and accelerator.is_main_process)]
            loss, due = accelerator.reduce(torch.tensor(sent, device=accelerator.device), "sum").tolist()
            loss /= accelerator.num_processes
        else:
            loss = float(self.loss)
        self.loss = 0.0
        if not math.isfinite(loss):
            raise TrainingError(f"the loss of step {state.global_step} is {loss}", _DIVERGED)
        state.log_history.append({"step": state.global_step, "loss": loss, "seconds": now - self.began})
        self.began = now
        control.should_save = bool(due) and state.global_step < state.max_steps
        self.bar.set_postfix_str(f"loss {loss:.3f}", refresh=False)
        self.bar.update()

    def on_save(self, args, state, control, model=None, **_):
        _check_finite(model, state.global_step)
        accelerator = self.trainer.accelerator
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            partial = Path(args.output_dir)
            seal(partial / f"checkpoint-{state.global_step}", partial.parent, state.global_step)
        accelerator.wait_for_everyone()
        self.cost, self.saved = time.monotonic() - self.began, time.monotonic()

    def on_train_end(self, args, state, control, model=None, **_):
        _check_finite(model, state.global_step)

    def close(self) -> None:
        """Leave the bar on the terminal as it is."""
        if self.bar is not None:
            self.bar.close()


def _check_finite(model: torch.nn.Module, step: int) -> None:
    """Check the weights: gradients can be NaN though the loss is finite, which only the next step's loss would show."""
    for name, weight in model.named_parameters():
        if weight.requires_grad and not weight.isfinite().all():
            raise TrainingError(f"the weights {name} are not finite after step {step}", _DIVERGED)


def trainer_arguments(folder: Path, tuning: Tuning, precision: str, device: torch.device) -> TrainingArguments:
    """The Trainer's arguments; it writes only checkpoints, into `folder`.

    Creating the arguments sets up the processes, so the number of steps is filled in afterwards.
    """
    arguments = TrainingArguments(
        output_dir=os.fspath(folder / PARTIAL),
        use_cpu=device.type == "cpu",
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        learning_rate=tuning.rate,
        lr_scheduler_type=SCHEDULES[tuning.schedule],
        weight_decay=tuning.decay,
        per_device_train_batch_size=tuning.batch,
        gradient_accumulation_steps=tuning.accumulation,
        seed=tuning.seed,
        save_strategy="no",  # `Progress` decides
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_nan_inf_filter=False,
        average_tokens_across_devices=True,
        ddp_find_unused_parameters=False,
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # one GPU per process: DataParallel would split our rows again
    return arguments
