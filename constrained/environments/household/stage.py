"""Stage a task written as a sentence: read it, find a room for it, make the game.

All wordings of ALFWorld's tasks are understood, with or without articles and the
final stop, with plurals and the usual synonyms ("wash", "cold", "couch").
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Collection
from functools import cache

from constrained.environments.household import aim as aims
from constrained.environments.household import catalogue
from constrained.environments.household.aim import Aim
from constrained.environments.household.game import Game
from constrained.environments.household.make import build_game
from constrained.errors import GameError
from constrained.knowledge import ActionKnowledge

MAX_CHARACTERS = 500

KNOWLEDGE = "household"
"""The shipped action knowledge of these games."""

_VERBS = {
    "clean": ("clean", "cleaned", "wash", "washed", "rinse", "rinsed"),
    "heat": ("heat", "heated", "hot", "warm", "warmed", "cook", "cooked", "microwave", "microwaved"),
    "cool": ("cool", "cooled", "cold", "chill", "chilled", "refrigerate", "refrigerated"),
}
_TREATMENT = {word: verb for verb, words in _VERBS.items() for word in words}
_PUT = r"(?:put|place|set|lay|store|move|bring)"
_INTO = r"(?:in/on|into|in|onto|on|to|inside)"
_TREAT = "|".join(sorted(_TREATMENT, key=len, reverse=True))

# Tried in this order; the second entry is the wording of `Aim.sentences` that the game shows.
_PATTERNS = [
    (r"(?:look|glance) at (?P<thing>.+?) (?:under|with|by|using|in the light of) (?P<lamp>.+)", 0),
    (r"(?:examine|inspect|read|study) (?P<thing>.+?) (?:with|under|by|using|in the light of) (?P<lamp>.+)", 1),
    (rf"(?:find|get|take|fetch) (?:two|2) (?P<two>.+?) and {_PUT} (?:them|both|both of them) {_INTO} (?P<place>.+)", 1),
    (rf"{_PUT} (?:two|2) (?P<two>.+?) {_INTO} (?P<place>.+)", 0),
    (rf"(?P<verb>{_TREAT}) (?P<thing>.+?) and (?:then )?{_PUT} (?:it|them) {_INTO} (?P<place>.+)", 1),
    (rf"{_PUT} (?:an? |some |the )?(?P<verb>{_TREAT}) (?P<thing>.+?) {_INTO} (?P<place>.+)", 0),
    (rf"(?:find|get|take|fetch) (?P<thing>.+?) and {_PUT} it {_INTO} (?P<place>.+)", 0),
    (rf"{_PUT} some (?P<thing>.+?) {_INTO} (?P<place>.+)", 1),
    (rf"{_PUT} (?P<thing>.+?) {_INTO} (?P<place>.+)", 0),
]
_UNDERSTOOD = (
    'understood are "put a mug in desk.", "put some mug on desk.", "put two mugs in desk.", '
    '"find two mugs and put them in desk.", "put a clean (hot, cool) mug in coffeemachine.", '
    '"clean (heat, cool) some mug and put it in coffeemachine.", '
    '"look at book under the desklamp." and "examine the book with the desklamp."'
)
_SYNONYMS = {
    "bin": "GarbageCan", "garbage": "GarbageCan", "trash": "GarbageCan", "trashcan": "GarbageCan",
    "couch": "Sofa", "counter": "CounterTop", "cupboard": "Cabinet", "refrigerator": "Fridge",
    "sink": "SinkBasin", "bath": "BathtubBasin", "bathtub": "BathtubBasin", "tub": "BathtubBasin",
    "stove": "StoveBurner", "burner": "StoveBurner", "hamper": "LaundryHamper", "nightstand": "SideTable",
    "television stand": "TVStand", "phone": "CellPhone", "mobile": "CellPhone", "key": "KeyChain",
    "keys": "KeyChain", "remote": "RemoteControl", "sponge": "DishSponge", "soap": "SoapBar",
    "salt": "SaltShaker", "pepper": "PepperShaker", "card": "CreditCard", "clock": "AlarmClock",
    "tissues": "TissueBox", "toiletroll": "ToiletPaper", "wine": "WineBottle", "rag": "Cloth",
    "lamp": "DeskLamp", "loaf": "Bread", "sculpture": "Statue",
}  # fmt: skip


def stage(task: str, seed: int = 0) -> Game:
    """Make a game out of a task sentence.

    Parameters
    ----------
    task : str
        Such as "put a clean mug in the coffeemachine".
    seed : int, optional
        What the room looks like and where things lie.

    Returns
    -------
    Game
        Its task is the sentence in ALFWorld's own wording.

    Raises
    ------
    GameError
        When the sentence, a thing or a receptacle isn't understood, or the task
        can't be done by the household's rules; the message says what could.
    """
    aim, wording = read_task(task)
    rng = random.Random(f"household stage {seed} {aim}")
    return build_game(aim, rng.choice(_rooms(aim)), rng, aim.sentences()[wording], f"staged_{seed}")


def read_task(task: str) -> tuple[Aim, int]:
    """Return what a task sentence asks for, and which of `Aim.sentences` words it so."""
    words = " ".join(task[:MAX_CHARACTERS].lower().removeprefix("your task is to:").split()).rstrip(" .!")
    for pattern, wording in _PATTERNS:
        match = re.fullmatch(pattern, words)
        if match is None:
            continue
        found = match.groupdict()
        thing = _kind(found.get("thing") or found["two"], catalogue.THINGS, "thing", task)
        if "lamp" in found:
            return Aim(aims.LIGHT, thing, _kind(found["lamp"], catalogue.LAMPS, "lamp", task)), wording
        place = _kind(found["place"], catalogue.HOLDS, "receptacle", task)
        task_type = aims.TWO if "two" in found else aims.SIMPLE
        if "verb" in found:
            verb = _TREATMENT[found["verb"]]
            task_type = f"pick_{verb}_then_place_in_recep"
            if thing not in catalogue.TREATABLE[verb]:
                raise _impossible(task, f"{thing} can't be made {aims.RESULTS[verb][0]}", catalogue.TREATABLE[verb])
        if thing not in catalogue.HOLDS[place]:
            raise _impossible(task, f"{place} doesn't hold {thing}", catalogue.HOLDS[place])
        return Aim(task_type, thing, place), wording
    raise GameError(f"the task {task[:80]!r} can't be staged as a household game", hint=_UNDERSTOOD)


_PLURALS = (("ves", "fe"), ("ves", "f"), ("es", ""), ("s", ""))


def _kind(words: str, known: Collection[str], role: str, task: str) -> str:
    """Return the kind that words name, articles, number and plural aside."""
    words = re.sub(r"^(?:an? |some |the |any |one )+", "", words)
    words = re.sub(r" ?\d+$", "", words).replace(" ", "").replace("-", "")
    names = {kind.lower(): kind for kind in known}
    names.update({word.replace(" ", ""): kind for word, kind in _SYNONYMS.items() if kind in known})
    singulars = [words, *(words[: -len(end)] + single for end, single in _PLURALS if words.endswith(end))]
    for word in singulars:
        if word in names:
            return names[word]
    near = difflib.get_close_matches(words, list(names), n=3)
    there_are = f"there are {', '.join(sorted(kind.lower() for kind in known))}"
    raise GameError(
        f"in the task {task[:80]!r}, {words!r} is no {role} of the household",
        hint=f"did you mean {' or '.join(near)}?" if near else there_are,
    )


def _impossible(task: str, reason: str, possible: frozenset[str]) -> GameError:
    others = ", ".join(sorted(possible)) or "nothing"
    return GameError(f"the task {task[:80]!r} can't be done: {reason}", hint=f"possible are: {others}")


def _rooms(aim: Aim) -> list[str]:
    """Return the rooms that lack least of what the task needs."""

    def lacking(room: catalogue.Room) -> int:
        needed = [aim.place] if aim.task_type != aims.LIGHT else []
        needed += [catalogue.APPLIANCE[aim.treatment]] if aim.treatment else []
        away = sum(kind not in room.furniture for kind in needed) + (aim.thing not in room.things)
        unlit = aim.task_type == aims.LIGHT and not {"Desk", "TVStand"} & set(room.furniture)
        return away + unlit

    least = min(lacking(room) for room in catalogue.ROOMS.values())
    return [name for name, room in catalogue.ROOMS.items() if lacking(room) == least]


def plays(knowledge: ActionKnowledge) -> bool:
    """Whether a household can be played with `knowledge`: it goes by that name, and has no slots that no game binds."""
    return knowledge.name == KNOWLEDGE and knowledge.slots <= _slots()


@cache
def _slots() -> frozenset[str]:
    return ActionKnowledge.from_lark(KNOWLEDGE).slots
