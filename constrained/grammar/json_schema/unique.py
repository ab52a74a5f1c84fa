"""Items that all differ (uniqueItems), and free names that do, where they are counted (minProperties).

Few values are told apart as the properties of an object are: each may be written once. Of more, those that a text has
written are remembered (`automaton.distinct`); it must be plain that there always is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from constrained.errors import GrammarError
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.constraints import Constraints, ValueWriter
from constrained.grammar.json_schema.document import Subschema
from constrained.grammar.json_schema.patterns import has_texts
from constrained.grammar.json_schema.whitespace import Layout
from constrained.grammar.members import Names
from constrained.grammar.nodes import EMPTY, NEVER, Distinct, Node, alt, literal, seq

DISTINCT = 1_000
"""Values that the items of an array with uniqueItems may have, and names that are told apart by patterns."""


def unique_items(
    constraints: Constraints, low: int, high: int | None, writer: ValueWriter, name: str, layout: Layout
) -> Node | None:
    """Items that all differ."""
    fixed = constraints.prefix() or constraints.wanted()
    values = None if fixed else writer.values(constraints.item(0))
    if values is None or len(values) > DISTINCT:
        return _remembered(constraints, low, high, writer, name, layout)
    # Each is a text that may be written once, as a name in an object is.
    texts = {text: i for i, value in enumerate(values) for text in writer.spellings(value)}
    each = ((EMPTY, 0),)
    items = Names(texts, (each,) * len(values), 0, NEVER, NEVER, 0, layout.comma, max(low, 1), high).start()
    full = layout.around("[", items, "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])


def _remembered(
    constraints: Constraints, low: int, high: int | None, writer: ValueWriter, name: str, layout: Layout
) -> Node | None:
    """Items that all differ, told by remembering those that are written; None if that is left out."""
    own = constraints.prefix() if high is None else min(constraints.prefix(), high)
    parts = [constraints.item(i) for i in range(own + (own != high))]
    kinds = [one for each in parts for one in writer.constraints_of(each)]
    closed = [one for one in kinds if not _goes_on(one, writer)]
    varied = _varied(closed, writer) if closed else None
    hint = "leave uniqueItems out and look for repeats afterwards"
    if writer.options.distinct is None:
        what = f"uniqueItems takes items of which there are at most {DISTINCT:,} values"
    elif constraints.wanted():
        what = "uniqueItems of such items is not supported beside contains"
    elif closed and not varied:
        what = (
            "uniqueItems takes no arrays or objects as items of which it isn't plain that there is always another one"
        )
        hint = "let them have further items or properties, or a property that may be any text, or leave uniqueItems out"
    elif low > 1 and not all(any(_has_many(one, low, writer) for one in writer.constraints_of(each)) for each in parts):
        what = f"it isn't plain that there are {low} items that differ"
    elif low > writer.limits.distinct:
        what = f"no more than {writer.limits.distinct:,} items are remembered (the limit `distinct`)"
    else:
        free = all(any(map(_is_free, writer.constraints_of(each))) for each in parts)
        named = [set(one.names) for one in kinds if one.listed is None and "object" in one.types]
        once = tuple(sorted(set.intersection(*named))) if named else ()
        items = [writer.node(each) for each in parts]
        rest = items.pop() if own != high else NEVER
        end = seq([layout.edge, literal("]")])
        inside = [literal("]")] * (not low)
        if high != 0:
            inside.append(seq([layout.edge, layout.in_a_row(items, rest, low, high), end]))
        return opened("[", f"{name} items", partial(alt, inside), Distinct(False, free, once, varied), writer)
    writer.options.refuse(constraints.all("uniqueItems")[0][0], "uniqueItems", what, hint)
    return None


def opened(bracket: str, rule: str, inside: Callable[[], Node], distinct: Distinct, writer: ValueWriter) -> Node:
    """A bracket and what follows it, as a rule in which something differs."""
    assert writer.options.distinct is not None, "asked before"
    if writer.settled and not writer.options.distinct:  # the grammar may be in use as one that remembers nothing
        raise GrammarError(f"JSON Schema: {rule} was not known when it was loaded", hint="please report this")
    writer.options.distinct[rule] = distinct
    return seq([literal(bracket), writer.later(rule, inside)])


def _goes_on(constraints: Constraints, writer: ValueWriter) -> bool:
    """Whether arrays and objects of these can always have another item or property: so there is one that differs."""
    if constraints.listed is not None:
        return not any(isinstance(value, (list, dict)) for value in constraints.listed[1])
    if "array" in constraints.types and not _array_goes_on(constraints, writer):
        return False
    if "object" not in constraints.types:
        return True
    named = constraints.key_patterns or constraints.all("propertyNames") or constraints.witnesses()
    low, high = constraints.counts("Properties")
    return low <= 1 and high is None and not named and _takes_some(constraints.key(None, frozenset()), writer)


def _array_goes_on(constraints: Constraints, writer: ValueWriter) -> bool:
    if constraints.counts("Items")[1] is not None or constraints.wanted() or constraints.all("uniqueItems"):
        return False
    return _takes_some(constraints.item(constraints.prefix()), writer)


def _takes_some(parts: list[Subschema], writer: ValueWriter) -> bool:
    return any(writer.admits(value, parts) for value in _SIMPLE)


def _varied(every: list[Constraints], writer: ValueWriter) -> tuple[str, ...]:
    """Names that all of some objects may have in any order, each with more values than are remembered."""
    found: list[set[str]] = []
    for one in every:
        named = one.key_patterns or one.all("propertyNames") or one.witnesses()
        is_array = "array" in one.types and not _array_goes_on(one, writer)
        if one.listed is not None or named or is_array or not writer.options.any_order:
            return ()
        if writer.node(one.key(None, frozenset())) is not NEVER:  # free names may be written twice
            return ()
        always = one.required if one.counts("Properties")[1] is not None or one.present else one.names
        most = writer.limits.distinct
        many = (name for name in always if any(_has_many(v, most, writer) for v in _scalars_of(one, name, writer)))
        found.append(set(many))
    return tuple(sorted(set.intersection(*found)))


def _scalars_of(constraints: Constraints, name: str, writer: ValueWriter) -> list[Constraints]:
    every = writer.constraints_of(constraints.property(name))
    return [one for one in every if one.types.isdisjoint(("array", "object"))]


_SIMPLE: list[Any] = [None, True, 0, 1, "", "a", [], {}]


def _has_many(constraints: Constraints, count: int, writer: ValueWriter) -> bool:
    """Whether there surely are so many values."""
    if constraints.listed is not None:
        return False
    if not constraints.types.isdisjoint(("array", "object")):  # `_goes_on`
        return True
    if "string" in constraints.types and not constraints.denied and not strings.unmatched(constraints):
        trees, (low, high) = strings.trees(constraints), constraints.counts("Length")
        if not trees and (high is None or high >= max(low, 1)):
            return True
        if len(trees) == 1 and not low and high is None and has_texts(trees[0], count, writer.limits):
            return True
    if constraints.types.isdisjoint(("integer", "number")) or constraints.denied:
        return False
    if constraints.multiple() is not None or constraints.no_multiples():
        return False
    for low_end, high_end in constraints.intervals():
        if low_end is None or high_end is None or high_end[0] - low_end[0] > count + 1:
            return True
    return False


def _is_free(constraints: Constraints) -> bool:
    """Whether the strings are all those of some length at least."""
    if constraints.listed is not None or "string" not in constraints.types:
        return False
    said = (strings.trees(constraints), strings.unmatched(constraints), constraints.denied)
    return not any(said) and constraints.counts("Length")[1] is None


def names_apart(
    constraints: Constraints, low: int, names: list[str], restricted: bool, shown: bool, writer: ValueWriter
) -> Distinct | None:
    """How names are told apart by remembering them; None where it isn't plain that there are enough of them."""
    trees = [both for both, _ in constraints.key_trees.values()]
    if writer.options.distinct is None or restricted or shown or low > writer.limits.distinct or len(trees) > 1:
        return None
    if trees and not has_texts(trees[0], low + len(names), writer.limits):
        return None
    return Distinct(True, not trees)
