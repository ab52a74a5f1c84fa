"""Calls of rules with template parameters: which values an argument may take, and when it is fixed."""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.interning import Interning
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar


class Templates(Interning):
    """Turns calls into (rule body, parameter values); a slot's value is fixed as late as can be."""

    def _scope(self, node: n.Scoped, grammar, level: int) -> p.Env:
        values = {}
        for name, value in node.values.items():
            if isinstance(value, n.Scoped):
                value = p.Thunk(value.node, self._scope(value, grammar, level))
            elif isinstance(value, tuple):
                value = p.Unbound(value)
            values[name] = value
        return self._env(grammar, values, level)

    def _call(self, node: n.Call, env: p.Env, rest) -> list[tuple[n.Node, p.Env]]:
        """(body, parameters) of the call: several where a parameter must be fixed now."""
        rule = env.grammar.rules[node.rule]
        level = 0 if rest is None else rest.env.level + 1
        if not node.args:
            return [(rule.body, self._env(env.grammar, {}, level))]
        pending: list[dict] = [{}]
        for i in reversed(range(len(node.args))):
            pending = [
                {rule.params[i]: value, **done}
                for done in pending
                for value in self._argument(node, i, env, done, rule.params)
            ]
        return [(rule.body, self._env(env.grammar, values, level)) for values in pending]

    def _argument(self, node: n.Call, i: int, env: p.Env, done: dict, params) -> list:
        """The values argument `i` may take, those after it being `done`."""
        arg = node.args[i]
        if isinstance(arg, n.Var):
            value = env.values[arg.name]
            return list(value.values) if isinstance(value, p.Unbound) else [value]
        if isinstance(arg, (n.Literal, n.Choices)):
            values = (arg.data,) if isinstance(arg, n.Literal) else arg.values
        elif isinstance(arg, n.Slot):
            values = self._slot_values(arg.name, env, done, params, i)
            if values is None:
                return [self._thunk(arg, env)]
        else:
            return [self._thunk(arg, env)]
        if not values:
            return []
        before = node.args[i - 1] if i else None
        keyed = isinstance(before, n.Slot) and isinstance(env.grammar.bindings.get(before.name), dict)
        if keyed or len(values) == 1:
            return list(values)  # the slot before it depends on this value
        return [p.Unbound(values)]

    @staticmethod
    def _thunk(arg: n.Node, env: p.Env) -> p.Thunk:
        for node in n.walk(arg):
            if isinstance(node, n.Var) and isinstance(env.values[node.name], p.Unbound):
                raise GrammarError(
                    f"parameter '{node.name}' is passed on inside an argument before it has a value",
                    hint="write the parameter into the text first, or pass it by itself",
                )
        return p.Thunk(arg, env)

    def _slot_values(self, name: str, env: p.Env, done: dict, params, i: int):
        value = env.grammar.bindings.get(name)
        if isinstance(value, Grammar) or (value is None and name == STEP):
            return None
        if not isinstance(value, dict):
            return value
        key = done.get(params[i + 1]) if i + 1 < len(params) else None
        if not isinstance(key, bytes):
            raise GrammarError(
                f"slot {name} depends on a key, but no argument follows it in the template call",
                hint=f"write the parameter it depends on after it: rule{{{name}, r}}",
            )
        return value.get(key, ())

    def _rebind(self, frame: p.Frame | None, env: p.Env, name: str, value: bytes):
        """`frame` with the frames of `env`'s own call given the parameter's value."""
        if frame is None or frame.env is not env:
            return frame
        bound = self._env(env.grammar, {**env.values, name: value}, env.level)
        return self.frame(frame.node, bound, self._rebind(frame.next, env, name, value))
