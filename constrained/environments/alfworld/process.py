"""The child process that holds ALFWorld's original engine."""

from __future__ import annotations

import importlib.util

from constrained.errors import GameError, install_hint
from constrained.subprocesses import ChildError, SubprocessError, Worker

PACKAGES = ("alfworld", "textworld", "fast_downward")
ANSWER_SECONDS = 300.0
"""Time limit for one answer of the engine. On an idle core a game opens in 1 to 3 seconds, a step takes 0.1."""


def check_installed() -> None:
    """Raise GameError, which says what to install, if the engine isn't installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise GameError(
            f"the original ALFWorld engine isn't installed: no {', '.join(missing)}",
            hint=f"{install_hint('alfworld')} (it compiles a planner for about three minutes); "
            "or play the same games without it: they are the environment `alfworld`",
        )


class EngineProcess:
    """The original engine with one game; its process is started by the first request.

    `name`: the game's, for messages. `answer_seconds`: time limit for one answer; the process is killed when it is
    passed.
    """

    def __init__(self, name: str, answer_seconds: float):
        self.name, self.answer_seconds = name, answer_seconds
        self.process = Worker("constrained.environments.alfworld.engine")

    def ask(self, *request: str) -> dict:
        """Send one request and return its answer.

        Raises GameError: the engine isn't installed, refuses the request, dies or takes too long.
        """
        if not self.process.running:
            check_installed()
        try:
            return self.process.ask(request, self.answer_seconds)
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
