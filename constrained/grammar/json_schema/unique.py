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
from constrained.grammar.json_schema.character_automata import Texts
from constrained.grammar.json_schema.constraints import Constraints, ValueWriter, identity
from constrained.grammar.json_schema.document import Subschema
from constrained.grammar.json_schema.numbers import whole
from constrained.grammar.json_schema.whitespace import Layout
from constrained.grammar.members import Names
from constrained.grammar.nodes import EMPTY, NEVER, Distinct, Node, alt, literal, seq

DEPTH = 4
"""Objects in one another whose values are counted."""

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
    hint = "leave uniqueItems out and look for repeats afterwards"
    if writer.options.distinct is None:
        what = f"uniqueItems takes items of which there are at most {DISTINCT:,} values"
    elif constraints.wanted():
        what = "uniqueItems of such items is not supported beside contains"
    elif low > 1 and not all(_at_least(each, low, writer) >= low for each in parts):
        what = f"it isn't plain that there are {low} items that differ"
    elif low > writer.limits.distinct:
        what = f"no more than {writer.limits.distinct:,} items are remembered (the limit `distinct`)"
    else:
        free = all(any(map(_is_free, writer.constraints_of(each))) for each in parts)
        varied = tuple({_varied(one, writer): None for one in closed}) if closed else None
        distinct = Distinct(False, free, _once(kinds, writer), varied)
        items = [writer.node(each) for each in parts]
        rest = items.pop() if own != high else NEVER
        end = seq([layout.edge, literal("]")])
        inside = [literal("]")] * (not low)
        if high != 0:
            inside.append(seq([layout.edge, layout.in_a_row(items, rest, low, high), end]))
        return opened("[", f"{name} items", partial(alt, inside), distinct, writer)
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
    return "object" not in constraints.types or _object_goes_on(constraints, writer)


def _array_goes_on(constraints: Constraints, writer: ValueWriter) -> bool:
    if constraints.counts("Items")[1] is not None or constraints.wanted() or constraints.all("uniqueItems"):
        return False
    return _takes_some(constraints.item(constraints.prefix()), writer)


def _object_goes_on(constraints: Constraints, writer: ValueWriter) -> bool:
    low, high = constraints.counts("Properties")
    if low > 1 or high is not None or constraints.all("propertyNames") or constraints.witnesses():
        return False
    trees, most = constraints.key_trees, writer.limits.distinct + len(constraints.names)
    for matched in ([], *([pattern] for pattern in trees)):
        fitting = [trees[pattern][0] for pattern in matched]
        without = [either for pattern, (_, either) in trees.items() if pattern not in matched]
        some = _takes_some(constraints.key(None, frozenset(matched)), writer)
        if some and Texts(fitting, without, 0, None, writer.limits).at_least(most) == most:
            return True
    return False


def _takes_some(parts: list[Subschema], writer: ValueWriter) -> bool:
    return any(writer.admits(value, parts) for value in _SIMPLE)


_SIMPLE: list[Any] = [None, True, 0, 1, "", "a", [], {}]


def _once(kinds: list[Constraints], writer: ValueWriter) -> tuple[str, ...]:
    """Names that no object of these can have twice: they are named wherever there may be others."""
    objects = [one for one in kinds if one.listed is None and "object" in one.types]
    found = {name for one in objects for name in one.names}
    for one in objects:
        if one.key_patterns or writer.node(one.key(None, frozenset())) is not NEVER:
            found &= set(one.names)
    return tuple(sorted(found))


def _varied(constraints: Constraints, writer: ValueWriter) -> tuple[tuple[str, int], ...]:
    """See `nodes.Distinct.varied`; no number is above the limit `distinct`."""
    if constraints.listed is not None or "object" not in constraints.types:
        return ()
    if constraints.witnesses() or constraints.denied:
        return ()
    most, found = writer.limits.distinct, []
    any_name = writer.options.any_order and not _is_bounded(constraints)
    for name in constraints.names if any_name else constraints.required:
        ways = _at_least(constraints.property(name), most, writer) + (name not in constraints.required)
        found.append((name, min(ways, most)))
    return tuple(sorted(one for one in found if one[1] > 1))


def _is_bounded(constraints: Constraints) -> bool:
    """Whether it is more than the values of its properties that decides whether an object fits."""
    counted = constraints.counts("Properties") != (0, None) or constraints.all("propertyNames")
    return bool(counted or constraints.present or constraints.witnesses())


def _at_least(parts: list[Subschema], most: int, writer: ValueWriter, depth: int = DEPTH) -> int:
    """A number of values that there surely are, no more than `most`."""
    return max((_values(one, most, writer, depth - 1) for one in writer.constraints_of(parts)), default=0)


def _values(constraints: Constraints, most: int, writer: ValueWriter, depth: int) -> int:
    """The same of one alternative."""
    if constraints.listed is not None:
        fitting = (value for value in constraints.listed[1] if writer.fits(value, constraints))
        return min(len(set(map(identity, fitting))), most)
    found = _strings(constraints, most) if "string" in constraints.types else 0
    if found >= most or constraints.denied:
        return found
    if depth and "array" in constraints.types and _array_goes_on(constraints, writer):
        own = (constraints.item(i) for i in range(min(constraints.prefix(), constraints.counts("Items")[0])))
        found += most * all(_at_least(parts, 1, writer, depth) for parts in own)
    if depth and "object" in constraints.types and not _is_bounded(constraints):
        found += _objects(constraints, most, writer, depth)
    found += ("null" in constraints.types) + 2 * ("boolean" in constraints.types) + _numbers(constraints, most)
    return min(found, most)


def _objects(constraints: Constraints, most: int, writer: ValueWriter, depth: int) -> int:
    found = 1
    for name in constraints.required:
        found *= _at_least(constraints.property(name), most, writer, depth)
    if found and _object_goes_on(constraints, writer):
        return most
    for name in constraints.names if writer.options.any_order and found else ():
        if found < most and name not in constraints.required:
            found *= 1 + _at_least(constraints.property(name), most, writer, depth)
    return min(found, most)


def _strings(constraints: Constraints, most: int) -> int:
    """The same of strings; `_objects` and `_numbers`, too."""
    trees, without = strings.trees(constraints), strings.unmatched(constraints)
    low, high = constraints.counts("Length")
    if not trees and not without and high is None:  # most
        return most
    return Texts(trees, without, low, high, constraints.limits).at_least(most)


def _numbers(constraints: Constraints, most: int) -> int:
    if constraints.multiple() is not None or constraints.no_multiples():
        return 0
    ((low, high),) = constraints.intervals()
    if "number" in constraints.types:
        return most if low is None or high is None or low[0] < high[0] else 0
    if "integer" not in constraints.types:
        return 0
    first, last = whole(low, high)
    return most if first is None or last is None else max(last - first + 1, 0)


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
    enough = low + len(names)
    if trees and Texts(trees, [], 0, None, writer.limits).at_least(enough) < enough:
        return None
    return Distinct(True, not trees)
