"""The tree a grammar is read into: eleven kinds of node, nothing else.

Nodes are compared by identity. The automaton walks them lazily, so a node costs
nothing until generation reaches it; in particular a bounded repeat stays one node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from constrained.grammar.charset import CharSet, charset
from constrained.grammar.source import Source


class Node:
    """Base of the node types."""

    __slots__ = ()


@dataclass(frozen=True)
class Place:
    """Where a piece of text stands in its grammar.

    Attributes
    ----------
    definition : str
        The rule or terminal it is written in.
    line, column : int
        One-based.
    source : Source
        The file: the grammar's own, or one that it imports.
    """

    definition: str
    line: int
    column: int
    source: Source


@dataclass(frozen=True, eq=False)
class Literal(Node):
    """Exactly these bytes; `joined` are the (offset, place) of neighbours that were joined to it."""

    data: bytes
    place: Place | None = None
    joined: tuple[tuple[int, Place | None], ...] = ()

    def place_at(self, offset: int) -> Place | None:
        """Where the byte at `offset` is written."""
        return next((place for start, place in reversed(self.joined) if start <= offset), self.place)


@dataclass(frozen=True, eq=False)
class Chars(Node):
    """One character of a set."""

    chars: CharSet
    place: Place | None = None


@dataclass(frozen=True, eq=False)
class Choices(Node):
    """One of several texts; `values` are sorted and distinct, so a prefix is a range."""

    values: tuple[bytes, ...]
    place: Place | None = None


@dataclass(frozen=True, eq=False)
class Seq(Node):
    """One after the other; no items: the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Alt(Node):
    """Any one; no items: nothing at all, not even the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Repeat(Node):
    """`low` to `high` times (`high` None: without end)."""

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A rule, with the arguments of its template parameters."""

    rule: str
    args: tuple[Node, ...] = ()


@dataclass(frozen=True, eq=False)
class Var(Node):
    """A template parameter: one value, the same wherever the parameter is used."""

    name: str


@dataclass(frozen=True, eq=False)
class Slot(Node):
    """A `%declare`d terminal, bound at run time."""

    name: str


@dataclass(frozen=True, eq=False)
class Related(Node):
    """One of the values of a slot that stand in a relation to another (`grammars/relations.lark`).

    `values`: a Slot, or a Related node; `to`: the Var or Literal of the value that they stand in relation to.
    """

    relation: str
    values: Node
    to: Node | None = None

    @property
    def slot(self) -> Slot:
        """Whose values they are."""
        return self.values if isinstance(self.values, Slot) else self.values.slot


@dataclass(frozen=True, eq=False)
class Scoped(Node):
    """`node` with its template parameters given: how a path is taken up again after an action.

    `values`: parameter -> bytes (bound), a tuple of bytes (one of these), or a Scoped node.
    """

    node: Node
    values: dict

    def texts(self) -> list[bytes]:
        """Every text among the values."""
        return [
            t for v in self.values.values() if not isinstance(v, Node) for t in ((v,) if isinstance(v, bytes) else v)
        ]


@dataclass(frozen=True)
class Rule:
    """A rule's body, with its template parameters and the line it stands on."""

    name: str
    body: Node
    params: tuple[str, ...] = ()
    line: int | None = field(default=None, compare=False)


STEP = "_STEP"
"""The declared terminal that ends one action; unbound, a text ends there."""

EMPTY = Seq(())
NEVER = Alt(())


def literal(text: str | bytes) -> Node:
    """`text` as a node."""
    data = text.encode() if isinstance(text, str) else text
    return Literal(data) if data else EMPTY


_MANY = 16


def _counted(parts: list[Node]) -> list[Node]:
    """Long rows of the same repeat as one: ``x? x? ...``, which can be passed in very many ways, is ``x{0,n}``."""

    def same(part: Node):
        return shape(part.item) if isinstance(part, Repeat) and not isinstance(part.item, (Seq, Alt, Repeat)) else part

    out: list[Node] = []
    for _, group in groupby(parts, same):
        row = list(group)
        if len(row) >= _MANY and isinstance(row[0], Repeat):
            high = None if any(r.high is None for r in row) else sum(r.high for r in row)
            low = sum(r.low for r in row)
            if max(low, high or 0) < 2**31:  # what a counter holds
                row = [Repeat(row[0].item, low, high)]
        out += row
    return out


def seq(items) -> Node:
    """Items in order, nested sequences flattened and neighbouring literals joined."""
    parts = [p for item in items for p in (item.items if isinstance(item, Seq) else (item,))]
    if any(part is NEVER for part in parts):
        return NEVER
    if len(parts) >= _MANY:
        parts = _counted(parts)
    flat: list[Node] = []
    for literals, group in groupby(parts, lambda p: isinstance(p, Literal)):
        run = list(group)
        flat += [_joined(run)] if literals and len(run) > 1 else run
    return flat[0] if len(flat) == 1 else Seq(tuple(flat)) if flat else EMPTY


def _joined(run: list[Literal]) -> Literal:
    places, at = [], 0
    for part in run:
        places += [(at, part.place), *((at + offset, place) for offset, place in part.joined)]
        at += len(part.data)
    places = [(at, place) for (at, place), (_, before) in zip(places[1:], places) if place != before]
    return Literal(b"".join(p.data for p in run), run[0].place, tuple(places))


def alt(items) -> Node:
    """Any one of the items; literals among them become one sorted choice."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Alt) else (item,))
    texts = [i for i in flat if isinstance(i, (Literal, Choices))]
    if len(texts) > 1:
        values = {v for t in texts for v in ((t.data,) if isinstance(t, Literal) else t.values)}
        flat = [i for i in flat if not isinstance(i, (Literal, Choices))]
        flat.insert(0, placed(choices(values), texts[0].place))
    unique = list(dict.fromkeys(flat))  # by identity
    return unique[0] if len(unique) == 1 else Alt(tuple(unique)) if unique else NEVER


def choices(values) -> Node:
    """One of `values` (bytes)."""
    ordered = tuple(sorted(set(values)))
    if not ordered:
        return NEVER
    return literal(ordered[0]) if len(ordered) == 1 else Choices(ordered)


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
        return _free_text(item, low)
    return Repeat(item, low, high)


def _free_text(item: Alt, low: int) -> Node:
    """``(C | x)*`` as ``C* (x C*)*``: a run of characters is the automaton's quick case, one in a choice is not."""
    chars = [i for i in item.items if isinstance(i, Chars)]
    others = alt([i for i in item.items if not isinstance(i, Chars)])
    if not chars or others is NEVER:
        return Repeat(item, low, None)
    one = (
        chars[0]
        if len(chars) == 1
        else Chars(charset([r for c in chars for r in c.chars.ranges]), place=chars[0].place)
    )
    run = Repeat(one, 0, None)
    every = seq([run, Repeat(seq([others, run]), 0, None)])
    return seq([item, every]) if low else every


def placed(node: Node, place: Place | None) -> Node:
    """`node`, just made and used nowhere else, with what reads text in it told where it is written."""
    if isinstance(node, Literal) and node.place is None:  # most often
        object.__setattr__(node, "place", place)
        return node
    for part in walk(node) if place else ():
        if isinstance(part, (Literal, Chars, Choices)) and part.place is None:
            object.__setattr__(part, "place", place)
    return node


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below `node`."""
    kind = type(node)
    if kind is Seq or kind is Alt:
        return node.items
    if kind is Repeat:
        return (node.item,)
    if kind is Call:
        return node.args
    if kind is Related:
        return (node.values,) if node.to is None else (node.values, node.to)
    return ()


def scoped_children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below `node`, those inside a scope and its values included."""
    if isinstance(node, Scoped):
        return (node.node, *(v for v in node.values.values() if isinstance(v, Node)))
    return children(node)


def walk(node: Node, scopes: bool = False):
    """`node` and every node below it; with `scopes`, those inside scopes and their values, too."""
    below = scoped_children if scopes else children
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(below(top))


def arguments(rules: dict[str, Rule]) -> dict[tuple[str, str], list[tuple[str, Node]]]:
    """(rule, parameter) -> (calling rule, argument) of every call."""
    out: dict[tuple[str, str], list[tuple[str, Node]]] = {}
    for rule in rules.values():
        for node in walk(rule.body):
            if isinstance(node, Call):
                for name, arg in zip(rules[node.rule].params, node.args):
                    out.setdefault((node.rule, name), []).append((rule.name, arg))
    return out


def size(node: Node) -> int:
    """How many nodes :func:`walk` visits, scopes included: parts that are shared count each time."""
    sizes: dict[int, int] = {}
    work = [node]
    while work:
        top = work[-1]
        below = scoped_children(top)
        missing = [b for b in below if id(b) not in sizes]
        if missing:
            work += missing
        else:
            sizes[id(work.pop())] = 1 + sum(sizes[id(b)] for b in below)
    return sizes[id(node)]


def ends_action(node: Node) -> bool:
    """Whether an action ends within `node`: what comes after is the action's own (`knowledge.graph`), not to be joined."""
    return any(isinstance(part, Slot) and part.name == STEP for part in walk(node))


def shape(node: Node) -> tuple:
    """Equal for nodes that read the same in the same way."""
    own = {
        Literal: lambda: (node.data,),
        Choices: lambda: (node.values,),
        Chars: lambda: (id(node.chars),),  # interned
        Repeat: lambda: (node.low, node.high),
        Call: lambda: (node.rule,),
        Var: lambda: (node.name,),
        Slot: lambda: (node.name,),
        Related: lambda: (node.relation,),
        Scoped: lambda: (shape(node.node), *((k, _value_shape(v)) for k, v in sorted(node.values.items()))),
    }.get(type(node), tuple)()
    return (type(node), *own, *map(shape, children(node)))


def _value_shape(value):
    """The shape of a scope's value: a node, or texts."""
    return shape(value) if isinstance(value, Node) else value
