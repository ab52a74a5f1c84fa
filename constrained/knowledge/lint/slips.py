"""Find slips: text that loads, but probably doesn't mean what its author intended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from constrained.grammar import STEP
from constrained.grammar.lark_outline import RULE, Outline, OutlineEntry, rule_comments, spelled, symbols_in
from constrained.grammar.lark_syntax import Item, Quoted, Symbol
from constrained.knowledge.lint.finding import Finding


def slips(outline: Outline, actions: Collection[str]) -> Iterator[Finding]:
    """All findings of this module; `actions` are the rules that write an action."""
    comments = rule_comments(outline.source.text)
    for entry in outline.definitions:
        if entry.kind != RULE:
            continue
        yield from _swapped(outline, entry)
        if entry.name not in actions:
            continue
        yield from _other_comment(entry, comments, actions)
        alternatives = entry.options.items
        acting = [items for items in alternatives if any(map(_is_step, items)) and _writes(items)]
        for items in alternatives:
            yield from _no_space(outline, entry, items)
            yield from _edge_space(outline, items)
            yield from _slot_for_parameter(outline, entry, items)
            yield from _misplaced_step(outline, items)
            yield from _outside_brackets(outline, items, acting, actions)
        yield from _alias_for_step(outline, entry, actions)


def _is_step(item: Item) -> bool:
    return isinstance(item, Symbol) and item.text == STEP


def _writes(items: Iterable[Item]) -> bool:
    return any(isinstance(item, Quoted) for item in items)


def _before_step(items: Sequence[Item]) -> Sequence[Item]:
    """The part of an alternative that writes the action."""
    at = next((i for i, item in enumerate(items) if _is_step(item)), len(items))
    return items[:at]


def _words(item: Item) -> str:
    """The characters of a string without its quotes and flags; empty for other items."""
    match = re.fullmatch(r'"(.*)"i?', item.text, re.DOTALL) if isinstance(item, Quoted) else None
    return match[1] if match else ""


def _no_space(outline: Outline, entry: OutlineEntry, items: Sequence[Item]) -> Iterator[Finding]:
    """Words that run into a value: ``"pick" i``."""

    def is_value(item: Item) -> bool:
        return (
            isinstance(item, Symbol) and not item.args and (item.text in entry.params or item.text in outline.declared)
        )

    for i, (first, second) in enumerate(pairwise(_before_step(items))):
        before = is_value(second) and re.search(r"[^\W\d_]{2}$", _words(first))
        after = i and is_value(first) and re.match(r"[^\W\d_]{2}", _words(second))
        if before or after:
            word = first if before else second
            mended = f'"{_words(word)} "' if before else f'" {_words(word)}"'
            yield Finding(
                "no-space",
                f"there is no space between {spelled(first)} and {spelled(second)}",
                f"write {mended}",
                outline.span(word),
            )


def _edge_space(outline: Outline, items: Sequence[Item]) -> Iterator[Finding]:
    """White space with which an action begins or ends."""
    action = _before_step(items)
    if not action:
        return
    white = r"(?:\s|\\n|\\t|\\r)+"
    for item, pattern, where in ((action[0], rf"^{white}", "begins"), (action[-1], rf"{white}$", "ends")):
        if re.search(pattern, _words(item)) and (where == "begins" or len(action) < len(items)):
            yield Finding(
                "edge-space",
                f"this action {where} with white space",
                f'write "{left}"' if (left := re.sub(pattern, "", _words(item))) else "leave it out",
                outline.span(item),
            )


def _swapped(outline: Outline, entry: OutlineEntry) -> Iterator[Finding]:
    """Arguments in another order than the parameters named after them."""
    templates = {d.name: d for d in reversed(outline.definitions) if d.kind == RULE and d.params}
    for name in symbols_in(entry.options):
        template = templates.get(name.text)
        if template is None or len(name.args or ()) != len(template.params) or len(template.params) < 2:
            continue
        # Which argument each parameter is named after; -1 if none or several. Only a complete match in another order is
        # reported.
        names = [arg.text if isinstance(arg, Symbol) and not arg.args else "" for arg in name.args or ()]
        meant = []
        for param in template.params:
            fits = [i for i, text in enumerate(names) if text and _named_for(param, text)]
            meant.append(fits[0] if len(fits) == 1 else -1)
        if sorted(meant) == list(range(len(names))) and meant != sorted(meant):
            right = ", ".join(names[i] for i in meant)
            yield Finding(
                "swapped-arguments",
                f"'{template.name}' takes {{{', '.join(template.params)}}}, here it is given {{{', '.join(names)}}}",
                f"write `{template.name}{{{right}}}`; if it is right as it is, rename the parameters",
                outline.span(name),
            )


def _named_for(param: str, argument: str) -> bool:
    """Whether a parameter is named after an argument: ``i`` or ``item`` for ``ITEM``."""
    return argument.lower().startswith(param.rstrip("0123456789_"))


def _slot_for_parameter(outline: Outline, entry: OutlineEntry, items: Sequence[Item]) -> Iterator[Finding]:
    """A slot used instead of the parameter to which all calls pass that slot."""
    uses = [name.args for d in outline.definitions for name in symbols_in(d.options) if name.text == entry.name]
    for i, param in enumerate(entry.params):
        given = {spelled(args[i]) for args in uses if args and i < len(args)}
        if len(given) != 1 or not given <= set(outline.declared):
            continue
        for item in _before_step(items):
            if isinstance(item, Symbol) and {item.text} == given:
                yield Finding(
                    "slot-for-parameter",
                    f"{item.text} may have another value here than '{param}'",
                    f"write {param}; or, if another value is meant, `another{{{item.text}, {param}}}`",
                    outline.span(item),
                )


def _other_comment(entry: OutlineEntry, comments: dict[str, str], actions: Collection[str]) -> Iterator[Finding]:
    """A comment that begins with another action's name."""
    match = re.match(r"([a-z_]\w*)\s*:", comments.get(entry.name, ""))
    if match and match[1] != entry.name and match[1] in actions:
        yield Finding(
            "other-comment",
            f"the comment above '{entry.name}' begins with '{match[1]}:', another action",
            f"write `// {entry.name}: ...`, or put it above '{match[1]}'",
            entry.span,
        )


def _misplaced_step(outline: Outline, items: Sequence[Item]) -> Iterator[Finding]:
    """A `_STEP` right after another, or before all text."""
    steps = [i for i, item in enumerate(items) if _is_step(item)]
    for i in steps:
        if i and _is_step(items[i - 1]):
            yield Finding(
                "misplaced-step",
                "_STEP occurs twice: after the first, an empty action would follow",
                "remove one of them",
                outline.span(items[i]),
            )
    if steps and steps[0] == 0 and _writes(items):
        yield Finding(
            "misplaced-step",
            "_STEP comes before the action's text, but should end it",
            f"write `{' '.join(map(spelled, [*items[1:2], *items[:1], *items[2:]]))}`",
            outline.span(items[0]),
        )


def _outside_brackets(
    outline: Outline, items: Sequence[Item], acting: Sequence[Sequence[Item]], actions: Collection[str]
) -> Iterator[Finding]:
    """An alternative that only names another action, beside one that writes: ``"a" _STEP b | c``."""
    if not acting or len(items) != 1 or not isinstance(items[0], Symbol) or items[0].text not in actions:
        return
    last = acting[-1]
    rest = [spelled(item) for item in last[len(_before_step(last)) + 1 :]]
    if rest:
        yield Finding(
            "misplaced-step",
            f"'{items[0].text}' is an alternative to the whole action here, not to what comes after _STEP",
            f"put what may follow in brackets: `_STEP ({' '.join(rest)} | {spelled(items[0])})`",
            outline.span(items[0]),
        )


def _alias_for_step(outline: Outline, entry: OutlineEntry, actions: Collection[str]) -> Iterator[Finding]:
    """``-> name`` where another action should follow: it is an alias, which has no effect."""
    text = outline.source.text
    for at in entry.options.aliases:
        match = re.compile(r"->\s*([a-z_]\w*)").match(text, at)
        if match and match[1] in actions:
            yield Finding(
                "misplaced-step",
                f"`-> {match[1]}` only names the alternative, as in lark; '{match[1]}' doesn't follow",
                f"write `_STEP {match[1]}`",
                outline.source.span(at, 2),
            )
