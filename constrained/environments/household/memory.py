"""What an agent may remember of a household game, as a few short lines.

The memory is built from the texts alone (the first observation, the actions
written and the answers to them), so it is as true of the original ALFWorld as
of our own player, and it never peeks at the game's state. It keeps a small
language model's prompt short and its decisions local: what is wanted, what is
held, what is here, where things that matter were seen, and where nobody has
looked yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from constrained.environments.household import memory_text, of_use
from constrained.environments.household.sentence import BECOMES, TOOLS, read_goal
from constrained.environments.household.text import GO, NAME, kind_of, number_of

ARRIVAL = re.compile(r"You arrive at loc \d+\. ")
CONTENTS = re.compile(rf"(?:On the ({NAME})|The ({NAME}) is open\. In it), you see ([^.]*)\.")
CLOSED = re.compile(rf"(?:The ({NAME}) is closed|You close the ({NAME}))\.")
TAKEN = re.compile(rf"You pick up the ({NAME}) from the ({NAME})\.")
PUT = re.compile(rf"You (?:put the ({NAME}) in/on|move the ({NAME}) to) the ({NAME})\.")
CHANGED = re.compile(rf"You (clean|heat|cool) the ({NAME}) using the ({NAME})\.")
FACING = re.compile(r"You are facing the ([^.]*)\.")
CARRYING = re.compile(rf"You are carrying: an? ({NAME})\.")
ROOM = re.compile(r"Looking quickly around you, you see ([^.]*)\.")
TASK = re.compile(r"Your task is to: ([^\n]+)")


class Memory:
    """The facts an agent has read so far.

    Parameters
    ----------
    first_observation : str
        The text that opens a game: what is in the room and the task.

    Attributes
    ----------
    task : str
        The task sentence, without its full stop.
    goal : Goal
        The same, understood.
    receptacles : list of str
        Everything one can go to, by type, then by rising number.
    place : str or None
        Where the last effective ``go to`` led.
    held, origin : str or None
        The object in hand, and the receptacle it came from.
    contents : dict of str to list of str
        What was in each receptacle that was looked into, when last seen.
    shut : dict of str to bool
        Whether a receptacle that can be opened was closed, when last seen.
    states : dict of str to set of str
        What was done to objects: clean, hot, cool.
    mates : dict of str to set of str
        Receptacles known to share a place: there ``go to`` has no effect.
    origins : dict of str to str
        Where each thing was first seen: as nobody else moves anything, where it is when the game begins.
    looked : dict of str to None
        Receptacles whose contents were listed, in that order.
    """

    def __init__(self, first_observation: str):
        task = TASK.search(first_observation)
        room = ROOM.search(first_observation)
        self.task = task.group(1).strip().rstrip(".") if task else ""
        self.goal = read_goal(self.task)
        names = re.findall(NAME, room.group(1)) if room else []
        self.receptacles = sorted(names, key=lambda name: (kind_of(name), number_of(name)))
        self.place: str | None = None
        self.held: str | None = None
        self.origin: str | None = None
        self.contents: dict[str, list[str]] = {}
        self.shut: dict[str, bool] = {}
        self.states: dict[str, set[str]] = {}
        self.mates: dict[str, set[str]] = {}
        self.origins: dict[str, str] = {}
        self.looked: dict[str, None] = {}
        self.last = ""
        self.had_effect = True

    # -- knowing beforehand ----------------------------------------------

    def know(self, places: Iterable[tuple[str, str]] = (), looked: Iterable[str] = ()) -> None:
        """Take in, before the first action, how somebody found the room.

        Parameters
        ----------
        places : iterable of (thing, receptacle)
            What is where. Whatever names a receptacle that the room doesn't have is passed over.
        looked : iterable of str
            Receptacles that were looked into, so that one without a thing in `places` is known to be empty.
        """
        for receptacle in looked:
            if receptacle in self.receptacles:
                self.looked[receptacle] = None
                self.contents.setdefault(receptacle, [])
        for thing, receptacle in places:
            if receptacle in self.receptacles and self.origins.setdefault(thing, receptacle) == receptacle:
                listed = self.contents.setdefault(receptacle, [])
                if thing not in listed:
                    listed.append(thing)

    def again(self, first_observation: str) -> Memory:
        """A memory for the same game begun anew, which has put everything back: what was seen, where it was at first.

        What can be opened is closed when a game begins.
        """
        other = Memory(first_observation)
        other.know(self.origins.items(), self.looked)
        other.shut = dict.fromkeys(self.shut, True)
        other.mates = dict(self.mates)
        return other

    # -- reading ---------------------------------------------------------

    def update(self, action: str, observation: str) -> None:
        """Take in one action and the answer to it."""
        answer = ARRIVAL.sub("", observation.strip(), count=1)
        self.last = action.strip()
        self.had_effect = not answer.startswith("Nothing happens")
        target = self.last[len(GO) :] if self.last.startswith(GO) else ""
        if not self.had_effect:
            # Going where one stands already is the one way a move can fail.
            if target in self.receptacles and self.place:
                self._together([self.place, target])
            return
        if target:
            self.place = target
        self._read_receptacles(answer)
        self._read_hand(answer)

    def _read_receptacles(self, answer: str) -> None:
        for flat, openable, listing in CONTENTS.findall(answer):
            name = flat or openable
            self.contents[name] = re.findall(NAME, listing)
            self.looked[name] = None
            for thing in self.contents[name]:
                self.origins.setdefault(thing, name)
            if openable:
                self.shut[name] = False
            self._near(name)
        for name, closed in CLOSED.findall(answer):
            self.shut[name or closed] = True
            self._near(name or closed)
        facing = FACING.search(answer)
        if facing:
            self._together(re.findall(NAME, facing.group(1)))

    def _read_hand(self, answer: str) -> None:
        taken = TAKEN.search(answer)
        if taken:
            self.held, self.origin = taken.groups()
            self.origins.setdefault(self.held, self.origin)
            listed = self.contents.get(self.origin, [])
            self.contents[self.origin] = [name for name in listed if name != self.held]
            self._near(self.origin)
        put = PUT.search(answer)
        if put:
            name, receptacle = put.group(1) or put.group(2), put.group(3)
            self.contents.setdefault(receptacle, []).append(name)
            self.held = self.origin = None
            self._near(receptacle)
        changed = CHANGED.search(answer)
        if changed:
            verb, name, receptacle = changed.groups()
            opposite = {"heat": "cool", "cool": "hot"}.get(verb)
            self.states[name] = (self.states.get(name, set()) - {opposite}) | {BECOMES[verb]}
            self._near(receptacle)
        carrying = CARRYING.search(answer)
        if carrying:
            self.held = carrying.group(1)

    def _near(self, receptacle: str) -> None:
        if self.place and receptacle != self.place and receptacle in self.receptacles:
            self._together([self.place, receptacle])

    def _together(self, names: list[str]) -> None:
        group = set(names).union(*(self.mates.get(name, set()) for name in names))
        for name in group:
            self.mates[name] = group

    # -- asking ----------------------------------------------------------

    def here(self) -> list[str]:
        """Receptacles known to be within reach, the one gone to first."""
        if not self.place:
            return []
        return [self.place, *sorted(self.mates.get(self.place, set()) - {self.place})]

    def slots(self) -> dict[str, list[str] | dict]:
        """Names for ``grammars/household_form.lark``: the room's receptacles, and the objects shown so far."""
        return {"ROOM": self.receptacles or {}, "SHOWN": list(self.origins) or {}}

    def unseen(self) -> list[str]:
        """Receptacles whose contents were never seen."""
        return [name for name in self.receptacles if name not in self.contents]

    def find(self, kind: str) -> dict[str, str]:
        """Objects of a type and the receptacles where they were last seen."""
        return {
            name: receptacle for receptacle, listed in self.contents.items() for name in listed if kind_of(name) == kind
        }

    def ready(self, name: str) -> bool:
        """Whether an object is of the wanted kind and in the wanted state."""
        wanted = self.goal.state
        return kind_of(name) == self.goal.kind and (not wanted or wanted in self.states.get(name, set()))

    def destination(self) -> str | None:
        """The receptacle to fill: the fullest so far; of empty ones, the handiest."""
        options = [name for name in self.receptacles if kind_of(name) == self.goal.place]
        here = self.here()

        def worth(name: str) -> tuple:
            filled = sum(map(self.ready, self.contents.get(name, [])))
            # Where something is in two of them already, the choice must not
            # change with every step between the two.
            handy = () if filled else (name in here, name in self.contents)
            return filled, *handy, -number_of(name)

        return max(options, key=worth, default=None)

    def tool(self) -> str | None:
        """Where the wanted state is made: a sinkbasin, microwave or fridge."""
        kind = TOOLS.get(self.goal.state)
        return next((name for name in self.receptacles if kind_of(name) == kind), None)

    def lamp(self) -> tuple[str, str] | None:
        """The handiest lamp of the wanted kind that was seen, and where it stands."""
        here = self.here()
        lamps = self.find(self.goal.lamp).items()
        return min(lamps, key=lambda pair: pair[1] not in here, default=None)

    def done(self) -> dict[str, str]:
        """Wanted objects that are where they belong."""
        destination = self.destination()
        listed = self.contents.get(destination, []) if destination else []
        return {name: destination for name in listed if self.ready(name)}

    def to_explore(self, actions: Iterable[str]) -> list[str]:
        """Those that show something new (`of_use.to_explore`)."""
        return of_use.to_explore(self, actions)

    def of_use(self, actions: Iterable[str]) -> list[str]:
        """All but the moves that can't be of use, as far as is known (`of_use.of_use`)."""
        return of_use.of_use(self, actions)

    def text(self) -> str:
        """The memory as a prompt: a line a fact, 40 to 90 tokens (`memory_text.text`)."""
        return memory_text.text(self)

    def situation(self) -> str:
        """The facts without how one came to know them: equal where nothing has changed."""
        return memory_text.situation(self)
