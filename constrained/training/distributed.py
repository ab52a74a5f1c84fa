"""Training in several processes: work that only the main process does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list

from constrained.errors import ConstrainedError

Result = TypeVar("Result")


def on_main_process(task: Callable[[], Result]) -> Result:
    """Run `task` in the main process only; every process waits for its result and returns it.

    Raises ConstrainedError in every process if `task` raised it.
    """
    state = PartialState()
    if state.num_processes == 1:
        return task()
    outcome: list[Any] = [None, None]
    if state.is_main_process:
        try:
            outcome[0] = task()
        except ConstrainedError as error:
            outcome[1] = error
    broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]
