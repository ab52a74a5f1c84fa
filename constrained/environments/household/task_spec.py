"""Task specs of the household: six task types, each with two wordings and a goal in PDDL; and the parser of sentences.

The types, wordings and goals are ALFWorld's (Shridhar et al., 2021, table 1; ``alfred.pddl``). All wordings are
understood, with or without articles and the full stop, and with the usual synonyms of verbs ("wash", "chill").
`parse_task` takes the kinds of things as they are written, for a player who knows only the text; `resolve_task` looks
them up among the known kinds, with plurals and synonyms ("couch"), to make a game.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from constrained.environments.household import commonsense
from constrained.environments.household.game import household_world
from constrained.environments.world import shipped_world
from constrained.errors import GameError
from constrained.knowledge.world import World
from constrained.knowledge.world.world import TaskGoal, filled
from constrained.planning.model import Condition, literals_in

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


class Treatment(NamedTuple):
    """Cleaning, heating or cooling an object with an appliance, from ``grammars/household_game.lark``.

    Attributes
    ----------
    verb, state : str
        The action and the state that it leads to: "heat", "hot".
    fact, trait : str
        The predicates of that state ("ishot"), and of objects that can get it ("heatable").
    appliance : str
        The kind of receptacle that does it ("Microwave").
    """

    verb: str
    state: str
    fact: str
    trait: str
    appliance: str


def _treatments() -> Iterator[Treatment]:
    domain = household_world().domain
    for action in domain.actions:
        needs = {literal.predicate: literal for literal in literals_in(action.precondition)}
        made = next((effect.literal.predicate for effect in action.effects if effect.literal.positive), "")
        if "holds" in needs and "receptacletype" in needs and made.startswith("is"):
            trait = next(predicate for predicate in needs if predicate.endswith("able"))
            kind = domain.spell(needs["receptacletype"].terms[1]).removesuffix("Type")
            yield Treatment(action.name, made.removeprefix("is"), made, trait, kind)


TREATMENTS = {treatment.verb: treatment for treatment in _treatments()}
SIMPLE = "pick_and_place_simple"
LIGHT = "look_at_obj_in_light"
TWO = "pick_two_obj_and_place"
TREATED = {f"pick_{verb}_then_place_in_recep": treatment for verb, treatment in TREATMENTS.items()}
TASK_TYPES = (SIMPLE, LIGHT, *TREATED, TWO)


@dataclass(frozen=True)
class TaskSpec:
    """What a task asks for.

    All kinds are spelled as in PDDL ("CoffeeMachine"), or all as in the game's names ("coffeemachine").

    Attributes
    ----------
    task_type : str
        One of `TASK_TYPES`; empty in `UNKNOWN`.
    object_kind : str
        The kind of the object to move or examine.
    destination : str
        The kind of the receptacle to put it in; for look_at_obj_in_light the kind of lamp.
    """

    task_type: str
    object_kind: str
    destination: str

    @property
    def treatment(self) -> Treatment | None:
        """The treatment that the object needs, if any."""
        return TREATED.get(self.task_type)

    @property
    def state(self) -> str:
        """The state that the object must be in: "clean", "hot", "cool", or empty if the task asks for none."""
        return self.treatment.state if self.treatment else ""

    @property
    def count(self) -> int:
        """The number of objects to put in the receptacle."""
        return 2 if self.task_type == TWO else 1

    def sentences(self) -> tuple[str, str]:
        """The two wordings of the task."""
        goal = next(goal for goal in player_world().goals if type_of(goal) == self.task_type)
        kind, end = self.object_kind.lower(), self.destination.lower()
        words = {"K": [kind], "P": [end], "L": [end]}
        first, second = (f"{pattern.write(words)}." for pattern in goal.patterns[:2])
        return first, second

    def goal(self) -> Condition:
        """The goal in the terms of ``grammars/household_game.lark``."""
        goal = household_world().goal_of(self.sentences()[0])
        assert goal is not None  # the file has each first wording
        return filled(goal.goal.condition, {}, {hole: f"{kind}type" for hole, kind in goal.words.items()})


UNKNOWN = TaskSpec("", "", "")
"""The spec of a task that isn't understood."""


def player_world() -> World:
    """The world of ``grammars/household.lark``: what a player knows of things, actions, answers and tasks."""
    return shipped_world("household")


def type_of(goal: TaskGoal) -> str:
    """The task type of a goal of ``grammars/household.lark``."""
    predicates = [literal.predicate for literal in literals_in(goal.condition)]
    if "lit" in predicates:
        return LIGHT
    treated = (kind for kind, treatment in TREATED.items() if treatment.state in predicates)
    return TWO if predicates.count("in") == 2 else next(treated, SIMPLE)


def parse_task(task: str) -> TaskSpec:
    """The spec of a sentence, with kinds as they are written; `UNKNOWN` if it isn't understood."""
    spec, _ = _parse(task)
    kinds = [_ARTICLES.sub("", words).replace(" ", "") for words in (spec.object_kind, spec.destination)]
    return TaskSpec(spec.task_type, *kinds) if all(re.fullmatch("[a-z]+", kind) for kind in kinds) else UNKNOWN


def resolve_task(task: str) -> tuple[TaskSpec, int]:
    """The spec of a sentence, with known kinds in PDDL's spelling, and the index of its wording.

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
    # The error names the first problem: an unknown object, then an unknown destination, then an impossible task.
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
    """A spec with the sentence's own words for kinds, and the index of its wording."""
    goal = player_world().goal_of(task[:MAX_CHARACTERS].lower().removeprefix("your task is to:"))
    if goal is None:
        return UNKNOWN, 0
    words = goal.words
    return TaskSpec(type_of(goal.goal), words["k"], words.get("p") or words["l"]), goal.pattern % 2


def _known_kind(words: str, known: Collection[str], role: str, task: str) -> str:
    """The known kind that words name, ignoring article, number and plural."""
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
