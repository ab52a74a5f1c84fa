"""A state of a planning problem, and what an imported file's slots are bound to in it.

Conditions are answered as conjunctive queries: facts are joined literal by literal, the one with the fewest unbound
variables first, so a state with hundreds of objects takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from constrained.knowledge.pddl.lark_file import LarkFile, SlotMeaning
from constrained.planning import model
from constrained.planning.model import Condition, Domain
from constrained.planning.normal_form import Disjunct

Bound = dict[str, str]
"""Variable -> object."""

Fact = tuple[str, ...]
"""The arguments of a predicate that is true of them."""

SlotValues = dict[str, "list[str] | dict[str, list[str]]"]


class State:
    """Objects and the facts that are true of them; names in any case.

    Parameters
    ----------
    domain : Domain
    objects : mapping of str to str
        Object -> type.
    facts : iterable of tuple of str
        Predicate first, then arguments.

    Attributes
    ----------
    names : dict of str to str
        Object in lower case -> as given.
    objects : dict of str to list of str
        Type -> its objects, subtypes' included.
    facts : dict of str to set of tuple of str
        Predicate -> the arguments it is true of.
    """

    def __init__(self, domain: Domain, objects: Mapping[str, str], facts: Iterable[Sequence[str]]):
        self.domain = domain
        self.names = {name.lower(): name for name in (*domain.constants, *objects)}
        types = {**domain.constants, **{name.lower(): kind.lower() for name, kind in objects.items()}}
        every = {model.ROOT, *domain.types}
        self.objects = {wide: [o for o, kind in types.items() if domain.is_subtype(kind, wide)] for wide in every}
        self._members = {kind: set(objects) for kind, objects in self.objects.items()}
        self.facts: dict[str, set[Fact]] = {}
        self._index: dict[tuple[str, int], dict[str, list[Fact]]] = {}
        for predicate, *arguments in facts:
            self.facts.setdefault(predicate.lower(), set()).add(tuple(a.lower() for a in arguments))

    def set_facts(self, predicate: str, facts: Iterable[Sequence[str]]) -> None:
        """Replace the facts of a predicate (their arguments)."""
        predicate = predicate.lower()
        new = {tuple(a.lower() for a in fact) for fact in facts}
        if new != self.facts.get(predicate, set()):
            self.facts[predicate] = new
            self._index = {key: value for key, value in self._index.items() if key[0] != predicate}

    def holds(self, condition: Condition, bound: Bound) -> bool:
        """Whether a condition is true."""
        match condition:
            case model.Literal():
                terms = tuple(bound.get(t, t) for t in condition.terms)
                true = terms[0] == terms[1] if condition.predicate == "=" else self._is_fact(condition.predicate, terms)
                return true == condition.positive
            case model.Junction():
                return (all if condition.operator == "and" else any)(self.holds(p, bound) for p in condition.parts)
            case model.Quantified():
                each = (self.holds(condition.part, inner) for inner in self._assignments(condition.variables, bound))
                return any(each) if condition.quantifier == "some" else all(each)

    def answers(self, action: model.Action, disjunct: Disjunct, wanted: Sequence[str]) -> set[Fact]:
        """The values of the `wanted` variables for which a disjunct of an action's precondition holds."""
        variables = (*action.parameters, *disjunct.variables)
        types = {v.name: v.type for v in variables}
        joined = [lit for lit in disjunct.literals if lit.positive and lit.predicate != "="]
        tested = [*disjunct.whole, *(lit for lit in disjunct.literals if lit not in joined)]
        out: set[Fact] = set()
        for bound in self._join(joined, types, {}):
            unbound = [v for v in variables if v.name not in bound]
            for assignment in self._assignments(unbound, bound):
                if all(self.holds(condition, assignment) for condition in tested):
                    out.add(tuple(assignment[v] for v in wanted))
        return out

    def _is_fact(self, predicate: str, arguments: Fact) -> bool:
        return arguments in self.facts.get(predicate, ())

    def _assignments(self, variables: Sequence[model.Parameter], bound: Bound) -> Iterator[Bound]:
        """`bound` with every combination of objects for some more variables."""
        if not variables:
            yield bound
            return
        first, *others = variables
        for name in self.objects.get(first.type, ()):
            yield from self._assignments(others, {**bound, first.name: name})

    def _join(self, literals: Sequence[model.Literal], types: Mapping[str, str], bound: Bound) -> Iterator[Bound]:
        """`bound` with every assignment to the variables of some positive literals that makes all of them true."""
        if not literals:
            yield bound
            return

        def unbound(literal: model.Literal) -> tuple[int, int]:
            return sum(t not in bound for t in set(literal.terms) if t[0] == "?"), len(literal.terms)

        best = min(literals, key=unbound)
        rest = [lit for lit in literals if lit is not best]
        for fact in self._candidates(best, bound):
            extended = self._unify(best, fact, types, bound)
            if extended is not None:
                yield from self._join(rest, types, extended)

    def _candidates(self, literal: model.Literal, bound: Bound) -> Collection[Fact]:
        """The facts that a positive literal may be, by the index of its first bound term."""
        for position, term in enumerate(literal.terms):
            value = bound.get(term) if term.startswith("?") else term
            if value is not None:
                key = (literal.predicate, position)
                if key not in self._index:
                    index = self._index[key] = {}
                    for fact in self.facts.get(literal.predicate, ()):
                        index.setdefault(fact[position], []).append(fact)
                return self._index[key].get(value, ())
        return self.facts.get(literal.predicate, ())

    def _unify(self, literal: model.Literal, fact: Fact, types: Mapping[str, str], bound: Bound) -> Bound | None:
        """`bound` with the variables of `literal` as `fact` has them; None if they don't agree."""
        out = dict(bound)
        for term, value in zip(literal.terms, fact):
            if not term.startswith("?"):
                if term != value:
                    return None
            elif term not in out:
                if value not in self._members.get(types[term], ()):
                    return None
                out[term] = value
            elif out[term] != value:
                return None
        return out


def view(file: LarkFile, state: State) -> SlotValues:
    """What the slots of an imported file are bound to in a state, for `ActionKnowledge.bind_view`.

    A slot's values are those for which the whole precondition of its action holds with some values of the other
    variables; a slot that depends on a key has them by the key's value.
    """
    answers: dict[str, list[tuple[tuple[str, ...], set[Fact]]]] = {}
    for name in {m.name for m in file.slots.values() if m.kind == "argument"}:
        action, forms = file.forms[name]
        wanted = {v for m in file.slots.values() if (m.kind, m.name) == ("argument", name) for v in (m.variable, m.key)}
        for disjunct in forms:
            known = {p.name for p in (*action.parameters, *disjunct.variables)}
            variables = tuple(sorted(wanted & known))
            answers.setdefault(name, []).append((variables, state.answers(action, disjunct, variables)))
    return {slot: _values(meaning, answers, state) for slot, meaning in file.slots.items()}


def _values(
    meaning: SlotMeaning, answers: Mapping[str, Sequence[tuple[tuple[str, ...], set[Fact]]]], state: State
) -> list[str] | dict[str, list[str]]:
    if meaning.kind == "type":
        return [state.names[o] for o in state.objects[meaning.name]] or {}
    if meaning.kind == "start":
        position = int(meaning.variable)
        return sorted({state.names[fact[position]] for fact in state.facts.get(meaning.name, ())}) or {}
    values: set[str] = set()
    by_key: dict[str, set[str]] = {}
    for variables, found in answers[meaning.name]:
        if meaning.variable not in variables:
            continue
        position = variables.index(meaning.variable)
        key_position = variables.index(meaning.key) if meaning.key in variables else None
        for objects in found:
            values.add(state.names[objects[position]])
            if key_position is not None:
                by_key.setdefault(state.names[objects[key_position]], set()).add(state.names[objects[position]])
    if meaning.key:
        return {key: sorted(found) for key, found in by_key.items()}
    return sorted(values) or {}


def everything(file: LarkFile, state: State) -> SlotValues:
    """Every slot of an imported file bound to all objects of its variable's type, so that order alone forbids."""
    domain = state.domain
    out: SlotValues = {}
    for slot, meaning in file.slots.items():
        kind = meaning.name
        if meaning.kind == "start":
            kind = domain.predicates[meaning.name][int(meaning.variable)].type
        elif meaning.kind == "argument":
            action, forms = file.forms[meaning.name]
            every = [*action.parameters, *(v for disjunct in forms for v in disjunct.variables)]
            kind = next(p.type for p in every if p.name == meaning.variable)
        out[slot] = [state.names[o] for o in state.objects[kind]] or {}
    return out
