"""The tree that a grammar is read into: the types of its nodes, and functions that build them in a normal form.

Types that only one part of the reader makes are defined there: `assertions.Look` and `Atomic`, `token_contexts.Token`,
`json_text.JsonText`, `members.MemberSequence`. Nodes are compared by identity. The automaton walks them lazily, so a
node costs nothing until generation reaches it; in particular a bounded repeat stays one node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import TypeVar

from constrained.grammar.charset import CharSet, charset
from constrained.grammar.source import Place


class Node:
    """Base of the node types."""

    __slots__ = ()

    parts: tuple[Node, ...] = ()
    """The nodes directly below; those in a scope are not among them."""


N = TypeVar("N", bound=Node)


class Inner(Node):
    """Base of node types that are defined elsewhere and have nodes below them."""

    __slots__ = ()

    key: tuple
    """What is equal for nodes that read the same; what is below them follows from it."""


Spans = tuple[tuple[int, int], ...]
"""(start, end) of each string of a `.lark` file in a text: it may mean a control token (`automaton.control_tokens`)."""


@dataclass(eq=False, slots=True)
class LiteralText(Node):
    """Exactly these bytes; `joined` are the (offset, place) of neighbours that were joined to it."""

    data: bytes
    place: Place | None = None
    joined: tuple[tuple[int, Place | None], ...] = ()
    strings: Spans = ()


@dataclass(eq=False, slots=True)
class Chars(Node):
    """One character of a set."""

    chars: CharSet
    place: Place | None = None


@dataclass(eq=False, slots=True)
class Choices(Node):
    """One of several texts; `values` are sorted and distinct, so a prefix is a range."""

    values: tuple[bytes, ...]
    place: Place | None = None
    strings: Mapping[bytes, Spans] = field(default_factory=dict)  # of those that have some


@dataclass(eq=False)
class Except(Node):
    """A run of characters of a set, or the empty text, but none of `values`: sorted and distinct texts of ASCII."""

    chars: CharSet
    values: tuple[bytes, ...]

    @cached_property
    def written_out(self) -> Node:
        """The same texts without this type of node: alternatives for characters with which some of `values` go on."""

        def after(low: int, high: int, depth: int) -> Node:
            ends = len(self.values[low]) == depth
            out: list[Node] = [] if ends else [EMPTY]
            heads: list[tuple[int, int]] = []
            for byte, same in groupby(range(low + ends, high), lambda i: self.values[i][depth]):
                group = list(same)
                heads.append((byte, byte))
                out.append(seq([LiteralText(bytes((byte,))), after(group[0], group[-1] + 1, depth + 1)]))
            others = self.chars & charset(heads).complement() if heads else self.chars
            return alt([*out, seq([Chars(others), repeat(Chars(self.chars), 0, None)])] if others else out)

        return after(0, len(self.values), 0)


@dataclass(eq=False, slots=True)
class Seq(Node):
    """One after the other; no items: the empty text."""

    items: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class Alt(Node):
    """Any one of the items; no items: no text at all, not even the empty one."""

    items: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class Repeat(Node):
    """`low` to `high` times (`high` None: no upper bound)."""

    item: Node
    low: int
    high: int | None

    @property
    def parts(self) -> tuple[Node, ...]:  # type: ignore[override]
        return (self.item,)


@dataclass(eq=False, slots=True)
class RuleRef(Node):
    """A rule, with the arguments of its template parameters."""

    rule: str
    args: tuple[Node, ...] = ()


@dataclass(eq=False, slots=True)
class Var(Node):
    """A template parameter: one value, the same wherever the parameter is used."""

    name: str


@dataclass(eq=False, slots=True)
class Slot(Node):
    """A `%declare`d terminal, bound at run time."""

    name: str


@dataclass(eq=False, slots=True)
class Related(Node):
    """Those values of a slot that stand in a relation to another value (`grammars/relations.lark`)."""

    relation: str  # one of `AT`, `ANOTHER`, `NEXT`, `BEFORE`, `FIRST`
    values: Slot | Related  # the values to choose among
    to: Node | None = None  # the value that they are related to

    @property
    def parts(self) -> tuple[Node, ...]:  # type: ignore[override]
        return (self.values,) if self.to is None else (self.values, self.to)

    @property
    def slot(self) -> Slot:
        """The slot whose values they are."""
        return self.values if isinstance(self.values, Slot) else self.values.slot


# The same fields under another name, found without a call in Python.
Seq.parts, Alt.parts, RuleRef.parts = Seq.items, Alt.items, RuleRef.args  # type: ignore[misc]

ScopeValue = bytes | tuple[bytes, ...] | Node


@dataclass(eq=False, slots=True)
class Scoped(Node):
    """`node` with values for its template parameters: where a path continues after an action.

    `values`: parameter -> bytes (bound), a tuple of bytes (one of these), or a Scoped node.
    """

    node: Node
    values: Mapping[str, ScopeValue]

    def texts(self) -> list[bytes]:
        """Every text among the values."""
        texts: list[bytes] = []
        for value in self.values.values():
            if not isinstance(value, Node):
                texts += (value,) if isinstance(value, bytes) else value
        return texts


@dataclass(eq=False)
class Lazy(Node):
    """What `make` returns, made when it is first reached. Its rules are those of the grammar that this stands in."""

    make: Callable[[], Node]

    @cached_property
    def node(self) -> Node:
        """What it stands for."""
        return self.make()

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "node"}  # which is made again


@dataclass(eq=False)
class LazyText(Lazy):
    """One that is never the empty text, and always some text."""

    longest: int  # no shortest text from anywhere in it to its end has more bytes


@dataclass(eq=False, slots=True)
class Rule:
    """A rule's body, with its template parameters and the line it stands on."""

    name: str
    body: Node
    params: tuple[str, ...] = ()
    line: int | None = None
    _nodes: list[Node] | None = field(default=None, init=False, repr=False)

    @property
    def nodes(self) -> list[Node]:
        """All nodes of the body, as :func:`walk` gives them."""
        if self._nodes is None:
            self._nodes = walk(self.body)
        return self._nodes

    def find(self, kind: type[N]) -> list[N]:
        """The nodes of one type in the body."""
        return [node for node in self.nodes if isinstance(node, kind)]

    def __reduce__(self):
        return Rule, (self.name, self.body, self.params, self.line)


@dataclass(frozen=True, eq=False)
class Distinct:
    """What must differ within an array or object; a rule with such a condition reads it from after its opening bracket.

    The automaton reads the rule like any other; what a text has written there is remembered beside it
    (``automaton/distinct.py``).

    Attributes
    ----------
    names : bool
        The names of the members differ; else the items do.
    free : bool
        However a string (or name) has begun, it can go on in endlessly many ways.
    once : tuple of str
        Names that no object among the items can have twice.
    varied : tuple of tuple of (str, int), or None
        For each alternative of arrays and objects among the items that can't always have more items or members: the
        names that an object may have whatever else it has, each with in how many ways it surely can have it or not.
        None where there is no such alternative.
    """

    names: bool
    free: bool
    once: tuple[str, ...] = ()
    varied: tuple[tuple[tuple[str, int], ...], ...] | None = None


AT, ANOTHER, NEXT, BEFORE, FIRST = RELATIONS = ("at", "another", "next", "before", "first")
"""The relations of `grammars/relations.lark`."""

STEP = "_STEP"
"""The declared terminal that ends one action; unbound, a text ends there."""

EMPTY = Seq(())
"""The empty text."""

NEVER = Alt(())
"""No text."""


# Building: each function returns an equivalent, simpler node where there is one


def literal(text: str | bytes, strings: Spans = ()) -> Node:
    """Exactly `text`."""
    data = text.encode() if isinstance(text, str) else text
    return LiteralText(data, strings=strings) if data else EMPTY


def lark_string(text: str) -> Node:
    """Exactly `text`, which stands so in a `.lark` file."""
    data = text.encode()
    return literal(data, ((0, len(data)),))


def one_of(chars: CharSet, place: Place | None = None) -> Node:
    """One character of a set."""
    if not chars:
        return NEVER
    low, high = chars.ranges[0]
    return LiteralText(chr(low).encode(), place) if low == high and len(chars.ranges) == 1 else Chars(chars, place)


def choices(
    values: Iterable[bytes], place: Place | None = None, strings: Mapping[bytes, Spans] = MappingProxyType({})
) -> Node:
    """One of `values`; `strings` may have more than these."""
    ordered = tuple(sorted(set(values)))
    if not ordered:
        return NEVER
    if len(ordered) > 1:
        return Choices(
            ordered, place, {value: strings[value] for value in ordered if value in strings} if strings else {}
        )
    return LiteralText(ordered[0], place, strings=strings.get(ordered[0], ())) if ordered[0] else EMPTY


def seq(items: Iterable[Node]) -> Node:
    """Items in order: nested sequences are flattened and neighbouring literals joined."""
    parts = list(items)
    if len(parts) == 1:
        return parts[0]
    kinds = list(map(type, parts))
    if Seq in kinds:
        parts = [part for item in parts for part in (item.items if isinstance(item, Seq) else (item,))]
        kinds = list(map(type, parts))
    if len(parts) >= _MANY_REPEATS:
        parts = _merge_repeats(parts)
        kinds = list(map(type, parts))
    if Alt in kinds and NEVER in parts:
        return NEVER
    if kinds.count(LiteralText) > 1 and (LiteralText, LiteralText) in pairwise(kinds):
        parts = _join_literals(parts)
    return parts[0] if len(parts) == 1 else Seq(tuple(parts)) if parts else EMPTY


def _join_literals(parts: list[Node]) -> list[Node]:
    """Join each row of literals."""
    out: list[Node] = []
    for _, group in groupby(parts, type):
        row = list(group)
        literals = [one for one in row if isinstance(one, LiteralText)]
        out += [_join(literals)] if len(literals) > 1 else row
    return out


def _join(literals: list[LiteralText]) -> LiteralText:
    places: list[tuple[int, Place | None]] = []
    strings: list[tuple[int, int]] = []
    offset = 0
    for part in literals:
        strings += [(offset + start, offset + end) for start, end in part.strings]
        places += [(offset, part.place), *((offset + inner, place) for inner, place in part.joined)]
        offset += len(part.data)
    changes = [(offset, place) for (offset, place), (_, before) in zip(places[1:], places) if place != before]
    data = b"".join([part.data for part in literals])
    return LiteralText(data, literals[0].place, tuple(changes), tuple(strings))


_MANY_REPEATS = 16


def _merge_repeats(parts: list[Node]) -> list[Node]:
    """Write ``x? x? x? ...`` as ``x{0,n}``: a long row of equal repeats can be read in exponentially many ways."""

    def key(part: Node):
        simple = isinstance(part, Repeat) and isinstance(
            part.item, (LiteralText, Chars, Choices, RuleRef, Var, Slot, Related)
        )
        return shape(part.item) if isinstance(part, Repeat) and simple else part

    out: list[Node] = []
    for _, group in groupby(parts, key):
        row = list(group)
        first = row[0]
        if len(row) >= _MANY_REPEATS and isinstance(first, Repeat):
            repeats = [part for part in row if isinstance(part, Repeat)]
            low = sum(part.low for part in repeats)
            highs = [part.high for part in repeats if part.high is not None]
            high = sum(highs) if len(highs) == len(repeats) else None
            if max(low, high or 0) < 2**31:  # what a counter holds
                row = [Repeat(first.item, low, high)]
        out += row
    return out


def alt(items: Iterable[Node]) -> Node:
    """Any one of the items: nested alternatives are flattened, literals among them become one sorted choice."""
    flat = list(items)
    if len(flat) == 1:
        return flat[0]
    kinds = set(map(type, flat))
    if Alt in kinds:
        flat = [inner for item in flat for inner in (item.items if isinstance(item, Alt) else (item,))]
        kinds.update(map(type, flat))
    if LiteralText in kinds or Choices in kinds:
        flat = _merge_texts(flat)
    unique = list(dict.fromkeys(flat))  # by identity
    return unique[0] if len(unique) == 1 else Alt(tuple(unique)) if unique else NEVER


def _merge_texts(items: list[Node]) -> list[Node]:
    """Alternatives with the texts among them as one choice, which comes first."""
    texts: list[LiteralText | Choices] = []
    others: list[Node] = []
    values: set[bytes] = set()
    strings: dict[bytes, Spans] = {}
    for item in items:
        if isinstance(item, LiteralText):
            texts.append(item)
            values.add(item.data)
            if item.strings:
                strings.setdefault(item.data, item.strings)
        elif isinstance(item, Choices):
            texts.append(item)
            values.update(item.values)
            strings.update(item.strings)
        else:
            others.append(item)
    return [choices(values, texts[0].place, strings), *others] if len(texts) > 1 else items


def repeat(item: Node, low: int, high: int | None) -> Node:
    """`item`, `low` to `high` times."""
    if item is EMPTY or high == 0:
        return EMPTY
    if item is NEVER:
        return EMPTY if low == 0 else NEVER
    if low == high == 1:
        return item
    if low == 0 and high is None and isinstance(item, Repeat) and item.low <= 1 and item.high is None:
        return Repeat(item.item, 0, None)
    if low <= 1 and high is None and isinstance(item, Alt):
        return _repeat_alternatives(item, low)
    return Repeat(item, low, high)


def _repeat_alternatives(item: Alt, low: int) -> Node:
    """Write ``(C | x)*`` as ``C* (x C*)*``: the automaton is fastest in a run of characters of one set."""
    chars = [i for i in item.items if isinstance(i, Chars)]
    others = alt([i for i in item.items if not isinstance(i, Chars)])
    if not chars or others is NEVER:
        return Repeat(item, low, None)
    one = chars[0] if len(chars) == 1 else Chars(charset(r for c in chars for r in c.chars.ranges), chars[0].place)
    run = Repeat(one, 0, None)
    every = seq([run, Repeat(seq([others, run]), 0, None)])
    return seq([item, every]) if low else every


def related(relation: str, arguments: Sequence[Node]) -> Related:
    """The node of a relation with its arguments.

    Raises ValueError: the arguments don't fit; the message says why.
    """
    if relation not in RELATIONS or len(arguments) != (1 if relation == FIRST else 2):
        raise ValueError("no such relation")
    values, *to = arguments
    if not isinstance(values, Related) and not (isinstance(values, Slot) and values.name != STEP):
        raise ValueError("what comes first is a slot, a `%declare`d terminal, or a relation of one")
    if relation == AT and isinstance(values, Related):
        raise ValueError("what comes first is a slot, which is bound by key")
    if to and not isinstance(to[0], (Var, LiteralText)):
        raise ValueError("what a value is related to is a template's parameter, or a text")
    return Related(relation, values, *to)


def placed(node: Node, place: Place | None) -> Node:
    """Record where `node`, just made and used nowhere else, is written; return it."""
    for part in walk(node) if place else ():
        if isinstance(part, (LiteralText, Chars, Choices)) and part.place is None:
            part.place = place
    return node


def place_of(node: Node, offset: int = 0) -> Place | None:
    """Where a node, or the byte of it at an offset, is written."""
    if isinstance(node, LiteralText):
        return next((place for start, place in reversed(node.joined) if start <= offset), node.place)
    return node.place if isinstance(node, (Chars, Choices)) else None


# Looking at a tree; folds, rewriting and fixed points are in `traverse`


LEAVES: frozenset[type[Node]] = frozenset({LiteralText, Chars, Choices, Except, Var, Slot})
"""Types of node with nothing below: asked first, as most nodes are such."""


def scoped_children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below `node`, those inside a scope and its values included."""
    if isinstance(node, Scoped):
        return (node.node, *(v for v in node.values.values() if isinstance(v, Node)))
    return node.parts


def walk(node: Node, scopes: bool = False) -> list[Node]:
    """`node` and all nodes below it, level by level; with `scopes`, those in scopes and their values, too."""
    work = [node]
    for top in work:  # which grows meanwhile
        work += scoped_children(top) if scopes else top.parts
    return work


def find(node: Node, kind: type[N]) -> list[N]:
    """The nodes of one type in `node`."""
    return [part for part in walk(node) if isinstance(part, kind)]


def is_step(node: Node) -> bool:
    """Whether `node` is the `_STEP` that ends an action."""
    return isinstance(node, Slot) and node.name == STEP


def has_step(node: Node) -> bool:
    """Whether an action ends within `node`."""
    return any(type(one) is Slot and one.name == STEP for one in walk(node))


def shape(node: Node, key: Callable[[Node], Hashable] | None = None) -> tuple:
    """A key that is equal for nodes that read the same texts in the same way; `key`: that of the nodes below."""
    if isinstance(node, LiteralText):
        return (LiteralText, node.data)
    if isinstance(node, RuleRef) and not node.args:
        return (RuleRef, node.rule)
    if isinstance(node, Inner):
        return (type(node), *node.key)
    # Identity stands for equality only where equal things are one object (character sets) or may not be merged.
    key = key or shape
    below = tuple(map(key, node.parts))
    match node:
        case Choices():
            return (Choices, node.values)
        case Chars():
            return (Chars, id(node.chars))  # character sets are interned
        case Except():
            return (Except, id(node.chars), node.values)
        case Repeat():
            return (type(node), node.low, node.high, *below)
        case RuleRef():
            return (RuleRef, node.rule, *below)
        case Var() | Slot():
            return (type(node), node.name)
        case Related():
            return (Related, node.relation, *below)
        case Scoped():
            values = ((k, key(v) if isinstance(v, Node) else v) for k, v in sorted(node.values.items()))
            return (Scoped, key(node.node), *values)
    return (type(node), *below) if below or isinstance(node, (Seq, Alt)) else (type(node), id(node))
