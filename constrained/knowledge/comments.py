"""The comments of a `.lark` file: the words that explain its rules to a reader or a model."""

from __future__ import annotations

import re

_RULE = re.compile(r"\s*[?!]*([a-z_][a-z0-9_]*)(?:\{[^}]*\})?(?:\.-?\d+)?\s*:")
_COMMENT = re.compile(r"\s*(?://|#)\s?(.*)")


def rule_comments(text: str) -> dict[str, str]:
    """Rule name -> the comment lines directly above it, joined by spaces."""
    out: dict[str, str] = {}
    pending: list[str] = []
    for line in text.split("\n"):
        comment = _COMMENT.match(line)
        if comment:
            pending.append(comment[1].strip())
            continue
        rule = _RULE.match(line)
        if rule and pending:
            out[rule[1]] = " ".join(p for p in pending if p)
        pending = []  # a blank line, too, parts a comment from what follows
    return out
