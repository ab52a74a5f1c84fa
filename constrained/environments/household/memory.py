"""What an agent remembers of a household game: a few short lines for the prompt, and a filter of useless actions.

The memory is built from the texts alone (the first observation, the actions and the answers to them), so it serves the
original ALFWorld as well as our own game. It keeps a small model's prompt short and its decisions local: what is
wanted, held and here, where relevant objects were seen, and which receptacles were never searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from constrained.environments.base import Binding
from constrained.environments.household import observations as says
from constrained.environments.household.observations import GO, NAME, kind_of, number_of
from constrained.environments.household.task_parser import parse_task
from constrained.environments.household.task_spec import UNKNOWN
from constrained.environments.household.world import TREATMENTS

MAX_NUMBERS = 3
"""Numbers of unseen receptacles of one kind that the text lists."""
MAX_NAMES = 4
"""Names of objects seen elsewhere, or in one receptacle, that the text lists."""

_OPPOSITES = {"hot": "cool", "cool": "hot"}


class Memory:
    """The facts an agent has read so far.

    Parameters
    ----------
    first_observation : str
        The text that opens a game: what is in the room, and the task.

    Attributes
    ----------
    task : str
        The task sentence, without its full stop.
    spec : TaskSpec
        What it asks for; `UNKNOWN` if it isn't understood.
    receptacles : list of str
        Everything one can go to, by kind, then by rising number.
    standing_at : str or None
        Where the last effective ``go to`` led.
    held, taken_from : str or None
        The object in hand, and the receptacle it came from.
    contents : dict of str to list of str
        What was in each receptacle when last seen.
    closed : dict of str to bool
        Whether a receptacle that can be opened was closed when last seen.
    states : dict of str to set of str
        What was done to objects: clean, hot, cool.
    neighbours : dict of str to set of str
        Receptacles known to share a location: between them ``go to`` has no effect.
    first_seen : dict of str to str
        Where each object was first seen: where it is when the game starts, as nobody else moves anything.
    searched : dict of str to None
        Receptacles whose contents were listed, in that order.
    """

    def __init__(self, first_observation: str):
        task = says.TASK.search(first_observation)
        room = says.ROOM.search(first_observation)
        self.task = task.group(1).strip().rstrip(".") if task else ""
        self.spec = parse_task(self.task)
        names = re.findall(NAME, room.group(1)) if room else []
        self.receptacles = sorted(names, key=lambda name: (kind_of(name), number_of(name)))
        self.standing_at: str | None = None
        self.held: str | None = None
        self.taken_from: str | None = None
        self.contents: dict[str, list[str]] = {}
        self.closed: dict[str, bool] = {}
        self.states: dict[str, set[str]] = {}
        self.neighbours: dict[str, set[str]] = {}
        self.first_seen: dict[str, str] = {}
        self.searched: dict[str, None] = {}
        self.last = ""
        self.had_effect = True

    def learn(self, locations: Iterable[tuple[str, str]] = (), searched: Iterable[str] = ()) -> None:
        """Take in, before the first action, what another agent found.

        Parameters
        ----------
        locations : iterable of (object, receptacle)
            Where things are. Pairs with a receptacle that the room doesn't have are ignored.
        searched : iterable of str
            Receptacles that were looked into, so that one without an object in `locations` is known to be empty.
        """
        for receptacle in searched:
            if receptacle in self.receptacles:
                self.searched[receptacle] = None
                self.contents.setdefault(receptacle, [])
        for name, receptacle in locations:
            if receptacle in self.receptacles and self.first_seen.setdefault(name, receptacle) == receptacle:
                listed = self.contents.setdefault(receptacle, [])
                if name not in listed:
                    listed.append(name)

    def restart(self, first_observation: str) -> Memory:
        """Return a memory for the same game started anew, which has put everything back and closed all doors."""
        other = Memory(first_observation)
        other.learn(self.first_seen.items(), self.searched)
        other.closed = dict.fromkeys(self.closed, True)
        other.neighbours = dict(self.neighbours)
        return other

    # -- reading -----------------------------------------------------------

    def update(self, action: str, observation: str) -> None:
        """Take in one action and the answer to it."""
        answer = says.ARRIVAL.sub("", observation.strip(), count=1)
        self.last = action.strip()
        self.had_effect = not answer.startswith("Nothing happens")
        target = self.last[len(GO) :] if self.last.startswith(GO) else ""
        if not self.had_effect:
            # A move fails only where the agent stands already.
            if target in self.receptacles and self.standing_at:
                self._join([self.standing_at, target])
            return
        if target:
            self.standing_at = target
        self._read_receptacles(answer)
        self._read_hand(answer)

    def _read_receptacles(self, answer: str) -> None:
        for flat, openable, listing in says.CONTENTS.findall(answer):
            receptacle = flat or openable
            self.contents[receptacle] = re.findall(NAME, listing)
            self.searched[receptacle] = None
            for name in self.contents[receptacle]:
                self.first_seen.setdefault(name, receptacle)
            if openable:
                self.closed[receptacle] = False
            self._is_here(receptacle)
        for name, closed in says.CLOSED.findall(answer):
            self.closed[name or closed] = True
            self._is_here(name or closed)
        if facing := says.FACING.search(answer):
            self._join(re.findall(NAME, facing.group(1)))

    def _read_hand(self, answer: str) -> None:
        if taken := says.TAKEN.search(answer):
            name, receptacle = taken.groups()
            self.held, self.taken_from = name, receptacle
            self.first_seen.setdefault(name, receptacle)
            self.contents[receptacle] = [other for other in self.contents.get(receptacle, []) if other != name]
            self._is_here(receptacle)
        if put := says.PUT.search(answer):
            name, receptacle = put.group(1) or put.group(2), put.group(3)
            self.contents.setdefault(receptacle, []).append(name)
            self.held = self.taken_from = None
            self._is_here(receptacle)
        if treated := says.TREATED.search(answer):
            verb, name, receptacle = treated.groups()
            state = TREATMENTS[verb].state
            self.states[name] = (self.states.get(name, set()) - {_OPPOSITES.get(state)}) | {state}
            self._is_here(receptacle)
        if carrying := says.CARRYING.search(answer):
            self.held = carrying.group(1)

    def _is_here(self, receptacle: str) -> None:
        if self.standing_at and receptacle != self.standing_at and receptacle in self.receptacles:
            self._join([self.standing_at, receptacle])

    def _join(self, names: list[str]) -> None:
        """Note that these receptacles share a location."""
        group = set(names).union(*(self.neighbours.get(name, set()) for name in names))
        for name in group:
            self.neighbours[name] = group

    # -- queries -----------------------------------------------------------

    def here(self) -> list[str]:
        """Receptacles known to be within reach, the one gone to first."""
        if not self.standing_at:
            return []
        return [self.standing_at, *sorted(self.neighbours.get(self.standing_at, set()) - {self.standing_at})]

    def slots(self) -> dict[str, Binding]:
        """Names for ``grammars/household_form.lark``: the room's receptacles, and the objects shown so far."""
        return {"ROOM": self.receptacles or {}, "SHOWN": list(self.first_seen) or {}}

    def unseen(self) -> list[str]:
        """Receptacles whose contents were never seen."""
        return [name for name in self.receptacles if name not in self.contents]

    def find(self, kind: str) -> dict[str, str]:
        """Objects of a kind and the receptacles where they were last seen."""
        return {
            name: receptacle for receptacle, listed in self.contents.items() for name in listed if kind_of(name) == kind
        }

    def ready(self, name: str) -> bool:
        """Whether an object is of the wanted kind and in the wanted state."""
        wanted = self.spec.state
        return kind_of(name) == self.spec.object_kind and (not wanted or wanted in self.states.get(name, set()))

    def destination(self) -> str | None:
        """The receptacle to fill: the one with most wanted objects; if all are empty, the one nearest at hand."""
        options = [name for name in self.receptacles if kind_of(name) == self.spec.receptacle]
        here = self.here()

        def rank(name: str) -> tuple[int, ...]:
            filled = sum(map(self.ready, self.contents.get(name, [])))
            # Where two of them hold a wanted object, the choice must not change with every step between the two.
            nearness = () if filled else (name in here, name in self.contents)
            return filled, *nearness, -number_of(name)

        return max(options, key=rank, default=None)

    def appliance(self) -> str | None:
        """Where the wanted state is made: a sinkbasin, microwave or fridge."""
        kind = self.spec.treatment.appliance.lower() if self.spec.treatment else None
        return next((name for name in self.receptacles if kind_of(name) == kind), None)

    def lamp(self) -> tuple[str, str] | None:
        """The nearest lamp of the wanted kind that was seen, and where it stands."""
        here = self.here()
        return min(self.find(self.spec.lamp).items(), key=lambda pair: pair[1] not in here, default=None)

    def delivered(self) -> dict[str, str]:
        """Wanted objects that are where they belong."""
        destination = self.destination()
        if destination is None:
            return {}
        return {name: destination for name in self.contents.get(destination, ()) if self.ready(name)}

    # -- the filter of actions ---------------------------------------------

    def filter_exploration(self, actions: Iterable[str]) -> list[str]:
        """Return those of the actions that show something new: opening what is closed here, or else going elsewhere."""
        new = set(self.unseen())
        openings = [f"open {name}" for name in self.here() if self.closed.get(name) and name in new]
        wanted = set(openings or (f"{GO}{name}" for name in new - set(self.here())))
        return [action for action in actions if action in wanted]

    def filter_actions(self, actions: Iterable[str]) -> list[str]:
        """Return the possible actions without the moves that are known to be useless.

        What is needed next is done where it can be done, or gone to where it is known to be. Where that isn't known,
        unsearched receptacles are searched, and a closed one just gone to is opened. If none of that is possible, or
        the object in hand isn't wanted, all moves stay. Only ``go to`` is ever left out.
        """
        actions = list(actions)
        if self.spec == UNKNOWN or self.held and kind_of(self.held) != self.spec.object_kind:
            return actions
        possible = set(actions)
        for subgoal in self._subgoals(possible):
            if not subgoal.isdisjoint(possible):
                return [action for action in actions if action in subgoal or not action.startswith(GO)]
        return actions

    def _subgoals(self, possible: set[str]) -> Iterator[set[str]]:
        """Yield sets of actions, most urgent first: the next set counts only where none of the last is possible."""
        needed, new, here = self._needed(), self.unseen(), self.here()
        # A receptacle that can't be gone to may share the location, even if that isn't known yet.
        near = {receptacle for receptacle in needed if receptacle in here or f"{GO}{receptacle}" not in possible}
        yield {action for receptacle in near for action in (*needed[receptacle], f"open {receptacle}")}
        yield {f"{GO}{receptacle}" for receptacle in needed}
        yield {f"open {self.standing_at}"} if self.standing_at in new else set()
        yield {f"{verb}{name}" for name in new for verb in (("open ", "examine ") if name in here else (GO,))}

    def _needed(self) -> dict[str, list[str]]:
        """Return the receptacles to go to next, as far as they are known, with the actions to do there."""
        needed: dict[str, list[str]] = {}
        if not self.held:
            delivered = self.delivered()
            for name, receptacle in self.find(self.spec.object_kind).items():
                if name not in delivered:
                    needed.setdefault(receptacle, []).append(f"take {name} from {receptacle}")
        elif not self.ready(self.held) and self.spec.treatment:
            verb, kind = self.spec.treatment.verb, self.spec.treatment.appliance.lower()
            needed = {name: [f"{verb} {self.held} with {name}"] for name in self.receptacles if kind_of(name) == kind}
        elif self.spec.lamp:
            if lamp := self.lamp():
                needed = {lamp[1]: [f"use {lamp[0]}"]}
        elif destination := self.destination():
            needed = {destination: [f"put {self.held} in/on {destination}"]}
        return needed

    # -- the text ----------------------------------------------------------

    def text(self) -> str:
        """Return the memory for a prompt: a line a fact, 40 to 90 tokens.

        Long lists are cut, with ``+n`` for the rest, so the length is bounded
        whatever the room. ``?`` marks a receptacle whose contents are unknown.
        """
        return f"{self.situation()}\nLast: {self.last or 'none'}{'' if self.had_effect else ', no effect'}"

    def situation(self) -> str:
        """Return the same without the last action: equal texts mean that nothing has changed."""
        known = self.spec != UNKNOWN
        lines = [
            f"Task: {self.spec.sentences()[0].rstrip('.') if known else self.task}",
            f"Hold: {self._hand_text()}",
            f"At: {'; '.join(map(self._receptacle_text, self.here())) or 'start'}",
            f"Seen: {self._seen_text()}",
            f"Goal: {self._goal_text()}",
        ]
        if delivered := self.delivered():
            lines.append("Done: " + ", ".join(f"{name} at {where}" for name, where in delivered.items()))
        lines.append(f"Unseen: {self._unseen_text()}")
        return "\n".join(lines)

    def _hand_text(self) -> str:
        if not self.held:
            return "none"
        parts = [self.held, *sorted(self.states.get(self.held, set()))]
        if kind_of(self.held) == self.spec.object_kind:
            parts.append("ready" if self.ready(self.held) else f"not {self.spec.state}")
        elif self.spec != UNKNOWN:
            parts.append(f"not wanted, from {self.taken_from}" if self.taken_from else "not wanted")
        return ", ".join(parts)

    def _receptacle_text(self, receptacle: str) -> str:
        if self.closed.get(receptacle):
            return f"{receptacle} closed"
        if receptacle not in self.contents:
            return f"{receptacle} ?"
        delivered = self.delivered()
        listed = [name for name in self.contents[receptacle] if name not in delivered]
        relevant = (self.spec.object_kind, self.spec.lamp)
        shown = [name for name in listed if kind_of(name) in relevant][:MAX_NAMES]
        return f"{receptacle}: {', '.join(shown) or 'none'}{_more(len(listed) - len(shown))}"

    def _seen_text(self) -> str:
        here, delivered = self.here(), self.delivered()
        seen = [
            f"{name} at {where}"
            for name, where in self.find(self.spec.object_kind).items()
            if name not in delivered and (where not in here or self.closed.get(where))
        ]
        return (", ".join(seen[:MAX_NAMES]) or "none") + _more(len(seen) - MAX_NAMES)

    def _goal_text(self) -> str:
        here = self.here()
        if lamp := self.lamp():
            return f"{lamp[0]} at {lamp[1]}{' here' if lamp[1] in here else ''}"
        targets = [self.spec.lamp or self.destination() or self.spec.receptacle, self.appliance()]
        return ", ".join(f"{target}{' here' if target in here else ''}" for target in targets if target) or "none"

    def _unseen_text(self) -> str:
        numbers: dict[str, list[str]] = {}
        for name in self.unseen():
            numbers.setdefault(kind_of(name), []).append(str(number_of(name)))
        shown = [f"{kind} {' '.join(n[:MAX_NUMBERS])}{_more(len(n) - MAX_NUMBERS)}" for kind, n in numbers.items()]
        return ", ".join(shown) or "none"


def _more(number: int) -> str:
    return f" +{number}" if number > 0 else ""
