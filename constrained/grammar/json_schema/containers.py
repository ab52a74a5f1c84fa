"""White space between the pieces of a JSON text: always bounded, so that none goes on for ever."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.charset import charset
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.constraints import Shape
from constrained.grammar.json_schema.document import Part, error
from constrained.grammar.json_schema.strings import any_of, denied, language, trees
from constrained.grammar.nodes import EMPTY, Call, Chars, Node, Rule, alt, literal, repeat, seq

# MERGED DOC: """Arrays: items with schemas of their own, then items of one schema, within counts."""

# MERGED DOC: """Objects: named properties in the schema's order, optional ones left out at will, then others.
#
# The rules are linear in the properties: what matters of those already written is only how many
# there are, up to the count at which no bound asks any more. In any order, what matters is which.
# """


INDENT = 100
"""Spaces or tabs that a line may begin with."""


@dataclass(frozen=True)
class Layout:
    """What may stand after ``{`` or ``[`` and before ``}`` or ``]``, and how ``,`` and ``:`` are written."""

    edge: Node
    comma: Node
    colon: Node

    def around(self, opening: str, inside: Node, closing: str) -> Node:
        """`inside` between brackets."""
        return seq([literal(opening), self.edge, inside, self.edge, literal(closing)])


def layout(whitespace: str) -> Layout:
    """The layout of that name.

    Raises
    ------
    GrammarError
        There is none.
    """
    if whitespace not in LAYOUTS:
        raise GrammarError(f"no white space named {whitespace!r}", hint=f"there are: {', '.join(LAYOUTS)}")
    return LAYOUTS[whitespace]


_SPACE = repeat(literal(" "), 0, 1)
_LINE = n.seq([literal("\n"), repeat(Chars(charset([(9, 9), (32, 32)])), 0, INDENT)])
_BREAK = alt([EMPTY, literal(" "), _LINE])

LAYOUTS = {
    "flexible": Layout(_BREAK, seq([literal(","), _BREAK]), seq([literal(":"), _SPACE])),
    "single": Layout(EMPTY, seq([literal(","), _SPACE]), seq([literal(":"), _SPACE])),
    "dumps": Layout(EMPTY, literal(", "), literal(": ")),
    "compact": Layout(EMPTY, literal(","), literal(":")),
}


DISTINCT = 8
"""Values that the items of an array with uniqueItems may have."""


def array(shape: Shape, writer, name: str, layout: Layout) -> Node:
    """The arrays that `shape` admits."""
    low, high = shape.counts("Items")
    writer.limits.check("repeat", max(low, high or 0), f"an array of {max(low, high or 0)} items")
    if high is not None and high < low:
        return n.NEVER
    for part, _ in shape.all("contains"):
        node = _containing(shape, part, low, high, writer, layout)
        if node is not None:
            return node
    if (high is None or high > 1) and any(unique for _, unique in shape.all("uniqueItems")):
        node = _distinct(shape, low, high, writer, name, layout)
        if node is not None:
            return node
    items = [writer.node(shape.item(i)) for i in range(_own(shape, high))]
    return _items(items, writer.node(shape.item(shape.prefix())), low, high, layout)


def _own(shape: Shape, high: int | None) -> int:
    return shape.prefix() if high is None else min(shape.prefix(), high)


def _items(own: list[Node], rest: Node, low: int, high: int | None, layout: Layout) -> Node:
    """`own` items in order, as far as there are so many, then `rest`."""
    first, *following = own or [rest]
    following = [(node, i < low) for i, node in enumerate(following, 1)]
    beyond = max(len(own), 1)
    tail = repeat(seq([layout.comma, rest]), max(low - beyond, 0), None if high is None else max(high - beyond, 0))
    for node, must in reversed(following):
        tail = seq([layout.comma, node, tail])
        tail = tail if must else n.alt([EMPTY, tail])
    full = layout.around("[", seq([first, tail]), "]") if high != 0 else n.NEVER
    return full if low else n.alt([literal("[]"), full])


def _containing(shape: Shape, part: Part, low: int, high: int | None, writer, layout: Layout) -> Node | None:
    """Items of which at least some fit another schema: these, with any others before, between and after."""
    at_least = int(part.schema.get("minContains", 1))
    others = len(shape.all("contains")) > 1 or any(unique for _, unique in shape.all("uniqueItems"))
    if others or shape.prefix() or high is not None or low > at_least:
        writer.options.refuse(
            part, "contains", "contains is not supported beside prefixItems, uniqueItems, counts or another contains",
            "say with prefixItems and items where the item stands",
        )  # fmt: skip
        return None
    any_item = writer.node(shape.item(0))
    if not at_least:
        return _items([], any_item, low, high, layout)
    meant = writer.node([*shape.item(0), part.below("contains")])
    before, after = repeat(seq([any_item, layout.comma]), 0, None), repeat(seq([layout.comma, any_item]), 0, None)
    again = repeat(seq([after, layout.comma, meant]), at_least - 1, at_least - 1)
    return layout.around("[", seq([before, meant, again, after]), "]")


def _distinct(shape: Shape, low: int, high: int | None, writer, name: str, layout: Layout) -> Node | None:
    """Items that all differ: which are left is a set, so there must be few."""
    values = None if shape.prefix() else writer.values(shape.item(0))
    if values is None or len(values) > DISTINCT:
        writer.options.refuse(
            shape.all("uniqueItems")[0][0], "uniqueItems", f"uniqueItems takes items of an enum of at most {DISTINCT}",
            "what was written can't be remembered exactly; leave uniqueItems out and look for repeats afterwards",
        )  # fmt: skip
        return None
    texts = [writer.value(value) for value in values]

    def after(left: frozenset[int]) -> Node:
        """What may follow once only the values `left` are unused."""
        key = f"{name}:{'-'.join(map(str, sorted(left)))}"
        if key not in writer.rules:
            used = len(values) - len(left)
            writer.add(Rule(key, EMPTY))
            more = [seq([layout.comma, texts[i], after(left - {i})]) for i in sorted(left)]
            may_end = used >= low
            writer.rules[key] = Rule(
                key, n.alt([*(more if high is None or used < high else []), *([EMPTY] if may_end else [])])
            )
        return Call(key)

    every = frozenset(range(len(values)))
    begun = n.alt([seq([texts[i], after(every - {i})]) for i in every])
    full = layout.around("[", begun, "]")
    return full if low else n.alt([literal("[]"), full])


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
            pairs.append((seq([n.choices(strings.texts(k)), layout.colon, value]), k in shape.required))
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
                out.append(seq([strings.quoted(key), layout.colon, value]))
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
