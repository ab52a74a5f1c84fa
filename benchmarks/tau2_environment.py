"""tau2-bench (Barres et al., 2025): retail and airline in corrected tasks, and telecom, whose user has tools, too.

Its own environments, tools, databases, tasks and assertions, from a checkout. Only the modules with them are imported:
those that need a model provider's client are not.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks.tau_environment import DOMAINS as FIRST_DOMAINS
from benchmarks.tau_environment import YES, Goal, reply_of
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge, ToolKnowledge

DOMAINS = (*FIRST_DOMAINS, "telecom")

SPLITS = {"retail": "tau2", "airline": "tau2", "telecom": "small"}
"""Domain -> the name of its tasks in tables."""

_FILES = {"retail": "tasks.json", "airline": "tasks.json", "telecom": "tasks_small.json"}

_DATABASES = {"retail": "RetailDB", "airline": "FlightDB", "telecom": "TelecomDB"}

_REQUIREMENTS = "addict deepdiff docstring-parser loguru numpy pydantic python-dotenv toml"

_IDENTITY = re.compile(r"\b[a-z]+_[a-z]+_[0-9]+\b")


class Tau2Task(NamedTuple):
    """A task: who the user is and what they want, the gold calls of agent and user, and tau2's own task."""

    name: str
    user: str
    instruction: str
    steps: tuple[tuple[str, str, dict[str, Any]], ...]
    """Who acts ("assistant" or "user"), the tool, its arguments."""
    reply: str
    """What a scripted user answers to whatever the agent says."""
    own: Any

    @property
    def actions(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Tool and arguments of each gold call."""
        return tuple(step[1:] for step in self.steps)


class Tau2Domain:
    """A domain of tau2-bench.

    Parameters
    ----------
    name : str
        "retail", "airline" or "telecom".
    package : str or Path, optional
        A checkout of tau2-bench; default: ``$TAU2_BENCH``.

    Attributes
    ----------
    infos : list of dict
        The agent's tools in OpenAI's form.
    user_infos : list of dict
        The user's.
    """

    def __init__(self, name: str, package: str | Path | None = None):
        if name not in DOMAINS:
            raise DataError(f"tau2-bench has no domain {name!r}", f"there are: {', '.join(DOMAINS)}")
        self.name = name
        self.folder = find_checkout(package)
        self._tasks = self._module("data_model.tasks")
        self._call = self._module("data_model.message").ToolCall
        self._domain = self._module(f"domains.{name}.environment")
        environment = self.data()
        self.infos = [_described(tool) for tool in environment.get_tools()]
        self.user_infos = [_described(tool) for tool in environment.get_user_tools()] if self._has_user_tools else []
        self._users = {info["function"]["name"] for info in self.user_infos}

    @property
    def _has_user_tools(self) -> bool:
        return self.name == "telecom"

    def _module(self, name: str) -> Any:
        if "tau2" not in sys.modules:  # its own __init__ needs clients of model providers
            package = ModuleType("tau2")
            package.__path__ = [str(self.folder / "src" / "tau2")]
            sys.modules["tau2"] = package
        try:
            # Every module of tau2 logs to standard error otherwise, and every call of a tool.
            import_module("loguru").logger.disable("tau2")
            return import_module(f"tau2.{name}")
        except ImportError as error:
            hint = f"name a checkout of sierra-research/tau2-bench; it needs {_REQUIREMENTS}"
            raise DataError(f"tau2-bench can't be imported from {self.folder}: {error}", hint) from None

    @cached_property
    def _database(self) -> tuple[Any, dict[str, Any]]:
        """The class of the database, and what its file holds."""
        kind = getattr(self._module(f"domains.{self.name}.data_model"), _DATABASES[self.name])
        path = getattr(self._module(f"domains.{self.name}.utils"), f"{self.name.upper()}_DB_PATH")
        try:
            return kind, kind.load(str(path)).model_dump()
        except FileNotFoundError:
            hint = "a checkout has it; a mirror without large files may not"
            raise DataError(f"there is no database {path}", hint) from None

    def data(self, task: Tau2Task | None = None) -> Any:
        """A fresh environment of tau2's, as the task's initial actions leave it."""
        kind, rows = self._database
        environment = self._domain.get_environment(db=kind.model_validate(rows))  # three times as fast as a deep copy
        initial = task and task.own.initial_state
        if initial:
            environment.set_state(initial.initialization_data, initial.initialization_actions, [])
        return environment

    def rows(self, data: Any) -> Mapping[str, Any]:
        """The agent's database as plain values."""
        return {name: _Table(getattr(data.tools.db, name)) for name in type(data.tools.db).model_fields}

    def digest(self, data: Any) -> str:
        """A text that is another for other databases."""
        return f"{data.get_db_hash()} {data.get_user_db_hash()}"

    def splits(self) -> list[str]:
        """The one split that is replayed and played."""
        return [SPLITS[self.name]]

    def tasks(self, split: str | None = None) -> list[Tau2Task]:
        """The tasks."""
        if split not in (None, *self.splits()):
            raise DataError(f"tau2-bench's {self.name} has no split {split!r}", f"there is: {self.splits()[0]}")
        folder = Path(self._module("utils").DATA_DIR) / "tau2" / "domains" / self.name
        try:
            listed = self._module("utils").load_file(folder / _FILES[self.name])
        except (OSError, ValueError) as error:
            raise DataError(f"can't read tau2-bench's tasks: {error}", "name a whole checkout") from None
        rows = {} if self._has_user_tools else self._database[1]
        return [self._task(self._tasks.Task.model_validate(one), rows) for one in listed]

    def _task(self, own: Any, rows: Mapping[str, Any]) -> Tau2Task:
        told = own.user_scenario.instructions
        wishes = (told.task_instructions,) if rows else ()  # telecom's are how to behave, not what is told first
        parts = [told.known_info, told.reason_for_call, told.unknown_info, *wishes]
        instruction = " ".join(" ".join(part.split()) for part in parts if part)
        steps = tuple((one.requestor, one.name, one.arguments) for one in own.evaluation_criteria.actions or ())
        reply = YES if rows else reply_of(told.task_instructions)
        return Tau2Task(f"{self.name}-{own.id}", find_user(instruction, steps, rows), instruction, steps, reply, own)

    def knowledge(self, **options: Any) -> ToolKnowledge:
        """The shipped policy over the domain's tools, the agent's and the user's.

        The policies of retail and airline name tools of the first version that are no more (`think`).
        """
        tools = [*self.infos, *self.user_infos]
        return ActionKnowledge.from_tools(tools, policy=f"tau_{self.name}", **{"some": True, **options})

    def call(self, data: Any, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, the agent's or the user's, as tau2's environment gives it."""
        return data.get_response(self._as_call(name, arguments)).content

    def _as_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        requestor = "user" if name in self._users else "assistant"
        return self._call(name=name, arguments=deepcopy(dict(arguments)), requestor=requestor)

    def goal(self, task: Tau2Task) -> Goal:
        """Whether an environment is as the task wants it, after some calls: judged as the task says.

        By tau2's own assertions, its comparison of databases and of calls, and what the agent must have said; what only
        a model can judge is left out.
        """
        criteria = task.own.evaluation_criteria
        basis = {one.value for one in criteria.reward_basis}
        hashes: list[Any] = []

        def reached(data: Any, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
            if "DB" in basis:
                if not hashes:
                    wanted = self.data(task)
                    for name, arguments in task.actions:
                        self.call(wanted, name, arguments)
                    hashes.append((wanted.get_db_hash(), wanted.get_user_db_hash()))
                if hashes[0] != (data.get_db_hash(), data.get_user_db_hash()):
                    return False
            if "ENV_ASSERTION" in basis and not all(
                data.run_env_assertion(one, raise_assertion_error=False) for one in criteria.env_assertions or ()
            ):
                return False
            if "ACTION" in basis:
                made = [self._as_call(*one) for one in calls]
                if not all(any(gold.compare_with_tool_call(one) for one in made) for gold in criteria.actions or ()):
                    return False
            said = [str(arguments.get("content", "")).lower().replace(",", "") for _, arguments in calls]
            wanted_words = (criteria.communicate_info or ()) if "COMMUNICATE" in basis else ()
            return all(any(words.lower() in one for one in said) for words in wanted_words)

        return reached


def _described(tool: Any) -> dict[str, Any]:
    """A tool in OpenAI's form; where Python may give a `dict` instead of a model, a call is written as the model."""

    def simpler(schema: Any) -> Any:
        if isinstance(schema, list):
            return [simpler(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        kinds = [one for one in schema.get("anyOf", ()) if one != {"additionalProperties": True, "type": "object"}]
        if len(kinds) == 1:
            schema = {**{key: value for key, value in schema.items() if key != "anyOf"}, **kinds[0]}
        return {key: simpler(value) for key, value in schema.items()}

    return simpler(tool.openai_schema)


class _Table(Mapping[str, Any]):
    """A table of a database, whose rows become plain values when they are asked for."""

    def __init__(self, rows: Mapping[str, Any]):
        self._rows = rows

    def __getitem__(self, key: str) -> Any:
        return self._rows[key].model_dump()

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def find_checkout(package: str | Path | None = None) -> Path:
    """The folder of a checkout of tau2-bench: the given one, or ``$TAU2_BENCH``."""
    folder = package or os.environ.get("TAU2_BENCH")
    if not folder:
        hint = "clone sierra-research/tau2-bench and name its folder: --tau2 FOLDER, or the variable TAU2_BENCH"
        raise DataError("tau2-bench's tools aren't there", hint)
    if not (Path(folder) / "src" / "tau2" / "domains").is_dir():
        raise DataError(f"there is no src/tau2 in {folder}", "name the folder of tau2-bench's checkout")
    return Path(folder)


def find_user(text: str, steps: Sequence[tuple[str, str, Mapping[str, Any]]], rows: Mapping[str, Any]) -> str:
    """The user of a task: whom its text names by id, e-mail, or name and zip code, or whose order its calls name."""
    users, owned = rows.get("users", {}), rows.get("orders", rows.get("reservations", {}))
    named = [word for word in _IDENTITY.findall(text) if word in users]
    named += [arguments["user_id"] for *_, arguments in steps if arguments.get("user_id") in users]
    named += [owned[value]["user_id"] for *_, arguments in steps for value in arguments.values()
              if isinstance(value, str) and value in owned]  # fmt: skip
    for name, user in users.items():
        whole = f"{user['name']['first_name']} {user['name']['last_name']}"
        if user["email"] in text or whole in text and user["address"]["zip"] in text:
            named.append(name)
    return named[0] if named else ""
