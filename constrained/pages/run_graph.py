"""Where a run stood in the action graph, step by step, whether that was recorded or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from constrained.agents.run_file import digest
from constrained.automaton import Grammar
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.path_state import action_bytes
from constrained.knowledge.report import INVALID
from constrained.knowledge.unordered import UnorderedActions

ANY = r"[^\n]+"
"""What every slot holds here: a record doesn't say what was in view."""


class Walk:
    """The action knowledge of a run, as its record tells it or as it ships.

    Parameters
    ----------
    shown : dict or None
        What a page shows of it: ``name``, ``svg``, ``text``, ``definitions``.
    knowledge : ActionKnowledge or None
        The same knowledge, where it ships with this version, with slots that hold any text.
    """

    def __init__(self, shown: dict | None, knowledge: ActionKnowledge | None):
        self.shown = shown
        self._knowledge = knowledge
        self._instances = knowledge and UnorderedActions(knowledge.grammar, knowledge.graph)

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Walk:
        """Of a run's header; with nothing to show if it neither holds its knowledge nor names one that ships."""
        recorded = header.get("trace")
        knowledge = shipped_knowledge(header)
        if isinstance(recorded, Mapping):
            return cls(_checked(recorded), knowledge)
        if knowledge is None:
            return cls(None, None)
        return cls(
            {
                "name": knowledge.name,
                "svg": safe_svg(knowledge.to_svg()),
                "text": knowledge.to_text(),
                "definitions": dict(knowledge.actions),
            },
            knowledge,
        )

    def place(self, steps: list[dict]) -> None:
        """Give each step its ``place`` (the action before it), ``open`` (what might follow) and ``took`` (its action).

        What is recorded counts. Where it isn't, the rules say what was open, as long as it is sure which actions were
        taken; a step of which nothing is known is given nothing.
        """
        for _, phase in groupby(steps, key=lambda step: step.get("phase")):
            self._place_phase(list(phase))

    def _place_phase(self, steps: list[dict]) -> None:
        path = self._knowledge  # as far as it has come; None where that isn't known any more
        for step, after in zip(steps, [*steps[1:], None]):
            action, asked, following = step.get("action", ""), asked_for_action(step), asked_for_action(after)
            if asked:
                step["place"], step["open"] = asked["place"], asked["open"]
            elif path:
                step["place"], step["open"] = path.last, list(path.rules[path.last])
            took = following["place"] if following and moved(step) else self._name(action, step.get("open", ()), path)
            if took:
                step["took"] = took
            if path and not asked and moved(step):
                path = path.after(action) if took and path.judge(action) else None

    def _name(self, action: str, open_: Sequence[str], path: ActionKnowledge | None) -> str | None:
        """The rule that `action` is an instance of; None if that can't be told."""
        if self._instances is None:
            return None
        try:
            data = action_bytes(action)
        except KnowledgeError:  # half a character
            return None
        names = self._instances.names(data)
        names = [name for name in names if name in open_] or names
        if len(names) > 1 and path:
            begun = ((name, path.state.opening(name)) for name in names)
            names = [name for name, state in begun if state and (end := state.read(data)) and end.accepting]
        return names[0] if len(names) == 1 else None


def moved(step: Mapping[str, Any]) -> bool:
    """Whether the place changed with a step."""
    return step.get("verdict") != INVALID and not step["no_effect"]


def asked_for_action(step: Mapping[str, Any] | None) -> dict | None:
    """The traced answer of a step that holds its action; else the last that is traced."""
    if step is None:
        return None
    traced = [answer for answer in step["answers"] if "tokens" in answer]
    return next((a for a in reversed(traced) if a["action_at"] is not None), traced[-1] if traced else None)


def shipped_knowledge(header: Mapping[str, Any]) -> ActionKnowledge | None:
    """The knowledge that a run's header names, if what ships under that name today is the same."""
    named = header.get("knowledge")
    if not isinstance(named, Mapping) or named.get("name") not in shipped_names():
        return None
    knowledge = ActionKnowledge.from_lark(named["name"])
    if digest(knowledge.to_text()) != named.get("digest"):
        return None
    try:
        return knowledge.bind(**dict.fromkeys(knowledge.slots, Grammar.from_regex(ANY)))
    except ConstrainedError:  # a slot that holds no free text
        return None


def _checked(recorded: Mapping[str, Any]) -> dict:
    """The knowledge in a header, with nothing of another form than the page expects."""
    definitions = recorded.get("definitions")
    return {
        "name": str(recorded.get("knowledge") or ""),
        "svg": safe_svg(str(recorded.get("svg") or "")),
        "text": str(recorded.get("text") or ""),
        "definitions": {name: str(words) for name, words in definitions.items()}
        if isinstance(definitions, Mapping)
        else {},
    }


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
