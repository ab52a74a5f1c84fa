"""All actions at any point of a path, with any arguments that exist now: what isn't among them is invalid."""

from __future__ import annotations

from collections.abc import Iterable

from constrained.automaton import Grammar
from constrained.automaton.explain import expected
from constrained.automaton.state import Prefix
from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.grammar import texts_in
from constrained.grammar.nodes import Node
from constrained.knowledge.action_graph import ActionGraph


class UnorderedActions:
    """The actions of a grammar without the rules of their order.

    A parameter may have any value that could reach it through some call: the values of slots, and those that earlier
    actions fixed. A parameter for what comes after the action stands for the rest of the path.

    `missing`: the node that stands for a parameter without a value.
    """

    def __init__(self, grammar: Grammar, graph: ActionGraph, missing: Node = nodes.NEVER):
        self._grammar = grammar
        self._graph = graph
        self._missing = missing
        self._openings: dict[str, Prefix | None] = {}
        self._fixed: dict[tuple[str, str], set[bytes]] = {}
        for node in nodes.walk(grammar.start, scopes=True):
            if isinstance(node, nodes.Scoped):
                self._note_fixed(node)

    def opening(self, action: str) -> Prefix | None:
        """The state before the texts of one action; None if it has none now."""
        if action not in self._openings:
            self._openings[action] = start_state(self._grammar.with_start(self._any_arguments(action)))
        return self._openings[action]

    def any_opening(self) -> Prefix | None:
        """The state before the texts of all actions."""
        return start_state(self._grammar.with_start(nodes.alt([self._any_arguments(a) for a in self._graph.actions])))

    def names(self, data: bytes) -> list[str]:
        """The actions that may be written as `data`, in the file's order."""
        states = ((a, self.opening(a)) for a in self._graph.actions)
        return [a for a, state in states if state and (end := state.read(data)) and end.accepting]

    def nearest(self, data: bytes) -> str | None:
        """The action that reads the longest prefix of `data`; None if no action reads a byte of it."""
        lengths = {a: longest_prefix(self.opening(a), data)[1] for a in self._graph.actions}
        best = max(lengths, key=lengths.__getitem__)
        return best if lengths[best] else None

    def _note_fixed(self, scope: nodes.Scoped) -> None:
        """Note the values that `scope` gives to the rules it calls."""
        for node in nodes.walk(scope.node):
            if isinstance(node, nodes.RuleRef):
                for param, arg in zip(self._grammar.rules[node.rule].params, node.args):
                    value = scope.values.get(arg.name) if isinstance(arg, nodes.Var) else None
                    if isinstance(value, (bytes, tuple)):
                        texts = {value} if isinstance(value, bytes) else value
                        self._fixed.setdefault((node.rule, param), set()).update(texts)

    def _any_arguments(self, action: str) -> Node:
        rule = self._grammar.rules[action]
        return nodes.Scoped(rule.body, {param: self._value(action, param) for param in rule.params})

    def _value(self, rule: str, param: str) -> tuple[bytes, ...] | nodes.Scoped:
        """All values that a parameter may have now, in the form that `Scoped` takes."""
        # Where the parameter's value may come from: earlier actions that fixed it, and the arguments of all calls.
        parameters, arguments = self._graph.sources(rule, param)
        texts = {text for parameter in parameters for text in self._fixed.get(parameter, ())}
        pieces: list[Node] = []
        for caller, arg in arguments:
            match arg:
                case nodes.LiteralText():
                    texts.add(arg.data)
                case nodes.Choices():
                    texts.update(arg.values)
                case nodes.Slot() | nodes.Related():
                    slot = arg if isinstance(arg, nodes.Slot) else arg.slot
                    texts.update(texts_in(self._grammar.bindings.get(slot.name, ())))
                    pieces += self._grammars(slot)
                # An argument that begins with actions stands for what comes after this action, not for a part of its
                # text.
                case _ if self._graph.leads_on(arg, caller):
                    pieces.append(self._grammar.start)
                case _:
                    values = {v.name: self._value(caller, v.name) for v in nodes.find(arg, nodes.Var)}
                    pieces.append(nodes.Scoped(arg, values))
        if not pieces:
            return tuple(sorted(texts)) or nodes.Scoped(self._missing, {})
        return nodes.Scoped(nodes.alt([nodes.choices(texts), *pieces]), {})

    def _grammars(self, slot: nodes.Slot) -> list[Node]:
        """The nodes of a slot that is bound to a grammar, or to grammars by key."""
        value = self._grammar.bindings.get(slot.name, ())
        if isinstance(value, dict):
            keys = [key for key, values in value.items() if isinstance(values, Grammar)]
            return [nodes.Related(nodes.AT, slot, nodes.LiteralText(key)) for key in keys]
        return [slot] if isinstance(value, Grammar) else []


def start_state(grammar: Grammar) -> Prefix | None:
    """The state before a text of `grammar`; None if its bindings leave it no text.

    Raises GrammarError: a slot was never bound, or (`LimitError`) the bindings cost more than the limits allow.
    """
    unbound = grammar.unbound()
    try:
        return grammar.begin
    except LimitError:  # there may be texts: it costs too much to tell
        raise
    except GrammarError:
        if unbound:
            raise
        return None


def longest_prefix(state: Prefix | None, data: bytes) -> tuple[Prefix | None, int]:
    """The state after the longest prefix of `data` that can be read, and the prefix's length in bytes."""
    for count, byte in enumerate(data):
        after = state.step(byte) if state else None
        if after is None:
            return state, count
        state = after
    return state, len(data)


def diagnose(state: Prefix | None, data: bytes, actions: Iterable[str], lenient: Prefix | None = None) -> str:
    """Say why `data`, read from `state`, is not an action.

    Parameters
    ----------
    state : Prefix or None
        None: there is no action now.
    actions : iterable of str
        The actions to name if not even the first byte fits.
    lenient : Prefix, optional
        A state that admits more than `state`: arguments that have no value now may be left out.
    """
    state, length = longest_prefix(state, data)
    _, lenient_length = longest_prefix(lenient, data)
    if not max(length, lenient_length):
        return f"no admitted action begins like this; the actions are {', '.join(actions)}"
    prefix = data[: max(length, lenient_length)].decode("utf-8", "ignore")
    if lenient_length > length or state is None:
        return f"stops fitting after {prefix!r}: nothing is there now that could stand here"
    return f"stops fitting after {prefix!r}, expected {expected(state) or 'nothing more'}"
