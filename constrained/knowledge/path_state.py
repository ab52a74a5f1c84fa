"""The state after some actions: which may come next, with which arguments.

`PathState` knows the order of actions alone; `PossibleActions` also knows facts about the world, so that only actions
whose conditions hold may come next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from constrained.automaton import Grammar
from constrained.automaton.state import Prefix
from constrained.errors import KnowledgeError
from constrained.grammar.nodes import EMPTY, NEVER, Node, Rule
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.continuation import continuation, either, nonempty
from constrained.knowledge.report import INVALID, MISORDERED, OK, Judgement
from constrained.knowledge.step_limit import within_steps
from constrained.knowledge.unordered import UnorderedActions, diagnose, start_state
from constrained.knowledge.world_state import WorldState

MAX_CONTINUATIONS = 64
"""How many continuations are cached with their grammars and automata."""


class _Continuation:
    """A grammar of the rest of a path, with what is derived from it; shared by all paths that continue alike."""

    def __init__(self, grammar: Grammar):
        self.grammar = grammar
        self.nonempty: Grammar | None = None
        self.unordered: UnorderedActions | None = None
        self.admitted: dict[str, bool] = {}


class PathState:
    """What may follow after some actions; it never changes.

    Attributes
    ----------
    grammar : Grammar
        The grammar of the rest of the path, with the slots as they are bound now.
    path : tuple of str
        The actions done.
    last : str
        The rule of the last action; "start" before the first.
    facts : None
        Nothing is known of the world here; see `PossibleActions`.
    """

    facts: WorldState | None = None

    def __init__(self, grammar: Grammar, graph: ActionGraph, path: tuple[str, ...] = (), last: str = START):
        self.grammar = grammar
        self.graph = graph
        self.path = path
        self.last = last
        self._continuations: dict[Node, _Continuation] = {}
        self._continuation = _Continuation(grammar)
        self._judged: tuple[str, tuple[Judgement, Prefix | None]] | None = None

    @property
    def order(self) -> PathState:
        """The state by the order of actions alone: this one."""
        return self

    def bound(self, grammar: Grammar) -> PathState:
        """The same state with another grammar, such as one with other values in its slots."""
        return PathState(grammar, self.graph, self.path, self.last)

    @property
    def may_end(self) -> bool:
        """Whether the path may end here."""
        return self.grammar.begin.accepting

    @property
    def may_follow(self) -> list[str]:
        """The actions that may come next, with arguments that exist now."""
        return [a for a in self.graph.rules[self.last] if self.opening(a)]

    def next_action(self, steps_left: int | None = None) -> Grammar:
        """As `Knowledge.next_action`."""
        grammar = self.within(steps_left)._next_actions
        start = start_state(grammar)
        if start is None or not start.first():
            raise KnowledgeError(
                f"no action is admitted after {self.path[-1] if self.path else 'the start'!r}"
                + (f" with {steps_left} steps left" if steps_left is not None else ""),
                hint="bind the slots to what is there now, or let the rules end here",
            )
        return grammar

    def within(self, steps_left: int | None) -> PathState:
        """The same state, with only the actions from which the path can end within a number of steps."""
        grammar = self.grammar if steps_left is None else within_steps(self.grammar, steps_left)
        return self if grammar is self.grammar else self.bound(grammar)

    def opening(self, action: str) -> Prefix | None:
        """The automaton's state before `action` as the next action; None if it may not come next."""
        state = start_state(self.without(set(self.graph.actions) - {action}).grammar)
        return state if state and state.first() else None

    def without(self, actions: Collection[str]) -> PathState:
        """The same state on the path, with some actions ruled out."""
        return self.bound(
            self.grammar.with_rules(replaced(self.grammar.all_rules(), actions, NEVER), self.grammar.start)
        )

    def judge(self, action: str) -> Judgement:
        """Judge `action` as the next one."""
        return self._judge(action)[0]

    def after(self, action: str) -> PathState:
        """As `Knowledge.after`."""
        judgement, end = self._judge(action)
        if not judgement or end is None:
            raise KnowledgeError(f"{action!r} is {judgement.verdict}: {judgement.reason}")
        return self.advanced(action, judgement.action, end)

    def judged(self, action: str) -> tuple[Judgement, PathState]:
        """The verdict on `action`, and the state after it; an invalid action doesn't change the state."""
        judgement, end = self._judge(action)
        return judgement, self if end is None else self.advanced(action, judgement.action, end)

    def advanced(self, text: str, action: str | None, end: Prefix) -> PathState:
        """The state after `text`, a text of the rule `action` that ended in the automaton's state `end`."""
        rest = continuation(end.ends(), self.grammar.limits)
        self._continuations.setdefault(self.grammar.start, self._continuation)
        then = self._continuations.get(rest)
        if then is None:
            then = _Continuation(self.grammar.with_start(rest))
            if len(self._continuations) < MAX_CONTINUATIONS:
                self._continuations[rest] = then
        state = PathState(then.grammar, self.graph, (*self.path, text), action or self.last)
        state._continuations, state._continuation = self._continuations, then
        return state

    def anywhere(self) -> Prefix | None:
        """The automaton's state before the texts of all actions, at any point of a path; None if there are none."""
        return self._at_any_point.any_opening()

    def admits(self, action: str) -> bool:
        """Whether `action` may come next; cached for all paths that continue alike."""
        admitted = self._continuation.admitted
        if action not in admitted:
            opening = start_state(self._next_actions)
            end = opening.read(action_bytes(action)) if action and opening else None
            admitted[action] = end is not None and end.accepting
        return admitted[action]

    @property
    def _next_actions(self) -> Grammar:
        """The grammar of the next action."""
        if self._continuation.nonempty is None:
            self._continuation.nonempty = nonempty(self.grammar)
        return self._continuation.nonempty

    @property
    def _at_any_point(self) -> UnorderedActions:
        if self._continuation.unordered is None:
            self._continuation.unordered = UnorderedActions(self.grammar, self.graph)
        return self._continuation.unordered

    def _judge(self, action: str) -> tuple[Judgement, Prefix | None]:
        """The judgement and the state after the action; cached for the next call, which often asks for the same."""
        if self._judged is None or self._judged[0] != action:
            self._judged = action, self._judge_anew(action)
        return self._judged[1]

    def _judge_anew(self, action: str) -> tuple[Judgement, Prefix | None]:
        data = action_bytes(action)
        # ok: the action is one of those that may come next
        opening = start_state(self._next_actions)
        end = opening.read(data) if action and opening else None
        if end is not None and end.accepting:
            return Judgement(action, OK, self._name(end, data)), end
        # misordered: it would be an action at another point of a path
        unordered = self._at_any_point
        anywhere = unordered.any_opening()
        end = anywhere.read(data) if action and anywhere else None
        if end is not None and end.accepting:
            allowed, names = self.may_follow, unordered.names(data)
            name = next((a for a in names if a in allowed), names[0])
            after = "at the start" if not self.path else f"after {self.path[-1]!r}"
            if name in allowed:
                why = diagnose(opening, data, allowed)
                reason = f"{name} with these arguments is not admitted {after}: {why}"
            else:
                reason = f"{name} is not admitted {after}; may follow: {', '.join(allowed) or 'nothing'}"
            opening = unordered.opening(name)
            return Judgement(action, MISORDERED, name, reason), opening and opening.read(data)
        # invalid: it is not an action at all
        lenient = UnorderedActions(self.grammar, self.graph, missing=EMPTY)
        reason = diagnose(anywhere, data, self.graph.actions, lenient.any_opening())
        return Judgement(action, INVALID, lenient.nearest(data), reason), None

    def _name(self, end: Prefix, data: bytes) -> str | None:
        """The rule of the action `data`, which ended in `end`; elsewhere on a path, other rules may write the same."""
        ended = {self.graph.ended_by(rest.node) if rest else None for rest in end.ends()}
        if len(ended) == 1 and ended <= set(self.graph.rules[self.last]):
            return ended.pop()
        names = self._at_any_point.names(data)
        if len(names) > 1:
            openings = ((a, self.opening(a)) for a in names)
            names = [a for a, state in openings if state and (s := state.read(data)) and s.accepting] or names
        return names[0] if names else None


class PossibleActions:
    """A state on a path together with the facts there, with the same methods as `PathState`.

    Attributes
    ----------
    order : PathState
        The state by the order of actions alone.
    facts : WorldState
        What is known of the world there.
    described : frozenset of str
        The rules of actions whose conditions and effects are known; other actions only follow the order.
    """

    def __init__(self, order: PathState, facts: WorldState):
        self.order, self.facts = order, facts
        self.grammar, self.graph, self.path, self.last = order.grammar, order.graph, order.path, order.last
        self.described = frozenset(facts.world.rules.values())

    def bound(self, grammar: Grammar) -> PossibleActions:
        """As `PathState.bound`."""
        return PossibleActions(self.order.bound(grammar), self.facts)

    @property
    def may_end(self) -> bool:
        """Whether the path may end here: the order admits it, and the goal, if there is one, holds."""
        return self.order.may_end and self.facts.reached_goal

    @property
    def may_follow(self) -> list[str]:
        """As `Knowledge.may_follow`."""
        rules = {self.facts.rule(text) for text in self._texts()}
        return [name for name in self.order.may_follow if name in rules or name not in self.described]

    def next_action(self, steps_left: int | None = None) -> Grammar:
        """As `Knowledge.next_action`."""
        possible, others = self._texts(steps_left), self._others(steps_left)
        if others is not None:
            return either(Grammar.from_choices(possible), others) if possible else others
        if not possible:
            raise KnowledgeError(
                f"no action is possible after {self.order.path[-1] if self.order.path else 'the start'!r}",
                hint="no action's conditions hold here; `constrained check FILE ACTION ...` says what an action needs",
            )
        return Grammar.from_choices(possible)

    def judge(self, action: str) -> Judgement:
        """As `Knowledge.judge`."""
        facts = self.facts
        rule = facts.rule(action) if isinstance(action, str) else None
        if rule is not None and self.order.admits(action):
            return Judgement(action, OK, rule)
        if rule is None and isinstance(action, str) and (ground := facts.ground(action)) is not None:
            reason = f"{action!r} is not possible here: {facts.why_not(action)}"
            return Judgement(action, MISORDERED, facts.world.rules[ground.action], reason)
        judgement = self.order.judge(action)
        if judgement and judgement.action in self.described:  # its rule admits the text, but with unknown objects
            return Judgement(action, INVALID, judgement.action, f"{action!r} names what is not there")
        return judgement

    def judged(self, action: str) -> tuple[Judgement, PossibleActions]:
        """The verdict on `action`, and the state after it; an action whose conditions fail changes nothing."""
        judgement = self.judge(action)
        return judgement, self.after(action) if judgement else self

    def after(self, action: str) -> PossibleActions:
        """As `Knowledge.after`."""
        judgement = self.judge(action)
        if not judgement:
            raise KnowledgeError(f"{action!r} is {judgement.verdict}: {judgement.reason}")
        facts = self.facts.after(action) if action in self.facts.actions else self.facts
        return PossibleActions(self.order.after(action), facts)

    def _texts(self, steps_left: int | None = None) -> list[str]:
        """The actions whose conditions hold and that the order of actions admits."""
        order = self.order.within(steps_left)
        return [text for text in self.facts.actions if order.admits(text)]

    def _others(self, steps_left: int | None) -> Grammar | None:
        """The grammar of the next actions that are not `described`; None if there are none."""
        if self.described.issuperset(self.order.graph.rules[self.order.last]):
            return None
        try:
            return self.order.without(self.described).next_action(steps_left)
        except KnowledgeError:
            return None


def replaced(rules: Mapping[str, Rule], names: Collection[str], body: Node) -> dict[str, Rule]:
    """`rules`, where those with some names have another body."""
    return {name: Rule(name, body, rule.params, rule.line) if name in names else rule for name, rule in rules.items()}


def action_bytes(action: str) -> bytes:
    """`action` as UTF-8. Raises KnowledgeError: it isn't text."""
    if not isinstance(action, str):
        raise KnowledgeError(f"an action is text, not {type(action).__name__}")
    try:
        return action.encode()
    except UnicodeEncodeError:
        raise KnowledgeError(f"the action {action!a} has a lone surrogate, which is not text") from None
