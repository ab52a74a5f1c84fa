"""The report on recorded conversations under a policy: the calls that it refuses, by condition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from constrained.guard.messages import Answered, Heard, Said, message_events
from constrained.guard.records import Findings, RecordedConversation, Violation
from constrained.html import code, escaped, faint, paragraph, table
from constrained.pages.html_page import page

MOST = 500
"""Violations that a page shows."""

_BEFORE = 3
"""Messages shown before a call."""

_CHARACTERS = 600
"""Characters of a message or an answer that are shown."""


def guard_page(findings: Findings, policy: str) -> str:
    """The page of what `check_records` found; `policy` is its name."""
    data = findings.to_dict()
    records = {record.name: record for record in findings.conversations}
    parts = [f"<h1>{escaped(policy)}: recorded conversations</h1>", _summary(data), _outcomes(data), _conditions(data)]
    shown = findings.violations[:MOST]
    parts += ["<h2>Violations</h2>", *(_violation(one, records[one.conversation]) for one in shown)]
    if len(shown) < len(findings.violations):
        parts.append(paragraph(f"{len(findings.violations) - len(shown):,} more are not shown; --json has all."))
    return page(f"{policy} · guard", f"<main>{''.join(filter(None, parts))}</main>")


def _summary(data: dict[str, Any]) -> str:
    near = ", ".join(f"{count:,} without {kind}" for kind, count in data["near misses"].items()) or "none"
    rows: list[list[str | int]] = [[key, data[key]] for key in
            ("conversations", "calls", "errors", "errors refused", "violations", "carried out")]  # fmt: skip
    rows.append(["near misses", near])
    if data["gold calls"]:
        rows += [[key, data[key]] for key in ("gold calls", "gold calls refused")]
    if "calls by users" in data:
        unmet = data["not admitted of these"]
        rows += [["calls by users", data["calls by users"]], ["not admitted of these", sum(unmet.values())]]
        rows += [[escaped(why), calls] for why, calls in unmet.items()]
    return table(["", ""], rows)


def _outcomes(data: dict[str, Any]) -> str:
    names = {
        "outcomes": "any violation", "outcomes by what was carried out": "one that was carried out",
        "outcomes by near misses": "a near miss",
    }  # fmt: skip
    result = [(words, data[key]) for key, words in names.items() if data[key]]
    if not result:
        return ""
    head = ["flagged by", "failed", "flagged", "solved", "flagged", "precision", "recall"]
    columns = ("failed", "failed flagged", "solved", "solved flagged", "precision", "recall")
    rows = [[words, *("" if one[key] is None else one[key] for key in columns)] for words, one in result]
    return f"<h2>Outcomes</h2>{table(head, rows)}"


def _conditions(data: dict[str, Any]) -> str:
    head = ["condition", "about", "line", "calls", "stopped by the tool", "near misses", "gold"]
    rows = [
        [
            escaped(row["why"]),
            row["kind"],
            row["line"] or "",
            row["calls"],
            row["failed"],
            row["near misses"],
            row["gold"],
        ]
        for row in data["refused by"]
    ]
    return f"<h2>Refused by</h2>{table(head, rows)}" if rows else ""


def _violation(one: Violation, record: RecordedConversation) -> str:
    arguments = one.verdict.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    fate = "not answered" if one.answer is None else "stopped by the tool" if one.failed else "carried out"
    marks = [fate, f"near miss: no {one.missing}" if one.missing else "", "gold" if one.gold else ""]
    if record.solved is not None:
        marks.append("solved" if record.solved else "failed")
    why = "".join(f"<li>{escaped(str(unmet))} {faint(escaped(unmet.kind))}</li>" for unmet in one.verdict.unmet)
    before = "".join(f"<p>{faint(escaped(who))} {escaped(_cut(said))}</p>" for who, said in _said(record, one.message))
    head = f"{escaped(one.conversation)}, message {one.message}: {code(one.verdict.name)}"
    return (
        f"<details><summary>{head} {faint(escaped(', '.join(filter(None, marks))))}</summary>{before}"
        f"<p>{code(_cut(text))}</p><ul>{why}</ul><p>{faint('answer')} {escaped(_cut(one.answer or ''))}</p></details>"
    )


def _said(record: RecordedConversation, number: int) -> Iterator[tuple[str, str]]:
    """The last texts before a message, with who said them; also what the user's own tools showed."""
    result: list[tuple[str, str]] = []
    for message in record.messages[:number]:
        for event in message_events(message):
            match event:
                case Said(text) if text:
                    result.append(("assistant", text))
                case Heard(text) | Answered(_, text, True) if text:
                    result.append(("user", text))
    yield from result[-_BEFORE:]


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} ..."
