"""tau2-bench's telecom under `grammars/tau_telecom.lark`: gold actions of agent and user, mutations, the masks' cost.

    constrained bench tau --domain telecom --exact               compares with benchmarks/results/tau_telecom.json
    constrained bench tau --domain telecom --exact --update      records

- gold: each gold action of each task, after the lookups and checks that the policy asks for. Is it admitted?
- mutations: the same paths with something wrong: a check left out, another order, another line, customer or value, a
  fix of what isn't broken, … Is the wrong call refused? Of those that are admitted, why the policy allows them.
- cost: binding, compiling, and a mask at every token of each call of the gold paths.

The tools of `benchmarks.telecom.tools` answer, over tau2-bench's databases.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from benchmarks import tau
from benchmarks.engine import vocabularies
from benchmarks.reporting import describe_machine, markdown, note_record, report
from benchmarks.result_files import RESULTS, read_record
from benchmarks.telecom.environment import TelecomDomain
from benchmarks.telecom.mutations import judge_mutations
from benchmarks.telecom.paths import gold_steps
from constrained import __version__
from constrained.files import to_json, write_whole
from constrained.guard import Guard

RECORD = RESULTS / "tau_telecom.json"


def run_command(options: argparse.Namespace) -> int:
    """Replay, mutate and time the tasks of the data folder."""
    tokens = vocabularies.load(options.vocabulary) if options.costs else None
    domain = TelecomDomain()
    knowledge = domain.knowledge()
    guard = Guard([*domain.infos, *domain.user_infos], knowledge.tools.policy)

    def steps(*given: Any) -> Any:
        return gold_steps(domain, guard, given[-1])

    gold: list[dict[str, Any]] = []
    mutated: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    for split in [options.split] if options.split else domain.splits():
        tasks = domain.tasks(split)[: options.limit]
        row = tau.replay_gold(domain, knowledge, split, tasks, steps)
        by_user = sum(actor == "user" for task in tasks for actor, *_ in task.steps)
        gold.append({**row, "of the user": by_user})
        mutated += [{"split": split, **one} for one in judge_mutations(domain, guard, tasks)]
        if tokens is not None and not cost:
            cost.append(tau.measure(domain, knowledge, tasks[: options.costs], tokens, steps))
    facts = {"version": __version__, "machine": describe_machine(), "vocabulary": options.vocabulary}
    result = {**facts, "gold": gold, "mutations": mutated, "cost": cost}
    report(text(result), result, options)
    return compare(result, options.update) if options.exact else 0


def compare(result: Mapping[str, Any], update: bool) -> int:
    """Say what differs from the recorded counts; 1 if something got worse and isn't recorded."""
    then, now = (_counts(one) for one in (read_record(RECORD, "constrained bench tau --domain telecom"), result))
    changed = [name for name in now if name in then and now[name] != then[name]]
    for name in changed:
        print(f"{'WORSE' if now[name] < then[name] else 'better'}: {name}: {then[name]} is now {now[name]}")
    if update:
        write_whole(RECORD, to_json(result))
        note_record(RECORD)
    return int(not update and any(now[name] < then[name] for name in changed))


def _counts(result: Mapping[str, Any]) -> dict[str, int]:
    """The counts that don't depend on the machine."""
    counts = {f"{row['split']}: {key}": row[key] for row in result["gold"] for key in ("admitted", "lookups admitted")}
    return counts | {f"{row['split']}: {row['kind']}: refused": row["refused"] for row in result["mutations"]}


def text(result: Mapping[str, Any]) -> str:
    """The tables."""
    head = ["telecom", "tasks", "gold actions", "of these the user's", "admitted", "lookups and checks", "admitted"]
    keys = ("tasks", "actions", "of the user", "admitted", "lookups", "lookups admitted")
    shown = [markdown(head, [[row["split"], *(row[key] for key in keys)] for row in result["gold"]])]
    shown += [f"- {one['task']}: {one['tool']}: {one['why']}" for row in result["gold"] for one in row["not admitted"]]
    shown += ["", mutation_table(result), "", admitted_table(result)]
    if result["cost"]:
        names = [f"{name} {p}" for name in ("bind", "masks", "whole call", "a token") for p in ("p50", "p99")]
        rows = [[row["domain"], row["calls"], *(f"{row[name]:.2f}" for name in names)] for row in result["cost"]]
        shown += ["", markdown([f"CPU ms, {result['vocabulary']}", "calls", *names], rows)]
    return "\n".join(shown)


def mutation_table(result: Mapping[str, Any]) -> str:
    """Each kind of mutation: how many there are, and how many are refused."""
    rows = [[row["kind"], row["mutations"], row["refused"]] for row in result["mutations"]]
    rows.append(["all", *(sum(row[n] for row in rows) for n in (1, 2))])
    return markdown(["what is wrong", "calls", "refused"], rows)


def admitted_table(result: Mapping[str, Any]) -> str:
    """The mutations that are admitted, and why the written policy allows them."""
    rows = [
        [row["kind"], one["tool"], one["calls"], one["why"] or "NOTHING ALLOWS IT"]
        for row in result["mutations"]
        for one in row["admitted"]
    ]
    return markdown(["what seems wrong", "admitted", "calls", "why the written policy allows it"], rows, left=None)
