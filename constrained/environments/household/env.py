"""The household as a text environment: actions in, observations out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from constrained.environments.base import IN_ON, Binding
from constrained.environments.household import observations
from constrained.environments.household.game import Game
from constrained.environments.household.generate import prior_game
from constrained.environments.household.observations import GO
from constrained.environments.household.task_parser import parse_task
from constrained.environments.household.task_spec import UNKNOWN, household
from constrained.environments.memory import WorldMemory
from constrained.errors import GameError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.commands import slot_values
from constrained.knowledge.world.world import kind_of

KNOWLEDGE = "household"
"""The shipped action knowledge of these games."""


def is_household(knowledge: ActionKnowledge) -> bool:
    """Whether a household can be played with this knowledge: it has the name, and only slots that games bind."""
    return knowledge.name == KNOWLEDGE and knowledge.slots <= _knowledge().slots


@cache
def _knowledge() -> ActionKnowledge:
    return ActionKnowledge.from_lark(KNOWLEDGE)


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
        if self._show_arrival and action.startswith(GO):
            [(_, _, place)] = self.truth.state.of("atlocation")
            answer = f"You arrive at {place}. {answer}"
        self.done = self.truth.reached_goal
        return answer, float(self.done), self.done

    def admissible(self) -> list[str]:
        """Return every command that would have an effect now, and no other."""
        return sorted(self.truth.actions)

    def view(self) -> dict[str, Binding]:
        """Return what each slot of ``grammars/household.lark`` may be bound to now; an episode asks for commands alone.

        Slots that depend on where the player stands have a key for each receptacle within reach: whichever of them was
        named last, the values are the same.
        """
        commands = self.admissible()
        held = [thing for _, _, thing in self.truth.state.of("holds")]
        found: dict[str, Any] = {slot: {} for slot in _knowledge().slots}
        for here in [name for name in self.game.receptacles if f"{GO}{name}" not in commands] or [""]:
            path = _knowledge()
            for action in [*([f"{GO}{here}"] if here else ()), *(f"take {thing} from {here}" for thing in held)]:
                path = path.bind_view([action]).after(action)
            for slot, values in slot_values(path.grammar, commands).items():
                found[slot] = found[slot] | values if isinstance(values, Mapping) else values
        return found
