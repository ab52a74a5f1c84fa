"""ALFWorld's original engine (Shridhar et al., *ALFWorld*, 2021) as a text environment, and the suite of its games."""

from __future__ import annotations

import importlib.util
import re
from functools import partial
from itertools import islice

from constrained.environments.household.env import KNOWLEDGE, NAME, NOTHING_HAPPENS, HouseholdTexts
from constrained.environments.household.game import SPLITS, game_files, read_game_file
from constrained.environments.suite import Suite, Task, check_split
from constrained.errors import GameError, install_hint
from constrained.subprocesses import ChildError, SubprocessError, Worker

PACKAGES = ("alfworld", "textworld", "fast_downward")
ANSWER_SECONDS = 300.0
"""Time limit for one answer of the engine. On an idle core a game opens in 1 to 3 seconds, a step takes 0.1."""

# Games made by alfworld 0.4 say "move X to Y" for "put X in/on Y".
_MOVE = re.compile(rf"move ({NAME}) to ({NAME})")
_PUT = re.compile(rf"put ({NAME}) in/on ({NAME})")
_ARRIVAL = re.compile(r"You arrive at [^.]*\. ")
_MOVE_ANSWER = re.compile(rf"You move the ({NAME}) to the ({NAME})\.")


def check_installed() -> None:
    """Raise GameError, which says what to install, if the engine isn't installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise GameError(
            f"the original ALFWorld engine isn't installed: no {', '.join(missing)}",
            hint=f"{install_hint('alfworld')} (it compiles a planner for about three minutes); "
            "or play the same games without it: they are the environment `alfworld`",
        )


class AlfworldEnv(HouseholdTexts):
    """Play one game file with the original engine, which runs in a process of its own.

    The observations are those of the published transcripts and of `HouseholdEnv`: the answer to a move begins without
    "You arrive at loc N.", and putting something down is written "put X in/on Y" even if the file's own grammar says
    "move X to Y", as files made by alfworld 0.4 do.

    Parameters
    ----------
    content : str or bytes
        The content of a ``game.tw-pddl``.
    name : str, optional
        The game's name, for messages.
    answer_seconds : float, optional
        Time limit for one answer; an engine that takes longer is ended.

    Attributes
    ----------
    task : str
        The task sentence.
    had_effect : bool
        Whether the last action was possible; if not, it was answered "Nothing happens."
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
        answer_seconds: float = ANSWER_SECONDS,
    ):
        self.task, _ = read_game_file(content, name)
        self.name = name
        self._content = content if isinstance(content, str) else content.decode()
        self._answer_seconds = answer_seconds
        self._process = Worker("constrained.environments.alfworld.engine")
        self._state: dict | None = None  # the engine's last answer
        self.had_effect = True
        self.done = False

    def reset(self) -> str:
        """Start the game anew, in a new process if the last one died, and return the room and the task.

        Raises GameError: the engine isn't installed, or can't play this game.
        """
        request = ("reset",) if self._process.running and self._state else ("open", self._content)
        self._state = None
        self._state = self._ask(*request)
        self.had_effect, self.done = True, self._state["won"]
        return self._state["text"]

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; see `HouseholdEnv.step`.

        Raises GameError: the game is over or wasn't started, or the engine died over the action.
        """
        if self.done:
            raise GameError("the game is over: its goal was reached", hint="call reset() to play it again")
        action = action.strip()
        says_move = any(command.startswith("move ") for command in self._now()["admissible"])
        moved = _PUT.fullmatch(action) if says_move else None
        self._state = None  # stays so if the engine raises an error
        self._state = self._ask("step", f"move {moved[1]} to {moved[2]}" if moved else action)
        answer = _MOVE_ANSWER.sub(r"You put the \1 in/on the \2.", self._state["text"])
        self.had_effect = answer != NOTHING_HAPPENS
        if not self.had_effect:
            return answer, 0.0, False
        if action.startswith("go to "):
            answer = _ARRIVAL.sub("", answer, count=1)
        self.done = self._state["won"]
        return answer, float(self.done), self.done

    def admissible(self) -> list[str]:
        """Every command that would have an effect now, as the engine lists them.

        The "help" of alfworld 0.4 is left out: it is about the program, not the household.
        """
        commands = (_MOVE.sub(r"put \1 in/on \2", command) for command in self._now()["admissible"])
        return sorted(command for command in commands if command != "help")

    def close(self) -> None:
        """End the engine's process; safe to call twice."""
        self._state = None
        self._process.close()

    def _ask(self, *request: str) -> dict:
        """Ask the engine. Raises GameError: it isn't installed, refuses, dies or takes too long."""
        if not self._process.running:
            check_installed()
        try:
            return self._process.ask(request, self._answer_seconds)
        except ChildError as error:
            raise GameError(
                f"the ALFWorld engine refused to {request[0]} {self.name}: {error.message}",
                hint="the game file may be damaged, or made for another version of alfworld",
            ) from None
        except SubprocessError as error:
            raise GameError(
                f"the ALFWorld engine {error.how} over {request[0]!r} in {self.name}{error.last_words}",
                hint="reset() starts the game anew in a new process",
            ) from None

    def _now(self) -> dict:
        if self._state is None:
            raise GameError(f"{self.name} isn't under way", hint="call reset() first")
        return self._state


def original(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """The games of a split as a suite, sorted by name, each in an engine process of its own.

    Raises GameError, DataError: the engine isn't installed, there is no such split, or its games aren't there.
    """
    check_installed()
    split = check_split("alfworld-original", split, SPLITS)
    games = islice(game_files(split), limit)
    tasks = [Task(name, name.split("-", 1)[0], partial(AlfworldEnv, content, name)) for name, content in games]
    return Suite(f"alfworld-original/{split}", KNOWLEDGE, tasks)
