"""HTML building blocks for notebook outputs: escaped, bounded in size, readable without a style sheet.

Some notebook hosts (code hosts, mail) strip style elements and leave plain tables, so the style sheet alone carries no
meaning. The blocks take plain data and import nothing of ours; every class with a `_repr_html_` is built from them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from unicodedata import category

MOST_ROWS = 100
"""Rows of a table. Of a longer one, the first four fifths and the last fifth are shown."""

MOST_CHARACTERS = 600
"""Characters of one text in a table."""

MOST_PICTURE = 200_000
"""Bytes of a picture; a larger one is left out, with a note."""

SYMBOLS = {"ok": "✓", "invalid": "✗", "misordered": "⇄", "error": "✗", "warning": "!", "note": "i"}
"""Shown before a verdict or severity, so that no meaning depends on colour alone."""

_STYLE = Path(__file__).parent / "pages" / "static" / "notebook.css"
_SCALE = 0.85  # pixels per unit of a picture: text of 13 units is then about as large as a notebook's
_SHORT = 40  # characters of an action that are kept on one line

# Inline: hosts have rules of their own for tables, and some strip every style sheet but theirs.
_NO_WRAP = ' style="white-space: nowrap"'
_LEFT, _RIGHT = 'style="text-align: left"', 'style="text-align: right"'


class Figure(str):
    """The text of a table cell that is aligned right."""


def output(*parts: str) -> str:
    """Return a whole notebook output: the parts with their style sheet (light and dark)."""
    style = _STYLE.read_text(encoding="utf-8")
    return f'<div class="constrained-output"><style>{style}</style>{"".join(parts)}</div>'


def escaped(text: str) -> str:
    """Convert text from elsewhere to HTML: escaped, without control characters, cut to `MOST_CHARACTERS`."""
    more = len(text) - MOST_CHARACTERS
    text = text[:MOST_CHARACTERS]
    clean = "".join(c if c in "\n\t" or category(c) not in ("Cc", "Cs") else "\ufffd" for c in text)
    html = escape(clean.strip("\n")).replace("\n", "<br>")
    return html + (f"… <em>({more:,} more characters)</em>" if more > 0 else "")


def code(text: str) -> str:
    """Return text in a fixed-width font, kept on one line if it is short; empty if `text` is."""
    return f"<code{_NO_WRAP if len(text) <= _SHORT else ''}>{escaped(text)}</code>" if text else ""


def excerpt(line: str, first: int, last: int) -> str:
    """Return a line of a file with characters `first` to `last` (excluded) marked, and at most 60 on either side."""
    before, marked, after = line[max(0, first - 60) : first].lstrip(), line[first:last], line[last : last + 60]
    return f"<code>{escaped(before)}<mark>{escaped(marked)}</mark>{escaped(after)}</code>"


def faint(html: str) -> str:
    """Return HTML in a fainter colour."""
    return f'<span class="faint">{html}</span>'


def paragraph(html: str) -> str:
    """Return a paragraph; empty if `html` is."""
    return f"<p>{html}</p>" if html else ""


def badge(word: str, reason: str = "") -> str:
    """Return a verdict or severity with its symbol and colour, the reason below it."""
    style = word if word in SYMBOLS else "faint"
    html = f'<span class="verdict {style}">{SYMBOLS.get(word, "")} {escaped(word)}</span>'
    return f"{html}<br>{faint(escaped(reason))}" if reason else html


def table(head: Sequence[str], rows: Sequence[Sequence[str | int]], headings: Mapping[int, str] | None = None) -> str:
    """Return a table that scrolls sideways.

    Parameters
    ----------
    head : sequence of str
        HTML of the column names.
    rows : sequence of sequences
        HTML of the cells; numbers and `Figure` are aligned right.
    headings : mapping of int to str, optional
        Row number -> text across the table before that row.
    """

    def across(html: str) -> str:
        return f'<tr><th class="part" colspan="{len(head)}" {_LEFT}>{html}</th></tr>'

    last = MOST_ROWS // 5
    cut = range(MOST_ROWS - last, len(rows) - last) if len(rows) > MOST_ROWS else range(0)
    lines = ["<tr>" + "".join(f'<th scope="col" {_LEFT}>{name}</th>' for name in head) + "</tr>"]
    for number, row in enumerate(rows):
        if number in cut:
            if number == cut.start:
                lines.append(across(f"{len(cut):,} rows are not shown here"))
            continue
        if headings and number in headings:
            lines.append(across(escaped(headings[number])))
        cells = (f"<td {_RIGHT if isinstance(cell, (int, Figure)) else _LEFT}>{cell}</td>" for cell in row)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def picture(svg: str, alt: str) -> str:
    """Return an SVG drawing as an image: hosts that strip styles keep it, and it follows the notebook's theme."""
    data = svg.encode()
    size = re.search(r'viewBox="0 0 (\S+) ', svg)
    if len(data) > MOST_PICTURE or size is None:
        return paragraph(faint(f"The picture is left out: {len(data):,} bytes. to_svg() has it."))
    source = f"data:image/svg+xml;base64,{b64encode(data).decode()}"
    return f'<img alt="{escape(alt)}" width="{round(_SCALE * float(size[1]))}" src="{source}">'
