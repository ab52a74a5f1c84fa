"""Plan problems of the planning competitions: seconds, plan lengths, and whether a simulator finds the plans valid.

    constrained bench ipc [--data ARCHIVE|FOLDER] [--only NAME] [--seconds S] [--output FILE]

Each instance is read, grounded and searched as `constrained plan` does, in this process, until a plan is found or the
seconds of processor time are over. A plan counts only if `simulator`, which shares no code with the library, can do
every action of it and finds the goal true at its end. Each result is recorded in `--output` as it comes; an interrupted
run goes on where it ended.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.planbench.simulator import Simulator
from benchmarks.reporting import add_json, describe_machine, markdown, report
from benchmarks.result_files import RESULTS
from constrained.cli.options import seconds
from constrained.environments.data import archive_files, data_file, folder_files, read_rows
from constrained.errors import ConstrainedError, DataError
from constrained.planning import PlanningTask, read_domain, read_problem_of
from constrained.planning.planner import Searched, SearchLimits, search_plan
from constrained.planning.relaxed import Relaxed
from constrained.version import __version__
from constrained.waiting import waiting

INSTANCES = "ipc/instances.tar.xz"
RECORD = RESULTS / "ipc.json"
"""What the documentation shows."""

_FILE = re.compile(r"(?:.*/)?([^/]+)/(domain|problem)\.pddl")

SOLVED, NONE, GAVE_UP, REFUSED = "solved", "no plan exists", "gave up", "refused"
"""How an instance ends."""


@dataclass(frozen=True)
class Instance:
    """A domain and a problem, in PDDL."""

    name: str
    domain: str
    problem: str

    @property
    def digest(self) -> str:
        """Changes with the texts."""
        return sha256(f"{self.domain}\0{self.problem}".encode()).hexdigest()[:16]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, metavar="ARCHIVE|FOLDER", help="a .tar.xz or a folder with NAME/domain.pddl and "
        "NAME/problem.pddl (default: ipc/instances.tar.xz of the data folder)")  # fmt: skip
    add("--only", action="append", metavar="NAME", help="only this instance; repeatable")
    add("--seconds", type=seconds, default=60.0, metavar="S", help="processor time of an instance (default: 60)")
    add("--output", type=Path, default=Path("runs/ipc.jsonl"), metavar="FILE", help="each result, as it comes "
        "(default: runs/ipc.jsonl)")  # fmt: skip
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    instances = [one for one in read_instances(options.data) if not options.only or one.name in options.only]
    if not instances:
        raise DataError(f"no instance {', '.join(options.only)}", "leave out --only to see which there are")
    finished = recorded(options.output, options.seconds)
    rows = []
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a", encoding="utf-8") as file:
        for number, one in enumerate(instances, 1):
            row = finished.get((one.name, one.digest))
            if row is None:
                with waiting(f"{number} of {len(instances)}, {one.name}") as say:
                    row = played(one, options.seconds, lambda words, name=one.name: say(f"{name}, {words}"))
                file.write(json.dumps({"version": __version__, "limit": options.seconds, **row}) + "\n")
                file.flush()
            rows.append(row)
            print(summary_line(row), file=sys.stderr, flush=True)
    data = {"version": __version__, "seconds": options.seconds, "rows": rows, "machine": describe_machine()}
    report(f"{table(rows)}\n\n{totals(rows)}", data, options)
    return 0 if all(row["valid"] is not False for row in rows) else 1


def read_instances(source: Path | None = None) -> list[Instance]:
    """The instances of an archive or a folder, by name. Raises DataError: there are none, or a file is missing."""
    source = source or data_file(INSTANCES)
    if source.is_dir():
        files: Iterable[tuple[str, bytes]] = folder_files(source, "*/domain.pddl", "*/problem.pddl")
    else:
        files = archive_files(source, lambda name: _FILE.fullmatch(name) is not None)
    texts: dict[str, dict[str, str]] = {}
    for path, content in files:
        if match := _FILE.fullmatch(path):
            texts.setdefault(match[1], {})[match[2]] = content.decode("utf-8", "replace")
    for name, of in texts.items():
        for kind in ("domain", "problem"):
            if kind not in of:
                raise DataError(f"{source}: {name} has no {kind}.pddl", "each instance has a domain and a problem")
    if not texts:
        raise DataError(f"{source} has no instances", "it holds NAME/domain.pddl and NAME/problem.pddl")
    return [Instance(name, of["domain"], of["problem"]) for name, of in sorted(texts.items())]


def recorded(path: Path, limit: float) -> dict[tuple[str, str], dict[str, Any]]:
    """(name, digest) -> the row of an earlier run of this version with the same limit."""
    if not path.exists() or not path.stat().st_size:
        return {}
    rows = (row for _, row in read_rows(path))
    return {
        (row["name"], row["digest"]): {key: value for key, value in row.items() if key not in ("version", "limit")}
        for row in rows
        if row.get("version") == __version__ and row.get("limit") == limit
    }


def played(one: Instance, limit: float, say: Any = None) -> dict[str, Any]:
    """Plan one instance; returns its row."""
    row: dict[str, Any] = {"name": one.name, "digest": one.digest, "outcome": REFUSED, "why": ""}
    row |= dict.fromkeys(("parse", "ground", "search", "facts", "actions", "length", "expanded", "valid"))
    begin = process_time()
    try:
        domain = read_domain(one.domain, f"{one.name}/domain.pddl")
        task = PlanningTask(domain, read_problem_of(domain, one.problem, f"{one.name}/problem.pddl"))
        parsed = process_time()
        grounding = Relaxed.of(task).grounding
        grounded = process_time()
        left = SearchLimits(seconds=max(0.001, round(limit - (grounded - begin), 1)))
        searched = search_plan(task, task.initial, left, say)
    except ConstrainedError as error:
        return row | {"why": error.message.splitlines()[0]}
    end = process_time()
    valid = None if searched.plan is None else is_plan(one, [(a.action, *a.arguments) for a in searched.plan])
    del task
    gc.collect()
    return row | {
        "parse": round(parsed - begin, 3), "ground": round(grounded - parsed, 3), "search": round(end - grounded, 3),
        "facts": len(grounding.names), "actions": len(set(grounding.actions)),
        "outcome": _outcome(searched), "why": searched.limit,
        "length": None if searched.plan is None else len(searched.plan), "expanded": searched.expanded, "valid": valid,
    }  # fmt: skip


def _outcome(searched: Searched) -> str:
    return SOLVED if searched.plan is not None else NONE if searched.proven else GAVE_UP


def is_plan(one: Instance, plan: Iterable[Sequence[str]]) -> bool:
    """Whether the simulator can do all actions of a plan, and finds the goal true at its end."""
    simulator = Simulator(one.domain, one.problem)
    schemas = {name: rest for name, *rest in simulator.actions}
    state = simulator.start
    for name, *arguments in plan:
        parameters, precondition, effect = schemas[name]
        if len(parameters) != len(arguments):
            return False
        bound = {variable: value for (variable, _), value in zip(parameters, arguments)}
        typed_well = all(value in simulator.of_type(kind) for (_, kind), value in zip(parameters, arguments))
        if not typed_well or not simulator.holds(precondition, bound, state):
            return False
        state = simulator.after((precondition, effect, bound), state)
    return simulator.holds(simulator.goal, {}, state)


COLUMNS = ["instance", "facts", "actions", "read", "ground", "search", "expanded", "plan", "valid"]


def table(rows: Sequence[dict]) -> str:
    """The rows as Markdown; times in seconds."""
    return markdown(COLUMNS, map(_cells, rows))


def _cells(row: dict) -> list[object]:
    def count(key: str) -> str:
        return "–" if row[key] is None else f"{row[key]:,}"

    times = ["–" if row[key] is None else f"{row[key]:.2f}" for key in ("parse", "ground", "search")]
    plan = count("length") if row["outcome"] == SOLVED else row["outcome"]
    return [row["name"], count("facts"), count("actions"), *times, count("expanded"), plan,
            "–" if row["valid"] is None else "yes" if row["valid"] else "no"]  # fmt: skip


def summary_line(row: dict) -> str:
    """A row in words."""
    more = f": {row['why']}" if row["why"] else ""
    return f"{row['name']}: " + ", ".join(f"{name} {cell}" for name, cell in zip(COLUMNS[1:], _cells(row)[1:])) + more


def totals(rows: Sequence[dict]) -> str:
    """How many instances end how, and the time of all."""
    ends = {end: sum(row["outcome"] == end for row in rows) for end in (SOLVED, NONE, GAVE_UP, REFUSED)}
    spent = sum(row[key] or 0.0 for row in rows for key in ("parse", "ground", "search"))
    quick = sum(row["outcome"] == SOLVED and row["parse"] + row["ground"] + row["search"] < 1 for row in rows)
    invalid = sum(row["valid"] is False for row in rows)
    words = ", ".join(f"{count} {end}" for end, count in ends.items() if count)
    return f"{len(rows)} instances: {words}; {quick} within a second, {spent:.0f} s for all; {invalid} plans invalid."
