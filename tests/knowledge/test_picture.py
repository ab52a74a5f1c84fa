"""Pictures of the action graph: every arrow is there, and nothing is written over anything else."""

import random
import xml.etree.ElementTree as ElementTree

import pytest

from constrained import ActionKnowledge
from constrained.automaton import Grammar
from constrained.grammar import STEP, shipped_names
from constrained.knowledge.picture import CHAR

KNOWLEDGE = [name for name in shipped_names() if STEP in Grammar.from_lark(name).slots]

NASTY = """
%declare _STEP
// <b>"Ends" & 'starts'</b>
start: end | click
// end: x < y && "z" > 'w'
end: "E" _STEP (end | click | graph)
click: "C" _STEP [end]
graph: "G"
"""


def made(follow: dict) -> str:
    """A file in which action -> those that may follow it; none: the plan is over."""
    lines = ["%declare _STEP", "start: " + " | ".join(follow.pop("start"))]
    for name, after in follow.items():
        lines.append(f'{name}: "{name}"' + (f" _STEP ({' | '.join(after)})" if after else ""))
    return "\n".join(lines) + "\n"


def many(count: int, density: float) -> str:
    rng = random.Random(count)
    names = [f"action_number_{i:02d}" for i in range(count)]
    follow = {"start": names[:3], names[-1]: []}
    for i, name in enumerate(names[:-1]):
        follow[name] = sorted({names[i + 1], *(other for other in names if rng.random() < density)})
    return made(follow)


def places(count: int) -> str:
    """Each place leads to every other by an action with a long name."""
    lines = ["%declare _STEP", "start: | " + " | ".join(f"first_{j}" for j in range(count))]
    lines += [f'first_{j}: "f{j}" _STEP p{j}' for j in range(count)]
    for i in range(count):
        lines.append(f"p{i}: | " + " | ".join(f"from_{i}_to_{j}_by_a_long_way" for j in range(count)))
        lines += [f'from_{i}_to_{j}_by_a_long_way: "g{i}{j}" _STEP p{j}' for j in range(count)]
    return "\n".join(lines) + "\n"


TOOLS = [f"tool_{i:02d}" for i in range(29)]
GRAPHS = {
    **{name: name for name in KNOWLEDGE},
    "nasty": NASTY,
    "9 actions": many(9, 0.2),
    "9 actions, most arrows": many(9, 0.8),
    "30 actions": many(30, 0.15),
    "30 tools": made({"start": TOOLS, **{tool: [*TOOLS, "finish"] for tool in TOOLS}, "finish": []}),
    "8 in a line": many(8, 0.0),
    "2 places": places(2),
    "6 places": places(6),
}
SPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=GRAPHS)
def knowledge(request):
    return ActionKnowledge.from_lark(GRAPHS[request.param])


@pytest.fixture(params=["as it is best", "matrix"])
def picture(request, knowledge):
    return ElementTree.fromstring(knowledge.to_svg(matrix=request.param == "matrix"))


def edges(knowledge) -> set[tuple[str, str]]:
    return {(name, other) for name, after in knowledge.rules.items() for other in after}


def test_every_arrow_is_there_and_no_other(knowledge, picture):
    shown = set()
    for kind in ("path", "circle"):
        for mark in picture.iter(SPACE + kind):
            tip = mark.findtext(SPACE + "title")
            if tip and not tip.endswith("-> (end)"):
                sources, targets = tip.split(" -> ")
                shown |= {(a, b) for a in sources.split(", ") for b in targets.split(", ")}
    if list(picture.iter(SPACE + "circle")) or not knowledge.graph.choice_points():
        assert shown == edges(knowledge)
    else:
        assert shown == set(knowledge.graph.choice_points())


def test_every_action_has_its_definition_as_a_tip(knowledge, picture):
    tips = {text.text: text.findtext(SPACE + "title") for text in picture.iter(SPACE + "text")}
    assert {action: tips[action] for action in knowledge.actions} == {a: d or a for a, d in knowledge.actions.items()}


def test_every_mark_says_for_pages_what_it_stands_for(knowledge, picture):
    for mark in [*picture.iter(SPACE + "path"), *picture.iter(SPACE + "circle")]:
        tip = mark.findtext(SPACE + "title")
        if tip:  # not the arrowhead, nor a rule of a table
            ends = [mark.get(name).replace(" ", ", ") for name in ("data-from", "data-to")]
            assert " -> ".join(ends) == tip
    for text in picture.iter(SPACE + "text"):
        if text.text != "(end)":
            assert text.text in (text.get("data-action"), text.get("data-place"))
    named = [
        box
        for box in picture.iter(SPACE + "rect")
        if box.get("class") != "band" and (box.get("data-action") or box.get("data-place"))
    ]
    shown = {name for box in named for name in (box.get("data-action") or box.get("data-place")).split()}
    assert (
        not named
        or shown == set(knowledge.rules)
        or shown == {name for pair in knowledge.graph.choice_points() for name in pair}
    )


def test_actions_that_may_be_the_last_are_marked(knowledge, picture):
    ends = {
        c.findtext(SPACE + "title").split(" -> ")[0] for c in picture.iter(SPACE + "circle") if c.get("class") == "end"
    }
    if list(picture.iter(SPACE + "circle")):
        assert ends == knowledge.graph.may_end
    elif not knowledge.graph.choice_points():
        boxes = list(rectangles(picture))
        inner = [a for a in boxes if any(a is not b and inside(a, b) for b in boxes)]
        named = {text for text, box in labels(picture) if any(inside(box, a) for a in inner)}
        assert named == knowledge.graph.may_end


def rectangles(picture):
    for rect in picture.iter(SPACE + "rect"):
        if rect.get("class") != "band":
            x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height


def labels(picture):
    """(text, the box it covers): 13 px letters, by where it is anchored and whether it is turned."""
    for text in picture.iter(SPACE + "text"):
        x, y, length = float(text.get("x")), float(text.get("y")), len(text.text) * CHAR
        if text.get("class") == "column":  # from its anchor upwards
            _, turn_x, turn_y = text.get("transform").removeprefix("rotate(").removesuffix(")").split()
            x, y = float(turn_x) + (y - float(turn_y)), float(turn_y) - (x - float(turn_x))
            yield text.text, (x - 10, y - length, x + 3, y)
        else:
            left = x - length if text.get("class") == "row" else x - length / 2
            yield text.text, (left, y - 10, left + length, y + 3)


def inside(a, b) -> bool:
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def overlap(a, b) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_no_two_labels_and_no_two_boxes_overlap(picture):
    written = list(labels(picture))
    for i, (text, box) in enumerate(written):
        assert not any(overlap(box, other) for _, other in written[:i]), text
    boxes = list(rectangles(picture))
    for i, box in enumerate(boxes):
        assert not any(overlap(box, other) and not inside(box, other) for other in boxes[:i])


def test_no_arrow_is_drawn_through_a_label(picture):
    """Neither through the names of other boxes nor through what stands at other arrows."""
    written = list(labels(picture))
    for path in picture.iter(SPACE + "path"):
        if "Q" not in path.get("d"):
            continue  # to itself, beside its own box
        numbers = [float(n) for n in path.get("d").replace("M", "").replace("Q", "").replace(",", " ").split()]
        start, control, end = zip(numbers[::2], numbers[1::2])
        for step in range(1, 30):
            t = step / 30
            x, y = ((1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c for a, b, c in zip(start, control, end))
            hit = [text for text, box in written if box[0] < x < box[2] and box[1] + 2 < y < box[3] - 2]
            assert not hit, (hit, path.findtext(SPACE + "title"))


def test_all_is_inside_the_view(picture):
    width, height = map(float, picture.get("viewBox").split()[2:])
    view = (0, 0, width, height)
    assert all(inside(box, view) for box in [*(box for _, box in labels(picture)), *rectangles(picture)])
    for path in picture.iter(SPACE + "path"):
        numbers = [float(n) for n in path.get("d").replace(",", " ").translate(str.maketrans("MQCV", "    ")).split()]
        if "V" not in path.get("d"):
            assert all(0 <= x <= width and 0 <= y <= height for x, y in zip(numbers[::2], numbers[1::2]))


@pytest.mark.parametrize(
    "name, table", [("30 actions", True), ("6 places", True), ("30 tools", False), ("hotpotqa", False)]
)
def test_what_would_be_a_tangle_is_a_table(name, table):
    svg = ActionKnowledge.from_lark(GRAPHS[name]).to_svg()
    assert ("<circle" in svg) == table


# Mermaid


def mermaid_edges(text):
    """(from, to, labels) of every arrow; nodes by the name they show."""
    shown, found = {}, []
    for line in text.splitlines()[1:]:
        line = line.strip()
        if "-->" not in line:
            identifier, _, rest = line.partition("[" if "([" not in line else "(")
            shown[identifier] = rest.split('"')[1]
    for line in text.splitlines()[1:]:
        if "-->" in line:
            source, target = line.split("-->")
            source, _, label = source.partition(" -- ")
            on_it = label.strip().strip('"').split("<br/>") if label else []
            found.append((shown[source.strip()], shown[target.strip()], on_it))
    return found


def test_mermaid_has_every_edge(knowledge):
    text = knowledge.to_mermaid()
    assert text.startswith("flowchart ") and text.endswith("\n")
    found = mermaid_edges(text)
    if knowledge.graph.choice_points():
        assert {(a, b): on_it for a, b, on_it in found} == knowledge.graph.choice_points()
        assert {action for *_, on_it in found for action in on_it} == set(knowledge.actions)
    else:
        single = [(x, y) for a, b, _ in found for x in a.split("<br/>") for y in b.split("<br/>")]
        assert len(single) == len(set(single)) and set(single) == edges(knowledge)


def test_no_node_of_mermaid_is_called_by_a_word_of_its_language():
    text = ActionKnowledge.from_lark(NASTY).to_mermaid()
    identifiers = {word for line in text.splitlines()[1:] for word in line.split("[")[0].split("(")[0].split()}
    assert not identifiers & {"end", "click", "graph", "start"}
    assert '["click"]' in text and '["end"]' in text


# lines of text


def test_actions_alike_share_a_line():
    assert (
        ActionKnowledge.from_lark("hotpotqa").to_table()
        == """\
hotpotqa: 4 actions

start                     -> retrieve, search
retrieve, search, lookup  -> retrieve, search, lookup, finish
finish                    -> the end
"""
    )


def test_places_are_told_with_what_leads_on():
    lines = ActionKnowledge.from_lark("household").to_table().splitlines()
    assert lines[0] == "household: 14 actions, 12 slots"
    assert lines[2:4] == ["start    goto -> at", "         look, inventory -> start"]


def test_nearly_all_actions_are_told_by_those_left_out():
    text = ActionKnowledge.from_lark(GRAPHS["30 tools"].replace("| finish)", ")", 1)).to_table()
    assert "-> any action but finish" in text and "-> any action\n" in text


@pytest.mark.parametrize("width", [60, 100])
def test_lines_are_wrapped_to_the_width_and_lose_nothing(knowledge, width):
    lines = knowledge.to_table(width).splitlines()
    assert all(len(line) <= width for line in lines if len(line.split()) > 1)
    if "any action" not in "".join(lines):
        words = set(" ".join(lines).replace(",", " ").split())
        assert set(knowledge.actions) <= words
