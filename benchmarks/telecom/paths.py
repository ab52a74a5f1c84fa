"""Gold paths: a task's gold actions, the agent's and the user's, each after what is to be looked at before it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.tau_environment import YES
from benchmarks.telecom.environment import TelecomDomain, TelecomTask
from constrained.guard import Guard
from constrained.guard.conversation import Conversation
from constrained.guard.messages import ToolCall
from constrained.knowledge.tool_policy import Memory

CHECKS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "toggle_airplane_mode": ("check_network_status", {}),
    "reseat_sim_card": ("check_sim_status", {}),
    "toggle_data": ("check_network_status", {}),
    "toggle_roaming": ("check_network_status", {}),
    "toggle_data_saver_mode": ("check_data_restriction_status", {}),
    "set_network_mode_preference": ("check_network_mode_preference", {}),
    "disconnect_vpn": ("check_vpn_status", {}),
    "toggle_wifi_calling": ("check_wifi_calling_status", {}),
    "grant_app_permission": ("check_app_permissions", {"app_name": "messaging"}),
    "reset_apn_settings": ("check_apn_settings", {}),
    "make_payment": ("check_payment_request", {}),
    "transfer_to_human_agents": ("check_sim_status", {}),
}
"""An action -> what the user looks at before; gold lists of actions leave it out."""


class Step(NamedTuple):
    """One step of a path.

    `kind`: "lookup" or "action", a call of the agent's or the user's tools; or "reply": something said to the user, in
    `arguments`, and what they answer.
    """

    tool: str
    arguments: dict[str, Any]
    kind: str = "lookup"
    answer: str = ""


def gold_path(domain: TelecomDomain, task: TelecomTask) -> tuple[Step, ...]:
    """A task's gold actions, each after its lookups and checks."""
    data = domain.data(task)

    def look(name: str, **arguments: Any) -> Any:
        return json.loads(domain.call(data, name, arguments))

    phone = re.findall(r"\d{3}-\d{3}-\d{4}", task.instruction)[0]
    customer = look("get_customer_by_phone", phone_number=phone)
    lines = (look("get_details_by_id", id=line) for line in customer["line_ids"])
    line = next(line for line in lines if line["phone_number"] == phone)
    whose = {"customer_id": customer["customer_id"], "line_id": line["line_id"]}
    locked = "locked" in domain.call(data, "check_sim_status", {})
    path = [Step("get_customer_by_phone", {"phone_number": phone})]
    for _, name, arguments in task.steps:
        if name in CHECKS:
            path.append(Step(*CHECKS[name]))
        if name in ("send_payment_request", "resume_line"):
            path.append(Step("get_bills_for_customer", {"customer_id": customer["customer_id"]}))
        # A locked SIM card is reason enough to hand over; else it is the line.
        escalates = name == "transfer_to_human_agents" and not locked
        if escalates or name in ("resume_line", "enable_roaming", "refuel_data"):
            path.append(Step("get_details_by_id", {"id": line["line_id"]}))
        if name == "refuel_data":
            plan = look("get_details_by_id", id=line["plan_id"])
            price = plan["data_refueling_price_per_gb"] * arguments["gb_amount"]
            offer = f"Shall I refuel {arguments['gb_amount']} GB for ${price:.2f}?"
            path += [Step("get_details_by_id", {"id": line["plan_id"]}), Step("get_data_usage", whose),
                     Step("respond", {"content": offer}, "reply", YES)]  # fmt: skip
        path.append(Step(name, arguments, "action"))
    return tuple(path)


def follow(
    domain: TelecomDomain, guard: Guard, task: TelecomTask, path: Sequence[Step], instruction: str = ""
) -> Iterator[tuple[Step, Conversation, str]]:
    """Carry out a path; yields each step with the conversation before it, and what it was answered.

    `instruction`: what the user says first, if not what the task says.
    """
    data, point = domain.data(task), guard.start.heard(instruction or task.instruction)
    for step in path:
        answer = step.answer if step.kind == "reply" else domain.call(data, step.tool, step.arguments)
        yield step, point, answer
        if step.kind == "reply":
            point = point.spoke(step.arguments["content"]).heard(answer)
        else:
            point = point.called(ToolCall(step.tool, step.arguments)).answered("", answer)


def gold_steps(
    domain: TelecomDomain, guard: Guard, task: TelecomTask
) -> Iterator[tuple[str, str, dict[str, Any], Memory]]:
    """As `benchmarks.tau.gold_steps`: (kind, tool, arguments, memory before it) of a task's gold path."""
    for step, point, answer in follow(domain, guard, task, gold_path(domain, task)):
        if step.kind != "reply":
            failed = step.kind == "action" and guard.policy.failed(answer)
            yield "error" if failed else step.kind, step.tool, step.arguments, point.memory
