"""Tasks to play, as many as a benchmark has, from every environment in one form."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from constrained.environments.base import TextEnvironment
from constrained.errors import DataError

SUITES = {
    "alfworld": "constrained.environments.household.suites:alfworld",
    "alfworld-original": "constrained.environments.alfworld.suites:original",
    "household": "constrained.environments.household.suites:household",
    "hotpotqa": "constrained.environments.question.suites:hotpotqa",
    "hotpotqa_seen": "constrained.environments.question.suites:hotpotqa_seen",
    "strategyqa": "constrained.environments.question.suites:strategyqa",
    "fever": "constrained.environments.question.suites:fever",
    "gsm8k": "constrained.environments.maths.suites:gsm8k",
    "svamp": "constrained.environments.maths.suites:svamp",
    "mind2web": "constrained.environments.mind2web.suites:mind2web",
    "webshop": "constrained.environments.webshop.suites:webshop",
    "scienceworld": "constrained.environments.scienceworld.suites:suite",
}
"""Name -> "module:function" of what makes the suite, imported when it is asked for."""


@dataclass(frozen=True)
class Task:
    """One task of a suite.

    Attributes
    ----------
    name : str
        Its own within the suite, and the same in every run: results are kept under it.
    kind : str
        For breakdowns; tasks of a kind are alike.
    make : callable
        Opens the environment; cloudpickle can send it to another machine.
    """

    name: str
    kind: str
    make: Callable[[], TextEnvironment]


@dataclass(frozen=True)
class Suite:
    """The tasks of one benchmark.

    Attributes
    ----------
    name : str
        With the split, such as "alfworld/valid_seen".
    knowledge : str
        The shipped action knowledge of its actions.
    tasks : sequence of Task
    max_steps : int
        The published limit.
    measures : tuple of str
        The keys of `TextEnvironment.outcome` that its tables show.
    """

    name: str
    knowledge: str
    tasks: Sequence[Task]
    max_steps: int = 50
    measures: tuple[str, ...] = ("success",)


def open_suite(name: str, *, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """The suite of that name.

    Parameters
    ----------
    name : str
        A key of `SUITES`; or ``FILE.py:FUNCTION``, a function of your own that takes `split`, `limit` and `seed` by name.
    split : str, optional
        Which part of its data, where it has several; default: the one that its papers report.
    limit : int, optional
        Only the first so many tasks.
    seed : int
        Of tasks that are made, or drawn.

    Raises
    ------
    DataError
        No such suite or split, or its data isn't there; a file of your own can't be run, or has no such function.
    """
    if name in SUITES:
        module, function = SUITES[name].split(":")
        make = getattr(import_module(module), function)
    elif ".py:" in name:
        make = _of_file(*name.rsplit(":", 1))
    else:
        raise DataError(
            f"no environment {name!r}", f"there are: {', '.join(SUITES)}; or name your own, FILE.py:FUNCTION"
        )
    made = make(split=split, limit=limit, seed=seed)
    if not isinstance(made, Suite):
        raise DataError(f"{name} gives {made!r:.60}, no suite", "return a constrained.environments.suite.Suite")
    if not made.tasks:
        raise DataError(f"{made.name} has no tasks", "raise the limit, or give another split")
    return made


def _of_file(file: str, function: str) -> Callable[..., Suite]:
    """A function of somebody's own file, which is run for it, its folder on the path as `python FILE` has it."""
    path = Path(file).resolve()
    if not path.is_file():
        raise DataError(f"no file {file}", "write FILE.py:FUNCTION, the file as seen from here")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = spec_from_file_location(path.stem, path)
    module, known = module_from_spec(spec), sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses look for themselves there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever somebody's file does wrong
        raise DataError(f"{file} can't be run: {type(error).__name__}: {error}", f"try: python {file}") from error
    finally:
        # Not left there: what other machines can't import is sent to them whole.
        del sys.modules[path.stem]
        if known is not None:
            sys.modules[path.stem] = known
    made = getattr(module, function, None)
    if not callable(made):
        raise DataError(f"{file} has no function {function!r}", "its arguments are: split, limit, seed")
    return made


_CHOICE = re.compile(r"(?P<name>[\w-]+|[^:]+\.py:\w+)(?:/(?P<split>[\w-]+))?(?::(?:(?P<first>\d+)-)?(?P<last>\d+))?")


def choose_suite(text: str, seed: int = 0) -> Suite:
    """A suite, or some of its tasks, as a command line names them.

    Parameters
    ----------
    text : str
        ``NAME``, ``NAME/SPLIT``, ``FILE.py:FUNCTION``; with ``:N`` behind it so many tasks, drawn evenly from all
        kinds; with ``:M-N`` those from position M up to N, N itself left out, from 0.
    seed : int
        Of tasks that are made, or drawn.

    Raises
    ------
    DataError
        As `open_suite`; the text isn't of this form, or nothing is left.
    """
    choice = _CHOICE.fullmatch(text)
    if choice is None:
        raise DataError(
            f"can't read {text!r}", "write NAME, NAME/SPLIT, NAME:200, NAME:100-300 or FILE.py:FUNCTION:0-40"
        )
    first, last = choice["first"], choice["last"]
    # What is made from a seed is made in the number asked for; what is drawn, out of all.
    suite = open_suite(choice["name"], split=choice["split"], limit=int(last) if first else None, seed=seed)
    if first:
        suite = replace(suite, name=f"{suite.name}:{first}-{last}", tasks=suite.tasks[int(first) :])
    elif last and int(last) > len(suite.tasks):
        hint = f"ask for fewer; tasks that are made, by position: {choice['name']}:0-{last}"
        raise DataError(f"{suite.name} has {len(suite.tasks)} tasks, not {last}", hint)
    elif last:
        suite = replace(suite, name=f"{suite.name}:{last}", tasks=drawn(suite.tasks, int(last), seed))
    if not suite.tasks:
        raise DataError(f"{suite.name} has no tasks", "choose other positions, or more tasks")
    return suite


def drawn(tasks: Sequence[Task], number: int, seed: int) -> list[Task]:
    """So many of the tasks, drawn evenly from all kinds, in their order.

    KnowAgent draws 85 of each of ALFWorld's kinds (appendix A). Kinds that have fewer give all they have.
    """
    rng = random.Random(f"drawn {seed}")
    kinds: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        kinds.setdefault(task.kind, []).append(place)
    for places in kinds.values():
        rng.shuffle(places)
    # One of each kind in turn, until there are enough.
    rounds = max(map(len, kinds.values()), default=0)
    dealt = [places[turn] for turn in range(rounds) for places in kinds.values() if turn < len(places)]
    return [tasks[place] for place in sorted(dealt[:number])]
