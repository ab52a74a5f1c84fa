"""A rule-based expert for household games, to teach the embedded model.

It decides from the memory alone, as an agent must, without access to the game's state. Beyond that it has a prior,
counted over the training games: how many objects of a type a receptacle of a type holds. It searches where that number,
divided by the steps it takes to look, is highest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from constrained.environments.household.task_spec import LIGHT, parse_task
from constrained.environments.memory import WorldMemory
from constrained.knowledge.world.world import kind_of

OPENABLE = {"cabinet", "drawer", "fridge", "microwave", "safe", "box", "laundryhamper"}
"""Usually closed: looking into one takes two steps instead of one."""


@dataclass(frozen=True)
class Move:
    """One decision: the reason and the action."""

    thought: str
    action: str


class Prior:
    """Objects of a type per receptacle of a type, counted over rooms: receptacle -> the objects in it at the start."""

    def __init__(self, rooms: Iterable[Mapping[str, Iterable[str]]] = ()):
        self.objects: Counter[tuple[str, str]] = Counter()
        self.receptacles: Counter[tuple[str, str]] = Counter()
        for room in rooms:
            present = {kind_of(name) for listed in room.values() for name in listed}
            for receptacle, listed in room.items():
                target = kind_of(receptacle)
                # Only rooms that have the object say where it is kept.
                self.receptacles.update((kind, target) for kind in present)
                self.objects.update({(kind_of(name), target) for name in listed})

    def __call__(self, kind: str, receptacle: str) -> float:
        """Probability that a receptacle holds an object of a type, weakly smoothed."""
        pair = kind, kind_of(receptacle)
        return (self.objects[pair] + 0.02) / (self.receptacles[pair] + 1.0)


class Seen:
    """A memory's facts about a house, as properties for the expert."""

    def __init__(self, memory: WorldMemory):
        self.shown, self.known, self.last = memory.shown, memory.known, memory.last
        self.spec = parse_task(memory.task)
        self.held, self.standing_at = self.known.value("held"), self.known.value("stands")
        self.taken_from = self.known.value("from", self.held) if self.held else None
        self.receptacles = self.shown.things("receptacle")
        self.contents: dict[str, list[str]] = {where: [] for _, where in self.known.of("searched")}
        for _, name, where in self.known.of("in"):
            self.contents[where].append(name)

    def here(self) -> list[str]:
        """Receptacles within reach."""
        return [where for _, where in self.shown.of("here")]

    def closed(self, receptacle: str) -> bool | None:
        """Whether it is closed; None if it isn't known to have a door."""
        return self.known.holds("closed", receptacle) if self.known.holds("door", receptacle) else None

    def the(self, what: str) -> str | None:
        """The target or the tool, if there is one."""
        return next((name for _, name in self.shown.of(what)), None)

    def unseen(self) -> list[str]:
        """Receptacles that were never looked into."""
        return [name for name in self.receptacles if name not in self.contents]

    def find(self, kind: str) -> dict[str, str]:
        """Objects of a kind, and where they were last seen."""
        return {name: where for where, names in self.contents.items() for name in names if kind_of(name) == kind}

    def delivered(self) -> set[str]:
        """Wanted objects that are where they belong."""
        return {name for _, name, _ in self.shown.of("done")}


def decide(memory: WorldMemory, prior: Prior) -> Move:
    """The expert's next action for a memory, with its reason."""
    return _decide(Seen(memory), prior)


def _decide(memory: Seen, prior: Prior) -> Move:
    spec = memory.spec
    if memory.held and kind_of(memory.held) != spec.object_kind:
        return _return_held(memory)
    if memory.held and spec.task_type == LIGHT:
        return _light(memory, prior)
    if memory.held and ("ready", memory.held) not in memory.shown.of("ready"):
        return _change(memory, prior)
    if memory.held:
        return _deliver(memory, prior)
    return _fetch(memory, prior)


def _reach(memory: Seen, receptacle: str, thought: str) -> Move | None:
    """The action that brings an open receptacle within reach; None if it is."""
    if receptacle not in memory.here():
        return Move(f"{thought} I go to {receptacle}.", f"go to {receptacle}")
    if memory.closed(receptacle):
        return Move(f"{thought} {receptacle} is closed: I open it.", f"open {receptacle}")
    return None


def _fetch(memory: Seen, prior: Prior) -> Move:
    kind, done, here = memory.spec.object_kind, memory.delivered(), memory.here()
    result = {name: at for name, at in memory.find(kind).items() if name not in done}
    if not result:
        return _search(memory, prior, kind)
    name, receptacle = min(result.items(), key=lambda pair: (pair[1] not in here, bool(memory.closed(pair[1]))))
    return _reach(memory, receptacle, f"{name} is at {receptacle}.") or Move(
        f"I see {name}. I take it.", f"take {name} from {receptacle}"
    )


def _search(memory: Seen, prior: Prior, kind: str) -> Move:
    unseen, here = memory.unseen(), memory.here()
    for receptacle in here:
        if receptacle in unseen:
            closed = memory.closed(receptacle)
            closed = kind_of(receptacle) in OPENABLE if closed is None else closed
            verb = "open" if closed and memory.last != f"open {receptacle}" else "examine"
            return Move(f"I need a {kind}. I look into {receptacle}.", f"{verb} {receptacle}")
    if not unseen:
        return _again(memory, kind)

    def worth(receptacle: str) -> float:
        steps = 1 if memory.closed(receptacle) is None and kind_of(receptacle) not in OPENABLE else 2
        return prior(kind, receptacle) / steps

    # max keeps the first of equals: the lowest number of a type.
    best = max(unseen, key=worth)
    return Move(f"I need a {kind}. I look at {best}.", f"go to {best}")


def _again(memory: Seen, kind: str) -> Move:
    """The action when every receptacle was searched: search again, since objects may have been moved."""
    others = [name for name in memory.receptacles if name not in memory.here()]
    following = [name for name in others if name > (memory.standing_at or "")] or others
    return Move(f"I need a {kind}. I look again.", f"go to {following[0]}" if following else "look")


def _change(memory: Seen, prior: Prior) -> Move:
    name, state, tool = memory.held, memory.spec.state, memory.the("tool")
    if tool is None:
        return _deliver(memory, prior)
    if tool not in memory.here():
        return Move(f"{name} must be {state}. I go to {tool}.", f"go to {tool}")
    assert memory.spec.treatment is not None  # an object is treated only for a state
    verb = memory.spec.treatment.verb
    return Move(f"{name} must be {state}. I {verb} it.", f"{verb} {name} with {tool}")


def _deliver(memory: Seen, prior: Prior) -> Move:
    name, receptacle = memory.held, memory.the("target")
    if receptacle is None:
        return _search(memory, prior, memory.spec.object_kind)
    return _reach(memory, receptacle, f"{name} is ready.") or Move(
        f"{name} is ready. I put it here.", f"put {name} in/on {receptacle}"
    )


def _light(memory: Seen, prior: Prior) -> Move:
    lamps = memory.shown.of("lamp")
    if not lamps:
        return _search(memory, prior, memory.spec.destination)
    [(_, lamp, receptacle)] = lamps
    return _reach(memory, receptacle, f"I have {memory.held}. {lamp} is at {receptacle}.") or Move(
        f"I have {memory.held}. I use {lamp}.", f"use {lamp}"
    )


def _return_held(memory: Seen) -> Move:
    name = memory.held
    receptacle = memory.taken_from or memory.standing_at
    assert receptacle is not None  # what is held was taken somewhere
    return _reach(memory, receptacle, f"I don't need {name}.") or Move(
        f"I don't need {name}. I put it back.", f"put {name} in/on {receptacle}"
    )
