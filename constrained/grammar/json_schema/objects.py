"""Objects: named properties in the schema's order, optional ones left out at will, then others.

The rules are linear in the properties: what matters of those already written is only how many
there are, up to the count at which no bound asks any more. In any order, what matters is which.
"""

from __future__ import annotations

from itertools import combinations

from constrained.grammar import nodes as n
from constrained.grammar.json_schema import spelling
from constrained.grammar.json_schema.document import Part, error
from constrained.grammar.json_schema.layout import Layout
from constrained.grammar.json_schema.shape import Shape
from constrained.grammar.json_schema.strings import any_of, denied, language, trees
from constrained.grammar.nodes import EMPTY, Call, Node, Rule, literal, repeat, seq

PATTERNS = 5
"""Patterns of patternProperties: each doubles the kinds of names."""


def properties(shape: Shape, writer, name: str, layout: Layout) -> Node:
    """The objects that `shape` admits."""
    low, high = shape.counts("Properties")
    key_parts = [part.below("propertyNames") for part, _ in shape.all("propertyNames")]
    listed = writer.values(key_parts) if key_parts else None
    names = [k for k in shape.names if not key_parts or writer.admits(k, key_parts)]
    if any(k not in names for k in shape.required):
        return n.NEVER
    if listed is not None:  # few names: each is a property of its own
        names += [k for k in listed if isinstance(k, str) and k not in names]
    pairs = []
    for k in names:
        value = writer.node(shape.property(k))
        if value is not n.NEVER:
            pairs.append((seq([n.choices(spelling.texts(k)), layout.colon, value]), k in shape.required))
        elif k in shape.required:
            return n.NEVER
    others = n.NEVER if listed is not None else _others(shape, key_parts, names, writer, name, layout)
    must = sum(required for _, required in pairs)
    low = low if low > must else 0
    if high is not None and (high < max(must, low) or others is n.NEVER and low > len(pairs)):
        return n.NEVER
    if others is not n.NEVER and low > must + 1:
        writer.options.refuse(
            shape.all("minProperties")[-1][0], "minProperties",
            f"minProperties {low} is not supported where names are free: the same one may be written twice",
            "list the names in properties, or as an enum in propertyNames",
        )  # fmt: skip
        low = 0
    if high is not None and others is n.NEVER and high >= len(pairs):
        high = None
    order = AnyOrder if writer.options.any_order else InOrder
    return order(pairs, others, low, high, writer, name, layout).object()


def _others(shape: Shape, key_parts: list[Part], names: list[str], writer, name: str, layout: Layout) -> Node:
    """A property whose name is none of `names`, by which patterns its name matches."""
    patterns = shape.key_trees
    if len(patterns) > PATTERNS:
        at = shape.all("patternProperties")[0][0]
        raise error(at, "patternProperties", f"more than {PATTERNS} patterns", "join those with the same schema by |")
    out = []
    for size in range(len(patterns) + 1):
        for matched in combinations(patterns, size):
            value = writer.node(shape.key(None, frozenset(matched)))
            if value is not n.NEVER:
                key = _key(shape, key_parts, matched, names, writer, f"{name}:key{len(out)}")
                out.append(seq([spelling.quoted(key), layout.colon, value]))
    return n.alt(out)


def _key(shape: Shape, key_parts: list[Part], matched, names: list[str], writer, name: str) -> Node:
    """Names that match those patterns and no others."""
    wanted = [both for p, (both, _) in shape.key_trees.items() if p in matched]
    unwanted = [either for p, (_, either) in shape.key_trees.items() if p not in matched] + any_of(names)
    out = []
    for i, one in enumerate(writer.shapes(key_parts)):
        if "string" in one.types:
            fitting, without = [*wanted, *trees(one)], [*unwanted, *denied(one)]
            out.append(language(fitting, without, *one.counts("Length"), f"{name}.{i}", writer.add, writer.limits))
    return n.alt(out)


class _Order:
    """The pairs of an object, which may be left out, and how many there must and may be."""

    def __init__(self, pairs, others: Node, low: int, high: int | None, writer, name: str, layout: Layout):
        self.pairs, self.others, self.low, self.high = pairs, others, low, high
        self.writer, self.name, self.layout = writer, name, layout
        self.closing = seq([layout.edge, literal("}")])

    def before(self, count: int) -> Node:
        """What parts a property from those before."""
        return self.layout.comma if count else self.layout.edge

    def rule(self, key: str, body: Node) -> None:
        self.writer.add(Rule(f"{self.name}:{key}", body))

    def call(self, key: str) -> Node:
        return Call(f"{self.name}:{key}")


class InOrder(_Order):
    """Rules for (property to come, how many are written), the latter up to where it matters."""

    def object(self) -> Node:
        top = max(1, self.low) if self.high is None else self.high
        counts = {0}
        for at, (pair, required) in enumerate(self.pairs):
            after = set()
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
        """Property `at` and what comes after it; or, where it may be left out, only that."""
        pair, required = self.pairs[at]
        taken = n.NEVER if then is None else seq([self.before(count), pair, self.call(f"{at + 1},{then}")])
        return taken if required else n.alt([taken, self.call(f"{at + 1},{count}")])

    def _all_from(self, at: int) -> Node:
        """Properties from `at` on where their number does not matter any more."""
        pairs = [(seq([self.layout.comma, pair]), required) for pair, required in self.pairs[at:]]
        return seq(
            [*(pair if required else repeat(pair, 0, 1) for pair, required in pairs), self._end(max(1, self.low))]
        )

    def _end(self, count: int) -> Node:
        """Other properties, as many as there may be, and the closing brace."""
        left = None if self.high is None else self.high - count
        another = seq([self.layout.comma, self.others])
        more = EMPTY if self.others is n.NEVER else repeat(another, 0, left)
        if count >= max(self.low, 1):
            return seq([more, self.closing])
        if left == 0:
            return n.NEVER if self.low else literal("}")
        after_one = more if left is None else repeat(another, 0, left - 1)
        one = seq([self.before(count), self.others, after_one, self.closing])
        return one if count or self.low else n.alt([literal("}"), one])


class AnyOrder(_Order):
    """Rules for each set of properties written, as bits, and how many others, the latter up to where it matters."""

    def object(self) -> Node:
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
            out = []
            if self.high is None or count < self.high:
                left = ((i, pair) for i, (pair, _) in enumerate(self.pairs) if not written >> i & 1)
                steps = [(pair, written | 1 << i, other) for i, pair in left]
                if self.others is not n.NEVER:
                    steps.append((self.others, written, min(other + 1, most)))
                before = self.before(count)
                for pair, *after in steps:
                    out.append(seq([before, pair, self.call("{:x},{}".format(*after))]))
                    if tuple(after) not in seen:
                        seen.add(tuple(after))
                        work.append(tuple(after))
            if written.bit_count() + min(other, 1) >= self.low and written & must == must:
                out.append(self.closing if count else literal("}"))
            self.rule(f"{written:x},{other}", n.alt(out))
        return seq([literal("{"), self.call("0,0")])
