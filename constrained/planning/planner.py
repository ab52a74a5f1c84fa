"""Search for a plan in more than one way, within named limits.

Two searches take turns: by novelty (`search`), which is quick where a goal's parts can be reached one by one, and by
relaxed plans and landmarks (`lazy`), which finds its way in large tasks. Turns are counted in states, so that a plan
doesn't depend on the machine; only where the search gives up may.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time

from constrained.planning.facts import FactSet
from constrained.planning.lazy import LazySearch
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import MAX_STATES, WidthSearch, shortened
from constrained.planning.task import GroundAction, PlanningTask

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FIRST_TURN, TURN = 10_000, 2_000
"""The `work` of the first turn, the search by novelty's, which is enough for most small problems, and of all others."""

CHECKED = 50
"""States expanded between two looks at the limits."""


@dataclass(frozen=True)
class SearchLimits:
    """What a search may cost before it gives up.

    Attributes
    ----------
    states : int
        States that the search by novelty keeps, and eight times as many entries of the queues of the other: about a
        gigabyte.
    seconds : float
        Of processor time.
    megabytes : int
        Memory of the whole process, where the system tells it (Linux: now; macOS: at most).
    """

    states: int = MAX_STATES
    seconds: float = 600.0
    megabytes: int = 8_000


DEFAULT = SearchLimits()


@dataclass(frozen=True)
class Searched:
    """What came of a search.

    Attributes
    ----------
    plan : list of GroundAction or None
        None: none was found.
    proven : bool
        Without a plan: whether there is none, since all states that can be reached were tried.
    limit : str
        Without a plan and a proof: the limit that was met, in words.
    expanded : int
        The states whose successors were looked at.
    """

    plan: list[GroundAction] | None
    proven: bool = False
    limit: str = ""
    expanded: int = 0


def search_plan(
    task: PlanningTask, state: FactSet, limits: SearchLimits = DEFAULT, say: Callable[[str], None] | None = None
) -> Searched:
    """Search for a plan, not a shortest one.

    Parameters
    ----------
    task : PlanningTask
    state : FactSet
        Where the plan begins.
    limits : SearchLimits
    say : callable, optional
        Called now and then with what is being done.

    Raises
    ------
    PddlError
        The task is too large to be grounded.
    """
    end = process_time() + limits.seconds
    relaxed = Relaxed.of(task)
    width = WidthSearch(state, relaxed)
    lazy: LazySearch | None = None
    waiting: list[tuple[_Search, Iterator[None], int]] = [(width, width.run(), limits.states)]
    turn = FIRST_TURN
    while waiting:
        search, steps, most = waiting.pop(0)
        over = _advance(search, steps, search.work + turn, most, end, limits)
        turn = TURN
        expanded = width.expanded + (lazy.expanded if lazy is not None else 0)
        if over == _DONE:
            plan = None if search.plan is None else shortened(task, state, search.plan)
            return Searched(plan, proven=plan is None, expanded=expanded)
        if over == _SECONDS:
            return Searched(None, limit=f"within {limits.seconds:g} s of processor time", expanded=expanded)
        if over == _MEMORY:
            return Searched(None, limit=f"within {limits.megabytes:,} MB of memory", expanded=expanded)
        if lazy is None:
            lazy = LazySearch(relaxed.grounding, width.packed)
            waiting.append((lazy, lazy.run(), 8 * limits.states))
        if over != _STATES:
            waiting.append((search, steps, most))
        if say is not None:
            say(f"searching, {expanded:,} states tried")
    return Searched(None, limit=f"among the first {limits.states:,} states", expanded=expanded)


_Search = WidthSearch | LazySearch
_TURN, _DONE, _STATES, _SECONDS, _MEMORY = range(5)
"""How a turn ends: it is over, so is the search, or a limit is met."""


def _advance(search: _Search, steps: Iterator[None], until: int, states: int, end: float, limits: SearchLimits) -> int:
    """Advance a search by one turn."""
    for number, _ in enumerate(steps):
        if search.states >= states:
            return _STATES
        if number % CHECKED == 0:
            if process_time() > end:
                return _SECONDS
            if _megabytes() > limits.megabytes:
                return _MEMORY
        if search.work >= until:
            return _TURN
    return _DONE


def _megabytes() -> float:
    """The memory of this process, where the system tells it; else the most that it has had."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * (resource.getpagesize() if resource else 4096) / (1 << 20)
    except OSError:
        if resource is None:
            return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
