"""Find rules that no text completes, rules that only stand for the empty text, and patterns that match nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from constrained.grammar import STEP, nodes
from constrained.grammar.analysis import components, productive_rules, shortest_cycle
from constrained.grammar.lark_outline import Outline
from constrained.grammar.lark_syntax import Quoted, walk
from constrained.grammar.nodes import Node, Rule
from constrained.grammar.source import SourceSpan
from constrained.grammar.traverse import fold, least_fixpoint
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.refused import node_of

_ROUNDS = 20
"""Cycles that hide further cycles are reported in this many rounds; the rest, when those are fixed."""


def never_finish(rules: dict[str, Rule], outline: Outline, reached: set[str], start: str) -> Iterator[Finding]:
    """The cycles that keep rules from being finished: only causes, each once.

    `rules` are as they were read, not trimmed.
    """
    productive = productive_rules(rules)
    reported: set[str] = set()
    for _ in range(_ROUNDS):
        # assume that the cycles reported so far are fixed, to find those behind them
        assumed = {name: Rule(name, nodes.EMPTY) if name in reported else rule for name, rule in rules.items()}
        bad = reached.intersection(rules) - productive_rules(assumed) - reported
        calls = {
            name: [call.rule for call in rules[name].find(nodes.RuleRef) if call.rule in bad]
            for name in outline.by_name
            if name in bad
        }
        # a component that leads to another one isn't the cause
        causes = [names for names in components(calls) if all(set(names).issuperset(calls[name]) for name in names)]
        if not causes:
            return
        for names in causes:
            reported.update(names)
            spans = {name: span for name in names if (span := outline.span_of(name))}
            first = min(spans, key=lambda name: spans[name].line)
            if not any(
                part is nodes.NEVER or (isinstance(part, nodes.Alt) and not part.items) for part in rules[first].nodes
            ):
                yield _never_finishes(shortest_cycle(first, calls), rules, start in productive, spans[first])


def _never_finishes(cycle: Sequence[str], rules: Mapping[str, Rule], start_finishes: bool, span: SourceSpan) -> Finding:
    first = cycle[0]
    is_action = any(slot.name == STEP for name in cycle for slot in rules[name].find(nodes.Slot))
    if start_finishes:
        why = f"a text that enters '{first}' could never be complete, so all alternatives that lead there are left out"
    else:
        lost = "no plan can ever be over" if is_action else "no text can ever be complete"
        why = f"{lost}, so nothing can be generated: the grammar is refused"
    fix = (
        "let one of them end: an action without _STEP, or an optional rest, as in `_STEP [...]`"
        if is_action
        else f"give '{first}' an alternative that doesn't lead back to it, or make the part that does optional"
    )
    circle = " -> ".join([*cycle, first])
    return Finding("never-finishes", f"'{first}' can never be finished: {circle}", fix, span, why)


def only_empty(rules: Mapping[str, Rule], outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Rules that are used but never write any text."""
    bodies = {name: [(name, rule.body)] for name, rule in rules.items()}
    writes = least_fixpoint(bodies, lambda name, found: _writes(rules[name].body, found), False)
    for name in productive_rules(dict(rules)):
        span = outline.span_of(name)
        if not writes[name] and name in reached and span is not None and not rules[name].params:
            yield Finding(
                "only-empty",
                f"'{name}' only stands for the empty text",
                f"write what it should read, or delete '{name}' and its uses",
                span,
            )


def _writes(node: Node, rules: Mapping[str, bool]) -> bool:
    """Whether `node` may read some text; `rules` says which rules do."""

    def leaf(node: Node) -> bool:
        if isinstance(node, nodes.RuleRef):
            return rules[node.rule] or any(_writes(arg, rules) for arg in node.args)
        return not isinstance(node, nodes.Choices) or any(node.values)

    return fold(node, leaf, any, any, lambda _, item: item)


def matches_nothing(outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Regular expressions that no text matches."""
    for entry in outline.definitions:
        if entry.name not in reached:
            continue
        for item in walk(entry.options):
            if isinstance(item, Quoted) and item.text[0] == "/" and not productive_rules({"": Rule("", node_of(item))}):
                yield Finding(
                    "matches-nothing",
                    f"no text matches {item.text}",
                    "correct the pattern: it requires a character that is in sets without a common one",
                    outline.span(item),
                    why=f"'{entry.name}' can't be written, so all alternatives that need it are left out",
                )
