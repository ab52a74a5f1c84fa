"""Supervised fine-tuning: `tune` trains an adapter of a model, or the whole model, on texts.

It builds on transformers' Trainer, Accelerate and PEFT. The run is first recorded in its folder. If it is interrupted
and called again with the same arguments, it resumes from its last checkpoint, and ends with exactly the same weights as
an uninterrupted run.
"""

from __future__ import annotations

import copy
import gc
import math
import os
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from peft import LoraConfig, PeftConfig, PeftModel
from safetensors import SafetensorError
from torch import nn

from constrained.errors import DataError, TrainingError
from constrained.models import LoadedModel
from constrained.models.adapters import add_adapter, keep_requires_grad, read_adapter, require_bare
from constrained.models.loaded import quiet_transformers
from constrained.training.batching import BatchSampler, BatchStep, RowDataset, collate, lay_out_steps
from constrained.training.distributed import on_main_process
from constrained.training.encoding import Encoded, TrainingText, encode_all
from constrained.training.output_folder import CHECKPOINTS, Tuned, begin, describe_run, finish, last_good, locked
from constrained.training.settings import EVERY_LINEAR, Tuning
from constrained.training.trainer import TextTrainer, trainer_arguments

__all__ = ["Tuned", "Tuning", "tune"]

_NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")
_NO_SPACE = ("no space left", "pytorchstreamwriter")

TOLERANCE = 0.01
"""Largest difference between packed and unpacked logits, as a share of the largest logit; rounding stays below it."""

PROBED = 24
"""Tokens of each text in that comparison."""


def tune(
    model: LoadedModel,
    texts: Sequence[TrainingText],
    tuning: Tuning,
    folder: str | os.PathLike,
    *,
    adapter: str | os.PathLike | None = None,
) -> Tuned:
    """Fine-tune a model on texts; the given model's weights are not changed.

    Parameters
    ----------
    model : LoadedModel
        On the device to train on.
    texts : sequence of TrainingText
    tuning : Tuning
    folder : path
        The folder for checkpoints and then for the adapter or the whole model; no other run may use it.
    adapter : path, optional
        Continue from this adapter; its rank, alpha and layers are used, not those of `tuning`.

    Returns
    -------
    Tuned
        The result; it is returned immediately if the folder holds it already.

    Raises
    ------
    TrainingError
        There is nothing to learn, a layer doesn't exist, memory ran out, or the loss is not finite.
    DataError
        The folder belongs to another run, or another process is using it.
    ModelError
        The model already has an adapter, or the given one doesn't fit.
    """
    folder = Path(folder).expanduser()
    require_bare(model)
    if tuning.whole and adapter is not None:
        raise TrainingError("all weights can't be tuned from an adapter", "merge it into the model, or leave one out")
    with _quiet_libraries(), _preserved_random_state(), _readable_errors(tuning, folder), keep_requires_grad(model):
        # The arguments first: making them sets up the processes, which all that follows asks about.
        arguments = trainer_arguments(folder / CHECKPOINTS, tuning, _precision(model, tuning), model.device)
        processes = PartialState().num_processes
        kept, left_out = encode_all(model, texts, tuning.max_length)
        run = on_main_process(lambda: describe_run(model, kept, tuning, adapter, processes))
        with locked(folder):
            finished = on_main_process(lambda: begin(folder, run))
            if finished is not None:
                return finished
            # The whole run is laid out before the model is touched, so that it can resume at any step.
            steps = lay_out_steps(
                [len(text.ids) for text in kept],
                rows=tuning.batch * tuning.accumulation * processes,
                epochs=tuning.epochs,
                seed=tuning.seed,
                packed=min(tuning.max_length, model.max_context or tuning.max_length) if tuning.packing else None,
            )
            arguments.max_steps, arguments.warmup_steps = len(steps), math.ceil(tuning.warmup * len(steps))
            # Seeded here for the adapter's initial weights; the Trainer seeds again for dropout.
            torch.manual_seed(tuning.seed)
            module = _trainable_module(model, tuning, adapter, arguments.device)
            history = _train(module, arguments, kept, steps, tuning, folder / CHECKPOINTS)
            last_epoch = history[-max(1, round(len(steps) / tuning.epochs)) :]
            tuned = Tuned(
                folder=folder,
                steps=len(steps),
                tokens=sum(len(kept[text].ids) for step in steps for row in step for text in row),
                loss=sum(entry["loss"] for entry in last_epoch) / len(last_epoch),
                seconds=sum(entry["seconds"] for entry in history),
                left_out=left_out,
            )
            on_main_process(lambda: finish(tuned, run, model, module))
            return tuned


def _precision(model: LoadedModel, tuning: Tuning) -> str:
    on_gpu = model.device.type == "cuda"
    if tuning.precision == "fp16" and not on_gpu:
        raise TrainingError(f"fp16 needs a GPU, and {model.name} is on {model.device}", "use bf16, fp32 or auto")
    if tuning.precision != "auto":
        return tuning.precision
    if not on_gpu:
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def _trainable_module(
    model: LoadedModel, tuning: Tuning, adapter: str | os.PathLike | None, device: torch.device
) -> Any:
    """The module to train: a copy of the model, or an adapter around the model's own tensors."""
    if tuning.whole:
        # Training is in float32, because small updates would be lost in 16 bits; the result has the model's dtype.
        module = copy.deepcopy(model.model).float().requires_grad_(True)
    else:
        if model.device.type != "cpu" and model.device != device:
            copied = copy.deepcopy(model.model)  # the Trainer will move it
            model = LoadedModel(copied, model.tokenizer, model.name, model.device, model.is_embedded)
        config: PeftConfig
        if adapter is None:
            config, weights, what = _lora(model.model, tuning), None, "a new adapter"
        else:
            what = f"adapter {os.fspath(adapter)}"
            config, weights = read_adapter(adapter, what)
            config.inference_mode = False
        module = add_adapter(model, config, weights, what, to_tune=True)
    if tuning.checkpointing:
        plain: Any = module.get_base_model() if isinstance(module, PeftModel) else module
        enable = getattr(plain, "activation_checkpointing_enable", None) or plain.gradient_checkpointing_enable
        enable({"use_reentrant": False})  # reentrant needs inputs with gradients, which frozen embeddings lack
    return module


def _lora(model: nn.Module, tuning: Tuning) -> LoraConfig:
    """The configuration of a new adapter.

    Raises TrainingError: the model lacks one of the named layers; PEFT complains only if it lacks all of them.
    """
    # Layers that LoRA can adapt: those with a matrix of weights.
    names = {
        name.rpartition(".")[2]: None
        for name, module in model.named_modules()
        if getattr(getattr(module, "weight", None), "ndim", 0) == 2 and not isinstance(module, nn.Embedding)
    }
    missing = [name for name in tuning.targets if name.rpartition(".")[2] not in names]
    if missing and tuning.targets != EVERY_LINEAR:
        raise TrainingError(
            f"the model has no layer {' or '.join(missing)} to put an adapter into",
            f"targets may be {', '.join(names)}; or {EVERY_LINEAR[0]}",
        )
    return LoraConfig(
        r=tuning.rank,
        lora_alpha=tuning.alpha,
        lora_dropout=tuning.dropout,
        target_modules=EVERY_LINEAR[0] if tuning.targets == EVERY_LINEAR else list(tuning.targets),
        task_type="CAUSAL_LM",
    )


def _train(
    module: Any, arguments: Any, texts: list[Encoded], steps: list[BatchStep], tuning: Tuning, checkpoints: Path
) -> list[dict]:
    """Train to the end, from the last checkpoint if there is one, and return the log of all steps."""
    state = PartialState()
    sampler = BatchSampler(steps, tuning.batch, tuning.accumulation, state.process_index, state.num_processes)
    trainer = TextTrainer(module, arguments, RowDataset(texts), sampler, tuning.packing)
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        raise TrainingError(
            "sharded weights (FSDP, DeepSpeed) aren't supported here",
            "use plain data parallelism: accelerate launch --multi_gpu",
        )
    if tuning.packing:
        _check_packing(module, texts, arguments.device)
    # Damaged checkpoints are moved aside by one process before any of them resumes.
    checkpoint = on_main_process(lambda: last_good(checkpoints))
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    finally:
        trainer.progress.close()
        trainer.accelerator.free_memory()
        gc.collect()  # Trainer and its callbacks form a reference cycle that holds the optimiser's state
    return [entry for entry in trainer.state.log_history if "seconds" in entry]


def _check_packing(model: Any, texts: list[Encoded], device: torch.device) -> None:
    """Check that texts packed into one row don't attend to each other.

    They would if the model ignores position ids, or carries a state along the row.

    Raises TrainingError: they do.
    """
    first, last = (Encoded(text.ids[:PROBED], text.labels[:PROBED]) for text in (texts[0], texts[-1]))
    training = model.training
    model.eval()
    logits = []
    with torch.no_grad():
        for row in ([first, last], [last]):
            batch = {name: value.to(device) for name, value in collate([row], True).items()}
            output = model(input_ids=batch["input_ids"], position_ids=batch["position_ids"], use_cache=False)
            logits.append(output.logits[0, -len(last.ids) :])
    model.train(training)
    packed, alone = logits
    if (packed - alone).abs().max() > TOLERANCE * alone.abs().max():
        raise TrainingError(
            "with this model, texts that are packed into one row attend to each other", "tune without packing"
        )


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Silence the warnings and progress bars of transformers and PEFT, which are meant for their direct callers."""
    with quiet_transformers(), warnings.catch_warnings():
        for module in ("peft", "transformers", "accelerate", "torch"):
            warnings.filterwarnings("ignore", module=rf"{module}\b")
        yield


@contextmanager
def _preserved_random_state() -> Iterator[None]:
    """Restore the caller's random number generators afterwards: the Trainer seeds all of them."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@contextmanager
def _readable_errors(tuning: Tuning, folder: Path) -> Iterator[None]:
    """Turn the many errors for full memory and full disks into one error each."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError, SafetensorError) as error:
        text = str(error).lower()
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, MemoryError) or any(words in text for words in _NO_MEMORY):
            raise TrainingError(f"no memory is left for this tuning: {first_line}", _memory_hint(tuning)) from error
        if any(words in text for words in _NO_SPACE):
            raise DataError(
                f"can't write to {folder}: {first_line}",
                "free some space and call again: the run resumes from its last checkpoint",
            ) from error
        raise


def _memory_hint(tuning: Tuning) -> str:
    """A hint that names the settings which would save memory and aren't in use yet."""
    ways = []
    if tuning.batch > 1:
        ways.append(f"batch {tuning.batch // 2} with accumulation {tuning.accumulation * 2}")
    if not tuning.checkpointing:
        ways.append("gradient checkpointing")
    if tuning.packing:
        ways.append("no packing")
    ways.append(f"a max_length below {tuning.max_length}")
    if tuning.whole:
        ways.append("an adapter instead of the whole model")
    return f"try, in another folder, {', or '.join(ways)}"
