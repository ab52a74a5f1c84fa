"""Whether a task of telecom is done, by the assertions that tau2-bench's tasks name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.tau_environment import Goal
from benchmarks.telecom.tools import State


def goal_of(criteria: Mapping[str, Any]) -> Goal:
    """Whether both sides are as a task wants them, after some calls.

    Parameters
    ----------
    criteria : mapping
        The task's ``evaluation_criteria``: of its reward basis, assertions and actions are judged; telecom's tasks have
        no other.
    """
    basis = criteria["reward_basis"]

    def reached(data: State, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
        if "ENV_ASSERTION" in basis:
            for one in criteria["env_assertions"] or ():
                if ASSERTIONS[one["func_name"]](data, **one["arguments"]) != one.get("assert_value", True):
                    return False
        golds = criteria["actions"] or () if "ACTION" in basis else ()
        return all(any(_is(gold, *call) for call in calls) for gold in golds)

    return reached


def _is(gold: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call is a gold action: equal in the arguments that are compared, of all that the call has."""
    compared = gold.get("compare_args")
    keys = arguments.keys() if compared is None else compared
    given = gold["arguments"]
    return name == gold["name"] and all(arguments.get(key) == given.get(key) for key in keys)


def _service(data: State, expected_status: str) -> bool:
    return f"Cellular Connection: {expected_status}" in data.phone.check_network_status()


def _mobile_data(data: State, expected_status: bool) -> bool:
    return ("failed" not in data.phone.run_speed_test()) == expected_status


def _speed(data: State, expected_speed: float, expected_desc: str = "") -> bool:
    shown = re.search(r"([0-9.]+) Mbps \(([^)]*)\)", data.phone.run_speed_test())
    return (
        shown is not None
        and float(shown[1]) >= expected_speed
        and expected_desc.lower() in (shown[2].lower(), "")
    )  # fmt: skip


def _mms(data: State, expected_status: bool) -> bool:
    return ("cannot" not in data.phone.can_send_mms()) == expected_status


def _no_overdue_bill(data: State, overdue_bill_id: str) -> bool:
    shown = data.call("get_details_by_id", {"id": overdue_bill_id})
    return shown.startswith("Error") or json.loads(shown)["status"] == "Paid"


def _refueled(data: State, customer_id: str, line_id: str, expected_amount: float) -> bool:
    return abs(data.company.line_of(customer_id, line_id)["data_refueling_gb"] - expected_amount) < 1e-6


ASSERTIONS: Mapping[str, Callable[..., bool]] = {
    "assert_service_status": _service,
    "assert_mobile_data_status": _mobile_data,
    "assert_internet_speed": _speed,
    "assert_can_send_mms": _mms,
    "assert_no_overdue_bill": _no_overdue_bill,
    "assert_data_refueling_amount": _refueled,
}
"""tau2's assertion -> whether it holds."""
