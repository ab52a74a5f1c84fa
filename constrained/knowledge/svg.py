"""What the pictures of action graphs share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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
