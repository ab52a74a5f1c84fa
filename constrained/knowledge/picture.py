"""Pictures of the action graph: Mermaid text, and SVG without a drawing package.

An SVG shows choice points in a row, or groups of actions on a circle; if neither would be readable, a table of dots.
Pages find the elements by their ``data-`` attributes, which hold the names of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import combinations
from math import atan2, cos, hypot, pi, sin

from constrained import html
from constrained.knowledge.action_graph import START, ActionGraph, ActionGroup
from constrained.knowledge.description import successors
from constrained.knowledge.report import counted

CHAR = 7.9
"""Advance of the 13 px monospaced label."""

_LINE = 16
"""Height of a line of names."""

_CELL = 20
"""Side of a table's cell."""

_END = "(end)"

_MAX_BOXES = 8
_MAX_ARROWS = 24
"""With more boxes or arrows, a picture is a tangle, and the graph is drawn as a table."""

# Mermaid's keywords in a flowchart; and "start", so that the start differs from an action of that name.
_RESERVED = frozenset(
    "start end graph flowchart subgraph direction style class click call href default interpolate".split()
)

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Action graph of {name}">
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

Point = tuple[float, float]
Curve = tuple[Point, Point, Point]
"""Start, control and end of a quadratic Bezier."""


def to_mermaid(graph: ActionGraph) -> str:
    """The graph as a Mermaid flowchart: choice points with actions on the arrows, or actions as boxes.

    Actions with the same predecessors and successors share a box.
    """
    lines = ["flowchart LR"]
    points = graph.choice_points()
    if points:
        for name in dict.fromkeys(name for pair in points for name in pair):
            lines.append(f'    {_mermaid_id(name)}(["{name}"])')
        for (source, target), actions in points.items():
            lines.append(f'    {_mermaid_id(source)} -- "{"<br/>".join(actions)}" --> {_mermaid_id(target)}')
        return "\n".join(lines) + "\n"
    groups = graph.groups()
    for group in groups:
        label, ends = "<br/>".join(group), group[0] in graph.may_end
        shape = f'(["{label}"])' if group == (START,) else f'[["{label}"]]' if ends else f'["{label}"]'
        lines.append(f"    {_mermaid_id(group[0])}{shape}")
    for group, after in groups.items():
        lines.extend(f"    {_mermaid_id(group[0])} --> {_mermaid_id(successor[0])}" for successor in after)
    return "\n".join(lines) + "\n"


def _mermaid_id(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def to_svg(name: str, graph: ActionGraph, comments: Mapping[str, str], matrix: bool = False) -> str:
    """The graph as a standalone SVG.

    Actions that a plan may end with have a double border. Actions with the same predecessors and successors share a
    box. With `matrix`, or if boxes and arrows would not be readable, the picture is a table.
    """
    points = graph.choice_points()
    drawn = None if matrix else _row(points, comments) if points else _circle(graph, comments)
    width, height, parts = drawn or _matrix(graph, comments)
    return "\n".join([_HEAD.format(width=round(width), height=round(height), name=escape(name)), *parts, "</svg>\n"])


Drawing = tuple[float, float, list[str]]
"""Width, height, and the elements."""


def _row(points: Mapping[tuple[str, str], list[str]], comments: Mapping[str, str]) -> Drawing | None:
    """Choice points in a row with actions on the arrows; None if there are too many, or labels would overlap."""
    if len(points) > _MAX_ARROWS:
        return None
    # Room for the labels decides the distances: above the row for arrows to the right, below for those back.
    names = list(dict.fromkeys(name for pair in points for name in pair))
    number = {name: i for i, name in enumerate(names)}
    half = {name: max(26, len(name) * CHAR / 2 + 14) for name in names}
    above = max((len(actions) for (s, t), actions in points.items() if number[t] > number[s]), default=0)
    below = max(len(actions) for actions in points.values())
    longest = max((len(action) for actions in points.values() for action in actions), default=0)
    gap, y = max(260, round(longest * CHAR) * 2), 60 + 44 * (len(names) - 2 if len(names) > 2 else 0) + 16 * above
    edge = round(max(110, longest * CHAR / 2 + 20))
    x_of = {name: edge + gap * i for i, name in enumerate(names)}
    parts: list[str] = []
    labels: list[tuple[str, float, float]] = []
    curves: list[Curve] = []
    for (source, target), actions in points.items():
        x1, x2 = x_of[source], x_of[target]
        # An arrow is a loop below the box, an arc above the row, or an arc back below it.
        if source == target:
            path = f"M{x1 - 12},{y + 18} C{x1 - 34},{y + 62} {x1 + 34},{y + 62} {x1 + 12},{y + 18}"
            x, first = float(x1), y + 66
        else:
            side = -1 if x2 > x1 else 1  # there above, back below
            peak = y + side * 44 * abs(number[source] - number[target])
            start, end = x1 + half[source] * -side * 0.6, x2 - half[target] * -side * 0.6
            curves.append(((start, y + side * 17), ((x1 + x2) / 2, peak + side * 20), (end, y + side * 18)))
            path = _path(curves[-1])
            x, first = (x1 + x2) / 2, peak - 8 - 16 * (len(actions) - 1) if side < 0 else peak + 16
        parts.append(_arrow(path, [source], [target]))
        ends = _data(source=[source], target=[target])
        for i, action in enumerate(actions):
            labels.append((action, x, first + 16 * i))
            parts.append(_text(action, x, first + 16 * i, comments, ends + _data(action=[action])))
    crossed = any(_crosses(c, (x, y - 4), (len(text) * CHAR / 2, 4)) for c in curves for text, x, y in labels)
    if crossed or _overlap([*((name, float(x_of[name]), float(y)) for name in names), *labels]):
        return None
    for name in names:
        hook = _data(place=[name])
        parts.append(_box(x_of[name], y, half[name], 16, "start" if name == START else "action", hook))
        parts.append(_text(name, x_of[name], y + 4.5, comments, hook))
    return 2 * edge + gap * (len(names) - 1), y + 90 + 44 * (len(names) - 1) + 16 * below, parts


def _overlap(labels: Sequence[tuple[str, float, float]]) -> bool:
    """Whether two labels (text, x, y) overlap."""
    return any(
        abs(y1 - y2) < _LINE - 2 and abs(x1 - x2) < (len(first) + len(second)) * CHAR / 2
        for (first, x1, y1), (second, x2, y2) in combinations(labels, 2)
    )


def _circle(graph: ActionGraph, comments: Mapping[str, str]) -> Drawing | None:
    """Groups of actions on a circle; None if there are too many."""
    arrows = graph.groups()
    if len(arrows) > _MAX_BOXES or sum(map(len, arrows.values())) > _MAX_ARROWS:
        return None
    # Half the sides of each box; the circle grows until the arrows between neighbours have room.
    half = {group: (max(map(len, group)) * CHAR / 2 + 14, len(group) * _LINE / 2 + 8) for group in arrows}
    radius = 110.0
    while _crowded(at := _around(list(arrows), radius), half):
        radius += 10
    margin = 76.0  # room for the arrows from an action to itself
    left = min(at[g][0] - half[g][0] for g in arrows) - margin
    top = min(at[g][1] - half[g][1] for g in arrows) - margin
    at = {group: (x - left, y - top) for group, (x, y) in at.items()}
    # Arrows first, so that boxes cover their ends. An arrow that passes under a box could be misread: no picture then.
    parts = []
    for group, after in arrows.items():
        for successor in after:
            if successor == group:
                path = _loop(at[group], half[group], (-left, -top))
            else:
                curve = _between(at[group], at[successor], half[group], half[successor], group in arrows[successor])
                if any(_crosses(curve, at[box], half[box]) for box in arrows if box not in (group, successor)):
                    return None
                path = _path(curve)
            parts.append(_arrow(path, group, successor))
    for group in arrows:
        (x, y), (wide, tall) = at[group], half[group]
        kind = "start" if group == (START,) else "action"
        parts.append(_box(x, y, wide, tall, kind, _data(action=group)))
        if group[0] in graph.may_end:
            parts.append(_box(x, y, wide - 4, tall - 4, kind))
        first = y - _LINE * (len(group) - 1) / 2 + 4.5
        parts += [_text(a, x, first + _LINE * i, comments, _data(action=[a])) for i, a in enumerate(group)]
    # The picture is as large as the boxes, with room for loops.
    width = max(at[g][0] + half[g][0] for g in arrows) + margin
    height = max(at[g][1] + half[g][1] for g in arrows) + margin
    return width, height, parts


def _around(groups: Sequence[ActionGroup], radius: float) -> dict[ActionGroup, Point]:
    angles = (2 * pi * i / len(groups) - pi / 2 for i in range(len(groups)))
    return {group: (radius * cos(angle), radius * sin(angle)) for group, angle in zip(groups, angles)}


def _crowded(at: Mapping[ActionGroup, Point], half: Mapping[ActionGroup, Point]) -> bool:
    """Whether two boxes leave too little room for an arrow between them."""
    return any(
        abs(at[a][0] - at[b][0]) < half[a][0] + half[b][0] + 36
        and abs(at[a][1] - at[b][1]) < half[a][1] + half[b][1] + 36
        for a, b in combinations(at, 2)
    )


def _matrix(graph: ActionGraph, comments: Mapping[str, str]) -> Drawing:
    """A row for each action, a column for each action that may follow it, and a last column for the plan's end."""
    rows, columns = list(graph.rules), [*graph.actions, _END]
    left = 20 + round(max(map(len, rows)) * CHAR)
    top = 20 + round(max(map(len, columns)) * CHAR)
    width, height = left + _CELL * len(columns) + 16, top + _CELL * len(rows) + 16
    # Names of rows with a band behind every second, names of columns with a line every five, then the dots.
    parts = []
    for i, name in enumerate(rows):
        y = top + _CELL * i
        if i % 2 == 0:
            parts.append(f'<rect class="band" x="4" y="{y}" width="{width - 8}" height="{_CELL}"/>')
        at = f'class="row" x="{left - 8}" y="{y + 14.5}"{_data(action=[name])}'
        parts.append(f"<text {at}>{escape(name)}{_tip(comments.get(name) or name)}</text>")
    for j, name in enumerate(columns):
        x = left + _CELL * j + _CELL / 2
        hook = _data(action=[name]) if name != _END else ""
        at = f'class="column" x="{x}" y="{top - 3.5}" transform="rotate(-90 {x} {top - 8})"{hook}'
        parts.append(f"<text {at}>{escape(name)}{_tip(comments.get(name) or name)}</text>")
        if j % 5 == 0 and j:
            parts.append(f'<path class="rule" d="M{x - _CELL / 2},{top} V{height - 16}"/>')
    for i, name in enumerate(rows):
        for j, column in enumerate(columns):
            if column in graph.rules[name] or (column == _END and name in graph.may_end):
                kind = "end" if column == _END else "start" if name == START else "dot"
                at = f'cx="{left + _CELL * j + _CELL / 2}" cy="{top + _CELL * i + _CELL / 2}"'
                ends = _data(source=[name], target=[column])
                tip = _tip(f"{name} -> {column}")
                parts.append(f'<circle class="{kind}" {at} r="5.5"{ends}>{tip}</circle>')
    return width, height, parts


# elements


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _data(
    *, action: Iterable[str] = (), place: Iterable[str] = (), source: Iterable[str] = (), target: Iterable[str] = ()
) -> str:
    """The attributes that tell a page what an element stands for: names of rules, separated by spaces."""
    names = {"data-action": action, "data-place": place, "data-from": source, "data-to": target}
    return "".join(f' {key}="{escape(" ".join(value))}"' for key, value in names.items() if value)


def _arrow(path: str, source: Sequence[str], target: Sequence[str]) -> str:
    tip = _tip(f"{', '.join(source)} -> {', '.join(target)}")
    return f'<path d="{path}"{_data(source=source, target=target)}>{tip}</path>'


def _text(name: str, x: float, y: float, comments: Mapping[str, str], hook: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{hook}>{escape(name)}{_tip(comments.get(name) or name)}</text>'


def _box(x: float, y: float, wide: float, tall: float, kind: str, hook: str = "") -> str:
    """A box around (x, y); `wide` and `tall` are half its sides."""
    at = f'x="{x - wide:.1f}" y="{y - tall:.1f}" width="{2 * wide:.1f}" height="{2 * tall:.1f}"'
    return f'<rect class="{kind}" {at} rx="9"{hook}/>'


# curves


def _path(curve: Curve) -> str:
    (x1, y1), (x2, y2), (x3, y3) = curve
    return f"M{x1:.1f},{y1:.1f} Q{x2:.1f},{y2:.1f} {x3:.1f},{y3:.1f}"


def _between(a: Point, b: Point, half_a: Point, half_b: Point, mutual: bool) -> Curve:
    """The arrow from the edge of a box to the edge of another; curved if there is also an arrow back."""
    middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    length = hypot(b[0] - a[0], b[1] - a[1]) or 1
    bend = 0.12 if mutual else 0.0
    normal = ((b[1] - a[1]) / length, -(b[0] - a[0]) / length)
    control = (middle[0] + normal[0] * length * bend, middle[1] + normal[1] * length * bend)
    return _edge(a, half_a, control), control, _edge(b, half_b, control)


def _edge(at: Point, half: Point, towards: Point) -> Point:
    """The point on a box's edge towards another point."""
    dx, dy = towards[0] - at[0], towards[1] - at[1]
    scale = min((half[0] + 2) / abs(dx) if dx else 1e9, (half[1] + 2) / abs(dy) if dy else 1e9, 1)
    return at[0] + dx * scale, at[1] + dy * scale


def _crosses(curve: Curve, at: Point, half: Point) -> bool:
    """Whether an arrow would pass under a box."""
    for step in range(21):
        t = step / 20
        x, y = ((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r for p, q, r in zip(*curve))
        if abs(x - at[0]) < half[0] + 3 and abs(y - at[1]) < half[1] + 3:
            return True
    return False


def _loop(at: Point, half: Point, centre: Point) -> str:
    """The arrow from a box to itself, on the side that faces outwards."""
    angle = atan2(at[1] - centre[1], at[0] - centre[0])
    x, y = at
    if abs(cos(angle)) > 0.5:  # left or right
        x, out = (x + half[0] + 2, 46) if cos(angle) > 0 else (x - half[0] - 2, -46)
        return f"M{x:.1f},{y - 9:.1f} C{x + out:.1f},{y - 26:.1f} {x + out:.1f},{y + 26:.1f} {x:.1f},{y + 9:.1f}"
    y, out = (y + half[1] + 2, 46) if sin(angle) > 0 else (y - half[1] - 2, -46)
    return f"M{x - 9:.1f},{y:.1f} C{x - 26:.1f},{y + out:.1f} {x + 26:.1f},{y + out:.1f} {x + 9:.1f},{y:.1f}"


def to_html(
    name: str,
    graph: ActionGraph,
    comments: Mapping[str, str],
    bound: Sequence[str],
    unbound: Sequence[str],
    path: Sequence[str],
) -> str:
    """Action knowledge as a notebook shows it: the graph, then each action with its definition and successors."""
    rows = [
        [html.code(action), html.escaped(comments.get(action, "")), html.escaped(successors(graph, action))]
        for action in graph.actions
    ]
    facts = [
        f"<strong>{html.escaped(name)}</strong>: {counted(len(rows), 'action')}",
        html.escaped(comments.get(START, "")),
        f"first: {html.escaped(successors(graph, START))}",
        f"slots with values: {html.escaped(', '.join(bound))}" if bound else "",
        f"slots to be bound: {html.escaped(', '.join(unbound))}" if unbound else "",
        f"so far: {' → '.join(map(html.code, path[-3:]))}" if path else "",
    ]
    picture = html.picture(to_svg(name, graph, comments), f"Action graph of {name}")
    return html.output(*map(html.paragraph, facts), picture, html.table(["action", "definition", "then"], rows))
