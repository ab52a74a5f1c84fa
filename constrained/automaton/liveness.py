"""Liveness: which frames can still be finished, where a slot may have no value for some key.

A binding such as ``OBJECT={"shelf 1": [...]}`` leaves some calls without any text, and whatever leads
only to those must not be begun. This is a least fixed point over rule bodies and their arguments,
computed on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from itertools import count

from constrained.automaton.graph_stack import forks_below
from constrained.automaton.positions import Env, Fork, Frames, Stack, Thunk
from constrained.automaton.templates import Selected, Templates, ends_action, open_names, own_frames
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_text import JsonText
from constrained.grammar.nodes import STEP
from constrained.grammar.traverse import reached, uses_relations
from constrained.limits import Limits

THROUGH, ENDS = 1, 2
"""Outcomes of a node: it can be read to its end; it can end the action, and so the text, inside."""

Instance = tuple[n.Node, Env]
"""A node, and the values of the parameters in it."""

FAIR = 32
"""Every so many steps of a search, the instance that has waited longest is examined."""

ENOUGH = 256
"""Instances from which on a search ends as soon as it knows that the text can be finished."""


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
        """The outcomes of `node`, computing first those that it depends on.

        Of a search that is not brought to its end, only that the text can be finished is certain.
        """
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
        # Depth first, as the first of a node's needs often decides. But a template that hands itself ever longer
        # arguments has instances without end: so the oldest key has its turn, too, and the search may end early.
        most = 0  # an upper bound of the root's outcomes, once it is needed
        for step in count(1):
            if len(outcomes) > ENOUGH and outcomes[root]:
                most = most or self._most(node, env)
                if outcomes[root] & ENDS or outcomes[root] == most:
                    break
            if not stack:
                break
            key = next(reversed(stack)) if step % FAIR else next(iter(stack))
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
        # Outcomes only grow, so all of them are final at the fixed point; before it, those that can't grow are.
        final = [key for key, value in outcomes.items() if not stack or value == self._most(*asked[key])]
        self._outcomes.update((key, outcomes[key]) for key in final)
        self._keep.extend(asked[key] for key in final)
        return outcomes[root]

    def _most(self, node: n.Node, env: Env) -> int:
        """An upper bound of the outcomes of `node`, whatever the slots' values are."""
        if STEP not in env.grammar.slots or STEP in env.grammar.bindings:
            return THROUGH
        ending = env.grammar.of_rules(_ending_rules)
        return self._all if _may_end_action(node, ending) else THROUGH

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


_ARGUMENTS = ""
"""Stands, among the names of rules, for the arguments of templates."""


def _ending_rules(rules: Mapping[str, n.Rule]) -> frozenset[str]:
    """The rules in which an action may end, and `_ARGUMENTS` if it may end in an argument of some call."""
    parts = {name: n.walk(rule.body, scopes=True) for name, rule in rules.items()}
    calls = (part for found in parts.values() for part in found if isinstance(part, n.RuleRef))
    parts[_ARGUMENTS] = [part for call in calls for arg in call.args for part in n.walk(arg, scopes=True)]
    users: dict[str, list[str]] = {}
    for name, found in parts.items():
        for part in found:
            if isinstance(part, (n.RuleRef, n.Var)):
                users.setdefault(_called(part), []).append(name)
    ends = [name for name, found in parts.items() if any(map(n.is_step, found))]
    return frozenset(reached(ends, lambda name: users.get(name, ())))


def _called(part: n.RuleRef | n.Var) -> str:
    return part.rule if isinstance(part, n.RuleRef) else _ARGUMENTS


def _may_end_action(node: n.Node, ending: Container[str]) -> bool:
    """Whether an action may end in `node`, where it may in the rules `ending`."""
    parts = n.walk(node, scopes=True)
    return any(n.is_step(part) or (isinstance(part, (n.RuleRef, n.Var)) and _called(part) in ending) for part in parts)
