"""A JSON Schema as the rules of the JSON texts that it admits."""

from __future__ import annotations

import json

from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.alternatives import Alternatives, Disjoint, Evaluator, places
from constrained.grammar.json_schema.constraints import Shape, whole
from constrained.grammar.json_schema.containers import Layout, array, properties
from constrained.grammar.json_schema.document import Document, Options, Part, error
from constrained.grammar.json_schema.numbers import integer, multiples, number
from constrained.grammar.json_schema.strings import string
from constrained.grammar.nodes import Call, Node, Rule, literal, seq


class Writer:
    """Writes the schemas of one document into `rules`.

    Objects and arrays are rules, each written once, so that recursion comes back to them; they
    are written one after the other, so that a deep schema takes no deep Python stack.
    """

    def __init__(self, document: Document, rules: dict[str, Rule], prefix: str, layout: Layout, options: Options):
        self.rules, self.prefix, self.layout, self.options = rules, prefix, layout, options
        self.limits = options.limits
        self.alternatives = Alternatives(document, options)
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
            self._shapes[key] = Shape(together, self.options)
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
            values = [v for v in shape.listed[1] if self.evaluator.fits(v, shape)]
            plain = n.choices(text for v in values if not isinstance(v, (list, dict)) for text in scalar(v))
            return n.alt([plain, *(self.value(v) for v in values if isinstance(v, (list, dict)))])
        name = self._name(key)
        out = []
        for kind in sorted(shape.types):
            if kind in ("object", "array"):
                self._refuse_denied(shape, dict if kind == "object" else list)
                self._waiting.append((kind, f"{name} {kind}", shape))
                out.append(Call(f"{name} {kind}"))
            elif kind in ("number", "integer"):
                out.append(self._number(kind, name, shape))
            elif kind == "string":
                out.append(strings.quoted(string(shape, f"{name} string", self.add)))
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

    def _refuse_denied(self, shape: Shape, kind: type) -> None:
        for value in shape.denied:
            if isinstance(value, kind):
                hint = "say with its own keywords what there may be"
                raise error(shape.parts[0], "", f"{json.dumps(value)[:80]} can't be left out of so many values", hint)

    def _number(self, kind: str, name: str, shape: Shape) -> Node:
        of = shape.multiple()
        out = []
        for i, (low, high) in enumerate(shape.intervals()):
            if of is not None:
                what = f"multiples of {of} take too many rules"
                self.limits.check("schema", of if None in (low, high) else 0, what, "give the bounds on both sides")
                out.append(multiples(of, *whole(low, high), self.add, f"{name} multiple{i}"))
            else:
                out.append(integer(*whole(low, high)) if kind == "integer" else number(low, high))
        return n.alt(out)

    def value(self, value) -> Node:
        """One value."""
        if isinstance(value, list):
            items = [seq([self.layout.comma if i else n.EMPTY, self.value(v)]) for i, v in enumerate(value)]
            return self.layout.around("[", seq(items), "]") if value else literal("[]")
        if isinstance(value, dict):
            pairs = [
                seq([self.layout.comma if i else n.EMPTY, self._pair(*pair)]) for i, pair in enumerate(value.items())
            ]
            return self.layout.around("{", seq(pairs), "}") if value else literal("{}")
        return n.choices(scalar(value))

    def _pair(self, name: str, value) -> Node:
        return seq([n.choices(strings.texts(name)), self.layout.colon, self.value(value)])


def scalar(value) -> set[bytes]:
    """The spellings of a value that is no array or object."""
    if isinstance(value, str):
        return strings.texts(value)
    found = {json.dumps(value).encode()}
    return found | {str(int(value)).encode()} if isinstance(value, float) and value == int(value) else found


def write_schema(schema, rules: dict[str, Rule], prefix: str, layout: Layout, options: Options) -> Node:
    """The texts of `schema`; their rules, whose names begin with `prefix`, are added to `rules`.

    Raises
    ------
    GrammarError
        The schema is none, is refused, or admits nothing.
    """
    try:
        document = Document(schema, options.limits)
        return Writer(document, rules, prefix, layout, options).write(document.root)
    except RecursionError:
        raise GrammarError("JSON Schema: nested too deeply", hint="put the inner schemas under $defs") from None
