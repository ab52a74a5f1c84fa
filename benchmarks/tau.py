"""tau-bench under its written policies: gold actions, real conversations of GPT-4o, the masks' cost, and play.

    constrained bench tau --json benchmarks/results/tau.json

- gold: each gold action of each task, replayed on the real tools after the lookups that show what it names and a
  scripted user's yes. Is it admitted?
- conversations: every call that GPT-4o made as the airline's agent, with the results it got. Are those that the tools
  answered with "Error", and those against the policy, kept out?
- cost: binding, compiling, and a mask at every token of each gold call.
- play (``--play N``): a model against the real tools and a scripted user, masks on and off.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.engine import vocabularies
from benchmarks.reporting import add_json, describe_machine, markdown, report
from constrained import ActionKnowledge, Vocabulary, __version__, compile_grammar
from constrained.environments.data import data_folder
from constrained.environments.tau import DOMAINS, YES, TauDomain, TauEnv, TauTask, reads_before
from constrained.errors import ConstrainedError, DataError
from constrained.knowledge.tool_policy import Memory

FINDERS = ("find_user_id_by_email", "find_user_id_by_name_zip")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--package", metavar="FOLDER", help="tau-bench's source (default: $TAU_BENCH, or the data folder's archive)")
    add("--domain", choices=DOMAINS, help="only this one")
    add("--split", help="only this split of the tasks (default: all that are there)")
    add(
        "--conversations",
        metavar="FILE",
        help="recorded airline conversations, .jsonl(.xz) (default: the data folder's)",
    )
    add("--limit", type=int, metavar="N", help="only the first N tasks of a split, and N conversations")
    add("--vocabulary", choices=vocabularies.BY_SIZE, default="qwen2.5", help="of the cost (default: qwen2.5)")
    add("--costs", type=int, default=100, metavar="N", help="gold calls whose masks are timed (default: 100)")
    add("--play", type=int, default=0, metavar="N", help="also play N tasks of each domain, masks on and off")
    add("--model", help="who plays: a folder, a GGUF file, a Hub name (default: the embedded model)")
    add("--strategy", default="act", help="of playing (default: act)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    for name in ("limit", "costs", "play"):
        if (value := getattr(options, name)) is not None and (value < 0 or (name == "limit" and not value)):
            raise ConstrainedError(f"--{name} is {value}", "use 1 or more, or leave it out")
    gold, calls, played = [], [], []
    for name in [options.domain] if options.domain else DOMAINS:
        domain = TauDomain(name, options.package)
        knowledge = domain.knowledge()
        for split in [options.split] if options.split else domain.splits():
            tasks = domain.tasks(split)[: options.limit]
            row, timed = replay_gold(domain, knowledge, split, tasks)
            gold.append(row)
            calls += timed
        if options.play:
            split = options.split or domain.splits()[0]
            played += list(play(domain, knowledge, domain.tasks(split)[: options.play], options))
    conversations = None
    if options.domain != "retail":
        domain = TauDomain("airline", options.package)
        conversations = judge_conversations(domain.knowledge(), read_conversations(options))
    tokens = vocabularies.load(options.vocabulary)
    vocabulary = Vocabulary(tokens.tokens, tokens.eos, special_ids=tokens.special)
    step = max(1, len(calls) // max(options.costs, 1))
    cost = measure(calls[::step][: options.costs], vocabulary) if options.costs and calls else {}
    facts = {"version": __version__, "machine": describe_machine(), "vocabulary": options.vocabulary}
    result = {**facts, "gold": gold, "conversations": conversations, "cost": cost, "played": played}
    return report(text(result), result, options)


# gold actions


def replay_gold(
    domain: TauDomain, knowledge: ActionKnowledge, split: str, tasks: list[TauTask]
) -> tuple[dict[str, Any], list[tuple[ActionKnowledge, Memory, str]]]:
    """How many gold actions are admitted, and each with the state it is written in."""
    counts: Counter[str] = Counter()
    left_out: list[dict[str, Any]] = []
    calls = []
    for task in tqdm(tasks, desc=f"{domain.name} {split}", unit="task", leave=False):
        for kind, name, arguments, knowledge_then, memory in gold_steps(domain, knowledge, task):
            judged = _judge(knowledge_then, memory, name, arguments)
            if kind == "lookup":
                counts["lookups"] += 1
                counts["lookups admitted"] += bool(judged)
                continue
            data_error = kind == "error"
            counts["actions"] += 1
            counts["answered with an error"] += data_error
            counts["admitted"] += bool(judged) and not data_error
            counts["errors admitted"] += bool(judged) and data_error
            if judged:
                calls.append((knowledge_then, memory, knowledge.tools.write(name, arguments)))
            elif not data_error:
                why = knowledge.tools.unmet(memory, name, arguments) or [judged.reason]
                left_out.append({"task": task.name, "tool": name, "arguments": arguments, "why": why[0]})
    return {"domain": domain.name, "split": split, "tasks": len(tasks), **counts, "not admitted": left_out}, calls


def gold_steps(
    domain: TauDomain, knowledge: ActionKnowledge, task: TauTask
) -> Iterator[tuple[str, str, dict[str, Any], ActionKnowledge, Memory]]:
    """(lookup, action or error; tool, arguments, the knowledge and memory before it) of a task's gold calls."""
    tools = knowledge.tools
    assert tools is not None
    data, memory, done = domain.data(), tools.policy.initial, set()
    memory = tools.policy.told(memory, tools.policy.message, {"content": ""}, task.instruction)

    def carry_out(name: str, arguments: dict[str, Any]) -> str:
        nonlocal memory
        answer = domain.call(data, name, deepcopy(arguments))
        memory = tools.policy.told(memory, name, arguments, answer)
        return answer

    for name, arguments in task.actions:
        if name not in tools.calls:
            continue
        lookups = [] if name in FINDERS else reads_before(domain.name, name, arguments, data, task.user)
        for lookup in lookups:
            key = json.dumps(lookup)
            if key in done or lookup == (name, arguments) or (lookup[0] in FINDERS and memory.get("customer")):
                continue
            done.add(key)
            yield "lookup", *lookup, knowledge, memory
            carry_out(*lookup)
        memory = tools.policy.told(memory, tools.policy.message, {"content": "Shall I?"}, YES)
        before = memory
        answer = carry_out(name, arguments)
        yield "error" if answer.startswith("Error") else "action", name, arguments, knowledge, before


def _judge(knowledge: ActionKnowledge, memory: Memory, name: str, arguments: Mapping[str, Any]):
    assert knowledge.tools is not None
    return knowledge.bind_view(knowledge.tools.view(memory)).judge(knowledge.tools.write(name, arguments))


# recorded conversations


def read_conversations(options: argparse.Namespace) -> list[list[dict[str, Any]]]:
    """The messages of each recorded conversation."""
    path = Path(options.conversations or data_folder() / "tau_bench" / "gpt4o_airline.jsonl.xz")
    opened = lzma.open if path.suffix == ".xz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.strip()]
        return [row["traj"] for row in rows[: options.limit]]
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError) as error:
        raise DataError(f"can't read conversations from {path}: {error}", "give tau-bench's runs as .jsonl") from None


def judge_conversations(knowledge: ActionKnowledge, conversations: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """What the masks would have done with each recorded call."""
    tools = knowledge.tools
    assert tools is not None
    calls: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    exceptions: list[dict[str, Any]] = []
    for number, messages in enumerate(tqdm(conversations, desc="conversations", unit="talk", leave=False)):
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
                known = name in tools.calls
                judged = bool(known and _judge(knowledge, memory, name, arguments))
                failed = tools.policy.failed(answer)
                calls["calls"] += 1
                calls["errors"] += failed
                calls["errors admitted"] += failed and judged
                calls["others"] += not failed
                calls["others admitted"] += judged and not failed
                if failed and judged:
                    exceptions.append({"conversation": number, "tool": name, "arguments": arguments, "answer": answer})
                if not judged:
                    why = tools.unmet(memory, name, arguments) if known else ["no such tool"]
                    kinds["error" if failed else "policy", f"{name}: {(why or ['not in its schema'])[0]}"] += 1
                if known:
                    memory = tools.policy.told(memory, name, arguments, answer)
    listed = [{"answered": a, "why": why, "calls": count} for (a, why), count in kinds.most_common()]
    return {"conversations": len(conversations), **calls, "kept out": listed, "errors let through": exceptions}


# cost


def measure(calls: list[tuple[ActionKnowledge, Memory, str]], vocabulary: Vocabulary) -> dict[str, Any]:
    """Milliseconds for a call: what is known bound to its masks, and a mask at each of its tokens."""
    parts: dict[str, list[float]] = {"bind": [], "masks": [], "whole call": [], "a token": []}
    tokens = {token: i for i, token in reversed(list(enumerate(vocabulary.tokens))) if token}
    longest = max(map(len, tokens))
    for knowledge, memory, action in tqdm(calls, desc="cost", unit="call", leave=False):
        assert knowledge.tools is not None
        spelled = _spelled(action.encode(), tokens, longest)
        start = time.perf_counter()
        grammar = knowledge.bind_view(knowledge.tools.view(memory)).next_action()
        matcher = compile_grammar(grammar, vocabulary).matcher()
        bound = time.perf_counter()
        each = []
        for token in spelled:
            began = time.perf_counter()
            matcher.allowed_token_ids()
            if not matcher.advance(token):
                raise ConstrainedError(f"the masks don't admit {action[:80]!r}, which is judged ok", "report this")
            each.append(time.perf_counter() - began)
        end = time.perf_counter()
        parts["bind"].append(bound - start)
        parts["masks"].append(end - bound)
        parts["whole call"].append(end - start)
        parts["a token"] += each
    return {
        "calls": len(calls),
        **{f"{name} {p}": 1000 * float(np.percentile(values, q)) for name, values in parts.items()
           for p, q in (("p50", 50), ("p99", 99))},
    }  # fmt: skip


def _spelled(data: bytes, tokens: Mapping[bytes, int], longest: int) -> list[int]:
    """A text as tokens, the longest first."""
    out, at = [], 0
    while at < len(data):
        size = next(n for n in range(min(longest, len(data) - at), 0, -1) if data[at : at + n] in tokens)
        out.append(tokens[data[at : at + size]])
        at += size
    return out


# play


def play(domain: TauDomain, knowledge: ActionKnowledge, tasks: list[TauTask], options) -> Iterator[dict[str, Any]]:
    """A model's games against the real tools, masks on and off."""
    from constrained import generate_plan  # torch takes seconds to import

    for masks in (True, False):
        counts: Counter[str] = Counter()
        for task in tqdm(tasks, desc=f"{domain.name}, masks {'on' if masks else 'off'}", unit="task", leave=False):
            env = TauEnv(domain, task, knowledge)
            plan = generate_plan(
                task.instruction, knowledge, environment=env, strategy=options.strategy, model=options.model,
                constrained=masks, max_steps=12, temperature=0.7,
            )  # fmt: skip
            counts["actions"] += len(plan.steps)
            counts["not admitted"] += plan.invalid + plan.misordered
            counts["errors"] += sum((s.observation or "").startswith("Error") for s in plan.steps)
            counts["solved"] += bool(plan.success)
        yield {
            "domain": domain.name,
            "masks": masks,
            "model": options.model or "embedded",
            "tasks": len(tasks),
            **counts,
        }


def text(result: dict[str, Any]) -> str:
    """The tables."""
    shown = []
    rows = [
        [r["domain"], r["split"], r["tasks"], r["actions"], r["answered with an error"], r["errors admitted"],
         r["actions"] - r["answered with an error"], r["admitted"]]
        for r in result["gold"]
    ]  # fmt: skip
    head = ["domain", "split", "tasks", "gold actions", "the tools refuse", "of these admitted", "others", "admitted"]
    shown.append(markdown(head, rows))
    for row in result["gold"]:
        shown += [f"- {one['task']}: {one['tool']}: {one['why']}" for one in row["not admitted"]]
    if talks := result["conversations"]:
        head = ["conversations", "calls", "answered with Error", "of these admitted", "others", "of these admitted"]
        names = ["conversations", "calls", "errors", "errors admitted", "others", "others admitted"]
        shown += ["", markdown(head, [[talks.get(name, 0) for name in names]]), ""]
        kinds = [[one["answered"], one["why"], one["calls"]] for one in talks["kept out"]]
        shown.append(markdown(["", "kept out because", "calls"], kinds))
    if cost := result["cost"]:
        rows = [
            [name, f"{cost[name + ' p50']:.2f}", f"{cost[name + ' p99']:.2f}"]
            for name in ("bind", "masks", "whole call", "a token")
        ]
        shown += ["", markdown([f"ms, {cost['calls']} calls, {result['vocabulary']}", "p50", "p99"], rows)]
    if result["played"]:
        head = ["domain", "model", "masks", "tasks", "solved", "actions", "not admitted", "answered with Error"]
        rows = [[r["domain"], r["model"], "on" if r["masks"] else "off", r["tasks"], r["solved"], r["actions"],
                 r["not admitted"], r["errors"]] for r in result["played"]]  # fmt: skip
        shown += ["", markdown(head, rows)]
    return "\n".join(shown)
