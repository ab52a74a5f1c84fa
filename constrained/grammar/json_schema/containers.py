"""Arrays and objects, and the white space between their pieces.

Named properties come in the schema's order, optional ones left out at will, then other properties. The
rules are linear in the properties: of those already written only their number matters, up to the count
that no bound asks for any more. In any order, what matters is which were written.

White space is always bounded, so that none goes on for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from constrained.errors import GrammarError
from constrained.grammar.charset import charset
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.constraints import Constraints
from constrained.grammar.json_schema.document import Options, Subschema, error
from constrained.grammar.nodes import EMPTY, NEVER, Call, Chars, Node, Rule, alt, choices, literal, repeat, seq
from constrained.limits import Limits

INDENT = 100
"""Spaces or tabs that a line may begin with."""


@dataclass(frozen=True)
class Layout:
    """What can stand after ``{`` or ``[`` and before ``}`` or ``]``, and how ``,`` and ``:`` are written."""

    edge: Node
    comma: Node
    colon: Node

    def around(self, opening: str, inside: Node, closing: str) -> Node:
        """Return `inside` between brackets."""
        return seq([literal(opening), self.edge, inside, self.edge, literal(closing)])

    def between(self, opening: str, items: Sequence[Node], closing: str) -> Node:
        """Return items between brackets, with commas."""
        if not items:
            return literal(opening + closing)
        parts = [seq([self.comma if i else EMPTY, item]) for i, item in enumerate(items)]
        return self.around(opening, seq(parts), closing)


def layout(whitespace: str) -> Layout:
    """Return the layout of that name.

    Raises
    ------
    GrammarError
        There is none.
    """
    if whitespace not in LAYOUTS:
        raise GrammarError(f"no white space named {whitespace!r}", hint=f"there are: {', '.join(LAYOUTS)}")
    return LAYOUTS[whitespace]


_SPACE = repeat(literal(" "), 0, 1)
_LINE = seq([literal("\n"), repeat(Chars(charset([(9, 9), (32, 32)])), 0, INDENT)])
_BREAK = alt([EMPTY, literal(" "), _LINE])

LAYOUTS = {
    "flexible": Layout(_BREAK, seq([literal(","), _BREAK]), seq([literal(":"), _SPACE])),
    "single": Layout(EMPTY, seq([literal(","), _SPACE]), seq([literal(":"), _SPACE])),
    "dumps": Layout(EMPTY, literal(", "), literal(": ")),
    "compact": Layout(EMPTY, literal(","), literal(":")),
}


class ValueWriter(Protocol):
    """What writes the values inside an array or object: `writer.Writer`."""

    rules: dict[str, Rule]
    options: Options
    limits: Limits

    def add(self, rule: Rule) -> None: ...
    def node(self, parts: list[Subschema]) -> Node: ...
    def value(self, value: Any) -> Node: ...
    def values(self, parts: list[Subschema]) -> list[Any] | None: ...
    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]: ...
    @property
    def admits(self) -> Callable[[Any, list[Subschema]], bool]: ...


DISTINCT = 8
"""Values that the items of an array with uniqueItems may have."""


def array(constraints: Constraints, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """Return the arrays that `constraints` admit."""
    low, high = constraints.counts("Items")
    writer.limits.check("repeat", max(low, high or 0), f"an array of {max(low, high or 0)} items")
    if high is not None and high < low:
        return NEVER
    for part, _ in constraints.all("contains"):
        node = _containing(constraints, part, low, high, writer, layout)
        if node is not None:
            return node
    if (high is None or high > 1) and any(unique for _, unique in constraints.all("uniqueItems")):
        node = _distinct(constraints, low, high, writer, name, layout)
        if node is not None:
            return node
    own = constraints.prefix() if high is None else min(constraints.prefix(), high)
    items = [writer.node(constraints.item(i)) for i in range(own)]
    return _items(items, writer.node(constraints.item(constraints.prefix())), low, high, layout)


def _items(own: list[Node], rest: Node, low: int, high: int | None, layout: Layout) -> Node:
    """Return `own` items in order, as far as there are so many, then `rest`."""
    first, *following = own or [rest]
    beyond = max(len(own), 1)
    tail = repeat(seq([layout.comma, rest]), max(low - beyond, 0), None if high is None else max(high - beyond, 0))
    for index in range(len(following), 0, -1):
        tail = seq([layout.comma, following[index - 1], tail])
        tail = tail if index < low else alt([EMPTY, tail])
    full = layout.around("[", seq([first, tail]), "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])


def _containing(
    constraints: Constraints, part: Subschema, low: int, high: int | None, writer: ValueWriter, layout: Layout
) -> Node | None:
    """Return items of which at least some fit another schema: these, with any others before, between and after."""
    at_least = int(part.keywords.get("minContains", 1))
    others = len(constraints.all("contains")) > 1 or any(unique for _, unique in constraints.all("uniqueItems"))
    if others or constraints.prefix() or high is not None or low > at_least:
        writer.options.refuse(
            part, "contains", "contains is not supported beside prefixItems, uniqueItems, counts or another contains",
            "say with prefixItems and items where the item stands",
        )  # fmt: skip
        return None
    any_item = writer.node(constraints.item(0))
    if not at_least:
        return _items([], any_item, low, high, layout)
    meant = writer.node([*constraints.item(0), part.below("contains")])
    before, after = repeat(seq([any_item, layout.comma]), 0, None), repeat(seq([layout.comma, any_item]), 0, None)
    again = repeat(seq([after, layout.comma, meant]), at_least - 1, at_least - 1)
    return layout.around("[", seq([before, meant, again, after]), "]")


def _distinct(
    constraints: Constraints, low: int, high: int | None, writer: ValueWriter, name: str, layout: Layout
) -> Node | None:
    """Return items that all differ: one rule for each set of unused values, so there must be few."""
    values = None if constraints.prefix() else writer.values(constraints.item(0))
    if values is None or len(values) > DISTINCT:
        writer.options.refuse(
            constraints.all("uniqueItems")[0][0], "uniqueItems",
            f"uniqueItems takes items of an enum of at most {DISTINCT}",
            "what was written can't be remembered exactly; leave uniqueItems out and look for repeats afterwards",
        )  # fmt: skip
        return None
    texts = [writer.value(value) for value in values]

    def after(unused: frozenset[int]) -> Node:
        """Return what can follow once only these values are unused."""
        key = f"{name}:{'-'.join(map(str, sorted(unused)))}"
        if key not in writer.rules:
            used = len(values) - len(unused)
            writer.add(Rule(key, EMPTY))
            ways = [seq([layout.comma, texts[i], after(unused - {i})]) for i in sorted(unused)]
            ways = ways if high is None or used < high else []
            writer.rules[key] = Rule(key, alt([*ways, EMPTY] if used >= low else ways))
        return Call(key)

    every = frozenset(range(len(values)))
    full = layout.around("[", alt([seq([texts[i], after(every - {i})]) for i in every]), "]")
    return full if low else alt([literal("[]"), full])


PATTERNS = 5
"""Patterns of patternProperties: each doubles the kinds of names."""


def properties(constraints: Constraints, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """Return the objects that `constraints` admit."""
    low, high = constraints.counts("Properties")
    key_parts = [part.below("propertyNames") for part, _ in constraints.all("propertyNames")]
    listed = writer.values(key_parts) if key_parts else None
    names = [k for k in constraints.names if not key_parts or writer.admits(k, key_parts)]
    if any(k not in names for k in constraints.required):
        return NEVER
    if listed is not None:  # few names: each is a property of its own
        names += [k for k in listed if isinstance(k, str) and k not in names]
    pairs = []
    for k in names:
        value = writer.node(constraints.property(k))
        if value is not NEVER:
            pairs.append((seq([choices(strings.texts(k)), layout.colon, value]), k in constraints.required))
        elif k in constraints.required:
            return NEVER
    others = NEVER if listed is not None else _others(constraints, key_parts, names, writer, name, layout)
    must = sum(required for _, required in pairs)
    low = low if low > must else 0
    if high is not None and (high < max(must, low) or others is NEVER and low > len(pairs)):
        return NEVER
    if others is not NEVER and low > must + 1:
        writer.options.refuse(
            constraints.all("minProperties")[-1][0], "minProperties",
            f"minProperties {low} is not supported where names are free: the same one may be written twice",
            "list the names in properties, or as an enum in propertyNames",
        )  # fmt: skip
        low = 0
    if high is not None and others is NEVER and high >= len(pairs):
        high = None
    written = _Object(pairs, others, low, high, writer, name, layout)
    return written.any_order() if writer.options.any_order else written.in_order()


def _others(
    constraints: Constraints,
    key_parts: list[Subschema],
    names: list[str],
    writer: ValueWriter,
    name: str,
    layout: Layout,
) -> Node:
    """Return a property whose name is none of `names`, by which patterns its name matches."""
    patterns = constraints.key_trees
    if len(patterns) > PATTERNS:
        at = constraints.all("patternProperties")[0][0]
        raise error(at, "patternProperties", f"more than {PATTERNS} patterns", "join those with the same schema by |")
    out: list[Node] = []
    for size in range(len(patterns) + 1):
        for matched in combinations(patterns, size):
            value = writer.node(constraints.key(None, frozenset(matched)))
            if value is not NEVER:
                key = _key(constraints, key_parts, matched, names, writer, f"{name}:key{len(out)}")
                out.append(seq([strings.quoted(key), layout.colon, value]))
    return alt(out)


def _key(
    constraints: Constraints,
    key_parts: list[Subschema],
    matched: tuple[str, ...],
    names: list[str],
    writer: ValueWriter,
    name: str,
) -> Node:
    """Return the names that match those patterns and no others."""
    wanted = [both for p, (both, _) in constraints.key_trees.items() if p in matched]
    unwanted = [either for p, (_, either) in constraints.key_trees.items() if p not in matched] + strings.any_of(names)
    out: list[Node] = []
    for i, one in enumerate(writer.constraints_of(key_parts)):
        if "string" in one.types:
            fitting, without = [*wanted, *strings.trees(one)], [*unwanted, *strings.denied(one)]
            out.append(
                strings.language(fitting, without, *one.counts("Length"), f"{name}.{i}", writer.add, writer.limits)
            )
    return alt(out)


@dataclass
class _Object:
    """Writes an object: (property, whether it is required), any others, and the bounds on their number."""

    pairs: list[tuple[Node, bool]]
    others: Node
    low: int
    high: int | None
    writer: ValueWriter
    name: str
    layout: Layout

    @property
    def closing(self) -> Node:
        return seq([self.layout.edge, literal("}")])

    def before(self, count: int) -> Node:
        """Return what separates a property from those before it."""
        return self.layout.comma if count else self.layout.edge

    def rule(self, key: str, body: Node) -> None:
        self.writer.add(Rule(f"{self.name}:{key}", body))

    def call(self, key: str) -> Node:
        return Call(f"{self.name}:{key}")

    # in order: a rule for each (property to come, number of those written), the latter up to where it matters

    def in_order(self) -> Node:
        top = max(1, self.low) if self.high is None else self.high
        counts = {0}
        for at, (_, required) in enumerate(self.pairs):
            after: set[int] = set()
            for count in sorted(counts):
                if count == top and self.high is None:
                    self.rule(f"{at},{count}", self._all_from(at) if counts == {top} else self._next(at, count, count))
                    after.add(count)
                    continue
                more = self.high is None or count < self.high
                self.rule(f"{at},{count}", self._next(at, count, count + 1 if more else None))
                after |= ({count + 1} if more else set()) | (set() if required else {count})
            if counts == {top} and self.high is None:
                return seq([literal("{"), self.call("0,0")])
            counts = after
        for count in counts:
            self.rule(f"{len(self.pairs)},{count}", self._end(count))
        return seq([literal("{"), self.call("0,0")])

    def _next(self, at: int, count: int, then: int | None) -> Node:
        """Return property `at` and what comes after it; or, where it may be left out, only that."""
        pair, required = self.pairs[at]
        taken = NEVER if then is None else seq([self.before(count), pair, self.call(f"{at + 1},{then}")])
        return taken if required else alt([taken, self.call(f"{at + 1},{count}")])

    def _all_from(self, at: int) -> Node:
        """Return the properties from `at` on, where their number doesn't matter any more."""
        pairs = [(seq([self.layout.comma, pair]), required) for pair, required in self.pairs[at:]]
        return seq(
            [*(pair if required else repeat(pair, 0, 1) for pair, required in pairs), self._end(max(1, self.low))]
        )

    def _end(self, count: int) -> Node:
        """Return other properties, as many as there may be, and the closing brace."""
        left = None if self.high is None else self.high - count
        another = seq([self.layout.comma, self.others])
        more = EMPTY if self.others is NEVER else repeat(another, 0, left)
        if count >= max(self.low, 1):
            return seq([more, self.closing])
        if left == 0:
            return NEVER if self.low else literal("}")
        after_one = more if left is None else repeat(another, 0, left - 1)
        one = seq([self.before(count), self.others, after_one, self.closing])
        return one if count or self.low else alt([literal("}"), one])

    # in any order: a rule for each (set of properties written, as bits; number of others, up to where it matters)

    def any_order(self) -> Node:
        what = f"{len(self.pairs)} properties in any order"
        self.writer.limits.check(
            "schema", len(self.pairs) << len(self.pairs), what, "let them come in the schema's order"
        )
        most = 1 if self.high is None else self.high
        must = sum(1 << i for i, (_, required) in enumerate(self.pairs) if required)
        work = [(0, 0)]
        seen = set(work)
        for written, other in work:
            count = written.bit_count() + other
            out: list[Node] = []
            if self.high is None or count < self.high:
                left = ((i, pair) for i, (pair, _) in enumerate(self.pairs) if not written >> i & 1)
                steps = [(pair, (written | 1 << i, other)) for i, pair in left]
                if self.others is not NEVER:
                    steps.append((self.others, (written, min(other + 1, most))))
                before = self.before(count)
                for pair, then in steps:
                    out.append(seq([before, pair, self.call(f"{then[0]:x},{then[1]}")]))
                    if then not in seen:
                        seen.add(then)
                        work.append(then)
            if written.bit_count() + min(other, 1) >= self.low and written & must == must:
                out.append(self.closing if count else literal("}"))
            self.rule(f"{written:x},{other}", alt(out))
        return seq([literal("{"), self.call("0,0")])
