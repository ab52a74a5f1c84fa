"""A JSON Schema as the rules of the JSON texts that it admits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from json import JSONEncoder
from typing import Any

from constrained.errors import GrammarError
from constrained.grammar.analysis import prune, unproductive
from constrained.grammar.deferred_rules import DeferredRules
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.arrays import DISTINCT, array
from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.misfit import missing_property
from constrained.grammar.json_schema.numbers import Multiples, integer, intervals, number, whole
from constrained.grammar.json_schema.objects import properties
from constrained.grammar.json_schema.options import Layout, Options
from constrained.grammar.json_schema.satisfiable import Satisfiable, contents, has_numbers, has_strings
from constrained.grammar.json_schema.shape import ANYTHING, NOTHING, Schema, Schemas, Shape
from constrained.grammar.json_schema.values import type_of
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import Names
from constrained.grammar.nodes import (
    EMPTY,
    NEVER,
    Choices,
    LiteralText,
    Node,
    Rule,
    RuleRef,
    Seq,
    alt,
    choices,
    find,
    seq,
)
from constrained.grammar.patterns.finite_automata import few_texts


class Writer:
    """Writes the schemas of one document as rules.

    Objects and arrays are rules, each written once, so that recursion leads back to them. They
    are written one after the other, so that a deep schema takes no deep Python stack.
    """

    def __init__(self, document: Document, prefix: str, layout: Layout, options: Options):
        self.document, self.prefix, self.options = document, prefix, options
        self.rules = DeferredRules(options.limits.schema)
        self.limits = options.limits
        self.alternatives = Alternatives(document, options)
        self.of, self.negated, self.fits = self.alternatives.of, self.alternatives.negated, self.alternatives.fits
        self._nodes: dict[Shape, Node] = {}
        self._scalars: dict[tuple, Node] = {}
        self._names: dict[str, int] = {}
        self._containers: list[tuple[str, str, Shape | None]] = []  # rules, and of objects and arrays what these are
        self._unsure: dict[str, Node] = {}  # what waits, and what it needs to have a value
        self._parts: dict[Schema, str] = {}  # single schemas that may be written later, and the names of their values
        self._singles: dict[Schema, Node] = {}  # what stands for these
        self._several: dict[Schemas, Node] = {}  # what stands for schemas that hold together
        self._dead: set[str] = set()
        self.settled = False
        spaces = {"edge": layout.edge, "comma": layout.comma, "colon": layout.colon}
        pieces = (self._once((kind,), f"{prefix}{kind}", False, lambda _, n: n, n) for kind, n in spaces.items())
        edge, comma, colon = pieces
        self.layout = Layout(edge, comma, colon, layout.separators)

    def write(self) -> Node:
        """The texts of the whole document; what can be deferred is written when a text reaches it."""
        node = self.node((self.document.root,))
        dead = self._settle()
        self.settled = True
        return NEVER if isinstance(node, RuleRef) and node.rule in dead else node

    def _settle(self) -> set[str]:
        """Write what can't be deferred, and take out what no value fits; return the rules without any text."""
        walk = Satisfiable(self.alternatives)
        bodies: dict[str, Node] = {}
        at = 0
        while True:
            # Schemas are deferred, or written. There are more and more of them meanwhile.
            while at < len(self._parts):
                for part in [*self._parts][at:]:
                    at += 1
                    deferred = self._parts[part] in bodies or walk(part)
                    for one in walk.left():
                        self._note(one)
                    if not deferred:
                        self._write(part, bodies)
            # Those that the equations of what each needs leave without a value are written, which may add schemas; then
            # it is asked again.
            needs = {one: f"{self.prefix}needs {i}" for i, one in enumerate(walk.needs())}
            unsure = {name: self._needed(walk.needs_of(one), needs) for one, name in needs.items()}
            written = {name: rule.body for name, rule in self.rules.written.items()}
            empty = unproductive(unsure | self._unsure | bodies | written)
            dead = [one for one, name in needs.items() if name in empty]
            late = [name for name in self._unsure if name in empty]
            if not dead and not late:
                break
            for name in late:
                del self._unsure[name]
                self._write_now(name)
                self._write_containers()
            for one in dead:
                walk.give_up(one)
                self._write(one, bodies)
        self._dead = empty  # not before: until all is known, schemas count as empty that may not be
        for name, rule in list(self.rules.written.items()) if empty else ():
            if name not in empty:
                self.rules.add(Rule(name, self._pruned(rule.body)))
        return empty

    def note_repeats(self) -> None:
        """Note what is left out, or unknown, wherever the document repeats a schema, which is written once."""
        for places in (self.options.left_out, self.options.unknown):
            self.document.add_repeats(places)

    def _note(self, part: Schema) -> str:
        """The name of a schema's values, which may be written later."""
        part = self.document.first(part)
        if part not in self._parts:
            self._parts[part] = self._unique(f"{self.prefix}{_label(part)}") + " value"
        return self._parts[part]

    def _write(self, part: Schema, bodies: dict[str, Node]) -> None:
        """Write a schema that can't be deferred, once."""
        name = self._note(part)
        if name not in bodies:
            bodies[name] = self._together((self.document.first(part),))
            self._write_containers()

    def _needed(self, needs: list[list[Schema]], unsure: dict[Schema, str]) -> Node:
        """What must have a text for one of some lists of schemas to have values."""

        def name(part: Schema) -> str:
            return unsure.get(part) or self._parts.get(self.document.first(part), "")

        return alt(Seq(tuple(RuleRef(name(part)) for part in parts)) for parts in needs)

    def _pruned(self, node: Node) -> Node:
        if not self._dead or not any(call.rule in self._dead for call in find(node, RuleRef)):
            return node
        return prune(node, self._dead.__contains__)

    def later(self, name: str, write: Callable[[], Node], kind: str = "", shape: Shape | None = None) -> Node:
        """A call of a rule that is written once; that of objects or arrays (`kind`) of a shape may wait for a text."""
        if name not in self.rules:
            self.defer(name, write)
            if not self.settled:
                self._containers.append((name, kind, shape))
        return RuleRef(name)

    def defer(self, name: str, write: Callable[[], Node]) -> Node:
        """A call of a rule of which some text is certain: written when a text reaches it."""
        if name not in self.rules:
            self.rules.defer(name, lambda: self._pruned(write()))
        return RuleRef(name)

    def _write_containers(self) -> None:
        while self._containers:
            name, kind, shape = self._containers.pop()
            found = contents(kind, shape, self.document) if shape is not None else None
            needed = seq(map(self.node, found.needed)) if found else EMPTY
            if found is None:
                self._write_now(name)
            elif found.necessary and needed is NEVER:
                self.rules.undefer(name)
                self.add(Rule(name, NEVER))
            else:
                for parts in found.parts:
                    self.node(parts)
                self._unsure[name] = needed

    def _write_now(self, name: str) -> None:
        """Write a rule that was deferred."""
        write = self.rules.undefer(name)
        self.add(Rule(name, write()))

    def add(self, rule: Rule) -> None:
        self.rules.add(rule)
        self.limits.check("schema", len(self.rules.written), "a JSON Schema that takes too many rules")

    def values(self, parts: Schemas) -> list[Any] | None:
        """The values that `parts` admit, where they are listed; else None."""
        out: list[Any] = []
        for shape in self.of(parts):
            if shape.listed:
                out += self._fitting(shape)
            else:
                for kind in shape.kinds:
                    found = self._few(kind, shape)
                    if found is None:
                        return None
                    out += [v for v in found if self.fits(v, shape)]
        return list({json.dumps(v, sort_keys=True): v for v in out}.values())

    def _few(self, kind: str, shape: Shape) -> list | range | None:
        """A list that has every admitted value of that type, if it has at most `DISTINCT` values; else None."""
        if kind == "string":
            each = [few_texts(tree, DISTINCT, self.limits) for tree in strings.trees(shape, self.limits)]
            return next((texts for texts in each if texts is not None), None)
        low, high = whole(shape.numbers.low, shape.numbers.high)
        if kind == "integer" and low is not None and high is not None and high - low < DISTINCT:
            return range(low, high + 1)
        return _FEW_VALUES.get(kind)

    def _fitting(self, shape: Shape) -> list[Any]:
        """Those of the values listed that fit everything else that is said, too."""
        assert shape.shortest is not None
        listed = shape.shortest.values
        if len(shape.listed) == 1 and shape.only_lists and not shape.denied:  # of many values, none is looked into
            return [v for v in listed if type_of(v) in shape.types]
        return [v for v in listed if self.fits(v, shape)]

    def node(self, parts: Iterable[Schema]) -> Node:
        """The texts of values that fit all `parts`."""
        parts = tuple(parts)
        part = parts[0] if parts else ANYTHING
        alone = len(parts) < 2
        if alone and part in self._singles:
            return self._singles[part]
        if NOTHING in parts:
            return NEVER
        if not alone or part.made:
            if parts not in self._several:
                self._several[parts] = self._together(tuple(map(self.document.first, parts)))
            return self._several[parts]
        first = self.document.first(part)
        if first is NOTHING:
            return NEVER
        if first not in self._singles:
            name = self._note(first)
            self._singles[first] = self.defer(name, partial(self._together, (first,)))
        self._singles[part] = self._singles[first]
        return self._singles[first]

    def _together(self, parts: Schemas) -> Node:
        return alt([self._of_shape(one) for one in self.of(parts)])

    def _of_shape(self, shape: Shape) -> Node:
        if shape not in self._nodes:
            self._nodes[shape] = self._texts(shape)
        return self._nodes[shape]

    def _texts(self, shape: Shape) -> Node:
        if shape.listed:
            return self._listed(self._fitting(shape))
        name = self._unique(f"{self.prefix}{min((part.pointer for part in shape.parts), key=len, default='#any')}")
        out: list[Node] = []
        for kind in sorted(shape.kinds):
            if kind in ("object", "array"):
                rule, how = f"{name} {kind}", array if kind == "array" else properties
                out.append(self.later(rule, partial(how, shape, self, rule, self.layout), kind, shape))
            elif kind in ("number", "integer"):
                said = shape.numbers
                wanted = Multiples(said.multiple, said.no_multiples)
                bounds = (kind, wanted, *intervals(said.low, said.high, shape.denied))
                certain = len(bounds) == 3 and wanted == Multiples(None) and has_numbers(shape)
                out.append(self._once(bounds, f"{name} {kind}", certain, self._number, kind, wanted, shape))
            elif kind == "string":
                key = ("string", *strings.what_is_said(shape))
                certain = key not in self._scalars and has_strings(shape, self.limits)
                out.append(self._once(key, f"{name} string", certain, self._string, shape))
            else:
                out.append(self._listed([v for v in _FEW_VALUES[kind] if self.fits(v, shape)]))
        return alt(out)

    def _once(self, key: tuple, name: str, certain: bool, write: Callable[..., Node], *arguments) -> Node:
        """The node that `write` returns, as a call of a rule that is written once for each `key`.

        Where it is `certain` that it has a text, it is written when a text reaches it.
        """
        if key not in self._scalars and certain:
            self._scalars[key] = self.defer(name, partial(write, name, *arguments))
        elif key not in self._scalars:
            node = write(name, *arguments)
            self._scalars[key] = node
            if node is not NEVER and node is not EMPTY and not isinstance(node, (RuleRef, LiteralText, Choices)):
                self.add(Rule(name, node))
                self._scalars[key] = RuleRef(name)
        return self._scalars[key]

    def _string(self, name: str, shape: Shape) -> Node:
        said, limits = shape.strings, self.limits
        fitting, without = strings.trees(shape, limits), strings.unmatched(shape, limits)
        closing = self.options.closing
        return strings.quoted(strings.language(fitting, without, said.low, said.high, f"{name}:", limits, closing))

    def _listed(self, values: list[Any]) -> Node:
        inner = [v for v in values if isinstance(v, (list, dict))]
        plain = [text for v in values if not isinstance(v, (list, dict)) for text in scalar(v, self.options.closing)]
        if len(inner) > SPACED:
            plain += [text for v in inner for text in self.spellings(v)]
            inner = []
        any_order = self.options.any_order and len(inner) <= REORDERED
        return alt([choices(plain), *(self.value(v, any_order) for v in inner)])

    def spellings(self, value: Any) -> set[bytes]:
        """The texts of one value, those of an array or object as `json.dumps` writes it."""
        if not isinstance(value, (list, dict)):
            return scalar(value, self.options.closing)
        ways = (JSONEncoder(ensure_ascii=a, separators=s) for s in self.layout.separators for a in (False, True))
        return {strings.guarded(way.encode(value), self.options.closing).encode() for way in ways}

    def _unique(self, name: str) -> str:
        """A name, with a number if it was asked for before."""
        self._names[name] = count = self._names.get(name, 0) + 1
        return f"{name}{f' {count}' if count > 1 else ''}"

    def _number(self, name: str, kind: str, wanted: Multiples, shape: Shape) -> Node:
        wanted = wanted.whole() if kind == "integer" and wanted != Multiples(None) else wanted
        out: list[Node] = []
        for i, (low, high) in enumerate(intervals(shape.numbers.low, shape.numbers.high, shape.denied)):
            if wanted == Multiples(None):
                out.append(integer(*whole(low, high)) if kind == "integer" else number(low, high))
                continue
            node = wanted.node(low, high, self.defer, f"{name}:{i}")
            if node is None:
                what = "numbers between bounds that are no multiples can't be written down"
                self.options.refuse(shape.parts[0], "multipleOf", what, "leave the bounds out")
                node = number(low, high)
            out.append(node)
        return alt(out)

    def value(self, value: Any, any_order: bool) -> Node:
        """The texts of one value."""
        if isinstance(value, list):
            return self.layout.between("[", [self.value(v, any_order) for v in value], "]")
        if not isinstance(value, dict):
            return choices(scalar(value, self.options.closing))
        values = [seq([self.layout.colon, self.value(v, any_order)]) for v in value.values()]
        if not any_order or len(value) < 2:
            closing = self.options.closing
            pairs = [seq([choices(strings.texts(name, closing)), node]) for name, node in zip(value, values)]
            return self.layout.between("{", pairs, "}")
        names = {text: i for i, name in enumerate(value) for text in strings.texts(name, self.options.closing)}
        variants, every = tuple(((node, 0),) for node in values), (1 << len(values)) - 1
        members = Names(names, variants, every, NEVER, NEVER, 0, self.layout.comma, 1, None)
        return self.layout.around("{", members.start(), "}")


SPACED = 1_000
"""Arrays and objects of one enum that may have white space of any kind between their pieces; more are plain texts."""
REORDERED = 16
"""Arrays and objects of one enum whose objects may have their names in any order; in more, they have the schema's."""

_FEW_VALUES: dict[str, list[Any]] = {"null": [None], "boolean": [False, True]}


def _label(schema: Schema) -> str:
    """What the rules of a schema are named after."""
    if schema.context is not None or schema.made and schema.above is not None:
        return schema.pointer
    return "#any" if schema is ANYTHING else f"#{max(schema.shape.types, key=len, default='false')}"


def scalar(value: Any, closing: str = "") -> set[bytes]:
    """The spellings of a value that is no array or object, without `closing` in them."""
    if isinstance(value, str):
        return strings.texts(value, closing)
    found = {json.dumps(value).encode()}
    return found | {str(int(value)).encode()} if isinstance(value, float) and value == int(value) else found


def load_schema(schema, layout: Layout, options: Options) -> DeferredRules:
    """The rules of `schema`, from the rule ``start``, many of them written only when they are looked up.

    Raises
    ------
    GrammarError
        It is not a schema, is refused, or admits nothing.
    """

    with _reading():
        writer = Writer(Document(schema, options), "", layout, options)
        node = writer.write()
        writer.note_repeats()
        if node is NEVER:
            missing = missing_property(schema, replace(options, left_out={}, unknown={}))
            if missing is not None:
                raise missing
            hint = "look for keywords that rule each other out, and for $ref that never come to an end"
            raise GrammarError("JSON Schema at #: no value is valid", hint=hint)
        writer.rules.add(Rule("start", node))
        return writer.rules  # texts begin with text of their own: no left recursion to turn round


def write_schema(schema, rules: dict[str, Rule], prefix: str, layout: Layout, options: Options) -> Node:
    """Write `schema`: return its texts, and add the rules they need, whose names begin with `prefix`, to `rules`.

    Raises
    ------
    GrammarError
        It is not a schema, is refused, or admits nothing.
    """
    with _reading():
        writer = Writer(Document(schema, options), prefix, layout, options)
        node = writer.write()
        written = writer.rules.write_all()
        for text in (text for rule in written.values() for text in rule.find(JsonText)):
            _ = text.table or text.written  # made now: what passes a limit is no surprise in the middle of a text
        writer.note_repeats()
        rules |= written
        return node


def validator(schema: Any, options: Options) -> Callable[[Any], bool]:
    """A function that tells whether a value is valid under a schema. Raises GrammarError as `write_schema`."""
    with _reading():
        document = Document(schema, options)
        admits = Alternatives(document, options).fits.admits
        return lambda value: admits(value, (document.root,))


@contextmanager
def _reading() -> Iterator[None]:
    """Refuse a schema in which Python's own stack runs out."""
    try:
        yield
    except RecursionError:
        raise GrammarError("JSON Schema: nested too deeply", hint="put the inner schemas under $defs") from None
