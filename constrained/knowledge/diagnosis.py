"""Where a text stops fitting, in words."""

from __future__ import annotations

from constrained.automaton.automaton import State
from constrained.automaton.explain import expected


def fitting(state: State | None, data: bytes) -> tuple[State | None, int]:
    """The state after as much of `data` as fits, and how many bytes that is."""
    for at, byte in enumerate(data):
        after = state.step(byte) if state else None
        if after is None:
            return state, at
        state = after
    return state, len(data)


def stops_fitting(state: State | None, data: bytes, actions, lenient: State | None = None) -> str:
    """Where `data`, read from `state`, stops fitting, and what could have come there.

    `lenient` admits more than `state`: an argument that has no value now may be left out.
    """
    state, at = fitting(state, data)
    _, further = fitting(lenient, data)
    if not max(at, further):
        return f"no admitted action begins like this; the actions are {', '.join(actions)}"
    known = data[: max(at, further)].decode("utf-8", "ignore")
    if further > at:
        return f"stops fitting after {known!r}: nothing is there now that could stand here"
    return f"stops fitting after {known!r}, expected {expected(state) or 'nothing more'}"
