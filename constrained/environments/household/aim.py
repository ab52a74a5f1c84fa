"""A task's aim: what is to be done with which kind of thing, as sentence and as goal.

Six kinds of tasks in twelve wordings, those of ALFWorld (Shridhar et al., 2021,
table 1); the goals are formulas of the same planning domain.
"""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import GameError
from constrained.knowledge.pddl.model import Formula

SIMPLE = "pick_and_place_simple"
LIGHT = "look_at_obj_in_light"
TWO = "pick_two_obj_and_place"
TREATMENTS = {f"pick_{verb}_then_place_in_recep": verb for verb in ("clean", "heat", "cool")}
TASK_TYPES = (SIMPLE, LIGHT, *TREATMENTS, TWO)

# Treatment: the word for its result, the fact, the trait it needs.
RESULTS = {
    "clean": ("clean", "isClean", "cleanable"),
    "heat": ("hot", "isHot", "heatable"),
    "cool": ("cool", "isCool", "coolable"),
}


@dataclass(frozen=True)
class Aim:
    """What a task asks for.

    Attributes
    ----------
    task_type : str
        One of `TASK_TYPES`.
    thing : str
        Kind of the object, as "Mug".
    place : str
        Kind of the receptacle it must end in, as "CoffeeMachine"; for
        look_at_obj_in_light the kind of lamp.
    """

    task_type: str
    thing: str
    place: str

    @property
    def treatment(self) -> str | None:
        """What must be done to the object first: clean, heat, cool or nothing."""
        return TREATMENTS.get(self.task_type)

    @property
    def count(self) -> int:
        """How many objects must end in the receptacle; for a lamp, be held."""
        return 2 if self.task_type == TWO else 1

    def sentences(self) -> tuple[str, str]:
        """Return the two wordings of the task."""
        thing, place = self.thing.lower(), self.place.lower()
        if self.task_type == LIGHT:
            return f"look at {thing} under the {place}.", f"examine the {thing} with the {place}."
        if self.task_type == TWO:
            return f"put two {thing} in {place}.", f"find two {thing} and put them in {place}."
        if self.treatment is None:
            return f"put a {thing} in {place}.", f"put some {thing} on {place}."
        result = RESULTS[self.treatment][0]
        return f"put a {result} {thing} in {place}.", f"{self.treatment} some {thing} and put it in {place}."

    def goal(self) -> Formula:
        """Return the task's goal in PDDL."""
        thing, place = f"{self.thing}Type", f"{self.place}Type"
        if self.task_type == LIGHT:
            lit = (
                ("objectType", "?ot", place), ("toggleable", "?ot"), ("isToggled", "?ot"),
                ("receptacleAtLocation", "?r", "?l"), ("atLocation", "?a", "?l"), ("inReceptacle", "?ot", "?r"),
            )  # fmt: skip
            return (
                "and",
                _exists("?ot - object ?r - receptacle ?a - agent ?l - location", *lit),
                _exists("?o - object ?a - agent", ("objectType", "?o", thing), ("holds", "?a", "?o")),
            )
        inside = tuple(
            (("objectType", o, thing), ("receptacleType", "?r", place), ("inReceptacle", o, "?r"))
            for o in ("?o1", "?o2")
        )
        if self.task_type == TWO:
            other = _exists("?o2 - object", ("not", ("=", "?o1", "?o2")), *inside[1])
            return _exists("?r - receptacle ?o1 - object", *inside[0], other)
        treated: tuple[Formula, ...] = ()
        if self.treatment is not None:
            _, fact, trait = RESULTS[self.treatment]
            treated = ((trait, "?o1"), (fact, "?o1"))
        return _exists("?r - receptacle ?o1 - object", *treated, *inside[0])


def read_goal(goal: Formula) -> Aim:
    """Return the aim behind a goal of one of the six kinds.

    Raises
    ------
    GameError
        For a goal of another kind.
    """
    facts = list(_facts(goal))
    kinds = {fact[1]: str(fact[2])[: -len("Type")] for fact in facts if fact[0] == "objectType"}
    places = {str(fact[2])[: -len("Type")] for fact in facts if fact[0] == "receptacleType"}
    lamps = {kinds.pop(fact[1], None) for fact in facts if fact[0] == "isToggled"}
    asked = {fact[0] for fact in facts}
    treatments = [verb for verb, (_, fact, _) in RESULTS.items() if fact in asked]
    things = set(kinds.values())
    ends = lamps if lamps else places
    plain = (len(things), len(ends)) == (1, 1) and None not in ends and len(treatments) <= 1
    if plain and ("holds" if lamps else "inReceptacle") in asked:
        if lamps:
            task_type = LIGHT
        elif len(kinds) == 2 and not treatments:
            task_type = TWO
        elif treatments:
            task_type = f"pick_{treatments[0]}_then_place_in_recep"
        else:
            task_type = SIMPLE
        return Aim(task_type, things.pop(), str(ends.pop()))
    raise GameError(
        f"the goal {goal} is none of the six kinds of household tasks",
        hint=f"the kinds are {', '.join(TASK_TYPES)}",
    )


def _facts(formula: Formula) -> list[Formula]:
    """Return the facts in a goal, whatever connectives hold them together."""
    if formula[:1] in (("and",), ("not",), ("or",)):
        return [fact for part in formula[1:] if isinstance(part, tuple) for fact in _facts(part)]
    if formula[:1] in (("exists",), ("forall",)):
        return [fact for part in formula[2:] if isinstance(part, tuple) for fact in _facts(part)]
    return [formula] if len(formula) > 1 else []


def _exists(variables: str, *conditions: Formula) -> Formula:
    return ("exists", tuple(variables.split()), ("and", *conditions))
