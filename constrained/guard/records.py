"""Recorded conversations under a policy: which calls it refuses, by condition, and what they have to do with outcomes.

A *violation* is a call that was made although the policy doesn't admit it there. Of those that the tools carried out, a
*near miss* is one that changes something, and whose only fault is that a required step was left out: nobody confirmed
it, or what it needs was never looked up. It may not show in the outcome (as in studies of tool agents' policies).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from constrained.errors import DataError, KnowledgeError
from constrained.guard.conversation import Conversation, Guard
from constrained.guard.messages import Answered, Did, Said, ToolCall, message_events
from constrained.guard.verdict import FACTS, WORDS, Verdict
from constrained.guard.words import SaysYes
from constrained.knowledge.lines.forms import Form, Name
from constrained.knowledge.tool_calls import strings_in
from constrained.knowledge.tool_policy import Policy
from constrained.knowledge.tool_policy.calls import names_used
from constrained.knowledge.tool_policy.policy import root, slot_of

CONFIRMATION, READ = "confirmation", "read"
"""The step that a near miss left out."""

SOLVED = 1.0 - 1e-6
"""Least reward of a solved task."""


@dataclass(frozen=True)
class RecordedConversation:
    """A recorded conversation.

    Attributes
    ----------
    name : str
    messages : list
    tools : list or None
        The tools that were offered, if the record says so.
    solved : bool or None
        The outcome, if there is one.
    gold : tuple of (str, dict)
        The calls that should have been made, if they are given.
    """

    name: str
    messages: list[Any]
    tools: Any = None
    solved: bool | None = None
    gold: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True)
class Violation:
    """A call that was made, and that the policy doesn't admit there.

    Attributes
    ----------
    conversation : str
    message : int
        The number of the message that makes it.
    verdict : Verdict
    answer : str or None
        What the tool answered; None if it didn't.
    failed : bool
        The answer begins like an error, so that nothing happened.
    missing : str
        "confirmation" or "read" of a near miss; else empty.
    gold : bool
        It is exactly one of the calls that should have been made.
    """

    conversation: str
    message: int
    verdict: Verdict
    answer: str | None
    failed: bool
    missing: str = ""
    gold: bool = False

    @property
    def why(self) -> str:
        """The tool, and the first condition that doesn't hold."""
        return f"{self.verdict.name}: {self.verdict.unmet[0].why}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        unmet = [{"why": one.why, "kind": one.kind, "line": one.line} for one in self.verdict.unmet]
        return {
            "conversation": self.conversation, "message": self.message, "tool": self.verdict.name,
            "arguments": self.verdict.arguments, "unmet": unmet, "answer": self.answer, "failed": self.failed,
            "near miss": self.missing, "gold": self.gold,
        }  # fmt: skip


@dataclass
class Findings:
    """What a policy says of recorded conversations.

    Attributes
    ----------
    conversations : list of RecordedConversation
    calls : int
    errors : int
        Calls that the tools answered with an error.
    gold_calls : int
        Calls that are exactly as they should be.
    violations : list of Violation
    user_calls : int
        Calls that users made of their own tools.
    user_unmet : Counter of str
        Why the policy wouldn't have the user asked for some of these.
    """

    conversations: list[RecordedConversation] = field(default_factory=list)
    calls: int = 0
    errors: int = 0
    gold_calls: int = 0
    violations: list[Violation] = field(default_factory=list)
    user_calls: int = 0
    user_unmet: Counter[str] = field(default_factory=Counter)

    def near_misses(self) -> list[Violation]:
        """The violations that left out a step."""
        return [one for one in self.violations if one.missing]

    def outcomes(self, violations: Iterable[Violation]) -> dict[str, Any] | None:
        """How well these violations tell failed conversations from solved ones; None if no outcome is known."""
        solved = {record.name: record.solved for record in self.conversations if record.solved is not None}
        if not solved:
            return None
        flagged = {one.conversation for one in violations} & solved.keys()
        failed = {name for name, won in solved.items() if not won}
        hits = len(flagged & failed)
        return {
            "failed": len(failed), "failed flagged": hits,
            "solved": len(solved) - len(failed), "solved flagged": len(flagged) - hits,
            "precision": round(hits / len(flagged), 4) if flagged else None,
            "recall": round(hits / len(failed), 4) if failed else None,
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        made = [one for one in self.violations if not one.failed]
        near = self.near_misses()
        return {
            "conversations": len(self.conversations), "calls": self.calls,
            "errors": self.errors, "errors refused": sum(one.failed for one in self.violations),
            "violations": len(self.violations), "carried out": len(made),
            "gold calls": self.gold_calls, "gold calls refused": sum(one.gold for one in self.violations),
            "near misses": dict(Counter(one.missing for one in near).most_common()),
            "conversations with near misses": len({one.conversation for one in near}),
            "refused by": self.by_condition(),
            "outcomes": self.outcomes(self.violations),
            "outcomes by what was carried out": self.outcomes(made),
            "outcomes by near misses": self.outcomes(near),
            **({"calls by users": self.user_calls, "not admitted of these": dict(self.user_unmet.most_common())}
               if self.user_calls else {}),
        }  # fmt: skip

    def by_condition(self) -> list[dict[str, Any]]:
        """For each condition: how many calls it was the first to refuse, most first."""
        kinds: dict[str, list[Violation]] = {}
        for one in self.violations:
            kinds.setdefault(one.why, []).append(one)
        rows = [
            {
                "why": why, "kind": ones[0].verdict.unmet[0].kind, "line": ones[0].verdict.unmet[0].line,
                "calls": len(ones), "failed": sum(one.failed for one in ones),
                "near misses": sum(bool(one.missing) for one in ones), "gold": sum(one.gold for one in ones),
            }
            for why, ones in kinds.items()
        ]  # fmt: skip
        return sorted(rows, key=lambda row: -row["calls"])


def read_record(value: Any, where: str) -> RecordedConversation:
    """A record from a line of a file: a list of messages, or an object with them.

    The messages are under "messages" or (tau-bench) "traj"; the outcome is "solved", "success" or "reward"; the calls
    that should have been made are "gold", or in tau-bench's "info". Raises DataError: there are no messages.
    """
    if isinstance(value, list):
        return RecordedConversation(where, value)
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: no conversation but a {type(value).__name__}", "give a list of messages")
    messages = next((value[key] for key in ("messages", "traj", "conversation") if key in value), None)
    if not isinstance(messages, list):
        raise DataError(f"{where}: there are no messages", 'give {"messages": [...]}, or a list of messages')
    info: Any = value.get("info") if isinstance(value.get("info"), Mapping) else {}
    task: Any = value.get("task") or info.get("task") or {}
    gold = value.get("gold") or (task.get("actions") if isinstance(task, Mapping) else None) or ()
    pairs = [_gold(one) for one in gold if isinstance(one, Mapping)]
    return RecordedConversation(
        where, messages, value.get("tools"), _solved(value), tuple(pair for pair in pairs if pair)
    )


def _solved(value: Mapping[str, Any]) -> bool | None:
    info = value.get("reward_info")
    if isinstance(info, Mapping) and "reward" not in value:
        value = {**value, "reward": info.get("reward")}
    for key in ("solved", "success"):
        if isinstance(value.get(key), bool):
            return value[key]
    reward = value.get("reward")
    return None if not isinstance(reward, (int, float)) else reward >= SOLVED


def _gold(action: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    arguments = next((action[key] for key in ("kwargs", "arguments") if isinstance(action.get(key), Mapping)), None)
    if arguments is None or not isinstance(action.get("name"), str) or action.get("requestor") == "user":
        return None
    return action["name"], arguments


def read_records(values: Iterable[tuple[str, Any]]) -> Iterator[RecordedConversation]:
    """The records of a file, (where, value) by (where, value); also of a file of tau2-bench's results.

    Raises DataError: a value is no conversation.
    """
    for where, value in values:
        if isinstance(value, Mapping) and isinstance(value.get("simulations"), list):
            tasks = {str(task.get("id")): task for task in value.get("tasks") or () if isinstance(task, Mapping)}
            for number, one in enumerate(value["simulations"]):
                task = tasks.get(str(one.get("task_id"))) if isinstance(one, Mapping) else None
                wanted = (task or {}).get("evaluation_criteria") or {}
                one = {**one, "gold": wanted.get("actions")} if isinstance(one, Mapping) else one
                yield read_record(one, f"{where}, simulation {number}")
        else:
            yield read_record(value, where)


def check_records(
    records: Iterable[RecordedConversation],
    policy: Policy,
    tools: Any = None,
    *,
    changes: Iterable[str] = (),
    says_yes: SaysYes | None = None,
) -> Findings:
    """Judge every call of recorded conversations.

    Parameters
    ----------
    records : iterable of RecordedConversation
    policy : Policy
    tools : list, str, Path or None
        As in `Guard`; default: those of each record.
    changes : iterable of str
        Tools that change something, besides those that `changing` finds.
    says_yes : callable, optional
        As in `Guard`.

    Raises
    ------
    KnowledgeError
        The policy and the tools don't fit, or a message can't be read.
    """
    guards: dict[str, Guard] = {}
    findings, mutating = Findings(), changing(policy) | {slot_of(name) for name in changes}
    for record in records:
        listed = tools if tools is not None else record.tools
        key = json.dumps(listed, sort_keys=True, default=str)
        if key not in guards:
            guards[key] = Guard(listed, policy, says_yes=says_yes)
        try:
            _check(record, guards[key], findings, mutating)
        except KnowledgeError as error:
            raise KnowledgeError(f"{record.name}: {error.message}", error.hint) from None
        findings.conversations.append(record)
    return findings


def changing(policy: Policy) -> set[str]:
    """The slots of tools that change something: a call needs a yes, or changes what results of other tools told."""
    guard = Guard(None, policy)
    told = policy.stored
    found = {slot_of(tool) for tool, needs in policy.needs.items() if any(guard.unmet(n).kind == WORDS for n in needs)}
    for tool, changes in policy.makes.items():
        if tool != policy.message and any(change.true is None and _inside(change.target, told) for change in changes):
            found.add(slot_of(tool))
    return found


def _inside(target: Form, told: frozenset[str]) -> bool:
    """Whether a place is a part of what results tell: ``order[id].status``."""
    return not isinstance(target, Name) and root(target) in told


def _check(record: RecordedConversation, guard: Guard, findings: Findings, mutating: set[str]) -> None:
    point = guard.start
    waiting: list[tuple[int, ToolCall, Verdict, Conversation]] = []
    events = [
        (number, event)
        for number, message in enumerate(record.messages)
        for event in message_events(message, f"messages[{number}]")
    ]
    for number, event in events:
        if isinstance(event, Did):
            _note_user(point, event, findings)
        if isinstance(event, Said):
            waiting = []
            now = point
            for call in event.calls:
                verdict = now.judge(call.name, call.arguments, allowed=False)
                waiting.append((number, call, verdict, now))
                now = now.called(call, refused=not verdict)
            answers = _answers(events, number)
            for (at, call, verdict, before), answer in zip(waiting, answers):
                _note(record, guard, findings, mutating, at, call, verdict, before, answer)
        point = point.after(event)


def _note_user(point: Conversation, event: Did, findings: Findings) -> None:
    """Note what the user did with tools of their own. It is no violation: nobody knows whether they were asked to."""
    for call in event.calls:
        if slot_of(call.name) in point.guard.user_slots:
            verdict = point.judge(call.name, call.arguments, allowed=False, by_user=True)
            findings.user_calls += 1
            if not verdict:
                findings.user_unmet[f"{call.name}: {verdict.unmet[0].why}"] += 1
            point = point.called(call)


def _answers(events: list[tuple[int, Any]], number: int) -> list[str | None]:
    """The results of the calls of a message: by identity where there is one, else in their order."""
    [calls] = [event.calls for at, event in events if at == number and isinstance(event, Said)]
    answers: list[Answered] = []
    for at, event in events:
        if at > number and isinstance(event, Said):
            break
        if at > number and isinstance(event, Answered) and not event.by_user:
            answers.append(event)
    found: list[str | None] = []
    for call in calls:
        match = next((one for one in answers if call.identity and one.identity == call.identity), None)
        match = match or next((one for one in answers if not one.identity or not call.identity), None)
        if match is not None:
            answers.remove(match)
        found.append(None if match is None else str(match.text))
    return found


def _note(
    record: RecordedConversation, guard: Guard, findings: Findings, mutating: set[str], number: int, call: ToolCall,
    verdict: Verdict, before: Conversation, answer: str | None,
) -> None:  # fmt: skip
    failed = answer is not None and guard.policy.failed(answer)
    gold = any(call.name == name and call.arguments == arguments for name, arguments in record.gold)
    findings.calls += 1
    findings.errors += failed
    findings.gold_calls += gold
    if verdict:
        return
    missing = ""
    if answer is not None and not failed and slot_of(call.name) in mutating:
        missing = _missing(guard, before, call, verdict)
    findings.violations.append(Violation(record.name, number, verdict, answer, failed, missing, gold))


def _missing(guard: Guard, before: Conversation, call: ToolCall, verdict: Verdict) -> str:
    """The step that a refused call left out: a confirmation, a read; empty if it is refused for another reason."""
    if not isinstance(call.arguments, Mapping) or any(one.kind not in (FACTS, WORDS) for one in verdict.unmet):
        return ""
    first = next((one for one in verdict.unmet if one.kind == FACTS), None)
    if first is None:
        return CONFIRMATION
    # Of conditions on facts, the first that fails is the cause: others may fail for want of the same facts. Something
    # was never looked up if nothing is known under a name, or what the argument names occurs nowhere in what is known.
    calls = guard.tools.calls_of(call.name, call.arguments)
    condition = next(one for one in calls.conditions if one.expression.text == first.condition)
    used = names_used(condition.expression, guard.policy.functions) & guard.policy.stored
    known = [before.memory[name] for name in used if before.memory.get(name)]
    whole = json.dumps(known, ensure_ascii=False, default=str)
    named = strings_in(call.arguments.get(condition.path[0])) if condition.path else ()
    return READ if used and (len(known) < len(used) or not all(text in whole for text in named)) else ""
