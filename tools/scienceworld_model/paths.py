"""Gold paths of ScienceWorld's training variations, shortened and replayed as an agent would play them.

    python -m tools.scienceworld_model.paths --out build/scienceworld/paths.jsonl

The package's own agent knows where everything is and looks around far more than one who is shown the room at every step
needs to. A path is shortened only as far as the simulator still gives it the full score; its things are called as the
environment calls them. Some replays take detours, each undone at once, so that a model sees how to continue from other
states than the best (noise injection: Laskey et al., *DART*, 2017). An interrupted run goes on where it stopped.
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
from constrained.environments.scienceworld.reading import names_of, room_of
from constrained.environments.scienceworld.scene import QUESTION, Scene, answers, choices_of, slots
from constrained.environments.scienceworld.simulator import Simulator, borrow, give_back

OUT = Path("build/scienceworld/paths.jsonl")
CAP = 20
"""Variations of each task."""
ENOUGH = 0.3
"""Score of a replay that is kept: random events differ from those that the package's agent met."""
NOISE = 0.08
"""Share of the steps of a noisy replay before which there is a detour."""

WATCH = re.compile(r"(?:examine|look at|look around|wait1|wait\b|use thermometer)")
LOOK = re.compile(r"(?:examine|look at|look around)")

VERBS = (
    ("open", "", "open {}"),
    ("close", "", "close {}"),
    ("go to|go", "", "go to {}"),
    ("activate|turn on", "", "activate {}"),
    ("deactivate|turn off", "", "deactivate {}"),
    ("connect", "to", "connect {} to {}"),
    ("disconnect", "", "disconnect {}"),
    ("use", "on|with", "use {} on {}"),
    ("look at|look on|examine", "", "look at {}"),
    ("look in", "", "look in {}"),
    ("read", "", "read {}"),
    ("move|put", "to|into", "move {} to {}"),
    ("pick up|take|get", "", "pick up {}"),
    ("put down|drop", "", "put down {}"),
    ("pour", "into|to|in", "pour {} into {}"),
    ("dunk", "into|in", "dunk {} into {}"),
    ("mix|stir", "", "mix {}"),
    ("eat|consume", "", "eat {}"),
    ("flush", "", "flush {}"),
    ("focus on|focus", "", "focus on {}"),
)
"""Verbs as the package's agent writes them, what stands between two things, how the environment writes the action."""


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
        j = i
        while j < len(path) and WATCH.match(path[j]):
            j += 1
        run = path[i:j]
        if len(run) >= 5:
            ticks = sum(10 if action == "wait" else 1 for action in run)
            looks = [action for action in run if not action.startswith("wait")]
            for _ in range(-(-ticks // (11 if looks else 10))):
                out.append("wait")
                out += looks[-1:]
        else:
            out += run
        if j == i:
            out.append(path[i])
            j += 1
        i = j
    return out


def direct(path: Sequence[str], start: str) -> list[str]:
    """The path without walks that come back to a room with nothing done in between but opening doors."""
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
    both = (replay(simulator, task, variation, best[1], None), replay(simulator, task, variation, best[1], rng))
    return [one for one in both if one["score"] >= ENOUGH]


def written(action: str, scene: Scene, called: dict[int, str], choice: str = "") -> str | None:
    """An action with the names by which the environment calls its things; None if it names nothing that is there.

    `choice` is the answer that will be chosen if the action is ambiguous: it tells which things are meant.
    """
    everything = scene.names | scene.terminals
    meant = [
        f"{tail} in {where}"
        for what, where in re.findall(r"([^()]+?) \(in ([^,()]+)", choice.lower())
        for tail in _tails(what)
    ]

    def called_by(name: str) -> str | None:
        things = [thing for thing, names in everything.items() if name.lower() in names]
        chosen = [thing for thing in things if set(meant) & set(everything[thing])] if len(things) > 1 else []
        return called[(chosen or things)[0]] if things else None

    for verbs, between, form in VERBS:
        words = re.fullmatch(rf"(?:{verbs}) (.+)", action, re.IGNORECASE)
        if words is None:
            continue
        cuts = [cut.span() for cut in re.finditer(f" (?:{between}) ", words[1])] if between else [(len(words[1]),) * 2]
        for start, end in cuts:  # names have prepositions, too
            found = [called_by(part) for part in (words[1][:start], words[1][end:]) if part]
            if None not in found:
                return form.format(*found)
    return action if action in ("wait", "wait1", "inventory", "task", "look around") or action.isdigit() else None


def _tails(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i:]) for i in range(len(words))]


def replay(simulator: Simulator, task: str, variation: int, path: Sequence[str], rng: random.Random | None) -> dict:
    """Play a path under the environment's names, as far as it can be played.

    Returns
    -------
    dict
        The task's description, the first view, and the steps: what could be done (the slots' values), the action, the
        answer, the view after it, and whether it is one to learn.
    """
    description = simulator.load(task, variation)
    steps: list[dict] = []
    focused: dict[str, str] = {}
    first = view = {"look": simulator.look(), "inventory": simulator.inventory()}
    answer, score, over, pending = "", 0.0, False, list(path)

    def seen() -> tuple[Scene, dict[int, str], dict]:
        scene = simulator.scene()
        called = names_of(scene, view["look"], view["inventory"])
        return scene, called, slots(scene, called, description, focused)

    def do(action: str, learn: bool, values: dict | None) -> str:
        nonlocal view, score, over
        answer, score, over = simulator.step(action)
        if answer.startswith("You focus on"):
            focused[action.removeprefix("focus on ")] = answer
        view = {"look": simulator.look(), "inventory": simulator.inventory()}
        steps.append({"action": action, "answer": answer, "learn": learn, "score": score, "slots": values, **view})
        return answer

    while pending and not over:
        action = pending.pop(0)
        if action.isdigit() and not answer.startswith(QUESTION):
            continue  # the name that the environment uses asks no question
        if action.isdigit():
            answer = do(action, True, answers(choices_of(answer)))
            continue
        if answer.startswith(QUESTION):
            break
        scene, called, values = seen()
        if rng is not None and rng.random() < NOISE:
            _detour(do, view, values, seen, rng)
            if over:
                break
            scene, called, values = seen()
        text = written(action, scene, called)
        if text and pending and pending[0].isdigit():
            lines = re.findall(r"^(\d+):\t(.*)", simulator.step(action)[0], re.MULTILINE)
            simulator.step("")  # drops the question
            text = written(action, scene, called, dict(lines).get(pending[0], "")) or text
        if text is None:
            break
        answer = do(text, True, values)
        if refused(answer):
            break
    last = max(
        (i for i, step in enumerate(steps, 1) if step["score"] > (steps[i - 2]["score"] if i > 1 else 0)), default=0
    )
    return {
        "task": task, "variation": variation, "noisy": rng is not None, "score": max(0.0, score),
        "description": description, **first, "steps": steps[:last] if score >= 0 else [],
    }  # fmt: skip


def _detour(do, view: dict, values: dict, seen, rng: random.Random) -> None:
    """Do something that wasn't needed, and come back."""
    room = room_of(view["look"])
    ways = re.findall(r"A door to the (.+?) \(that is (\w+)\)", view["look"])
    open_, closed = ([way for way, state in ways if state == one] for one in ("open", "closed"))
    if open_ and rng.random() < 0.5:
        do(f"go to {rng.choice(open_)}", False, values)
        do(f"go to {room}", True, seen()[2])
    elif closed:
        do(f"open door to {rng.choice(closed)}", False, values)
    else:
        do("wait1", False, values)


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
            kept = plays(simulator, task, variation, row["gold"], rng)
            for play in kept or [{"task": task, "variation": variation, "steps": []}]:
                file.write(json.dumps(play) + "\n")
            file.flush()
    give_back(simulator)


if __name__ == "__main__":
    main()
