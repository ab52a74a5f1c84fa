"""PlanBench's instances (Valmeekam et al., "PlanBench", NeurIPS 2023) and what language models answered to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constrained.environments.data import archive_files, data_file, fields, folder_files, read_rows
from constrained.errors import DataError
from constrained.planning import Domain, PlanningTask, read_domain, read_problem_of

INSTANCES = "planbench/instances.tar.xz"
PLANS = "planbench/llm_plans.jsonl.xz"

_INSTANCE = re.compile(r"(?:.*/)?([^/]+)/([^/]+)/instance-(\d+)\.pddl")
_DOMAIN = re.compile(r"(?:.*/)?([^/]+)/domain\.pddl")


@dataclass(frozen=True)
class Instance:
    """One problem of one domain."""

    domain_name: str  # a folder,
    set_name: str  # and one in it
    number: int
    domain: Domain
    # in PDDL:
    domain_text: str
    text: str

    @property
    def name(self) -> str:
        """Such as "blocksworld/basic/5"."""
        return f"{self.domain_name}/{self.set_name}/{self.number}"

    def task(self) -> PlanningTask:
        """The planning task, read anew. Raises PddlError: the problem can't be read."""
        return PlanningTask(self.domain, read_problem_of(self.domain, self.text, f"{self.name}.pddl"))


def read_instances(folder: str | Path | None = None) -> list[Instance]:
    """All instances, by domain, set and number.

    Parameters
    ----------
    folder : path, optional
        Laid out as ``DOMAIN/domain.pddl`` and ``DOMAIN/SET/instance-N.pddl``; default: those in the data folder.

    Raises
    ------
    DataError
        There are none, or an instance's domain is missing.
    PddlError
        A domain can't be read.
    """
    source = Path(folder) if folder is not None else data_file(INSTANCES)
    if folder is None:
        files = archive_files(source, lambda name: name.endswith(".pddl"))
    else:
        files = folder_files(source, "*/domain.pddl", "*/*/instance-*.pddl")
    texts = {name: content.decode("utf-8", "replace") for name, content in files}
    domains: dict[str, tuple[Domain, str]] = {}
    for path, text in texts.items():
        if match := _DOMAIN.fullmatch(path):
            domains[match[1]] = read_domain(text, path), text
    result = []
    for path, text in texts.items():
        if match := _INSTANCE.fullmatch(path):
            if match[1] not in domains:
                raise DataError(f"{source}: {path} has no domain", f"put {match[1]}/domain.pddl there")
            result.append(Instance(match[1], match[2], int(match[3]), *domains[match[1]], text))
    if not result:
        raise DataError(f"{source} has no instances", "it holds DOMAIN/domain.pddl and DOMAIN/SET/instance-N.pddl")
    return sorted(result, key=lambda one: (one.domain_name, one.set_name, one.number))


@dataclass(frozen=True)
class RecordedPlan:
    """A plan that a language model wrote."""

    instance: str  # its instance's name
    model: str
    prompt: str
    lines: tuple[str, ...] | None  # None: no plan was found in the answer
    correct: bool | None  # the benchmark's verdict; None: it wasn't recorded


def read_plans(path: str | Path | None = None) -> Iterator[RecordedPlan]:
    """The recorded plans.

    `path`: rows of ``domain, set, instance, model, prompt, plan, correct``; default: those in the data folder. Raises
    DataError: a row has another form.
    """
    for where, row in read_rows(path or data_file(PLANS)):
        domain, of, number, model, prompt = fields(where, row, domain=str, set=str, instance=int, model=str, prompt=str)
        written: Any = row.get("plan")
        lines = written.splitlines() if isinstance(written, str) else written
        known = lines is None or isinstance(lines, list) and all(isinstance(line, str) for line in lines)
        if not known or row.get("correct") not in (True, False, None):
            raise DataError(f"{where}: plan is a text, a list of texts or null; correct is true, false or null")
        yield RecordedPlan(
            f"{domain}/{of}/{number}", model, prompt, None if lines is None else tuple(lines), row.get("correct")
        )
