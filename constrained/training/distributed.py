"""Several processes that train together: what one decides, all do, and what one finds wrong, all say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list

from constrained.errors import ConstrainedError

Result = TypeVar("Result")


def agreed(task: Callable[[], Result]) -> Result:
    """What `task` gives in the first process, in all of them; they wait for it.

    Raises
    ------
    ConstrainedError
        What `task` raised, in all of them.
    """
    state = PartialState()
    if state.num_processes == 1:
        return task()
    outcome: list = [None, None]
    if state.is_main_process:
        try:
            outcome[0] = task()
        except ConstrainedError as error:
            outcome[1] = error
    broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]
