"""Which rests of a text can be finished, where a slot may have no value for some key.

A binding such as ``OBJECT={"shelf 1": [...]}`` leaves calls without any text, and what
leads only there must not be begun. Least fixed point over rule bodies and their
parameters, computed as far as it is asked for.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.graph_stack import forks_below
from constrained.automaton.templates import ends_action, open_names, own_frames
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar
from constrained.grammar.relations import uses_relations

THROUGH, ENDS = 1, 2
"""What a node can do: be read to its end; end the action, and with it the text, inside."""

Body = tuple[n.Node, p.Env]


def has_gaps(grammar: Grammar) -> bool:
    """Whether some slot may have no value for some key, or some relation none."""
    return any(
        any(isinstance(value, dict) for value in one.bindings.values()) or one.of_rules(uses_relations)
        for one in grammar.nested()
    )


def _has_steps(grammar: Grammar) -> bool:
    return any(STEP in one.slots and STEP not in one.bindings for one in grammar.nested())


class Liveness:
    """Which frames of one automaton can be finished, remembered."""

    def __init__(self, automaton):
        self._automaton = automaton
        self._all = THROUGH | ENDS if _has_steps(automaton.grammar) else THROUGH
        self._frames: dict[p.Frame, bool] = {}
        self._outcomes: dict[tuple[int, int], int] = {}
        self._keep: list[Body] = []  # the keys are ids

    def can_finish(self, frame: p.Frame | None) -> bool:
        """Whether some text completes all that is still open at `frame`."""
        calls = []  # one after the other, up to what is known
        while frame is not None and frame not in self._frames:
            if frame.node is None:
                for fork in forks_below(frame, self._frames):
                    self._frames[fork] = any(map(self.can_finish, fork.ways))
                break
            own, after = own_frames(frame, frame.env)
            calls.append((frame, own))
            frame = after
        lives = frame is None or self._frames[frame]
        for frame, own in reversed(calls):
            found = self._own_outcome(own, frame.env)
            lives = self._frames[frame] = bool(found & ENDS) or (bool(found) and lives)
        return lives

    def _own_outcome(self, own: list[n.Node], env: p.Env) -> int:
        """What the rest of one call can do."""
        return self._any(
            self._in_order(own, lambda item: self._outcome(item, chosen))
            for chosen, _ in self._automaton.ways(open_names(env, own), env, None)
        )

    def _outcome(self, node: n.Node, env: p.Env) -> int:
        """What `node` can do; works out first what that depends on."""
        root = id(node), id(env)
        if root in self._outcomes:
            return self._outcomes[root]
        asked: dict[tuple, Body] = {root: (node, env)}
        found = {root: 0}  # grows to the least fixed point
        users: dict[tuple, set] = {}
        batch: dict[tuple, int] = {}
        stack = [root]
        while stack:
            key = stack[-1]
            needs: dict[tuple, Body] = {}
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
                self._automaton.limits.check(
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

    def _evaluate(self, node: n.Node, env: p.Env, found: dict, needs: dict) -> int:
        """What `node` can do, going by `found`; the bodies looked up are added to `needs`."""

        def look_up(body: n.Node, inner: p.Env) -> int:
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

        if isinstance(node, n.Seq):
            # one value of each open parameter must do for all of it
            return self._any(
                self._in_order(node.items, lambda item: self._evaluate(item, chosen, found, needs))
                for chosen, _ in self._automaton.ways(open_names(env, node.items), env, None)
            )
        if isinstance(node, n.Alt):
            return self._any(self._evaluate(item, env, found, needs) for item in node.items)
        if isinstance(node, n.Repeat):
            one = self._evaluate(node.item, env, found, needs)
            return one if node.low else one | THROUGH
        if isinstance(node, n.Call):
            return self._any(
                look_up(body, inner)
                for chosen, _ in self._automaton.ways(open_names(env, (node,)), env, None)
                for body, inner in self._automaton.bodies(node, chosen, 0)
            )
        if isinstance(node, n.Scoped):
            return look_up(node.node, self._automaton.scope(node, env.grammar, 0))
        if isinstance(node, n.Var) and isinstance(env.values[node.name], p.Thunk):
            return look_up(env.values[node.name].node, env.values[node.name].env)
        if isinstance(node, n.Related):
            return self._any(
                self._of_values(self._automaton.related(node, chosen), look_up)
                for chosen, _ in self._automaton.ways(open_names(env, (node,)), env, None)
            )
        if isinstance(node, n.Slot) and isinstance(env.grammar.bindings.get(node.name), Grammar):
            return self._of_values(env.grammar.bindings[node.name], look_up)
        return self._plain(node, env)

    def _of_values(self, values: p.Unbound | Grammar, look_up) -> int:
        if isinstance(values, Grammar):
            return look_up(values.start, self._automaton.env(values, {}, 0))
        return THROUGH if values.count else 0

    def _plain(self, node: n.Node, env: p.Env) -> int | None:
        """What text, values and the end of an action can do, one after the other; None where more is to be looked up."""
        if isinstance(node, n.Seq):
            for item in node.items:
                one = self._plain(item, env)
                if one != THROUGH:
                    return one
        elif isinstance(node, n.Slot):
            if ends_action(node, env):
                return ENDS
            value = env.grammar.bindings.get(node.name)
            if isinstance(value, Grammar):
                return None
            return 0 if value == {} else THROUGH  # a list of values is never empty
        elif isinstance(node, n.Var):
            return None if isinstance(env.values[node.name], p.Thunk) else THROUGH
        elif not isinstance(node, (n.Literal, n.Chars, n.Choices)):
            return None
        return THROUGH

    def _any(self, outcomes) -> int:
        found = 0
        for one in outcomes:
            found |= one
            if found == self._all:
                break
        return found

    @staticmethod
    def _in_order(items, outcome) -> int:
        ends = 0
        for item in items:
            one = outcome(item)
            ends |= one & ENDS
            if not one & THROUGH:
                return ends
        return ends | THROUGH
