"""The action space of an episode: what may be done next, for the masks and for the verdicts."""

from __future__ import annotations

from constrained.agents.surroundings import Surroundings
from constrained.knowledge import Knowledge
from constrained.knowledge.report import INVALID
from constrained.knowledge.world_state import WorldState

STOPS = ("stop", "stop planning", "the plan is whole")
"""The extra action that ends a path where it may end: the first of these that isn't an action of the knowledge."""


class ActionSpace:
    """Action knowledge at the current point of a path, its slots bound to what is in view.

    Parameters
    ----------
    knowledge : Knowledge
        For masks and prompts.
    judge : Knowledge, optional
        For verdicts; default: the same.
    only_form : bool
        The masks hold only the form of actions: facts reach the judge alone.

    Attributes
    ----------
    knowledge : Knowledge
        The knowledge for masks and prompts, at the current point.
    """

    def __init__(self, knowledge: Knowledge, judge: Knowledge | None = None, only_form: bool = False):
        self.knowledge, self._only_form = knowledge, only_form
        self._judge = judge or (knowledge if only_form else None)

    @property
    def judge(self) -> Knowledge:
        """The knowledge for verdicts, at the current point."""
        return self._judge or self.knowledge

    @property
    def stop(self) -> str:
        """The first of `STOPS` that isn't an action of the knowledge; if all are, the last, which then doesn't stop."""
        return next((word for word in STOPS if self.knowledge.judge(word).verdict == INVALID), STOPS[-1])

    def hold_to(self, knowledge: Knowledge) -> None:
        """Replace the knowledge for masks and prompts; the judge stays."""
        self._judge, self.knowledge = self.judge, knowledge

    def bind(self, surroundings: Surroundings) -> None:
        """Bind the slots to what is in view and remembered, and pass on the facts, if they are known."""
        facts = surroundings.environment_facts()
        self._judge = self._judge and _bound(self._judge, surroundings, facts)
        self.knowledge = _bound(self.knowledge, surroundings, None if self._only_form else facts)

    def advance(self, action: str) -> None:
        """Move on to the point after an action; knowledge that doesn't admit it stays where it is."""
        self.knowledge = _after(self.knowledge, action)
        self._judge = self._judge and _after(self._judge, action)


def _bound(knowledge: Knowledge, surroundings: Surroundings, facts: WorldState | None) -> Knowledge:
    bound = knowledge.bind_view(surroundings.slots(knowledge))
    return bound if facts is None else bound.with_facts(facts)


def _after(knowledge: Knowledge, action: str) -> Knowledge:
    return knowledge.after(action) if knowledge.judge(action) else knowledge
