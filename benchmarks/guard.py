"""Policies as guards: real conversations of GPT-4o, gold calls by condition, and the cost of a call.

    constrained bench guard --exact               compares with benchmarks/results/guard.json
    constrained bench guard --exact --update      records

- conversations: every call that GPT-4o made as tau-bench's airline agent, judged as a guard would have: which the tools
  answered with an error, near misses, precision and recall against the reward.
- gold: each gold call of tau-bench, in recorded transcripts of its own tools, with a scripted user's yes.
- cost: judging a call and following it, in conversations of 5 to 500 of the user's turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks import guard_proxy
from benchmarks.reporting import add_exact, add_json, check_exact, describe_machine, markdown, note_record, report
from benchmarks.result_files import RESULTS, read_record
from benchmarks.tau_environment import DOMAINS, YES
from constrained import __version__
from constrained.cli.options import whole_number
from constrained.environments.data import data_folder, read_rows
from constrained.errors import ConstrainedError, DataError
from constrained.files import to_json, write_whole
from constrained.guard import Guard
from constrained.guard.followed import Followed
from constrained.guard.messages import Answered, Event, Heard, Said, ToolCall
from constrained.guard.records import READ, Findings, check_records, read_records
from constrained.guard.verdict import WORDS
from constrained.knowledge.tool_policy import read_policy

RECORD = RESULTS / "guard.json"

TURNS = (5, 20, 50, 100, 200, 500)
"""The user's turns before a call that is timed."""

CALLS = 200
"""Calls that are timed at each length."""

REPLAYS = 5
"""Times that a whole conversation is followed."""

CHANGES = ("send_certificate",)
"""Tools that change something, which the policies don't show."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--conversations", metavar="FILE", help="recorded airline conversations (default: the data folder's)")
    add("--transcripts", metavar="FILE", help="recorded gold calls of tau-bench (default: the data folder's)")
    add("--limit", type=whole_number, metavar="N", help="only the first N conversations, and gold tasks of a domain")
    add("--calls", type=whole_number, default=CALLS, metavar="N", help=f"calls timed at each length (default: {CALLS})")
    guard_proxy.add_arguments(parser)
    add_exact(parser, RECORD)
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    check_exact(options)
    if options.exact and options.limit:
        raise ConstrainedError("--exact compares all conversations", "leave out --limit")
    tools, tasks = read_transcripts(options.transcripts, options.limit)
    if options.proxy:
        name = guard_proxy.DOMAIN
        measured = guard_proxy.measure(tools[name], tasks[name], options.rounds)
        facts = {"version": __version__, "machine": describe_machine()}
        return report(guard_proxy.table(measured), {**facts, **measured}, options)
    path = Path(options.conversations or data_folder() / "tau_bench" / "gpt4o_airline.jsonl.xz")
    rows = [(f"row {number}", row) for number, (_, row) in enumerate(read_rows(path), 1)][: options.limit]
    findings = check_records(read_records(rows), read_policy("tau_airline"), tools["airline"], changes=CHANGES)
    result = {
        "version": __version__,
        "machine": describe_machine(),
        "conversations": {
            **findings.to_dict(),
            "gold refused because": gold_refused(findings),
            "gold refused": [
                {
                    "conversation": one.conversation,
                    "tool": one.verdict.name,
                    "arguments": one.verdict.arguments,
                    "why": [unmet.why for unmet in one.verdict.unmet],
                }
                for one in findings.violations
                if one.gold
            ],
        },
        "gold": [replay(name, tools[name], tasks[name]) for name in DOMAINS],
        "cost": [row for name in DOMAINS for row in measure(name, tools[name], tasks[name], options.calls)],
    }
    report(text(result), result, options)
    return compare(result, options.update) if options.exact else 0


def compare(result: dict[str, Any], update: bool) -> int:
    """Say what differs from the recorded counts; 1 if something got worse and isn't recorded."""
    if update:
        write_whole(RECORD, to_json(result))
        note_record(RECORD)
        return 0
    then, now, worse = counts(read_record(RECORD, "constrained bench guard")), counts(result), False
    for name, value in now.items():
        if then.get(name, value) != value:
            fell = (value < then[name]) != ("gold calls refused" in name or "solved flagged" in name)
            worse = worse or fell
            print(f"{'WORSE' if fell else 'better'}: {name}: {then[name]} is now {value}")
    return int(worse)


def counts(result: dict[str, Any]) -> dict[str, int]:
    """The counts that don't depend on the machine."""
    talks = result["conversations"]
    found = {"errors refused": talks["errors refused"], "gold calls refused": talks["gold calls refused"]}
    made = talks["outcomes by what was carried out"] or {}
    found |= {key: made[key] for key in ("failed flagged", "solved flagged") if key in made}
    return found | {f"{row['domain']}: admitted": row["admitted"] for row in result["gold"]}


def gold_refused(findings: Findings) -> dict[str, int]:
    """Why gold calls are refused: a step that the policy asks for was left out, or what is known is against it."""
    reasons: Counter[str] = Counter()
    for one in findings.violations:
        if one.gold:
            kinds = {unmet.kind for unmet in one.verdict.unmet}
            reasons["no lookup" if one.missing == READ else "no clear yes" if kinds == {WORDS} else "facts"] += 1
    return dict(reasons)


# gold calls


def read_transcripts(
    path: str | Path | None, limit: int | None
) -> tuple[dict[str, list[Any]], dict[str, list[dict[str, Any]]]]:
    """Domain -> its tools, and domain -> its tasks, of recorded gold calls."""
    file = Path(path or data_folder() / "tau_bench" / "gold_transcripts.jsonl.xz")
    tools: dict[str, list[Any]] = {}
    tasks: dict[str, list[dict[str, Any]]] = {name: [] for name in DOMAINS}
    try:
        for _, row in read_rows(file):
            if "tools" in row:
                tools[row["domain"]] = row["tools"]
            elif limit is None or len(tasks[row["domain"]]) < limit:
                tasks[row["domain"]].append(row)
    except (KeyError, TypeError, lzma.LZMAError) as error:
        raise DataError(f"{file}: no recorded gold calls: {error!r}", "fetch it again") from None
    if missing := set(DOMAINS) - set(tools):
        raise DataError(f"{file}: there are no tools of {sorted(missing)[0]}", "fetch it again")
    return tools, tasks


def events(task: dict[str, Any]) -> Iterator[tuple[str, Event]]:
    """A gold transcript as a conversation: (kind of step, event); the user says yes before each action."""
    yield "", Heard(task["instruction"])
    for number, step in enumerate(task["steps"]):
        if step["kind"] != "lookup":
            yield "", Said("Shall I?")
            yield "", Heard(YES)
        yield step["kind"], Said("", (ToolCall(step["tool"], step["arguments"], str(number)),))
        yield "", Answered(str(number), step["result"])


def replay(name: str, tools: list[Any], tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """How many gold calls of a domain its policy admits, and what refuses the others."""
    guard = Guard(tools, f"tau_{name}")
    result: Counter[str] = Counter({"actions": 0, "admitted": 0, "lookups": 0, "lookups admitted": 0})
    refused: Counter[str] = Counter()
    for task in tqdm(tasks, desc=name, unit="task", leave=False, disable=None):
        point = guard.start
        for kind, event in events(task):
            for call in event.calls if isinstance(event, Said) else ():
                verdict = point.judge(call.name, call.arguments, allowed=False)
                lookup = kind == "lookup"
                result["lookups" if lookup else "actions"] += 1
                result["lookups admitted" if lookup else "admitted"] += bool(verdict)
                if not verdict:
                    refused[f"{call.name}: {verdict.unmet[0].why}"] += 1
            point = point.after(event)
    return {"domain": name, "tasks": len(tasks), **result, "refused by": dict(refused.most_common())}


# cost


def measure(name: str, tools: list[Any], tasks: list[dict[str, Any]], calls: int) -> Iterator[dict[str, Any]]:
    """The CPU microseconds of judging a call, and of following it and its result, by the conversation's length.

    The conversation is one gold transcript after the other, with the user's thanks between; what is known grows with
    it.
    """
    guard = Guard(tools, f"tau_{name}")
    for turns in TURNS:
        point, heard = guard.start, 0
        judged: list[float] = []
        followed: list[float] = []
        gc.disable()
        for task in cycle(tasks):
            for _, event in events(task):
                if isinstance(event, Heard):
                    heard += 1
                for call in event.calls if isinstance(event, Said) and heard >= turns else ():
                    began = time.thread_time()
                    point.judge(call.name, call.arguments, allowed=False)
                    judged.append(time.thread_time() - began)
                began = time.thread_time()
                point = point.after(event)
                if heard >= turns and isinstance(event, Answered):
                    followed.append(time.thread_time() - began)
            if len(judged) >= calls or heard > turns + 4 * calls:
                break
        gc.enable()
        whole, known = replayed(guard, tasks, turns)
        figures = {
            f"{what} {p}": round(1e6 * float(np.percentile(values, q)), 1)
            for what, values in (("judge", judged), ("follow", followed))
            for p, q in (("p50", 50), ("p99", 99))
        } | {"whole": whole, "known": known}
        yield {"domain": name, "turns": turns, "calls": len(judged), **figures}


def replayed(guard: Guard, tasks: list[dict[str, Any]], turns: int) -> tuple[float, float]:
    """The CPU microseconds to follow a conversation that is given whole, as to the proxy.

    First where nothing of it is known, then where all but its last call and result was followed before.
    """
    messages: list[dict[str, Any]] = []
    for _, event in chain.from_iterable(events(task) for task in cycle(tasks)):
        messages.append(as_message(event))
        if sum(message["role"] == "user" for message in messages) >= turns and isinstance(event, Answered):
            break
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPLAYS):
        followed = Followed(guard)
        for took, part in zip(times, (messages[:-2], messages)):
            began = time.thread_time()
            followed.at_end_of(part)
            took.append(time.thread_time() - began)
    first, second = (round(1e6 * float(np.median(took)), 1) for took in times)
    return first, second


def as_message(event: Event) -> dict[str, Any]:
    """An event as a message of chat completions."""
    match event:
        case Heard(said):
            return {"role": "user", "content": said}
        case Answered(identity, result):
            return {"role": "tool", "tool_call_id": identity, "content": result}
        case Said(said, calls):
            named = [(call.identity, {"name": call.name, "arguments": json.dumps(call.arguments)}) for call in calls]
            made = [{"id": identity, "type": "function", "function": function} for identity, function in named]
            return {"role": "assistant", "content": said or None, **({"tool_calls": made} if made else {})}
    raise AssertionError(event)


def text(result: dict[str, Any]) -> str:
    """The tables."""
    talks = result["conversations"]
    names = ["conversations", "calls", "errors", "errors refused", "gold calls", "gold calls refused"]
    shown = [outcomes(result), "", markdown(names, [[talks[name] for name in names]], 0), ""]
    shown += [f"near misses: {talks['near misses']}; gold calls refused: {talks['gold refused because']}", ""]
    shown += [conditions(result), "", gold(result), ""]
    shown += [f"- {row['domain']}: {why}: {n}" for row in result["gold"] for why, n in row["refused by"].items()]
    return "\n".join([*shown, cost(result)])


def outcomes(result: dict[str, Any]) -> str:
    """The table of how well refusals tell failed conversations from solved ones."""
    names = {"outcomes": "any refused call", "outcomes by what was carried out": "a refused call that was carried out",
             "outcomes by near misses": "a near miss"}  # fmt: skip
    talks = result["conversations"]
    rows = []
    for key, words in names.items():
        one = talks[key] or {}
        if one.get("precision") is not None:
            counts = [one[column] for column in ("failed", "failed flagged", "solved", "solved flagged")]
            rows.append([words, *counts, f"{one['precision']:.2f}", f"{one['recall']:.2f}"])
    return markdown(["flagged by", "failed", "flagged", "solved", "flagged", "precision", "recall"], rows)


def conditions(result: dict[str, Any]) -> str:
    """The table of what refused calls, by the first condition that failed."""
    columns = ("calls", "failed", "near misses", "gold")
    rows = [
        [row["why"], row["kind"], *(row[column] for column in columns)] for row in result["conversations"]["refused by"]
    ]
    return markdown(["refused by", "about", "calls", "stopped by the tool", "near misses", "gold"], rows, 2)


def gold(result: dict[str, Any]) -> str:
    """The table of gold calls in recorded transcripts."""
    names = ["tasks", "actions", "admitted", "lookups", "lookups admitted"]
    return markdown(["domain", *names], [[row["domain"], *(row[name] for name in names)] for row in result["gold"]])


def cost(result: dict[str, Any]) -> str:
    """The table of a call's cost by the conversation's length."""
    columns = ("judge p50", "judge p99", "follow p50", "follow p99", "whole", "known")
    rows = [
        [row["domain"], row["turns"], row["calls"], *(f"{row[column]:,.0f}" for column in columns)]
        for row in result["cost"]
    ]
    return markdown(["µs of CPU time", "turns", "calls", *columns], rows)
