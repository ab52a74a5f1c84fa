"""Template instantiation: which values a call's arguments may take, and when each is fixed.

A parameter whose argument is a slot stays open until it is first written or passed on. The values
that a relation picks (``another{PLACE, r}``) are listed lazily: with 50 places they are 49 values
for each of the 50 values of `r`, but their number is known without listing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from constrained.automaton.positions import Env, Frames, Stack, Thunk, Unbound, Value
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.nodes import ANOTHER, AT, BEFORE, FIRST, NEXT, STEP

Texts = tuple[bytes, ...]


class Templates:
    """Turns calls into (rule body, parameter values). A slot's value is fixed as late as possible."""

    def __init__(self, frames: Frames):
        self._frames = frames
        self._selected: dict[tuple, Selected] = {}
        self._keyed: dict[tuple[int, bytes], n.Related] = {}

    def env(self, grammar: ContextFreeGrammar) -> Env:
        """The environment without parameters."""
        return self._frames.env(grammar, {}, 0)

    def scope(self, node: n.Scoped, grammar: ContextFreeGrammar, level: int) -> Env:
        """The environment with the parameter values of `node`."""
        values: dict[str, Value] = {}
        for name, value in node.values.items():
            if isinstance(value, tuple):
                values[name] = Unbound(value)
            elif isinstance(value, n.Scoped):
                values[name] = Thunk(value.node, self.scope(value, grammar, level))
            elif isinstance(value, bytes):
                values[name] = value
        return self._frames.env(grammar, values, level)

    def instances(self, node: n.RuleRef, env: Env, level: int) -> Iterator[tuple[n.Node, Env]]:
        """Yield (body, environment) of the call; several where an argument must be fixed now.

        Parameters of `env` that the call passes on must have their values already (see :meth:`ways`).
        """
        rule = env.grammar.rules[node.rule]
        pending: list[dict[str, Value]] = [{}]
        for i in reversed(range(len(node.args))):  # last to first: a slot's key is the argument after it
            pending = [
                {rule.params[i]: value, **done}
                for done in pending
                for value in self._argument(node, i, env, done, rule.params)
            ]
        for values in pending:
            yield rule.body, self._frames.env(env.grammar, values, level)

    def _argument(self, node: n.RuleRef, i: int, env: Env, done: dict[str, Value], params) -> Iterable[Value]:
        """The values that argument `i` may take, given the values of the arguments after it in `done`."""
        arg = node.args[i]
        if isinstance(arg, n.Var):
            return (env.values[arg.name],)
        if isinstance(arg, n.LiteralText):
            return (arg.data,)
        before = node.args[i - 1] if i else None
        keyed = isinstance(before, n.Slot) and isinstance(env.grammar.bindings.get(before.name), dict)
        if isinstance(arg, n.Choices) and keyed:
            return arg.values  # the value is the key of the slot before it
        if isinstance(arg, n.Related):
            selection = self.related(arg, env)
            if isinstance(selection, ContextFreeGrammar):
                return (self._thunk(arg, env),)
            return selection.values if keyed or selection.count < 2 else (selection,)
        if not isinstance(arg, n.Slot):
            return (self._thunk(arg, env),)
        value = env.grammar.bindings.get(arg.name)
        if isinstance(value, dict):
            if not value:
                return ()  # the slot has no values for any key
            key = _key(arg.name, done, params, i)
            value = value.get(key, ())
            if isinstance(value, ContextFreeGrammar):
                return (self._thunk(self._at(arg, key), env),)
        if not isinstance(value, tuple):
            return (self._thunk(arg, env),)
        return value if keyed or len(value) < 2 else (Unbound(value),)

    def _thunk(self, arg: n.Node, env: Env) -> Thunk:
        """The argument `arg` of a call in `env`; without parameters in it, it is the same in every environment."""
        return Thunk(arg, env if n.find(arg, n.Var) else self.env(env.grammar))

    def ways(self, names: list[str], env: Env, rest: Stack) -> Iterator[tuple[Env, Stack]]:
        """Yield (`env`, `rest`) for each combination of values of the open parameters `names`."""
        if not names:
            yield env, rest
            return
        values = env.values[names[0]]
        assert isinstance(values, Unbound), "only open parameters are given values"
        for value in values:
            bound = self._with_value(env, names[0], value)
            yield from self.ways(names[1:], bound, self.rebind(rest, env, names[0], value))

    def _with_value(self, env: Env, name: str, value: bytes) -> Env:
        return self._frames.env(env.grammar, {**env.values, name: value}, env.level)

    def rebind(self, frame: Stack, env: Env, name: str, value: bytes) -> Stack:
        """The stack `frame` in which the remaining frames of `env`'s call have `value` for the parameter `name`."""
        own, rest = own_frames(frame, env)
        if own:
            env = self._with_value(env, name, value)
            for node in reversed(own):
                rest = self._frames.frame(node, env, rest)
        return rest

    def related(self, node: n.Related, env: Env) -> Selected:
        """The values that `node` stands for; the parameters in it must have values.

        Raises
        ------
        GrammarError
            Its slot is not bound to texts that the relation can pick from, or a parameter is not a single text.
        """
        to = _related_to(node, env)
        key = (id(env.grammar), id(node), *to)
        cached = self._selected.get(key)
        if cached is None:
            cached = self._selected[key] = self._select(node, env, to[0])
        return cached

    def _select(self, node: n.Related, env: Env, to: bytes | n.Node | None) -> Selected:
        name = node.slot.name
        if name not in env.grammar.bindings:  # an unbound slot of a grammar that itself is a slot's value
            raise GrammarError(f"slot {name} is not bound", hint=f"bind it first: .bind({name}=[...])")
        if node.relation == AT:
            return self._at_key(name, env.grammar, to)
        if isinstance(node.values, n.Related):
            values = self.related(node.values, env)
        else:
            values = self._all_of(name, env.grammar)
        if isinstance(values, ContextFreeGrammar):
            raise GrammarError(
                f"{node.relation}{{...}} picks from a list, but slot {name} is bound to a grammar there",
                hint="bind it to texts",
            )
        if to is n.NEVER:
            return self._selection(())
        return values.pick(node.relation, to) if to is None or isinstance(to, bytes) else values

    def _at(self, slot: n.Slot, key: bytes) -> n.Related:
        """The node that reads the values of a slot for `key`."""
        cached = self._keyed.get((id(slot), key))
        if cached is None:
            cached = self._keyed[id(slot), key] = n.Related(AT, slot, n.LiteralText(key))
        return cached

    def _at_key(self, name: str, grammar: ContextFreeGrammar, key: bytes | n.Node | None) -> Selected:
        bound, order = grammar.bindings[name], grammar.orders[name]
        if not isinstance(bound, dict) or not isinstance(order, dict):
            raise GrammarError(
                f"at{{{name}, ...}}: slot {name} is not bound by key",
                hint=f"bind it to a mapping: .bind({name}={{key: [...]}})",
            )
        if not isinstance(key, bytes):  # the key isn't known yet: the values of all keys
            return self._selection(tuple(dict.fromkeys(chain(*order.values()))))
        value = bound.get(key, ())
        return value if isinstance(value, ContextFreeGrammar) else self._selection(order.get(key, ()))

    def _all_of(self, name: str, grammar: ContextFreeGrammar) -> Selected:
        value = grammar.bindings[name]
        if isinstance(value, dict) and value:
            raise GrammarError(
                f"slot {name} depends on a key, and a relation has none for it",
                hint=f"write at{{{name}, r}} in place of {name}, r being the key",
            )
        if isinstance(value, ContextFreeGrammar):
            return value
        cached = self._selected.get((id(grammar), name))
        if cached is None:
            order = grammar.orders[name]
            cached = self._selected[id(grammar), name] = self._selection(order if isinstance(order, tuple) else ())
        return cached

    def _selection(self, given: Texts) -> Selection:
        return Selection(len(given), lambda: iter(given), self._frames.text_list)


class Selection(Unbound):
    """Some of a slot's texts, in the order in which they were bound. As a parameter's value: one of them.

    Attributes
    ----------
    count : int
    values : tuple of bytes
        Sorted.
    """

    __slots__ = ("_each", "_given", "_indices", "_intern", "_sorted", "count")

    def __init__(self, count: int, each: Callable[[], Iterator[bytes]], intern: Callable[[Texts], Texts]):
        self.count, self._each, self._intern = count, each, intern
        self._given: Texts | None = None
        self._sorted: Texts | None = None
        self._indices: dict[bytes, int] | None = None

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __iter__(self) -> Iterator[bytes]:
        return self._each() if self._given is None else iter(self._given)

    @property
    def values(self) -> Texts:
        if self._sorted is None:
            self._sorted = self._intern(tuple(sorted(self._in_order())))
        return self._sorted

    def _in_order(self) -> Texts:
        if self._given is None:
            self._given = tuple(self._each())
        return self._given

    def pick(self, relation: str, text: bytes | None) -> Selection:
        """The texts in `relation` to `text`. Nothing is next to or before a text that isn't listed."""
        if relation == FIRST:
            return self._part(0, min(self.count, 1))
        if self._indices is None:
            self._indices = {text: i for i, text in enumerate(self._in_order())}
        index = None if text is None else self._indices.get(text)
        if relation == ANOTHER:
            return self if index is None else Selection(self.count - 1, lambda: self._without(index), self._intern)
        if index is None:
            return self._part(0, 0)
        return {NEXT: self._part(index + 1, min(index + 2, self.count)), BEFORE: self._part(0, index)}[relation]

    def _part(self, start: int, end: int) -> Selection:
        return Selection(end - start, lambda: islice(self, start, end), self._intern)

    def _without(self, index: int) -> Iterator[bytes]:
        return (text for i, text in enumerate(self) if i != index)


Selected = Selection | ContextFreeGrammar
"""The values that a relation picks, or the grammar that the slot (or the slot at a key) is bound to."""


def own_frames(frame: Stack, env: Env) -> tuple[list[n.Node], Stack]:
    """The remaining nodes of the call that `env` belongs to, and the frame after it."""
    own = []
    while frame is not None and frame.env is env:
        own.append(frame.node)
        frame = frame.next
    return own, frame


def open_names(env: Env, nodes: Iterable[n.Node]) -> list[str]:
    """The open parameters that calls in the sequence `nodes` pass on before the action ends."""
    unbound = [name for name, value in env.values.items() if isinstance(value, Unbound)]
    if not unbound:
        return unbound
    used = set(_passed_on(nodes, env))
    return [name for name in unbound if name in used]


def ends_action(node: n.Node, env: Env) -> bool:
    """Whether `node` is an unbound `_STEP`, where the text ends."""
    return isinstance(node, n.Slot) and node.name == STEP and STEP not in env.grammar.bindings


def _passed_on(nodes: Iterable[n.Node], env: Env) -> Iterator[str]:
    for node in nodes:
        if ends_action(node, env):
            return
        if isinstance(node, (n.RuleRef, n.Related)):
            yield from (v.name for part in node.parts for v in n.walk(part) if isinstance(v, n.Var))
        elif isinstance(node, n.Alt):
            for item in node.items:
                yield from _passed_on((item,), env)
        else:
            yield from _passed_on(node.parts, env)


def _key(name: str, done: dict[str, Value], params, i: int) -> bytes:
    """The value of the argument after argument `i`, which is the key of slot `name`."""
    key = done.get(params[i + 1]) if i + 1 < len(params) else None
    if not isinstance(key, bytes):
        raise GrammarError(
            f"slot {name} depends on a key, but no argument follows it in the template call",
            hint=f"write the parameter it depends on after it: rule{{{name}, r}}",
        )
    return key


def _related_to(node: n.Related, env: Env) -> tuple:
    """The texts that `node` and the relations in it refer to; NEVER for no text, EMPTY for any."""
    inner = _related_to(node.values, env) if isinstance(node.values, n.Related) else ()
    if not isinstance(node.to, n.Var):
        return (node.to.data if isinstance(node.to, n.LiteralText) else None, *inner)
    value = env.values[node.to.name]
    if not isinstance(value, Thunk):
        return (value, *inner)
    if value.node is not n.NEVER and value.node is not n.EMPTY:  # `Unordered` passes these where there is no value
        raise GrammarError(
            f"{node.relation}{{{node.slot.name}, {node.to.name}}}: {node.to.name} is a piece of grammar, not one text",
            hint="pass it a slot that is bound to texts, or a text",
        )
    return (value.node, *inner)
