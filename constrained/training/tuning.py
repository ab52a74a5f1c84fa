"""Supervised fine-tuning: `tune` makes an adapter of a model, or a model, from texts.

transformers' Trainer, Accelerate and PEFT underneath. What a run is, is written into its folder first; killed and
called again with the same, it goes on from its last checkpoint and ends with the very weights of an unbroken run.
"""

from __future__ import annotations

import copy
import gc
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from peft import LoraConfig, PeftModel
from torch import nn

from constrained.errors import TrainingError
from constrained.models.adapters import around, bare, flags_kept, read_adapter
from constrained.models.load import LoadedModel
from constrained.training.batching import Rows, Shares, Step, steps_of
from constrained.training.checkpoints import last_good
from constrained.training.distributed import agreed
from constrained.training.encoding import Encoded, TrainingText, encode_all
from constrained.training.guards import check_apart, quiet, randomness_kept, readable
from constrained.training.output_folder import CHECKPOINTS, Tuned, begin, described, finish, held
from constrained.training.settings import EVERY_LINEAR, Tuning
from constrained.training.trainer import TextTrainer, arguments

__all__ = ["Tuned", "Tuning", "tune"]


def tune(
    model: LoadedModel,
    texts: Sequence[TrainingText],
    tuning: Tuning,
    folder: str | os.PathLike,
    *,
    adapter: str | os.PathLike | None = None,
) -> Tuned:
    """Tune a model on texts; the given model's weights stay as they are.

    Parameters
    ----------
    model : LoadedModel
        On the device to train on.
    texts : sequence of TrainingText
    tuning : Tuning
    folder : path
        Where the adapter goes, or the whole model; until then, checkpoints. One tuning's own.
    adapter : path, optional
        Go on from this adapter of the model: its rank, alpha and layers hold then, not those of `tuning`.

    Returns
    -------
    Tuned
        At once, where the folder holds the result already.

    Raises
    ------
    TrainingError
        There is nothing to learn from, no such layer, no memory left, or the loss is no number.
    DataError
        The folder is of another tuning, or another process is at it.
    ModelError
        The model has an adapter already, or the one to go on from doesn't fit.
    """
    folder = Path(folder).expanduser()
    bare(model)
    if tuning.whole and adapter is not None:
        raise TrainingError("all weights can't be tuned from an adapter", "merge it into the model, or leave one out")
    with quiet(), randomness_kept(), readable(tuning, folder), flags_kept(model):
        training = arguments(folder / CHECKPOINTS, tuning, _precision(model, tuning), model.device.type == "cpu")
        processes = PartialState().num_processes
        kept, left_out = encode_all(model, texts, tuning.max_length)
        run = agreed(lambda: described(model, kept, tuning, adapter, processes))
        with held(folder):
            done = agreed(lambda: begin(folder, run))
            if done is not None:
                return done
            steps = _steps(model, kept, tuning, processes)
            training.max_steps, training.warmup_steps = len(steps), math.ceil(tuning.warmup * len(steps))
            torch.manual_seed(tuning.seed)
            module = _module(model, tuning, adapter, training.device)
            history = _train(module, training, kept, steps, tuning, folder / CHECKPOINTS)
            last = history[-max(1, round(len(steps) / tuning.epochs)) :]
            tuned = Tuned(
                folder=folder,
                steps=len(steps),
                tokens=sum(len(kept[text].ids) for step in steps for row in step for text in row),
                loss=sum(note["loss"] for note in last) / len(last),
                seconds=sum(note["seconds"] for note in history),
                left_out=left_out,
            )
            agreed(lambda: finish(tuned, run, model, module))
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


def _steps(model: LoadedModel, texts: Sequence[Encoded], tuning: Tuning, processes: int) -> list[Step]:
    return steps_of(
        [len(text.ids) for text in texts],
        rows=tuning.batch * tuning.accumulation * processes,
        epochs=tuning.epochs,
        seed=tuning.seed,
        packed=min(tuning.max_length, model.max_context or tuning.max_length) if tuning.packing else None,
    )


def _module(model: LoadedModel, tuning: Tuning, adapter: str | os.PathLike | None, device: torch.device) -> Any:
    """What is trained: a copy of the model, or the model with an adapter around the very tensors."""
    if tuning.whole:
        # Updates are smaller than 16 bits can tell apart: what is tuned is float32, and saved as it was.
        module = copy.deepcopy(model.model).float().requires_grad_(True)
    else:
        if model.device.type != "cpu" and model.device != device:
            model = replace(model, model=copy.deepcopy(model.model))  # the Trainer is going to move it
        if adapter is None:
            config, weights, what = _lora(model.model, tuning), None, "a new adapter"
        else:
            what = f"adapter {os.fspath(adapter)}"
            config, weights = read_adapter(adapter, what)
            config.inference_mode = False
        module = around(model, config, weights, what, to_tune=True)
    if tuning.checkpointing:
        plain = module.get_base_model() if isinstance(module, PeftModel) else module
        enable = getattr(plain, "activation_checkpointing_enable", None) or plain.gradient_checkpointing_enable
        enable({"use_reentrant": False})  # the other kind needs inputs with gradients, which frozen embeddings lack
    return module


def _lora(model: nn.Module, tuning: Tuning) -> LoraConfig:
    """The configuration of a new adapter.

    Raises
    ------
    TrainingError
        The model has no layer of a name given; PEFT passes over those it doesn't find, as long as it finds one.
    """
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
    module: Any, training: Any, texts: list[Encoded], steps: list[Step], tuning: Tuning, checkpoints: Path
) -> list[dict]:
    """Train to the end, from the last checkpoint where there is one; the notes of all steps."""
    state = PartialState()
    shares = Shares(steps, tuning.batch, tuning.accumulation, state.process_index, state.num_processes)
    trainer = TextTrainer(module, training, Rows(texts), shares, tuning.packing)
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        raise TrainingError(
            "weights that are shared out over processes (FSDP, DeepSpeed) aren't supported here",
            "use plain data parallelism: accelerate launch --multi_gpu",
        )
    if tuning.packing:
        check_apart(module, texts, training.device)
    try:
        trainer.train(resume_from_checkpoint=agreed(lambda: last_good(checkpoints)))
    finally:
        trainer.progress.close()
        trainer.accelerator.free_memory()
        gc.collect()  # Trainer and its callbacks hold each other, and with that the optimiser's state
    return [note for note in trainer.state.log_history if "seconds" in note]
