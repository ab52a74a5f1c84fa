"""The action graph on the trace page: its picture, and the run's position in it at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from constrained.agents.run_file import digest
from constrained.automaton import Grammar
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.path_state import action_bytes
from constrained.knowledge.report import INVALID
from constrained.knowledge.unordered import UnorderedActions

ANY = r"[^\n]+"
"""The value of every slot here, as a record doesn't have what was in view."""

_SVG = "http://www.w3.org/2000/svg"

_DRAWN = {
    "svg": "viewBox role aria-label",
    "rect": "class x y width height rx data-action data-place",
    "circle": "class cx cy r data-from data-to",
    "path": "class d data-from data-to",
    "text": "class x y transform data-action data-place data-from data-to",
    "title": "",
}
"""The elements of `Knowledge.to_svg` and their attributes; nothing else goes into a page."""


class RunGraph:
    """The action knowledge of a run: as it was recorded, or as it ships.

    `shown`: for the page: ``name``, ``svg``, ``text``, ``definitions``. `knowledge`: the same knowledge with slots that
    hold any text, if it ships with this version.
    """

    def __init__(self, shown: dict | None, knowledge: Knowledge | None):
        self.shown = shown
        self._knowledge = knowledge
        self._actions = UnorderedActions(knowledge.grammar, knowledge.graph) if knowledge else None

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> RunGraph:
        """From a run's header, which may hold its knowledge, or name knowledge that ships, or neither."""
        knowledge = _shipped_knowledge(header)
        recorded = header.get("trace")
        if isinstance(recorded, Mapping):
            definitions = recorded.get("definitions")
            name, svg, text = (str(recorded.get(key) or "") for key in ("knowledge", "svg", "text"))
        elif knowledge is not None:
            definitions, name, svg, text = knowledge.actions, knowledge.name, knowledge.to_svg(), knowledge.to_text()
        else:
            return cls(None, None)
        definitions = definitions if isinstance(definitions, Mapping) else {}
        words = {key: str(definition) for key, definition in definitions.items()}
        return cls({"name": name, "svg": safe_svg(svg), "text": text, "definitions": words}, knowledge)

    def locate(self, steps: list[dict]) -> None:
        """Add to each step ``place`` (the action before it), ``open`` (what could follow) and ``took`` (its action).

        Recorded traces have these. Without a trace they are found by the rules, as long as it is certain which actions
        were taken. Other steps are left unchanged.
        """
        for _, phase in groupby(steps, key=lambda step: step.get("phase")):
            self._locate_phase(list(phase))

    def _locate_phase(self, steps: list[dict]) -> None:
        path = self._knowledge  # the knowledge after the actions so far; None once they are uncertain
        for step, after in zip(steps, [*steps[1:], None]):
            # What is recorded comes first; without it, the position follows from the rules while the path is certain.
            action, traced, following = step.get("action", ""), _traced_action(step), _traced_action(after)
            moved = step.get("verdict") != INVALID and not step["no_effect"]
            if traced:
                step["place"], step["open"] = traced["place"], traced["open"]
            elif path:
                step["place"], step["open"] = path.last, list(path.rules[path.last])
            took = following["place"] if following and moved else self._name(action, step.get("open", ()), path)
            if took:
                step["took"] = took
            if path and not traced and moved:
                path = path.after(action) if took and path.judge(action) else None

    def _name(self, action: str, open_: Sequence[str], path: Knowledge | None) -> str | None:
        """The rule that wrote `action`; None if that is uncertain."""
        if self._actions is None:
            return None
        try:
            data = action_bytes(action)
        except KnowledgeError:  # half a character
            return None
        # Rules that write such a text: of several those that were open, of these the one whose arguments fit the path.
        names = self._actions.names(data)
        names = [name for name in names if name in open_] or names
        if len(names) > 1 and path:
            states = ((name, path.state.order.opening(name)) for name in names)
            names = [name for name, state in states if state and (end := state.read(data)) and end.accepting]
        return names[0] if len(names) == 1 else None


def _traced_action(step: Mapping[str, Any] | None) -> dict | None:
    """The traced answer of a step that holds its action, else its last traced answer."""
    traced = [answer for answer in step["answers"] if "tokens" in answer] if step else []
    with_action = [answer for answer in traced if answer["action_at"] is not None]
    return next(reversed(with_action or traced), None)


def _shipped_knowledge(header: Mapping[str, Any]) -> Knowledge | None:
    """The knowledge that a run's header names, if it ships with this version unchanged."""
    named = header.get("knowledge")
    if not isinstance(named, Mapping) or named.get("name") not in shipped_names():
        return None
    knowledge = ActionKnowledge.from_lark(named["name"])
    if digest(knowledge.to_text()) != named.get("digest"):
        return None
    try:
        return knowledge.bind(**dict.fromkeys(knowledge.slots, Grammar.from_regex(ANY)))
    except ConstrainedError:  # a slot that can't hold free text
        return None


def safe_svg(text: str) -> str:
    """The shapes and labels of a drawing, without styles, links and scripts; empty if `text` is no drawing.

    The file of a run may come from anywhere. The page's own style sheet gives the colours.
    """
    if "<!" in text:  # entities of a doctype could make a small text huge
        return ""
    try:
        root = ElementTree.fromstring(text)
        if root.tag != f"{{{_SVG}}}svg":
            return ""
        drawing = _kept(root)
        drawing.set("xmlns", _SVG)
        return ElementTree.tostring(drawing, encoding="unicode")
    except (ElementTree.ParseError, UnicodeError, RecursionError):
        return ""


def _kept(element: ElementTree.Element) -> ElementTree.Element:
    name = element.tag.removeprefix(f"{{{_SVG}}}")
    allowed = _DRAWN[name].split()
    out = ElementTree.Element(name, {key: value for key, value in element.items() if key in allowed})
    out.text = element.text if name in ("text", "title") else None
    for child in element:
        if child.tag.removeprefix(f"{{{_SVG}}}") in _DRAWN:
            out.append(_kept(child))  # `extend` would turn a RecursionError into a TypeError
    return out
