"""The cost of binding slots at each step of a game: bind the view, next action, compile, first mask.

    constrained bench binding --json benchmarks/results/binding.json

The steps are those of games (made from seeds, or ALFWorld's) played by a solver, and of a room of 50 receptacles with
100 objects at one of them; or the gold actions of ScienceWorld's tasks. Each step is repeated `--repeats` times and its
fastest time counts, which excludes other load on the machine; p50 and p99 are over the steps. The exact number of
states built at each step is checked by tests/automaton/test_size.py.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from benchmarks.engine import vocabularies
from benchmarks.household_solver import solve
from benchmarks.reporting import add_json, describe_machine, markdown, report
from benchmarks.scienceworld import bindings
from constrained import ActionKnowledge, Vocabulary, __version__, compile_grammar
from constrained.cli.options import whole_number
from constrained.environments.household import HouseholdEnv, load_games, make_game
from constrained.environments.scienceworld.scene import choices_of
from constrained.environments.scienceworld.simulator import borrow, give_back
from constrained.errors import ConstrainedError, GameError
from constrained.knowledge.commands import slot_values

PARTS = ("bind", "next action", "compile", "first mask")
"""Together these are the rebinding."""
AFTER = ("set budget", "the action's tokens", "after")
BUDGET = 200
RECEPTACLES, OBJECTS = 50, 100


@dataclass(frozen=True)
class Step:
    """One step of a game: the knowledge after the path so far, the view, and the action."""

    knowledge: ActionKnowledge
    view: dict
    action: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--environment", choices=("household", "alfworld", "scienceworld"), default="household",
        help="games made from seeds (default), ALFWorld's seen ones, or ScienceWorld's tasks")  # fmt: skip
    add("--games", type=whole_number, default=10, help="how many (default: 10)")
    add(
        "--vocabulary",
        choices=vocabularies.BY_SIZE,
        default="tekken",
        help="whose tokens the masks are over (default: tekken)",
    )
    add("--repeats", type=whole_number, default=9, help="of each step (default: 9)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    vocabulary = vocabularies.load(options.vocabulary).vocabulary
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
    facts = {"version": __version__, "machine": describe_machine(), "vocabulary": options.vocabulary}
    result = {**facts, "repeats": options.repeats, "rows": rows}
    return report(table(rows, options.vocabulary, vocabulary.size), result, options)


def game_steps(knowledge: ActionKnowledge, environment: str, number: int) -> Iterator[Step]:
    """The steps of `number` games, each as the solver plays it."""
    games = map(make_game, range(number)) if environment == "household" else islice(load_games("valid_seen"), number)
    for game in games:
        try:
            commands = solve(game)
        except GameError:
            continue
        env, current = HouseholdEnv(game), knowledge
        env.reset()
        for command in commands:
            view = slot_values(current.grammar, env.admissible())
            yield Step(current, view, command)
            current = current.bind_view(view).after(command)
            env.step(command)


def room_steps(knowledge: ActionKnowledge, rounds: int = 6) -> Iterator[Step]:
    """Steps that carry objects through the largest room; all objects are within reach everywhere."""
    shelves = [f"shelf {i}" for i in range(1, RECEPTACLES + 1)]
    mugs = [f"mug {i}" for i in range(1, OBJECTS + 1)]
    at, current = None, knowledge
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
            yield Step(current, view, action)
            current, at = current.bind_view(view).after(action), goes_to


def science_steps(knowledge: ActionKnowledge, number: int) -> Iterator[Step]:
    """The gold actions of the first `number` tasks of ScienceWorld, except those that no longer apply."""
    simulator = borrow()
    try:
        for name in simulator.tasks[:number]:
            gold, choices = simulator.gold(name), []
            simulator.load(name)
            for action in gold:
                view = bindings(simulator, choices)
                if knowledge.bind_view(view).judge(action):
                    yield Step(knowledge, view, action)
                choices = choices_of(simulator.step(action)[0])
    finally:
        give_back(simulator)


def measure(name: str, steps: list[Step], vocabulary: Vocabulary, tokenizer: str, repeats: int) -> list[dict]:
    """The times of each part over `steps`, in microseconds."""
    tokens = vocabularies.load(tokenizer)
    spelled = [vocabularies.spell(tokens, step.action) for step in steps]
    mask = np.zeros((1, vocabulary.words), np.int32)
    best = np.full((len(steps), len(PARTS) + len(AFTER)), np.inf)
    gc.collect()
    gc.disable()  # a collection would slow a random step
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
    return [b - a for a, b in pairwise(clock)]


def _spread(found: np.ndarray) -> dict[str, float]:
    return {"p50": float(np.percentile(found, 50)), "p99": float(np.percentile(found, 99)), "worst": float(found.max())}


def table(rows: list[dict], vocabulary: str, size: int) -> str:
    """The figures as a Markdown table."""
    cells = []
    last = None
    for row in rows:
        name = f"{row['set']} ({row['steps']} steps)" if row["set"] != last else ""
        part = f"**{row['part']}**" if row["part"] == "rebinding" else row["part"]
        cells.append([name, part, *(f"{row[key]:,.0f} µs" for key in ("p50", "p99", "worst"))])
        last = row["set"]
    return markdown([f"{vocabulary}, {size:,} tokens", "", "p50", "p99", "worst"], cells, left=2)
