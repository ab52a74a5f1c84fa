"""tau2-bench's telecom from the data folder: its tasks, over the tools of `tools`."""

from __future__ import annotations

import json
import lzma
import tarfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.tau_environment import Goal, reply_of
from benchmarks.telecom.goals import goal_of
from benchmarks.telecom.tools import Company, Phone, State
from constrained.environments.data import data_folder
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge, ToolKnowledge

AGENT_TOOLS = (
    "get_customer_by_phone get_customer_by_id get_customer_by_name get_details_by_id get_bills_for_customer "
    "get_data_usage send_payment_request suspend_line resume_line enable_roaming disable_roaming refuel_data "
    "transfer_to_human_agents"
).split()

USER_TOOLS = (
    "check_status_bar check_network_status check_network_mode_preference check_sim_status "
    "check_data_restriction_status check_apn_settings check_wifi_status check_wifi_calling_status check_vpn_status "
    "check_installed_apps check_app_status check_app_permissions check_payment_request run_speed_test can_send_mms "
    "set_network_mode_preference toggle_airplane_mode reseat_sim_card toggle_data toggle_roaming "
    "toggle_data_saver_mode reset_apn_settings toggle_wifi_calling connect_vpn disconnect_vpn grant_app_permission "
    "reboot_device make_payment"
).split()


class TelecomTask(NamedTuple):
    """A task: what the user says first, the gold actions of agent and user, and what it begins with.

    `steps`: who acts ("assistant" or "user"), the tool, its arguments. `initial`: calls of both sides' functions.
    `reply`: what a scripted user answers to whatever the agent says. `criteria`: when the task is done.
    """

    name: str
    instruction: str
    steps: tuple[tuple[str, str, dict[str, Any]], ...]
    initial: tuple[dict[str, Any], ...]
    reply: str
    criteria: Mapping[str, Any]

    def without_faults(self) -> TelecomTask:
        """The same user where nothing is broken."""
        kept = [one for one in self.initial if one["func_name"] in ("set_user_info", "set_user_location")]
        return self._replace(initial=tuple(kept))

    def with_ended_contract(self) -> TelecomTask:
        """The same task, in which the contract of a suspended line has ended."""
        change = {"contract_ended": True}
        return self._replace(initial=tuple(
            {**one, "arguments": {**one["arguments"], **change}} if "contract_ended" in one["arguments"] else one
            for one in self.initial
        ))  # fmt: skip


class TelecomDomain:
    """The domain.

    Parameters
    ----------
    path : str or Path, optional
        Default: the data folder's ``tau2/telecom.tar.xz``.

    Attributes
    ----------
    infos, user_infos : list of callable
        The agent's tools, and the user's.

    Raises
    ------
    DataError
        The file is missing or damaged.
    """

    name = "telecom"

    def __init__(self, path: str | Path | None = None):
        path = Path(path) if path else data_folder() / "tau2" / "telecom.tar.xz"
        self._tasks: dict[str, list[TelecomTask]] = {}
        try:
            with lzma.open(path) as packed, tarfile.open(fileobj=packed) as archive:
                texts = {
                    Path(one.name).name: file.read().decode("utf-8")
                    for one in archive
                    if one.isfile() and (file := archive.extractfile(one)) is not None
                }
            self._tables: dict[str, Any] = tomllib.loads(texts["db.toml"])
            self._device: dict[str, Any] = tomllib.loads(texts["user_db.toml"])["device"]
            for name, text in texts.items():
                if name.startswith("tasks") and name.endswith(".json"):
                    split = name.removeprefix("tasks").removesuffix(".json").lstrip("_") or "all"
                    self._tasks[split] = [_task(one) for one in json.loads(text)]
        except (OSError, ValueError, KeyError, TypeError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
            raise DataError(
                f"can't read telecom's tasks from {path}: {error}", "give tau2-bench's telecom.tar.xz"
            ) from None
        company, phone = Company(self._tables), Phone(self._device)
        self.infos: list[Callable[..., Any]] = [getattr(company, name) for name in AGENT_TOOLS]
        self.user_infos: list[Callable[..., Any]] = [getattr(phone, name) for name in USER_TOOLS]

    def splits(self) -> list[str]:
        """The lists of tasks that are there."""
        return list(self._tasks)

    def tasks(self, split: str | None = None) -> list[TelecomTask]:
        """The tasks of a split; default: the first."""
        split = split or self.splits()[0]
        if split not in self._tasks:
            raise DataError(f"telecom has no split {split!r}", f"there are: {', '.join(self.splits())}")
        return self._tasks[split]

    def data(self, task: TelecomTask) -> State:
        """Both sides as a task begins."""
        return State(self._tables, self._device, task.initial)

    def call(self, data: State, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, the agent's or the user's."""
        return data.call(name, arguments)

    def goal(self, task: TelecomTask) -> Goal:
        """Whether a state is as the task wants it, after some calls."""
        return goal_of(task.criteria)

    def digest(self, data: State) -> str:
        """A text that is another for another state."""
        return json.dumps([data.company.tables, vars(data.phone)], sort_keys=True, default=str)

    def knowledge(self, **options: Any) -> ToolKnowledge:
        """The shipped policy (`grammars/tau_telecom.lark`) over the tools of both."""
        return ActionKnowledge.from_tools([*self.infos, *self.user_infos], policy="tau_telecom", **options)


def _task(row: Mapping[str, Any]) -> TelecomTask:
    told = row["user_scenario"]["instructions"]
    steps = ((one["requestor"], one["name"], one["arguments"]) for one in row["evaluation_criteria"]["actions"])
    return TelecomTask(
        row["id"],
        f"{told['reason_for_call']} {told['known_info']}",
        tuple(steps),
        tuple(row["initial_state"]["initialization_actions"] or ()),
        reply_of(told["task_instructions"]),
        row["evaluation_criteria"],
    )
