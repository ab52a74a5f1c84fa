"""Compare the masks of the level `state` with a simulator that tries every action.

    constrained bench masks [--steps N] [--walks N] [--json FILE]

Every instance of PlanBench and problems of ALFWorld's games are walked through at random. In each state, what the masks
admit, read off token by token, is compared with the applicable actions of `simulator.py`, which shares no code with the
library; so are the facts after each action, and whether the goal holds. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from tqdm import tqdm

from benchmarks.planbench.instances import read_instances
from benchmarks.planbench.simulator import Simulator
from benchmarks.reporting import add_json, markdown, report
from constrained import Grammar, Vocabulary, compile_grammar
from constrained.cli.options import whole_number
from constrained.environments.data import data_file
from constrained.environments.household.game import game_files, read_game_file
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.pddl import import_pddl

ALFRED = "alfred.pddl"
"""ALFWorld's planning domain, as a name beside PlanBench's domains."""

BYTES = Vocabulary([*(bytes([value]) for value in range(256)), b""], eos_token_ids=[256], special_ids=[256])
"""A token for each byte: with it, each admitted text is read off the masks once."""

Differences = Counter[str]
"""Counts of "states", "actions", and what is wrong: "missing", "extra", "facts", "goals"."""

WRONG = ("missing", "extra", "facts", "goals")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--domain", action="append", metavar="NAME", help=f"only this domain, or {ALFRED}; repeatable")
    add("--every", type=whole_number, default=1, help="only each N-th problem")
    add("--games", type=whole_number, default=20, help="problems of ALFWorld's seen games (default: 20)")
    add("--steps", type=whole_number, default=8, help="actions of a walk (default: 8)")
    add("--walks", type=whole_number, default=2, help="walks in each problem (default: 2)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    rows = {
        name: compare_all(name, domain, found[:: options.every], options.walks, options.steps)
        for name, (domain, found) in (planbench() | {ALFRED: alfred(options.games)}).items()
        if not options.domain or name in options.domain
    }
    if not rows:
        raise ConstrainedError(f"there is no domain {', '.join(options.domain)}", "leave out --domain to see all")
    figures = {"steps": options.steps, "walks": options.walks, "rows": rows}
    report(table(rows), figures, options)
    return int(any(row[kind] for row in rows.values() for kind in WRONG))


def planbench() -> dict[str, tuple[str, list[str]]]:
    """Domain's name -> its text, and its problems'."""
    result: dict[str, tuple[str, list[str]]] = {}
    for one in read_instances():
        result.setdefault(one.domain_name, (one.domain_text, []))[1].append(one.text)
    return result


def alfred(games: int) -> tuple[str, list[str]]:
    """ALFWorld's planning domain, and the problems of the first seen games."""
    domain = data_file("alfworld/logic_2.1.1/alfred.pddl").read_text(encoding="utf-8")
    return domain, [read_game_file(content, name)[1] for name, content in islice(game_files("valid_seen"), games)]


def compare_all(name: str, domain: str, found: Iterable[str], walks: int, steps: int) -> dict[str, int]:
    """The counts over some problems of a domain."""
    total = Counter(dict.fromkeys(("problems", "states", "actions", *WRONG), 0))
    for problem in tqdm(list(found), desc=name, leave=False, disable=None):
        total["problems"] += 1
        for seed in range(walks):
            total.update(compare(domain, problem, steps, seed))
    return dict(total)


def compare(domain: str, problem: str, steps: int, seed: int = 0) -> Differences:
    """Walk at random from a problem's start, and count where the masks and the simulator differ."""
    simulator = Simulator(domain, problem)
    knowledge = import_pddl(domain.lower()).knowledge().for_problem(problem.lower())
    rng, state, counts = random.Random(seed), simulator.start, Differences()
    for _ in range(steps):
        assert knowledge.facts is not None
        possible = simulator.applicable(state)
        admitted = admitted_by(knowledge)
        counts["states"] += 1
        counts["actions"] += len(possible)
        counts["missing"] += len(possible.keys() - admitted)
        counts["extra"] += len(admitted - possible.keys())
        counts["facts"] += set(knowledge.facts.state) != state
        reached = simulator.holds(simulator.goal, {}, state)
        counts["goals"] += knowledge.facts.task.reached_goal(knowledge.facts.state) != reached
        both = sorted(possible.keys() & admitted)
        if not both:
            break
        chosen = rng.choice(both)
        state, knowledge = simulator.after(possible[chosen], state), knowledge.after(chosen)
    return counts


def admitted_by(knowledge: ActionKnowledge) -> set[str]:
    """The actions that the masks admit next."""
    assert knowledge.facts is not None
    return set(texts_of(knowledge.next_action())) if knowledge.facts.actions else set()


def texts_of(grammar: Grammar) -> Iterator[str]:
    """Every text that the masks of a grammar of finitely many texts let through."""
    matcher = compile_grammar(grammar, BYTES).matcher()
    text = bytearray()
    waiting = [list(matcher.allowed_token_ids())]
    while waiting:
        if not waiting[-1]:
            waiting.pop()
            if text:
                text.pop()
                matcher.rollback(1)
            continue
        token = int(waiting[-1].pop())
        if token == 256:
            yield text.decode()
            continue
        matcher.advance(token)
        text.append(token)
        waiting.append(list(matcher.allowed_token_ids()))


def table(rows: dict[str, dict[str, int]]) -> str:
    """The counts as a Markdown table."""
    head = ["domain", "problems", "states", "applicable actions", "missing", "extra", "other facts", "other goals"]
    cells = [
        [name, *(f"{row[kind]:,}" for kind in ("problems", "states", "actions", *WRONG))] for name, row in rows.items()
    ]
    return markdown(head, cells)
