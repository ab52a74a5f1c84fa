"""Which rests of a text can be finished, where a slot may have no value for some key.

A binding such as ``OBJECT={"shelf 1": [...]}`` leaves calls without any text, and what leads only
there must not be begun. Least fixed point over rule bodies and their parameters, computed as far as
it is asked for.
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
"""What a node can do: be read to its end; end the action, and with it the text, inside."""

Body = tuple[n.Node, Env]


def has_gaps(grammar: ContextFreeGrammar) -> bool:
    """Whether some slot may have no value for some key, or some relation none."""
    return any(
        any(isinstance(value, dict) for value in one.bindings.values()) or one.slots and one.of_rules(uses_relations)
        for one in grammar.nested()
    )


class Liveness:
    """Which frames can be finished, remembered."""

    def __init__(self, grammar: ContextFreeGrammar, frames: Frames, templates: Templates, limits: Limits):
        self._frames, self._templates, self._limits = frames, templates, limits
        has_steps = any(STEP in one.slots and STEP not in one.bindings for one in grammar.nested())
        self._all = THROUGH | ENDS if has_steps else THROUGH
        self._live: dict[Stack, bool] = {None: True}
        self._outcomes: dict[tuple[int, int], int] = {}
        self._keep: list[Body] = []  # whose ids are the keys

    def can_finish(self, frame: Stack) -> bool:
        """Whether some text completes all that is still open at `frame`."""
        calls = []  # one after the other, up to what is known
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
            found = self._rest_of_call(own, frame.env)
            live = self._live[frame] = bool(found & ENDS) or (bool(found) and live)
        return live

    def _rest_of_call(self, own: list[n.Node], env: Env) -> int:
        """What the rest of one call can do."""
        return self._in_order(own, env, self._outcome)

    def _outcome(self, node: n.Node, env: Env) -> int:
        """What `node` can do; works out first what that depends on."""
        root = id(node), id(env)
        if root in self._outcomes:
            return self._outcomes[root]
        asked: dict[tuple[int, int], Body] = {root: (node, env)}
        found = {root: 0}  # grows to the least fixed point
        users: dict[tuple[int, int], set[tuple[int, int]]] = {}
        batch: dict[tuple[int, int], int] = {}
        stack = [root]
        while stack:
            key = stack[-1]
            needs: dict[tuple[int, int], Body] = {}
            value = self._evaluate(*asked[key], found, needs)
            for need in needs:
                users.setdefault(need, set()).add(key)
            new = [need for need in needs if need not in found]
            if new and value != self._all:
                # few at first: the first that lives is often enough
                batch[key] = 2 * batch.get(key, 1)
                for need in new[: batch[key]]:
                    found[need], asked[need] = 0, needs[need]
                    stack.append(need)
                self._limits.check(
                    "cases",
                    len(found),
                    "too many cases to tell whether a text can be completed",
                    "give every key a value, or tie fewer parameters together",
                )
                continue
            stack.pop()
            if value != found[key]:
                found[key] = value
                stack.extend(users.get(key, ()))
        self._outcomes.update(found)
        self._keep.extend(asked.values())
        return found[root]

    def _evaluate(
        self, node: n.Node, env: Env, found: dict[tuple[int, int], int], needs: dict[tuple[int, int], Body]
    ) -> int:
        """What `node` can do, going by `found`; the bodies looked up are added to `needs`."""

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
            return found.get(key, 0)

        def of_values(values: Selected) -> int:
            if isinstance(values, ContextFreeGrammar) and not values.slots and not values.of_rules(uses_relations):
                return THROUGH  # nothing in it can be missing
            if isinstance(values, ContextFreeGrammar):
                return look_up(values.start, self._frames.env(values, {}, 0))
            return THROUGH if values.count else 0

        templates = self._templates
        if isinstance(node, n.Seq):
            # one value of each open parameter must do for all of it
            return self._in_order(node.items, env, lambda item, chosen: self._evaluate(item, chosen, found, needs))
        if isinstance(node, n.Alt):
            return self._any(self._evaluate(item, env, found, needs) for item in node.items)
        if isinstance(node, n.Repeat):
            one = self._evaluate(node.item, env, found, needs)
            return one if node.low else one | THROUGH
        if isinstance(node, n.Call):
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
        assert plain is not None, "what is left is text, values, or the end of an action"
        return plain

    def _plain(self, node: n.Node, env: Env) -> int | None:
        """What text, values and the end of an action can do, one after the other; None for all else."""
        if isinstance(node, n.Seq):
            for item in node.items:
                one = self._plain(item, env)
                if one != THROUGH:
                    return one
        elif isinstance(node, n.Slot):
            if ends_action(node, env):
                return ENDS
            value = env.grammar.bindings.get(node.name)
            if isinstance(value, ContextFreeGrammar):
                return None
            return 0 if value == {} else THROUGH  # a list of values is never empty
        elif isinstance(node, n.Var):
            return None if isinstance(env.values[node.name], Thunk) else THROUGH
        elif not isinstance(node, (n.Literal, n.Chars, n.Choices, n.Except, n.Lazy, n.Inner, JsonText)):
            return None
        return THROUGH

    def _any(self, outcomes: Iterable[int]) -> int:
        found = 0
        for one in outcomes:
            found |= one
            if found == self._all:
                break
        return found

    def _in_order(self, items: Iterable[n.Node], env: Env, outcome: Callable[[n.Node, Env], int]) -> int:
        """What `items` can do one after the other, with any values of the open parameters they hand on."""

        def with_values(chosen: Env) -> int:
            ends = 0
            for item in items:
                one = outcome(item, chosen)
                ends |= one & ENDS
                if not one & THROUGH:
                    return ends
            return ends | THROUGH

        return self._any(with_values(chosen) for chosen, _ in self._templates.ways(open_names(env, items), env, None))
