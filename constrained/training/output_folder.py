"""The folder of a tuning: one process at a time, what is tuned in it, and the result, whole or not there at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from peft import PeftModel

from constrained.agents.campaign import weights_digest
from constrained.errors import DataError
from constrained.files import to_json, write_whole
from constrained.models.adapters import read_adapter
from constrained.models.load import LoadedModel
from constrained.training.checkpoints import PARTIAL
from constrained.training.distributed import agreed
from constrained.training.encoding import Encoded, digest
from constrained.training.settings import Tuning

RECORD = "tuning.json"
"""The file that says what is tuned in a folder, and what came of it when it is done."""

CHECKPOINTS = "checkpoints"

_LAST = ("adapter_config.json", "config.json")
"""What makes a folder an adapter, or a model: it is moved in when all the rest is there."""


@dataclass(frozen=True)
class Tuned:
    """What a tuning came to.

    Attributes
    ----------
    folder : Path
        Of the adapter (PEFT), or of the whole model.
    steps : int
        Updates of the weights.
    tokens : int
        Read, without padding.
    loss : float
        Mean over the steps of the last epoch.
    seconds : float
        Of training, all its parts together.
    left_out : int
        Texts longer than the limit.
    """

    folder: Path
    steps: int
    tokens: int
    loss: float
    seconds: float
    left_out: int


def described(
    model: LoadedModel,
    texts: Sequence[Encoded],
    tuning: Tuning,
    adapter: str | os.PathLike | None,
    processes: int,
) -> dict[str, Any]:
    """Everything on which the weights depend that come of a tuning."""
    found = None
    if adapter is not None:
        found = sha256()
        for name, value in sorted(read_adapter(adapter, f"adapter {os.fspath(adapter)}")[1].items()):
            found.update(name.encode() + value.float().numpy().tobytes())
        found = found.hexdigest()[:16]
    return {
        "settings": json.loads(json.dumps(asdict(tuning))),
        "base weights": weights_digest(model),
        "texts": digest(texts),
        "adapter to go on from": found,
        "number of processes": processes,
    }


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder, for one run at a time; made where it isn't there.

    Raises
    ------
    DataError
        Another process is tuning into it.
    """
    lock = FileLock(folder / f".{RECORD}.lock")

    def acquire() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise DataError(
                f"another process is tuning into {folder}", "wait for it, or give this one a folder of its own"
            ) from None

    agreed(acquire)
    try:
        yield
    finally:
        lock.release()


def begin(folder: Path, run: dict[str, Any]) -> Tuned | None:
    """Put down what is tuned in a folder; what came of it, where that is done already.

    Raises
    ------
    DataError
        The folder is of another run, or its record is damaged.
    """
    record = _read(folder)
    if record is None:
        found = next((folder / name for name in _LAST if (folder / name).exists()), None)
        if found is not None:
            raise DataError(f"{found} is there, but no {RECORD}: it isn't of this run", "give this one another folder")
        write_whole(folder / RECORD, to_json({"run": run}))
        return None
    result = record.get("result")
    other = [name for name in run if record["run"].get(name) != run[name]]
    if result is not None and other == ["number of processes"]:  # it is done, by however many
        other = []
    if other:
        if "settings" in other:
            before, now = record["run"].get("settings", {}), run["settings"]
            named = ", ".join(name for name in now if before.get(name) != now[name])
            other[other.index("settings")] = f"settings ({named})"
        raise DataError(
            f"{folder} is of a tuning with other {', other '.join(other)}",
            "give this one a folder of its own, or repeat that one's arguments",
        )
    if result is None or not any((folder / name).exists() for name in _LAST):
        return None
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return Tuned(folder, **result)


def finish(tuned: Tuned, run: dict[str, Any], model: LoadedModel, module: Any) -> None:
    """Save what was tuned, and that it is done; checkpoints go."""
    folder = tuned.folder
    partial = folder / PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    if isinstance(module, PeftModel):
        module.peft_config["default"].base_model_name_or_path = model.name
        module.save_pretrained(partial, save_embedding_layers=False)
        (partial / "README.md").unlink(missing_ok=True)  # a form that PEFT leaves to be filled in
    else:
        module.config.use_cache = model.model.config.use_cache  # which the Trainer turns off
        module.to(model.model.dtype).save_pretrained(partial)
        model.tokenizer.save_pretrained(partial)
    for file in sorted(partial.iterdir(), key=lambda file: file.name in _LAST):
        os.replace(file, folder / file.name)
    partial.rmdir()
    result = {name: value for name, value in asdict(tuned).items() if name != "folder"}
    write_whole(folder / RECORD, to_json({"run": run, "result": result}))
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def _read(folder: Path) -> dict[str, Any] | None:
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and isinstance(record.get("run"), dict):
            return record
        problem = "not the record of a tuning"
    except ValueError as error:
        problem = f"damaged: {error}"
    raise DataError(f"{path}: {problem}", "give this run another folder")
