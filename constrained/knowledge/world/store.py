"""`FactStore`: the objects of a world, the facts that are known to hold, and those that are ruled out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product

from constrained.knowledge.world.world import World, kind_of
from constrained.planning.facts import Fact
from constrained.planning.model import ROOT
from constrained.planning.wording import squeezed

MAX_THINGS = 2_000
"""Objects that answers may name; more are ignored."""

FactPattern = tuple[str | None, ...]
"""A fact in which None stands for any object."""


class FactStore:
    """Objects and facts, in the order in which they became known.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    objects : dict of str to str
        Object, in lower case -> type.
    types : dict of str to str
        Type -> its supertype: the world's types, and the types of objects that answers named.
    """

    def __init__(self, world: World):
        self.world = world
        self.objects: dict[str, str] = {}
        self.types = dict(world.domain.types)
        self._facts: dict[str, dict[Fact, None]] = {}
        self._denied: set[FactPattern] = set()
        self._complete: set[str] = set()
        self._spelling: dict[str, str] = {}

    def changed(self, things: bool = False) -> None:
        """Called after facts change, or after objects do (`things`)."""

    def kind_named(self, words: str, wider: str) -> str:
        """The type with a name; if there is none, a new subtype of `wider`."""
        named = squeezed(words)
        kind = next((kind for kind in self.types if squeezed(kind) == named), None)
        if kind is None:
            kind = named or wider
            self.types[kind] = wider
        return kind

    def add_object(self, name: str, wider: str) -> str:
        """Note an object, of the type in its name or else of `wider`; returns its key.

        If an answer has named all objects of the type `wider`, no more are added.
        """
        key = name.lower()
        complete = any(self.is_kind(wider, whole) for whole in self._complete)
        if key not in self.objects and not complete and len(self.objects) < MAX_THINGS:
            kind = kind_of(name)
            kind = self.kind_named(kind, wider) if kind != key or squeezed(kind) in map(squeezed, self.types) else wider
            related = self.is_kind(kind, wider) or self.is_kind(wider, kind)
            self.objects[key] = kind if related else wider
            self._spelling[key] = name
            self.changed(things=True)
        return key

    def is_kind(self, kind: str, wider: str) -> bool:
        """Whether `kind` is `wider` or one of its subtypes."""
        while kind != wider and kind in self.types:
            kind = self.types[kind]
        return kind == wider or wider == ROOT

    def of_kind(self, kind: str) -> list[str]:
        """The objects of a type, in the order in which they became known."""
        return [name for name, own_kind in self.objects.items() if self.is_kind(own_kind, kind)]

    def spell(self, name: str) -> str:
        """An object's name in its first spelling."""
        return self._spelling.get(name, name)

    @property
    def facts(self) -> Iterator[Fact]:
        """All facts that are known to hold."""
        return chain(*self._facts.values())

    def of(self, predicate: str, *terms: str | None) -> list[Fact]:
        """The facts of a predicate that are known to hold, the oldest first; None stands for any object."""
        return [
            fact
            for fact in self._facts.get(predicate, ())
            if all(term in (None, value) for term, value in zip(terms, fact[1:]))
        ]

    def value(self, predicate: str, *terms: str) -> str | None:
        """The last argument of the first fact that begins with these terms."""
        return next((fact[-1] for fact in self.of(predicate, *terms)), None)

    def holds(self, predicate: str, *terms: str) -> bool:
        """Whether a fact is known to hold."""
        return (predicate, *terms) in self._facts.get(predicate, ())

    def hold(self, *fact: str) -> None:
        """Note that a fact holds."""
        for pattern in self.one_of(fact):
            for replaced in self.of(fact[0], *pattern[1:]):
                if replaced != fact:
                    self.drop(*replaced)
        self._facts.setdefault(fact[0], {}).setdefault(fact)
        self._denied.discard(fact)
        self.changed()

    def drop(self, *fact: str) -> None:
        """Note that a fact doesn't hold."""
        self._facts.get(fact[0], {}).pop(fact, None)
        self._denied.add(fact)
        self.changed()

    def rule_out(self, pattern: FactPattern) -> None:
        """Note that no fact that matches a pattern holds."""
        for fact in self.of(str(pattern[0]), *pattern[1:]):
            self._facts[fact[0]].pop(fact)
        self._denied.add(pattern)
        self.changed()

    def fits(self, predicate: str, terms: tuple[str, ...]) -> bool:
        """Whether a fact's arguments are known objects of the declared types."""
        declared = self.world.domain.predicates[predicate]
        return all(
            term in self.objects and self.is_kind(self.objects[term], p.type) for term, p in zip(terms, declared)
        )

    def one_of(self, fact: Fact) -> Iterator[FactPattern]:
        """For each argument that has one value at a time, the fact with None in its place."""
        for number in self.world.single.get(fact[0], ()):
            yield *fact[: number + 1], None, *fact[number + 2 :]

    def ruled_out(self, fact: Fact) -> bool:
        """Whether a fact is known not to hold."""
        return any((fact[0], *pattern) in self._denied for pattern in product(*((term, None) for term in fact[1:])))
