"""Play the same games in ALFWorld's original engine and in ours, and count what is identical.

    constrained bench original [--split valid_seen] [--every N] [--steps N] [--json FILE]

Each game is played twice, with the same actions in both engines: once by its published walkthrough, with an impossible
command before every action, and once at random, where every fourth command is any that can be formed with the game's
names. After every command the reply, the reward, whether the game is over and the admissible commands are compared. The
engine is the optional extra `alfworld`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice

from tqdm import tqdm

from benchmarks.reporting import add_every, markdown, report
from constrained.environments.alfworld.env import AlfworldEnv
from constrained.environments.data import data_file, fields, read_rows
from constrained.environments.household import Game, HouseholdEnv
from constrained.environments.household.game import SPLITS, game_files
from constrained.errors import DataError

RANDOM_STEPS = 40
SHOWN_DIFFERENCES = 50
IDLE = ("go to", "examine", "look", "inventory", "close")
"""Commands that would make up most of a random game if all were equally likely."""


KINDS = ("answers", "admissible commands")
"""What of both engines is compared after each command."""
IDENTICAL = tuple(f"{kind} identical" for kind in KINDS)
COUNTED = ("games", "won by their walkthrough", "moments compared", "without effect", *IDENTICAL)


@dataclass
class Comparison:
    """Counts over the games played side by side (see `COUNTED`), and what differed."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[dict] = field(default_factory=list)

    def to_json(self) -> dict:
        """The counts as plain data, with the first 50 differences."""
        versions = {name: version(name) for name in ("alfworld", "textworld")}
        counts = {name: self.counts[name] for name in COUNTED}
        return {"versions": versions, **counts, "differences": self.differences[:SHOWN_DIFFERENCES]}


def compare(name: str, content: bytes, walkthrough: list[str], steps: int, found: Comparison) -> None:
    """Play one game twice in both engines and add the comparison to `found`."""
    ours = HouseholdEnv(Game.from_json(content, name))
    original = AlfworldEnv(content, name)
    rng = random.Random(f"original {name}")  # a string seeds the same numbers on every machine
    commands = every_command(ours.game)
    try:
        found.counts["games"] += 1
        moves = [move for action in walkthrough for move in (lambda: _impossible(ours, commands, rng), action)]
        side_by_side(original, ours, moves, found)
        found.counts["won by their walkthrough"] += ours.done
        side_by_side(original, ours, (lambda: _random(ours, commands, rng) for _ in range(steps)), found)
    finally:
        original.close()


def side_by_side(original, ours, moves: Iterable[str | Callable[[], str]], found: Comparison) -> None:
    """Make the moves in both; a move that is a function is called when its turn comes."""
    _add(original, ours, None, found)
    for move in moves:
        if original.done or ours.done:
            return
        _add(original, ours, move() if callable(move) else move, found)


def _add(original: AlfworldEnv, ours: HouseholdEnv, command: str | None, found: Comparison) -> None:
    """Give one command to both, or begin the game, and compare the states that follow."""
    states = {}
    for name, env in (("original", original), ("ours", ours)):
        answer = (env.reset(), 0.0, False) if command is None else env.step(command)
        states[name] = (*answer, env.had_effect), env.admissible()
    found.counts["moments compared"] += 1
    found.counts["without effect"] += not ours.had_effect
    for kind, theirs, our in zip(KINDS, states["original"], states["ours"]):
        found.counts[f"{kind} identical"] += theirs == our
        if theirs != our:
            different = {"game": ours.game.name, "action": command, "of": kind, "theirs": theirs, "ours": our}
            found.differences.append(different)


def _random(env: HouseholdEnv, commands: list[str], rng: random.Random) -> str:
    """A random command: every fourth of all that can be formed; of the others, two thirds change something."""
    if rng.random() < 0.25:
        return rng.choice(commands)
    admissible = env.admissible()
    acting = [command for command in admissible if not command.startswith(IDLE)]
    return rng.choice(acting if acting and rng.random() < 0.67 else admissible)


def _impossible(env: HouseholdEnv, commands: list[str], rng: random.Random) -> str:
    """A command that is not admissible now."""
    admissible = set(env.admissible())
    return rng.choice([command for command in commands if command not in admissible])


def every_command(game: Game) -> list[str]:
    """All commands that can be formed with the names of a game."""
    commands = ["look", "inventory"]
    for r in game.receptacles:
        commands += [f"{verb} {r}" for verb in ("go to", "open", "close", "examine", "use")]
    for o in game.objects:
        commands += [f"use {o}", f"examine {o}"]
        for r in game.receptacles:
            commands += [f"take {o} from {r}", f"put {o} in/on {r}"]
            commands += [f"{verb} {o} with {r}" for verb in ("clean", "heat", "cool")]
        commands += [f"slice {o} with {knife}" for knife in game.objects]
    return commands


def walkthroughs() -> dict[str, list[str]]:
    """The published walkthrough of each game, in the words of these game files.

    Raises
    ------
    DataError
        The index is missing, or a row is malformed.
    """
    result = {}
    for where, row in read_rows(data_file("alfworld/index.jsonl")):
        name, actions = fields(where, row, name=str, walkthrough_move_syntax=list)
        result[name] = [_put(str(action)) for action in actions]
    return result


def _put(action: str) -> str:
    """The index says "move X to Y" for "put X in/on Y"."""
    thing, to, receptacle = action.removeprefix("move ").partition(" to ")
    return f"put {thing} in/on {receptacle}" if action.startswith("move ") and to else action


def run(split: str = "valid_seen", every: int = 1, steps: int = RANDOM_STEPS, progress: bool = True) -> dict:
    """Compare both engines on each `every`-th game of a split; see `Comparison.to_json`."""
    found, known = Comparison(), walkthroughs()
    for name, content in tqdm(islice(game_files(split), 0, None, every), unit="game", disable=not progress):
        if name not in known:
            raise DataError(f"alfworld/index.jsonl has no walkthrough of {name}", hint="fetch the file again")
        compare(name, content, known[name], steps, found)
    return {"split": split, **found.to_json()}


def table(figures: dict) -> str:
    """The figures as a Markdown table, and a note below it."""
    moments = f"{figures['moments compared']:,}"
    rows = [[kind, moments, f"{figures[f'{kind} identical']:,}"] for kind in KINDS]
    head = [f"{figures['games']} games of {figures['split']}", "moments", "identical"]
    return (
        f"{markdown(head, rows)}\n\n{figures['won by their walkthrough']} games were won by their walkthrough; "
        f"{figures['without effect']:,} of the commands had no effect."
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_every(parser)
    parser.add_argument("--split", choices=SPLITS, default="valid_seen", help="of ALFWorld (default: valid_seen)")
    parser.add_argument(
        "--steps", type=int, default=RANDOM_STEPS, help=f"random commands in a game (default {RANDOM_STEPS})"
    )


def run_command(options: argparse.Namespace) -> int:
    """Print the table and the first differences, write the JSON; 1 if anything differed."""
    figures = run(options.split, options.every, options.steps)
    report(table(figures), figures, options)
    for difference in figures["differences"][:5]:
        print(json.dumps(difference))
    return 1 if figures["differences"] else 0
