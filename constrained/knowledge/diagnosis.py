"""Where a text stops fitting, and what could have come there."""

from __future__ import annotations

from collections.abc import Iterable

from constrained.automaton.automaton import State
from constrained.automaton.explain import expected


def longest_prefix(state: State | None, data: bytes) -> tuple[State | None, int]:
    """The state after the longest prefix of `data` that can be read, and the prefix's length in bytes."""
    for count, byte in enumerate(data):
        after = state.step(byte) if state else None
        if after is None:
            return state, count
        state = after
    return state, len(data)


def diagnose(state: State | None, data: bytes, actions: Iterable[str], lenient: State | None = None) -> str:
    """Say why `data`, read from `state`, is no action.

    Parameters
    ----------
    state : State or None
        None: there is no action now.
    actions : iterable of str
        The actions that are named where not even the first byte fits.
    lenient : State, optional
        Admits more than `state`: an argument that has no value now may be left out.
    """
    state, length = longest_prefix(state, data)
    _, lenient_length = longest_prefix(lenient, data)
    if not max(length, lenient_length):
        return f"no admitted action begins like this; the actions are {', '.join(actions)}"
    known = data[: max(length, lenient_length)].decode("utf-8", "ignore")
    if lenient_length > length or state is None:
        return f"stops fitting after {known!r}: nothing is there now that could stand here"
    return f"stops fitting after {known!r}, expected {expected(state) or 'nothing more'}"
