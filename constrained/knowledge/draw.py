"""The picture of the action graph: Mermaid text, and SVG without any drawing package."""

from __future__ import annotations

from html import escape
from math import atan2, cos, hypot, pi, sin

from constrained.knowledge.graph import START

_RADIUS = 26
_CHAR = 7.6  # advance of the 13 px monospaced label
# words that Mermaid reads as its own in a flowchart; "start" is no action, and set apart from them
_RESERVED = frozenset(
    "start end graph flowchart subgraph direction style class click call href default interpolate".split()
)


def to_mermaid(knowledge) -> str:
    """The graph as a Mermaid flowchart: actions as boxes, or places with actions on the arrows."""
    rules, may_end = knowledge.graph.rules, knowledge.graph.may_end
    lines = ["flowchart LR"]
    places = knowledge.graph.places()
    if places:
        for name in dict.fromkeys(name for pair in places for name in pair):
            lines.append(f'    {_id(name)}(["{name}"])')
        for (source, target), actions in places.items():
            lines.append(f'    {_id(source)} -- "{"<br/>".join(actions)}" --> {_id(target)}')
        return "\n".join(lines) + "\n"
    for name in rules:
        shape = f'(["{name}"])' if name == START else f'[["{name}"]]' if name in may_end else f'["{name}"]'
        lines.append(f"    {_id(name)}{shape}")
    for name, after in rules.items():
        lines.extend(f"    {_id(name)} --> {_id(other)}" for other in after)
    return "\n".join(lines) + "\n"


def to_svg(knowledge) -> str:
    """The graph as a standalone SVG.

    Where the file names places (rules that choose between actions), they stand in a row and
    the actions on the arrows between them; else the actions stand on a circle. Actions that
    a plan may end with have a double border.
    """
    places = knowledge.graph.places()
    return _row(knowledge, places) if places else _circle(knowledge)


def _row(knowledge, places: dict) -> str:
    names = list(dict.fromkeys(name for pair in places for name in pair))
    half = {name: max(_RADIUS, len(name) * _CHAR / 2 + 14) for name in names}
    above = max((len(a) for (s, t), a in places.items() if names.index(t) > names.index(s)), default=0)
    below = max(len(actions) for actions in places.values())
    gap, top = 260, 60 + 44 * (len(names) - 2 if len(names) > 2 else 0) + 16 * above
    at = {name: (110 + gap * i, top) for i, name in enumerate(names)}
    width, height = 220 + gap * (len(names) - 1), top + 90 + 16 * below
    parts = [_HEAD.format(width=width, height=height, name=escape(knowledge.name))]
    for (source, target), actions in places.items():
        (x1, y1), (x2, y2) = at[source], at[target]
        if source == target:
            parts.append(
                f'<path d="M{x1 - 12},{y1 + 18} C{x1 - 34},{y1 + 62} {x1 + 34},{y1 + 62} {x1 + 12},{y1 + 18}"/>'
            )
            parts.append(_labels(knowledge, actions, x1, y1 + 66))
            continue
        side = -1 if x2 > x1 else 1  # there above, back below
        reach = abs(names.index(source) - names.index(target))
        peak = y1 + side * 44 * reach
        start, end = x1 + half[source] * -side * 0.6, x2 - half[target] * -side * 0.6
        parts.append(f'<path d="M{start:.1f},{y1 + side * 17} Q{(x1 + x2) / 2},{peak + side * 20} {end:.1f},{y2 + side * 18}"/>')
        first = peak - 8 - 16 * (len(actions) - 1) if side < 0 else peak + 16
        parts.append(_labels(knowledge, actions, (x1 + x2) / 2, first))
    for name in names:
        x, y = at[name]
        parts.append(_box(x, y, half[name], "start" if name == START else "action"))
        tip = f"<title>{escape(knowledge.comments.get(name, name))}</title>"
        parts.append(f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{escape(name)}{tip}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _labels(knowledge, actions: list[str], x: float, y: float) -> str:
    return "\n".join(
        f'<text x="{x:.1f}" y="{y + 16 * i:.1f}">{escape(a)}<title>{escape(knowledge.comments.get(a, a))}</title></text>'
        for i, a in enumerate(actions)
    )


def _circle(knowledge) -> str:
    rules, may_end = knowledge.graph.rules, knowledge.graph.may_end
    names = list(rules)
    ring = max(130.0, len(names) * 34.0)
    half = {name: max(_RADIUS, len(name) * _CHAR / 2 + 12) for name in names}
    margin = max(half.values()) + 30
    size = 2 * (ring + margin)
    centre = size / 2
    at = {}
    for i, name in enumerate(names):
        angle = 2 * pi * i / len(names) - pi / 2
        at[name] = (centre + ring * cos(angle), centre + ring * sin(angle))
    parts = [_HEAD.format(width=round(size), height=round(size), name=escape(knowledge.name))]
    for name, after in rules.items():
        for other in after:
            if other == name:
                parts.append(_loop(at[name], centre))
            else:
                parts.append(_arrow(at[name], at[other], half[name], half[other], name in rules[other]))
    for name in names:
        x, y = at[name]
        kind = "start" if name == START else "action"
        parts.append(_box(x, y, half[name], kind))
        if name in may_end:
            parts.append(_box(x, y, half[name] - 4, kind, _RADIUS / 2 + 3 - 4))
        tip = f"<title>{escape(knowledge.comments.get(name, name))}</title>"
        parts.append(f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{escape(name)}{tip}</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)


_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Action graph of {name}">
<style>
  :root {{ color: #1b1f24; background: #ffffff }}
  @media (prefers-color-scheme: dark) {{ :root {{ color: #e6e9ee; background: #14171c }} }}
  text {{ font: 13px ui-monospace, Menlo, Consolas, monospace; text-anchor: middle; fill: currentColor }}
  rect {{ stroke: currentColor; stroke-width: 1.3; fill: #eef3fb }}
  rect.start {{ fill: #d9efdc }}
  @media (prefers-color-scheme: dark) {{ rect {{ fill: #222a36 }} rect.start {{ fill: #1f3a27 }} }}
  path {{ fill: none; stroke: currentColor; stroke-opacity: .5; stroke-width: 1.2; marker-end: url(#tip) }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<polygon points="0,0 8,4 0,8" fill="currentColor"/></marker></defs>"""


def _id(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _box(x: float, y: float, half: float, kind: str, tall: float = _RADIUS / 2 + 3) -> str:
    return (
        f'<rect class="{kind}" x="{x - half:.1f}" y="{y - tall:.1f}" '
        f'width="{2 * half:.1f}" height="{2 * tall:.1f}" rx="9"/>'
    )


def _edge_of_box(x: float, y: float, half: float, towards: tuple[float, float]) -> tuple[float, float]:
    dx, dy = towards[0] - x, towards[1] - y
    length = hypot(dx, dy) or 1
    tall = _RADIUS / 2 + 5
    scale = min(half / abs(dx) if dx else 1e9, tall / abs(dy) if dy else 1e9, length)
    return x + dx * scale, y + dy * scale


def _arrow(a, b, half_a: float, half_b: float, mutual: bool) -> str:
    mid = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    length = hypot(b[0] - a[0], b[1] - a[1]) or 1
    bend = 0.12 if mutual else 0.0  # so that there and back are two lines
    normal = ((b[1] - a[1]) / length, -(b[0] - a[0]) / length)
    control = (mid[0] + normal[0] * length * bend, mid[1] + normal[1] * length * bend)
    x1, y1 = _edge_of_box(*a, half_a, control)
    x2, y2 = _edge_of_box(*b, half_b, control)
    return f'<path d="M{x1:.1f},{y1:.1f} Q{control[0]:.1f},{control[1]:.1f} {x2:.1f},{y2:.1f}"/>'


def _loop(a, centre: float) -> str:
    angle = atan2(a[1] - centre, a[0] - centre)
    left, right = angle - 0.5, angle + 0.5
    tall = _RADIUS / 2 + 3
    points = [(a[0] + cos(t) * tall * 1.2, a[1] + sin(t) * tall) for t in (left, right)]
    far = [(a[0] + cos(t) * 62, a[1] + sin(t) * 58) for t in (left, right)]
    (x1, y1), (x2, y2) = points
    (c1, d1), (c2, d2) = far
    return f'<path d="M{x1:.1f},{y1:.1f} C{c1:.1f},{d1:.1f} {c2:.1f},{d2:.1f} {x2:.1f},{y2:.1f}"/>'
