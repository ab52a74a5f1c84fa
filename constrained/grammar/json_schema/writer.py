"""A JSON Schema as the rules of the JSON texts that it admits."""

from __future__ import annotations

import json

from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.json_schema import spelling
from constrained.grammar.json_schema.alternatives import Alternatives, places
from constrained.grammar.json_schema.arrays import array
from constrained.grammar.json_schema.disjoint import Disjoint
from constrained.grammar.json_schema.document import Document, Part, error
from constrained.grammar.json_schema.evaluate import Evaluator
from constrained.grammar.json_schema.layout import Layout
from constrained.grammar.json_schema.multiples import multiples
from constrained.grammar.json_schema.numbers import integer, number
from constrained.grammar.json_schema.objects import properties
from constrained.grammar.json_schema.shape import Shape
from constrained.grammar.json_schema.strings import string
from constrained.grammar.nodes import Call, Node, Rule, literal, seq
from constrained.limits import Limits


class Writer:
    """Writes the schemas of one document into `rules`.

    Objects and arrays are rules, each written once, so that recursion comes back to them; they
    are written one after the other, so that a deep schema takes no deep Python stack.
    """

    def __init__(
        self, document: Document, rules: dict[str, Rule], prefix: str, layout: Layout, limits: Limits,
        *, any_order: bool = False, closed: bool = False, lenient: bool = False,
    ):  # fmt: skip
        self.rules, self.prefix, self.layout, self.limits = rules, prefix, layout, limits
        self.any_order, self.closed = any_order, closed
        self.alternatives = Alternatives(document, limits, lenient)
        self.evaluator = Evaluator(self.alternatives, self.shape)
        self.alternatives.disjoint = Disjoint(self.alternatives, self.shape, self.evaluator)
        self._nodes: dict[frozenset[str], Node] = {}
        self._shapes: dict[frozenset[str], Shape] = {}
        self._names: set[str] = set()
        self._waiting: list[tuple[str, str, Shape]] = []

    def write(self, part: Part) -> Node:
        """The texts of one schema, and all rules that they need."""
        node = self.node([part])
        while self._waiting:
            kind, name, shape = self._waiting.pop()
            how = array if kind == "array" else properties
            self.add(Rule(name, how(shape, self, name, self.layout)))
        return node

    def add(self, rule: Rule) -> None:
        self.rules[rule.name] = rule
        self.limits.check("schema", len(self.rules), "a JSON Schema that takes too many rules")

    def shape(self, together) -> Shape:
        key = places(together)
        if key not in self._shapes:
            self._shapes[key] = Shape(together, self.closed, self.limits)
        return self._shapes[key]

    def shapes(self, parts: list[Part]) -> list[Shape]:
        """The alternatives of schemas that hold together."""
        return [self.shape(one) for one in self.alternatives.of(parts)]

    def admits(self, value, parts: list[Part]) -> bool:
        return self.evaluator.admits(value, parts)

    def values(self, parts: list[Part]) -> list | None:
        """The values that `parts` admit, where they are listed; else None."""
        out = []
        for shape in self.shapes(parts):
            if shape.listed is None and shape.types <= {"null", "boolean"}:
                out += [v for v, kind in ((None, "null"), (False, "boolean"), (True, "boolean")) if kind in shape.types]
            elif shape.listed is None:
                return None
            else:
                out += [v for v in shape.listed[1] if self.evaluator.fits(v, shape)]
        return list({json.dumps(v, sort_keys=True): v for v in out}.values())

    def node(self, parts: list[Part]) -> Node:
        """The texts of values that are valid under all `parts`."""
        return n.alt([self._one(places(together), self.shape(together)) for together in self.alternatives.of(parts)])

    def _one(self, key: frozenset[str], shape: Shape) -> Node:
        if key not in self._nodes:
            self._nodes[key] = self._written(key, shape)
        return self._nodes[key]

    def _written(self, key: frozenset[str], shape: Shape) -> Node:
        if shape.listed is not None:
            return n.alt([self.value(v) for v in shape.listed[1] if self.evaluator.fits(v, shape)])
        denied = [v for v in shape.denied if not isinstance(v, (str, bool)) and v is not None]
        name = self._name(key)
        out = []
        for kind in sorted(shape.types):
            if kind in ("object", "array"):
                self._refuse_denied(shape, (dict, list), denied)
                self._waiting.append((kind, f"{name} {kind}", shape))
                out.append(Call(f"{name} {kind}"))
            elif kind in ("number", "integer"):
                self._refuse_denied(shape, (int, float), denied)
                out.append(self._number(kind, name, shape))
            elif kind == "string":
                out.append(spelling.quoted(string(shape, f"{name} string", self.add)))
            else:
                values = [None] if kind == "null" else [False, True]
                out.append(n.alt([self.value(v) for v in values if self.evaluator.fits(v, shape)]))
        return n.alt(out)

    def _name(self, key: frozenset[str]) -> str:
        name = min(key, key=len, default="#")
        while name in self._names or not key and name == "#":
            name += "'"
        self._names.add(name)
        return self.prefix + name

    def _refuse_denied(self, shape: Shape, kinds, denied: list) -> None:
        if any(isinstance(v, kinds) for v in denied):
            at = shape.parts[0]
            raise error(at, "", f"{denied[0]!r} can't be left out of so many values", "say with type, enum or bounds what there is")

    def _number(self, kind: str, name: str, shape: Shape) -> Node:
        of = shape.multiple()
        if of is not None:
            return multiples(of, *shape.whole_bounds(), self.add, f"{name} multiple")
        if kind == "integer":
            return integer(*shape.whole_bounds())
        return number(shape.bound(-1), shape.bound(1))

    def value(self, value) -> Node:
        """One value."""
        if isinstance(value, str):
            return n.choices(spelling.texts(value))
        if isinstance(value, list):
            items = [seq([self.layout.comma if i else n.EMPTY, self.value(v)]) for i, v in enumerate(value)]
            return self.layout.around("[", seq(items), "]") if value else literal("[]")
        if isinstance(value, dict):
            pairs = [seq([self.layout.comma if i else n.EMPTY, self._pair(*pair)]) for i, pair in enumerate(value.items())]
            return self.layout.around("{", seq(pairs), "}") if value else literal("{}")
        if isinstance(value, float) and value == int(value):
            return n.choices({json.dumps(value).encode(), str(int(value)).encode()})
        return literal(json.dumps(value))

    def _pair(self, name: str, value) -> Node:
        return seq([n.choices(spelling.texts(name)), self.layout.colon, self.value(value)])


def write_schema(schema, rules: dict[str, Rule], prefix: str, layout: Layout, limits: Limits, **options) -> tuple[Node, list[str]]:
    """The texts of `schema`, their rules being added to `rules`; and where keywords are that were left out.

    Raises
    ------
    GrammarError
        The schema is none, is refused, or admits nothing.
    """
    try:
        document = Document(schema, limits)
        writer = Writer(document, rules, prefix, layout, limits, **options)
        return writer.write(document.root), list(writer.alternatives.left_out)
    except RecursionError:
        raise GrammarError("JSON Schema: nested too deeply", hint="put the inner schemas under $defs") from None
