"""What later parts of a regular expression ask of a group: its text again, or whether it took part.

Neither is regular in general. Where the group stands in the same sequence as what refers to
it, and has few texts, there is one case for each.
"""

from __future__ import annotations

from itertools import product

from constrained.grammar.nodes import Alt, Chars, Choices, Literal, Node, Repeat, Seq

MOST_TEXTS = 64
"""Texts of a group that is referred to."""


def references(tree, exists, reference) -> set[tuple[object, int]]:
    """(op, group) of every reference in a piece of `re`'s parse tree; the two ops as given."""
    found, work = set(), [tree]
    while work:
        part = work.pop()
        if isinstance(part, tuple) and len(part) == 2 and part[0] is reference:
            found.add(part)
        elif isinstance(part, tuple) and len(part) == 2 and part[0] is exists:
            found.add((exists, part[1][0]))
            work += part[1][1:]
        elif isinstance(part, (tuple, list)) or hasattr(part, "data"):
            work.extend(part)
    return found


def texts(node: Node) -> list[str] | None:
    """The texts of `node`, each once; None if there are too many, or it looks around."""
    if isinstance(node, Literal):
        return [node.data.decode()]
    if isinstance(node, Choices):
        return [v.decode() for v in node.values] if len(node.values) <= MOST_TEXTS else None
    if isinstance(node, Chars):
        ranges = node.chars.ranges
        few = sum(high - low + 1 for low, high in ranges) <= MOST_TEXTS
        return [chr(c) for low, high in ranges for c in range(low, high + 1)] if few else None
    if isinstance(node, Alt):
        return _few(text for item in node.items for text in texts(item) or [None])
    if isinstance(node, Seq):
        out: list[str] | None = [""]
        for item in node.items:
            out = _joined(out, texts(item))
        return out
    if isinstance(node, Repeat) and node.high is not None and node.high <= MOST_TEXTS:
        item, out, every = texts(node.item), [""], [""] if node.low == 0 else []
        for count in range(1, node.high + 1):
            out = _joined(out, item)
            every = _few([*every, *out] if count >= node.low else every) if out is not None else None
            if every is None:
                return None
        return every
    return None


def _joined(before: list[str] | None, after: list[str] | None) -> list[str] | None:
    return None if before is None or after is None else _few(a + b for a, b in product(before, after))


def _few(found) -> list[str] | None:
    out: dict[str, None] = {}
    for text in found:
        if text is None or len(out) > MOST_TEXTS:
            return None
        out[text] = None
    return list(out) if len(out) <= MOST_TEXTS else None
