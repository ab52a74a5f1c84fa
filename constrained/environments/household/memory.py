"""What an agent remembers of a household game: the facts, and a few short lines for the prompt.

The memory is built from the texts alone (the first observation, the actions and the answers to them), so it serves the
original ALFWorld as well as our own game. It keeps a small model's prompt short and its decisions local: what is
wanted, held and here, where relevant objects were seen, and which receptacles were never searched.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrained.environments.base import Binding
from constrained.environments.household import observations as says
from constrained.environments.household.observations import GO, kind_of, number_of
from constrained.environments.household.task_parser import household, parse_task
from constrained.environments.household.task_spec import UNKNOWN
from constrained.knowledge.world.known import Known, Outlook

MAX_NUMBERS = 3
"""Numbers of unseen receptacles of one kind that the text lists."""
MAX_NAMES = 4
"""Names of objects seen elsewhere, or in one receptacle, that the text lists."""

_STATES = ("clean", "cool", "hot")


class Memory:
    """What an agent has read so far, and the text of it for a prompt.

    What the answers tell, and what actions change, is said in ``grammars/household.lark``; `Known` keeps the facts.

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
    known : Known
        The facts.
    receptacles : list of str
        Everything one can go to, by kind, then by rising number.
    """

    def __init__(self, first_observation: str):
        task = says.TASK.search(first_observation)
        self.task = task.group(1).strip().rstrip(".") if task else ""
        self.spec = parse_task(self.task)
        self.known = Known(household(), self.task)
        self.known.read(first_observation)
        names = self.known.of_kind("receptacle")
        self.receptacles = sorted(names, key=lambda name: (kind_of(name), number_of(name)))
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
        known = self.known
        for receptacle in searched:
            if receptacle in self.receptacles:
                known.hold("searched", receptacle)
        for name, receptacle in locations:
            if receptacle in self.receptacles and known.value("first", name) in (None, receptacle):
                known.add_object(name, "thing")
                for predicate in ("first", "in"):
                    known.hold(predicate, name, receptacle)

    def restart(self, first_observation: str) -> Memory:
        """Return a memory for the same game started anew, which has put everything back and closed all doors."""
        other = Memory(first_observation)
        other.learn(self.first_seen.items(), self.searched)
        for _, receptacle in self.known.of("door"):
            other.known.hold("door", receptacle)
            other.known.hold("closed", receptacle)
        for fact in self.known.of("near"):
            other.known.hold(*fact)
        return other

    def update(self, action: str, observation: str) -> None:
        """Take in one action and the answer to it."""
        self.last = action.strip()
        self.had_effect = self.known.update(self.last, observation)

    def facts_now(self) -> Outlook:
        """Return what is known, and what may be, as a planning task."""
        return self.known.facts_now()

    # -- queries -----------------------------------------------------------

    @property
    def standing_at(self) -> str | None:
        """Where the last effective ``go to`` led."""
        return self.known.value("stands")

    @property
    def held(self) -> str | None:
        """The object in hand."""
        return self.known.value("held")

    @property
    def taken_from(self) -> str | None:
        """The receptacle that the object in hand came from."""
        return self.known.value("from", self.held) if self.held else None

    @property
    def contents(self) -> dict[str, list[str]]:
        """What was in each receptacle when last seen, of those whose contents were ever told."""
        found: dict[str, list[str]] = {receptacle: [] for receptacle in self.searched}
        for _, name, receptacle in self.known.of("in"):
            found.setdefault(receptacle, []).append(name)
        return found

    @property
    def closed(self) -> dict[str, bool]:
        """Whether a receptacle that can be opened was closed when last seen."""
        return {receptacle: self.known.holds("closed", receptacle) for _, receptacle in self.known.of("door")}

    @property
    def searched(self) -> dict[str, None]:
        """Receptacles whose contents were listed, in that order."""
        return {receptacle: None for _, receptacle in self.known.of("searched")}

    @property
    def first_seen(self) -> dict[str, str]:
        """Where each object was first seen: where it is when the game starts, as nobody else moves anything."""
        return {name: receptacle for _, name, receptacle in self.known.of("first")}

    def here(self) -> list[str]:
        """Receptacles known to be within reach, the one gone to first."""
        stands = self.standing_at
        return [stands, *sorted({place for _, place in self.known.of("at")} - {stands})] if stands else []

    def slots(self) -> dict[str, Binding]:
        """Names for ``grammars/household_form.lark``: the room's receptacles, and the objects shown so far."""
        return {"ROOM": self.receptacles or {}, "SHOWN": list(self.first_seen) or {}}

    def unseen(self) -> list[str]:
        """Receptacles whose contents were never seen."""
        contents = self.contents
        return [name for name in self.receptacles if name not in contents]

    def find(self, kind: str) -> dict[str, str]:
        """Objects of a kind and the receptacles where they were last seen."""
        return {name: place for place, names in self.contents.items() for name in names if kind_of(name) == kind}

    def ready(self, name: str) -> bool:
        """Whether an object is of the wanted kind and in the wanted state."""
        wanted = self.spec.state
        return kind_of(name) == self.spec.object_kind and (not wanted or self.known.holds(wanted, name))

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

    def filter_exploration(self, actions: Iterable[str]) -> list[str]:
        """Return those of the actions that show something new: opening what is closed here, or else going elsewhere."""
        new = set(self.unseen())
        openings = [f"open {name}" for name in self.here() if self.closed.get(name) and name in new]
        wanted = set(openings or (f"{GO}{name}" for name in new - set(self.here())))
        return [action for action in actions if action in wanted]

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
        parts = [self.held, *(state for state in _STATES if self.known.holds(state, self.held))]
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
