"""ALFWorld's games played by its original engine (Shridhar et al., *ALFWorld*, 2021), as a text environment."""

from __future__ import annotations

import re
from pathlib import Path

from constrained.environments.alfworld.process import ANSWER_SECONDS, EngineProcess
from constrained.environments.alfworld.slots import slots
from constrained.environments.base import Binding
from constrained.environments.household.env import HouseholdTexts
from constrained.environments.household.game import read_content, read_game_file
from constrained.environments.household.memory import ROOM
from constrained.environments.household.text import NAME, NOTHING_HAPPENS
from constrained.errors import GameError

_ARRIVAL = re.compile(r"You arrive at [^.]*\. ")
# Games made by alfworld 0.4 say "move X to Y" for "put X in/on Y".
_MOVED = re.compile(rf"move ({NAME}) to ({NAME})")
_PUT = re.compile(rf"put ({NAME}) in/on ({NAME})")
_MOVE_ANSWER = re.compile(rf"You move the ({NAME}) to the ({NAME})\.")


class AlfworldEnv(HouseholdTexts):
    """Play one game file with the original engine, which runs in a process of its own.

    The observations are those of the published transcripts and of `HouseholdEnv`: an answer to
    a move begins without "You arrive at loc N.", and putting something down is written
    "put X in/on Y" also where the file's own grammar says "move X to Y", as files made by
    alfworld 0.4 do.

    Parameters
    ----------
    content : str or bytes
        Of a ``game.tw-pddl``.
    name : str, optional
        Of the game, for messages.
    show_arrival : bool, optional
        Leave that first sentence in, as the program itself does.
    answer_seconds : float, optional
        An engine that takes longer over one answer is ended.

    Attributes
    ----------
    task : str
        The task sentence.
    had_effect : bool
        Whether the last action was possible; if not, it was answered "Nothing happens."
    place : str or None
        The receptacle that the last successful "go to" named.
    done : bool
        Whether the goal has been reached.

    Raises
    ------
    GameError
        When the content isn't a whole game.
    """

    def __init__(
        self,
        content: str | bytes,
        name: str = "game",
        *,
        show_arrival: bool = False,
        answer_seconds: float = ANSWER_SECONDS,
    ):
        self.task = read_game_file(content, name).task
        self.name = name
        self._content = content if isinstance(content, str) else content.decode()
        self._show_arrival = show_arrival
        self._engine = EngineProcess(name, answer_seconds)
        self._moment: dict | None = None
        self._receptacles: list[str] = []
        self.place: str | None = None
        self.had_effect = True
        self.done = False

    @classmethod
    def from_file(cls, path: str | Path, **options) -> AlfworldEnv:
        """Open a ``game.tw-pddl`` file; the options are those of the class."""
        return cls(*read_content(path), **options)

    def reset(self) -> str:
        """Start the game anew, in a new process if the last one died, and return the room and the task.

        Raises
        ------
        GameError
            When the engine isn't installed, or can't play this game.
        """
        request = ("reset",) if self._engine.process.running and self._moment else ("open", self._content)
        self._moment = None
        self._moment = self._engine.ask(*request)
        self.place, self.had_effect, self.done = None, True, self._moment["won"]
        first = self._moment["text"]
        room = ROOM.search(first)
        self._receptacles = re.findall(NAME, room.group(1)) if room else []
        return first

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; see `HouseholdEnv.step`.

        Raises
        ------
        GameError
            When the game is over or wasn't begun, or the engine died over the action.
        """
        if self.done:
            raise GameError("the game is over: its goal was reached", hint="call reset() to play it again")
        action = action.strip()
        moved = _PUT.fullmatch(action) if self._says_move() else None
        self._moment = None  # until the engine has answered
        self._moment = self._engine.ask("step", f"move {moved[1]} to {moved[2]}" if moved else action)
        answer = _MOVE_ANSWER.sub(r"You put the \1 in/on the \2.", self._moment["text"])
        self.had_effect = answer != NOTHING_HAPPENS
        if not self.had_effect:
            return answer, 0.0, False
        if action.startswith("go to "):
            self.place = action.removeprefix("go to ")
            answer = answer if self._show_arrival else _ARRIVAL.sub("", answer, count=1)
        self.done = self._moment["won"]
        return answer, float(self.done), self.done

    def view(self) -> dict[str, Binding]:
        """Return what each slot of ``grammars/household.lark`` may be bound to now."""
        return slots(self.admissible(), self._receptacles, self._now()["takeable"], self.place)

    def admissible(self) -> list[str]:
        """Return every command that would have an effect now, as the engine lists them.

        The "help" of alfworld 0.4 is left out: it is about the program, not of the household.
        """
        commands = (_MOVED.sub(r"put \1 in/on \2", command) for command in self._now()["admissible"])
        return sorted(command for command in commands if command != "help")

    def close(self) -> None:
        """End the engine's process; safe to call twice."""
        self._moment = None
        self._engine.process.close()

    def _now(self) -> dict:
        if self._moment is None:
            raise GameError(f"{self.name} isn't under way", hint="call reset() first")
        return self._moment

    def _says_move(self) -> bool:
        return any(command.startswith("move ") for command in self._now()["admissible"])
