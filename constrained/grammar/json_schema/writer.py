"""A JSON Schema as the rules of the JSON texts that it admits."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from json import JSONEncoder
from typing import Any, TypeVar

from constrained.errors import GrammarError
from constrained.grammar.analysis import prune, unproductive
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.arrays import array
from constrained.grammar.json_schema.constraints import Conjunction, Constraints, key_of
from constrained.grammar.json_schema.document import Document, Subschema
from constrained.grammar.json_schema.keywords import Options, is_type
from constrained.grammar.json_schema.missing import missing_property
from constrained.grammar.json_schema.numbers import Multiples, integer, number, whole
from constrained.grammar.json_schema.objects import properties
from constrained.grammar.json_schema.patterns import few_texts
from constrained.grammar.json_schema.plain import Contents, are_in_order, elements, members
from constrained.grammar.json_schema.plain_walk import Full, PlainWalk
from constrained.grammar.json_schema.presence import AsksForSeveral
from constrained.grammar.json_schema.unique import DISTINCT
from constrained.grammar.json_schema.validity import type_of
from constrained.grammar.json_schema.whitespace import Layout
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import Names
from constrained.grammar.nodes import (
    EMPTY,
    NEVER,
    Call,
    Choices,
    Literal,
    Node,
    Rule,
    Rules,
    Seq,
    WithTexts,
    alt,
    choices,
    find,
    seq,
)

T = TypeVar("T")


class Writer:
    """Writes the schemas of one document into `rules`.

    Objects and arrays are rules, each written once, so that recursion leads back to them. They
    are written one after the other, so that a deep schema takes no deep Python stack.
    """

    def __init__(
        self,
        document: Document,
        rules: dict[str, Rule],
        prefix: str,
        layout: Layout,
        options: Options,
        conditions: bool = True,
    ):
        self.document, self.rules, self.prefix, self.options = document, rules, prefix, options
        self.limits = options.limits
        self.alternatives = Alternatives(document, options, conditions)
        self.fits = self.alternatives.validator.fits
        self.admits = self.alternatives.validator.admits
        self._nodes: dict[tuple[str, ...], Node] = {}
        self._scalars: dict[tuple, Node] = {}
        self._names: dict[str, int] = {}
        self._containers: list[tuple[str, Callable[[], Contents | None] | None]] = []
        self._unsure: dict[str, Node] = {}  # what waits, and what it needs to have a value
        self._parts: list[Subschema] = []  # single schemas that may be written later
        self._seen: set[str] = set()
        self._singles: dict[str, Node] = {}  # what stands for these
        self._several: dict[tuple, Node] = {}  # what stands for schemas that hold together
        self._dead: set[str] = set()
        self.settled = False
        self._waiting: dict[str, Callable[[], Node]] = rules.waiting if isinstance(rules, Rules) else {}
        spaces = {"edge": layout.edge, "comma": layout.comma, "colon": layout.colon}
        pieces = (self._once((kind,), f"{prefix}{kind}", False, lambda _, n: n, n) for kind, n in spaces.items())
        edge, comma, colon = pieces
        self.layout = Layout(edge, comma, colon, layout.separators)

    def write(self, part: Subschema) -> Node:
        """Write one schema and all rules that it needs; return its texts."""
        node = self._together([part])
        self._write_containers()
        return node

    def settle(self) -> set[str]:
        """Write what isn't plain, and take out what no value fits; return the rules without any text.

        Plain schemas are written when a text reaches them; `rules` must be a `Rules`.
        """
        # Schemas are told by the walk, or written. The list of parts grows meanwhile.
        walk = PlainWalk(self.alternatives)
        bodies: dict[str, Node] = {}
        at = 0
        while True:
            try:
                for part in self._parts[at:]:
                    at += 1
                    told = self._value(part.pointer) in bodies or walk(part)
                    self._note(walk.left())
                    if not told:
                        self._write(part, bodies)
            except Full:
                walk, at = PlainWalk(self.alternatives, once=True), 0
            if at < len(self._parts):
                continue
            # All are told. Those that the equations of what each needs leave without a value are written, which may add
            # parts; then it is asked again.
            needs = {str(key): (key, self._any_of(others)) for key, others in walk.needs().items()}
            unsure = {name: node for name, (_, node) in needs.items()}
            written = {name: rule.body for name, rule in dict.items(self.rules)}
            empty = unproductive(unsure | self._unsure | bodies | written)
            dead = [key for name, (key, _) in needs.items() if name in empty]
            late = [name for name in self._unsure if name in empty]
            if not dead and not late:
                break
            for name in late:
                del self._unsure[name]
                self.add(Rule(name, self._waiting.pop(name)()))
                self._write_containers()
            for key in dead:
                self._write(walk.give_up(key), bodies)
        self._dead = empty  # not before: until all is known, schemas count as empty that may not be
        for name, rule in list(dict.items(self.rules)) if empty else ():
            if name not in empty:
                self.rules[name] = Rule(name, self._pruned(rule.body))
        return empty

    def note_repeats(self) -> None:
        """Note what is left out, or unknown, wherever the document repeats a schema, which is written once."""
        for places in (self.options.left_out, self.options.unknown):
            self.document.add_repeats(places)

    def _value(self, pointer: str) -> str:
        return f"{self.prefix}{pointer} value"

    def _write(self, part: Subschema, bodies: dict[str, Node]) -> None:
        """Write a schema that isn't plain, once."""
        name = self._value(part.pointer)
        if name not in bodies:
            self.alternatives.check(part)
            bodies[name] = self._together([part])
            self._write_containers()

    def _any_of(self, needs: list[list[int | Subschema]]) -> Node:
        names = ([str(p) if isinstance(p, int) else self._value(p.pointer) for p in parts] for parts in needs)
        return alt(Seq(tuple(map(Call, parts))) for parts in names)

    def _pruned(self, node: Node) -> Node:
        if not self._dead or not any(call.rule in self._dead for call in find(node, Call)):
            return node
        return prune(node, self._dead.__contains__)

    def later(self, name: str, write: Callable[[], Node], inner: Callable[[], Contents | None] | None = None) -> Node:
        """A call of a rule that is written once; what is known of its `inner` parts may let it wait for a text."""
        if name not in self.rules and name not in self._waiting:
            self._waiting[name] = lambda: self._pruned(write())
            self._containers.append((name, inner))
        return Call(name)

    def wait(self, name: str, write: Callable[[], Node], hidden: bool = False) -> Node:
        """A call of a rule of which some text is certain: written when a text reaches it. `hidden`: see `Rules`."""
        if hidden and isinstance(self.rules, WithTexts):
            self.rules.texts.hidden.setdefault(name, write)
            return Call(name)
        if not isinstance(self.rules, Rules):
            return self.later(name, write)
        if name not in self.rules:
            (self.rules.hidden if hidden else self._waiting).setdefault(name, lambda: self._pruned(write()))
        return Call(name)

    def _note(self, parts: list[Subschema]) -> None:
        for part in parts:
            if part.pointer not in self._seen:
                self._seen.add(part.pointer)
                self._parts.append(part)

    def _write_containers(self) -> None:
        while self._containers:
            name, inner = self._containers.pop()
            found = inner() if inner and isinstance(self.rules, Rules) else None
            needed = seq(map(self.node, found.needed)) if found else EMPTY
            if found is None or found.necessary and needed is NEVER:
                write = self._waiting.pop(name)
                self.add(Rule(name, NEVER if found else write()))
                continue
            for parts in found.parts:
                self.node(parts)
            self._unsure[name] = needed

    def add(self, rule: Rule) -> None:
        self.rules[rule.name] = rule
        if not isinstance(self.rules, Rules):  # all rules are there from the beginning
            for text in rule.find(JsonText):
                _ = text.table or text.written
        self.limits.check("schema", dict.__len__(self.rules), "a JSON Schema that takes too many rules")

    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]:
        return self.alternatives.constraints_of(parts)

    def values(self, parts: list[Subschema]) -> list[Any] | None:
        """The values that `parts` admit, where they are listed; else None."""
        out: list[Any] = []
        for constraints in self.constraints_of(parts):
            if constraints.listed is not None:
                out += self._fitting(constraints)
            else:
                for kind in constraints.types:
                    found = self._few(kind, constraints)
                    if found is None:
                        return None
                    out += [v for v in found if self.fits(v, constraints)]
        return list({json.dumps(v, sort_keys=True): v for v in out}.values())

    def _few(self, kind: str, constraints: Constraints) -> list | range | None:
        """A list that has every admitted value of that type, if it has at most `DISTINCT` values; else None."""
        if kind == "string":
            each = [few_texts(tree, DISTINCT, self.limits) for tree in strings.trees(constraints)]
            return next((texts for texts in each if texts is not None), None)
        low, high = whole(constraints.bound(-1), constraints.bound(1))
        if kind == "integer" and low is not None and high is not None and high - low < DISTINCT:
            return range(low, high + 1)
        return _FEW_VALUES.get(kind)

    def _fitting(self, constraints: Constraints) -> list[Any]:
        """Those of the values listed that fit everything else that is said, too."""
        listed = constraints.listed[1] if constraints.listed else []
        lists = [*constraints.all("enum"), *constraints.all("const")]
        if len(lists) == 1 and constraints.only_lists and not constraints.denied:  # of many values, none is looked into
            types = constraints.types | ({"integer"} if "number" in constraints.types else set())
            return [v for v in listed if type_of(v) in types]
        return [v for v in listed if self.fits(v, constraints)]

    def node(self, parts: list[Subschema]) -> Node:
        """The texts of values that are valid under all `parts`."""
        part = parts[0] if parts else _ANY
        alone = len(parts) < 2
        if alone and not part.within and part.pointer in self._singles:
            return self._singles[part.pointer]
        if not alone or part.within or not isinstance(self.rules, Rules) or "\0" in part.pointer:
            if any(one.schema is False for one in parts):
                return NEVER
            key = tuple([(one.pointer, one.within) for one in parts])
            if key not in self._several:
                self._several[key] = self._together([self.document.meant(one) for one in parts])
            return self._several[key]
        if is_type(part.schema):  # many are alike
            kind = part.keywords.get("type")
            part = _ANY if kind is None else Subschema({"type": kind}, f"#{kind}")
            if part.pointer in self._singles:
                return self._singles[part.pointer]
        else:
            part = self.document.meant(part)
            if part.schema is False:
                return NEVER
            self._note([part])
        self._singles[part.pointer] = self.wait(self._value(part.pointer), partial(self._together, [part]))
        return self._singles[part.pointer]

    def _together(self, parts: list[Subschema]) -> Node:
        return alt([self._conjunction(one) for one in self.alternatives.of(parts)])

    def _conjunction(self, conjunction: Conjunction) -> Node:
        key = key_of(conjunction)
        if key not in self._nodes:
            self._nodes[key] = self._texts(key, self.alternatives.constraints(conjunction))
        return self._nodes[key]

    def _texts(self, key: tuple[str, ...], constraints: Constraints) -> Node:
        if constraints.listed is not None:
            return self._listed(self._fitting(constraints))
        name = self._name(key)
        out: list[Node] = []
        for kind in sorted(constraints.types):
            if kind in ("object", "array"):
                rule, how = f"{name} {kind}", array if kind == "array" else properties
                write = partial(how, constraints, self, rule, self.layout)
                out.append(self.later(rule, write, partial(_INNER[kind], constraints, self.document)))
            elif kind in ("number", "integer"):
                wanted = Multiples(constraints.multiple(), tuple(constraints.no_multiples()))
                bounds = (kind, wanted, *constraints.intervals())
                certain = len(bounds) == 3 and wanted == Multiples(None) and are_in_order(constraints)
                out.append(self._once(bounds, f"{name} {kind}", certain, self._number, kind, wanted, constraints))
            elif kind == "string":
                said = ("string", *strings.what_is_said(constraints))
                certain = said not in self._scalars and strings.is_one_tree(constraints)
                out.append(self._once(said, f"{name} string", certain, self._string, constraints))
            else:
                out.append(self._listed([v for v in _FEW_VALUES[kind] if self.fits(v, constraints)]))
        return alt(out)

    def _once(self, key: tuple, name: str, certain: bool, write: Callable[..., Node], *arguments) -> Node:
        """The node that `write` returns, as a call of a rule that is written once for each `key`.

        Where it is `certain` that it has a text, it is written when a text reaches it.
        """
        if key not in self._scalars and certain and isinstance(self.rules, Rules):
            self._scalars[key] = self.wait(name, partial(write, name, *arguments))
        elif key not in self._scalars:
            node = write(name, *arguments)
            self._scalars[key] = node
            if node is not NEVER and node is not EMPTY and not isinstance(node, (Call, Literal, Choices)):
                self.add(Rule(name, node))
                self._scalars[key] = Call(name)
        return self._scalars[key]

    def _string(self, name: str, constraints: Constraints) -> Node:
        return strings.quoted(strings.string(constraints, f"{name}:", self.wait))

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

    def _name(self, key: tuple[str, ...]) -> str:
        name = min(key, key=len, default="#any")
        self._names[name] = count = self._names.get(name, 0) + 1
        return f"{self.prefix}{name}{f' {count}' if count > 1 else ''}"

    def _number(self, name: str, kind: str, wanted: Multiples, constraints: Constraints) -> Node:
        wanted = wanted.whole() if kind == "integer" and wanted != Multiples(None) else wanted
        out: list[Node] = []
        for i, (low, high) in enumerate(constraints.intervals()):
            if wanted == Multiples(None):
                out.append(integer(*whole(low, high)) if kind == "integer" else number(low, high))
                continue
            node = wanted.node(low, high, self.wait, f"{name}:{i}")
            if node is None:
                what = "numbers between bounds that are no multiples can't be written down"
                self.options.refuse(constraints.parts[0], "multipleOf", what, "leave the bounds out")
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

_ANY = Subschema(True, "#any")

_FEW_VALUES: dict[str, list[Any]] = {"null": [None], "boolean": [False, True]}


_INNER: dict[str, Callable[[Constraints, Document], Contents | None]] = {"object": members, "array": elements}


def scalar(value: Any, closing: str = "") -> set[bytes]:
    """The spellings of a value that is no array or object, without `closing` in them."""
    if isinstance(value, str):
        return strings.texts(value, closing)
    found = {json.dumps(value).encode()}
    return found | {str(int(value)).encode()} if isinstance(value, float) and value == int(value) else found


def load_schema(schema, layout: Layout, options: Options) -> dict[str, Rule]:
    """The rules of `schema`, from the rule ``start``, many of them written only when they are asked for.

    Raises
    ------
    GrammarError
        It is not a schema, is refused, or admits nothing.
    """

    def load(conditions: bool) -> dict[str, Rule]:
        document = Document(schema, options.limits)
        rules = Rules(options.limits.schema)
        writer = Writer(document, rules, "", layout, options, conditions)
        rules["start"] = Rule("start", writer.node([document.root]))
        dead = writer.settle()
        writer.note_repeats()
        writer.settled = True
        if rules["start"].body is NEVER or "start" in dead:
            missing = missing_property(schema, replace(options, left_out={}, unknown={}))
            if missing is not None:
                raise missing
            hint = "look for keywords that rule each other out, and for $ref that never come to an end"
            raise GrammarError("JSON Schema at #: no value is valid", hint=hint)
        return rules  # texts begin with text of their own: no left recursion to turn round

    return _read(load, options)


def write_schema(schema, rules: dict[str, Rule], prefix: str, layout: Layout, options: Options) -> Node:
    """Write `schema`: return its texts, and add the rules they need, whose names begin with `prefix`, to `rules`.

    Raises
    ------
    GrammarError
        It is not a schema, is refused, or admits nothing.
    """

    def write(conditions: bool) -> Node:
        document = Document(schema, options.limits)
        writer = Writer(document, rules, prefix, layout, options, conditions)
        node = writer.write(document.root)
        writer.note_repeats()
        return node

    return _read(write, options, rules)


def _read(read: Callable[[bool], T], options: Options, *written: dict) -> T:
    """What `read` returns with conditions on names; without these where an object has some and counts its names."""
    grown = [*written, options.left_out, options.unknown]
    if options.distinct is not None:
        grown.append(options.distinct)
    sizes = list(map(len, grown))
    with _reading():
        try:
            return read(True)
        except AsksForSeveral:
            for one, size in zip(grown, sizes):
                for key in list(one)[size:]:
                    del one[key]
            return read(False)


def validator(schema: Any, options: Options) -> Callable[[Any], bool]:
    """A function that tells whether a value is valid under a schema. Raises GrammarError as `write_schema`."""
    with _reading():
        document = Document(schema, options.limits)
        admits = Alternatives(document, options).validator.admits
        return lambda value: admits(value, [document.root])


@contextmanager
def _reading() -> Iterator[None]:
    """Refuse a schema in which Python's own stack runs out; no garbage is collected meanwhile.

    What is made is nearly all kept, and a collection that falls in here would look through all that the process holds.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    except RecursionError:
        raise GrammarError("JSON Schema: nested too deeply", hint="put the inner schemas under $defs") from None
    finally:
        if collects:
            gc.enable()
