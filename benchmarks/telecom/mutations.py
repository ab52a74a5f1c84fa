"""Gold paths with something wrong, whose last call the policy should refuse; and where it doesn't, why not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.telecom.environment import TelecomDomain, TelecomTask
from benchmarks.telecom.paths import CHECKS, Step, follow, gold_path
from constrained.guard import Guard

NO = "No, thanks. I'd rather not."

TRANSFER = Step("transfer_to_human_agents", {"summary": "I cannot fix the issue."}, "action")

STRANGERS = ("C1002", "C1003")
"""Other customers, who have lines and bills."""

FIXES: Mapping[str, dict[str, Any]] = {
    **{name: {} for name in CHECKS if name not in ("make_payment", TRANSFER.tool)},
    "set_network_mode_preference": {"mode": "4g_5g_preferred"},
    "grant_app_permission": {"app_name": "messaging", "permission": "sms"},
    "reboot_device": {},
}
"""What the user can change on the phone."""

VALUES: Mapping[str, Sequence[dict[str, Any]]] = {
    "refuel_data": [{"gb_amount": value} for value in (-1.0, 0.0, 1.5, 2.5, 3.0, 100.0)],
    "set_network_mode_preference": [{"mode": value} for value in ("3g_only", "2g_only", "5g")],
    "grant_app_permission": [
        {"permission": "network"}, {"permission": "location"}, {"app_name": "browser"}, {"app_name": "camera"},
    ],
}  # fmt: skip
"""Tool -> other values than the gold action's."""

STRANGE: Sequence[tuple[str, dict[str, Any]]] = (
    ("get_customer_by_phone", {"phone_number": "555-123-1002"}),
    ("get_customer_by_id", {"customer_id": "C1002"}),
    ("get_customer_by_name", {"full_name": "Sarah Johnson", "dob": "1990-11-22"}),
    ("get_details_by_id", {"id": "C1002"}),
    ("get_details_by_id", {"id": "L1004"}),
    ("get_details_by_id", {"id": "B1005"}),
    ("get_bills_for_customer", {"customer_id": "C1002"}),
    ("get_data_usage", {"customer_id": "C1002", "line_id": "L1004"}),
    ("get_data_usage", {"customer_id": "C1001", "line_id": "L1004"}),
)
"""Lookups of somebody who was never named."""

FREE: Mapping[tuple[str, str], str] = {
    (
        "a check left out",
        "make_payment",
    ): 'the user "should check" the request; nothing says that it must come first',
    ("a check left out", "refuel_data"): "the line and its plan show the usage, too",
    ("a check left out", "transfer_to_human_agents"): "a line whose contract has ended is reason enough",
    ("a check left out", "grant_app_permission"): "the check before the first permission showed both",
    ("an action before the one that comes first", "toggle_roaming"): "no order is written for phone and line",
    ("an action before the one that comes first", "grant_app_permission"): "no order is written for the permissions",
    ("another value", "set_network_mode_preference"): 'for MMS, "a network mode that includes 3G, 4G, or 5G" will do',
}
"""(kind, tool) -> why the written policy doesn't forbid it."""


@dataclass(frozen=True)
class Mutation:
    """A path whose last step is wrong.

    Attributes
    ----------
    kind : str
    task : TelecomTask
        What the path begins with.
    path : tuple of Step
    instruction : str
        What the user says first, if not what the task says.
    """

    kind: str
    task: TelecomTask
    path: tuple[Step, ...]
    instruction: str = ""


def mutations(domain: TelecomDomain, task: TelecomTask) -> Iterator[Mutation]:
    """Wrong variants of a task's gold path."""
    path = gold_path(domain, task)
    actions = [n for n, step in enumerate(path) if step.kind == "action"]

    def wrong(kind: str, *steps: Step, on: TelecomTask = task, instruction: str = "") -> Mutation:
        return Mutation(kind, on, steps, instruction)

    for number, at in enumerate(actions):
        step, before, earlier = path[at], path[:at], actions[number - 1] if number else 0
        yield wrong("the customer not looked up", *before[1:], step)
        for check in _unique(one for one in before[earlier + 1 :] if one.kind == "lookup"):
            # A check that was made for an earlier action as well is only left out the second time.
            again = earlier + 1 if check in before[: earlier + 1] else 0
            rest = (one for one in before[again:] if one != check)
            yield wrong("a check left out", *before[:again], *rest, step)
        if number:
            yield wrong("an action before the one that comes first", *before[:earlier], *before[earlier + 1 :], step)
        yield wrong("the same action twice", *before, step, step)
        if any(one.kind == "reply" for one in before):
            yield wrong("no yes", *(one._replace(answer=NO) if one.kind == "reply" else one for one in before), step)
            yield wrong("no yes", *(one for one in before if one.kind != "reply"), step)
            vague = {"content": f"Shall I refuel {step.arguments['gb_amount']} GB?"}
            asked = (one._replace(arguments=vague) if one.kind == "reply" else one for one in before)
            yield wrong("the price not confirmed", *asked, step)
        for values in VALUES.get(step.tool, ()):
            yield wrong("another value", *before, step._replace(arguments={**step.arguments, **values}))
        if step.tool in FIXES and step.tool not in ("reboot_device", "toggle_roaming"):  # roaming is off at first
            yield wrong("a fix of what isn't broken", *before, step, on=task.without_faults())
        if step.tool in ("toggle_roaming", "enable_roaming"):
            home = task.instruction.replace("abroad in France", "at home in the United States")
            yield wrong("roaming for a user at home", *before, step, instruction=home)
        if step.tool == "resume_line":
            yield wrong("a line whose contract has ended", *before, step, on=task.with_ended_contract())
        if step == TRANSFER:
            yield wrong("something after the transfer", *before, step, path[0])
            yield wrong("something after the transfer", *before, step, Step("check_status_bar", {}))
        yield from (wrong(kind, *before, *steps) for kind, *steps in _for_others(domain, task, step))
    own = {path[at].tool for at in actions}
    for name in [fix for fix in FIXES if fix not in own]:
        check = [Step(*CHECKS[name])] if name in CHECKS else []
        yield wrong("a fix of what isn't broken", *path[:-1], *check, Step(name, FIXES[name], "action"))
    yield wrong("a transfer at once", path[0], TRANSFER)
    if TRANSFER.tool not in own:
        for at in _unique([actions[0], actions[-1]]):
            yield wrong("a transfer in place of a fix", *path[:at], TRANSFER)
    yield from (wrong("a lookup of another customer", path[0], Step(*lookup)) for lookup in STRANGE)


def _unique(values: Any) -> list[Any]:
    result: list[Any] = []
    for value in values:
        result += [] if value in result else [value]
    return result


def _for_others(domain: TelecomDomain, task: TelecomTask, step: Step) -> Iterator[tuple[Any, ...]]:
    """(kind, steps) of an action on another line or bill, or another customer's; what it names is looked up before."""
    if "customer_id" not in step.arguments:
        return
    data = domain.data(task)

    def customer(identity: str) -> dict[str, Any]:
        return json.loads(domain.call(data, "get_customer_by_id", {"customer_id": identity}))

    def changed(**values: str) -> Step:
        return step._replace(arguments={**step.arguments, **values})

    own, key = customer(step.arguments["customer_id"]), "line_id" if "line_id" in step.arguments else "bill_id"
    for other in own[f"{key}s"]:
        if other != step.arguments[key]:
            yield f"another {key[:-3]}", Step("get_details_by_id", {"id": other}), changed(**{key: other})
    for stranger in map(customer, STRANGERS):
        yield "another customer", changed(customer_id=stranger["customer_id"])
        for other in stranger[f"{key}s"]:
            looked = Step("get_details_by_id", {"id": other})
            yield "another customer", looked, changed(**{key: other})
            yield "another customer", looked, changed(customer_id=stranger["customer_id"], **{key: other})


def judge_mutations(domain: TelecomDomain, guard: Guard, tasks: Sequence[TelecomTask]) -> list[dict[str, Any]]:
    """For each kind: how many mutations there are, how many are refused, and what the policy says of the others."""
    counts: dict[str, Counter[str]] = {}
    admitted: dict[str, Counter[str]] = {}
    for task in tasks:
        for one in mutations(domain, task):
            *_, (step, point, _) = follow(domain, guard, one.task, one.path, one.instruction)
            row = counts.setdefault(one.kind, Counter())
            row["mutations"] += 1
            if point.judge(step.tool, step.arguments, allowed=False):
                admitted.setdefault(one.kind, Counter())[step.tool] += 1
            else:
                row["refused"] += 1
    return [
        {
            "kind": kind, "mutations": row["mutations"], "refused": row["refused"],
            "admitted": [{"tool": tool, "calls": calls, "why": FREE.get((kind, tool), "")}
                         for tool, calls in admitted.get(kind, Counter()).most_common()],
        }
        for kind, row in counts.items()
    ]  # fmt: skip
