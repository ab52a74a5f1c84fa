"""Walk the gold actions of ScienceWorld's tasks: how many the action knowledge admits, what admitted ones come to.

    constrained bench scienceworld --json benchmarks/results/scienceworld.json

For every task's variation 0: the actions by which the package's own agent solved it are done one after the other, and
each is first judged by `grammars/scienceworld.lark`, bound to what is there. The package's agent solved the task in
another run of the world's dice, so that some of its actions no longer fit; the simulator refuses those.

At every tenth action both lists are held against the simulator's parser and its actions' own checks, nothing being
done: the package's list of valid actions, and actions drawn at random, a byte at a time, from what the masks allow.

An interrupted run goes on where it was: what the JSON file holds already is not walked again.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from benchmarks.engine import machine
from constrained import ActionKnowledge, __version__
from constrained.environments.scienceworld.answers import refused
from constrained.environments.scienceworld.simulator import Simulator, borrow, give_back
from constrained.environments.scienceworld.slots import asked, bindings, slots
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole

EVERY = 10
"""Every so many gold actions both lists are looked at."""

DRAWN = 20
"""Actions drawn from the masks each time."""

FATES = ("done", "question", "refused", "unknown")
"""What the simulator makes of an action: does it, asks which thing is meant, tells why not, doesn't know it."""


class Trial:
    """Tells what a simulator would make of an action, without doing it."""

    def __init__(self, simulator: Simulator):
        self._simulator = simulator
        self._actions = simulator.process.gateway.jvm.scienceworld.actions
        self._checks: dict = {}

    def fate(self, action: str) -> str:
        """Return one of `FATES`."""
        world = self._simulator.world()
        room, parser = world.getAgentVisibleObjects(False)._2(), world.inputParser()
        parsed = parser.parse(
            action, room, world.universe(), world.agent(), world.objMonitor(), world.task().goalSequence(), room
        )
        if parser.isInAmbiguousState():
            parser.clearAmbiguousState()
            return "question"
        if not parsed._1():
            return "unknown"
        found = parsed._4().get()
        name = found.getClass().getSimpleName()
        if name not in self._checks:
            self._checks[name] = getattr(getattr(self._actions, f"{name}$"), "MODULE$").isValidAction
        return "done" if self._checks[name](found.assignments())._2() else "refused"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench scienceworld`."""
    parser.add_argument("--task", action="append", help="only this one; repeatable (default: all 30)")
    parser.add_argument("--variation", type=int, default=0, help="default: 0")
    parser.add_argument("--json", type=Path, help="write the figures to this file, and go on from it")
    parser.add_argument("--anew", action="store_true", help="walk again what the file holds already")


def run_command(options: argparse.Namespace) -> int:
    """Walk, print the table, write the JSON."""
    facts = {"version": __version__, "variation": options.variation, "every": EVERY, "drawn": DRAWN}
    rows = {} if options.anew else finished(options.json, facts)
    simulator = borrow()
    try:
        tasks = options.task or list(simulator.tasks)
        knowledge = ActionKnowledge.from_lark("scienceworld")
        with tqdm(total=len(tasks), unit="task", disable=None) as bar:
            for name in tasks:
                bar.set_description(name)
                if name not in rows:
                    rows[name] = walk(simulator, knowledge, name, options.variation)
                    if options.json:
                        held = {**facts, "machine": machine.describe(), "rows": list(rows.values())}
                        write_whole(options.json, to_json(held))
                bar.update()
    finally:
        give_back(simulator)
    print(table([rows[name] for name in tasks]))
    return 0


def finished(path: Path | None, facts: dict) -> dict[str, dict]:
    """The rows that a file of an interrupted run holds, by task; none if it was of another kind."""
    if path is None or not path.exists():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        same = {key: data[key] for key in facts} == facts
        return {row["task"]: row for row in data["rows"]} if same else {}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConstrainedError(
            f"{path} is not a file of this benchmark: {error!r}", hint="name another file, or walk --anew"
        ) from error


def walk(simulator: Simulator, knowledge: ActionKnowledge, name: str, variation: int) -> dict:
    """The figures of one task."""
    gold = simulator.gold(name, variation)
    simulator.load(name, variation)
    row = Counter(gold=len(gold))
    refusals, choices, score, stepping, viewing = [], [], 0.0, 0.0, 0.0
    for action in gold:
        began = time.perf_counter()
        bound = knowledge.bind_view(bindings(simulator, choices))
        viewing += time.perf_counter() - began
        admitted = bool(bound.judge(action))
        began = time.perf_counter()
        observation, score, _ = simulator.step(action)
        stepping += time.perf_counter() - began
        row["understood"] += not refused(observation)
        row["admitted"] += admitted
        row["understood and admitted"] += admitted and not refused(observation)
        if not admitted:
            refusals.append({"action": action, "answer": observation.strip().splitlines()[0]})
        choices = asked(observation)
    lists = hold(simulator, knowledge, name, variation, gold)
    return {
        "task": name, **row, "score": score, "not_admitted": refusals, **lists,
        "seconds_per_step": stepping / len(gold), "seconds_per_view": viewing / len(gold),
    }  # fmt: skip


def hold(simulator: Simulator, knowledge: ActionKnowledge, name: str, variation: int, gold: list[str]) -> dict:
    """Both lists at every `EVERY`-th moment; on a walk of its own, as the package's list draws the world's dice."""
    simulator.load(name, variation)
    trial, rng = Trial(simulator), random.Random(name)
    drawn, valid, valid_admitted, listing = Counter(), Counter(), Counter(), []
    choices: list[str] = []
    for i, action in enumerate(gold):
        if i % EVERY == 0 and not choices:
            bound = knowledge.bind_view(slots(simulator.scene()))
            start = bound.next_action().automaton.start
            drawn.update(trial.fate(draw(start, rng)) for _ in range(DRAWN))
            began = time.perf_counter()
            listed = simulator.valid_actions()
            listing.append(time.perf_counter() - began)
            for text in rng.sample(listed, min(DRAWN, len(listed))):
                fate = trial.fate(text)
                valid[fate] += 1
                valid_admitted[fate] += bool(bound.judge(text))
        choices = asked(simulator.step(action)[0])
    return {
        "drawn": {fate: drawn[fate] for fate in FATES},
        "valid": {fate: valid[fate] for fate in FATES},
        "valid_admitted": {fate: valid_admitted[fate] for fate in FATES},
        "seconds_per_valid_list": sum(listing) / len(listing),
    }


def draw(state, rng: random.Random) -> str:
    """A random text that completes `state`, each next byte being as likely as any other."""
    text = bytearray()
    while not state.accepting or (state.first() and rng.random() < 0.5):
        byte = rng.choice(sorted(state.first()))
        text.append(byte)
        state = state.step(byte)
    return text.decode()


def table(rows: list[dict]) -> str:
    """The figures in Markdown."""
    lines = [
        "| task | gold actions | admitted | understood | of these admitted | score | steps/s | views/s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    counted = ("gold", "admitted", "understood", "understood and admitted")
    everything = {
        **{key: sum(row[key] for row in rows) for key in counted}, "task": f"**{len(rows)} tasks**",
        **{key: sum(row[key] for row in rows) / len(rows) for key in ("score", "seconds_per_step", "seconds_per_view")},
    }  # fmt: skip
    for row in [*rows, everything]:
        lines.append(
            f"| {row['task']} | " + " | ".join(f"{row[key]:,}" for key in counted)
            + f" | {row['score']:.2f} | {1 / row['seconds_per_step']:.0f} | {1 / row['seconds_per_view']:.0f} |"
        )  # fmt: skip
    lines += ["", "Not admitted:"]
    for row in rows:
        lines += [f"  {row['task']}: {one['action']!r}, answered {one['answer']!r}" for one in row["not_admitted"]]
    lines += ["", f"| what the simulator would make of | {' | '.join(FATES)} |", "|---|---:|---:|---:|---:|"]
    for key, words in (
        ("drawn", "actions drawn from the masks"),
        ("valid", "the package's valid actions"),
        ("valid_admitted", "those of them that are admitted"),
    ):
        lines.append(f"| {words} | " + " | ".join(f"{sum(row[key][fate] for row in rows):,}" for fate in FATES) + " |")
    seconds = sum(row["seconds_per_valid_list"] for row in rows) / len(rows)
    lines += ["", f"The package's list of valid actions takes {1000 * seconds:.0f} ms."]
    return "\n".join(lines)
