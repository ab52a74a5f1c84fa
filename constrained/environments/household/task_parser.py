"""Parse a task's sentence into a task spec.

All wordings of ALFWorld's tasks are understood, with or without articles and the full stop, and with the usual synonyms
of verbs ("wash", "chill"). `parse_task` takes the kinds of things as they are written, for a player who knows only the
text; `resolve_task` looks them up among the known kinds, with plurals and synonyms ("couch"), to make a game.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from constrained.environments.household import commonsense
from constrained.environments.household.task_spec import LIGHT, UNKNOWN, TaskSpec, player_world, type_of
from constrained.errors import GameError

MAX_CHARACTERS = 500
"""Most characters of a sentence that are read."""

_ARTICLES = re.compile(r"^(?:an? |some |the |any |one )+")
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
_PLURALS = (("ves", "fe"), ("ves", "f"), ("es", ""), ("s", ""))


def parse_task(task: str) -> TaskSpec:
    """Return the spec of a sentence, with kinds as they are written; `UNKNOWN` if it isn't understood."""
    spec, _ = _parse(task)
    kinds = [_ARTICLES.sub("", words).replace(" ", "") for words in (spec.object_kind, spec.destination)]
    return TaskSpec(spec.task_type, *kinds) if all(re.fullmatch("[a-z]+", kind) for kind in kinds) else UNKNOWN


def resolve_task(task: str) -> tuple[TaskSpec, int]:
    """Return the spec of a sentence, with known kinds in PDDL's spelling, and the index of its wording.

    The index is that of `TaskSpec.sentences`.

    Raises
    ------
    GameError
        The sentence, an object or a receptacle isn't understood, or the household's rules don't allow the task; the
        hint says what is possible.
    """
    spec, wording = _parse(task)
    if spec == UNKNOWN:
        words = {"K": ["mug"], "P": ["desk"], "L": ["desklamp"]}
        understood = (f'"{pattern.write(words)}."' for goal in player_world().goals for pattern in goal.patterns[:2])
        raise GameError(
            f"no household game can be made for the task {task[:80]!r}", hint=f"understood are {', '.join(understood)}"
        )
    kind = _known_kind(spec.object_kind, commonsense.OBJECTS, "thing", task)
    if spec.task_type == LIGHT:
        return TaskSpec(LIGHT, kind, _known_kind(spec.destination, commonsense.LAMPS, "lamp", task)), wording
    receptacle = _known_kind(spec.destination, commonsense.HOLDS, "receptacle", task)
    if spec.treatment is not None and spec.treatment.trait not in commonsense.TRAITS[kind]:
        treatable = {kind for kind, traits in commonsense.TRAITS.items() if spec.treatment.trait in traits}
        raise _impossible(task, f"{kind} can't be made {spec.state}", treatable)
    if kind not in commonsense.HOLDS[receptacle]:
        raise _impossible(task, f"{receptacle} doesn't hold {kind}", commonsense.HOLDS[receptacle])
    return TaskSpec(spec.task_type, kind, receptacle), wording


def _parse(task: str) -> tuple[TaskSpec, int]:
    """Return a spec with the sentence's own words for kinds, and the index of its wording."""
    goal = player_world().goal_of(task[:MAX_CHARACTERS].lower().removeprefix("your task is to:"))
    if goal is None:
        return UNKNOWN, 0
    words = goal.words
    return TaskSpec(type_of(goal.goal), words["k"], words.get("p") or words["l"]), goal.pattern % 2


def _known_kind(words: str, known: Collection[str], role: str, task: str) -> str:
    """Return the known kind that words name, ignoring article, number and plural."""
    words = _ARTICLES.sub("", words)
    words = re.sub(r" ?\d+$", "", words).replace(" ", "").replace("-", "")
    names = {kind.lower(): kind for kind in known}
    names.update({word.replace(" ", ""): kind for word, kind in _SYNONYMS.items() if kind in known})
    singulars = [words, *(words[: -len(end)] + single for end, single in _PLURALS if words.endswith(end))]
    for word in singulars:
        if word in names:
            return names[word]
    similar = difflib.get_close_matches(words, list(names), n=3)
    raise GameError(
        f"in the task {task[:80]!r}, {words!r} is no {role} of the household",
        hint=f"did you mean {' or '.join(similar)}?"
        if similar
        else f"there are {', '.join(sorted(map(str.lower, known)))}",
    )


def _impossible(task: str, reason: str, possible: Collection[str]) -> GameError:
    return GameError(
        f"the task {task[:80]!r} can't be done: {reason}",
        hint=f"possible are: {', '.join(sorted(possible)) or 'nothing'}",
    )
