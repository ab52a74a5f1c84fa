"""Findings as a person reads them: what, where with a caret, why, and the fix."""

from __future__ import annotations

import os
import sys
from textwrap import wrap
from unicodedata import combining, east_asian_width

from constrained.knowledge.lint import ERROR, NOTE, SEVERITIES, WARNING, Checked, Finding
from constrained.knowledge.report import counted

_COLOURS = {ERROR: "1;31", WARNING: "1;33", NOTE: "1;36", "bold": "1", "faint": "2"}
_WIDTH = 110
"""Characters of a line that are shown; of a longer one, those around the place."""

_MOST = 100
"""Findings of one file that are shown."""


class Paint:
    """Text in colours, or as it is."""

    def __init__(self, colours: bool):
        self._colours = colours

    @classmethod
    def for_stream(cls, stream=None) -> Paint:
        """Colours for a terminal, unless NO_COLOR is set (https://no-color.org)."""
        stream = stream or sys.stdout
        return cls(stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")

    def __call__(self, text: str, kind: str) -> str:
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self._colours else text


def finding_text(finding: Finding, checked: Checked, paint: Paint) -> str:
    """One finding, several lines."""
    lines = [f"{paint(f'{finding.severity}[{finding.code}]', finding.severity)}: {paint(finding.message, 'bold')}"]
    margin = " "
    if finding.place is None:
        lines.append(f"  {paint('-->', 'faint')} {checked.name}")
    else:
        place = finding.place
        number = str(place.line)
        margin = " " * len(number)
        lines.append(f"{margin} {paint('-->', 'faint')} {checked.name}:{place.line}:{place.column}")
        shown, at = _window(checked.line(place), place.column)
        length = max(1, min((place.end or place.column + 1) - place.column, len(shown) - at))
        before, under = _columns(shown[:at].ljust(at)), max(1, _columns(shown[at : at + length]))
        lines.append(f"{paint(number + ' |', 'faint')} {shown}")
        lines.append(f"{paint(margin + ' |', 'faint')} {' ' * before}{paint('^' * under, finding.severity)}")
    for label, words in (("why:", finding.why), ("fix:", finding.fix)):
        first, *more = wrap(words, _WIDTH - 8, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"{margin} {paint(label, 'faint')} {first}")
        lines += [f"{margin}      {line}" for line in more]
    return "\n".join(lines)


def _window(line: str, column: int) -> tuple[str, int]:
    """What is shown of a line, and how far in it the column is."""
    line = "".join(c if c.isprintable() else " " for c in line)
    at = column - 1
    if len(line) <= _WIDTH:
        return line, at
    first = max(0, min(at - _WIDTH // 2, len(line) - _WIDTH))
    cut = line[first : first + _WIDTH]
    return ("..." + cut[3:] if first else cut), at - first


def _columns(text: str) -> int:
    """How wide a terminal writes `text`."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def findings_text(checked: Checked, paint: Paint) -> str:
    """All of a file: its findings, the first of them if they are very many, and what is in it."""
    parts = [finding_text(finding, checked, paint) for finding in checked.findings[:_MOST]]
    left = len(checked.findings) - _MOST
    if left > 0:
        parts.append(f"and {left:,} more: --json has all of them")
    return "\n\n".join([*parts, summary(checked)])


def summary(checked: Checked) -> str:
    """What is in a file, and how many findings."""
    counts = [counted(checked.count(s), s) for s in SEVERITIES if checked.count(s)]
    parts = [f"{checked.name}: {', '.join(counts) or 'no findings'}"]
    if checked.knowledge is not None:
        graph = checked.knowledge.graph
        slots = sorted(checked.knowledge.slots)
        unbound = checked.grammar.unbound()
        ends = [name for name in graph.actions if name in graph.may_end]
        parts.append(f"{counted(len(graph.actions), 'action')}: {', '.join(graph.actions)}")
        after = "any of them" if len(ends) == len(graph.actions) else ", ".join(ends)
        parts.append(f"the plan may end after {after}" if ends else "the plan may end only before any action")
        if slots:
            parts.append(
                f"{counted(len(slots), 'slot')}: {', '.join(slots)}" + (" (bound at run time)" if unbound else "")
            )
        places = {name for pair in graph.choice_points() or () for name in pair}
        if places:
            parts.append(f"{counted(len(places), 'place')}: {', '.join(sorted(places))}")
    elif checked.grammar is not None:
        slots = sorted(checked.grammar.slots)
        parts.append("a grammar of texts, without actions (nothing is named _STEP)")
        if slots:
            parts.append(f"{counted(len(slots), 'slot')}: {', '.join(slots)}")
    return "\n  ".join(parts)
