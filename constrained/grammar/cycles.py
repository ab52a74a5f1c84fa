"""Strongly connected components (Tarjan, 1972): names that lead to each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The components of a graph, each one before those that lead to it.

    Parameters
    ----------
    edges : mapping of str to iterable of str
        Name -> the names it leads to; those that are no key themselves are left out.
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: list[str] = []
    waiting: set[str] = set()
    out: list[list[str]] = []
    for root in edges:
        if root in order:
            continue
        work = [(root, iter(edges[root]))]
        order[root] = lowest[root] = len(order)
        open_names.append(root)
        waiting.add(root)
        while work:
            name, rest = work[-1]
            other = next((o for o in rest if o in edges and (o not in order or o in waiting)), None)
            if other is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    found = []
                    while not found or found[-1] != name:
                        found.append(open_names.pop())
                    waiting.difference_update(found)
                    out.append(found[::-1])
            elif other in order:
                lowest[name] = min(lowest[name], order[other])
            else:
                order[other] = lowest[other] = len(order)
                open_names.append(other)
                waiting.add(other)
                work.append((other, iter(edges[other])))
    return out


def in_circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The components whose names come round to themselves."""
    return [found for found in components(edges) if len(found) > 1 or found[0] in edges[found[0]]]


def circle(first: str, edges: Mapping[str, Iterable[str]]) -> list[str]:
    """The names on a shortest way from `first` back to itself; `first` alone if there is none."""
    before: dict[str, str] = {}
    work = [first]
    for top in work:
        for other in edges.get(top, ()):
            if other == first:
                path = [top]
                while path[-1] != first:
                    path.append(before[path[-1]])
                return path[::-1]
            if other not in before:
                before[other] = top
                work.append(other)
    return [first]
