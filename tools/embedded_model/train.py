"""Train the embedded model: a small Llama that learns household games from an expert.

    python -m tools.embedded_model.train

Self-learning continues from there, and `tools.embedded_model.merge_adapter` merges what it learned into the weights:
``make embedded`` does all three. The games are ALFWorld's training games, or our own where the data is missing. An
interrupted run, started again with the same arguments, resumes from its checkpoint in ``--work``.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

# Before torch starts its threads: let them sleep, not spin, while they wait for
# each other. On two busy cores that made training four times as fast.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from constrained.agents.levels import GOAL
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import play
from constrained.environments.data import data_file
from constrained.environments.household import Game, load_games, make_game
from constrained.environments.household.env import HELD_OUT, task_of
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from tools.embedded_model.card import model_card
from tools.embedded_model.examples import INFORMED, OTHER_TASK, OWN_TASK, STEP_LIMIT, Example, make_examples
from tools.embedded_model.pretraining import FORMATS, POOL, Recipe, Run
from tools.embedded_model.tokenizer import train_tokenizer

OUT = Path("build/embedded/taught")
MAX_BYTES = 10_000_000
"""Size of weights that may ship in the repository."""
FIRST_SEED = 1_000_000_000
"""Of the games made to train on, far from the seeds of benchmarks."""
PLAY_BATCH = 32
"""Held-out games played side by side."""


def training_games(data: str | None, made: int, seed: int) -> tuple[list[Game], str]:
    """ALFWorld's training games, if available, and games of our own; with a description.

    Parameters
    ----------
    data : str or None
        Data folder, which must then hold the games; by default ``CONSTRAINED_DATA`` or the usual location.
    made : int
        Games to make, in rooms of another layout than ALFWorld's.
    seed : int
        Of the games that are made.
    """
    if data:
        os.environ["CONSTRAINED_DATA"] = data
    own = [make_game(seed=FIRST_SEED + seed * made + i) for i in range(made)]
    try:
        data_file("alfworld/games_2.1.1_train.tar.xz")
    except DataError:
        if data:
            raise
        return own, f"{made} games made from a seed"
    return [*load_games("train"), *own], f"ALFWorld 2.1.1, training games, and {made} games made from a seed"


def make_tokenizer(examples: Sequence[Example], entries: int, seed: int):
    """Train a tokenizer on some of the examples, in all three formats."""
    some = random.Random(seed).sample(examples, min(len(examples), 20_000))
    formats = list(FORMATS)
    return train_tokenizer(
        ("".join(example.texts(formats[i % len(formats)])) for i, example in enumerate(some)), entries
    )


def save_model(model, tokenizer, folder: Path) -> dict:
    """Write weights (float32 if they are small enough, else bfloat16), configuration and tokenizer.

    Returns
    -------
    dict
        ``dtype`` and ``size`` in bytes of the weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fits = sum(p.numel() for p in model.parameters()) * 4 < MAX_BYTES * 0.99
    kept = model if fits else copy.deepcopy(model).to(torch.bfloat16)
    kept.generation_config.max_new_tokens = 96
    kept.config.household_memory = True  # tells `load` that it reads a household memory
    kept.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    weights = folder / "model.safetensors"
    weights.chmod(0o644)
    # The class's name in every release of transformers, not only the latest.
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    for name in ("is_local", "local_files_only"):  # how it was loaded here
        settings.pop(name, None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    return {"dtype": "float32" if fits else "bfloat16", "size": weights.stat().st_size}


def play_games(
    model, tokenizer, games: Sequence[Game], *, step_format: str, masks: bool, limit: int = STEP_LIMIT
) -> dict[str, float]:
    """Play every game greedily, to its end or for `limit` steps.

    Returns
    -------
    dict of str to float
        Games, success, mean steps of the games won, and the share of actions without effect.
    """
    loaded = LoadedModel(model.eval(), tokenizer, "in training", model.device, is_embedded=True)
    settings = Settings(step_format, step_format, masks, limit, level=GOAL)
    tasks = [task_of(game) for game in games]
    lines = play(tasks, ActionKnowledge.from_lark("household"), {"policy": loaded}, settings, batch=PLAY_BATCH)
    ends = [line["end"] for line in lines if "end" in line]
    won = [end for end in ends if end["success"]]
    return {
        "games": len(ends),
        "success": len(won) / len(ends),
        "steps": sum(end["steps"] for end in won) / max(len(won), 1),
        "no effect": sum(end["no effect"] for end in ends) / max(sum(end["actions"] for end in ends), 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.embedded_model.train", description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="data folder (default: CONSTRAINED_DATA or ../shared/data)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the finished model")
    parser.add_argument("--work", type=Path, default=Path("build/embedded/work"), help="folder for the checkpoint")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--made", type=int, default=800, help="games to make besides ALFWorld's")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--no-play", action="store_true", help="don't play the held-out games at the end")
    for part in fields(Recipe):
        parser.add_argument(f"--{part.name}", type=type(part.default), default=part.default)
    options = parser.parse_args(arguments)
    recipe = Recipe(**{part.name: getattr(options, part.name) for part in fields(Recipe)})
    torch.set_num_threads(options.threads)

    began = time.monotonic()
    games, source = training_games(options.data, options.made, recipe.seed)
    held_out = games[::HELD_OUT]
    games = [game for i, game in enumerate(games) if i % HELD_OUT]
    examples = make_examples(games, recipe.seed)
    tokenizer = make_tokenizer(examples, recipe.entries, recipe.seed)
    counts = f"{len(games)} games, {len(examples)} examples, {len(tokenizer)} entries"
    print(f"{counts} in {time.monotonic() - began:.0f} s", file=sys.stderr)
    facts = {"source": source, "games": len(games), "held_out": len(held_out)}
    del games  # three gigabytes
    options.work.mkdir(parents=True, exist_ok=True)
    run = Run(examples, tokenizer, recipe, options.work / "checkpoint.pt")
    run.train(bf16=options.precision == "bf16")
    run.model.eval()
    facts |= asdict(recipe) | {
        "examples": len(examples),
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "entries": len(tokenizer),
        "disturbed": len(OWN_TASK) - 1,
        "noises": ", ".join(f"{noise:.0%}" for noise in OWN_TASK[1:]),
        "other": len(OTHER_TASK),
        "informed": len(INFORMED),
        "precision": {"bf16": "bfloat16", "fp32": "float32"}[options.precision],
        "tokens": run.tokens,
        "steps": run.steps,
        "passes": run.position.epoch + run.position.pool * POOL / len(examples),
        "minutes": run.seconds / 60,
        "threads": options.threads,
        "loss": run.mean_loss(),
        "command": command(parser, options),
    }
    facts |= save_model(run.model, tokenizer, options.out)
    splits = {} if options.no_play else {"Games held out from training:": held_out}
    if splits and source.startswith("ALFWorld"):
        splits["ALFWorld's seen validation games:"] = list(load_games("valid_seen"))
    tables: dict[str, dict] = {title: {} for title in splits}
    card = options.out / "README.md"
    card.write_text(model_card(facts, tables), encoding="utf-8")
    for title, played in splits.items():
        for step_format in FORMATS:
            for masks in (True, False):
                result = play_games(run.model, tokenizer, played, step_format=step_format, masks=masks)
                name = f"{step_format}, {'masked' if masks else 'free'}"
                tables[title][name] = result
                print(title, name, result, file=sys.stderr, flush=True)
                card.write_text(model_card(facts, tables), encoding="utf-8")
    print(f"{options.out} is written; {run.seconds / 60:.1f} minutes of training", file=sys.stderr)


def command(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """The command line that repeats a run, without the folders it was run in."""
    given = {
        name: value
        for name, value in vars(options).items()
        if name not in ("data", "out", "work", "no_play") and value != parser.get_default(name)
    }
    return " ".join([parser.prog, *(f"--{name} {value}" for name, value in given.items())])


if __name__ == "__main__":
    main()
