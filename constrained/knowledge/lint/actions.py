"""Actions that nothing leads to, that run into each other, or that nobody explains."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import STEP
from constrained.grammar.lark_outline import RULE, Outline, OutlineEntry, rule_comments
from constrained.grammar.lark_syntax import Group, Name, Repeated
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.names import holds_step


def unreachable(outline: Outline, start: str) -> Iterator[Finding]:
    """Actions that nothing names on the way from `start`."""
    reached = outline.reachable(start) | outline.guessed
    for name, found in outline.by_name.items():
        if name not in reached and any(map(holds_step, found)):
            users = outline.users.get(name)
            by = f"; only '{users[0]}' leads to it, and nothing leads there" if users else ""
            yield _unreachable(outline, name, start, by)


def left_out(outline: Outline, graph: ActionGraph, reached: set[str], start: str) -> Iterator[Finding]:
    """Actions that are named on the way, but where no path comes to: as an argument that is never used, say."""
    for name in reached.difference(graph.rules, [start]):
        if any(holds_step(d) and _writes(d) for d in outline.by_name.get(name, ())):
            yield _unreachable(outline, name, start, ", though it is named")


def _writes(definition: OutlineEntry) -> bool:
    """Whether a rule has text of its own."""
    parts = (part for items in definition.options.items for item in items for part in _parts(item))
    return any(not isinstance(part, Name) or part.text.isupper() and part.text != STEP for part in parts)


def _unreachable(outline: Outline, name: str, start: str, by: str) -> Finding:
    return Finding(
        "unreachable-action",
        f"no path leads to the action '{name}'{by}",
        "the agent can never take it, and the prompt doesn't name it",
        f"let '{start}' or another action name it after its _STEP, as in `_STEP (... | {name})`",
        outline.span_of(name),
    )


def missing_steps(outline: Outline, start: str) -> Iterator[Finding]:
    """Actions that go straight on into another action, in one text."""
    actions = {name for name, found in outline.by_name.items() if any(map(holds_step, found))}
    if not actions:
        return
    for definition in outline.definitions:
        if definition.kind != RULE or definition.options is None:
            continue
        for items in definition.options.items:
            found = _runs_into(items, actions.difference(definition.params))
            if found is not None and definition.name != start:
                yield Finding(
                    "missing-step",
                    f"'{definition.name}' goes straight on into the action '{found.text}', with no _STEP between them",
                    "both are then one text, and the environment is asked only after the second",
                    f"end '{definition.name}' first: `_STEP {found.text}`",
                    outline.span(found),
                )


def _runs_into(items: list, actions: set[str]) -> Name | None:
    """The action that stands behind text in one alternative, before any _STEP."""
    text = False
    for item in items:
        for part in _parts(item):
            if isinstance(part, Name) and part.text == STEP:
                return None
            if not isinstance(part, Name) or part.text.isupper():
                text = True
            elif part.text in actions and text:
                return part
    return None


def _parts(item) -> Iterator:
    """Names and literals that stand in an item, a template's arguments left out: they may come later."""
    if isinstance(item, Repeated):
        yield from _parts(item.item)
    elif isinstance(item, Group):
        for items in item.options.items:
            for inner in items:
                yield from _parts(inner)
    else:
        yield item


def uncommented(outline: Outline, text: str, actions, start: str) -> Iterator[Finding]:
    """Actions, and the whole, that have no comment to explain them."""
    comments = rule_comments(text)
    place = outline.span_of(start)
    if place is not None and not comments.get(start):
        yield Finding(
            "no-definition-comment",
            f"no comment above '{start}' says what the task is",
            "the comment above it is the overview that models and readers are given; without one they are told nothing",
            _parted(text, place.line) or f"write a line above it: `// what the agent is to do` and then `{start}: ...`",
            place,
        )
    for name in actions:
        place = outline.span_of(name)
        if name != START and place is not None and not comments.get(name):
            yield Finding(
                "no-definition-comment",
                f"no comment above '{name}' says what this action does",
                "the comment right above an action is its definition in the prompt; now models are told its bare name",
                _parted(text, place.line) or f"write a line above it: `// {name}: what it does, and when to take it.`",
                place,
            )


def _parted(text: str, line: int) -> str | None:
    """What to do about a comment that an empty line keeps from the rule on `line`."""
    above = text.split("\n")[: line - 1]
    while above and not above[-1].strip():
        above.pop()
    if len(above) == line - 1 or not above or not above[-1].lstrip().startswith(("//", "#")):
        return None
    return f"the comment on line {len(above)} is parted from it by an empty line: close the gap"
