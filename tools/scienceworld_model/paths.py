"""Gold paths of ScienceWorld's training variations, shortened and replayed as an agent would play them.

    python -m tools.scienceworld_model.paths --out build/scienceworld/paths.jsonl

The package's own agent knows where everything is and looks around far more than one who is shown the room at every step
needs to. A path is shortened only as far as the simulator still gives it the full score; its things are called as the
environment calls them. Some replays take detours, each undone at once, so that a model sees how to continue from other
states than the best (noise injection: Laskey et al., *DART*, 2017). Some tasks' replays are by script (`scripts`). An
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from constrained.environments.scienceworld.env import refused
from constrained.environments.scienceworld.simulator import Simulator, borrow, give_back
from tools.scienceworld_model.play import Play, room_of
from tools.scienceworld_model.scripts import SCRIPTS

OUT = Path("build/scienceworld/paths.jsonl")
CAP = 60
"""Variations of each task."""
COPIES = 3
"""Replays by script of a variation."""
SOLVED = 0.8
"""Score of a replay by script that is kept."""
ENOUGH = 0.3
"""Score of a replay that is kept: random events differ from those that the package's agent met."""
WATCH = re.compile(r"(?:examine|look at|look around|wait1|wait\b|use thermometer)")
LOOK = re.compile(r"(?:examine|look at|look around)")


def shortened(gold: Sequence[str]) -> Iterator[list[str]]:
    """Yield shorter forms of a gold path, the shortest first and the whole path last."""
    bare = [action for action in gold if action != "look around"]
    waiting = _waits([action for action in bare if not LOOK.match(action) or "plane" in action])
    yield waiting
    yield bare


def _waits(path: Sequence[str]) -> list[str]:
    """The path with long runs of watching replaced by waiting: ten steps of time for one action, then the last look."""
    out: list[str] = []
    i = 0
    while i < len(path):
        # path[i:j] is a run of watching; a short one stays as it is.
        j = i
        while j < len(path) and WATCH.match(path[j]):
            j += 1
        run = path[i:j]
        if len(run) >= 5:
            ticks = sum(10 if action == "wait" else 1 for action in run)
            looks = [action for action in run if not action.startswith("wait")]
            looks = [action for action in looks if action.startswith("use")] or looks[-1:]
            for _ in range(-(-ticks // (11 if looks else 10))):
                out.append("wait")
                out += dict.fromkeys(looks)  # its name changes when a thing melts
        else:
            out += run
        if j == i:
            out.append(path[i])
            j += 1
        i = j
    return out


def direct(path: Sequence[str], start: str) -> list[str]:
    """The path without walks that return to a room although only doors were opened on the way."""
    out: list[str] = []
    walked = [(start, 0)]  # rooms since something else was done, and the length of `out` on arrival
    for action in path:
        out.append(action)
        room = action.removeprefix("go to ")
        if room != action:
            known = [name for name, _ in walked]
            if room in known:
                del walked[known.index(room) + 1 :]
                del out[walked[-1][1] :]
            else:
                walked.append((room, len(out)))
        elif not action.startswith("open door"):
            walked = [(walked[-1][0], len(out))]
    return out


def score_of(simulator: Simulator, task: str, variation: int, path: Sequence[str]) -> tuple[float, list[str]]:
    """The score of a path, and its actions up to the last point but for those that the simulator refuses."""
    simulator.load(task, variation)
    kept, best, end = [], 0.0, 0
    for action in path:
        observation, score, over = simulator.step(action)
        if not refused(observation):
            kept.append(action)
        if score > best:
            best, end = score, len(kept)
        if over:
            return score, kept[:end] if score > 0 else []
    return best, kept[:end]


def plays(simulator: Simulator, task: str, variation: int, gold: Sequence[str], rng: random.Random) -> list[dict]:
    """Replays of the shortest form of a gold path that keeps the full score: one as it is, one with detours."""
    simulator.load(task, variation)
    start = room_of(simulator.look())
    best: tuple[float, list[str]] = (0.0, [])
    for form in shortened(gold):
        best = max(best, score_of(simulator, task, variation, direct(form, start)), key=lambda found: found[0])
        if best[0] == 1:
            break
    found = []
    for one in (None, rng):
        play = Play(simulator, task, variation)
        play.follow(best[1], one)
        found.append(play.noted(one is not None))
    return [one for one in found if one["score"] >= ENOUGH]


def scripted(simulator: Simulator, task: str, variation: int, gold: Sequence[str], rng: random.Random) -> list[dict]:
    """Replays by script; of a task with few variations, `COPIES` different ones."""
    found = []
    for _ in range(COPIES if len(simulator.variations(task, "train")) < CAP else 1):
        play = Play(simulator, task, variation)
        SCRIPTS[task](play, gold, rng)
        found.append(play.noted(False))
    return [one for one in found if one["score"] >= SOLVED]


def gold_of(path: Path, cap: int) -> list[dict]:
    """The gold paths of up to `cap` training variations of each task, generated where the file lacks them."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    held = {(row["task"], row["variation"]) for row in rows}
    simulator = borrow()
    wanted = []
    for task in simulator.tasks:
        variations = simulator.variations(task, "train")
        random.Random(task).shuffle(variations)
        wanted += [(i, task, variation) for i, variation in enumerate(variations[:cap])]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for _, task, variation in tqdm(sorted(wanted), desc="gold paths", unit="path", disable=None):
            if (task, variation) not in held:
                rows.append({"task": task, "variation": variation, "gold": simulator.gold(task, variation)})
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    give_back(simulator)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.scienceworld_model.paths", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--gold", type=Path, default=OUT.with_name("gold.jsonl"), help="file of the gold paths")
    parser.add_argument("--cap", type=int, default=CAP, help=f"variations of each task (default: {CAP})")
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    gold = gold_of(options.gold, options.cap)
    done = set()
    if options.out.exists():
        done = {(row["task"], row["variation"]) for row in map(json.loads, options.out.read_text().splitlines())}
    simulator = borrow()
    with options.out.open("a") as file:
        for row in tqdm(gold, desc="replays", unit="path", disable=None):
            task, variation = row["task"], row["variation"]
            if (task, variation) in done:
                continue
            rng = random.Random(f"{task} {variation}")
            if task in SCRIPTS:
                kept = scripted(simulator, task, variation, row["gold"], rng)
            else:
                kept = plays(simulator, task, variation, row["gold"], rng)
            for play in kept or [{"task": task, "variation": variation, "steps": []}]:
                file.write(json.dumps(play) + "\n")
            file.flush()
    give_back(simulator)


if __name__ == "__main__":
    main()
