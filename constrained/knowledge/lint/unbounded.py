"""Find unbounded repeats and recursion, with which a text can continue until the token limit cuts it off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from constrained.grammar import STEP, nodes
from constrained.grammar.analysis import cyclic_components
from constrained.grammar.lark_definitions import Definition
from constrained.grammar.lark_outline import (
    IMPORT,
    TERMINAL,
    Outline,
    OutlineEntry,
    spelled,
    symbols_in,
    without_repeat,
)  # fmt: skip
from constrained.grammar.lark_syntax import Expansions, Group, Item, Quoted, Repeated, Symbol, walk
from constrained.grammar.lark_tokens import word_at
from constrained.grammar.nodes import Node, Rule, is_step
from constrained.grammar.template_instances import write_out_instances
from constrained.grammar.traverse import least_fixpoint, reached
from constrained.knowledge.lint.finding import KINDS, Finding

_LOW = {"*": 0, "+": 1}
_BOUND = 200
"""The bound suggested in fixes."""
_SHOWN = 40
"""How many characters of a group a message quotes."""


def endless(outline: Outline, names: set[str], definitions: Mapping[str, Definition]) -> Iterator[Finding]:
    """Unbounded repeats in the definitions of `names`."""
    for options in outline.ignored:
        yield _ignored(options, outline)
    ignored = {name.text for options in outline.ignored for name in symbols_in(options)}
    for entry in outline.definitions:
        if entry.name not in names or (entry.name in ignored and entry.name not in outline.users):
            continue
        if entry.kind == IMPORT:
            yield from _imported(entry, definitions.get(entry.name))
        else:
            yield from _repeats(entry, outline)


def _ignored(options: Expansions, outline: Outline) -> Finding:
    first = without_repeat(next(walk(options)))
    return Finding(
        "endless-text",
        f"%ignore admits {_shown(first)} any number of times, between all tokens",
        'write the spaces where they belong, as in `"a" " "? "b"`, and remove the %ignore',
        outline.span(first),
        why=f"{KINDS['endless-text'].why}; whitespace is where models get stuck most",
    )


def _unbounded(options: Expansions) -> Iterator[tuple[Quoted | Repeated, str]]:
    """The regular expressions and repeats without a bound, each with its text for a message."""
    for item in walk(options):
        if isinstance(item, Quoted) and item.text[0] == "/" and bounded_pattern(item.text) != item.text:
            yield item, item.text
        elif isinstance(item, Repeated) and item.high is None:
            yield item, _shown(item.item) + item.text


def _repeats(entry: OutlineEntry, outline: Outline) -> Iterator[Finding]:
    for item, shown in _unbounded(entry.options):
        span = outline.span(item)
        if isinstance(item, Quoted):
            yield Finding(
                "endless-text", f"{shown} may match without end", f"bound it: `{bounded_pattern(shown)}`", span
            )
            continue
        inner, once = item.item, _shown(item.item)
        if isinstance(inner, Symbol) and inner.text == STEP:
            continue
        token = not isinstance(inner, Group) and (not isinstance(inner, Symbol) or inner.text.isupper())
        if entry.kind == TERMINAL or token:
            fix = f"bound it: `{once}~{item.low}..{_BOUND}`"
            yield Finding("endless-text", f"{shown} may be written without end", fix, span)
        elif not _takes_steps(inner, outline):
            fix = f"if there is a natural maximum, state it: `{once}~{item.low}..20`"
            yield Finding("endless-list", f"the list {shown} has no maximum length", fix, span)


def _takes_steps(item: Item, outline: Outline) -> bool:
    """Whether an action ends within `item`: then its repeat is a plan, not a text."""
    names = [item.text] if isinstance(item, Symbol) else []
    if isinstance(item, Group):
        names = [name.text for name in symbols_in(item.options)]
    return any(STEP in outline.reachable(name) for name in names)


def _shown(item: Item) -> str:
    text = spelled(item)
    return text if len(text) <= _SHOWN else "(...)"


_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>[*+])(?P<lazy>\??)\+?|\{(?P<low>\d*),\}|\{[\d,]*\}[?+]?|.", re.DOTALL
)


def bounded_pattern(pattern: str) -> str:
    """A regular expression with bounds on its unbounded repeats; the same text if it has none."""

    def bound(found: re.Match[str]) -> str:
        if found["open"]:
            return f"{{{_LOW[found['open']]},{_BOUND}}}{found['lazy']}"
        if found["low"] is not None:
            low = int(found["low"] or 0)
            return f"{{{low},{max(low, _BOUND)}}}"
        return found[0]

    return _PIECE.sub(bound, pattern)


def _imported(imported: OutlineEntry, definition: Definition | None) -> Iterator[Finding]:
    def parts(owner: Definition) -> Iterator[Definition]:
        names = ((body, item) for body in owner.bodies for item in walk(body.options) if isinstance(item, Symbol))
        return (part for body, item in names if (part := body.scope.definition(item.text)) is not None)

    def name(terminal: Definition) -> str:
        return word_at(terminal.scope.source.text, terminal.at)

    terminals = [terminal for terminal in reached([definition] if definition else [], parts) if terminal.terminal]
    for terminal in sorted(terminals, key=name):
        for shown in (shown for body in terminal.bodies for _, shown in _unbounded(body.options)):
            yield Finding(
                "endless-text",
                f"the imported {imported.name} may match without end: {name(terminal)} is {shown}",
                f"define a bounded one here, such as `{imported.name}: /.../` with {{1,{_BOUND}}} in place of * and +",
                imported.span,
            )
            return


def nesting(rules: Mapping[str, Rule], outline: Outline, reached: set[str]) -> Iterator[Finding]:
    """Rules that lead back to themselves within one action, each cycle once."""
    order = {name: i for i, name in enumerate(outline.by_name) if name in reached}
    for component in cyclic_components(_calls_inside_actions(rules)):
        circle = sorted((name for name in component if name in order), key=order.__getitem__)
        if not circle:
            continue
        name, *others = circle
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        by = f", by way of {', '.join(others[:4])}{more}" if others else ""
        yield Finding(
            "endless-list",
            f"'{name}' can contain itself any number of times within one text{by}",
            'nothing, if that is meant; else write as many levels or items as are enough: `item ("," item)~0..9`',
            outline.span_of(name),
            why="a text can nest, or continue, without a bound; only the token limit ends a model that doesn't stop",
        )


def _calls_inside_actions(rules: Mapping[str, Rule]) -> dict[str, set[str]]:
    """Rule -> the rules that may be read before its action ends, including those in its arguments."""
    instances = write_out_instances(rules, every=True)

    def may_end_action(rule: str, found: Mapping[str, bool]) -> bool:
        body = instances[rule].body
        return any(is_step(n) or (isinstance(n, nodes.RuleRef) and found[n.rule]) for n in nodes.walk(body))

    bodies = {name: [(name, rule.body)] for name, rule in instances.items()}
    ending = {name for name, ends in least_fixpoint(bodies, may_end_action, False).items() if ends}
    calls: dict[str, set[str]] = {}
    for name, rule in instances.items():
        inside = (node.rule for node in _before_step(rule.body, ending) if isinstance(node, nodes.RuleRef))
        calls.setdefault(_template(name), set()).update(map(_template, inside))
    return calls


def _template(name: str) -> str:
    """The template of which a rule is an instance; other rules as they are."""
    return name.split("$of")[0]


def _before_step(node: Node, ending: set[str]) -> Iterator[Node]:
    """The nodes of a body before its action ends, without the arguments of calls; rules in `ending` may end it."""
    if isinstance(node, nodes.Seq):
        for item in node.items:
            yield from _before_step(item, ending)
            if is_step(item) or (isinstance(item, nodes.RuleRef) and item.rule in ending):
                return
    elif isinstance(node, (nodes.Alt, nodes.Repeat)):
        for item in node.parts:
            yield from _before_step(item, ending)
    else:
        yield node
