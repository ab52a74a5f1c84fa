"""The child process for mathematics: an action that takes too much time or memory can be stopped there."""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from typing import Any

from constrained.errors import ActionError
from constrained.subprocesses import ChildError, Send, SubprocessError, Worker, serve

SECONDS = 5.0
"""Time limit of one action."""

MEMORY = 1 << 30
"""Memory limit in bytes, beyond what the libraries take (Linux)."""


class MathsWorker:
    """Carries out mathematical actions in a child process, which is replaced when it dies.

    `seconds`: time limit of one action.
    """

    def __init__(self, seconds: float = SECONDS):
        self.seconds = seconds
        self.process = Worker(__name__, MEMORY)

    def perform(self, *action: Any) -> list[tuple[object, str]]:
        """Call `constrained.environments.executor.mathematics.perform(*action)` in the child process.

        Raises ActionError: the action can't be carried out, or exceeds the time or memory limit.
        """
        try:
            return _decoded(self.process.ask(_encoded(action), self.seconds))
        except ChildError as error:
            raise ActionError(error.message, error.hint) from None
        except SubprocessError as error:
            if error.late:
                hint = "use smaller numbers or simpler steps"
                raise ActionError(f"it took longer than {self.seconds:g} seconds", hint) from None
            raise ActionError(
                "it took more memory than there is for it", f"use smaller numbers ({error.how})"
            ) from None


shared_worker = MathsWorker()
"""The worker of all executors that aren't given another."""


def main() -> None:
    """Serve actions; run in the child process."""
    from constrained.environments.executor import mathematics  # noqa: F401  sympy is imported before the clock starts

    serve(_handle)


def _handle(request: str, send: Send) -> None:
    from constrained.environments.executor.mathematics import perform

    try:
        send(_encoded(perform(*_decoded(request))))
    except (MemoryError, OverflowError):
        raise ActionError("it takes more memory than there is for it", "use smaller numbers") from None
    except (ActionError, RecursionError):
        raise
    except Exception as error:  # sympy raises many kinds of errors on input that it can't handle
        raise ActionError(
            f"it can't be done: {str(error)[:200] or type(error).__name__}", "use simpler steps"
        ) from None


def _encoded(data: Any) -> str:
    """Encode results as text: they are sympy objects, which JSON can't hold."""
    return b64encode(pickle.dumps(data)).decode()


def _decoded(text: str) -> Any:
    return pickle.loads(b64decode(text))
