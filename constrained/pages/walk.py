"""Where a run stood in the action graph, step by step, whether that was recorded or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained.agents.record import digest
from constrained.errors import ConstrainedError
from constrained.grammar import Grammar, shipped_names
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.graph import START
from constrained.pages.picture import safe_svg

ANY = r"[^\n]+"
"""What every slot holds here: a record doesn't say what was in view."""


class Walk:
    """The action knowledge of a run, as its record tells it or as it ships.

    Parameters
    ----------
    shown : dict or None
        What a page shows of it: ``name``, ``svg``, ``text``, ``rules``, ``definitions``, ``may_end``.
    knowledge : ActionKnowledge or None
        The same knowledge, where it ships with this version, with slots that hold any text.
    """

    def __init__(self, shown: dict | None, knowledge: ActionKnowledge | None):
        self.shown = shown
        self._knowledge = knowledge

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
                "rules": {name: list(after) for name, after in knowledge.rules.items()},
                "definitions": dict(knowledge.actions),
                "may_end": sorted(knowledge.graph.may_end),
            },
            knowledge,
        )

    def place(self, steps: list[dict]) -> None:
        """Give each step its ``place`` (the action before it), ``open`` (what might follow) and ``took`` (its action).

        Recorded ones count; where there are none, the rules alone say what was open.
        """
        begin = 0
        while begin < len(steps):
            phase = steps[begin].get("phase")
            end = next((i for i in range(begin, len(steps)) if steps[i].get("phase") != phase), len(steps))
            self._place_phase(steps[begin:end])
            begin = end

    def _place_phase(self, steps: list[dict]) -> None:
        names = self._names([step.get("action", "") for step in steps])
        before = START
        for step, name, after in zip(steps, names, [*steps[1:], None]):
            asked = asked_for_action(step)
            if asked:
                step["place"], step["open"] = asked["place"], asked["open"]
                following = asked_for_action(after) if after else None
                name = name or (following["place"] if following and step["verdict"] == "ok" else None)
            elif self._knowledge:
                step["place"], step["open"] = before, list(self._knowledge.rules.get(before, ()))
            if name:
                step["took"] = name
            before = name if name and step["verdict"] != "invalid" else before

    def _names(self, actions: list[str]) -> list[str | None]:
        """The rule of each action; None for what is none."""
        if self._knowledge is None:
            return [None] * len(actions)
        return [judged.action if judged.verdict != "invalid" else None for judged in self._knowledge.check(actions)]


def asked_for_action(step: Mapping[str, Any]) -> dict | None:
    """The traced answer of a step that holds its action; else the last that is traced."""
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
    rules, definitions = (recorded.get(key) if isinstance(recorded.get(key), Mapping) else {} for key in ("rules", "definitions"))
    return {
        "name": str(recorded.get("knowledge") or ""),
        "svg": safe_svg(str(recorded.get("svg") or "")),
        "text": str(recorded.get("text") or ""),
        "rules": {str(name): [str(other) for other in after] for name, after in rules.items() if isinstance(after, list)},
        "definitions": {str(name): str(words) for name, words in definitions.items()},
        "may_end": [str(name) for name in recorded.get("may_end") or ()],
    }
