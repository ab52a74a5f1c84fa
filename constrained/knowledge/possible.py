"""The next actions where facts of the world are known: those that the order admits and whose conditions hold."""

from __future__ import annotations

from constrained.automaton import Grammar
from constrained.errors import KnowledgeError
from constrained.knowledge.continuation import either
from constrained.knowledge.path_state import PathState
from constrained.knowledge.report import INVALID, MISORDERED, OK, Judgement
from constrained.knowledge.step_limit import within_steps
from constrained.knowledge.world_state import WorldState


class PossibleActions:
    """A state on a path and the facts there: what may come next, and what follows from it.

    The methods are those of `PathState`, which knows the order of actions alone.
    """

    def __init__(self, state: PathState, facts: WorldState):
        self.state, self.facts = state, facts
        self.described = frozenset(facts.world.rules.values())  # actions that are known to need and change something

    @property
    def may_end(self) -> bool:
        """Whether the path may end here: the order lets it, and the goal holds if there is one."""
        return self.state.may_end and self.facts.reached_goal

    @property
    def may_follow(self) -> list[str]:
        """As `ActionKnowledge.may_follow`."""
        rules = {self.facts.rule(text) for text in self._texts()}
        return [name for name in self.state.may_follow if name in rules or name not in self.described]

    def next_action(self, steps_left: int | None = None) -> Grammar:
        """As `ActionKnowledge.next_action`."""
        possible, others = self._texts(steps_left), self._others(steps_left)
        if others is not None:
            return either(Grammar.from_choices(possible), others) if possible else others
        if not possible:
            raise KnowledgeError(
                f"no action is possible after {self.state.path[-1] if self.state.path else 'the start'!r}",
                hint="the conditions of all actions fail here; check --path tells for one action which",
            )
        return Grammar.from_choices(possible)

    def judge(self, action: str) -> Judgement:
        """As `ActionKnowledge.judge`."""
        facts = self.facts
        rule = facts.rule(action) if isinstance(action, str) else None
        if rule is not None and self.state.admits(action):
            return Judgement(action, OK, rule)
        if rule is None and isinstance(action, str) and (ground := facts.ground(action)) is not None:
            reason = f"{action!r} is not possible here: {facts.why_not(action)}"
            return Judgement(action, MISORDERED, facts.world.rules[ground.action], reason)
        judgement = self.state.judge(action)
        if judgement and judgement.action in self.described:  # a text of its rule, but of no objects that are there
            return Judgement(action, INVALID, judgement.action, f"{action!r} names what is not there")
        return judgement

    def judged(self, action: str) -> tuple[Judgement, PossibleActions]:
        """The verdict on `action`, and where the path goes on: here, if its conditions don't hold."""
        judgement = self.judge(action)
        return judgement, self.after(action) if judgement else self

    def after(self, action: str) -> PossibleActions:
        """As `ActionKnowledge.after`."""
        judgement = self.judge(action)
        if not judgement:
            raise KnowledgeError(f"{action!r} is {judgement.verdict}: {judgement.reason}")
        facts = self.facts.after(action) if action in self.facts.actions else self.facts
        return PossibleActions(self.state.after(action), facts)

    def _texts(self, steps_left: int | None = None) -> list[str]:
        """The actions whose conditions hold and that the order of actions admits."""
        state = self.state
        if steps_left is not None:
            limited = within_steps(state.grammar, steps_left)
            state = state if limited is state.grammar else state.bound(limited)
        return [text for text in self.facts.actions if state.admits(text)]

    def _others(self, steps_left: int | None) -> Grammar | None:
        """The grammar of the next actions that are not described; None if there are none."""
        if self.described.issuperset(self.state.graph.rules[self.state.last]):
            return None
        try:
            return self.state.without(self.described).next_action(steps_left)
        except KnowledgeError:
            return None
