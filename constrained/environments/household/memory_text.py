"""A household game's memory in a few short lines, as prompts have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrained.environments.household.text import kind_of, number_of

if TYPE_CHECKING:  # it offers these functions as its own
    from constrained.environments.household.memory import Memory

SHOWN_NUMBERS = 3  # of a receptacle type not looked into yet
SHOWN_PLACES = 4  # of things seen elsewhere


def text(memory: Memory) -> str:
    """The memory as a prompt: a line a fact, 40 to 90 tokens.

    Long lists are cut, with ``+n`` for the rest, so the length is bounded
    whatever the room. ``?`` marks a receptacle whose contents are unknown.
    """
    lines = _facts(memory)
    lines.append(f"Last: {memory.last or 'none'}{'' if memory.had_effect else ', no effect'}")
    return "\n".join(lines)


def situation(memory: Memory) -> str:
    """The facts without how one came to know them: equal where nothing has changed."""
    return "\n".join(_facts(memory))


def _facts(memory: Memory) -> list[str]:
    lines = [
        f"Task: {memory.goal.sentence() if memory.goal.kind else memory.task}",
        f"Hold: {_hand(memory)}",
        f"At: {'; '.join(_receptacle(memory, name) for name in memory.here()) or 'start'}",
        f"Seen: {_elsewhere(memory)}",
        f"Goal: {_goals(memory)}",
    ]
    done = memory.done()
    if done:
        lines.append("Done: " + ", ".join(f"{name} at {place}" for name, place in done.items()))
    lines.append(f"Unseen: {_unlooked(memory)}")
    return lines


def _matters(memory: Memory, name: str) -> bool:
    return kind_of(name) in (memory.goal.kind, memory.goal.lamp)


def _hand(memory: Memory) -> str:
    if not memory.held:
        return "none"
    parts = [memory.held, *sorted(memory.states.get(memory.held, set()))]
    if kind_of(memory.held) == memory.goal.kind:
        parts.append("ready" if memory.ready(memory.held) else f"not {memory.goal.state}")
    elif memory.goal.kind:
        parts.append(f"not wanted, from {memory.origin}" if memory.origin else "not wanted")
    return ", ".join(parts)


def _receptacle(memory: Memory, name: str) -> str:
    if memory.shut.get(name):
        return f"{name} closed"
    if name not in memory.contents:
        return f"{name} ?"
    done = memory.done()
    listed = [thing for thing in memory.contents[name] if thing not in done]
    shown = [thing for thing in listed if _matters(memory, thing)][:SHOWN_PLACES]
    rest = len(listed) - len(shown)
    return f"{name}: {', '.join(shown) or 'none'}{f' +{rest}' if rest else ''}"


def _elsewhere(memory: Memory) -> str:
    here, done = memory.here(), memory.done()
    seen = [
        f"{name} at {place}"
        for name, place in memory.find(memory.goal.kind).items()
        if name not in done and (place not in here or memory.shut.get(place))
    ]
    rest = len(seen) - SHOWN_PLACES
    return (", ".join(seen[:SHOWN_PLACES]) or "none") + (f" +{rest}" if rest > 0 else "")


def _goals(memory: Memory) -> str:
    here = memory.here()
    lamp = memory.lamp()
    if lamp:
        return f"{lamp[0]} at {lamp[1]}{' here' if lamp[1] in here else ''}"
    places = [memory.goal.lamp or memory.destination() or memory.goal.place, memory.tool()]
    return ", ".join(f"{place}{' here' if place in here else ''}" for place in places if place) or "none"


def _unlooked(memory: Memory) -> str:
    groups: dict[str, list[str]] = {}
    for name in memory.unseen():
        groups.setdefault(kind_of(name), []).append(str(number_of(name)))
    shown = []
    for kind, numbers in groups.items():
        rest = len(numbers) - SHOWN_NUMBERS
        shown.append(" ".join([kind, *numbers[:SHOWN_NUMBERS], *([f"+{rest}"] if rest > 0 else [])]))
    return ", ".join(shown) or "none"
