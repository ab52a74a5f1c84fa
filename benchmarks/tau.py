"""tau-bench under its written policies: gold actions, real conversations of GPT-4o, the masks' cost, and play.

    constrained bench tau --exact               compares with benchmarks/results/tau.json
    constrained bench tau --exact --update      records

- gold: each gold action of each task, after the lookups that show what it names and a scripted user's yes. Is it
  admitted? The tools' answers are those of the data folder's gold transcripts; or the real tools answer, where
  `--package` or the environment variable TAU_BENCH names a checkout of tau-bench.
- conversations: every call that GPT-4o made as the airline's agent, with the results it got. Are those that the tools
  answered with "Error", and those against the policy, kept out?
- cost: binding, compiling, and a mask at every token of each gold call.
- play (``--play N``): a model, random choice or a search against the real tools and a scripted user, masks on and off;
  needs the checkout (`benchmarks.tau_play`).

With a checkout of tau2-bench (``--tau2`` or TAU2_BENCH), retail and airline are replayed in its corrected tasks, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.engine import vocabularies
from benchmarks.engine.vocabularies import Tokens
from benchmarks.reporting import add_exact, add_json, check_exact, describe_machine, markdown, note_record, report
from benchmarks.result_files import RESULTS, read_record
from benchmarks.tau2_environment import DOMAINS as ALL_DOMAINS
from benchmarks.tau2_environment import SPLITS as CORRECTED
from benchmarks.tau2_environment import Tau2Domain, Tau2Task
from benchmarks.tau_environment import (
    DOMAINS,
    YES,
    RecordedDomain,
    RecordedTask,
    TauDomain,
    TauTask,
    find_domain,
    reads_before,
)
from benchmarks.tau_play import PLAYED, play, played_cells
from constrained import __version__, compile_grammar
from constrained.cli.options import MODELS, whole_number
from constrained.environments.data import data_folder
from constrained.errors import ConstrainedError, DataError
from constrained.files import to_json, write_whole
from constrained.knowledge import ToolKnowledge
from constrained.knowledge.tool_policy import Memory

Domain = TauDomain | RecordedDomain | Tau2Domain
Task = TauTask | RecordedTask | Tau2Task
Steps = Callable[[Any, ToolKnowledge, Any], Iterator[tuple[str, str, dict[str, Any], Memory]]]
"""A function such as `gold_steps`."""

RECORD = RESULTS / "tau.json"

NO_RULE = "the policy has no rule for it"

FINDERS = ("find_user_id_by_email", "find_user_id_by_name_zip")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    words = "a checkout of tau-bench, whose tools answer (default: $TAU_BENCH, or else their recorded answers)"
    add("--package", metavar="FOLDER", help=words)
    words = "a checkout of tau2-bench, whose tasks are replayed, too (default: $TAU2_BENCH, or else they aren't)"
    add("--tau2", metavar="FOLDER", help=words)
    words = "only this one; telecom is tau2-bench's, with a record of its own (default: retail and airline)"
    add("--domain", choices=ALL_DOMAINS, help=words)
    add("--split", help="only this split of the tasks (default: all that are there); tau2: the corrected ones")
    add(
        "--conversations",
        metavar="FILE",
        help="recorded airline conversations, .jsonl(.xz) (default: the data folder's)",
    )
    add("--limit", type=whole_number, metavar="N", help="only the first N tasks of a split, and N conversations")
    add(
        "--vocabulary",
        choices=vocabularies.BY_SIZE,
        default="qwen2.5",
        help="whose tokens the masks are over (default: qwen2.5)",
    )
    add("--costs", type=int, default=20, metavar="N", help="tasks of each domain whose masks are timed (default: 20)")
    add("--play", type=int, default=0, metavar="N", help="nothing else: play N tasks of each domain, masks on and off")
    add(
        "--model",
        default="embedded",
        help=f"who plays: {MODELS}; a server's address; random or search (default: embedded)",
    )
    add("--seeds", type=whole_number, default=1, metavar="N", help="times that each task is played (default: 1)")
    add("--max-steps", type=int, default=12, metavar="N", help="actions of a played task, at most (default: 12)")
    add("--strategy", default="act", help="of playing (default: act)")
    add_exact(parser, RECORD)
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    check_exact(options)
    if options.exact and options.limit:
        raise ConstrainedError("--exact compares whole splits", "leave out --limit")
    for name in ("limit", "costs", "play"):
        if (value := getattr(options, name)) is not None and (value < 0 or (name == "limit" and not value)):
            raise ConstrainedError(f"--{name} is {value}", "use 1 or more, or leave it out")
    if options.domain == "telecom" and not options.play:
        return import_module("benchmarks.telecom.command").run_command(options)  # which imports this module
    tokens = vocabularies.load(options.vocabulary) if options.costs and not options.play else None
    # Read what may be missing before anything long begins. The recorded conversations are the airline's.
    judged = options.domain in (None, "airline") and options.split != CORRECTED["airline"] and not options.play
    talks = read_conversations(options) if judged else []
    gold, cost, played = [], [], []
    for name in [options.domain] if options.domain else DOMAINS:
        if options.play:
            live = playable(name, options)
            split = options.split or live.splits()[0]
            played += list(play(live, live.knowledge(), split, live.tasks(split)[: options.play], options))
            continue
        for domain in domains_of(name, options):
            knowledge = domain.knowledge()
            for split in [options.split] if options.split else domain.splits():
                tasks = domain.tasks(split)[: options.limit]
                gold.append(replay_gold(domain, knowledge, split, tasks))
            if tokens is not None and not isinstance(domain, Tau2Domain):
                tasks = domain.tasks(options.split or domain.splits()[0])
                cost.append(measure(domain, knowledge, tasks[: options.costs], tokens))
    conversations = None
    if judged:
        conversations = judge_conversations(find_domain("airline", options.package).knowledge(), talks)
    facts = {"version": __version__, "machine": describe_machine(), "vocabulary": options.vocabulary}
    result = {**facts, "gold": gold, "conversations": conversations, "cost": cost, "played": played}
    report(text(result), result, options)
    return compare(result, options.update) if options.exact else 0


def playable(name: str, options: argparse.Namespace) -> Any:
    """A domain whose tools answer: telecom's without a checkout are those of `benchmarks.telecom`."""
    if name == "telecom" and not (options.tau2 or os.environ.get("TAU2_BENCH")):
        return import_module("benchmarks.telecom.environment").TelecomDomain()
    corrected = name == "telecom" or options.split == CORRECTED[name]
    return Tau2Domain(name, options.tau2) if corrected else TauDomain(name, options.package)


def domains_of(name: str, options: argparse.Namespace) -> Iterator[Domain]:
    """A domain in the first version's tasks and, if a checkout of tau2-bench is named, in the corrected ones."""
    if options.split != CORRECTED[name]:
        yield find_domain(name, options.package)
    if options.split in (None, CORRECTED[name]) and (options.split or options.tau2 or os.environ.get("TAU2_BENCH")):
        yield Tau2Domain(name, options.tau2)


def compare(result: dict[str, Any], update: bool) -> int:
    """Say what differs from the recorded counts; 1 if something got worse and isn't recorded."""
    before = read_record(RECORD, "constrained bench tau")
    then, now = _counts(before), _counts(result)
    worse = False
    for name in now:
        if name in then and now[name] != then[name]:
            fell = (now[name] < then[name]) != ("error" in name)  # fewer is better of errors only
            worse = worse or fell
            print(f"{'WORSE' if fell else 'better'}: {name}: {then[name]} is now {now[name]}")
    if update:
        rows = {key: {_name(row): row for row in before.get(key, [])} for key in ("gold", "cost", "played")}
        for key, known in rows.items():
            known.update({_name(row): row for row in result[key]})
        kept = {key: list(known.values()) for key, known in rows.items()}
        talks = result["conversations"] or before.get("conversations")
        write_whole(RECORD, to_json({**result, **kept, "conversations": talks}))
        note_record(RECORD)
    return int(worse and not update)


def _name(row: Mapping[str, Any]) -> str:
    """What identifies a row of a table."""
    return ", ".join(str(row[key]) for key in ("domain", "split", "model", "masks") if key in row)


def _counts(result: Mapping[str, Any]) -> dict[str, int]:
    """The counts that don't depend on the machine: how much is admitted."""
    counts = {
        f"{_name(row)}: {key}": row[key]
        for row in result.get("gold", ())
        for key in ("admitted", "lookups admitted")
        if key in row
    }
    talks = result.get("conversations") or {}
    return counts | {
        f"conversations: {key}": talks[key] for key in ("others admitted", "errors admitted") if key in talks
    }


# gold actions


def replay_gold(
    domain: Any, knowledge: ToolKnowledge, split: str, tasks: Sequence[Any], steps: Steps | None = None
) -> dict[str, Any]:
    """How many gold actions are admitted; `steps`: those of another benchmark's domain and tasks."""
    counts: Counter[str] = Counter()
    left_out: list[dict[str, Any]] = []
    for task in tqdm(tasks, desc=f"{domain.name} {split}", unit="task", leave=False, disable=None):
        for kind, name, arguments, memory in (steps or gold_steps)(domain, knowledge, task):
            judged = _judge(knowledge, memory, name, arguments) if name in knowledge.tools.calls else None
            counts["lookups" if kind == "lookup" else "actions"] += 1
            counts["lookups admitted" if kind == "lookup" else "admitted"] += bool(judged)
            counts["answered with an error"] += kind == "error"
            counts["refused, not carried out"] += kind == "error" and not judged
            if not judged:
                reason = NO_RULE if judged is None else judged.reason
                why = judged is not None and knowledge.tools.unmet(memory, name, arguments) or [reason]
                left_out.append({"task": task.name, "tool": name, "arguments": arguments, "why": why[0]})
    return {"domain": domain.name, "split": split, "tasks": len(tasks), **counts, "not admitted": left_out}


def gold_steps(
    domain: Domain, knowledge: ToolKnowledge, task: Task
) -> Iterator[tuple[str, str, dict[str, Any], Memory]]:
    """Yield (kind, tool, arguments, memory before it) of a task's gold calls; kinds: lookup, action, error."""
    if isinstance(task, RecordedTask):
        yield from _recorded_steps(knowledge, task)
        return
    assert not isinstance(domain, RecordedDomain), "whose tools don't answer"
    tools = knowledge.tools
    # Before each gold call come the lookups that show what it names, each once, and the user's yes.
    data, memory, done = domain.data(), tools.policy.initial, set()
    memory = tools.policy.told(memory, tools.policy.message, {"content": ""}, task.instruction)

    def carry_out(name: str, arguments: dict[str, Any]) -> str:
        nonlocal memory
        answer = domain.call(data, name, arguments)
        memory = tools.policy.told(memory, name, arguments, answer)
        return answer

    for name, arguments in task.actions:
        rows = domain.rows(data)
        lookups = [] if name in FINDERS else reads_before(domain.name, name, arguments, rows, task.user)
        for lookup in lookups:
            key = json.dumps(lookup)
            if key in done or lookup == (name, arguments) or (lookup[0] in FINDERS and memory.get("customer")):
                continue
            done.add(key)
            yield "lookup", *lookup, memory
            carry_out(*lookup)
        memory = tools.policy.told(memory, tools.policy.message, {"content": "Shall I?"}, YES)
        before = memory
        answer = carry_out(name, arguments)
        yield "error" if answer.startswith("Error") else "action", name, arguments, before


def _recorded_steps(knowledge: ToolKnowledge, task: RecordedTask) -> Iterator[tuple[str, str, dict[str, Any], Memory]]:
    """The same of a transcript."""
    tools = knowledge.tools
    memory = tools.policy.told(tools.policy.initial, tools.policy.message, {"content": ""}, task.instruction)
    for step in task.steps:
        if step.kind != "lookup":
            memory = tools.policy.told(memory, tools.policy.message, {"content": "Shall I?"}, YES)
        yield step.kind, step.tool, step.arguments, memory
        memory = tools.policy.told(memory, step.tool, step.arguments, step.result)


def _judge(knowledge: ToolKnowledge, memory: Memory, name: str, arguments: Mapping[str, Any]):
    return knowledge.bind_view(knowledge.tools.view(memory)).judge(knowledge.tools.write(name, arguments))


# recorded conversations


@dataclass(frozen=True)
class Conversation:
    """A recorded conversation: its messages, whether the database ended as it should, and the task's gold calls."""

    messages: list[dict[str, Any]]
    solved: bool
    gold: list[tuple[str, Any]]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Conversation:
        gold = [(call["name"], call["kwargs"]) for call in row["info"]["task"]["actions"]]
        return cls(row["traj"], row["reward"] == 1, gold)


def read_conversations(options: argparse.Namespace) -> list[Conversation]:
    """The recorded conversations."""
    path = Path(options.conversations or data_folder() / "tau_bench" / "gpt4o_airline.jsonl.xz")
    opened = lzma.open if path.suffix == ".xz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.strip()]
        return [Conversation.of(row) for row in rows[: options.limit]]
    except (OSError, ValueError, KeyError, TypeError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"can't read conversations from {path}: {error}", "give tau-bench's runs as .jsonl") from None


def judge_conversations(knowledge: ToolKnowledge, conversations: list[Conversation]) -> dict[str, Any]:
    """What the masks would have done with each recorded call, and in how many conversations they refuse one."""
    tools = knowledge.tools
    calls: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    exceptions: list[dict[str, Any]] = []
    refused: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = {"solved": Counter(), "failed": Counter()}
    for number, talk in enumerate(tqdm(conversations, desc="conversations", unit="talk", leave=False, disable=None)):
        messages, outcome, kept_out = talk.messages, outcomes["solved" if talk.solved else "failed"], set()
        # The memory is updated by the recorded calls, whether or not the masks would have admitted them.
        memory, said = tools.policy.initial, ""
        for i, message in enumerate(messages):
            if message["role"] == "user":
                memory = tools.policy.told(memory, tools.policy.message, {"content": said}, message["content"] or "")
            if message["role"] != "assistant":
                continue
            said = message.get("content") or ""
            asked = message.get("tool_calls") or []
            calls["several at once"] += max(len(asked) - 1, 0)
            calls["beside a message"] += bool(asked and said)
            for k, call in enumerate(asked):
                name = call["function"]["name"]
                try:
                    arguments = json.loads(call["function"]["arguments"])
                except ValueError:
                    arguments = {}
                answer = next(
                    (m.get("content") or "" for m in messages[i + 1 + k : i + 2 + k] if m["role"] == "tool"), ""
                )
                has_rule = name in tools.calls
                judged = bool(has_rule and _judge(knowledge, memory, name, arguments))
                failed = tools.policy.failed(answer)
                calls["calls"] += 1
                calls["errors"] += failed
                calls["errors admitted"] += failed and judged
                calls["others"] += not failed
                calls["others admitted"] += judged and not failed
                if failed and judged:
                    exceptions.append({"conversation": number, "tool": name, "arguments": arguments, "answer": answer})
                if not judged:
                    kept_out.add(failed)
                    refused["calls"] += not failed
                    refused["gold calls"] += not failed and (name, arguments) in talk.gold
                    refused["in solved conversations"] += not failed and talk.solved
                    why = tools.unmet(memory, name, arguments) if has_rule else ["no such tool"]
                    kinds["error" if failed else "policy", f"{name}: {(why or ['not in its schema'])[0]}"] += 1
                if has_rule:
                    memory = tools.policy.told(memory, name, arguments, answer)
        outcome["conversations"] += 1
        outcome["with a refusal"] += bool(kept_out)
        outcome["with a refusal of a call that was carried out"] += False in kept_out
    listed = [{"answered": a, "why": why, "calls": count} for (a, why), count in kinds.most_common()]
    return {
        "conversations": len(conversations),
        **calls,
        "refused though carried out": dict(refused),
        "outcomes": {name: dict(counts) for name, counts in outcomes.items()},
        "kept out": listed,
        "errors let through": exceptions,
    }


# cost


def measure(
    domain: Any, knowledge: ToolKnowledge, tasks: Sequence[Any], tokens: Tokens, steps: Steps | None = None
) -> dict[str, Any]:
    """Measure the CPU milliseconds of a call: binding what is known, and a mask at each token.

    Every admitted gold call and lookup is timed where it stands in its conversation.
    """
    parts: dict[str, list[float]] = {"bind": [], "masks": [], "whole call": [], "a token": []}
    vocabulary = tokens.vocabulary
    mask = np.zeros((1, vocabulary.words), np.int32)
    for task in tqdm(tasks, desc=f"{domain.name} cost", unit="task", leave=False, disable=None):
        for _, name, arguments, memory in (steps or gold_steps)(domain, knowledge, task):
            action = knowledge.tools.write(name, arguments)
            spelled = vocabularies.spell(tokens, action)
            gc.disable()  # it would walk through the task's database
            start = time.process_time()
            grammar = knowledge.bind_view(knowledge.tools.view(memory)).next_action()
            matcher = compile_grammar(grammar, vocabulary).matcher()
            bound = time.process_time()
            each = []
            for token in spelled:
                began = time.process_time()
                matcher.fill_bitmask(mask)
                if not matcher.advance(token):
                    break
                each.append(time.process_time() - began)
            else:
                end = time.process_time()
                parts["bind"].append(bound - start)
                parts["masks"].append(end - bound)
                parts["whole call"].append(end - start)
                parts["a token"] += each
            gc.enable()
    return {
        "domain": domain.name,
        "calls": len(parts["bind"]),
        **{f"{name} {p}": 1000 * float(np.percentile(values, q)) for name, values in parts.items()
           for p, q in (("p50", 50), ("p99", 99))},
    }  # fmt: skip


def text(result: dict[str, Any]) -> str:
    """The tables."""
    shown = []
    rows = [
        [r["domain"], r["split"], r["tasks"], r["actions"], r["admitted"], r["answered with an error"], r["lookups"],
         r["lookups admitted"]]
        for r in result["gold"]
    ]  # fmt: skip
    head = ["domain", "split", "tasks", "gold actions", "admitted", "the tools refuse", "lookups", "admitted"]
    shown += [markdown(head, rows)] if rows else []
    for row in result["gold"]:
        shown += [f"- {one['task']}: {one['tool']}: {one['why']}" for one in row["not admitted"]]
    if talks := result["conversations"]:
        head = ["conversations", "calls", "answered with Error", "of these admitted", "others", "of these admitted"]
        names = ["conversations", "calls", "errors", "errors admitted", "others", "others admitted"]
        shown += ["", markdown(head, [[talks.get(name, 0) for name in names]]), ""]
        shown += [refusals(talks), ""]
        kinds = [[one["answered"], one["why"], one["calls"]] for one in talks["kept out"]]
        shown.append(markdown(["", "kept out because", "calls"], kinds))
    if result["cost"]:
        names = [f"{name} {p}" for name in ("bind", "masks", "whole call", "a token") for p in ("p50", "p99")]
        rows = [[r["domain"], r["calls"], *(f"{r[name]:.2f}" for name in names)] for r in result["cost"]]
        shown += ["", markdown([f"CPU ms, {result['vocabulary']}", "calls", *names], rows)]
    if result["played"]:
        shown += ["", markdown(PLAYED, [played_cells(row) for row in result["played"]])]
    return "\n".join(shown)


def refusals(talks: Mapping[str, Any]) -> str:
    """What the refusals say of conversations, and how many of the refused calls were the task's own."""
    refused, by = Counter(talks["refused though carried out"]), talks["outcomes"]
    keys = ("conversations", "with a refusal", "with a refusal of a call that was carried out")
    flagged = [[name, *(by[name].get(key, 0) for key in keys)] for name in ("failed", "solved")]
    head = ["conversations", "", "with a refusal", "of these, of a call that the tools carried out"]
    words = (
        f"Of the {refused['calls']} calls that are refused and were carried out, {refused['gold calls']} are exact "
        f"gold calls, and {refused['in solved conversations']} stand in conversations that were scored 1."
    )
    return f"{markdown(head, flagged)}\n\n{words}"
