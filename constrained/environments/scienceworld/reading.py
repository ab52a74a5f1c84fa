"""What an agent reads of ScienceWorld: after each action what is new, and the facts; and one name for each thing.

The room's description and the inventory take no time in the world, and the package gives both to agents at every step.
A line of them is shown when it is new or has changed since it was last shown, so that the text grows only at its end: a
model that keeps its keys and values reads each line once. Behind it stand the facts, as `grammars/scienceworld.lark`
tells them: what lies in other rooms, what is open. The network that ships reads the text alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

from constrained.environments.memory import WorldMemory
from constrained.environments.scienceworld.scene import QUESTION, Scene
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world.shown import Shown

LONGEST_ANSWER = 300
"""Characters shown of an answer: enough for a recipe."""

MAX_TEXT = 20_000
"""Characters of an episode's text: of longer ones the first steps are left out, but for the beginning."""

_ARTICLE = re.compile(r"\b(?:a|an|the) ", re.IGNORECASE)
_SHORTER = [
    (re.compile(pattern), by)
    for pattern, by in (
        (r"\ba substance called ", ""),
        (_ARTICLE, ""),
        (r" \(that is (\w+)\)", r" \1"),
        (r"(?i)\. (?:[\w ]+) door is closed\. ?", " closed"),
        (r"(?i)\. (?:[\w ]+) door is open\. In [\w ]+ is: ", " open: "),
        (r"(?i)\. (?:In|On) [\w ]+ is: ", ": "),
        (r",? which is (?:turned )?(?:currently )?", " "),
        (r", currently reading temperature of (-?\d+) degrees celsius", ""),
        (r" ?\(containing nothing\)", " empty"),
        (r"\(containing ", "("),
        (r"\bYou move to\b", "in"),
        (r"Ambiguous request: Please enter number for action you intended \(or blank to cancel\):", "which?"),
        (r"  +", " "),
    )
]


def shorter(text: str) -> str:
    """Return a line of an observation without articles and phrases that say nothing."""
    for pattern, by in _SHORTER:
        text = pattern.sub(by, text)
    return text.strip(" .\t").lower()


@cache
def scienceworld() -> World:
    """What ``grammars/scienceworld.lark`` says of places, things and answers."""
    world = read_world("scienceworld")
    assert world is not None  # the file that ships has `//:` lines
    return world


def lines_of(look: str) -> list[str]:
    """Return what a description of a room, or of the inventory, lists."""
    return [
        shorter(line)
        for line in look.splitlines()
        if line.startswith("\t") and not line.endswith(("the agent", "called air"))
    ]


def names_of(scene: Scene, look: str, inventory: str) -> dict[int, str]:
    """Return one name for each thing.

    The longest of those that what is seen writes, if no other thing has it; else the shortest of those that the fewest
    other things have. Things that can't be told apart share it: the simulator asks which is meant.

    Parameters
    ----------
    scene : Scene
    look, inventory : str
        The descriptions of the room and of what is carried.
    """
    everything = scene.names | scene.terminals
    holders = Counter(name for names in everything.values() for name in set(names))
    seen = " ; ".join(lines_of(look) + lines_of(inventory))
    chosen = {}
    for thing, names in everything.items():
        known = sorted(set(names), key=lambda name: (holders[name], len(name), name))
        shown = [(name, _ARTICLE.sub("", name)) for name in known if holders[name] == 1]
        written = [name for name, bare in shown if bare in seen and re.search(rf"\b{re.escape(bare)}\b", seen)]
        chosen[thing] = written[-1] if written else known[0]
    return chosen


class Reading(WorldMemory):
    """What an agent remembers of an episode: the task, and each action with the answer to it and what is new in view.

    Parameters
    ----------
    task : str
        Its description.
    look : callable
        Returns the room's description and the inventory now.
    """

    def __init__(self, task: str, look: Callable[[], tuple[str, str]]):
        super().__init__(scienceworld(), "")
        self.task, self._look = task, look
        self._blocks = [shorter(task)]
        self._lines: dict[str, list[str]] = {}
        self._blocks[0] += self._news()

    def update(self, action: str, observation: str) -> None:
        """Take in an action and the answer to it."""
        block = f"Action {len(self._blocks)}: {action}"
        if observation.startswith(QUESTION) or "\n\t" not in observation:  # what is listed is in view
            block += "\n" + shorter(" ".join(observation.split()))[:LONGEST_ANSWER]
        super().update(action, observation)
        self._blocks.append(block + self._news())

    def text(self) -> str:
        """Return the beginning, as many of the last steps as there is room for, and behind an empty line the facts."""
        kept = len(self._blocks)
        room = MAX_TEXT - len(self._blocks[0])
        while kept > 1 and (room := room - len(self._blocks[kept - 1]) - 1) > 0:
            kept -= 1
        # Whole runs of steps are left out, so that the text seldom changes except at its end.
        kept = 1 if kept == 1 else min(-(-kept // 20) * 20, len(self._blocks))
        return "\n".join([self._blocks[0], *self._blocks[kept:], "", self.shown.text])

    def whole(self) -> str:
        """Return all steps, without the facts."""
        return "\n".join(self._blocks)

    def situation(self) -> str:
        """Return a text that is never the same: time goes by with each action, so that none is useless twice."""
        return f"step {len(self._blocks)}"

    def facts_now(self) -> None:
        """Return nothing: what is possible is asked of the simulator, which knows things of one name apart."""

    def _anew(self, first_observation: str) -> Reading:
        return Reading(self.task, self._look)

    def _news(self) -> str:
        look, inventory = self._look()
        for described in (inventory, look):
            self.known.read(described.replace("its terminal 1", ". its terminal 1"))  # "a black wireits terminal 1"
        self.shown = Shown(self.known)
        room = self.known.value("at") or ""
        news = ""
        for place, lines in ((room, lines_of(look)), ("inventory", lines_of(inventory))):
            known = self._lines.get(place, [])
            new = [line for line in lines if line not in known]
            if new:
                news += f"\n{place}: {'; '.join(new)}"
            self._lines[place] = lines
        return news
