"""Action knowledge as text: the prompt that tells a model what the masks enforce, and a table of the action graph."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import TextWrapper

from constrained.knowledge.action_graph import START, ActionGraph

_PRINCIPLE = (
    "Plan one action at a time. Each action must be one that may follow the action before it, "
    "and must name only what is there. ActionPath lists the actions done so far; Thought weighs "
    "what may come next; Action is exactly one action."
)

_FEW = 3
"""Up to this many actions that may not follow are listed as exceptions."""


def prompt_text(graph: ActionGraph, comments: Mapping[str, str]) -> str:
    """Overview, rules, definitions and principle: the segments of KnowAgent's prompt (section 3.2.2)."""
    defined = [f"({i}) {comments.get(name) or name}" for i, name in enumerate(graph.actions, 1)]
    parts = [
        comments.get(START, ""),
        "What may follow what:\n" + "\n".join(_rule_lines(graph)),
        "The actions:\n" + "\n".join(defined),
        _PRINCIPLE,
    ]
    return "\n\n".join(part for part in parts if part)


def _rule_lines(graph: ActionGraph) -> list[str]:
    """A line for each action; a single line where any action may follow any other, which is quadratically shorter."""
    rules, ends = graph.rules, graph.may_end
    if len(graph.actions) > 1 and set(rules.values()) == {tuple(graph.actions)} and ends.issuperset(graph.actions):
        return ["  any action may come first, and after any other (or the plan ends)"]
    width = max(map(len, rules))
    return [
        f"  {name:<{width}} -> {', '.join(after) or 'nothing: the plan is over'}"
        + (" (or the plan ends)" if after and name in ends else "")
        for name, after in rules.items()
    ]


def graph_table(name: str, graph: ActionGraph, slots: int, width: int = 100) -> str:
    """The action graph as lines of text, wrapped to `width` characters.

    Actions with the same successors share a line. If the grammar is made of choice points (rules that only choose
    between actions), a line says which actions lead from one choice point to another.
    """
    points = graph.choice_points()
    rows = _choice_point_rows(points) if points else _action_rows(graph)
    head = f"{name}: {len(graph.actions)} actions" + (f", {slots} slots" if slots else "")
    column = min(max(len(left) for left, _ in rows) + 2, 32)
    lines = [head, ""]
    wrapper = TextWrapper(width, break_on_hyphens=False, break_long_words=False)
    for left, right in rows:
        beside = len(left) + 2 <= column
        if not beside:
            wrapper.initial_indent, wrapper.subsequent_indent = "", "  "
            lines += wrapper.wrap(left)
        wrapper.initial_indent = left.ljust(column) if beside else " " * column
        wrapper.subsequent_indent = " " * (column + 2)
        lines += wrapper.wrap(right)
    return "\n".join(lines) + "\n"


def _action_rows(graph: ActionGraph) -> list[tuple[str, str]]:
    alike: dict[tuple, list[str]] = {}
    for name, after in graph.rules.items():
        alike.setdefault((name == START, frozenset(after), name in graph.may_end), []).append(name)
    return [(", ".join(names), "-> " + successors(graph, names[0])) for names in alike.values()]


def successors(graph: ActionGraph, name: str) -> str:
    """The actions that may follow an action, in words."""
    after = graph.rules[name]
    missing = [action for action in graph.actions if action not in after]
    if len(missing) <= _FEW and len(after) > 2 * _FEW:
        words = "any action" + (f" but {', '.join(missing)}" if missing else "")
    else:
        words = ", ".join(after)
    ends = "the end" if name in graph.may_end else ""
    return ", or ".join(part for part in (words, ends) if part) or "nothing"


def _choice_point_rows(points: Mapping[tuple[str, str], list[str]]) -> list[tuple[str, str]]:
    by_source: dict[str, list[str]] = {}
    for (source, target), actions in points.items():
        by_source.setdefault(source, []).append(f"{', '.join(actions)} -> {target}")
    return [(source if i == 0 else "", text) for source, texts in by_source.items() for i, text in enumerate(texts)]
