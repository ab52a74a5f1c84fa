"""tau-bench's retail and airline (Yao et al., 2024): its own tools, databases and tasks, or a record of their answers.

Only the modules with tools, data and tasks are imported: those that need a model provider's client are not.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from constrained.environments.data import data_folder
from constrained.errors import DataError
from constrained.grammar.json_schema import Options, validator
from constrained.knowledge import ActionKnowledge, ToolKnowledge
from constrained.limits import DEFAULT

DOMAINS = ("retail", "airline")

SPLITS = {"retail": {"train": "TASKS_TRAIN", "dev": "TASKS_DEV", "test": "TASKS_TEST"}, "airline": {"test": "TASKS"}}
"""Domain -> split -> the name of its list of tasks."""

YES = "Yes, please go ahead."
"""How a scripted user confirms."""


_AGREES = re.compile(r"[^.]*\bYou are willing to\b(?:[^.]|\.\d)*\.|[^.]*\byou accept\b[^.]*\.")
"""Sentences of a user's instructions that say what they agree to."""


def reply_of(instructions: str) -> str:
    """What a scripted user answers to whatever the agent says: yes, and what their instructions say they agree to."""
    return YES + "".join(_AGREES.findall(instructions))


Goal = Callable[[Any, Sequence[tuple[str, Mapping[str, Any]]]], bool]
"""Whether a task is done, from a domain's state and the calls so far."""


class TauTask(NamedTuple):
    """A task: who the user is, what they want, and the calls that fulfil it."""

    name: str
    user: str
    instruction: str
    actions: tuple[tuple[str, dict[str, Any]], ...]
    reply: str = YES
    """What a scripted user answers to whatever the agent says."""


class TauDomain:
    """One of the two domains.

    Parameters
    ----------
    name : str
        "retail" or "airline".
    package : str or Path, optional
        A checkout of tau-bench; default: ``$TAU_BENCH``.

    Attributes
    ----------
    tools : dict of str to type
        Name -> tau-bench's own class.
    infos : list of dict
        The tools in OpenAI's form.
    """

    def __init__(self, name: str, package: str | Path | None = None):
        if name not in DOMAINS:
            raise DataError(f"tau-bench has no domain {name!r}", f"there are: {', '.join(DOMAINS)}")
        self.name = name
        self.folder = _find_package(str(package) if package else None)
        self.tools = {one.get_info()["function"]["name"]: one for one in self._module("tools").ALL_TOOLS}
        self.infos = [one.get_info() for one in self.tools.values()]
        self._data: dict[str, Any] | None = None

    def _module(self, name: str) -> ModuleType:
        for package in ("tau_bench", "tau_bench.envs", f"tau_bench.envs.{self.name}"):
            if package not in sys.modules:  # their own __init__ needs clients of model providers
                module = ModuleType(package)
                module.__path__ = [str(self.folder.joinpath(*package.split(".")))]
                sys.modules[package] = module
        try:
            return import_module(f"tau_bench.envs.{self.name}.{name}")
        except ImportError as error:
            hint = "name a checkout of sierra-research/tau-bench; it needs pydantic"
            raise DataError(f"tau-bench can't be imported from {self.folder}: {error}", hint) from None

    def data(self, task: TauTask | None = None) -> dict[str, Any]:
        """A fresh database."""
        if self._data is None:
            self._data = self._module("data").load_data()
        return deepcopy(self._data)

    def splits(self) -> list[str]:
        """The splits that are there."""
        folder = self.folder / "tau_bench" / "envs" / self.name
        return [split for split in SPLITS[self.name] if (folder / f"tasks_{split}.py").is_file()]

    def tasks(self, split: str) -> list[TauTask]:
        """The tasks of a split."""
        if split not in self.splits():
            raise DataError(f"{self.name} has no split {split!r}", f"there are: {', '.join(self.splits())}")
        module = self._module(f"tasks_{split}")
        listed = getattr(module, SPLITS[self.name][split], None) or module.TASKS
        return [
            TauTask(
                f"{self.name}-{split}-{i}", one.user_id, one.instruction, tuple((a.name, a.kwargs) for a in one.actions)
            )
            for i, one in enumerate(listed)
        ]

    def knowledge(self, **options: Any) -> ToolKnowledge:
        """The shipped policy over the domain's tools (`grammars/tau_retail.lark`, `tau_airline.lark`)."""
        return ActionKnowledge.from_tools(self.infos, policy=f"tau_{self.name}", **options)

    def call(self, data: dict[str, Any], name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, as tau-bench's environment gives it."""
        try:
            return str(self.tools[name].invoke(data=data, **deepcopy(dict(arguments))))
        except Exception as error:  # as in tau-bench, the agent reads the error
            return f"Error: {error}"

    def rows(self, data: dict[str, Any]) -> dict[str, Any]:
        """The database as plain values."""
        return data

    def digest(self, data: dict[str, Any]) -> str:
        """A text that is another for another database."""
        return json.dumps(data, sort_keys=True)

    def goal(self, task: TauTask) -> Goal:
        """Whether a database is as the task's gold calls leave it."""
        wanted: list[dict[str, Any]] = []

        def reached(data: Any, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
            if not wanted:
                wanted.append(self.data())
                for name, arguments in task.actions:
                    self.call(wanted[0], name, arguments)
            return data == wanted[0]

        return reached


def _find_package(given: str | None) -> Path:
    for folder in (given, os.environ.get("TAU_BENCH")):
        if folder:
            package = next(
                (p for p in (Path(folder), Path(folder).parent) if (p / "tau_bench" / "envs").is_dir()), None
            )
            if package is None:
                raise DataError(f"there is no tau_bench in {folder}", "name the folder of tau-bench's checkout")
            return package
    hint = "clone sierra-research/tau-bench and name its folder: --package FOLDER, or the variable TAU_BENCH"
    raise DataError("tau-bench's tools aren't there", hint)


class RecordedStep(NamedTuple):
    """A call of a gold transcript: what it asked and was told; `kind`: lookup, action or error."""

    tool: str
    arguments: dict[str, Any]
    result: str
    kind: str


class RecordedTask(NamedTuple):
    """A task with its gold calls, the lookups before them, and what the tools answered."""

    name: str
    instruction: str
    steps: tuple[RecordedStep, ...]


class RecordedDomain:
    """A domain's gold transcripts: nothing of tau-bench is needed to replay them.

    Parameters
    ----------
    name : str
        "retail" or "airline".
    path : Path, optional
        JSON Lines: of each domain a line with its "tools" in OpenAI's form, and a line for each task. Default: the data
        folder's ``tau_bench/gold_transcripts.jsonl.xz``.

    Raises
    ------
    DataError
        The file is missing, damaged, or lacks the domain.
    """

    def __init__(self, name: str, path: str | Path | None = None):
        self.name = name
        path = Path(path) if path else transcripts()
        self.infos: list[dict[str, Any]] = []
        self._tasks: dict[str, list[RecordedTask]] = {}
        try:
            with lzma.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    row = json.loads(line)
                    if row["domain"] != name:
                        continue
                    if "tools" in row:
                        self.infos = row["tools"]
                        continue
                    steps = tuple(RecordedStep(*(one[key] for key in RecordedStep._fields)) for one in row["steps"])
                    task = RecordedTask(row["task"], row["instruction"], steps)
                    self._tasks.setdefault(row["split"], []).append(task)
        except (OSError, ValueError, KeyError, TypeError, EOFError, lzma.LZMAError) as error:
            hint = "give tau-bench's gold transcripts, or clone sierra-research/tau-bench and name it: --package FOLDER"
            raise DataError(f"can't read transcripts from {path}: {error}", hint) from None
        if not self.infos or not self._tasks:
            raise DataError(f"{path} has no transcripts of {name!r}", f"there may be: {', '.join(DOMAINS)}")

    def splits(self) -> list[str]:
        """The splits that are there."""
        return list(self._tasks)

    def tasks(self, split: str) -> list[RecordedTask]:
        """The tasks of a split."""
        if split not in self._tasks:
            raise DataError(f"{self.name} has no split {split!r}", f"there are: {', '.join(self._tasks)}")
        return self._tasks[split]

    def knowledge(self, **options: Any) -> ToolKnowledge:
        """The shipped policy over the domain's tools, as `TauDomain.knowledge`."""
        return ActionKnowledge.from_tools(self.infos, policy=f"tau_{self.name}", **options)


def transcripts() -> Path:
    """The folder of the gold transcripts in the data folder."""
    return data_folder() / "tau_bench" / "gold_transcripts.jsonl.xz"


def find_domain(name: str, package: str | Path | None = None) -> TauDomain | RecordedDomain:
    """The domain on its real tools if a checkout is named, by `package` or ``$TAU_BENCH``; else its transcripts."""
    return TauDomain(name, package) if package or os.environ.get("TAU_BENCH") else RecordedDomain(name)


_CLOSED = Options(DEFAULT, closed=True)


class LiveTask(Protocol):
    """What a task has in both versions of the benchmark."""

    @property
    def name(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def instruction(self) -> str: ...

    @property
    def actions(self) -> tuple[tuple[str, dict[str, Any]], ...]: ...

    @property
    def reply(self) -> str: ...


class TauEnv:
    """One task, played against the real tools with a scripted user.

    The user says what the task's instruction says, and yes to every question after that. Where the user has tools, they
    use one when the agent calls it, and tell what it shows.

    Parameters
    ----------
    domain : TauDomain or Tau2Domain
    task : TauTask or Tau2Task
    knowledge : ToolKnowledge
        What calls are read by.

    Attributes
    ----------
    counts : Counter
        Of the actions so far: "actions", "no call" (what is no call, or doesn't fit its tool's schema), "against the
        policy" (calls that the policy refuses; they are carried out) and "errors" (which the tools answered).
    """

    def __init__(self, domain: Any, task: LiveTask, knowledge: ToolKnowledge):
        self.domain, self.knowledge, self.tools, self.name = domain, knowledge, knowledge.tools, task.name
        self.task, self.reply, self._task = task.instruction, task.reply, task
        self._goal: Goal = domain.goal(task)
        self.reset()

    def reset(self) -> str:
        """Begin anew; returns what the user says first."""
        self.data, self.known = self.domain.data(self._task), self.tools.policy.initial
        self.had_effect = True
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.counts: Counter[str] = Counter()
        self.known = self.tools.policy.told(self.known, self.tools.policy.message, {"content": ""}, self.task)
        return self.task

    def view(self) -> dict[str, Any]:
        """The calls that are admitted now, by tool."""
        return self.tools.view(self.known)

    def step(self, action: str) -> tuple[str, float, bool]:
        """Carry out a call."""
        call = self.tools.read(action)
        fits = call is not None and validator(self.tools.form.schemas[call[0]], _CLOSED)(call[1])
        admitted = fits and bool(self.knowledge.bind_view(self.view()).judge(action))
        self.counts.update({"actions": 1, "no call": not fits, "against the policy": fits and not admitted})
        if call is None:
            self.had_effect = False
            return "Error: that is no call of a tool", 0.0, False
        name, arguments = call
        answer = self.reply if name == self.tools.policy.message else self.domain.call(self.data, name, arguments)
        self.calls.append(call)
        self.had_effect = not self.tools.policy.failed(answer)
        self.counts["errors"] += not self.had_effect
        self.known = self.tools.policy.told(self.known, name, arguments, answer)
        fulfilled = self.fulfilled()
        return answer, float(fulfilled), fulfilled or name == "transfer_to_human_agents"

    def copy(self) -> TauEnv:
        """The same task at the same point, to try calls in."""
        other = copy(self)
        other.data, other.counts = deepcopy(self.data), Counter(self.counts)
        other.calls = [*self.calls]
        return other

    def digest(self) -> str:
        """What tells the task's state from others: the state of the world, and what is known."""
        return f"{self.domain.digest(self.data)} {sorted(self.known.items())}"

    def outcome(self) -> dict[str, float]:
        """Whether the task is done as its benchmark judges it (`goal` of the domain)."""
        return {"success": float(self.fulfilled())}

    def fulfilled(self) -> bool:
        """Whether the task is done now."""
        return self._goal(self.data, self.calls)


def reads_before(
    domain: str, name: str, arguments: Mapping[str, Any], data: Mapping[str, Any], user: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lookups that show what a call names; gold lists of calls leave most of them out.

    Returns tool and arguments, in order.
    """
    if domain == "retail":
        yield "find_user_id_by_email", {"email": data["users"][user]["email"]}
        yield "get_user_details", {"user_id": user}
        order = data["orders"].get(arguments.get("order_id", ""))
        if order is not None:
            yield "get_order_details", {"order_id": arguments["order_id"]}
        wanted = arguments.get("new_item_ids", [])
        products = [item["product_id"] for item in order["items"]] if order and wanted else []
        if name == "get_product_details":
            yield "list_all_product_types", {}
        yield from (("get_product_details", {"product_id": one}) for one in dict.fromkeys(products))
        return
    yield "get_user_details", {"user_id": user}
    if arguments.get("reservation_id") in data["reservations"]:
        yield "get_reservation_details", {"reservation_id": arguments["reservation_id"]}
    if name == "send_certificate":
        for one in data["users"][user]["reservations"]:
            yield "get_reservation_details", {"reservation_id": one}
    legs = [(leg, data["flights"][leg["flight_number"]]) for leg in arguments.get("flights", ())]
    for leg, flight in legs:
        yield "search_direct_flight", _search(flight["origin"], flight["destination"], leg["date"])
    for (leg, flight), (_, onward) in pairwise(legs):
        yield "search_onestop_flight", _search(flight["origin"], onward["destination"], leg["date"])


def _search(origin: str, destination: str, date: str) -> dict[str, str]:
    return {"origin": origin, "destination": destination, "date": date}
