"""Actions that nothing leads to, that run into each other, or that nobody explains."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Token, Tree

from constrained.grammar import STEP
from constrained.knowledge.comments import rule_comments
from constrained.knowledge.graph import START
from constrained.knowledge.lint.finding import Finding, Span
from constrained.knowledge.lint.names import holds_step
from constrained.knowledge.lint.outline import RULE, Outline


def unreachable(outline: Outline, start: str) -> Iterator[Finding]:
    """Actions that no path from `start` comes to."""
    reached = outline.reachable(start) | outline.guessed
    for name, found in outline.by_name.items():
        if name not in reached and any(map(holds_step, found)):
            users = outline.users.get(name)
            by = f"; only '{users[0]}' leads to it, and nothing leads there" if users else ""
            yield Finding(
                "unreachable-action",
                f"no path leads to the action '{name}'{by}",
                "the agent can never take it, and the prompt doesn't name it",
                f"let '{start}' or another action name it after its _STEP, as in `_STEP (... | {name})`",
                Span.of(found[0].name),
            )


def missing_steps(outline: Outline, start: str) -> Iterator[Finding]:
    """Actions that go straight on into another action, in one text."""
    actions = {name for name, found in outline.by_name.items() if any(map(holds_step, found))}
    if not actions:
        return
    for definition in outline.definitions:
        if definition.kind != RULE or definition.body is None:
            continue
        for alternative in definition.body.children:
            found = _runs_into(alternative, actions - set(map(str, definition.params)))
            if found is not None and definition.name != start:
                yield Finding(
                    "missing-step",
                    f"'{definition.name}' goes straight on into the action '{found}', with no _STEP between them",
                    "both are then one text, and the environment is asked only after the second",
                    f"end '{definition.name}' first: `_STEP {found}`",
                    Span.of(found),
                )


def _runs_into(alternative: Tree, actions: set[str]) -> Token | None:
    """The action that stands behind text in one alternative, before any _STEP."""
    text = False
    for item in alternative.children[0].children if alternative.data == "alias" else alternative.children:
        for kind, token in _parts(item):
            if kind == "terminal" and str(token) == STEP:
                return None
            if kind == "nonterminal" and str(token) in actions:
                if text:
                    return token
            elif kind != "nonterminal":
                text = True
    return None


def _parts(item: Tree) -> Iterator[tuple[str, Token]]:
    """(kind, token) of what stands in an item, a template's arguments left out: they may come later."""
    if not isinstance(item, Tree):
        return
    if item.data in ("terminal", "nonterminal", "literal"):
        yield item.data, item.children[0]
    elif item.data == "range":
        yield "literal", item.children[0]
    elif item.data == "template_usage":
        yield "nonterminal", item.children[0].children[0]
    else:
        for part in item.children[:1] if item.data == "alias" else item.children:
            yield from _parts(part)


def uncommented(outline: Outline, text: str, actions, start: str) -> Iterator[Finding]:
    """Actions, and the whole, that have no comment to explain them."""
    comments = rule_comments(text)
    place = outline.place(start)
    if place is not None and not comments.get(start):
        yield Finding(
            "no-definition-comment",
            f"no comment above '{start}' says what the task is",
            "the comment above it is the overview that models and readers are given; without one they are told nothing",
            _parted(text, place.line) or f"write a line above it: `// what the agent is to do` and then `{start}: ...`",
            Span.of(place),
        )
    for name in actions:
        place = outline.place(name)
        if name != START and place is not None and not comments.get(name):
            yield Finding(
                "no-definition-comment",
                f"no comment above '{name}' says what this action does",
                "the comment right above an action is its definition in the prompt; now models are told its bare name",
                _parted(text, place.line) or f"write a line above it: `// {name}: what it does, and when to take it.`",
                Span.of(place),
            )


def _parted(text: str, line: int) -> str | None:
    """What to do about a comment that an empty line keeps from the rule on `line`."""
    above = text.split("\n")[: line - 1]
    while above and not above[-1].strip():
        above.pop()
    if len(above) == line - 1 or not above or not above[-1].lstrip().startswith(("//", "#")):
        return None
    return f"the comment on line {len(above)} is parted from it by an empty line: close the gap"
