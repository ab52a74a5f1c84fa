"""The slots of ``grammars/household.lark`` read off what the original engine lists as admissible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constrained.environments.base import Binding
from constrained.environments.household.text import kind_of, number_of

_TREATMENTS = {"clean": "CLEANER", "heat": "HEATER", "cool": "COOLER"}


def slots(
    admissible: Sequence[str],
    receptacles: Sequence[str],
    takeable: Mapping[str, Sequence[str]],
    place: str | None,
) -> dict[str, Binding]:
    """Return the slots' values, the same as the household's own `view` gives for the same moment.

    Parameters
    ----------
    admissible : sequence of str
        The engine's admissible commands.
    receptacles : sequence of str
        All there are, in the order of the first observation.
    takeable : mapping of str to sequence of str
        What could be taken with an empty hand, by receptacle.
    place : str or None
        The receptacle that the last successful "go to" named, the key of the slots that depend on it.
    """
    arguments: dict[str, list[str]] = {}
    for command in admissible:
        verb, _, rest = command.partition(" ")
        arguments.setdefault(verb, []).append(rest)
    there = receptacles.index
    examinable = sorted(arguments.get("examine", ()), key=lambda x: (x not in receptacles, x))
    reach = sorted((x for x in examinable if x in receptacles), key=there)
    held = [x for x in examinable if x not in receptacles]
    here = {
        "REACH": reach,
        "CLOSED": sorted(arguments.get("open", ()), key=there),
        "OPENED": sorted(arguments.get("close", ()), key=there),
        "EXAMINABLE": reach + held,
        "LAMP": sorted(arguments.get("use", ()), key=listed),
        "FITS": sorted((x.partition(" in/on ")[2] for x in arguments.get("put", ())), key=there),
        "SLICEABLE": sorted((x.partition(" with ")[0] for x in arguments.get("slice", ())), key=listed),
    }
    for verb, slot in _TREATMENTS.items():
        here[slot] = sorted((x.partition(" with ")[2] for x in arguments.get(verb, ())), key=there)
    found: dict[str, Binding] = {
        "OBJECT": {r: sorted(takeable[r], key=listed) for r in receptacles if takeable.get(r)},
        **{slot: {place: values} if place is not None and values else {} for slot, values in here.items()},
    }
    destinations = [x.removeprefix("to ") for x in arguments.get("go", ())]
    if destinations:
        found["RECEPTACLE"] = sorted(destinations, key=there)
    if held:
        found["HELD"] = held
    return found


def listed(name: str) -> tuple[str, int]:
    """The key by which the game lists things: by kind, then by falling number."""
    return kind_of(name), -number_of(name)
