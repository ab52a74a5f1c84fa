"""A game of ScienceWorld, played for a replay: actions under the environment's names, and what is noted of them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from constrained.environments.scienceworld.env import refused
from constrained.environments.scienceworld.reading import names_of, scienceworld
from constrained.environments.scienceworld.scene import QUESTION, Scene, answers, choices_of, slots
from constrained.environments.scienceworld.simulator import Simulator

NOISE = 0.08
"""Share of the steps of a noisy replay before which there is a detour."""

HOUSE = {
    "hallway": ("art studio", "bedroom", "greenhouse", "kitchen", "living room", "workshop"),
    "kitchen": ("bathroom", "hallway", "outside"),
    "outside": ("foundry", "greenhouse", "kitchen"),
    "greenhouse": ("hallway", "outside"),
    **dict.fromkeys(("art studio", "bedroom", "living room", "workshop"), ("hallway",)),
    "bathroom": ("kitchen",),
    "foundry": ("outside",),
}
"""Room -> the rooms next door."""

VERBS = (
    ("open", "", "open {}"),
    ("close", "", "close {}"),
    ("go to|go", "", "go to {}"),
    ("activate|turn on", "", "activate {}"),
    ("deactivate|turn off", "", "deactivate {}"),
    ("connect", "to", "connect {} to {}"),
    ("disconnect", "", "disconnect {}"),
    ("use", "on|with", "use {} on {}"),
    ("look at|look on|examine", "", "look at {}"),
    ("look in", "", "look in {}"),
    ("read", "", "read {}"),
    ("move|put", "to|into", "move {} to {}"),
    ("pick up|take|get", "", "pick up {}"),
    ("put down|drop", "", "put down {}"),
    ("pour", "into|to|in", "pour {} into {}"),
    ("dunk", "into|in", "dunk {} into {}"),
    ("mix|stir", "", "mix {}"),
    ("eat|consume", "", "eat {}"),
    ("flush", "", "flush {}"),
    ("focus on|focus", "", "focus on {}"),
)
"""Verbs as the package's agent writes them, what stands between two things, how the environment writes the action."""


def room_of(look: str) -> str:
    """The name of the room that a description is of."""
    return next(fact[1] for fact in scienceworld().told_in(look) if fact[0] == "at")


class Play:
    """A game, and what is noted of it for a replay."""

    def __init__(self, simulator: Simulator, task: str, variation: int):
        self.simulator, self.task, self.variation = simulator, task, variation
        self.description = simulator.load(task, variation)
        self.begin()

    def begin(self) -> None:
        """Start the record here."""
        self.steps: list[dict] = []
        self.focused: dict[str, str] = {}
        self.answer, self.score, self.over = "", 0.0, False
        self._scene: tuple[Scene, dict[int, str], dict] | None = None
        self.first = self.view = self._seen()

    def _seen(self) -> dict[str, str]:
        return {"look": self.simulator.look(), "inventory": self.simulator.inventory()}

    @property
    def room(self) -> str:
        return room_of(self.view["look"])

    def scene(self) -> tuple[Scene, dict[int, str], dict]:
        """The things in view, what they are called, the slots' values."""
        if self.answer.startswith(QUESTION):
            return Scene({}, {}, [], {}), {}, answers(choices_of(self.answer))
        if self._scene is None:
            scene = self.simulator.scene()
            called = names_of(scene, self.view["look"], self.view["inventory"])
            self._scene = scene, called, slots(scene, called, self.description, self.focused)
        return self._scene

    def do(self, action: str, learn: bool = True, values: dict | None = None) -> str:
        """Do an action; return the answer."""
        values = self.scene()[2] if values is None else values
        self._scene = None
        self.answer, self.score, self.over = self.simulator.step(action)
        if self.answer.startswith("You focus on"):
            self.focused[action.removeprefix("focus on ")] = self.answer
        self.view = self._seen()
        self.steps.append(
            {"action": action, "answer": self.answer, "learn": learn, "score": self.score, "slots": values, **self.view}
        )
        return self.answer

    def noted(self, noisy: bool) -> dict:
        """The record of the replay, up to its last point."""
        scores = [0.0, *(step["score"] for step in self.steps)]
        last = max((i for i in range(1, len(scores)) if scores[i] > scores[i - 1]), default=0)
        return {
            "task": self.task, "variation": self.variation, "noisy": noisy, "score": max(0.0, self.score),
            "description": self.description, **self.first, "steps": self.steps[:last] if self.score >= 0 else [],
        }  # fmt: skip

    def use(self, form: str, *things: int) -> None:
        """Do an action with some things, under their present names; of things with one name, the first offered."""
        called = self.scene()[1]
        if self.over:
            return
        answer = self.do(form.format(*(called[thing] for thing in things)))
        if answer.startswith(QUESTION):
            self.do(choices_of(answer)[0])

    def things(self, name: str) -> list[int]:
        """The things in view that have a name; empty containers come first."""
        scene = self.scene()[0]
        found = [thing for thing, names in scene.names.items() if name in names]
        return sorted(found, key=lambda thing: not any("containing nothing" in one for one in scene.names[thing]))

    def called_like(self, pattern: str) -> list[int]:
        """The things in view with a name whose end matches a pattern, sorted by what they are called."""
        scene, called, _ = self.scene()
        end = re.compile(rf"(?:.* )?(?:{pattern})")
        found = [thing for thing, names in scene.names.items() if any(map(end.fullmatch, names))]
        return sorted(found, key=called.__getitem__)

    def can(self, kind: str, thing: int) -> bool:
        """Whether an action of a kind can be done to a thing now."""
        return thing in self.scene()[0].able.get(kind, ())

    def go(self, room: str, close: bool = False) -> None:
        """Walk to a room, and open doors on the way; close them behind if asked."""
        while self.room != room:
            # One step of the shortest way, found breadth first: room -> the room before it.
            before, at = {self.room: ""}, [self.room]
            for place in at:
                at += [near for near in HOUSE[place] if near not in before]
                for near in HOUSE[place]:
                    before.setdefault(near, place)
            way = room
            while before[way] != self.room:
                way = before[way]
            came = self.room
            if re.search(rf"door to the {way} \(that is closed\)", self.view["look"]):
                self.do(f"open door to {way}")
            self.do(f"go to {way}")
            if close:
                self.do(f"close door to {came}")

    def open_until(self, name: str) -> bool:
        """Open what is closed in this room, one thing after the other, until `name` is in view; False: it isn't."""
        while not self.things(name):
            scene, called, _ = self.scene()
            shut = scene.able.get("open", set()) - scene.able.get("close", set())
            shut = {thing for thing in shut if "door" not in scene.names[thing]}
            if not shut:
                return False
            self.do(f"open {min(called[thing] for thing in shut)}")
        return True

    def follow(self, path: Sequence[str], rng: random.Random | None = None) -> None:
        """Do the actions of a path under the environment's names, as far as it can be done; with detours if asked.

        Parameters
        ----------
        path : sequence of str
            Names as the package's own agent writes them.
        rng : random.Random, optional
            Draws the detours.
        """
        pending = list(path)
        while pending and not self.over:
            action = pending.pop(0)
            if action.isdigit() and not self.answer.startswith(QUESTION):
                continue  # the name that the environment uses asks no question
            if action.isdigit():
                self.do(action)
                continue
            if self.answer.startswith(QUESTION):
                break
            if rng is not None and rng.random() < NOISE:
                self._detour(rng)
                if self.over:
                    break
            text = written(action, *self.scene()[:2])
            # The package's agent was asked which thing it meant: ask in the same way, to learn what its answer names.
            if text and pending and pending[0].isdigit():
                lines = re.findall(r"^(\d+):\t(.*)", self.simulator.step(action)[0], re.MULTILINE)
                self.simulator.step("")  # drops the question
                text = written(action, *self.scene()[:2], dict(lines).get(pending[0], "")) or text
            if text is None or refused(self.do(text)):
                break

    def _detour(self, rng: random.Random) -> None:
        """Do something that wasn't needed, and come back."""
        room = self.room
        ways = re.findall(r"A door to the (.+?) \(that is (\w+)\)", self.view["look"])
        open_, closed = ([way for way, state in ways if state == one] for one in ("open", "closed"))
        if open_ and rng.random() < 0.5:
            self.do(f"go to {rng.choice(open_)}", learn=False)
            self.do(f"go to {room}")
        elif closed:
            self.do(f"open door to {rng.choice(closed)}", learn=False)
        else:
            self.do("wait1", learn=False)


def written(action: str, scene: Scene, called: dict[int, str], choice: str = "") -> str | None:
    """An action with the names by which the environment calls its things; None if it names nothing that is there.

    `choice` is the answer that will be chosen if the action is ambiguous: it tells which things are meant.
    """
    everything = scene.names | scene.terminals
    meant = [
        f"{tail} in {where}"
        for what, where in re.findall(r"([^()]+?) \(in ([^,()]+)", choice.lower())
        for tail in _tails(what)
    ]

    def called_by(name: str) -> str | None:
        things = [thing for thing, names in everything.items() if name.lower() in names]
        chosen = [thing for thing in things if set(meant) & set(everything[thing])] if len(things) > 1 else []
        return called[(chosen or things)[0]] if things else None

    for verbs, between, form in VERBS:
        words = re.fullmatch(rf"(?:{verbs}) (.+)", action, re.IGNORECASE)
        if words is None:
            continue
        cuts = [cut.span() for cut in re.finditer(f" (?:{between}) ", words[1])] if between else [(len(words[1]),) * 2]
        for start, end in cuts:  # names have prepositions, too
            found = [called_by(part) for part in (words[1][:start], words[1][end:]) if part]
            if None not in found:
                return form.format(*found)
    return action if action in ("wait", "wait1", "inventory", "task", "look around") or action.isdigit() else None


def _tails(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i:]) for i in range(len(words))]
