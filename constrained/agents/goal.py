"""What the goal leaves of the admitted actions, where facts are known: what is sound, and what is a heuristic."""

from __future__ import annotations

from collections.abc import Container, Sequence

from constrained.environments.base import Facts
from constrained.planning.relaxed import Relaxed


def leading_on(facts: Facts, actions: Sequence[str]) -> list[str]:
    """The actions after which the goal can still be reached if nothing is undone: the others are dead ends.

    What the facts don't describe stays. Empty if the goal is already out of reach.
    """
    relaxed, meant = Relaxed.of(facts.task), facts.actions
    ground = [one for text in actions for one in meant.get(text, ())]
    if relaxed.plan(facts.state, facts.optimistic) is None:
        return []
    kept = set(relaxed.without_dead_ends(facts.state, ground, facts.optimistic))
    return [text for text in actions if text not in meant or not kept.isdisjoint(meant[text])]


def looking_useful(facts: Facts, actions: Sequence[str]) -> list[str]:
    """The helpful actions; all, if none is helpful."""
    helpful = Relaxed.of(facts.task).helpful(facts.state, facts.optimistic)
    return [text for text in actions if not helpful.isdisjoint(facts.actions.get(text, ()))] or list(actions)


def leads_back(facts: Facts, action: str, states: Container[object]) -> bool:
    """Whether an action leads to one of some states, whatever it stands for."""
    after = [facts.task.apply(facts.state, one) for one in facts.actions.get(action, ())]
    return bool(after) and all(state in states for state in after)
