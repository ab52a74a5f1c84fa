"""Find actions that no path leads to, that run into each other, or that no comment explains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from constrained.grammar import STEP
from constrained.grammar.lark_outline import RULE, Outline, OutlineEntry, rule_comments
from constrained.grammar.lark_syntax import Group, Item, Repeated, Symbol
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.names import has_step


def unreachable(outline: Outline, start: str) -> Iterator[Finding]:
    """Actions that no rule reachable from `start` names."""
    reached = outline.reachable(start) | outline.guessed
    for name, entries in outline.by_name.items():
        if name not in reached and any(map(has_step, entries)):
            users = outline.users.get(name)
            by = f"; only '{users[0]}' leads to it, and nothing leads there" if users else ""
            yield _unreachable(outline, name, start, by)


def left_out(outline: Outline, graph: ActionGraph, reached: set[str], start: str) -> Iterator[Finding]:
    """Actions that reachable rules name, but that no path takes, such as an argument that is never used."""
    for name in reached.difference(graph.rules, [start]):
        if any(has_step(entry) and _writes(entry) for entry in outline.by_name.get(name, ())):
            yield _unreachable(outline, name, start, ", though it is named")


def _writes(entry: OutlineEntry) -> bool:
    """Whether a rule has text of its own."""
    alternatives = entry.options.items
    parts = (part for items in alternatives for part in _parts(items))
    return any(not isinstance(part, Symbol) or (part.text.isupper() and part.text != STEP) for part in parts)


def writing(outline: Outline, start: str) -> set[str]:
    """The rules that write an action: they have text, and a `_STEP` or a position where an action may stand."""
    if STEP not in outline.declared:
        return set()
    after: set[str] = set()
    for entry in outline.definitions:
        for items in entry.options.items:
            names = [part.text for part in _parts(items) if isinstance(part, Symbol)]
            may_act = entry.name == start or (len(items) == 1 and has_step(entry))
            after.update(names[names.index(STEP) + 1 :] if STEP in names else names if may_act else ())
    return {
        name
        for name, entries in outline.by_name.items()
        if name != start and any(_writes(entry) and (has_step(entry) or name in after) for entry in entries)
    }


def _unreachable(outline: Outline, name: str, start: str, by: str) -> Finding:
    return Finding(
        "unreachable-action",
        f"no path leads to the action '{name}'{by}",
        f"let '{start}' or another action name it after its _STEP, as in `_STEP (... | {name})`",
        outline.span_of(name),
    )


def missing_steps(outline: Outline, start: str) -> Iterator[Finding]:
    """Actions that continue with another action without a `_STEP`."""
    actions = {name for name, entries in outline.by_name.items() if any(map(has_step, entries))}
    for entry in outline.definitions:
        if entry.kind != RULE or entry.name == start:
            continue
        for items in entry.options.items:
            action = _runs_into(items, actions.difference(entry.params))
            if action is not None:
                yield Finding(
                    "missing-step",
                    f"'{entry.name}' continues with the action '{action.text}' without a _STEP between them",
                    f"end '{entry.name}' first: `_STEP {action.text}`",
                    outline.span(action),
                )


def _runs_into(items: Sequence[Item], actions: Collection[str]) -> Symbol | None:
    """The action that follows text in an alternative, before any _STEP."""
    text = False
    for part in _parts(items):
        if isinstance(part, Symbol) and part.text == STEP:
            return None
        if not isinstance(part, Symbol) or part.text.isupper():
            text = True
        elif part.text in actions and text:
            return part
    return None


def _parts(items: Iterable[Item]) -> Iterator[Item]:
    """The names and literals in some items, without the arguments of templates."""
    for item in items:
        if isinstance(item, Repeated):
            yield from _parts([item.item])
        elif isinstance(item, Group):
            for inner in item.options.items:
                yield from _parts(inner)
        else:
            yield item


def uncommented(outline: Outline, text: str, actions: Iterable[str], start: str) -> Iterator[Finding]:
    """The start rule and the actions that have no comment."""
    comments = rule_comments(text)
    for name in (start, *(action for action in actions if action != START)):
        span = outline.span_of(name)
        if span is None or comments.get(name):
            continue
        about, comment, why = "what this action does", f"{name}: what it does, and when to take it.", ""
        if name == start:
            about, comment = "what the task is", f"what the agent is to do` and then `{name}: ..."
            why = "the comment above it is the overview in the prompt; without a comment, there is none"
        yield Finding(
            "no-definition-comment",
            f"no comment above '{name}' says {about}",
            _close_gap(text, span.line) or f"write a line above it: `// {comment}`",
            span,
            why,
        )


def _close_gap(text: str, line: int) -> str | None:
    """The fix if a comment is separated by empty lines from the rule on `line`."""
    above = text.split("\n")[: line - 1]
    while above and not above[-1].strip():
        above.pop()
    if len(above) == line - 1 or not above or not above[-1].lstrip().startswith(("//", "#")):
        return None
    return f"remove the empty line between the rule and the comment on line {len(above)}"
