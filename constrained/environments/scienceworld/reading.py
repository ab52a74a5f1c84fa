"""The memory of ScienceWorld: each action with what it changed, and the known facts; one name for each thing.

The room's description and the inventory take no time in the world, and the package gives both to agents at every step.
A line of them is shown if it is new or has changed since it was last shown, so that the text grows only at its end: a
model with a KV cache reads each line once. After it come the facts, written by `grammars/scienceworld.lark`: what lies
in other rooms, what is open. The network that ships reads only the text before them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from constrained.environments.memory import WorldMemory
from constrained.environments.scienceworld.scene import QUESTION, Scene
from constrained.environments.world import shipped_world
from constrained.knowledge.world import World
from constrained.knowledge.world.shown import Shown

LONGEST_ANSWER = 300
"""Most characters shown of an answer: enough for a recipe."""

MAX_TEXT = 20_000
"""Most characters of an episode's text: of longer texts the first steps after the beginning are left out."""

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
    """A line of an observation without articles and empty phrases."""
    for pattern, by in _SHORTER:
        text = pattern.sub(by, text)
    return text.strip(" .\t").lower()


def scienceworld() -> World:
    """The world of ``grammars/scienceworld.lark``: places, things and the meaning of answers."""
    return shipped_world("scienceworld")


def lines_of(look: str) -> list[str]:
    """The lines that a description of a room or of the inventory lists."""
    return [
        shorter(line)
        for line in look.splitlines()
        if line.startswith("\t") and not line.endswith(("the agent", "called air"))
    ]


def names_of(scene: Scene, look: str, inventory: str) -> dict[int, str]:
    """Choose one name for each thing.

    It is the longest of its names that the descriptions show and no other thing has; if there is none, the shortest of
    the names that the fewest other things have. Things that can't be told apart share a name: the simulator then asks
    which one is meant.

    Parameters
    ----------
    scene : Scene
    look, inventory : str
        The descriptions of the room and of what is carried.
    """
    # A name that only one thing has is unambiguous; of these one that the model has read in a description.
    everything = scene.names | scene.terminals
    holders = Counter(name for names in everything.values() for name in set(names))
    seen = " ; ".join(lines_of(look) + lines_of(inventory))
    chosen = {}
    for thing, names in everything.items():
        ordered = sorted(set(names), key=lambda name: (holders[name], len(name), name))
        unique = [(name, _ARTICLE.sub("", name)) for name in ordered if holders[name] == 1]
        shown = [name for name, bare in unique if bare in seen and re.search(rf"\b{re.escape(bare)}\b", seen)]
        chosen[thing] = shown[-1] if shown else ordered[0]
    return chosen


class ScienceWorldMemory(WorldMemory):
    """A memory of an episode: the task, then each action with its answer and what is new in view.

    Parameters
    ----------
    task : str
        The task's description.
    look : callable
        Returns the current description of the room, and the inventory.
    """

    def __init__(self, task: str, look: Callable[[], tuple[str, str]]):
        super().__init__(scienceworld(), "")
        self.task, self._look = task, look
        self._blocks = [shorter(task)]
        self._lines: dict[str, list[str]] = {}
        self._blocks[0] += self._news()

    def update(self, action: str, observation: str) -> None:
        """Add an action and the answer to it."""
        block = f"Action {len(self._blocks)}: {action}"
        if observation.startswith(QUESTION) or "\n\t" not in observation:  # lists are left out: they are in view
            block += "\n" + shorter(" ".join(observation.split()))[:LONGEST_ANSWER]
        super().update(action, observation)
        self._blocks.append(block + self._news())

    def text(self) -> str:
        """The beginning, as many of the last steps as fit, an empty line, and the facts."""
        # From the last step back, as long as there is room.
        kept = len(self._blocks)
        room = MAX_TEXT - len(self._blocks[0])
        while kept > 1 and (room := room - len(self._blocks[kept - 1]) - 1) > 0:
            kept -= 1
        # Steps are left out in groups of 20, so that the text seldom changes except at its end.
        kept = 1 if kept == 1 else min(-(-kept // 20) * 20, len(self._blocks))
        return "\n".join([self._blocks[0], *self._blocks[kept:], "", self.shown.text])

    def whole(self) -> str:
        """All steps, without the facts."""
        return "\n".join(self._blocks)

    def situation(self) -> str:
        """A text that is never the same twice: time passes with each action, so repeating one can be useful."""
        return f"step {len(self._blocks)}"

    def facts_now(self) -> None:
        """None: the simulator lists what is possible, because it can tell things with the same name apart."""

    def _fresh(self, first_observation: str) -> ScienceWorldMemory:
        return ScienceWorldMemory(self.task, self._look)

    def _news(self) -> str:
        look, inventory = self._look()
        for described in (inventory, look):
            self.known.read(described.replace("its terminal 1", ". its terminal 1"))  # "a black wireits terminal 1"
        self.shown = Shown(self.known)
        room = self.known.value("at") or ""
        news = ""
        for place, lines in ((room, lines_of(look)), ("inventory", lines_of(inventory))):
            new = [line for line in lines if line not in self._lines.get(place, ())]
            if new:
                news += f"\n{place}: {'; '.join(new)}"
            self._lines[place] = lines
        return news
