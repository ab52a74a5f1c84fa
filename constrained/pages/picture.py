"""Pictures of action graphs in a page: those of a run's file are not to be trusted, and take the page's colours."""

from __future__ import annotations

from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"

_DRAWN = {
    "svg": "viewBox role aria-label",
    "rect": "class x y width height rx data-action data-place",
    "circle": "class cx cy r data-from data-to",
    "path": "class d data-from data-to",
    "text": "class x y transform data-action data-place data-from data-to",
    "title": "",
}
"""The elements of `ActionKnowledge.to_svg` that draw, and their attributes: nothing else goes into a page."""


def safe_svg(text: str) -> str:
    """The drawing in `text` without its styles, links and scripts; empty if it is none.

    Arrowheads and colours are the page's own: its style sheet draws what is left.
    """
    if "<!" in text:  # a doctype, which could make a small text huge, has no place in a drawing
        return ""
    try:
        root = ElementTree.fromstring(text)
        if root.tag != f"{{{_SVG}}}svg":
            return ""
        drawn = _kept(root)
        drawn.set("xmlns", _SVG)
        return ElementTree.tostring(drawn, encoding="unicode")
    except (ElementTree.ParseError, UnicodeError, RecursionError):
        return ""


def _kept(element: ElementTree.Element) -> ElementTree.Element:
    name = element.tag.removeprefix(f"{{{_SVG}}}")
    allowed = _DRAWN[name].split()
    out = ElementTree.Element(name, {key: value for key, value in element.items() if key in allowed})
    out.text = element.text if name in ("text", "title") else None
    for child in element:
        if child.tag.removeprefix(f"{{{_SVG}}}") in _DRAWN:
            out.append(_kept(child))
    return out
