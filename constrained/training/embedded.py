"""Train the embedded model: a small Llama that learns household games from an expert.

    python -m constrained.training.embedded

The games are ALFWorld's training games, or our own where the data is absent.
The run keeps a checkpoint in ``--work`` and, started again with the same
arguments, goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import torch

from constrained.environments.household import Game, HouseholdEnv, load_games
from constrained.errors import DataError
from constrained.training.batches import FORMATS
from constrained.training.examples import Example, expert_examples
from constrained.training.expert import Prior
from constrained.training.pretraining import Recipe, Run, show_progress
from constrained.training.rollout import play_all, scores
from constrained.training.tokenizer import train_tokenizer

OUT = Path(__file__).resolve().parents[1] / "models" / "embedded"
LARGEST = 10_000_000  # bytes of weights that may ship in the repository
NOISES = (0.0, 0.15, 0.3, 0.5)  # one play of each game for each
HELD_OUT = 25  # every so-maniest training game is kept for tuning


def training_games(data: str | None, made: int, seed: int) -> tuple[list[Game], str]:
    """ALFWorld's training games, or as many of our own, and what they are.

    Parameters
    ----------
    data : str or None
        Data folder; by default ``CONSTRAINED_DATA`` or the usual place.
    made : int
        Games to make when there is no data.
    seed : int
        Seed of the games that are made.
    """
    if data:
        os.environ["CONSTRAINED_DATA"] = data
    try:
        return list(load_games("train")), "ALFWorld 2.1.1, training games"
    except DataError:
        from constrained.environments.household import make_game

        return [make_game(seed=seed + i) for i in range(made)], f"{made} games made from seeds {seed}…"


def make_examples(games: Sequence[Game], seed: int) -> tuple[list[Example], Prior]:
    """Let the expert play the games; its prior comes from the same games."""
    prior = Prior(game.world.contents for game in games)
    envs = (HouseholdEnv(game) for game in games)
    plays = expert_examples(envs, prior, noises=NOISES, seed=seed)
    return [example for play in plays for example in play], prior


def make_tokenizer(examples: Sequence[Example], entries: int, seed: int):
    """A tokenizer learnt on some of the examples, in all three formats."""
    some = random.Random(seed).sample(examples, min(len(examples), 20_000))
    formats = list(FORMATS)
    return train_tokenizer(
        ("".join(example.texts(formats[i % len(formats)])) for i, example in enumerate(some)), entries
    )


def save_model(model, tokenizer, folder: Path) -> None:
    """Write weights (float32 where they fit, else bfloat16), configuration and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    size = sum(p.numel() for p in model.parameters())
    kept = model if size * 4 < LARGEST * 0.99 else model.to(torch.bfloat16)
    kept.generation_config.max_length = None
    kept.generation_config.max_new_tokens = 96
    kept.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m constrained.training.embedded", description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="data folder (default: CONSTRAINED_DATA or ../shared/data)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the finished model")
    parser.add_argument("--work", type=Path, default=Path("build/embedded"), help="folder for the checkpoint")
    parser.add_argument("--minutes", type=float, help="end the whole run after so much training time")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--made", type=int, default=1000, help="games to make when there is no data")
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
    examples, _ = make_examples(games, recipe.seed)
    tokenizer = make_tokenizer(examples, recipe.entries, recipe.seed)
    print(
        f"{len(games)} games, {len(examples)} examples, {len(tokenizer)} entries "
        f"in {time.monotonic() - began:.0f} s", file=sys.stderr,
    )
    options.work.mkdir(parents=True, exist_ok=True)
    run = Run(examples, tokenizer, recipe, options.work / "checkpoint.pt")
    run.go_on(
        minutes=options.minutes,
        bf16=options.precision == "bf16",
        show=lambda run: show_progress(run, options.minutes),
    )
    run.model.eval()
    results = {}
    for strategy in FORMATS if not options.no_play else ():
        for admissible in (True, False):
            envs = [HouseholdEnv(game) for game in held_out]
            result = scores(play_all(run.model, tokenizer, envs, strategy=strategy, admissible=admissible))
            results[f"{strategy}, {'masked' if admissible else 'free'}"] = result
            print(strategy, "masked" if admissible else "free", result, file=sys.stderr)
    save_model(run.model, tokenizer, options.out)
    record = {
        "source": source, "games": len(games), "examples": len(examples), "recipe": asdict(recipe),
        "steps": run.steps, "tokens": run.tokens, "minutes": run.seconds / 60,
        "epochs": run.position.epoch, "loss": sum(run.losses[-100:]) / len(run.losses[-100:]),
        "held out": results,
    }
    (options.work / "record.json").write_text(json.dumps(record, indent=2))
    print(f"{options.out} is written; {run.seconds / 60:.1f} minutes of training", file=sys.stderr)


if __name__ == "__main__":
    main()
