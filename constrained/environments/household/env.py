"""The household as a text environment: actions in, observations out, slots in view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from constrained.environments.base import IN_ON, Binding
from constrained.environments.household import observations
from constrained.environments.household.game import Game
from constrained.environments.household.generate import prior_game
from constrained.environments.household.observations import GO, kind_of, listing_order
from constrained.environments.household.task_parser import parse_task
from constrained.environments.household.task_spec import UNKNOWN, household
from constrained.environments.memory import WorldMemory
from constrained.errors import GameError
from constrained.knowledge import ActionKnowledge

KNOWLEDGE = "household"
"""The shipped action knowledge of these games."""


def is_household(knowledge: ActionKnowledge) -> bool:
    """Whether a household can be played with this knowledge: it has the name, and only slots that games bind."""
    return knowledge.name == KNOWLEDGE and knowledge.slots <= _slots()


@cache
def _slots() -> frozenset[str]:
    return ActionKnowledge.from_lark(KNOWLEDGE).slots


class HouseholdTexts:
    """What the texts of a household game tell, whichever engine wrote them.

    Attributes
    ----------
    task : str
    done : bool
    """

    task: str
    done: bool
    # Actions that move no object: what they show is still true when the game starts anew.
    exploring = ("goto", "open", "look", "examine")

    def outcome(self) -> dict[str, float]:
        """Return whether the goal has been reached."""
        return {"success": float(self.done)}

    def form(self, knowledge: ActionKnowledge) -> ActionKnowledge:
        """Return the household's actions at any time, with any receptacle of the room and any object shown so far."""
        return ActionKnowledge.from_lark(f"{KNOWLEDGE}_form") if is_household(knowledge) else knowledge

    def memory(self, first_observation: str) -> WorldMemory:
        """Return a memory that begins with the first observation."""
        return WorldMemory(household(), first_observation)

    def prior(self, first_observation: str) -> HouseholdEnv:
        """Return the room of the first observation with what the task needs wherever such things are kept."""
        return HouseholdEnv(prior_game(first_observation))

    def triples(self, observation: str) -> list[tuple[str, str, str]]:
        """Return what an observation says: what is where ("nothing" too), and what can be opened."""
        told = list(household().told_in(observation))
        found = [(fact[1], IN_ON, fact[2]) for fact in told if fact[0] == "in"]
        return found + [(fact[1], "can be", "opened") for fact in told if fact[0] == "closed"]

    def entities(self, names: Iterable[str]) -> list[str]:
        """Return the names that the task is about: first the objects wanted, then the lamp or receptacle for them.

        Of a task in other words than the game's own, these are all names whose kind is a word of it.
        """
        spec, names = parse_task(self.task), list(names)
        kinds = re.findall(r"[a-z]+", self.task.lower()) if spec == UNKNOWN else [spec.object_kind, spec.destination]
        return [name for kind in dict.fromkeys(kinds) for name in names if kind_of(name) == kind]


class HouseholdEnv(HouseholdTexts):
    """Play a household game.

    Parameters
    ----------
    game : Game
    show_arrival : bool, optional
        Begin the answer to a move with "You arrive at loc N. ", as the original
        program does; the published transcripts leave it out, and so does the
        default.

    Attributes
    ----------
    task : str
        The task sentence.
    had_effect : bool
        Whether the last action was possible; if not, it was answered
        "Nothing happens." and changed nothing.
    standing_at : str or None
        The receptacle that the last successful "go to" named.
    done : bool
        Whether the goal has been reached.
    truth : WorldState
        The facts as they are now, which a player doesn't see.
    """

    def __init__(self, game: Game, *, show_arrival: bool = False):
        self.game = game
        self.task = game.task
        self._show_arrival = show_arrival
        self.reset()

    def reset(self) -> str:
        """Put everything back and return the room's description and the task."""
        self.truth = self.game.start
        self.standing_at: str | None = None
        self.had_effect = True
        self.done = False
        return observations.introduction(self.game.receptacles, self.task)

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; a command that isn't possible is answered "Nothing happens."

        Returns
        -------
        observation : str
        reward : float
            1.0 on the step that reaches the goal, else 0.0.
        done : bool
            Whether the goal has been reached.

        Raises
        ------
        GameError
            When the game is over.
        """
        if self.done:
            raise GameError("the game is over: its goal was reached", hint="call reset() to play it again")
        action = action.strip()
        self.had_effect = action in self.truth.actions
        if not self.had_effect:
            return observations.NOTHING_HAPPENS, 0.0, False
        ground = self.truth.actions[action][0]
        self.truth = self.truth.after(action)
        answer = self.game.answers.to(ground, self.truth.state)
        if action.startswith(GO):
            self.standing_at = action.removeprefix(GO)
            if self._show_arrival:
                [(_, _, place)] = self.truth.state.of("atlocation")
                answer = f"You arrive at {place}. {answer}"
        self.done = self.truth.reached_goal
        return answer, float(self.done), self.done

    def view(self) -> dict[str, Binding]:
        """Return what each slot of ``grammars/household.lark`` may be bound to now."""
        task, state = self.truth.task, self.truth.state
        takeable: dict[str, list[str]] = {}
        empty_hand = state.changed(deleted=state.of("holdsany"))
        for _, _, thing, receptacle in task.schemas["take"].query.answers(empty_hand):
            takeable.setdefault(receptacle, []).append(thing)
        return slots(self.admissible(), self.game.receptacles, takeable, self.standing_at)

    def admissible(self) -> list[str]:
        """Return every command that would have an effect now, and no other."""
        return sorted(self.truth.actions)


def slots(
    admissible: Sequence[str],
    receptacles: Sequence[str],
    takeable: Mapping[str, Sequence[str]],
    standing_at: str | None,
) -> dict[str, Binding]:
    """Return the values of the slots of ``grammars/household.lark``, for any engine that lists its admissible commands.

    Parameters
    ----------
    admissible : sequence of str
        The admissible commands.
    receptacles : sequence of str
        All there are, in the order of the first observation.
    takeable : mapping of str to sequence of str
        What could be taken with an empty hand, by receptacle.
    standing_at : str or None
        The receptacle that the last successful "go to" named. Slots that depend
        on where the player stands are mappings with this one key.

    Returns
    -------
    dict
        A slot without values is an empty mapping or left out.
    """

    def things(verb: str, last: bool = False) -> list[str]:
        """The first or the last name in the commands with a verb, receptacles before objects."""
        commands = (command.removeprefix(f"{verb} ") for command in admissible if command.startswith(f"{verb} "))
        found = (re.split(" (?:in/on|with) ", command)[-1 if last else 0] for command in commands)
        return sorted(found, key=lambda n: (0, order[n]) if n in order else (1, listing_order(n)))

    order = {name: number for number, name in enumerate(receptacles)}
    examinable = things("examine")
    here = {
        "REACH": [name for name in examinable if name in order],
        "CLOSED": things("open"),
        "OPENED": things("close"),
        "EXAMINABLE": examinable,
        "LAMP": things("use"),
        "FITS": things("put", last=True),
        "SLICEABLE": things("slice"),
        "CLEANER": things("clean", last=True),
        "HEATER": things("heat", last=True),
        "COOLER": things("cool", last=True),
    }
    everywhere = {"RECEPTACLE": things("go to"), "HELD": [name for name in examinable if name not in order]}
    return {
        "OBJECT": {r: sorted(takeable[r], key=listing_order) for r in receptacles if takeable.get(r)},
        **{slot: {standing_at: names} if standing_at is not None and names else {} for slot, names in here.items()},
        **{slot: names for slot, names in everywhere.items() if names},
    }
