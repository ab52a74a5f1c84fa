"""Replay published transcripts of ALFWorld and count the observations that are identical.

    constrained bench replay [--every N] [--json FILE]

Three sets, all played in ALFWorld's training games: the expert's 3,554 transcripts
and the 510 + 510 games that KnowAgent's Llama-2-13b played before (D0) and after (D1)
a round of tuning.  Every action is given to our game and its answer compared with the
transcript's, word for word; the first observation counts too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tqdm import tqdm

from benchmarks import reporting
from constrained.environments.data import data_file, fields, members, read_rows
from constrained.environments.household import Game, HouseholdEnv, load_games
from constrained.environments.household.text import WELCOME
from constrained.errors import DataError
from constrained.training.released import split_text

SETS = {
    "expert": "alfworld/expert_gt_traj_train.tar.xz",
    "knowagent D0": "knowagent/KnowAgentALFWorld_llama-2-13b_D0.jsonl.gz",
    "knowagent D1": "knowagent/KnowAgentALFWorld_llama-2-13b_D1.jsonl.gz",
}
# The original engine's speed on two cores, measured on these games.
ORIGINAL_STEPS_PER_SECOND = (12, 19)
TRAINING_GAMES = 3553


@dataclass
class Transcript:
    """A game somebody played.

    Attributes
    ----------
    name : str
        The game's name, "TASK/TRIAL".
    first : str
        The first observation.
    turns : list of (str, str)
        Each action with its observation.
    won : bool or None
        Whether the goal was reached, where recorded.
    """

    name: str
    first: str
    turns: list[tuple[str, str]]
    won: bool | None


@dataclass
class Tally:
    """What replaying a set of transcripts came to."""

    transcripts: int = 0
    observations: int = 0
    identical: int = 0
    whole: int = 0
    outcome_agrees: int = 0
    steps: int = 0
    seconds: float = 0.0
    kinds: Counter = field(default_factory=Counter)
    differences: list[dict] = field(default_factory=list)
    missing_games: list[str] = field(default_factory=list)

    def to_json(self) -> dict:
        """Return the figures as plain data; the listed differences stop at 50."""
        return {
            "transcripts": self.transcripts,
            "observations": self.observations,
            "identical": self.identical,
            "identical_transcripts": self.whole,
            "outcome_agrees": self.outcome_agrees,
            "missing_games": self.missing_games,
            "steps_per_second": round(self.steps / self.seconds) if self.seconds else None,
            "differences_by_kind": dict(self.kinds.most_common()),
            "differences": self.differences[:50],
        }


def read_expert() -> Iterator[Transcript]:
    """Yield the expert's transcripts; every one ends with the goal reached."""
    for folder, content in members(data_file(SETS["expert"]), "gt_traj.json"):
        name = "/".join(folder.split("/")[-2:])
        try:
            said = [turn["value"] for turn in json.loads(content)]
            yield Transcript(name, said[0], list(zip(said[1::2], said[2::2])), True)
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"the expert's transcript of {name} is not a list of turns: {error!r}") from error


def read_knowagent(name: str) -> Iterator[Transcript]:
    """Yield KnowAgent's games: the lines after "> " that aren't thoughts or paths are actions."""
    for place, run in read_rows(data_file(SETS[name])):
        title, trajectory = fields(place, run, name=str, traj=str)
        yield Transcript(title, *split_text(trajectory), bool(run.get("result")))  # some runs say 0


def replay(transcript: Transcript, game: Game, tally: Tally) -> None:
    """Play a transcript's actions in its game and add the comparison to the tally."""
    env = HouseholdEnv(game)
    first = env.reset()
    started = time.perf_counter()
    answers = []
    won = False
    for action, _ in transcript.turns:
        if won:
            break
        answer, _, won = env.step(action)
        answers.append(answer)
    tally.seconds += time.perf_counter() - started
    tally.steps += len(answers)

    if not transcript.first.startswith(WELCOME):  # KnowAgent's drop the greeting and the blank lines
        first = "\n".join(line for line in first.split("\n") if line and line != WELCOME)
    pairs = [("", transcript.first, first)]
    pairs += [(a, theirs, ours) for (a, theirs), ours in zip(transcript.turns, answers)]
    # Turns that the transcript has after our game was won are differences too.
    pairs += [(a, theirs, "(game over)") for a, theirs in transcript.turns[len(answers) :]]
    different = [pair for pair in pairs if pair[1] != pair[2]]
    tally.transcripts += 1
    tally.observations += len(pairs)
    tally.identical += len(pairs) - len(different)
    tally.whole += not different
    tally.outcome_agrees += transcript.won is None or transcript.won == won
    for action, theirs, ours in different:
        tally.kinds[action.partition(" ")[0] or "first observation"] += 1
        tally.differences.append({"game": transcript.name, "action": action, "theirs": theirs, "ours": ours})


def run(every: int = 1, progress: bool = True) -> dict[str, dict]:
    """Replay all sets in all training games, or in each `every`-th.

    Parameters
    ----------
    every : int, optional
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    dict of str to dict
        The figures of each set; see `Tally.to_json`.
    """
    waiting: dict[str, list[tuple[str, Transcript]]] = {}
    for set_name in SETS:
        for transcript in read_expert() if set_name == "expert" else read_knowagent(set_name):
            waiting.setdefault(transcript.name, []).append((set_name, transcript))
    tallies = {set_name: Tally() for set_name in SETS}
    bar = tqdm(load_games("train", every=every), total=-(-TRAINING_GAMES // every), unit="game", disable=not progress)
    for game in bar:
        for set_name, transcript in waiting.pop(game.name, []):
            replay(transcript, game, tallies[set_name])
    if every == 1:
        for set_name, transcript in (left for several in waiting.values() for left in several):
            tallies[set_name].missing_games.append(transcript.name)
    return {name: tally.to_json() for name, tally in tallies.items()}


def table(figures: dict[str, dict]) -> str:
    """Lay the figures out as a small table in Markdown."""
    lines = [
        "| transcripts | games | observations | identical | whole games identical | outcome agrees | steps/s |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, f in figures.items():
        speed = f"{f['steps_per_second']:,}" if f["steps_per_second"] else "–"
        lines.append(
            f"| {name} | {f['transcripts']:,} | {f['observations']:,} | {f['identical']:,} "
            f"| {f['identical_transcripts']:,} | {f['outcome_agrees']:,} | {speed} |"
        )
    low, high = ORIGINAL_STEPS_PER_SECOND
    lines += ["", f"The original engine makes {low} to {high} steps a second."]
    missing = [f"{name}: {game}" for name, f in figures.items() for game in f["missing_games"]]
    lines += [f"Not replayed, as its game isn't among the files: {line}" for line in missing]
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench replay`."""
    reporting.add_arguments(parser, "replay")


def run_command(options: argparse.Namespace) -> int:
    """Print the table, write the JSON."""
    figures = run(options.every)
    reporting.give(figures, table, options)
    for name, f in figures.items():
        for difference in f["differences"][:5]:
            print(f"{name}: {json.dumps(difference)}")
    return 0
