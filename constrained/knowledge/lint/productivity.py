"""Rules that no text completes, and rules that only the empty text does."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import STEP
from constrained.grammar import nodes as n
from constrained.grammar.analysis import components, productive_rules, shortest_cycle
from constrained.grammar.lark_outline import Outline, items_in
from constrained.grammar.lark_syntax import Quoted
from constrained.grammar.nodes import Node, Rule
from constrained.grammar.source import SourceSpan
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.refused import node_of

_ROUNDS = 20
"""Cycles behind each other that are told of at once; the others once those are mended."""


def never_finish(rules: dict[str, Rule], outline: Outline, reached: set[str], start: str) -> Iterator[Finding]:
    """The cycles that keep rules from ever being finished: causes only, each once.

    `rules` are as they were read: not trimmed.
    """
    good = productive_rules(rules)
    told: set[str] = set()
    for _ in range(_ROUNDS):
        assumed = {name: Rule(name, n.EMPTY) if name in told else rule for name, rule in rules.items()}
        bad = reached.intersection(rules) - productive_rules(assumed) - told
        calls = {name: [c for c in _calls(rules[name].body) if c in bad] for name in outline.by_name if name in bad}
        # what leads to no other component can't blame it
        causes = [found for found in components(calls) if all(c in found for name in found for c in calls[name])]
        if not causes:
            return
        for found in causes:
            told.update(found)
            first = min(found, key=lambda name: outline.span_of(name).line)
            if not _matches_nothing(rules[first].body):
                yield _finding(shortest_cycle(first, calls), rules, good, start, outline.span_of(first))


def _finding(cycle: list[str], rules: dict[str, Rule], good: set[str], start: str, place: SourceSpan) -> Finding:
    round_trip = " -> ".join([*cycle, cycle[0]])
    is_action = any(_has_step(rules[name].body) for name in cycle)
    if start not in good:
        lost = "no plan can ever be over" if is_action else "no text can ever be complete"
        why = f"{lost}, so nothing can be generated: the grammar is refused"
    else:
        why = f"a text that enters '{cycle[0]}' could never be complete, so every alternative that leads there is left out"
    fix = (
        "let one of them end: an action without _STEP, or an optional rest, as in `_STEP [...]`"
        if is_action
        else f"give it a way out: an alternative of '{cycle[0]}' that doesn't come back, or make the part that does optional"
    )
    return Finding("never-finishes", f"'{cycle[0]}' can never be finished: {round_trip}", why, fix, place)


def only_empty(rules: dict[str, Rule], outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Rules that are used but that nothing is ever written by."""
    writing: set[str] = set()
    grew = True
    while grew:
        new = {name for name, rule in rules.items() if name not in writing and _writes(rule.body, writing)}
        grew = bool(new)
        writing |= new
    for name in productive_rules(rules) - writing:
        place = outline.span_of(name)
        if name in reached and place is not None and not rules[name].params:
            yield Finding(
                "only-empty",
                f"'{name}' only ever stands for the empty text",
                "it has no effect where it is used; often its text was forgotten",
                f"write what it should read, or delete '{name}' and its uses",
                place,
            )


def _writes(node: Node, writing: set[str]) -> bool:
    if isinstance(node, n.Call):
        return node.rule in writing or any(_writes(arg, writing) for arg in node.args)
    if isinstance(node, (n.Seq, n.Alt, n.Repeat)):
        return any(_writes(item, writing) for item in n.children(node))
    return not isinstance(node, n.Choices) or any(node.values)


def _calls(node: Node) -> Iterator[str]:
    return (part.rule for part in n.walk(node) if isinstance(part, n.Call))


def _has_step(node: Node) -> bool:
    return any(isinstance(part, n.Slot) and part.name == STEP for part in n.walk(node))


def _matches_nothing(node: Node) -> bool:
    """Told of by `matches-nothing`, at the pattern itself."""
    return any(part is n.NEVER or isinstance(part, n.Alt) and not part.items for part in n.walk(node))


def matches_nothing(outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Regular expressions that no text matches."""
    for definition in outline.definitions:
        if definition.name not in reached:
            continue
        for item in items_in(definition.options):
            if isinstance(item, Quoted) and item.text[0] == "/" and not productive_rules({"": Rule("", node_of(item))}):
                yield Finding(
                    "matches-nothing",
                    f"no text matches {item.text}",
                    f"'{definition.name}' can't be written where it stands, and every alternative that needs it is left out",
                    "correct the pattern: a character must be in all of the sets that it is asked to be in",
                    outline.span(item),
                )
