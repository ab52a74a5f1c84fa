"""The action space of an episode: what may be done next, by the knowledge that masks and by the one that judges."""

from __future__ import annotations

from constrained.agents.world import World
from constrained.environments.base import Facts
from constrained.knowledge import ActionKnowledge


class ActionSpace:
    """Action knowledge at the present point of a path, its slots bound to what is in view.

    Parameters
    ----------
    knowledge : ActionKnowledge
        Of masks and prompts.
    judge : ActionKnowledge, optional
        Gives the verdicts, if that is not the same.
    only_form : bool
        The masks hold no more than the form of actions: facts are told to the judge alone.

    Attributes
    ----------
    knowledge : ActionKnowledge
        At the present point.
    """

    def __init__(self, knowledge: ActionKnowledge, judge: ActionKnowledge | None = None, only_form: bool = False):
        self.knowledge, self._judge, self._only_form = knowledge, judge, only_form

    @property
    def judge(self) -> ActionKnowledge:
        """The knowledge that gives the verdicts, at the present point."""
        return self._judge or self.knowledge

    def hold_to(self, knowledge: ActionKnowledge) -> None:
        """Make masks and prompts of other knowledge; the judge stays."""
        self._judge, self.knowledge = self.judge, knowledge

    def bind(self, world: World) -> None:
        """Bind the slots to what is in view and remembered, and tell the facts that hold, if they are known."""
        facts = world.told()
        self._judge = self._judge and _bound(self._judge, world, facts)
        self.knowledge = _bound(self.knowledge, world, None if self._only_form else facts)

    def advance(self, action: str) -> None:
        """Go on after an action; knowledge that doesn't admit it stays where it is."""
        self.knowledge = _after(self.knowledge, action)
        self._judge = self._judge and _after(self._judge, action)


def _bound(knowledge: ActionKnowledge, world: World, facts: Facts | None) -> ActionKnowledge:
    bound = knowledge.bind_view(world.slots(knowledge))
    return bound if facts is None else bound.told(facts)


def _after(knowledge: ActionKnowledge, action: str) -> ActionKnowledge:
    return knowledge.after(action) if knowledge.judge(action) else knowledge
