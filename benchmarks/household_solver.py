"""Solve a household game with full knowledge of the room.

The walkthrough is short, not provably the shortest: the ways to do the task (which object, from where, into which
receptacle, in which order) are tried out in copies of the world, and the one with the fewest actions is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

from constrained.environments.household import rules
from constrained.environments.household.game import Game
from constrained.environments.household.task_parser import parse_task
from constrained.environments.household.task_spec import LIGHT, UNKNOWN, TaskSpec
from constrained.environments.household.world import Treatment, World
from constrained.errors import GameError

MAX_ACTIONS = 100


def solve(game: Game, world: World | None = None) -> list[str]:
    """Return actions that win the game.

    Parameters
    ----------
    game : Game
        One of ALFWorld's six kinds.
    world : World, optional
        The state to begin from, such as ``env.world`` in the middle of a game; by
        default the game's start. It isn't changed.

    Raises
    ------
    GameError
        When the task isn't understood, or its goal can't be reached from there.
    """
    spec = parse_task(game.task)
    if spec == UNKNOWN:
        raise GameError(f"the task {game.task[:80]!r} isn't understood", "word it as ALFWorld does: put a mug in desk")
    start = game.world if world is None else world
    best: list[str] | None = None
    for plan in _plans(spec, start):
        attempt = _Attempt(start, game.solved, fewer_than=len(best) if best else MAX_ACTIONS)
        plan(attempt)
        if attempt.won:
            best = attempt.done
    if best is None:
        raise GameError(f"no way found to {game.task!r} in {game.name}")
    return best


class _Attempt:
    """One way to do the task, played in a copy of the world as it is chosen.

    It ends when the goal is reached, an action isn't possible, or a shorter way
    is known already; later calls are ignored.
    """

    def __init__(self, world: World, solved: Callable[[World], bool], fewer_than: int):
        self.world = world.copy()
        self.done: list[str] = []
        self.won = solved(self.world)
        self._ended = self.won
        self._solved = solved
        self._fewer_than = fewer_than

    def act(self, command: str) -> None:
        if self._ended:
            return
        self.done.append(command)
        too_long = len(self.done) >= self._fewer_than
        if too_long or rules.act(self.world, command) is None:
            self._ended = True
        else:
            self.won = self._ended = self._solved(self.world)

    def reach(self, receptacle: str, *, inside: bool = False) -> None:
        """Stand at the receptacle, opened if its inside is needed."""
        if not self.world.reachable(receptacle):
            self.act(f"go to {receptacle}")
        if inside and not self.world.accessible(receptacle):
            self.act(f"open {receptacle}")

    def fetch(self, name: str, source: str | None) -> None:
        """Take the object from the source if it isn't in the hand yet."""
        if self.world.held == name:
            return
        if source is None:  # it was in the hand at the start, and has been put down since
            self._ended = True
            return
        self.free_hand()
        self.reach(source, inside=True)
        self.act(f"take {name} from {source}")

    def free_hand(self) -> None:
        """Put down whatever is in the hand, as near as possible."""
        held, house = self.world.held, self.world.house
        if held is None:
            return
        fitting = [r for r in house.receptacles if (house.kinds.get(r), house.kinds.get(held)) in house.fits]
        if not fitting:
            self._ended = True
            return
        self.deliver(held, min(fitting, key=lambda r: (not self.world.reachable(r), not self.world.accessible(r))))

    def deliver(self, name: str, receptacle: str) -> None:
        """Put the held object into or onto the receptacle."""
        self.reach(receptacle, inside=True)
        self.act(f"put {name} in/on {receptacle}")


Plan = Callable[[_Attempt], None]


def _plans(spec: TaskSpec, start: World) -> Iterator[Plan]:
    """Yield the ways to do the task."""
    objects = [name for name in start.house.objects if _is_kind(start, name, spec.object_kind)]
    if spec.task_type == LIGHT:
        for lamp in (name for name in start.house.objects if _is_kind(start, name, spec.destination)):
            for stand in _sources(start, lamp):
                for name in objects:
                    for source in _sources(start, name):
                        yield _light(name, source, lamp, str(stand))
        return
    appliances = [r for r in start.house.receptacles if spec.treatment and _is_kind(start, r, spec.treatment.appliance)]
    for receptacle in (r for r in start.house.receptacles if _is_kind(start, r, spec.destination)):
        for chosen in permutations(objects, spec.count):
            for sources in product(*(_sources(start, name) for name in chosen)):
                for appliance in appliances or [""]:
                    yield _placing(spec.treatment, list(zip(chosen, sources)), receptacle, appliance)


def _placing(
    treatment: Treatment | None, objects: list[tuple[str, str | None]], receptacle: str, appliance: str
) -> Plan:
    def plan(attempt: _Attempt) -> None:
        for name, source in objects:
            if treatment is not None and name not in attempt.world.states[treatment.fact]:
                attempt.fetch(name, source)
                attempt.reach(appliance)
                attempt.act(f"{treatment.verb} {name} with {appliance}")
            if name not in attempt.world.contents[receptacle]:
                attempt.fetch(name, source)
                attempt.deliver(name, receptacle)

    return plan


def _light(name: str, source: str | None, lamp: str, stand: str) -> Plan:
    def plan(attempt: _Attempt) -> None:
        attempt.fetch(name, source)
        attempt.reach(stand)
        attempt.act(f"use {lamp}")

    return plan


def _sources(world: World, name: str) -> list[str | None]:
    """Return where an object can be taken from; None stands for the hand."""
    if world.held == name:
        return [None]
    return [r for r, inside in world.contents.items() if name in inside]


def _is_kind(world: World, name: str, kind: str) -> bool:
    return world.house.kinds.get(name, "").lower() == f"{kind.lower()}type"
