"""Some of a slot's values, picked by a relation, and made out only when they are looked at.

With 50 places, `another{PLACE, r}` is 49 values for each of 50 values of `r`; how many they
are is known without any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice

from constrained.automaton import positions as p
from constrained.automaton.graph_stack import Stacks
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import Grammar
from constrained.grammar.relations import ANOTHER, AT, BEFORE, FIRST, NEXT
from constrained.limits import Limits

Texts = "tuple[bytes, ...]"


class Listing(p.Unbound):
    """Texts in the order in which they were bound; as a parameter's value, one of them.

    Attributes
    ----------
    count : int
    given : tuple of bytes
        In that order.
    values : tuple of bytes
        Sorted.
    """

    __slots__ = ("_each", "_given", "_intern", "_places", "_values", "count")

    def __init__(self, count: int, each: Callable[[], Iterator[bytes]], intern: Callable[[Texts], Texts]):
        self.count, self._each, self._intern = count, each, intern
        self._given = self._values = self._places = None

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __iter__(self) -> Iterator[bytes]:
        return self._each() if self._given is None else iter(self._given)

    @property
    def given(self) -> Texts:
        if self._given is None:
            self._given = tuple(self._each())
        return self._given

    @property
    def values(self) -> Texts:
        if self._values is None:
            self._values = self._intern(tuple(sorted(self.given)))
        return self._values

    def place(self, text: bytes) -> int | None:
        """Where `text` stands among `given`."""
        if self._places is None:
            self._places = {text: i for i, text in enumerate(self.given)}
        return self._places.get(text)

    def pick(self, relation: str, text: bytes | None) -> Listing:
        """Those that stand in `relation` to `text`; none is next to, or before, what is not listed."""
        if relation == FIRST:
            return self._part(0, min(self.count, 1))
        at = self.place(text)
        if relation == ANOTHER:
            return self if at is None else Listing(self.count - 1, lambda: self._without(at), self._intern)
        if at is None:
            return self._part(0, 0)
        return {NEXT: self._part(at + 1, min(at + 2, self.count)), BEFORE: self._part(0, at)}[relation]

    def _part(self, start: int, end: int) -> Listing:
        return Listing(end - start, lambda: islice(self, start, end), self._intern)

    def _without(self, at: int) -> Iterator[bytes]:
        return (text for i, text in enumerate(self) if i != at)


class Relations(Stacks):
    """Finds the values that relations pick, each list of them once."""

    def __init__(self, limits: Limits):
        super().__init__(limits)
        self._listings: dict[tuple, Listing | Grammar] = {}
        self._keyed: dict[tuple, n.Related] = {}

    def related(self, node: n.Related, env: p.Env) -> Listing | Grammar:
        """The values that `node` stands for, the parameters in it having theirs; a Grammar where a key has that.

        Raises
        ------
        GrammarError
            Its slot is not bound to what the relation can pick from, or a parameter is no single value.
        """
        to = _related_to(node, env)
        key = (id(env.grammar), id(node), *to)
        found = self._listings.get(key)
        if found is None:
            found = self._listings[key] = self._pick(node, env, to[0])
        return found

    def at(self, slot: n.Slot, key: bytes) -> n.Related:
        """The node of a slot's values at a key."""
        found = self._keyed.get((id(slot), key))
        if found is None:
            found = self._keyed[id(slot), key] = n.Related(AT, slot, n.Literal(key))
        return found

    def _pick(self, node: n.Related, env: p.Env, to: bytes | n.Node | None) -> Listing | Grammar:
        if node.slot.name not in env.grammar.bindings:  # of a grammar that another's slot is bound to
            name = node.slot.name
            raise GrammarError(f"slot {name} is not bound", hint=f"bind it first: .bind({name}=[...])")
        if node.relation == AT:
            return self._at_key(node.slot, env.grammar, to)
        if isinstance(node.values, n.Related):
            values = self.related(node.values, env)
        else:
            values = self._all_of(node.values, env.grammar)
        if isinstance(values, Grammar):
            raise GrammarError(
                f"{node.relation}{{...}} picks from a list, but slot {node.slot.name} is bound to a grammar there",
                hint="bind it to texts",
            )
        if to is n.NEVER:
            return self._listing(())
        return values if to is n.EMPTY else values.pick(node.relation, to)

    def _at_key(self, slot: n.Slot, grammar: Grammar, key: bytes | n.Node) -> Listing | Grammar:
        bound, order = grammar.bindings[slot.name], grammar.orders[slot.name]
        if not isinstance(bound, dict):
            raise GrammarError(
                f"at{{{slot.name}, ...}}: slot {slot.name} is not bound by key",
                hint=f"bind it to a mapping: .bind({slot.name}={{key: [...]}})",
            )
        if key is n.EMPTY:
            return self._listing(tuple(dict.fromkeys(chain(*order.values()))))
        value = bound.get(key, ())
        return value if isinstance(value, Grammar) else self._listing(order.get(key, ()))

    def _all_of(self, slot: n.Slot, grammar: Grammar) -> Listing | Grammar:
        value = grammar.bindings[slot.name]
        if isinstance(value, dict) and value:
            raise GrammarError(
                f"slot {slot.name} depends on a key, and a relation has none for it",
                hint=f"write at{{{slot.name}, r}} in place of {slot.name}, r being the key",
            )
        if isinstance(value, Grammar):
            return value
        found = self._listings.get((id(grammar), slot.name))
        if found is None:
            found = self._listings[id(grammar), slot.name] = self._listing(grammar.orders[slot.name] or ())
        return found

    def _listing(self, given: Texts) -> Listing:
        return Listing(len(given), lambda: iter(given), self.list_of)


def _related_to(node: n.Related, env: p.Env) -> tuple:
    """The texts that `node`, and the relations in it, are related to; NEVER or EMPTY for none, or for any."""
    inner = _related_to(node.values, env) if isinstance(node.values, n.Related) else ()
    if not isinstance(node.to, n.Var):
        return (node.to and node.to.data, *inner)
    value = env.values[node.to.name]
    if isinstance(value, p.Thunk):
        if value.node is not n.NEVER and value.node is not n.EMPTY:  # which `Anywhere` has for no value
            raise GrammarError(
                f"{node.relation}{{{node.slot.name}, {node.to.name}}}: {node.to.name} is a piece of grammar, not one text",
                hint="hand it a slot that is bound to texts, or a text",
            )
        value = value.node
    return (value, *inner)
