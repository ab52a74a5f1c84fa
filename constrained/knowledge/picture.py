"""The picture of the action graph: Mermaid text, and SVG without any drawing package."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import atan2, cos, hypot, pi, sin

from constrained.knowledge.action_graph import START, groups

_LINE = 16
"""Height of a line of names."""
_MOST_BOXES = 8
_MOST_ARROWS = 24
"""A picture with more is a tangle: then the graph is a table."""

# words that Mermaid reads as its own in a flowchart; "start" is no action, and set apart from them
_RESERVED = frozenset(
    "start end graph flowchart subgraph direction style class click call href default interpolate".split()
)

Point = "tuple[float, float]"


def to_mermaid(knowledge) -> str:
    """The graph as a Mermaid flowchart: actions as boxes, or places with actions on the arrows.

    Actions that come after the same ones and before the same ones share a box.
    """
    lines = ["flowchart LR"]
    places = knowledge.graph.places()
    if places:
        for name in dict.fromkeys(name for pair in places for name in pair):
            lines.append(f'    {_id(name)}(["{name}"])')
        for (source, target), actions in places.items():
            lines.append(f'    {_id(source)} -- "{"<br/>".join(actions)}" --> {_id(target)}')
        return "\n".join(lines) + "\n"
    arrows = groups(knowledge.graph)
    for group in arrows:
        label, ends = "<br/>".join(group), group[0] in knowledge.graph.may_end
        shape = f'(["{label}"])' if group == (START,) else f'[["{label}"]]' if ends else f'["{label}"]'
        lines.append(f"    {_id(group[0])}{shape}")
    for group, after in arrows.items():
        lines.extend(f"    {_id(group[0])} --> {_id(other[0])}" for other in after)
    return "\n".join(lines) + "\n"


def to_svg(knowledge, matrix: bool = False) -> str:
    """The graph as a standalone SVG.

    Where the file names places (rules that choose between actions), they stand in a row and
    the actions on the arrows between them; else the actions stand on a circle, those that come
    after the same ones and before the same ones in one box. Actions that a plan may end with
    have a double border. Where neither would be readable, or with `matrix`, it is a table:
    what may follow is a dot in a row.
    """
    places = knowledge.graph.places()
    picture = None if matrix else _row(knowledge, places) if places else _circle(knowledge)
    return picture or matrix_svg(knowledge)


def _row(knowledge, places: dict) -> str | None:
    """Places in a row; None if there are too many, or labels would overlap."""
    if len(places) > _MOST_ARROWS:
        return None
    names = list(dict.fromkeys(name for pair in places for name in pair))
    half = {name: max(26, len(name) * CHAR / 2 + 14) for name in names}
    above = max((len(a) for (s, t), a in places.items() if names.index(t) > names.index(s)), default=0)
    below = max(len(actions) for actions in places.values())
    longest = max((len(action) for actions in places.values() for action in actions), default=0)
    gap, top = max(260, round(longest * CHAR) * 2), 60 + 44 * (len(names) - 2 if len(names) > 2 else 0) + 16 * above
    edge = round(max(110, longest * CHAR / 2 + 20))
    at = {name: (edge + gap * i, top) for i, name in enumerate(names)}
    width, height = 2 * edge + gap * (len(names) - 1), top + 90 + 44 * (len(names) - 1) + 16 * below
    parts = [head(width, height, knowledge.name)]
    labels: list[tuple[str, float, float]] = [(name, *at[name]) for name in names]
    curves = []
    for (source, target), actions in places.items():
        (x1, y1), (x2, y2) = at[source], at[target]
        tip = f"<title>{escape(source)} -&gt; {escape(target)}</title>"
        if source == target:
            path = f"M{x1 - 12},{y1 + 18} C{x1 - 34},{y1 + 62} {x1 + 34},{y1 + 62} {x1 + 12},{y1 + 18}"
            x, first = x1, y1 + 66
        else:
            side = -1 if x2 > x1 else 1  # there above, back below
            peak = y1 + side * 44 * abs(names.index(source) - names.index(target))
            start, end = x1 + half[source] * -side * 0.6, x2 - half[target] * -side * 0.6
            curves.append(((start, y1 + side * 17), ((x1 + x2) / 2, peak + side * 20), (end, y2 + side * 18)))
            path = _curve(*curves[-1])
            x, first = (x1 + x2) / 2, peak - 8 - 16 * (len(actions) - 1) if side < 0 else peak + 16
        ends = about(source=[source], target=[target])
        parts.append(f'<path d="{path}"{ends}>{tip}</path>')
        labels += [(action, x, first + 16 * i) for i, action in enumerate(actions)]
        parts += [_text(knowledge, a, x, first + 16 * i, ends + about(action=[a])) for i, a in enumerate(actions)]
    crossed = (
        _touches(curve, (x, y - 4), (len(text) * CHAR / 2, 4))
        for curve in curves
        for text, x, y in labels[len(names) :]
    )
    if _overlap(labels) or any(crossed):
        return None
    for name in names:
        x, y = at[name]
        hook = about(place=[name])
        parts.append(_box(x, y, half[name], 16, "start" if name == START else "action", hook))
        parts.append(_text(knowledge, name, x, y + 4.5, hook))
    return "\n".join([*parts, "</svg>\n"])


def _overlap(labels: list[tuple[str, float, float]]) -> bool:
    """Whether any two of the (text, x, y) would be written over each other."""
    return any(
        abs(y - v) < _LINE - 2 and abs(x - u) < (len(text) + len(other)) * CHAR / 2
        for i, (text, x, y) in enumerate(labels)
        for other, u, v in labels[:i]
    )


def _circle(knowledge) -> str | None:
    """Groups of actions on a circle; None if there is too much of them."""
    arrows = groups(knowledge.graph)
    if len(arrows) > _MOST_BOXES or sum(map(len, arrows.values())) > _MOST_ARROWS:
        return None
    half = {group: (max(map(len, group)) * CHAR / 2 + 14, len(group) * _LINE / 2 + 8) for group in arrows}
    ring = 110.0
    while _crowded(at := _around(list(arrows), ring), half):
        ring += 10
    margin = 76.0  # room for the arrows from an action to itself
    left = min(at[g][0] - half[g][0] for g in arrows) - margin
    top = min(at[g][1] - half[g][1] for g in arrows) - margin
    at = {group: (x - left, y - top) for group, (x, y) in at.items()}
    centre = -left, -top
    width = max(at[g][0] + half[g][0] for g in arrows) + margin
    height = max(at[g][1] + half[g][1] for g in arrows) + margin
    parts = [head(width, height, knowledge.name)]
    for group, after in arrows.items():
        for other in after:
            if other == group:
                path = _loop(at[group], half[group], centre)
            else:
                curve = _arrow(at[group], at[other], half[group], half[other], group in arrows[other])
                if any(_touches(curve, at[box], half[box]) for box in arrows if box not in (group, other)):
                    return None
                path = _curve(*curve)
            tip = f"<title>{escape(', '.join(group))} -&gt; {escape(', '.join(other))}</title>"
            parts.append(f'<path d="{path}"{about(source=group, target=other)}>{tip}</path>')
    for group in arrows:
        (x, y), (wide, tall) = at[group], half[group]
        kind = "start" if group == (START,) else "action"
        parts.append(_box(x, y, wide, tall, kind, about(action=group)))
        if group[0] in knowledge.graph.may_end:
            parts.append(_box(x, y, wide - 4, tall - 4, kind))
        first = y - _LINE * (len(group) - 1) / 2 + 4.5
        parts += [_text(knowledge, name, x, first + _LINE * i, about(action=[name])) for i, name in enumerate(group)]
    return "\n".join([*parts, "</svg>\n"])


def _around(names: list, ring: float) -> dict:
    angles = (2 * pi * i / len(names) - pi / 2 for i in range(len(names)))
    return {name: (ring * cos(angle), ring * sin(angle)) for name, angle in zip(names, angles)}


def _crowded(at: dict, half: dict) -> bool:
    """Whether two boxes are closer than an arrow needs."""
    names = list(at)
    return any(
        abs(at[a][0] - at[b][0]) < half[a][0] + half[b][0] + 36
        and abs(at[a][1] - at[b][1]) < half[a][1] + half[b][1] + 36
        for i, a in enumerate(names)
        for b in names[:i]
    )


def _id(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _text(knowledge, name: str, x: float, y: float, hook: str) -> str:
    tip = f"<title>{escape(knowledge.comments.get(name) or name)}</title>"
    return f'<text x="{x:.1f}" y="{y:.1f}"{hook}>{escape(name)}{tip}</text>'


def _box(x: float, y: float, wide: float, tall: float, kind: str, hook: str = "") -> str:
    place = f'x="{x - wide:.1f}" y="{y - tall:.1f}" width="{2 * wide:.1f}" height="{2 * tall:.1f}"'
    return f'<rect class="{kind}" {place} rx="9"{hook}/>'


def _edge_of_box(at: Point, half: Point, towards: Point) -> Point:
    dx, dy = towards[0] - at[0], towards[1] - at[1]
    scale = min((half[0] + 2) / abs(dx) if dx else 1e9, (half[1] + 2) / abs(dy) if dy else 1e9, 1)
    return at[0] + dx * scale, at[1] + dy * scale


def _arrow(a: Point, b: Point, half_a: Point, half_b: Point, mutual: bool) -> tuple:
    """Start, control and end of the curve (a quadratic Bezier) from one box to another."""
    mid = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    length = hypot(b[0] - a[0], b[1] - a[1]) or 1
    bend = 0.12 if mutual else 0.0  # so that there and back are two lines
    normal = ((b[1] - a[1]) / length, -(b[0] - a[0]) / length)
    control = (mid[0] + normal[0] * length * bend, mid[1] + normal[1] * length * bend)
    return _edge_of_box(a, half_a, control), control, _edge_of_box(b, half_b, control)


def _curve(start: Point, control: Point, end: Point) -> str:
    return f"M{start[0]:.1f},{start[1]:.1f} Q{control[0]:.1f},{control[1]:.1f} {end[0]:.1f},{end[1]:.1f}"


def _touches(curve: tuple, at: Point, half: Point) -> bool:
    """Whether an arrow would pass under a box."""
    for step in range(21):
        t = step / 20
        x, y = ((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r for p, q, r in zip(*curve))
        if abs(x - at[0]) < half[0] + 3 and abs(y - at[1]) < half[1] + 3:
            return True
    return False


def _loop(at: Point, half: Point, centre: Point) -> str:
    """From a box to itself, on the side away from the middle of the circle."""
    angle = atan2(at[1] - centre[1], at[0] - centre[0])
    if abs(cos(angle)) > 0.5:  # left or right
        x, out = (at[0] + half[0] + 2, 46) if cos(angle) > 0 else (at[0] - half[0] - 2, -46)
        y = at[1]
        return f"M{x:.1f},{y - 9:.1f} C{x + out:.1f},{y - 26:.1f} {x + out:.1f},{y + 26:.1f} {x:.1f},{y + 9:.1f}"
    y, out = (at[1] + half[1] + 2, 46) if sin(angle) > 0 else (at[1] - half[1] - 2, -46)
    x = at[0]
    return f"M{x - 9:.1f},{y:.1f} C{x - 26:.1f},{y + out:.1f} {x + 26:.1f},{y + out:.1f} {x + 9:.1f},{y:.1f}"


CHAR = 7.9
"""Advance of the 13 px monospaced label."""

_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Action graph of {name}">
<style>
  :root {{ color: #1b1f24; background: #ffffff }}
  text {{ font: 13px ui-monospace, Menlo, Consolas, monospace; text-anchor: middle; fill: currentColor }}
  text.row {{ text-anchor: end }} text.column {{ text-anchor: start }}
  rect {{ stroke: currentColor; stroke-width: 1.3; fill: #eef3fb }}
  rect.start {{ fill: #d9efdc }} rect.band {{ stroke: none }}
  circle {{ fill: #3566a8 }} circle.start {{ fill: #2f8f46 }} circle.end {{ fill: #b4532a }}
  path {{ fill: none; stroke: currentColor; stroke-opacity: .5; stroke-width: 1.2; marker-end: url(#tip) }}
  path.rule {{ stroke-opacity: .15; marker-end: none }}
  @media (prefers-color-scheme: dark) {{
    :root {{ color: #e6e9ee; background: #14171c }}
    rect {{ fill: #222a36 }} rect.start {{ fill: #1f3a27 }}
    circle {{ fill: #8fb8f0 }} circle.start {{ fill: #7fd196 }} circle.end {{ fill: #f0a27f }}
  }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<polygon points="0,0 8,4 0,8" fill="currentColor"/></marker></defs>"""


def head(width: float, height: float, name: str) -> str:
    """The picture's beginning, with its styles."""
    return _HEAD.format(width=round(width), height=round(height), name=escape(name))


def about(
    *, action: Sequence[str] = (), place: Sequence[str] = (), source: Sequence[str] = (), target: Sequence[str] = ()
) -> str:
    """Attributes that tell a page what an element stands for: names of rules, a blank between them."""
    names = {"data-action": action, "data-place": place, "data-from": source, "data-to": target}
    return "".join(f' {key}="{escape(" ".join(value))}"' for key, value in names.items() if value)


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
