"""The action graph as a table of dots: readable however many actions and arrows there are."""

from __future__ import annotations

from html import escape

from constrained.knowledge.graph import START
from constrained.knowledge.svg import CHAR, about, head

_CELL = 20
_END = "(end)"


def matrix_svg(knowledge) -> str:
    """A row for what comes first, a column for what may follow; the last column: the plan may end."""
    rules, may_end, comments = knowledge.graph.rules, knowledge.graph.may_end, knowledge.comments
    rows, columns = list(rules), [*knowledge.graph.actions, _END]
    left = 20 + round(max(map(len, rows)) * CHAR)
    top = 20 + round(max(map(len, columns)) * CHAR)
    width, height = left + _CELL * len(columns) + 16, top + _CELL * len(rows) + 16
    parts = [head(width, height, knowledge.name)]
    for i, name in enumerate(rows):
        y = top + _CELL * i
        if i % 2 == 0:
            parts.append(f'<rect class="band" x="4" y="{y}" width="{width - 8}" height="{_CELL}"/>')
        tip = f"<title>{escape(comments.get(name) or name)}</title>"
        parts.append(
            f'<text class="row" x="{left - 8}" y="{y + 14.5}"{about(action=[name])}>{escape(name)}{tip}</text>'
        )
    for j, name in enumerate(columns):
        x = left + _CELL * j + _CELL / 2
        tip = f"<title>{escape(comments.get(name) or name)}</title>"
        hook = about(action=[name]) if name != _END else ""
        turned = f'transform="rotate(-90 {x} {top - 8})"'
        parts.append(f'<text class="column" x="{x}" y="{top - 3.5}" {turned}{hook}>{escape(name)}{tip}</text>')
        if j % 5 == 0 and j:
            parts.append(f'<path class="rule" d="M{x - _CELL / 2},{top} V{height - 16}"/>')
    for i, name in enumerate(rows):
        for j, other in enumerate(columns):
            if other in rules[name] or (other == _END and name in may_end):
                kind = "end" if other == _END else "start" if name == START else "dot"
                x, y = left + _CELL * j + _CELL / 2, top + _CELL * i + _CELL / 2
                tip = f"<title>{escape(name)} -&gt; {escape(other)}</title>"
                ends = about(source=[name], target=[other])
                parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="5.5"{ends}>{tip}</circle>')
    return "\n".join([*parts, "</svg>\n"])
