"""What binding anew costs at each step of a game: view to slots, what may come next, compiled, its first mask.

    constrained bench binding --json benchmarks/results/binding.json

Steps of games (made from seeds, or ALFWorld's own) as a solver plays them, and of a room of 50 receptacles with 100
objects at one of them; or of ScienceWorld's tasks as their gold actions go. Each step is taken `--repeats` times and its
fastest time is its figure, so that what else the machine does is left out; p50 and p99 go over the steps. What is made
for each step is counted, exactly, by tests/automaton/test_size.py.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.engine import machine, vocabularies
from constrained import ActionKnowledge, Vocabulary, __version__, compile_grammar
from constrained.environments.household import HouseholdEnv, load_games, make_game, solve
from constrained.environments.scienceworld.simulator import borrow, give_back
from constrained.environments.scienceworld.slots import asked, bindings
from constrained.errors import ConstrainedError, GameError
from constrained.files import to_json, write_whole

PARTS = ("bind", "next action", "compile", "first mask")
"""What is together the rebinding."""
AFTER = ("set budget", "the action's tokens", "after")
BUDGET = 200
RECEPTACLES, OBJECTS = 50, 100


@dataclass(frozen=True)
class Step:
    """One step of a game: where the path is, what is in view there, and what is done."""

    knowledge: ActionKnowledge
    view: dict
    action: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench binding`."""
    parser.add_argument(
        "--environment",
        choices=("household", "alfworld", "scienceworld"),
        default="household",
        help="games made from seeds (default), ALFWorld's seen ones, or ScienceWorld's tasks",
    )
    parser.add_argument("--games", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--vocabulary", choices=vocabularies.BY_SIZE, default="tekken")
    parser.add_argument("--repeats", type=int, default=9, help="of each step (default: 9)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")


def run_command(options: argparse.Namespace) -> int:
    """Measure, print the table, write the JSON."""
    if options.games < 1 or options.repeats < 1:
        raise ConstrainedError("--games and --repeats are positive numbers")
    tokens = vocabularies.load(options.vocabulary)
    vocabulary = Vocabulary(tokens.tokens, tokens.eos, special_ids=tokens.special)
    if options.environment == "scienceworld":
        sets = {"scienceworld tasks": list(science_steps(ActionKnowledge.from_lark("scienceworld"), options.games))}
    else:
        knowledge = ActionKnowledge.from_lark("household")
        sets = {
            f"{options.environment} games": list(game_steps(knowledge, options.environment, options.games)),
            f"{RECEPTACLES} receptacles, {OBJECTS} objects": list(room_steps(knowledge)),
        }
    rows = [
        row
        for name, steps in sets.items()
        for row in measure(name, steps, vocabulary, options.vocabulary, options.repeats)
    ]
    print(table(rows, options.vocabulary, vocabulary.size))
    if options.json:
        facts = {"version": __version__, "machine": machine.describe(), "vocabulary": options.vocabulary}
        write_whole(options.json, to_json({**facts, "repeats": options.repeats, "rows": rows}))
    return 0


def game_steps(knowledge: ActionKnowledge, environment: str, count: int) -> Iterator[Step]:
    """The steps of `count` games, each as the solver plays it."""
    games = map(make_game, range(count)) if environment == "household" else islice(load_games("valid_seen"), count)
    for game in games:
        try:
            commands = solve(game)
        except GameError:
            continue
        env, place = HouseholdEnv(game), knowledge
        env.reset()
        for command in commands:
            view = env.view()
            yield Step(place, view, command)
            place = place.bind_view(view).after(command)
            env.step(command)


def room_steps(knowledge: ActionKnowledge, rounds: int = 6) -> Iterator[Step]:
    """Things are carried about in the largest room; all of them can be taken wherever one is."""
    shelves = [f"shelf {i}" for i in range(1, RECEPTACLES + 1)]
    mugs = [f"mug {i}" for i in range(1, OBJECTS + 1)]
    at, place = None, knowledge
    for i in range(rounds):
        source, target, mug = shelves[7 * i + 1], shelves[7 * i + 5], mugs[13 * i + 3]
        for action, goes_to in (
            (f"go to {source}", source), (f"take {mug} from {source}", source),
            (f"go to {target}", target), (f"put {mug} in/on {target}", target),
        ):  # fmt: skip
            here = {at: [at]} if at else {}
            view = {
                "RECEPTACLE": [s for s in shelves if s != at],
                "REACH": here, "CLOSED": here, "FITS": here, "CLEANER": here,
                "OBJECT": {at: mugs} if at else {},
                "EXAMINABLE": {at: [at, *mugs[:9]]} if at else {},
            }  # fmt: skip
            yield Step(place, view, action)
            place, at = place.bind_view(view).after(action), goes_to


def science_steps(knowledge: ActionKnowledge, count: int) -> Iterator[Step]:
    """The gold actions of the first `count` tasks of ScienceWorld, but for those that no longer fit."""
    simulator = borrow()
    try:
        for name in simulator.tasks[:count]:
            gold, choices = simulator.gold(name), []
            simulator.load(name)
            for action in gold:
                view = bindings(simulator, choices)
                if knowledge.bind_view(view).judge(action):
                    yield Step(knowledge, view, action)
                choices = asked(simulator.step(action)[0])
    finally:
        give_back(simulator)


def measure(name: str, steps: list[Step], vocabulary: Vocabulary, tokenizer: str, repeats: int) -> list[dict]:
    """The figures of each part over `steps`, in microseconds."""
    tokens = vocabularies.load(tokenizer)
    spelled = [vocabularies.spell(tokens, step.action) for step in steps]
    mask = np.zeros((1, vocabulary.words), np.int32)
    best = np.full((len(steps), len(PARTS) + len(AFTER)), np.inf)
    gc.collect()
    gc.disable()  # a collection would fall on some step by chance
    try:
        for _ in range(repeats):
            for i, (step, ids) in enumerate(zip(steps, spelled)):
                best[i] = np.minimum(best[i], take(step, ids, vocabulary, mask))
            gc.collect()
    finally:
        gc.enable()
    micro = best * 1e6
    columns = {part: micro[:, i] for i, part in enumerate((*PARTS, *AFTER))}
    columns = {"rebinding": micro[:, : len(PARTS)].sum(1), **columns}
    return [{"set": name, "part": part, "steps": len(steps), **_spread(found)} for part, found in columns.items()]


def take(step: Step, ids: list[int], vocabulary: Vocabulary, mask: np.ndarray) -> list[float]:
    """Seconds of each part of one step."""
    clock = [time.perf_counter()]
    bound = step.knowledge.bind_view(step.view)
    clock.append(time.perf_counter())
    grammar = bound.next_action()
    clock.append(time.perf_counter())
    compiled = compile_grammar(grammar, vocabulary)
    clock.append(time.perf_counter())
    matcher = compiled.matcher()
    matcher.fill_bitmask(mask)
    clock.append(time.perf_counter())
    matcher.set_budget(BUDGET)
    clock.append(time.perf_counter())
    for token in ids:
        if not matcher.advance(token):
            raise ConstrainedError(f"{step.action!r} is not admitted at its step", "the household's rules have changed")
        matcher.fill_bitmask(mask)
    clock.append(time.perf_counter())
    bound.after(step.action)
    clock.append(time.perf_counter())
    return [b - a for a, b in zip(clock, clock[1:])]


def _spread(found: np.ndarray) -> dict[str, float]:
    return {"p50": float(np.percentile(found, 50)), "p99": float(np.percentile(found, 99)), "worst": float(found.max())}


def table(rows: list[dict], vocabulary: str, size: int) -> str:
    """The figures in Markdown."""
    lines = [f"| {vocabulary}, {size:,} tokens | | p50 | p99 | worst |", "|---|---|---:|---:|---:|"]
    last = None
    for row in rows:
        figures = " | ".join(f"{row[key]:,.0f} µs" for key in ("p50", "p99", "worst"))
        head = f"{row['set']} ({row['steps']} steps)" if row["set"] != last else ""
        part = f"**{row['part']}**" if row["part"] == "rebinding" else row["part"]
        lines.append(f"| {head} | {part} | {figures} |")
        last = row["set"]
    return "\n".join(lines)
