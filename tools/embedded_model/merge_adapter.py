"""Merge the adapter that self-learning made into the weights of the embedded model.

    python -m tools.embedded_model.merge_adapter runs/self-learning --out models/learned --command "constrained train …"

The card beside the weights reports the rounds, and the command that ran them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from constrained.environments.data import read_json
from constrained.errors import ConstrainedError, DataError
from constrained.models import load
from constrained.models.adapters import add_adapter, read_adapter
from constrained.models.source import EMBEDDED
from constrained.training.self_learning import best
from tools.embedded_model.card import with_self_learning
from tools.embedded_model.train import save_model


def merge_into_model(run: Path, number: int | None, base: Path, out: Path, command: str) -> int:
    """Write the model of a round as a model that needs no adapter, with its card.

    Parameters
    ----------
    run : Path
        Folder of a run (see `constrained.training.self_learning`).
    number : int or None
        The round; None: the best on the first test suite.
    base : Path
        Folder of the model that the run began with.
    out : Path
        Folder to write; may be `base`.
    command : str
        The command line of the run, for the card.

    Returns
    -------
    int
        The round.

    Raises
    ------
    ConstrainedError
        The run has no such round, or began with another model; something can't be read.
    """
    head, reports = read_json(run / "run.json"), read_json(run / "report.json")
    suite = head["tests"][0]["name"]
    if number is None:
        number = best(suite, reports)
    if not 0 < number < len(reports):
        raise ConstrainedError(
            f"round {number} of {run} has no adapter", f"rounds 1 to {len(reports) - 1} have; round 0 is the base"
        )
    loaded = load(base, device="cpu", dtype="float32")
    if loaded.weights_digest() != head["models"]["policy"]["digest"]:
        hint = "name the model that the run began with; was this adapter, or another, merged into it already?"
        raise DataError(f"{run} began with other weights than those of {base}", hint)
    card = (base / "README.md").read_text(encoding="utf-8")
    folder = run / f"round-{number}" / "adapter"
    what = f"adapter {folder}"
    merged = add_adapter(loaded, *read_adapter(folder, what), what).merge_and_unload().eval()
    save_model(merged, loaded.tokenizer, out)
    runs, schedule = reports[1]["synthesis"]["tasks"], head["schedule"]
    facts = {
        "number": number, "suite": suite, "train": head["train"]["name"], "seed": head["synthesis"]["seed"],
        "rule": schedule["rule"], "runs": runs, "tasks": runs // schedule["samples"], "command": command,
    }  # fmt: skip
    (out / "README.md").write_text(with_self_learning(card, facts, reports[: number + 1]), encoding="utf-8")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.embedded_model.merge_adapter", description=__doc__.split("\n")[0]
    )
    parser.add_argument("run", type=Path, help="folder of the run of self-learning")
    parser.add_argument("--round", type=int, help="default: the best on the first test suite")
    parser.add_argument(
        "--base", type=Path, default=EMBEDDED, help="what the run began with (default: the embedded model)"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    parser.add_argument("--command", required=True, help="the command line of the run, for the card")
    options = parser.parse_args(arguments)
    try:
        number = merge_into_model(options.run, options.round, options.base, options.out, options.command)
    except (ConstrainedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.out} is the model after round {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
