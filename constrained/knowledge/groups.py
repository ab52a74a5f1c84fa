"""Actions that come after the same actions and before the same: in a picture one is as good as the other."""

from __future__ import annotations

from constrained.knowledge.graph import START, ActionGraph

Group = "tuple[str, ...]"


def groups(graph: ActionGraph) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Each group of actions -> the groups that may follow it; ("start",) is one of its own.

    An arrow between groups stands for one from every action of the first to every one of the
    second: none is lost or added.
    """
    before: dict[str, list[str]] = {name: [] for name in graph.rules}
    for name, after in graph.rules.items():
        for other in after:
            before[other].append(name)
    alike: dict[tuple, list[str]] = {}
    for name, after in graph.rules.items():
        key = name == START, frozenset(after), frozenset(before[name]), name in graph.may_end
        alike.setdefault(key, []).append(name)
    of = {name: tuple(names) for names in alike.values() for name in names}
    return {
        group: list(dict.fromkeys(of[other] for other in graph.rules[group[0]])) for group in dict.fromkeys(of.values())
    }
