"""Action knowledge to text: what the masks enforce, in words the model reads.

The segments are KnowAgent's (section 3.2.2): overview, definition of each action, principle.
"""

from __future__ import annotations

from textwrap import TextWrapper

from constrained.knowledge.action_graph import START


def knowledge_text(knowledge) -> str:
    """Overview, rules, definitions and principle of `knowledge`, from its file's comments."""
    parts = []
    overview = knowledge.comments.get("start")
    if overview:
        parts.append(overview)
    parts.append("What may follow what:\n" + "\n".join(_order(knowledge.graph)))
    defined = [f"({i}) {text or name}" for i, (name, text) in enumerate(knowledge.actions.items(), 1)]
    parts.append("The actions:\n" + "\n".join(defined))
    parts.append(
        "Plan one action at a time. Each action must be one that may follow the action before it, "
        "and must name only what is there. ActionPath lists the actions done so far; Thought weighs "
        "what may come next; Action is exactly one action."
    )
    return "\n\n".join(parts)


def _order(graph) -> list[str]:
    """A line for each action; one for all of them where order doesn't matter, which is quadratically shorter."""
    rules, ends = graph.rules, graph.may_end
    if len(graph.actions) > 1 and set(rules.values()) == {tuple(graph.actions)} and ends.issuperset(rules):
        return ["  any action may come first, and after any other (or the plan ends)"]
    width = max(map(len, rules))
    return [
        f"  {name:<{width}} -> {', '.join(after) or 'nothing: the plan is over'}"
        + (" (or the plan ends)" if after and name in ends else "")
        for name, after in rules.items()
    ]


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
