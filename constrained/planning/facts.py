"""A state of the world: an immutable set of ground facts, indexed for joins.

A fact is a tuple, ("at", "truck1", "depot2"): the predicate, then objects, all in lower case. The facts of a predicate
form a `FactTable`. The state after an action shares the tables of all predicates that the action doesn't change, so the
cost of a step is proportional to what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Fact = tuple[str, ...]
"""A predicate, and the objects it is true of."""

NO_FACTS: frozenset[Fact] = frozenset()


class FactTable:
    """The facts of one predicate; immutable.

    Parameters
    ----------
    facts : frozenset of tuple of str
    """

    __slots__ = ("_index", "facts")

    def __init__(self, facts: frozenset[Fact], index: dict[int, dict[str, frozenset[Fact]]] | None = None):
        self.facts = facts
        self._index = {} if index is None else index

    def where(self, position: int, value: str) -> frozenset[Fact]:
        """The facts with `value` at a position; the predicate is at position 0, its first argument at 1."""
        index = self._index.get(position)
        if index is None:
            if not self.facts:  # the shared table `EMPTY`
                return NO_FACTS
            lists: dict[str, list[Fact]] = {}
            for fact in self.facts:
                lists.setdefault(fact[position], []).append(fact)
            index = self._index[position] = {key: frozenset(facts) for key, facts in lists.items()}
        return index.get(value, NO_FACTS)

    def changed(self, deleted: frozenset[Fact], added: frozenset[Fact]) -> FactTable:
        """The table with some facts deleted and some added; existing indexes are updated, not rebuilt."""
        indexes = {}
        for position, index in self._index.items():
            new = indexes[position] = dict(index)
            for fact in deleted:
                new[fact[position]] = new.get(fact[position], NO_FACTS) - {fact}
            for fact in added:
                new[fact[position]] = new.get(fact[position], NO_FACTS) | {fact}
        return FactTable((self.facts - deleted) | added, indexes)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, FactTable) and self.facts == other.facts)

    def __hash__(self) -> int:
        return hash(self.facts)


EMPTY = FactTable(NO_FACTS)


class FactSet:
    """An immutable, hashable set of facts.

    Parameters
    ----------
    facts : iterable of tuple of str

    Attributes
    ----------
    tables : mapping of str to Table
        Predicate -> its facts.
    known : dict
        Results cached with this state, such as its applicable actions; the key is the object that computed them.

    Examples
    --------
    >>> state = FactSet([("on", "a", "b"), ("clear", "a")])
    >>> ("on", "a", "b") in state, sorted(state.of("clear"))
    (True, [('clear', 'a')])
    """

    __slots__ = ("_hash", "known", "tables")

    def __init__(self, facts: Iterable[Fact] = ()):
        lists: dict[str, list[Fact]] = {}
        for fact in facts:
            lists.setdefault(fact[0], []).append(fact)
        self._set({predicate: FactTable(frozenset(of_predicate)) for predicate, of_predicate in lists.items()})

    def _set(self, tables: dict[str, FactTable]) -> None:
        self.tables: Mapping[str, FactTable] = tables
        self._hash: int | None = None
        self.known: dict[object, object] = {}

    def table(self, predicate: str) -> FactTable:
        """The facts of a predicate with their indexes."""
        return self.tables.get(predicate, EMPTY)

    def of(self, predicate: str) -> frozenset[Fact]:
        """The facts of a predicate."""
        return self.table(predicate).facts

    def changed(self, deleted: Iterable[Fact] = (), added: Iterable[Fact] = ()) -> FactSet:
        """The state with some facts deleted, then some added (a fact in both is true afterwards)."""
        changes: dict[str, tuple[set[Fact], set[Fact]]] = {}
        for fact in added:
            changes.setdefault(fact[0], (set(), set()))[1].add(fact)
        for fact in deleted:
            changes.setdefault(fact[0], (set(), set()))[0].add(fact)
        tables = dict(self.tables)
        for predicate, (gone, new) in changes.items():
            table = self.table(predicate)
            really_gone, really_new = table.facts.intersection(gone - new), frozenset(new - table.facts)
            if really_gone or really_new:
                tables[predicate] = table.changed(really_gone, really_new)
                if not tables[predicate].facts:
                    del tables[predicate]
        state = FactSet.__new__(FactSet)
        state._set(tables)
        return state

    def difference(self, other: FactSet) -> set[Fact]:
        """The facts that hold in this state but not in another."""
        return {
            fact
            for predicate, table in self.tables.items()
            if table is not other.tables.get(predicate)
            for fact in table.facts - other.of(predicate)
        }

    def __contains__(self, fact: object) -> bool:
        return isinstance(fact, tuple) and bool(fact) and fact in self.of(fact[0])

    def __iter__(self) -> Iterator[Fact]:
        for table in self.tables.values():
            yield from table.facts

    def __len__(self) -> int:
        return sum(len(table.facts) for table in self.tables.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FactSet) and self.tables == other.tables

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.tables.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FactSet({len(self)} facts)"
