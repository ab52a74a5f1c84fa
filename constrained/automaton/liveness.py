"""Liveness: which frames can still be finished, where a slot may have no value for some key.

A binding such as ``OBJECT={"shelf 1": [...]}`` leaves some calls without any text, and whatever leads
only to those must not be begun. This is a least fixed point over rule bodies and their arguments,
computed on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from constrained.automaton.graph_stack import forks_below
from constrained.automaton.positions import Env, Fork, Frames, Stack, Thunk
from constrained.automaton.templates import Selected, Templates, ends_action, open_names, own_frames
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_text import JsonText
from constrained.grammar.nodes import STEP
from constrained.grammar.traverse import uses_relations
from constrained.limits import Limits

THROUGH, ENDS = 1, 2
"""Outcomes of a node: it can be read to its end; it can end the action, and so the text, inside."""

Instance = tuple[n.Node, Env]


def has_gaps(grammar: ContextFreeGrammar) -> bool:
    """Whether some slot or relation may have no value for some key."""
    return bool(grammar.slots) and any(
        any(isinstance(value, dict) for value in g.bindings.values()) or g.slots and g.of_rules(uses_relations)
        for g in grammar.nested()
    )


class Liveness:
    """Decides which frames can be finished, and remembers the answers."""

    def __init__(self, grammar: ContextFreeGrammar, frames: Frames, templates: Templates, limits: Limits):
        self._frames, self._templates, self._limits = frames, templates, limits
        has_steps = any(STEP in g.slots and STEP not in g.bindings for g in grammar.nested())
        self._all = THROUGH | ENDS if has_steps else THROUGH
        self._live: dict[Stack, bool] = {None: True}
        self._outcomes: dict[tuple[int, int], int] = {}
        self._keep: list[Instance] = []  # keeps alive the objects whose ids are keys of `_outcomes`

    def can_finish(self, frame: Stack) -> bool:
        """Whether some text completes everything that is still open at `frame`."""
        calls = []  # from `frame` down to a frame that is known
        while frame is not None and frame not in self._live:
            if isinstance(frame, Fork):
                for fork in forks_below(frame, self._live):
                    self._live[fork] = any(map(self.can_finish, fork.ways))
                break
            own, after = own_frames(frame, frame.env)
            calls.append((frame, own))
            frame = after
        live = self._live[frame]
        for frame, own in reversed(calls):
            outcomes = self._rest_of_call(own, frame.env)
            live = self._live[frame] = bool(outcomes & ENDS) or (bool(outcomes) and live)
        return live

    def _rest_of_call(self, own: list[n.Node], env: Env) -> int:
        """The outcomes of the rest of one call."""
        return self._in_order(own, env, self._outcome)

    def _outcome(self, node: n.Node, env: Env) -> int:
        """The outcomes of `node`, computing first those that it depends on."""
        root = id(node), id(env)
        if root in self._outcomes:
            return self._outcomes[root]
        asked: dict[tuple[int, int], Instance] = {root: (node, env)}
        outcomes = {root: 0}  # grows to the least fixed point
        users: dict[tuple[int, int], set[tuple[int, int]]] = {}
        batch: dict[tuple[int, int], int] = {}
        # Each key is in the stack once, as all of it is evaluated later anyhow: else an alternative of many calls would
        # be evaluated again after each of them.
        stack = {root: None}
        while stack:
            key = next(reversed(stack))
            needs: dict[tuple[int, int], Instance] = {}
            value = self._evaluate(*asked[key], outcomes, needs)
            for need in needs:
                users.setdefault(need, set()).add(key)
            new = [need for need in needs if need not in outcomes]
            if new and value != self._all:
                # Evaluate few at first: often one of them can be finished, and the others aren't needed.
                batch[key] = 2 * batch.get(key, 1)
                for need in new[: batch[key]]:
                    outcomes[need], asked[need] = 0, needs[need]
                    stack[need] = None
                self._limits.check(
                    "cases",
                    len(outcomes),
                    "too many cases to tell whether a text can be completed",
                    "give every key a value, or tie fewer parameters together",
                )
                continue
            del stack[key]
            if value != outcomes[key]:
                outcomes[key] = value
                for user in users.get(key, ()):
                    stack.setdefault(user)
        self._outcomes.update(outcomes)
        self._keep.extend(asked.values())
        return outcomes[root]

    def _evaluate(
        self, node: n.Node, env: Env, outcomes: dict[tuple[int, int], int], needs: dict[tuple[int, int], Instance]
    ) -> int:
        """The outcomes of `node`, given those in `outcomes`; bodies that it looks up are added to `needs`."""

        def look_up(body: n.Node, inner: Env) -> int:
            key = id(body), id(inner)
            if key in self._outcomes:
                return self._outcomes[key]
            plain = self._plain(body, inner)
            if plain is not None:
                self._outcomes[key] = plain
                self._keep.append((body, inner))
                return plain
            needs[key] = body, inner
            return outcomes.get(key, 0)

        def of_values(values: Selected) -> int:
            if isinstance(values, ContextFreeGrammar) and not values.slots and not values.of_rules(uses_relations):
                return THROUGH  # such a grammar has a text for every key
            if isinstance(values, ContextFreeGrammar):
                return look_up(values.start, self._frames.env(values, {}, 0))
            return THROUGH if values.count else 0

        templates = self._templates
        if isinstance(node, n.Seq):
            # The same value of an open parameter is used in all items.
            return self._in_order(node.items, env, lambda item, chosen: self._evaluate(item, chosen, outcomes, needs))
        if isinstance(node, n.Alt):
            return self._any(self._evaluate(item, env, outcomes, needs) for item in node.items)
        if isinstance(node, n.Repeat):
            outcome = self._evaluate(node.item, env, outcomes, needs)
            return outcome if node.low else outcome | THROUGH
        if isinstance(node, n.RuleRef):
            return self._any(
                look_up(body, inner)
                for chosen, _ in templates.ways(open_names(env, (node,)), env, None)
                for body, inner in templates.instances(node, chosen, 0)
            )
        if isinstance(node, n.Scoped):
            return look_up(node.node, templates.scope(node, env.grammar, 0))
        if isinstance(node, n.Related):
            return self._any(
                of_values(templates.related(node, chosen))
                for chosen, _ in templates.ways(open_names(env, (node,)), env, None)
            )
        if isinstance(node, n.Var):
            value = env.values[node.name]
            return look_up(value.node, value.env) if isinstance(value, Thunk) else THROUGH
        bound = env.grammar.bindings.get(node.name) if isinstance(node, n.Slot) else None
        if isinstance(bound, ContextFreeGrammar):
            return of_values(bound)
        plain = self._plain(node, env)
        assert plain is not None, "every other node is text, values, or the end of an action"
        return plain

    def _plain(self, node: n.Node, env: Env) -> int | None:
        """The outcomes of text, values, the end of an action, and sequences of these; None for other nodes."""
        if isinstance(node, n.Seq):
            for item in node.items:
                outcome = self._plain(item, env)
                if outcome != THROUGH:
                    return outcome
        elif isinstance(node, n.Slot):
            if ends_action(node, env):
                return ENDS
            value = env.grammar.bindings.get(node.name)
            if isinstance(value, ContextFreeGrammar):
                return None
            return 0 if value == {} else THROUGH  # a list of values is never empty
        elif isinstance(node, n.Var):
            return None if isinstance(env.values[node.name], Thunk) else THROUGH
        elif not isinstance(node, (n.LiteralText, n.Chars, n.Choices, n.Except, n.Lazy, n.Inner, JsonText)):
            return None
        return THROUGH

    def _any(self, outcomes: Iterable[int]) -> int:
        union = 0
        for outcome in outcomes:
            union |= outcome
            if union == self._all:
                break
        return union

    def _in_order(self, items: Iterable[n.Node], env: Env, outcome: Callable[[n.Node, Env], int]) -> int:
        """The outcomes of `items` in sequence, for any values of the open parameters that they use."""

        def with_values(chosen: Env) -> int:
            ends = 0
            for item in items:
                found = outcome(item, chosen)
                ends |= found & ENDS
                if not found & THROUGH:
                    return ends
            return ends | THROUGH

        return self._any(with_values(chosen) for chosen, _ in self._templates.ways(open_names(env, items), env, None))
