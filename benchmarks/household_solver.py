"""Solve a household game with full knowledge of the room.

The walkthrough is short, not provably the shortest: the ways to do the task (which object, from where, into which
receptacle, in which order) are tried out in copies of the world, and the one with the fewest actions is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import permutations, product

from constrained.environments.household.game import Game
from constrained.environments.household.task_spec import LIGHT, UNKNOWN, TaskSpec, Treatment, parse_task
from constrained.errors import GameError
from constrained.planning.facts import FactSet

MAX_ACTIONS = 100


def solve(game: Game, facts: FactSet | None = None) -> list[str]:
    """Actions that win the game.

    Parameters
    ----------
    game : Game
        One of ALFWorld's six kinds.
    facts : FactSet, optional
        Where to begin, such as ``env.truth.state`` in the middle of a game; by
        default the game's start.

    Raises
    ------
    GameError
        When the task isn't understood, or its goal can't be reached from there.
    """
    spec = parse_task(game.task)
    if spec == UNKNOWN:
        raise GameError(f"the task {game.task[:80]!r} isn't understood", "word it as ALFWorld does: put a mug in desk")
    start = game.start.state if facts is None else facts
    # Many ways share their first actions: each transition is computed once.
    after = cache(partial(_after, game))
    best: list[str] | None = None
    for plan in _plans(spec, game, start):
        attempt = _Attempt(game, start, after, fewer_than=len(best) if best else MAX_ACTIONS)
        plan(attempt)
        if attempt.won:
            best = attempt.done
    if best is None:
        raise GameError(f"no way found to {game.task!r} in {game.name}")
    return best


class _Attempt:
    """One way to do the task, played as it is chosen.

    It ends when the goal is reached, an action isn't possible, or a shorter way
    is known already; later calls are ignored.
    """

    def __init__(self, game: Game, start: FactSet, after: Callable[[FactSet, str], FactSet | None], fewer_than: int):
        self.game, self.facts = game, start
        self.done: list[str] = []
        self.won = self._ended = game.start.task.reached_goal(start)
        self._after = after
        self._fewer_than = fewer_than

    def act(self, command: str) -> None:
        if self._ended:
            return
        self.done.append(command)
        after = self._after(self.facts, command)
        if len(self.done) >= self._fewer_than or after is None:
            self._ended = True
        else:
            self.facts = after
            self.won = self._ended = self.game.start.task.reached_goal(after)

    def reach(self, receptacle: str, *, inside: bool = False) -> None:
        """Stand at the receptacle, opened if its inside is needed."""
        for command in (f"go to {receptacle}", f"open {receptacle}")[: 2 if inside else 1]:
            if self._after(self.facts, command):
                self.act(command)

    def fetch(self, name: str, source: str | None) -> None:
        """Take the object from the source if it isn't in the hand yet."""
        if _held(self.facts) == name:
            return
        if source is None:  # it was in the hand at the start, and has been put down since
            self._ended = True
            return
        self.free_hand()
        self.reach(source, inside=True)
        self.act(f"take {name} from {source}")

    def free_hand(self) -> None:
        """Put down whatever is in the hand, as near as possible."""
        held, game, facts = _held(self.facts), self.game, self.facts
        if held is None:
            return
        kind = game.kind(held).lower()
        fitting = [r for r in game.receptacles if ("cancontain", game.kind(r).lower(), kind) in facts]
        if not fitting:
            self._ended = True
            return

        def effort(receptacle: str) -> tuple[bool, bool]:
            shut = ("openable", receptacle) in facts and ("opened", receptacle) not in facts
            return self._after(facts, f"go to {receptacle}") is not None, shut

        self.deliver(held, min(fitting, key=effort))

    def deliver(self, name: str, receptacle: str) -> None:
        """Put the held object into or onto the receptacle."""
        self.reach(receptacle, inside=True)
        self.act(f"put {name} in/on {receptacle}")


Plan = Callable[[_Attempt], None]


def _plans(spec: TaskSpec, game: Game, start: FactSet) -> Iterator[Plan]:
    """Yield the ways to do the task."""
    objects = [name for name in game.objects if _is_kind(game, name, spec.object_kind)]
    if spec.task_type == LIGHT:
        for lamp in (name for name in game.objects if _is_kind(game, name, spec.destination)):
            for stand in _sources(game, start, lamp):
                for name in objects:
                    for source in _sources(game, start, name):
                        yield _light(name, source, lamp, str(stand))
        return
    appliances = [r for r in game.receptacles if spec.treatment and _is_kind(game, r, spec.treatment.appliance)]
    for receptacle in (r for r in game.receptacles if _is_kind(game, r, spec.destination)):
        for chosen in permutations(objects, spec.count):
            for sources in product(*(_sources(game, start, name) for name in chosen)):
                for appliance in appliances or [""]:
                    yield _placing(spec.treatment, list(zip(chosen, sources)), receptacle, appliance)


def _placing(
    treatment: Treatment | None, objects: list[tuple[str, str | None]], receptacle: str, appliance: str
) -> Plan:
    def plan(attempt: _Attempt) -> None:
        for name, source in objects:
            if treatment is not None and (treatment.fact, name) not in attempt.facts:
                attempt.fetch(name, source)
                attempt.reach(appliance)
                attempt.act(f"{treatment.verb} {name} with {appliance}")
            if ("inreceptacle", name, receptacle) not in attempt.facts:
                attempt.fetch(name, source)
                attempt.deliver(name, receptacle)

    return plan


def _light(name: str, source: str | None, lamp: str, stand: str) -> Plan:
    def plan(attempt: _Attempt) -> None:
        attempt.fetch(name, source)
        attempt.reach(stand)
        attempt.act(f"use {lamp}")

    return plan


def _after(game: Game, facts: FactSet, command: str) -> FactSet | None:
    """The state after a command; None if it isn't possible."""
    [action, *_] = game.start.in_state(facts).actions.get(command) or [None]
    return None if action is None else game.start.task.apply(facts, action)


def _sources(game: Game, facts: FactSet, name: str) -> list[str | None]:
    """Where an object can be taken from; None stands for the hand."""
    if _held(facts) == name:
        return [None]
    return [r for r, inside in game.contents(facts).items() if name in inside]


def _held(facts: FactSet) -> str | None:
    return next((name for _, _, name in facts.of("holds")), None)


def _is_kind(game: Game, name: str, kind: str) -> bool:
    return game.kind(name).lower() == f"{kind.lower()}type"
