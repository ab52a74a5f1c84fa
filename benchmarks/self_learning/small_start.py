"""A weak base for self-learning: a household model trained by an expert on few games, for a few minutes.

The embedded model has been trained on thousands of games and wins nearly all of them, which leaves it little to learn.
This one has its architecture, and the expert's play of one training game in `HELD_OUT`, none of them held out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from constrained.environments.data import data_file
from constrained.environments.household import Game, load_games, make_game
from constrained.environments.household.suites import HELD_OUT
from constrained.errors import DataError
from constrained.files import to_json, write_whole
from tools.embedded_model.examples import make_examples
from tools.embedded_model.pretraining import Recipe, Run
from tools.embedded_model.train import FIRST_SEED, make_tokenizer, save_model

RECIPE = Recipe(tokens=500_000)
"""With masks it wins about half the held-out games; after twice as many tokens, nearly all."""

NOISE = (0.0, 0.1)
"""One expert play of each game for each level; a model that has seen no mistakes can't recover from its own."""

MADE = 142
"""Games made from a seed if ALFWorld's are missing: as many."""

RECORD = "small_start.json"


def expert_games() -> list[Game]:
    """The few games: in the archive's order by task, far from those that are held out."""
    try:
        data_file("alfworld/games_2.1.1_train.tar.xz")
    except DataError:
        return [make_game(seed=FIRST_SEED + number) for number in range(MADE)]
    return list(load_games("train", first=HELD_OUT // 2, every=HELD_OUT))


def make_small_start(
    folder: Path,
    *,
    recipe: Recipe = RECIPE,
    games: Callable[[], Sequence[Game]] = expert_games,
    on_step: Callable[[Run], None] | None = None,
) -> Path:
    """Train the model into `folder`, resuming an interrupted run; returns the folder, at once if it is finished.

    The length of training is a number of tokens, not of minutes: every machine makes the same model, up to rounding.
    Raises DataError if the folder holds a model of another recipe.
    """
    record = folder / RECORD
    if record.exists():
        if json.loads(record.read_text(encoding="utf-8"))["recipe"] != asdict(recipe):
            raise DataError(f"{folder} holds a model of another recipe", "delete the folder, or name another")
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    played = games()
    examples = make_examples(played, recipe.seed, own=NOISE, other=(), informed=())
    run = Run(examples, make_tokenizer(examples, recipe.entries, recipe.seed), recipe, folder / "checkpoint.pt")
    run.train(on_step=on_step)
    facts = save_model(run.model.eval(), run.tokenizer, folder)
    facts |= {"recipe": asdict(recipe), "games": len(played), "examples": len(examples), "tokens": run.tokens}
    write_whole(record, to_json(facts | {"seconds": run.seconds}))  # written last: now the model is complete
    run.checkpoint.unlink()
    return folder
