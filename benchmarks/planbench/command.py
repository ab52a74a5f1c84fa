"""Solve PlanBench's problems under masks, by level, beside the plans that language models wrote for them.

    constrained bench planbench [--data FOLDER] [--domain NAME] [--limit N] [--exact]

Every instance is played step by step through the masks of its domain's imported knowledge. Three things choose among
the actions that a level admits: a uniformly random choice; "chooser", the small graph network that comes with this
package, which reads the facts that hold and the goal's and nothing else; and "search", which looks ahead in the
simulator and is a planner. An action counts as impossible where a validator that reads the domain and the problem anew
refuses it. Every step is recorded in `--output` as it happens; an interrupted run is resumed. `--exact` plays the
recorded rows, with their seeds, limits and steps.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from tqdm import tqdm

from benchmarks.planbench import verdicts
from benchmarks.planbench.instances import PLANS, Instance, read_instances
from benchmarks.planbench.optimum import shortest_plan
from benchmarks.reporting import add_exact, add_json, check_exact, describe_machine, markdown, note_record, report
from benchmarks.result_files import RESULTS, read_record
from constrained.cli.options import whole_number
from constrained.environments.data import data_folder, read_json
from constrained.errors import ConstrainedError, DataError
from constrained.files import to_json, write_whole
from constrained.version import __version__

RECORD = RESULTS / "planbench.json"
"""The figures that may only get better."""

LEVELS = ("form", "state", "goal-sound", "goal")
ROWS = (*tuple((model, level) for model in ("random", "chooser") for level in LEVELS), ("search", "state"))
"""What chooses, and the level that holds it; what looks ahead needs no level of the goal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="instances laid out as DOMAIN/domain.pddl and "
        "DOMAIN/SET/instance-N.pddl (default: those of the data folder)")  # fmt: skip
    add("--domain", action="append", metavar="NAME", help="only this domain; repeatable")
    add("--model", action="append", metavar="NAME|FILE", help="random, chooser, search, or the weights of a trained "
        "chooser; repeatable (default: random, chooser and search)")  # fmt: skip
    add("--level", action="append", choices=LEVELS, help="which actions the masks admit; repeatable (default: each)")
    add("--limit", type=whole_number, metavar="N", help="only the first N instances of each set")
    add("--max-steps", type=whole_number, default=150, help="actions of a plan, at most (default: 150)")
    add("--seed", action="append", type=int, help="repeatable: a row is the mean over its seeds (default: 0)")
    add("--batch", type=whole_number, default=32, help="instances played side by side (default: 32)")
    add("--output", type=Path, default=Path("runs/planbench"), help="folder of the runs (default: runs/planbench)")
    add_exact(parser, RECORD)
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    check_exact(options)
    sets = chosen(read_instances(options.data), options.domain)
    wanted = [(name, model, level) for model, level in rows_of(options.model, options.level) for name in sets]
    if options.exact and not options.update:
        asked = as_recorded(wanted, options)
    else:
        options.seed = options.seed or [0]
        asked = [(*row, options) for row in wanted]
    rows = []
    for name, model, level, own in asked:
        row = play_set(name, sets[name][: own.limit], model, level, own)
        rows.append(row | {"limit": own.limit, "max steps": own.max_steps})
        print(summary_line(row), flush=True)
    recorded = [] if options.data else recorded_rows(set(sets))
    data = {"version": __version__, "rows": rows, "recorded": recorded, "machine": describe_machine()}
    report(f"\n{table(rows)}\n\n{recorded_table(recorded)}".rstrip(), data, options)
    return compare(rows, options) if options.exact else 0


def chosen(instances: Iterable[Instance], domains: Sequence[str] | None) -> dict[str, list[Instance]]:
    """ "DOMAIN/SET" -> its instances."""
    sets: dict[str, list[Instance]] = {}
    for one in instances:
        if not domains or one.domain_name in domains:
            sets.setdefault(f"{one.domain_name}/{one.set_name}", []).append(one)
    if not sets:
        raise DataError(f"no instances of {', '.join(domains or ())}", "leave out --domain to see which there are")
    return sets


def rows_of(models: Sequence[str] | None, levels: Sequence[str] | None) -> list[tuple[str, str]]:
    """(model, level) for each row that was asked for."""
    of = {model: [level for one, level in ROWS if one == model] for model, _ in ROWS}
    named = list(models or of)
    return [(model, level) for model in named for level in of.get(model, LEVELS) if not levels or level in levels]


def as_recorded(
    wanted: Iterable[tuple[str, str, str]], options: argparse.Namespace
) -> list[tuple[str, str, str, argparse.Namespace]]:
    """Those of the (set, model, level) that are recorded, each with the record's seeds, limit and steps.

    Where seeds or a limit are given, only rows recorded with these.
    """
    recorded = read_record(RECORD, "constrained bench planbench").get("rows", ())
    rows = {row: [one for one in recorded if (one["set"], one["model"], one["level"]) == row] for row in wanted}
    found = []
    for row, ones in rows.items():
        for one in ones:
            if options.seed not in (None, one["seeds"]) or options.limit not in (None, one["limit"]):
                continue
            own = {"seed": one["seeds"], "limit": one["limit"], "max_steps": one["max steps"]}
            found.append((*row, argparse.Namespace(**vars(options) | own)))
    if not found:
        raise ConstrainedError("nothing of this is recorded", "record it: --exact --update")
    return found


def play_set(name: str, instances: Sequence[Instance], model: str, level: str, options: argparse.Namespace) -> dict:
    """Play the instances of one set with each seed, and judge what was played."""
    from constrained.planning.plans import judge_plan

    best = optima(instances, options.output)
    impossible = failed = actions = 0
    seconds = 0.0
    solved, lengths, shortest = [], [], []
    for seed in options.seed:
        ends, steps = _play(name, instances, model, level, seed, options)
        solved.append(0)
        for one in tqdm(instances, desc=f"{name}, {model}, {level}, judging", leave=False, disable=None):
            # Masks that follow the state must admit no impossible action. By form alone they may: then nothing changes,
            # and the play goes on.
            written = steps.get(one.name, [])
            verdict = judge_plan(one.task(), written)
            actions += len(written)
            refused = len(written) - verdict.steps if level == "form" else int(bool(verdict.action))
            impossible += _impossible(one, written) if level == "form" and refused else refused
            failed += "failure" in ends[one.name]
            seconds += sum(usage["seconds"] for usage in ends[one.name]["usage"].values())
            won = bool(ends[one.name]["success"])
            if won and level != "form" and not verdict.solved:
                raise ConstrainedError(f"{one.name}: the run says that the goal was reached, the validator doesn't")
            if won:
                solved[-1] += 1
                lengths.append(len(written))
                if best.get(one.name):
                    shortest.append(len(written) / best[one.name])
    return {
        "set": name, "model": Path(model).stem, "level": level, "instances": len(instances), "seeds": options.seed,
        "solved": sum(solved), "solved by seed": solved, "failed": failed,
        "actions": actions, "impossible": impossible,
        "steps": sum(lengths) / len(lengths) if lengths else None,
        "times the optimum": sum(shortest) / len(shortest) if shortest else None, "optima known": len(shortest),
        "choosing seconds": seconds / len(instances) / len(options.seed),
    }  # fmt: skip


def _play(
    name: str, instances: Sequence[Instance], model: str, level: str, seed: int, options: argparse.Namespace
) -> tuple[dict[str, dict], dict[str, list[str]]]:
    """Play the instances, or continue an interrupted run; return how each ended, and its actions."""
    from constrained.agents.run_file import read_tasks
    from constrained.agents.settings import Settings
    from constrained.agents.suite_runner import header, label, play_all
    from constrained.environments.suite import Suite, Task
    from constrained.knowledge.pddl import import_pddl
    from constrained.models import load_roles

    first = instances[0]
    knowledge = import_pddl(first.domain_text, source=f"{first.domain_name}/domain.pddl").knowledge()
    tasks = [Task(one.name, name, partial(_environment, knowledge, one.text)) for one in instances]
    suite = Suite(f"planbench/{name}", knowledge.name, tasks, options.max_steps)
    settings = Settings("act", "act", True, options.max_steps, level=level, seed=seed)
    models = load_roles(model)
    path = options.output / f"{label(header(suite, knowledge, models, settings))}-{level}-{Path(model).stem}.jsonl"
    words = f"{name}, {model}, {level}, seed {seed}"
    played = play_all(suite, knowledge, models, settings, path, batch=options.batch, words=words)
    ends = {one["name"]: one for one in played}
    return ends, {task: [step["action"] for step in one.steps] for task, one in read_tasks(path)[1].items()}


def _impossible(instance: Instance, written: Sequence[str]) -> int:
    """Count the actions that a validator refuses; a refused action changes nothing."""
    from constrained.planning.plans import read_action

    task = instance.task()
    state, refused = task.initial, 0
    for line in written:
        action = read_action(line)
        if action is not None and task.is_applicable(state, action):
            state = task.apply(state, action)
        else:
            refused += 1
    return refused


def _environment(knowledge, problem: str):
    from constrained.environments.pddl import PddlEnvironment

    return PddlEnvironment(None, problem, knowledge=knowledge)


def optima(instances: Sequence[Instance], folder: Path) -> dict[str, int | None]:
    """The fewest steps of each instance, where a small search finds them; kept in a file."""
    path = folder / "optima.json"
    known: dict[str, int | None] = read_json(path) if path.exists() else {}
    missing = [one for one in instances if _key(one) not in known]
    for one in tqdm(missing, desc="fewest steps", leave=False, disable=None):
        plan = shortest_plan(one.task())
        known[_key(one)] = None if plan is None else len(plan)
    if missing:
        write_whole(path, json.dumps(known))
    return {one.name: known[_key(one)] for one in instances}


def _key(instance: Instance) -> str:
    from constrained.agents.run_file import digest

    return f"{instance.name} {digest(instance.text)[:12]}"


COLUMNS = ["problems", "model", "masks", "instances", "solved", "impossible actions", "steps", "× optimum",
           "s a problem"]  # fmt: skip


def table(rows: Sequence[dict]) -> str:
    """The rows as Markdown."""
    return markdown(COLUMNS, map(_cells, sorted(rows, key=lambda row: row["set"])), left=3)


def _cells(row: dict) -> list[object]:
    steps, ratio, plays = row["steps"], row["times the optimum"], row["instances"] * len(row["seeds"])
    solved = f"{100 * row['solved'] / plays:.1f} %"
    if len(row["seeds"]) > 1:
        least, most = (100 * one(row["solved by seed"]) / row["instances"] for one in (min, max))
        solved += f" ({least:.0f}–{most:.0f})"
    return [
        row["set"], row["model"], row["level"], row["instances"], solved if row["failed"] < plays else "not played",
        f"{row['impossible']:,} of {row['actions']:,}", "–" if steps is None else f"{steps:.1f}",
        "–" if ratio is None else f"{ratio:.2f}", f"{row['choosing seconds']:.2f}",
    ]  # fmt: skip


def summary_line(row: dict) -> str:
    """A row in words."""
    return f"{row['set']}: " + ", ".join(f"{name}: {cell}" for name, cell in zip(COLUMNS[1:], _cells(row)[1:]))


def recorded_rows(sets: set[str]) -> list[dict]:
    """The recorded plans of language models for these sets, judged; none where they aren't there."""
    if not (data_folder() / PLANS).is_file():
        return []
    rows = [row for row in verdicts.judge_all() if row.instance.rpartition("/")[0] in sets]
    return verdicts.summary(rows)


def recorded_table(recorded: Sequence[dict]) -> str:
    """What language models wrote, as Markdown: each model's best prompt."""
    if not recorded:
        return ""
    best: dict[tuple[str, str], dict] = {}
    for one in recorded:
        key = one["domain"], one["model"]
        if key not in best or one["solved"] / one["plans"] > best[key]["solved"] / best[key]["plans"]:
            best[key] = one
    rows = [
        [one["domain"], one["model"], one["prompt"].replace("_", " "), one["plans"],
         f"{100 * one['solved'] / one['plans']:.1f} %", f"{100 * one['impossible action'] / one['plans']:.1f} %"]
        for one in sorted(best.values(), key=lambda one: (one["domain"], -one["solved"] / one["plans"]))
    ]  # fmt: skip
    words = (
        "What language models wrote for the same problems, each model's best prompt (`constrained check planbench`):"
    )
    head = ["problems", "model", "prompt", "plans", "solved", "with an impossible action"]
    return f"{words}\n\n{markdown(head, rows, left=3)}"


def compare(rows: Sequence[dict], options: argparse.Namespace) -> int:
    """Compare with the recorded rows, or record these; returns the exit code."""
    held = read_record(RECORD, "constrained bench planbench")
    known = {_row_key(row): row for row in held.get("rows", ())}
    if options.update:
        known |= {_row_key(row): row for row in rows}
        write_whole(RECORD, to_json(held | {"rows": [known[key] for key in sorted(known, key=str)]}))
        note_record(RECORD)
        print(f"recorded {len(rows)} rows in {RECORD.name}")
        return 0
    worse = []
    for row in rows:
        before = known[_row_key(row)]
        if row["solved"] < before["solved"] or row["impossible"] > before["impossible"]:
            words = f"solved {row['solved']} (was {before['solved']})"
            words += f", impossible {row['impossible']} (was {before['impossible']})"
            worse.append(f"{row['set']}, {row['model']}, {row['level']}: {words}")
    print("\n".join(["worse:", *worse]) if worse else "no row is worse than recorded")
    return 1 if worse else 0


def _row_key(row: dict) -> tuple:
    return (*(row[name] for name in ("set", "model", "level", "instances", "limit", "max steps")), tuple(row["seeds"]))
