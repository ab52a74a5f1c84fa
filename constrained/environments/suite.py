"""Suites: the tasks of a benchmark, in one form for all environments."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from itertools import zip_longest
from pathlib import Path

from constrained.environments.base import TaskEnvironment
from constrained.errors import DataError

SUITES = {
    "alfworld": "constrained.environments.household.env:alfworld",
    "alfworld-original": "constrained.environments.alfworld.env:original",
    "household": "constrained.environments.household.env:household",
    "hotpotqa": "constrained.environments.question.suites:hotpotqa",
    "hotpotqa_seen": "constrained.environments.question.suites:hotpotqa_seen",
    "strategyqa": "constrained.environments.question.suites:strategyqa",
    "fever": "constrained.environments.question.suites:fever",
    "gsm8k": "constrained.environments.maths.env:gsm8k",
    "svamp": "constrained.environments.maths.env:svamp",
    "mind2web": "constrained.environments.mind2web.env:mind2web",
    "webshop": "constrained.environments.webshop.env:webshop",
    "scienceworld": "constrained.environments.scienceworld.env:suite",
}
"""Name -> "module:function" that makes the suite; imported when the suite is opened."""


@dataclass(frozen=True)
class Task:
    """One task of a suite.

    Attributes
    ----------
    name : str
        Unique within the suite, and the same in every run: results are kept under it.
    kind : str
        The kind of task, for breakdowns of results.
    make : callable
        Opens the environment; cloudpickle can send it to another machine.
    """

    name: str
    kind: str
    make: Callable[[], TaskEnvironment]


@dataclass(frozen=True)
class Suite:
    """The tasks of one benchmark.

    Attributes
    ----------
    name : str
        Includes the split, as in "alfworld/valid_seen".
    knowledge : str
        The name of shipped action knowledge, or the path of a file.
    tasks : sequence of Task
    max_steps : int
        The published limit on the steps of a task.
    measures : tuple of str
        The keys of `WithOutcome.outcome` that result tables show.
    """

    name: str
    knowledge: str
    tasks: Sequence[Task]
    max_steps: int = 50
    measures: tuple[str, ...] = ("success",)


def open_suite(name: str, *, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """Open the suite with this name.

    Parameters
    ----------
    name : str
        A key of `SUITES`; or ``FILE.py:FUNCTION``, a function of your own that takes `split`, `limit`, `seed` by name.
    split : str, optional
        The part of the suite's data, if it has several; default: the part that papers report.
    limit : int, optional
        Only this many tasks, the first ones.
    seed : int
        For suites that generate or draw their tasks.

    Raises
    ------
    DataError
        There is no such suite or split, or its data isn't there; a file of your own can't be run, or has no such
        function.
    """
    if name in SUITES:
        module, function = SUITES[name].split(":")
        make = getattr(import_module(module), function)
    elif ".py:" in name:
        make = _function_of_file(*name.rsplit(":", 1))
    else:
        raise DataError(
            f"no environment {name!r}", f"there are: {', '.join(SUITES)}; or name your own, FILE.py:FUNCTION"
        )
    # Bound before it is called, so that a TypeError inside the user's function isn't taken for a wrong signature.
    try:
        signature(make).bind(split=split, limit=limit, seed=seed)
    except TypeError as error:
        raise DataError(f"{name} can't be called: {error}", "let it take split, limit and seed by name") from None
    made = make(split=split, limit=limit, seed=seed)
    if not isinstance(made, Suite):
        raise DataError(f"{name} gives {made!r:.60}, no suite", "return a constrained.environments.suite.Suite")
    if not made.tasks:
        raise DataError(f"{made.name} has no tasks", "raise the limit, or give another split")
    return made


def check_split(name: str, split: str | None, splits: Sequence[str]) -> str:
    """`split`, or a suite's first split if it is None. Raises DataError: the suite has no such split."""
    if split is not None and split not in splits:
        raise DataError(f"{name} has no split {split!r}", f"there are: {', '.join(splits)}")
    return split or splits[0]


def _function_of_file(file: str, function: str) -> Callable[..., Suite]:
    """Run a user's file, with its folder on the path as with `python FILE`, and return one of its functions."""
    path = Path(file).resolve()
    if not path.is_file():
        raise DataError(f"no file {file}", "write FILE.py:FUNCTION, with the file's path from here")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module, known = module_from_spec(spec), sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses look up their own module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise anything
        raise DataError(f"{file} can't be run: {type(error).__name__}: {error}", f"try: python {file}") from error
    finally:
        # Removed, so that cloudpickle sends the file's functions by value: other machines can't import the module.
        del sys.modules[path.stem]
        if known is not None:
            sys.modules[path.stem] = known
    made = getattr(module, function, None)
    if not callable(made):
        raise DataError(f"{file} has no function {function!r}", "its arguments are: split, limit, seed")
    return made


_CHOICE = re.compile(r"(?P<name>[\w-]+|[^:]+\.py:\w+)(?:/(?P<split>[\w-]+))?(?::(?:(?P<first>\d+)-)?(?P<last>\d+))?")


def choose_suite(text: str, seed: int = 0) -> Suite:
    """Open a suite, or a part of it, by the text that a command line gives.

    Parameters
    ----------
    text : str
        ``NAME``, ``NAME/SPLIT`` or ``FILE.py:FUNCTION``; followed by ``:N`` for N tasks, drawn evenly from all kinds,
        or by ``:M-N`` for the tasks at positions M to N - 1, counted from 0.
    seed : int
        For tasks that are generated or drawn.

    Raises
    ------
    DataError
        As for `open_suite`; or the text isn't of this form, or no task is left.
    """
    choice = _CHOICE.fullmatch(text)
    if choice is None:
        raise DataError(
            f"can't read {text!r}", "write NAME, NAME/SPLIT, NAME:200, NAME:100-300 or FILE.py:FUNCTION:0-40"
        )
    first, last = choice["first"], choice["last"]
    # For positions the limit saves generating tasks that aren't needed. A sample is drawn from all tasks.
    suite = open_suite(choice["name"], split=choice["split"], limit=int(last) if first else None, seed=seed)
    if first:
        suite = replace(suite, name=f"{suite.name}:{first}-{last}", tasks=suite.tasks[int(first) :])
    elif last and int(last) > len(suite.tasks):
        hint = f"ask for fewer; if tasks are generated, name positions: {choice['name']}:0-{last}"
        raise DataError(f"{suite.name} has {len(suite.tasks)} tasks, not {last}", hint)
    elif last:
        suite = replace(suite, name=f"{suite.name}:{last}", tasks=drawn(suite.tasks, int(last), seed))
    if not suite.tasks:
        raise DataError(f"{suite.name} has no tasks", "choose other positions, or more tasks")
    return suite


def drawn(tasks: Sequence[Task], number: int, seed: int) -> list[Task]:
    """Draw tasks evenly from all kinds, and return them in their original order.

    KnowAgent draws 85 of each of ALFWorld's kinds (appendix A). Of a kind with too few tasks, all are taken.
    """
    rng = random.Random(f"drawn {seed}")
    kinds: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        kinds.setdefault(task.kind, []).append(index)
    for indices in kinds.values():
        rng.shuffle(indices)
    # Take one of each kind in turn, until there are enough.
    dealt = [index for turn in zip_longest(*kinds.values()) for index in turn if index is not None]
    return [tasks[index] for index in sorted(dealt[:number])]
