"""Replay published transcripts of ALFWorld and count the observations that are identical.

    constrained bench replay [--every N] [--json FILE]

Three sets, all played in ALFWorld's training games: the expert's 3,554 transcripts and the 510 + 510 games that
KnowAgent's Llama-2-13b played before (D0) and after (D1) a round of tuning. Every action is given to our game and its
reply compared with the transcript's, word for word; the first observation counts, too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tqdm import tqdm

from benchmarks.reporting import add_every, markdown, report
from constrained.environments.data import archive_files, data_file, fields, read_rows
from constrained.environments.household import Game, HouseholdEnv, load_games
from constrained.environments.household.env import WELCOME
from constrained.errors import DataError
from constrained.training.released import split_text

SETS = {
    "expert": "alfworld/expert_gt_traj_train.tar.xz",
    "knowagent D0": "knowagent/KnowAgentALFWorld_llama-2-13b_D0.jsonl.gz",
    "knowagent D1": "knowagent/KnowAgentALFWorld_llama-2-13b_D1.jsonl.gz",
}
ORIGINAL_STEPS_PER_SECOND = (12, 19)
"""The original engine's speed on two cores, measured on these games."""
TRAINING_GAMES = 3553
COUNTED = ("transcripts", "observations", "identical", "identical_transcripts", "outcome_agrees")


@dataclass
class Transcript:
    """A played game: its name, first observation, actions with observations, and whether it was won."""

    name: str
    first: str
    turns: list[tuple[str, str]]
    won: bool


@dataclass
class Tally:
    """Counts over the transcripts of a set (see `COUNTED`), and what differed."""

    counts: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    seconds: float = 0.0
    kinds: Counter = field(default_factory=Counter)
    differences: list[dict] = field(default_factory=list)
    missing_games: list[str] = field(default_factory=list)

    def to_json(self) -> dict:
        """The counts as plain data, with the first 50 differences."""
        return {
            **{name: self.counts[name] for name in COUNTED},
            "missing_games": self.missing_games,
            "steps_per_second": round(self.steps / self.seconds) if self.seconds else None,
            "differences_by_kind": dict(self.kinds.most_common()),
            "differences": self.differences[:50],
        }


def read_transcripts(name: str) -> Iterator[Transcript]:
    """The transcripts of a set."""
    return read_expert() if name == "expert" else read_knowagent(name)


def read_expert() -> Iterator[Transcript]:
    """The expert's transcripts; each reaches the goal."""
    for path, content in archive_files(data_file(SETS["expert"]), lambda name: name.endswith("/gt_traj.json")):
        name = "/".join(path.split("/")[-3:-1])
        try:
            texts = [turn["value"] for turn in json.loads(content)]
            yield Transcript(name, texts[0], list(zip(texts[1::2], texts[2::2])), True)
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"the expert's transcript of {name} is not a list of turns: {error!r}") from error


def read_knowagent(name: str) -> Iterator[Transcript]:
    """KnowAgent's games: lines after "> " that are neither thoughts nor paths are actions."""
    for where, run in read_rows(data_file(SETS[name])):
        title, trajectory = fields(where, run, name=str, traj=str)
        yield Transcript(title, *split_text(trajectory), bool(run.get("result")))  # some runs say 0


def transcripts_by_game() -> dict[str, list[tuple[str, Transcript]]]:
    """Name of a game -> the transcripts played in it, with the names of their sets."""
    result: dict[str, list[tuple[str, Transcript]]] = {}
    for name in SETS:
        for transcript in read_transcripts(name):
            result.setdefault(transcript.name, []).append((name, transcript))
    return result


def training_games(every: int, progress: bool) -> Iterator[Game]:
    """Each `every`-th training game, with a progress bar."""
    return iter(
        tqdm(load_games("train", every=every), total=-(-TRAINING_GAMES // every), unit="game", disable=not progress)
    )


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

    if not transcript.first.startswith(WELCOME):  # KnowAgent's lack the greeting and the blank lines
        first = "\n".join(line for line in first.split("\n") if line and line != WELCOME)
    # Turns that the transcript has after our game was won are differences, too.
    answers += ["(game over)"] * (len(transcript.turns) - len(answers))
    pairs = [("", transcript.first, first)]
    pairs += [(action, theirs, ours) for (action, theirs), ours in zip(transcript.turns, answers)]
    different = [pair for pair in pairs if pair[1] != pair[2]]
    counts = 1, len(pairs), len(pairs) - len(different), not different, transcript.won == won
    tally.counts.update(dict(zip(COUNTED, counts)))
    for action, theirs, ours in different:
        tally.kinds[action.partition(" ")[0] or "first observation"] += 1
        tally.differences.append({"game": transcript.name, "action": action, "theirs": theirs, "ours": ours})


def run(every: int = 1, progress: bool = True) -> dict[str, dict]:
    """Replay all sets in each `every`-th training game; returns `Tally.to_json` of each set."""
    waiting = transcripts_by_game()
    tallies = {name: Tally() for name in SETS}
    for game in training_games(every, progress):
        for name, transcript in waiting.pop(game.name, []):
            replay(transcript, game, tallies[name])
    if every == 1:
        for name, transcript in (left for several in waiting.values() for left in several):
            tallies[name].missing_games.append(transcript.name)
    return {name: tally.to_json() for name, tally in tallies.items()}


def table(figures: dict[str, dict]) -> str:
    """The figures as a Markdown table, and notes below it."""
    head = ["transcripts", "games", "observations", "identical", "whole games identical", "outcome agrees", "steps/s"]
    rows = [
        [name, *(f"{f[key]:,}" for key in COUNTED), f"{f['steps_per_second']:,}" if f["steps_per_second"] else "–"]
        for name, f in figures.items()
    ]
    low, high = ORIGINAL_STEPS_PER_SECOND
    notes = ["", f"The original engine makes {low} to {high} steps a second."]
    missing = [f"{name}: {game}" for name, f in figures.items() for game in f["missing_games"]]
    notes += [f"Not replayed, as its game isn't among the files: {line}" for line in missing]
    return "\n".join([markdown(head, rows), *notes])


add_arguments = add_every


def run_command(options: argparse.Namespace) -> int:
    """Print the table and the first differences, write the JSON."""
    figures = run(options.every)
    report(table(figures), figures, options)
    for name, f in figures.items():
        for difference in f["differences"][:5]:
            print(f"{name}: {json.dumps(difference)}")
    return 0
