"""Put what self-learning learned into the embedded model for good: a round's adapter merged into the weights.

    python -m tools.embedded_model.merge_adapter runs/self-learning --out models/learned --command "constrained train ..."

The card beside the weights tells the rounds, and the command that ran them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from constrained.agents.suite_runner import weights_digest
from constrained.environments.data import read_json
from constrained.errors import ConstrainedError, DataError
from constrained.models import LoadedModel, load
from constrained.models.adapters import add_adapter, read_adapter
from constrained.models.load import EMBEDDED
from constrained.training.self_learning import best
from tools.embedded_model.card import with_self_learning
from tools.embedded_model.train import save_model


def merged(base: LoadedModel, adapter: Path) -> LoadedModel:
    """The model with the adapter in its weights.

    Parameters
    ----------
    base : LoadedModel
        Its weights are changed: load it for this alone, in float32.
    adapter : Path
        Folder of a PEFT adapter.

    Raises
    ------
    ModelError
        The adapter can't be loaded, or doesn't fit.
    """
    what = f"adapter {adapter}"
    base.model = add_adapter(base, *read_adapter(adapter, what), what).merge_and_unload().eval()
    return base


def merge_into_model(run: Path, number: int | None, base: Path, out: Path, command: str) -> int:
    """Write the model of a run's round, with its card, as a model that needs no adapter.

    Parameters
    ----------
    run : Path
        Folder of a run (see `constrained.training.self_learning`).
    number : int or None
        Of the round; None: the best on the first test suite.
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
            f"round {number} of {run} has no adapter", f"rounds 1 to {len(reports) - 1} have; of round 0 nothing is new"
        )
    loaded = load(base, device="cpu", dtype="float32")
    if weights_digest(loaded) != head["models"]["policy"]["digest"]:
        hint = "name the model that the run began with; was this adapter, or another, merged into it already?"
        raise DataError(f"{run} began with other weights than those of {base}", hint)
    card = (base / "README.md").read_text(encoding="utf-8")
    learned = merged(loaded, run / f"round-{number}" / "adapter")
    save_model(learned.model, learned.tokenizer, out)
    runs = reports[1]["synthesis"]["tasks"]
    facts = {
        "number": number, "suite": suite, "train": head["train"]["name"], "seed": head["synthesis"]["seed"],
        "rule": head["schedule"]["rule"], "runs": runs, "tasks": runs // head["schedule"]["samples"], "command": command,
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
