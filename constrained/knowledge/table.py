"""The action graph as lines of text: what may follow what, actions alike on one line."""

from __future__ import annotations

from textwrap import TextWrapper

from constrained.knowledge.graph import START

_FEW = 3
"""Up to so many actions left out are named as exceptions."""


def graph_table(knowledge, width: int = 100) -> str:
    """A line a group of actions that the same ones follow; wrapped to `width` characters.

    Where the file names places (rules that choose between actions), a line tells the actions
    that lead from one to another.
    """
    places = knowledge.graph.places()
    rows = _of_places(places) if places else _of_actions(knowledge)
    head = f"{knowledge.name}: {len(knowledge.actions)} actions" + (
        f", {len(knowledge.slots)} slots" if knowledge.slots else ""
    )
    column = min(max(len(left) for left, _ in rows) + 2, 32)
    lines = [head, ""]
    for left, right in rows:
        wrapper = TextWrapper(width, initial_indent=" " * column, subsequent_indent=" " * (column + 2),
                              break_on_hyphens=False, break_long_words=False)  # fmt: skip
        wrapped = wrapper.wrap(right)
        if len(left) + 2 <= column:
            wrapped[0] = left.ljust(column) + wrapped[0].lstrip()
            lines += wrapped
        else:
            wrapper.initial_indent, wrapper.subsequent_indent = "", "  "
            lines += [*wrapper.wrap(left), *wrapped]
    return "\n".join(lines) + "\n"


def _of_actions(knowledge) -> list[tuple[str, str]]:
    graph = knowledge.graph
    alike: dict[tuple, list[str]] = {}
    for name, after in graph.rules.items():
        alike.setdefault((name == START, frozenset(after), name in graph.may_end), []).append(name)
    return [(", ".join(names), "-> " + following(graph, names[0])) for names in alike.values()]


def following(graph, name: str) -> str:
    """What may follow an action, in words."""
    after, every = graph.rules[name], graph.actions
    missing = [action for action in every if action not in after]
    if len(missing) <= _FEW and len(after) > 2 * _FEW:
        words = "any action" + (f" but {', '.join(missing)}" if missing else "")
    else:
        words = ", ".join(after)
    ends = "the end" if name in graph.may_end else ""
    return ", or ".join(part for part in (words, ends) if part) or "nothing"


def _of_places(places: dict) -> list[tuple[str, str]]:
    from_: dict[str, list[str]] = {}
    for (source, target), actions in places.items():
        from_.setdefault(source, []).append(f"{', '.join(actions)} -> {target}")
    return [(source if i == 0 else "", way) for source, ways in from_.items() for i, way in enumerate(ways)]
