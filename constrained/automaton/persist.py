"""Compiled grammars on disk: the grammar's tree and bindings, with the vocabulary's fingerprint.

The tree is saved rather than the text it was read from: a grammar need not have one (that of what may follow
an action has none), and a `.lark` file imports others. Masks aren't saved: computing them takes a fraction of
the time that it takes to read them from a file.

A file is a header and a body, one line of JSON each. The body has a table of objects: an entry is the name of a
type and the object's fields; a field that is an object itself is the index of an earlier entry, so that there are
no cycles. The fields are the parameters of the type's `__init__`, and its annotations are what they are checked
against. Nothing in a file is run, and nothing is trusted: the grammar is held to the limits that one read from text
must keep.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, TypeVar, get_type_hints

from constrained.automaton.automaton import Grammar
from constrained.automaton.json_fields import Texts, check, decoder, reference, to_bytes
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import DataError, GrammarError, LimitError, VocabularyError
from constrained.files import write_whole
from constrained.grammar import nodes as n
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_schema.strings import read_by
from constrained.grammar.json_text import JsonText, Table, TextState
from constrained.grammar.members import MemberSequence, Names
from constrained.grammar.traverse import uses_relations
from constrained.limits import Limits

FORMAT = "constrained grammar"
VERSION = 12

MAX_BYTES = 1 << 28
"""Bytes of a file that is read."""

MAX_DEPTH = 500
"""Nodes within each other; no grammar that is read from text nests as deeply."""

Compiled = TypeVar("Compiled")


def save(path: str | os.PathLike, grammar: ContextFreeGrammar, vocabulary: Vocabulary) -> None:
    """Write `grammar`, compiled over `vocabulary`, to `path`, whole or not at all.

    Raises
    ------
    OSError
        The file can't be written.
    DataError
        Some of the grammar's rules are made during generation (a tool policy's).
    """
    content = {"vocabulary": vocabulary.fingerprint, "objects": grammar_entries(grammar)}
    body = json.dumps(content).encode()
    header = {"format": FORMAT, "version": VERSION, "sha256": sha256(body).hexdigest()}
    write_whole(os.fspath(path), json.dumps(header).encode() + b"\n" + body)


def load(
    path: str | os.PathLike,
    vocabulary: Vocabulary,
    limits: Limits,
    compile: Callable[[Grammar, Vocabulary], Compiled],
) -> Compiled:
    """Read a grammar that :func:`save` wrote for `vocabulary`, and compile it by `compile`.

    Raises
    ------
    DataError
        The file doesn't exist, is damaged, or has another version.
    VocabularyError
        The grammar was compiled for another vocabulary.
    LimitError
        The grammar costs more than `limits` allow.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"can't read {path}: {error}") from None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes")
        first_line, _, body = data.partition(b"\n")
        header = json.loads(first_line)
        if (header["format"], header["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it is a {header['format']} of version {header['version']}")
        if header["sha256"] != sha256(body).hexdigest():
            raise ValueError("it is damaged or cut short")
        content = json.loads(body)
        if content["vocabulary"] != vocabulary.fingerprint:
            raise VocabularyError(
                f"{path} was compiled for another vocabulary",
                hint="load it with the tokenizer, EOS ids and size it was compiled with, or compile the grammar again",
            )
        return compile(_TableReader(limits).read(content["objects"]), vocabulary)
    except (LimitError, VocabularyError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, GrammarError) as error:
        raise DataError(f"{path} is not a compiled grammar of version {VERSION}: {error}") from None


@dataclass(frozen=True)
class InOrder:
    """The texts that a slot is bound to, in an order that relations depend on."""

    texts: tuple[str, ...]


# Writing


def grammar_entries(grammar: ContextFreeGrammar) -> list[list]:
    """A grammar as a table of JSON values, equal for grammars that are written and bound alike."""
    entries: list[list] = []
    indices: dict[Any, int] = {}
    alive = []  # keeps each object alive, since ids are keys
    work: list[Any] = [grammar]
    while work:
        item = work[-1]
        if _key(item) not in indices:
            name, *fields = _describe(item)
            missing = [part for part in _references(fields) if _key(part) not in indices]
            if missing:
                work += reversed(missing)
                continue
            indices[_key(item)] = len(entries)
            alive.append(item)
            entries.append([name, *(_encode(field, indices) for field in fields)])
        work.pop()
    return entries


def _describe(given: Any) -> tuple:
    """The name of an object's type, and its fields."""
    if type(given) is tuple:
        return "texts", tuple(map(_text, given))
    if isinstance(given, ContextFreeGrammar):
        orders = given.orders if given.of_rules(uses_relations) else {}
        bindings = {name: _with_order(value, orders.get(name)) for name, value in given.bindings.items()}
        return (
            "grammar",
            given.derived(_all_rules),
            given.start,
            tuple(sorted(given.slots)),
            bindings,
            dict(given.distinct),
        )
    if isinstance(given, TextState):
        return "RuleRef", given.name, ()
    if isinstance(given, JsonText):
        return "JsonText", given.written if given.table is None else None, given.table, given.high
    name = "RuleRef" if isinstance(given, n.RuleRef) else type(given).__name__
    if name not in _FIELDS:
        raise DataError("a grammar whose rules are made during generation can't be saved", "compile it again")
    return name, *(getattr(given, field) for field in _FIELDS[name])


def _all_rules(grammar: ContextFreeGrammar) -> tuple[n.Rule, ...]:
    """All rules, including those of strings without a table, which are otherwise made when a text reaches them."""
    result = dict(grammar.all_rules())
    work = list(result.values())
    for rule in work:  # the loop appends to `work`
        texts = [text.written for text in rule.find(JsonText) if text.table is None]
        for state in texts + rule.find(TextState):
            if isinstance(state, TextState) and state.name not in result:
                work.append(n.Rule(state.name, state.node))
                result[state.name] = work[-1]
                grammar.limits.check("schema", len(result), "strings whose patterns take too many rules to be saved")
    return tuple(work)


def _with_order(value: Any, order: Any) -> Any:
    """The value that a slot is bound to, as `InOrder` if `order` (None: the order doesn't matter) isn't sorted."""
    if isinstance(value, dict):
        return {key: _with_order(inner, order and order[key]) for key, inner in value.items()}
    if isinstance(value, ContextFreeGrammar) or order is None or order == value:
        return value
    return InOrder(tuple(map(_text, order)))


def _encode(value: Any, indices: Mapping[Any, int]) -> Any:
    """A field as a JSON value."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, Mapping):
        return [[_encode(key, indices), _encode(inner, indices)] for key, inner in value.items()]
    return [_encode(part, indices) for part in value] if _is_list(value) else indices[_key(value)]


def _references(fields: Iterable[Any]) -> Iterator[Any]:
    """Yield the objects that fields refer to."""
    for value in fields:
        if isinstance(value, Mapping) or _is_list(value):
            yield from _references(value.values() if isinstance(value, Mapping) else value)
        elif value is not None and not isinstance(value, (int, str, bytes)):
            yield value


def _key(found: Any) -> Any:
    """The key of an object's entry: objects with equal keys share one entry."""
    return found if type(found) in (tuple, InOrder) else id(found)


def _is_list(value: Any) -> bool:
    """Whether a field is a list of fields. A tuple of texts isn't: it has an entry of its own."""
    return type(value) is tuple and not (value and isinstance(value[0], bytes))


def _text(data: bytes) -> str:
    """Bytes as a JSON string: each byte becomes the character of that number."""
    return data.decode("latin-1")


# Reading


class _TableReader:
    """Makes objects from the entries of a table. Raises ValueError, TypeError or others for an invalid entry."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._objects: list[Any] = []
        self._depths: dict[n.Node, int] = {}

    def read(self, entries: list[list]) -> Grammar:
        """The last object."""
        for name, *values in entries:
            decoders = _FIELDS[name].values()
            check(len(values) == len(decoders), f"{len(values)} fields of {name}")
            found = self._make(name, *[decode(self._objects, value) for decode, value in zip(decoders, values)])
            if isinstance(found, n.Node):
                self._depths[found] = 1 + max((self._depths[child] for child in n.scoped_children(found)), default=0)
                check(self._depths[found] <= MAX_DEPTH, "nodes are nested too deeply")
                self._limits.check("nodes", len(self._depths), "too many nodes in the file")
            self._objects.append(found)
        return reference(Grammar)(self._objects, len(self._objects) - 1)

    def _make(self, name: str, *fields: Any) -> Any:
        """Make an object from its fields, each of which is of the annotated type."""
        match name, fields:
            case "texts", [texts]:
                return self._sorted_texts(map(to_bytes, texts))
            case "grammar", _:
                return self._grammar(*fields)
            case "CharSet", [ranges]:
                check(all(0 <= low <= high <= MAX_CODE_POINT for low, high in ranges), "no range of characters")
                chars = charset(ranges)
                check(chars, "an empty set of characters")
                return chars
            case "Table", [starts, classes, after, _]:
                check(starts and classes and after, "an empty table")
                table = Table(*fields)
                table.check()
                return table
            case (("Seq" | "Alt"), [()]):
                return n.EMPTY if name == "Seq" else n.NEVER
            case "Related", [relation, values, to]:
                return n.related(relation, [values] if to is None else [values, to])
            case "JsonText", [written, table, high]:
                self._check_counts(0, high)
                check(written or table, "a text without a table or rules")
                return JsonText(lambda: written or read_by(table, high), lambda: table, high)
            case "MemberSequence", [of, 0, 0, 0]:
                members = of.start()
                check(members is not n.NEVER, "members that never end")
                return members
        made = _TYPES[name](**dict(zip(_FIELDS[name], fields)))
        match made:
            case n.LiteralText(data):
                check(data, "an empty literal")
                _check_spans(data, made.strings)
            case n.Choices(values):
                check(made.strings.keys() <= set(values), "strings of a text that is none of the choices")
                for value, spans in made.strings.items():
                    _check_spans(value, spans)
            case n.Repeat(_, low, high):
                self._check_counts(low, high)
            case n.Except(_, values):
                check(all(map(bytes.isascii, values)), "texts beyond ASCII")
            case n.Scoped(_, values):
                inner = [value for value in values.values() if isinstance(value, n.Node)]
                check(all(isinstance(value, n.Scoped) for value in inner), "a scope's value is no scope")
            case Names():
                self._check_counts(made.low, made.high)
                check(_is_consistent(made), "not the members of an object")
            case MemberSequence():
                raise ValueError("members after others")
        return made

    def _grammar(
        self, rules: tuple[n.Rule, ...], start: n.Node, slots: tuple[str, ...], bindings: dict, distinct: dict
    ) -> Grammar:
        by_name = {rule.name: rule for rule in rules}
        for rule in rules:
            _check_names(rule.body, set(rule.params), by_name, set(slots))
        _check_names(start, set(), by_name, set(slots))
        check(bindings.keys() <= set(slots), "a value for a slot that doesn't exist")
        check(distinct.keys() <= by_name.keys(), "something that differs in a rule that doesn't exist")
        values: dict[str, Any] = {}
        orders: dict[str, Any] = {}
        for name, bound in bindings.items():
            if isinstance(bound, dict):
                pairs = {key: self._split(inner) for key, inner in bound.items()}
                values[name] = {key: value for key, (value, _) in pairs.items()}
                orders[name] = {key: order for key, (_, order) in pairs.items()}
            else:
                values[name], orders[name] = self._split(bound)
        grammar = Grammar(by_name, start, slots, values, self._limits, orders)
        grammar.distinct = distinct
        return grammar

    def _split(self, bound: Texts | InOrder | Grammar) -> tuple[Texts | Grammar, Texts]:
        """(The value that a slot is bound to, its texts in order)."""
        if isinstance(bound, InOrder):
            order = tuple(map(to_bytes, bound.texts))
            return self._sorted_texts(sorted(order)), order
        return bound, () if isinstance(bound, Grammar) else bound

    def _sorted_texts(self, texts: Iterable[bytes]) -> Texts:
        values = tuple(texts)
        self._limits.check("values", len(values), "too many texts in a list of the file")
        check(values and all(a < b for a, b in pairwise(values)), "no texts, or texts out of order")
        return values

    def _check_counts(self, low: int, high: int | None) -> None:
        """Raise ValueError unless they can be the bounds of a repeat."""
        check(low >= 0 and (high is None or high >= max(low, 1)), f"a repeat of {low} to {high}")
        self._limits.check("repeat", max(low, high or 0), "a repeat in the file")


def _check_spans(text: bytes, spans: n.Spans) -> None:
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    check(edges == sorted(edges), "strings that aren't side by side in their text")


def _is_consistent(names: Names) -> bool:
    count = len(names.values)
    bits = [bits for variants in names.values for _, bits in variants]
    numbers = [names.required, names.shown, *names.names.values(), *bits, *(i for row in names.condition for i in row)]
    return (
        min(numbers) >= 0
        and names.low > 0
        and all(names.values)
        and b"" not in names.names
        and {*names.names.values()} == {*range(count)}
        and not names.required >> count
        and all(i < count and max(to) < at for at, (i, *to) in enumerate(names.condition, 2))
    )


def _check_names(root: n.Node, params: set[str], rules: dict[str, n.Rule], slots: set[str]) -> None:
    """Raise ValueError if a node at or below `root` refers to a rule, parameter or slot that doesn't exist."""
    work = [(root, params)]
    while work:
        top, in_scope = work.pop()
        for node in n.walk(top):
            match node:
                case n.RuleRef(rule, args) if rule not in rules or len(args) != len(rules[rule].params):
                    raise ValueError(f"no rule {rule!r} with {len(args)} arguments")
                case n.Var(name) if name not in in_scope:
                    raise ValueError(f"no parameter {name!r}")
                case n.Slot(name) if name not in slots:
                    raise ValueError(f"no slot {name!r}")
                case JsonText() if node.table is None:
                    work.append((node.written, in_scope))
                case n.Scoped(inner, values):
                    work.append((inner, set(values)))
                    work += [(value, set()) for value in values.values() if isinstance(value, n.Node)]


# Types and their fields

_LEAVES = (n.LiteralText, n.Chars, n.Choices, n.Except, n.Var, n.Slot)
_INNER = (n.Seq, n.Alt, n.Repeat, n.RuleRef, n.Related, n.Scoped, Names, MemberSequence)
_TYPES: dict[str, Any] = {
    kind.__name__: kind for kind in (*_LEAVES, *_INNER, n.Rule, n.Distinct, CharSet, Table, InOrder)
}

_BOUND = Texts | InOrder | Grammar

_HINTS: dict[str, dict[str, Any]] = {
    **{name: get_type_hints(kind.__init__) for name, kind in _TYPES.items()},
    "JsonText": {"written": n.RuleRef | None, "table": Table | None, "high": int | None},
    "texts": {"texts": tuple[str, ...]},
    "grammar": {
        "rules": tuple[n.Rule, ...],
        "start": n.Node,
        "slots": tuple[str, ...],
        "bindings": dict[str, _BOUND | dict[bytes, _BOUND]],
        "distinct": dict[str, n.Distinct],
    },
}

_FIELDS = {
    name: {field: decoder(kind) for field, kind in hints.items() if field not in ("return", "place", "joined")}
    for name, hints in _HINTS.items()
}
"""Name of a type -> its fields, each with its decoder."""
