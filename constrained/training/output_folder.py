"""The folder of a fine-tuning run: a lock, a record of what determines the run, checkpoints, and the finished result.

A checkpoint is either complete or absent: it is written under a temporary name, with the digests of its files, and
renamed when it is complete. If it is damaged later, the one before it is used.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock
from peft import PeftModel

from constrained.errors import DataError
from constrained.files import acquire, file_digest, to_json, write_whole
from constrained.models import LoadedModel
from constrained.models.adapters import read_adapter
from constrained.training.distributed import on_main_process
from constrained.training.encoding import Encoded, digest
from constrained.training.settings import Tuning

RECORD = "tuning.json"
"""The file that records what determines the run and, once it is finished, its result."""

CHECKPOINTS = "checkpoints"

KEPT = 2
"""Number of checkpoints to keep: the last, and one to fall back on."""

MANIFEST = "files.json"
"""The file in a checkpoint that lists the digests of the others."""

PARTIAL = ".partial"
"""The folder in which the next checkpoint, or the result, is written before it is moved to its place."""

_COMPLETE = ("adapter_config.json", "config.json")
"""The file that makes a folder loadable, as an adapter or a model; it is moved in last."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tuned:
    """The result of fine-tuning.

    Attributes
    ----------
    folder : Path
        The folder of the adapter (PEFT), or of the whole model.
    steps : int
        Number of updates of the weights.
    tokens : int
        Number of tokens read, without padding.
    loss : float
        Mean over the steps of the last epoch.
    seconds : float
        Training time, without interruptions.
    left_out : int
        Number of texts that were longer than the limit.
    """

    folder: Path
    steps: int
    tokens: int
    loss: float
    seconds: float
    left_out: int


def describe_run(
    model: LoadedModel,
    texts: Sequence[Encoded],
    tuning: Tuning,
    adapter: str | os.PathLike | None,
    processes: int,
) -> dict[str, Any]:
    """Everything that determines the resulting weights."""
    adapter_digest = None
    if adapter is not None:
        hashed = sha256()
        for name, value in sorted(read_adapter(adapter, f"adapter {os.fspath(adapter)}")[1].items()):
            hashed.update(name.encode() + value.float().numpy().tobytes())
        adapter_digest = hashed.hexdigest()[:16]
    return {
        "settings": json.loads(json.dumps(asdict(tuning))),
        "base weights": model.weights_digest(),
        "texts": digest(texts),
        "adapter to go on from": adapter_digest,
        "number of processes": processes,
    }


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if missing, for one run. Raises DataError: another run holds the lock."""
    lock = FileLock(folder / f".{RECORD}.lock")

    def lock_it() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        held, hint = f"another process is tuning into {folder}", "wait for it, or give this run a folder of its own"
        acquire(lock, held, hint)

    on_main_process(lock_it)
    try:
        yield
    finally:
        lock.release()


def begin(folder: Path, run: dict[str, Any]) -> Tuned | None:
    """Record the run, or return its result if it is finished.

    Raises DataError: the folder belongs to another run, or its record is damaged.
    """
    record = _read_record(folder)
    if record is None:
        existing = next((folder / name for name in _COMPLETE if (folder / name).exists()), None)
        if existing is not None:
            raise DataError(
                f"{existing} is there, but no {RECORD}: it isn't of this run", "give this run another folder"
            )
        write_whole(folder / RECORD, to_json({"run": run}))
        return None
    # A run that was begun with other arguments is never continued; the message names those that differ.
    result = record.get("result")
    recorded = record["run"]
    differing = [name for name in run if recorded.get(name) != run[name]]
    if result is not None and differing == ["number of processes"]:  # doesn't matter for a finished run
        differing = []
    if differing:
        if "settings" in differing:
            before = recorded.get("settings", {})
            names = ", ".join(name for name, value in run["settings"].items() if before.get(name) != value)
            differing[differing.index("settings")] = f"settings ({names})"
        raise DataError(
            f"{folder} is of a tuning with other {', other '.join(differing)}",
            "give this run a folder of its own, or repeat the arguments of the first",
        )
    if result is None or not any((folder / name).exists() for name in _COMPLETE):
        return None
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return Tuned(folder, **result)


def finish(tuned: Tuned, run: dict[str, Any], model: LoadedModel, module: Any) -> None:
    """Save the adapter or model, record the result, and remove the checkpoints."""
    folder = tuned.folder
    partial = folder / PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    if isinstance(module, PeftModel):
        module.peft_config["default"].base_model_name_or_path = model.name
        module.save_pretrained(str(partial), save_embedding_layers=False)
        (partial / "README.md").unlink(missing_ok=True)  # PEFT's template of a model card, not filled in
    else:
        module.config.use_cache = model.model.config.use_cache  # the Trainer turns it off
        module.to(model.model.dtype).save_pretrained(partial)
        model.tokenizer.save_pretrained(partial)
    for file in sorted(partial.iterdir(), key=lambda file: file.name in _COMPLETE):
        os.replace(file, folder / file.name)
    partial.rmdir()
    result = {name: value for name, value in asdict(tuned).items() if name != "folder"}
    write_whole(folder / RECORD, to_json({"run": run, "result": result}))
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def _read_record(folder: Path) -> dict[str, Any] | None:
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: damaged: {error}", "give this run another folder") from None
    if not (isinstance(record, dict) and isinstance(record.get("run"), dict)):
        raise DataError(f"{path}: not the record of a tuning", "give this run another folder")
    return record


def seal(written: Path, folder: Path, step: int) -> None:
    """Turn the folder `written` into the checkpoint of a step, and remove all but the newest `KEPT` checkpoints."""
    files = sorted(path for path in written.rglob("*") if path.is_file())
    digests = {file.relative_to(written).as_posix(): file_digest(file) for file in files}
    (written / MANIFEST).write_text(json.dumps(digests, indent=2), encoding="utf-8")
    os.replace(written, folder / f"step-{step}")
    for old in _checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)


def last_good(folder: Path) -> Path | None:
    """The newest undamaged checkpoint, or None; damaged ones are logged and renamed to ``damaged-step-N``."""
    shutil.rmtree(folder / PARTIAL, ignore_errors=True)
    for checkpoint in reversed(_checkpoints(folder)):
        damage = _damage(checkpoint)
        if damage is None:
            return checkpoint
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(checkpoint, aside)
        rest = _checkpoints(folder)
        resumed = f"resuming from {rest[-1].name}" if rest else "starting over, because there is no other"
        logger.warning("the checkpoint %s is damaged (%s): %s", checkpoint, damage, resumed)
    return None


def _checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, by step."""
    return sorted(folder.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))


def _damage(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint; None if it is intact."""
    try:
        listed = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
        for name, digest in listed.items():
            if file_digest(checkpoint / name) != digest:
                return f"{name} has changed since it was written"
    except OSError as error:
        return f"{Path(error.filename).name}: {error.strerror}"
    except (ValueError, AttributeError):
        return f"{MANIFEST} can't be read"
    return None
