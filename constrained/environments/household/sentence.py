"""Read a task's sentence as a player must: from its words alone.

The sentences are those of ALFWorld's text grammar, twelve wordings of six kinds
of task, with articles and "in the" taken as they come.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BECOMES = {"clean": "clean", "heat": "hot", "cool": "cool"}
VERBS = {state: verb for verb, state in BECOMES.items()}
TOOLS = {"clean": "sinkbasin", "hot": "microwave", "cool": "fridge"}

_ADJECTIVE = r"(?P<state>clean|hot|cool|cold)"
_INTO = r"(?:in/on|in|into|on|onto|to) (?:the |a |an )?(?P<goal>[a-z]+)"
SENTENCES = [
    re.compile(rf"(?:find|put|place) (?P<two>two) (?P<kind>[a-z]+) (?:and put them )?{_INTO}"),
    re.compile(rf"(?P<verb>clean|heat|cool) (?:some |a |an |the )?(?P<kind>[a-z]+) and (?:put|place) it {_INTO}"),
    re.compile(rf"(?:put|place) (?:a |an |some |the )?{_ADJECTIVE} (?P<kind>[a-z]+) {_INTO}"),
    re.compile(rf"(?:put|place) (?:a |an |some |the )?(?P<kind>[a-z]+) {_INTO}"),
    re.compile(
        r"(?:look at|examine) (?:a |an |some |the )?(?P<kind>[a-z]+) (?:under|with|by) (?:a |an |the )?(?P<lamp>[a-z]+)"
    ),
]


@dataclass(frozen=True)
class Goal:
    """What a task sentence asks for.

    Attributes
    ----------
    kind : str
        Object type wanted (``"mug"``); empty when the sentence is not understood.
    place : str
        Receptacle type it must end in; empty for "look at" tasks.
    state : str
        ``"clean"``, ``"hot"``, ``"cool"`` or empty.
    lamp : str
        Lamp type to look at it under; empty for the other tasks.
    count : int
        How many objects of the kind (1 or 2).
    """

    kind: str = ""
    place: str = ""
    state: str = ""
    lamp: str = ""
    count: int = 1

    def sentence(self) -> str:
        """The plainest of ALFWorld's sentences that asks for this."""
        if self.lamp:
            return f"look at {self.kind} under the {self.lamp}"
        number = "two" if self.count == 2 else "a"
        return " ".join(filter(None, ["put", number, self.state, self.kind, "in", self.place]))


def read_goal(task: str) -> Goal:
    """Read one of ALFWorld's task sentences; an empty `Goal` for any other."""
    for sentence in SENTENCES:
        found = sentence.match(task.strip().lower())
        if found:
            part = found.groupdict()
            state = BECOMES.get(part.get("verb") or "", part.get("state") or "")
            return Goal(
                kind=part["kind"],
                place=part.get("goal") or "",
                state="cool" if state == "cold" else state,
                lamp=part.get("lamp") or "",
                count=2 if part.get("two") else 1,
            )
    return Goal()
