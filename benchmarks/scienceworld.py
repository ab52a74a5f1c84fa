"""Play the gold actions of ScienceWorld's tasks: how many the action knowledge admits, and what admitted ones do.

    constrained bench scienceworld --json benchmarks/results/scienceworld.json

For variation 0 of every task, the actions by which the package's own agent solved it are done in order; each is first
judged by `grammars/scienceworld.lark`, bound to the current state. The agent solved the task with other random events,
so some of its actions no longer apply; the simulator refuses those.

At every tenth action two lists are checked by the simulator's parser and its actions' own checks, without doing
anything: the package's valid actions, and actions drawn at random, byte by byte, from what the masks allow.

An interrupted run is resumed: tasks that the JSON file holds are not played again.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from tqdm import tqdm

from benchmarks.reporting import add_json, describe_machine, markdown, note_record
from benchmarks.result_files import finished_rows
from constrained import ActionKnowledge, __version__
from constrained.environments.base import Binding
from constrained.environments.scienceworld.env import refused
from constrained.environments.scienceworld.scene import ABLE, Scene, answers, choices_of
from constrained.environments.scienceworld.simulator import Simulator, borrow, give_back
from constrained.files import to_json, write_whole

EVERY = 10
"""Gold actions between two checks of the lists."""

DRAWN = 20
"""Actions drawn from the masks at each check."""

FATES = ("done", "question", "refused", "unknown")
"""What the simulator does with an action: does it, asks which object is meant, says why not, doesn't know it."""


TOLERATED = {"SHUT": ("open", "close"), "OPENED": ("open", "close"), "LOOSE": ("pick up", "put down")}
"""What `ABLE` says, where it is less: the package's own agent opens doors that are open, and picks up what it has."""


def bindings(simulator: Simulator, choices: Sequence[str] = ()) -> dict[str, Binding]:
    """The slots' values now, with all names of each thing; `choices` are the answers to an open question."""
    if choices:
        return answers(list(choices))
    scene = simulator.scene()
    spelled = spellings(scene)

    def names(things: Iterable[int]) -> list[str]:
        return sorted({name for thing in things for name in spelled[thing]})

    view: dict[str, Binding] = {"FREE": [""], "OTHER": [""], "WAIT": ["wait", "wait1"], "NUMBER": []}
    view |= dict.fromkeys(("THING", "WANTED"), names(scene.names))
    for slot, kinds in (ABLE | TOLERATED).items():
        view[slot] = names(set().union(*(scene.able.get(kind, ()) for kind in kinds)))
    return view


def spellings(scene: Scene) -> dict[int, list[str]]:
    """All names of each thing, in lower case and as observations write them: gold actions have either form."""
    capitals = {name.lower(): name for name in sorted(scene.capitals)}
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in sorted(capitals, key=len, reverse=True)))
    return {
        thing: [*small, *((pattern.sub(lambda m: capitals[m[0]], name) for name in small) if capitals else ())]
        for thing, small in (scene.names | scene.terminals).items()
    }


class Trial:
    """Tells what a simulator would do with an action, without doing it."""

    def __init__(self, simulator: Simulator):
        self._simulator = simulator
        self._actions = simulator.process.gateway.jvm.scienceworld.actions
        self._checks: dict = {}

    def fate(self, action: str) -> str:
        """One of `FATES`."""
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
    parser.add_argument("--task", action="append", help="only this one; repeatable (default: all 30)")
    parser.add_argument("--variation", type=int, default=0, help="default: 0")
    add_json(parser)
    parser.add_argument("--anew", action="store_true", help="play tasks again that the file holds already")


def run_command(options: argparse.Namespace) -> int:
    facts = {"version": __version__, "variation": options.variation, "every": EVERY, "drawn": DRAWN}
    rows = {row["task"]: row for row in finished_rows(None if options.anew else options.json, facts)}
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
                        held = {**facts, "machine": describe_machine(), "rows": list(rows.values())}
                        write_whole(options.json, to_json(held))
                bar.update()
    finally:
        give_back(simulator)
    if options.json:
        note_record(options.json)
    print(table([rows[name] for name in tasks]))
    return 0


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
        choices = choices_of(observation)
    lists = hold(simulator, knowledge, name, variation, gold)
    return {
        "task": name, **row, "score": score, "not_admitted": refusals, **lists,
        "seconds_per_step": stepping / len(gold), "seconds_per_view": viewing / len(gold),
    }  # fmt: skip


def hold(simulator: Simulator, knowledge: ActionKnowledge, name: str, variation: int, gold: list[str]) -> dict:
    """Check both lists at every `EVERY`-th action, in a separate game: the package's list consumes random numbers."""
    simulator.load(name, variation)
    trial, rng = Trial(simulator), random.Random(name)
    drawn, valid, valid_admitted, listing = Counter(), Counter(), Counter(), []
    choices: list[str] = []
    for i, action in enumerate(gold):
        if i % EVERY == 0 and not choices:
            bound = knowledge.bind_view(bindings(simulator))
            start = bound.next_action().begin
            drawn.update(trial.fate(draw(start, rng)) for _ in range(DRAWN))
            began = time.perf_counter()
            with simulator.process.answering("list the valid actions"):  # draws random numbers
                listed = list(simulator._interface.getValidActionObjectCombinations())
            listing.append(time.perf_counter() - began)
            for text in rng.sample(listed, min(DRAWN, len(listed))):
                fate = trial.fate(text)
                valid[fate] += 1
                valid_admitted[fate] += bool(bound.judge(text))
        choices = choices_of(simulator.step(action)[0])
    return {
        "drawn": {fate: drawn[fate] for fate in FATES},
        "valid": {fate: valid[fate] for fate in FATES},
        "valid_admitted": {fate: valid_admitted[fate] for fate in FATES},
        "seconds_per_valid_list": sum(listing) / len(listing),
    }


def draw(state, rng: random.Random) -> str:
    """A random text that completes `state`, each possible next byte being equally likely."""
    text = bytearray()
    while not state.accepting or (state.first() and rng.random() < 0.5):
        byte = rng.choice(sorted(state.first()))
        text.append(byte)
        state = state.step(byte)
    return text.decode()


def table(rows: list[dict]) -> str:
    """The figures as Markdown tables, and the actions that were not admitted."""
    counted = ("gold", "admitted", "understood", "understood and admitted")
    means = ("score", "seconds_per_step", "seconds_per_view")
    total = {key: sum(row[key] for row in rows) for key in (*counted, *means)}
    total |= {key: total[key] / len(rows) for key in means} | {"task": f"**{len(rows)} tasks**"}
    cells = [
        [row["task"], *(f"{row[key]:,}" for key in counted), f"{row['score']:.2f}",
         f"{1 / row['seconds_per_step']:.0f}", f"{1 / row['seconds_per_view']:.0f}"]
        for row in [*rows, total]
    ]  # fmt: skip
    head = ["task", "gold actions", "admitted", "understood", "of these admitted", "score", "steps/s", "views/s"]
    lines = [markdown(head, cells), "", "Not admitted:"]
    for row in rows:
        lines += [f"  {row['task']}: {one['action']!r}, answered {one['answer']!r}" for one in row["not_admitted"]]
    sums = [
        [words, *(f"{sum(row[key][fate] for row in rows):,}" for fate in FATES)]
        for key, words in (
            ("drawn", "actions drawn from the masks"),
            ("valid", "the package's valid actions"),
            ("valid_admitted", "those of them that are admitted"),
        )
    ]
    lines += ["", markdown(["what the simulator would make of", *FATES], sums)]
    seconds = sum(row["seconds_per_valid_list"] for row in rows) / len(rows)
    return "\n".join([*lines, "", f"The package's list of valid actions takes {1000 * seconds:.0f} ms."])
