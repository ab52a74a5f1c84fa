"""Any action at any point, with any arguments that are there now: what tells misordered from invalid."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.automaton.automaton import State
from constrained.errors import GrammarError
from constrained.grammar import Grammar
from constrained.grammar import nodes as n
from constrained.grammar.grammar import texts_in
from constrained.grammar.relations import AT
from constrained.knowledge.action_graph import ActionGraph
from constrained.knowledge.diagnosis import fitting


class Anywhere:
    """The actions of a grammar, cut loose from their order.

    A parameter may have every value that could reach it through some call: those its slots are
    bound to, and those that earlier actions fixed; `none` is what stands for a parameter that
    has no value. A parameter for what comes after the action is what comes next here.
    """

    def __init__(self, grammar: Grammar, graph: ActionGraph, none: n.Node = n.NEVER):
        self._grammar = grammar
        self._graph = graph
        self._none = none
        self._begun: dict[str, State | None] = {}
        self._fixed: dict[tuple[str, str], set[bytes]] = {}
        for node in _scopes(grammar.start):
            self._note_fixed(node)

    def action(self, name: str) -> State | None:
        """The state before the texts of one action; None if it has none now."""
        if name not in self._begun:
            self._begun[name] = opening(self._grammar.with_start(self._free(name)))
        return self._begun[name]

    def any_action(self) -> State | None:
        """The state before the texts of all actions."""
        return opening(self._grammar.with_start(n.alt([self._free(a) for a in self._graph.actions])))

    def names(self, data: bytes) -> list[str]:
        """The actions that `data` can be, in the file's order."""
        states = ((a, self.action(a)) for a in self._graph.actions)
        return [a for a, state in states if state and (end := state.read(data)) and end.accepting]

    def nearest(self, data: bytes) -> str | None:
        """The action that `data` begins like, longest match."""
        lengths = {a: fitting(self.action(a), data)[1] for a in self._graph.actions}
        best = max(lengths, key=lengths.__getitem__)
        return best if lengths[best] else None

    def _note_fixed(self, scope: n.Scoped) -> None:
        """The values that `scope` hands to the rules it calls."""
        for node in n.walk(scope.node):
            if isinstance(node, n.Call):
                for param, arg in zip(self._grammar.rules[node.rule].params, node.args):
                    value = scope.values.get(arg.name) if isinstance(arg, n.Var) else None
                    if isinstance(value, (bytes, tuple)):
                        texts = {value} if isinstance(value, bytes) else value
                        self._fixed.setdefault((node.rule, param), set()).update(texts)

    def _free(self, action: str) -> n.Node:
        rule = self._grammar.rules[action]
        return n.Scoped(rule.body, {param: self._value(action, param) for param in rule.params})

    def _value(self, rule: str, param: str):
        texts: set[bytes] = set()
        pieces: list[n.Node] = []
        for found in self._reaching(rule, param, set()):
            if isinstance(found, bytes):
                texts.add(found)
            else:
                pieces.append(found)
        if not pieces:
            return tuple(sorted(texts)) or n.Scoped(self._none, {})
        return n.Scoped(n.alt([n.choices(texts), *pieces]), {})

    def _reaching(self, rule: str, param: str, seen: set) -> Iterator[bytes | n.Node]:
        """Every text, and every other piece of grammar, that a parameter may now be."""
        if (rule, param) in seen:
            return
        seen.add((rule, param))
        yield from self._fixed.get((rule, param), ())
        for caller, arg in self._graph.arguments.get((rule, param), ()):
            if isinstance(arg, n.Var):
                yield from self._reaching(caller, arg.name, seen)
            elif isinstance(arg, (n.Literal, n.Choices)):
                yield from (arg.data,) if isinstance(arg, n.Literal) else arg.values
            elif isinstance(arg, (n.Slot, n.Related)):
                yield from self._slot(arg if isinstance(arg, n.Slot) else arg.slot)
            elif self._graph.leads_on(arg, caller):
                yield self._grammar.start
            else:
                values = {v.name: self._value(caller, v.name) for v in n.walk(arg) if isinstance(v, n.Var)}
                yield n.Scoped(arg, values)

    def _slot(self, slot: n.Slot) -> Iterator[bytes | n.Node]:
        value = self._grammar.bindings.get(slot.name, ())
        yield from texts_in(value)
        if isinstance(value, Grammar):
            yield slot
        elif isinstance(value, dict):
            keys = (key for key, one in value.items() if isinstance(one, Grammar))
            yield from (n.Related(AT, slot, n.Literal(key)) for key in keys)


def opening(grammar: Grammar) -> State | None:
    """The state before a text of `grammar`; None if its bindings leave it none."""
    missing = grammar.unbound()
    try:
        return grammar.automaton.start
    except GrammarError:
        if missing:
            raise  # a slot was forgotten: another matter
        return None


def _scopes(node: n.Node) -> Iterator[n.Scoped]:
    """The scopes of a place on a path, those inside their values included."""
    for part in n.walk(node):
        if isinstance(part, n.Scoped):
            yield part
            yield from _scopes(part.node)
            for value in part.values.values():
                if isinstance(value, n.Scoped):
                    yield from _scopes(value)
