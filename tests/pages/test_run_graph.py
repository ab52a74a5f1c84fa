"""Pictures from a run's file: what draws goes into the page, and nothing else."""

import xml.etree.ElementTree as ElementTree

import pytest

from constrained import ActionKnowledge
from constrained.pages.run_graph import safe_svg

SVG = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("name, matrix", [("household", False), ("hotpotqa", False), ("hotpotqa", True)])
def test_a_picture_keeps_all_that_draws(name, matrix):
    text = ActionKnowledge.from_lark(name).to_svg(matrix=matrix)
    before, after = ElementTree.fromstring(text), ElementTree.fromstring(safe_svg(text))
    for kind in ("rect", "circle", "path", "text", "title"):
        marks = [[(m.attrib, m.text) for m in root.iter(f"{{{SVG}}}{kind}")] for root in (before, after)]
        assert marks[0] == marks[1]
    assert {m.tag for m in after.iter()} <= {f"{{{SVG}}}{kind}" for kind in "svg rect circle path text title".split()}


@pytest.mark.parametrize(
    "inside",
    [
        "<script>x()</script>",
        "<style>@import 'http://192.0.2.1/'</style>",
        "<image href='http://192.0.2.1/'/>",
        "<a href='javascript:x()'><rect/></a>",
        "<foreignObject><b xmlns='http://www.w3.org/1999/xhtml'>x</b></foreignObject>",
        "<animate attributeName='href' values='javascript:x()'/>",
        "<script xmlns='http://www.w3.org/1999/xhtml'>x()</script>",
    ],
)
def test_what_does_not_draw_is_dropped(inside):
    kept = safe_svg(
        f"<svg xmlns='{SVG}' onload='x()' style='fill: red'><rect onclick='x()' x='1'>{inside}</rect>{inside}</svg>"
    )
    assert kept == f'<svg xmlns="{SVG}"><rect x="1" /></svg>'


@pytest.mark.parametrize(
    "text",
    ["", "no picture", "<svg>", "<svg/>", "<html xmlns='http://www.w3.org/1999/xhtml'/>", "\ud800",
     f"<!DOCTYPE svg [<!ENTITY a 'a'>]><svg xmlns='{SVG}'>&a;</svg>",
     f"<svg xmlns='{SVG}'>" + "<title>" * 5000 + "</title>" * 5000 + "</svg>"],
)  # fmt: skip
def test_what_is_no_picture_is_none(text):
    assert safe_svg(text) == ""
