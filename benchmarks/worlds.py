"""The cost of masks that follow a world's facts: applicable actions, their grammar, compile, first mask.

    constrained bench worlds --json benchmarks/results/worlds.json

Random walks in PlanBench's problems, and in logistics problems of 10 to 1,000 objects made here. Each state is reached
anew `--repeats` times and its fastest time counts, which excludes other load on the machine; p50 and p99 are over the
states. `first` is the time of the first visit, with caches as an episode finds them, and whatever else the machine did.
`after` is what comes before: the action's effects, and the place on the path.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.engine import vocabularies
from benchmarks.planbench.masks import planbench
from benchmarks.reporting import add_json, describe_machine, markdown, report
from constrained import ActionKnowledge, Vocabulary, __version__, compile_grammar
from constrained.cli.options import whole_number
from constrained.knowledge.pddl import import_pddl

SIZES = (10, 30, 100, 300, 1000)
"""Objects of the problems that are made."""
STEPS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--problems", type=whole_number, default=10, help="of each of PlanBench's domains (default: 10)")
    add(
        "--vocabulary",
        choices=vocabularies.BY_SIZE,
        default="qwen2.5",
        help="whose tokens the masks are over (default: qwen2.5)",
    )
    add("--repeats", type=whole_number, default=15, help="of each state (default: 15)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    vocabulary = vocabularies.load(options.vocabulary).vocabulary
    rows = {}
    files = planbench()
    for name, (domain, problems) in files.items():
        chosen = random.Random(0).sample(problems, min(options.problems, len(problems)))
        rows[name] = measure(domain, chosen, vocabulary, options.repeats)
    for size in SIZES:
        problem = logistics(size)
        rows[f"logistics, {size:,} objects"] = measure(files["logistics"][0], [problem], vocabulary, options.repeats)
    figures = {"version": __version__, "machine": describe_machine(), "vocabulary": options.vocabulary, "rows": rows}
    return report(table(rows), figures, options)


def logistics(size: int) -> str:
    """A logistics problem with about `size` objects: a tenth are cities with a truck and three places each."""
    cities = max(1, size // 10)
    rng = random.Random(size)
    places = [f"l{c}-{i}" for c in range(cities) for i in range(3)]
    parcels = [f"p{i}" for i in range(max(1, size - 5 * cities - 1))]
    facts = [f"(CITY c{c}) (TRUCK t{c}) (at t{c} l{c}-0) (AIRPORT l{c}-0)" for c in range(cities)]
    facts += [f"(LOCATION {place}) (in-city {place} c{place[1:].split('-')[0]})" for place in places]
    facts += [f"(OBJ {parcel}) (at {parcel} {rng.choice(places)})" for parcel in parcels]
    objects = [*(f"c{c} t{c}" for c in range(cities)), *places, *parcels, "a0"]
    return (
        f"(define (problem made) (:domain logistics-strips) (:objects {' '.join(objects)})"
        f" (:init (AIRPLANE a0) (at a0 l0-0) {' '.join(facts)}) (:goal (at {parcels[0]} {places[-1]})))"
    )


def measure(domain: str, problems: list[str], vocabulary: Vocabulary, repeats: int) -> dict[str, float]:
    """The times of the states of random walks, in milliseconds."""
    imported = import_pddl(domain).knowledge()
    masks, first, after, actions, objects, facts = [], [], [], [], [], []
    for number, problem in enumerate(problems):
        for knowledge, chosen in walk(imported.for_problem(problem), number):
            times = [_times(knowledge, chosen, vocabulary) for _ in range(repeats)]
            after.append(min(one for one, _ in times))
            masks.append(min(other for _, other in times))
            first.append(times[0][1])
            assert knowledge.facts is not None
            actions.append(len(knowledge.facts.actions))
            objects.append(len(knowledge.facts.task.objects))
            facts.append(len(knowledge.facts.state))
    return {
        "states": len(masks),
        "objects": max(objects),
        "facts": max(facts),
        "actions": float(np.median(actions)),
        "most actions": max(actions),
        **{f"mask p{q}": float(np.percentile(masks, q)) for q in (50, 99)},
        "first p50": float(np.median(first)),
        **{f"after p{q}": float(np.percentile(after, q)) for q in (50, 99)},
    }


def walk(knowledge: ActionKnowledge, seed: int) -> Iterator[tuple[ActionKnowledge, str]]:
    """The states of a random walk, each with the action that is done in it."""
    rng = random.Random(seed)
    for _ in range(STEPS):
        assert knowledge.facts is not None
        if not knowledge.facts.actions:
            return
        chosen = rng.choice(sorted(knowledge.facts.actions))
        yield knowledge, chosen
        knowledge = knowledge.after(chosen)


def _times(knowledge: ActionKnowledge, action: str, vocabulary: Vocabulary) -> tuple[float, float]:
    """Milliseconds to apply an action, and from then on to the masks of the next."""
    begin = time.perf_counter()
    knowledge = knowledge.after(action)
    reached = time.perf_counter()
    assert knowledge.facts is not None
    if knowledge.facts.actions:
        compile_grammar(knowledge.next_action(), vocabulary).matcher().allowed_token_ids()
    return (reached - begin) * 1e3, (time.perf_counter() - reached) * 1e3


def table(rows: dict[str, dict[str, float]]) -> str:
    """The figures as a Markdown table."""
    head = [
        "problems",
        "objects",
        "facts",
        "actions, median and most",
        "masks, p50",
        "p99",
        "first visit, p50",
        "after, p50",
        "p99",
    ]
    body = [
        [
            name,
            f"{row['objects']:,}",
            f"{row['facts']:,}",
            f"{row['actions']:,.0f}, {row['most actions']:,}",
            *(f"{row[key]:.2f} ms" for key in ("mask p50", "mask p99", "first p50", "after p50", "after p99")),
        ]
        for name, row in rows.items()
    ]
    return markdown(head, body)
