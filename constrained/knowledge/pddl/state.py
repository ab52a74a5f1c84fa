"""A state of a planning problem, and what an imported file's slots are bound to in it.

Conditions are answered as conjunctive queries: facts are joined literal by literal, the one
with the most variables already bound first, so a state with hundreds of objects takes
milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from constrained.knowledge.pddl.lark_file import LarkFile, SlotMeaning
from constrained.knowledge.pddl.model import Action, Domain, Formula, Literal, typed_names
from constrained.knowledge.pddl.normal_form import Case

Bound = dict[str, str]
Atom = tuple[str, ...]


class State:
    """Objects and the facts that are true of them.

    Parameters
    ----------
    domain : Domain
    objects : mapping of str to str
        Object -> type.
    facts : iterable of tuple of str
        Predicate first, then arguments; names know no case.
    """

    def __init__(self, domain: Domain, objects: Mapping[str, str], facts: Iterable[Atom]):
        self.domain = domain
        self.names = {name.lower(): name for name in (*domain.constants, *objects)}
        kinds = {**domain.constants, **{name.lower(): kind.lower() for name, kind in objects.items()}}
        every = {"object", *domain.types}
        self.things = {wide: [o for o, kind in kinds.items() if domain.within(kind, wide)] for wide in every}
        self._members = {kind: set(things) for kind, things in self.things.items()}
        self.facts: dict[str, set[Atom]] = {}
        self._index: dict[tuple[str, int], dict[str, list[Atom]]] = {}
        for predicate, *arguments in facts:
            self.facts.setdefault(predicate.lower(), set()).add(tuple(a.lower() for a in arguments))

    def set_facts(self, predicate: str, facts: Iterable[Atom]) -> None:
        """Make exactly these facts of a predicate true (arguments only)."""
        predicate = predicate.lower()
        new = {tuple(a.lower() for a in fact) for fact in facts}
        if new != self.facts.get(predicate, set()):
            self.facts[predicate] = new
            self._index = {key: value for key, value in self._index.items() if key[0] != predicate}

    def is_a(self, name: str, kind: str) -> bool:
        """Whether an object is of a type."""
        return name in self._members.get(kind, ())

    def matching(self, literal: Literal, bound: Bound) -> Iterable[Atom]:
        """The facts that a positive literal may be, with what is bound."""
        for position, term in enumerate(literal.terms):
            value = bound.get(term) if term.startswith("?") else term
            if value is not None:
                return self._by(literal.predicate, position).get(value, ())
        return self.facts.get(literal.predicate, ())

    def _by(self, predicate: str, position: int) -> dict[str, list[Atom]]:
        key = (predicate, position)
        if key not in self._index:
            table = self._index[key] = {}
            for atom in self.facts.get(predicate, ()):
                table.setdefault(atom[position], []).append(atom)
        return self._index[key]

    def holds(self, formula: Formula, bound: Bound) -> bool:
        """Whether a condition is true."""
        head, *parts = formula
        if head == "not":
            return not self.holds(parts[0], bound)
        if head == "imply":
            return not self.holds(parts[0], bound) or self.holds(parts[1], bound)
        if head in ("and", "or"):
            return (all if head == "and" else any)(self.holds(part, bound) for part in parts)
        if head in ("exists", "forall"):
            each = (self.holds(parts[1], inner) for inner in self._every(typed_names(parts[0]), bound))
            return any(each) if head == "exists" else all(each)
        terms = tuple(bound.get(t, t) for t in parts)
        return terms[0] == terms[1] if head == "=" else terms in self.facts.get(head, ())

    def _every(self, variables: list[tuple[str, str]], bound: Bound) -> Iterator[Bound]:
        if not variables:
            yield bound
            return
        (name, kind), *others = variables
        for thing in self.things.get(kind, ()):
            yield from self._every(others, {**bound, name: thing})

    def answers(self, action: Action, case: Case, wanted: tuple[str, ...]) -> set[Atom]:
        """The values of `wanted` variables for which a case of an action's precondition holds."""
        types = {p.name: p.type for p in (*action.parameters, *case.variables)}
        positive = [lit for lit in case.literals if lit.positive and lit.predicate != "="]
        others: list[Formula] = list(case.whole)
        for literal in case.literals:
            if not literal.positive or literal.predicate == "=":
                plain = (literal.predicate, *literal.terms)
                others.append(plain if literal.positive else ("not", plain))
        out: set[Atom] = set()
        for bound in self._join(positive, types, {}):
            left = [(name, kind) for name, kind in types.items() if name not in bound]
            for whole in self._every(left, bound):
                if all(self.holds(formula, whole) for formula in others):
                    out.add(tuple(whole[v] for v in wanted))
        return out

    def _join(self, literals: list[Literal], types: dict[str, str], bound: Bound) -> Iterator[Bound]:
        if not literals:
            yield bound
            return
        best = min(
            literals, key=lambda lit: (sum(t not in bound for t in set(lit.terms) if t[0] == "?"), len(lit.terms))
        )
        rest = [lit for lit in literals if lit is not best]
        for atom in self.matching(best, bound):
            new = self._fit(best, atom, types, bound)
            if new is not None:
                yield from self._join(rest, types, new)

    def _fit(self, literal: Literal, atom: Atom, types: dict[str, str], bound: Bound) -> Bound | None:
        new = dict(bound)
        for term, value in zip(literal.terms, atom):
            if not term.startswith("?"):
                if term != value:
                    return None
            elif term not in new:
                if not self.is_a(value, types[term]):
                    return None
                new[term] = value
            elif new[term] != value:
                return None
        return new


def view(file: LarkFile, state: State) -> dict[str, list[str] | dict[str, list[str]]]:
    """What the slots of an imported file are bound to in a state, for `ActionKnowledge.bind_view`.

    A slot's values are those for which the whole precondition of its action holds with some
    values of the other variables; a slot that depends on a key has them by the key's value.
    """
    answers: dict[str, list[tuple[tuple[str, ...], set[Atom]]]] = {}
    for name in {m.name for m in file.slots.values() if m.kind == "argument"}:
        action, some = file.cased[name]
        wanted = {v for m in file.slots.values() if (m.kind, m.name) == ("argument", name) for v in (m.variable, m.key)}
        for case in some:
            known = {p.name for p in (*action.parameters, *case.variables)}
            variables = tuple(sorted(wanted & known))
            answers.setdefault(name, []).append((variables, state.answers(action, case, variables)))
    return {slot: _values(meaning, answers, state) for slot, meaning in file.slots.items()}


def everything(file: LarkFile, state: State) -> dict[str, list[str] | dict]:
    """Every slot of an imported file bound to all objects of its variable's type: then order alone forbids."""
    domain = state.domain
    out: dict[str, list[str] | dict] = {}
    for slot, meaning in file.slots.items():
        kind = meaning.name
        if meaning.kind == "start":
            kind = domain.predicates[meaning.name][int(meaning.variable)].type
        elif meaning.kind == "argument":
            action, some = file.cased[meaning.name]
            every = [*action.parameters, *(v for case in some for v in case.variables)]
            kind = next(p.type for p in every if p.name == meaning.variable)
        out[slot] = [state.names[o] for o in state.things[kind]] or {}
    return out


def _values(meaning: SlotMeaning, answers, state: State):
    if meaning.kind == "type":
        return [state.names[o] for o in state.things[meaning.name]] or {}
    if meaning.kind == "start":
        position = int(meaning.variable)
        return sorted({state.names[atom[position]] for atom in state.facts.get(meaning.name, ())}) or {}
    plain: set[str] = set()
    keyed: dict[str, set[str]] = {}
    for variables, found in answers[meaning.name]:
        if meaning.variable not in variables:
            continue
        at = variables.index(meaning.variable)
        by = variables.index(meaning.key) if meaning.key in variables else None
        for values in found:
            plain.add(state.names[values[at]])
            if by is not None:
                keyed.setdefault(state.names[values[by]], set()).add(state.names[values[at]])
    if meaning.key:
        return {key: sorted(values) for key, values in keyed.items()}
    return sorted(plain) or {}
