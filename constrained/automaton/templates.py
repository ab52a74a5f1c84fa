"""Calls of rules with template parameters: which values an argument may take, and when it is fixed.

A parameter that stands for a slot is open until it is first written, or handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from constrained.automaton import positions as p
from constrained.automaton.relations import Relations
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar


class Templates(Relations):
    """Turns calls into (rule body, parameter values); a slot's value is fixed as late as can be."""

    def scope(self, node: n.Scoped, grammar: Grammar, level: int) -> p.Env:
        """The parameters that `node` gives."""
        values = {}
        for name, value in node.values.items():
            if isinstance(value, n.Scoped):
                value = p.Thunk(value.node, self.scope(value, grammar, level))
            elif isinstance(value, tuple):
                value = p.Unbound(value)
            values[name] = value
        return self.env(grammar, values, level)

    def bodies(self, node: n.Call, env: p.Env, level: int) -> Iterator[tuple[n.Node, p.Env]]:
        """(body, parameters) of the call: several where an argument must be fixed now.

        What the call hands on of `env` is not open any more (see :meth:`ways`).
        """
        rule = env.grammar.rules[node.rule]
        pending: list[dict] = [{}]
        for i in reversed(range(len(node.args))):
            pending = [
                {rule.params[i]: value, **done}
                for done in pending
                for value in self._argument(node, i, env, done, rule.params)
            ]
        for values in pending:
            yield rule.body, self.env(env.grammar, values, level)

    def _argument(self, node: n.Call, i: int, env: p.Env, done: dict, params) -> Iterable:
        """The values argument `i` may take, those after it being `done`."""
        arg = node.args[i]
        if isinstance(arg, n.Var):
            return (env.values[arg.name],)
        if isinstance(arg, n.Literal):
            return (arg.data,)
        before = node.args[i - 1] if i else None
        keyed = isinstance(before, n.Slot) and isinstance(env.grammar.bindings.get(before.name), dict)
        if isinstance(arg, n.Choices) and keyed:
            return arg.values  # the slot before it depends on this value
        if isinstance(arg, n.Related):
            listing = self.related(arg, env)
            if isinstance(listing, Grammar):
                return (p.Thunk(arg, env),)
            return listing.values if keyed or listing.count < 2 else (listing,)
        value = env.grammar.bindings.get(arg.name) if isinstance(arg, n.Slot) else None
        if isinstance(value, dict):
            if not value:
                return ()  # nothing anywhere
            key = _key(arg.name, done, params, i)
            value = value.get(key, ())
            if isinstance(value, Grammar):
                return (p.Thunk(self.at(arg, key), env),)
        if not isinstance(value, tuple):
            return (p.Thunk(arg, env),)
        return value if keyed or len(value) < 2 else (p.Unbound(value),)

    def ways(self, names: list[str], env: p.Env, rest: p.Frame | None) -> Iterator[tuple]:
        """(`env`, `rest`) for each way to give the open parameters `names` their values."""
        if not names:
            yield env, rest
            return
        for value in env.values[names[0]]:
            bound = self.with_value(env, names[0], value)
            yield from self.ways(names[1:], bound, self.rebind(rest, env, names[0], value))

    def with_value(self, env: p.Env, name: str, value: bytes) -> p.Env:
        """`env` with one parameter's value chosen."""
        return self.env(env.grammar, {**env.values, name: value}, env.level)

    def rebind(self, frame: p.Frame | None, env: p.Env, name: str, value: bytes) -> p.Frame | None:
        """`frame` with what is left of `env`'s own call given the parameter's value."""
        own, rest = own_frames(frame, env)
        if own:
            env = self.with_value(env, name, value)
            for node in reversed(own):
                rest = self.frame(node, env, rest)
        return rest


def own_frames(frame: p.Frame | None, env: p.Env) -> tuple[list[n.Node], p.Frame | None]:
    """What is left of `env`'s own call, and the frame after it."""
    own = []
    while frame is not None and frame.env is env:
        own.append(frame.node)
        frame = frame.next
    return own, frame


def open_names(env: p.Env, nodes: Iterable[n.Node]) -> list[str]:
    """The open parameters that calls in `nodes`, one after the other, hand on in this action."""
    waiting = [name for name, value in env.values.items() if isinstance(value, p.Unbound)]
    if not waiting:
        return waiting
    used = set(_handed_on(nodes, env))
    return [name for name in waiting if name in used]


def ends_action(node: n.Node, env: p.Env) -> bool:
    """`node` is an unbound `_STEP`: the text ends here."""
    return isinstance(node, n.Slot) and node.name == STEP and STEP not in env.grammar.bindings


def _handed_on(nodes: Iterable[n.Node], env: p.Env) -> Iterator[str]:
    for node in nodes:
        if ends_action(node, env):
            return
        if isinstance(node, (n.Call, n.Related)):
            yield from (v.name for part in n.children(node) for v in n.walk(part) if isinstance(v, n.Var))
        elif isinstance(node, n.Alt):
            for item in node.items:
                yield from _handed_on((item,), env)
        else:
            yield from _handed_on(n.children(node), env)


def _key(name: str, done: dict, params, i: int) -> bytes:
    """The value of the argument after argument `i`, which slot `name` depends on."""
    key = done.get(params[i + 1]) if i + 1 < len(params) else None
    if not isinstance(key, bytes):
        raise GrammarError(
            f"slot {name} depends on a key, but no argument follows it in the template call",
            hint=f"write the parameter it depends on after it: rule{{{name}, r}}",
        )
    return key
