"""Solve a household game with full knowledge of the room.

A short walkthrough, not provably the shortest: the ways to do the task (which
object, from where, into which receptacle, in which order) are tried out in copies
of the world, each object fetched and carried straight, and the one with the fewest
actions is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

from constrained.environments.household import rules
from constrained.environments.household.aim import LIGHT, RESULTS, Aim, read_goal
from constrained.environments.household.game import Game
from constrained.environments.household.world import World
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
        default the game's start.  It isn't changed.

    Raises
    ------
    GameError
        When the goal is of another kind, or can't be reached from there.
    """
    start = game.world if world is None else world
    best: list[str] | None = None
    for plan in _plans(read_goal(game.problem.goal), start):
        attempt = _Attempt(start, game.solved, fewer_than=len(best) if best else MAX_ACTIONS)
        plan(attempt)
        if attempt.won:
            best = attempt.done
    if best is None:
        raise GameError(f"no way found to {game.task!r} in {game.name}")
    return best


class _Attempt:
    """A way to do the task, played in a copy of the world as it is chosen.

    It ends when the goal is reached, an action isn't possible, or a shorter way
    is known already; what is asked of it after that is ignored.
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
        late = len(self.done) >= self._fewer_than
        if late or rules.act(self.world, command) is None:
            self._ended = True
        else:
            self.won = self._ended = self._solved(self.world)

    def reach(self, receptacle: str, *, inside: bool = False) -> None:
        """Stand at the receptacle, opened if its inside is needed."""
        if not self.world.reachable(receptacle):
            self.act(f"go to {receptacle}")
        if inside and not self.world.accessible(receptacle):
            self.act(f"open {receptacle}")

    def fetch(self, thing: str, source: str | None) -> None:
        """Have the thing in hand, taken from the source if it isn't yet."""
        if self.world.held == thing:
            return
        if source is None:  # it was in the hand at the start, and has been put down since
            self._ended = True
            return
        self.free_hand()
        self.reach(source, inside=True)
        self.act(f"take {thing} from {source}")

    def free_hand(self) -> None:
        """Put down whatever is in the hand, as near as possible."""
        held, house = self.world.held, self.world.house
        if held is None:
            return
        fitting = [r for r in house.receptacles if (house.kinds.get(r), house.kinds.get(held)) in house.fits]
        if not fitting:
            self._ended = True
            return
        # Where one already stands, and what is already open, is nearest.
        place = min(fitting, key=lambda r: (not self.world.reachable(r), not self.world.accessible(r)))
        self.place(held, place)

    def treat(self, verb: str, thing: str, appliance: str) -> None:
        """Clean, heat or cool the held thing."""
        self.reach(appliance)
        self.act(f"{verb} {thing} with {appliance}")

    def place(self, thing: str, receptacle: str) -> None:
        """Put the held thing where it belongs."""
        self.reach(receptacle, inside=True)
        self.act(f"put {thing} in/on {receptacle}")


Plan = Callable[[_Attempt], None]


def _plans(aim: Aim, start: World) -> Iterator[Plan]:
    """Yield the ways to do the task."""
    things = [t for t in start.house.objects if _is_kind(start, t, aim.thing)]
    if aim.task_type == LIGHT:
        for lamp in (t for t in start.house.objects if _is_kind(start, t, aim.place)):
            for stand in _sources(start, lamp):
                for thing in things:
                    for source in _sources(start, thing):
                        yield _light(thing, source, lamp, str(stand))
        return
    appliances = [r for r in start.house.receptacles if aim.treatment and _serves(start, r, aim.treatment)]
    for receptacle in (r for r in start.house.receptacles if _is_kind(start, r, aim.place)):
        for chosen in permutations(things, aim.count):
            for sources in product(*(_sources(start, thing) for thing in chosen)):
                for appliance in appliances or [""]:
                    yield _placing(aim.treatment, list(zip(chosen, sources)), receptacle, appliance)


def _placing(verb: str | None, things: list[tuple[str, str | None]], receptacle: str, appliance: str) -> Plan:
    def plan(attempt: _Attempt) -> None:
        for thing, source in things:
            if verb is not None and thing not in attempt.world.states[RESULTS[verb][1]]:
                attempt.fetch(thing, source)
                attempt.treat(verb, thing, appliance)
            if thing not in attempt.world.contents[receptacle]:
                attempt.fetch(thing, source)
                attempt.place(thing, receptacle)

    return plan


def _light(thing: str, source: str | None, lamp: str, stand: str) -> Plan:
    def plan(attempt: _Attempt) -> None:
        attempt.fetch(thing, source)
        attempt.reach(stand)
        attempt.act(f"use {lamp}")

    return plan


def _sources(world: World, thing: str) -> list[str | None]:
    """Return where a thing can be taken from; None stands for the hand."""
    if world.held == thing:
        return [None]
    return [r for r, inside in world.contents.items() if thing in inside]


def _serves(world: World, receptacle: str, verb: str) -> bool:
    return world.house.kinds.get(receptacle) == rules.TREATMENTS[verb][1]


def _is_kind(world: World, name: str, kind: str) -> bool:
    return world.house.kinds.get(name) == f"{kind}Type"
