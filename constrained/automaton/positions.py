"""Positions: where in a grammar the next byte is read, and the stack of what comes after.

A position is a place inside one construct, and a stack of frames: the rest of each construct that
is still open. Frames and positions are interned, so equality is identity. A tail call leaves no
frame, so right recursion loops instead of growing; other recursion is a stack as deep as the text
nests. A bounded repeat is two numbers in a frame or position. All of them are created lazily.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from constrained.errors import LimitError
from constrained.grammar import nodes as n
from constrained.grammar.charset import DONE, CharSet
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_text import Table
from constrained.limits import Limits


@dataclass(eq=False, slots=True)
class Env:
    """The values of one rule call's template parameters.

    Attributes
    ----------
    grammar : ContextFreeGrammar
        The grammar in which names of rules and slots are looked up.
    values : dict
        Parameter -> bytes (bound), :class:`Thunk`, or :class:`Unbound`.
    level : int
        0 or 1. If there are values, it differs from the level of the frame below, so that frames of neighbouring
        calls can be told apart. Two levels are enough, and let calls at different depths share frames.
    """

    grammar: ContextFreeGrammar
    values: dict[str, Value]
    level: int


@dataclass(frozen=True, slots=True)
class Thunk:
    """A template argument that is a piece of grammar, with the environment that it is read in."""

    node: n.Node
    env: Env


class Unbound:
    """A template argument that is a slot: one of `values`, fixed where it is first written."""

    __slots__ = ("_texts",)

    def __init__(self, values: tuple[bytes, ...]):
        self._texts = values

    @property
    def values(self) -> tuple[bytes, ...]:
        return self._texts

    def __eq__(self, other):
        return isinstance(other, Unbound) and self.values is other.values

    def __hash__(self):
        return id(self.values)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.values)


Value = bytes | Thunk | Unbound
NO_CALL = Env(ContextFreeGrammar({}, n.NEVER), {}, 1)
"""The environment of frames that belong to no call: forks and bottoms."""


class Frame:
    """A stack frame: what is read after the current construct.

    Attributes
    ----------
    node : Node
        What is read.
    env : Env
        The values of parameters in `node`.
    next : Frame or None
        The frame below, read afterwards; None is the end of the text.
    number : int
        Larger than the numbers of all frames below.
    closure : tuple of Position or None
        The ε-closure: the positions reached from here without reading a byte; None until it is computed.
    """

    __slots__ = ("closure", "env", "next", "node", "number")

    closure: Reached | None

    def __init__(self, node: n.Node, env: Env, next: Stack, number: int):
        self.node, self.env, self.next, self.number = node, env, next, number
        self.closure = None


Stack = Frame | None
"""The top frame of a stack; None is the empty stack, the end of the text."""


class Fork(Frame):
    """Several stacks joined: any of `ways` (frames, or None) may come next.

    A node of a graph-structured stack (Tomita, "An efficient augmented-context-free parsing algorithm", 1987).
    """

    __slots__ = ("ways",)

    def __init__(self, ways: tuple[Stack, ...], number: int):
        super().__init__(n.NEVER, NO_CALL, None, number)
        self.ways = ways


class Bottom(Frame):
    """A placeholder for any stack, used to compute what doesn't depend on the stack."""

    __slots__ = ()

    def __init__(self, number: int):
        super().__init__(n.NEVER, NO_CALL, None, number)


TOO_MANY_FRAMES = (
    "the automaton's stacks have too many entries",
    "let the grammar nest less deeply",
)
TOO_MANY_WAYS = (
    "the text so far can be read in too many ways",
    "avoid repeats of what may be read in several ways, and join alternatives that begin alike",
)


class Frames:
    """Interns frames, environments, and the nodes that are derived from the grammar's while a text is read.

    Attributes
    ----------
    repeats, tails : dict
        The derived nodes, see :meth:`repeat` and :meth:`tail`. The C kernel looks nodes up here and adds its own.
    """

    def __init__(self, limits: Limits):
        self._limit = limits.frames
        self.bottom = Bottom(0)
        self._frames: dict[tuple, Frame] = {(): self.bottom}
        self._envs: dict[tuple, Env] = {}
        self.repeats: dict[tuple, n.Repeat] = {}
        self.tails: dict[int, tuple[n.Seq, n.Node]] = {}  # id of a sequence -> the sequence, its tail
        self._lists: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def frame(self, node: n.Node, env: Env, next: Stack) -> Frame:
        if next is not None and next.node is node and _is_loop(node, env, next.env):
            return next  # x* x* is x*: a rule that is recursive at both ends makes many such frames
        key = (id(node), id(env), next.number if next else -1)
        cached = self._frames.get(key)
        if cached is None:
            cached = self._frames[key] = Frame(node, env, next, self._next_number())
        return cached

    def fork(self, ways: tuple[Stack, ...]) -> Frame:
        """The fork of `ways`."""
        cached = self._frames.get(ways)
        if cached is None:
            cached = self._frames[ways] = Fork(ways, self._next_number())
        return cached

    def _next_number(self) -> int:
        number = len(self._frames)
        if number >= self._limit:
            raise LimitError("frames", self._limit, *TOO_MANY_FRAMES)
        return number

    def env(self, grammar: ContextFreeGrammar, values: dict[str, Value], level: int) -> Env:
        if not values:
            level = 0  # levels only tell apart environments with values
        key = (id(grammar), level, tuple(values.items()))
        cached = self._envs.get(key)
        if cached is None:
            cached = self._envs[key] = Env(grammar, values, level)
        return cached

    @property
    def env_count(self) -> int:
        return len(self._envs)

    def repeat(self, item: n.Node, low: int, high: int | None) -> n.Repeat:
        """The node that reads `item` `low` to `high` times."""
        key = (id(item), low, high)
        cached = self.repeats.get(key)
        if cached is None:
            cached = self.repeats[key] = n.Repeat(item, low, high)
        return cached

    def know_repeat(self, node: n.Repeat) -> None:
        """Intern `node`, which :meth:`repeat` then returns for its item and bounds, unless it has a node for them."""
        self.repeats.setdefault((id(node.item), node.low, node.high), node)

    def tail(self, node: n.Seq) -> n.Node:
        """`node` without its first item."""
        cached = self.tails.get(id(node))
        if cached is None:
            rest = node.items[1:]
            cached = self.tails[id(node)] = node, rest[0] if len(rest) == 1 else n.Seq(rest)
        return cached[1]

    def text_list(self, values: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Intern a list of texts, since positions compare lists by identity."""
        return self._lists.setdefault(values, values)


def _is_loop(node: n.Node, env: Env, other: Env) -> bool:
    """Whether `node` is an unbounded repeat that reads the same in both environments."""
    return (
        isinstance(node, n.Repeat)
        and node.low == 0
        and node.high is None
        and env.grammar is other.grammar
        and not env.values
        and not other.values
    )


Reached = tuple["Position", ...]


class Successors(Protocol):
    """The methods of `closure.Closure` that positions use."""

    positions: Positions

    def enter(self, frame: Stack) -> Reached: ...

    def aside(self, loop: Loop, low: int, high: int | None, rest: Stack) -> Stack: ...

    def into_choices(
        self, values: tuple[bytes, ...], low: int, high: int, depth: int, bind: str | None, rest: Stack
    ) -> Reached: ...


@dataclass(eq=False, slots=True)
class Position:
    """Base class. `number` orders positions; `rest` is the stack of what comes after."""

    number: int
    rest: Stack
    _steps: dict[int, Reached] = field(default_factory=dict, init=False, repr=False)

    def reads(self) -> tuple:
        """A key that is equal for positions that differ only in their stacks."""
        return (type(self),)

    def first(self) -> Iterable[int]:
        """The bytes that can be read here."""
        return ()

    def step(self, closure: Successors, byte: int) -> Reached:
        """The positions after `byte`."""
        cached = self._steps.get(byte)
        if cached is None:
            cached = self._steps[byte] = self._step(closure, byte)
        return cached

    def _step(self, closure: Successors, byte: int) -> Reached:
        return ()

    def branches(self, closure: Successors) -> Iterator[tuple[bytes, Reached]]:
        """Yield (text, positions after it) for each way to read on; texts are as long as is known without a step."""
        return ((bytes((byte,)), self.step(closure, byte)) for byte in self.first())


class Accept(Position):
    """The text is complete."""

    __slots__ = ()


class StepEnd(Position):
    """An action is complete; `rest` is what may follow it."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class InLiteral(Position):
    """Before `data[at]`."""

    data: bytes
    at: int

    def reads(self) -> tuple:
        return InLiteral, self.data, self.at

    def first(self) -> Iterable[int]:
        return (self.data[self.at],)

    def branches(self, closure: Successors) -> Iterator[tuple[bytes, Reached]]:
        yield self.data[self.at :], closure.enter(self.rest)

    def _step(self, closure: Successors, byte: int) -> Reached:
        if byte != self.data[self.at]:
            return ()
        if self.at + 1 == len(self.data):
            return closure.enter(self.rest)
        return (closure.positions.literal(self.data, self.at + 1, self.rest),)


@dataclass(eq=False, slots=True)
class InChoices(Position):
    """Before byte `depth` of `values[low:high]`, which agree on the bytes before it.

    `bind` names the template parameter that gets the finished choice as its value, if any.
    """

    values: tuple[bytes, ...]
    low: int
    high: int
    depth: int
    bind: str | None

    def reads(self) -> tuple:
        return InChoices, id(self.values), self.low, self.high, self.depth, self.bind

    def first(self) -> Iterable[int]:
        out, i = [], self.low
        while i < self.high:
            byte = self.values[i][self.depth]
            out.append(byte)
            i = self._after(byte, i)
        return out

    def branches(self, closure: Successors) -> Iterator[tuple[bytes, Reached]]:
        for i in range(self.low, self.high):
            end = len(self.values[i])
            yield self.values[i][self.depth :], closure.into_choices(self.values, i, i + 1, end, self.bind, self.rest)

    def _after(self, byte: int, low: int) -> int:
        """The index of the first value from `low` on whose next byte is above `byte`."""
        if byte == 255:
            return self.high
        head = self.values[low][: self.depth] + bytes((byte + 1,))
        return bisect_left(self.values, head, low, self.high)

    def _step(self, closure: Successors, byte: int) -> Reached:
        head = self.values[self.low][: self.depth] + bytes((byte,))
        low = bisect_left(self.values, head, self.low, self.high)
        if low == self.high or self.values[low][self.depth] != byte:
            return ()
        return closure.into_choices(self.values, low, self._after(byte, low), self.depth + 1, self.bind, self.rest)


@dataclass(eq=False, slots=True)
class InText(Position):
    """Inside a run of characters of one set: `low` to `high` more, the current one included.

    `inside` is the state within a character, None before one. `high` is None for an unbounded run.
    """

    chars: CharSet
    inside: tuple | None
    low: int
    high: int | None

    def reads(self) -> tuple:
        return InText, id(self.chars), self.inside, self.low, self.high

    def has_more_texts_than(self, limit: int) -> bool:
        """Whether the runs of the greatest length alone are more than `limit`."""
        if self.high is None:
            return True
        whole = self.high - (self.inside is not None)  # characters of which all bytes are still to be read
        characters = sum(last - first + 1 for first, last in self.chars.ranges)
        return characters ** min(whole, limit.bit_length()) > limit

    def first(self) -> Iterable[int]:
        return self.chars.edges(self.inside).keys()

    def _step(self, closure: Successors, byte: int) -> Reached:
        state = self.chars.edges(self.inside).get(byte)
        if state is None:
            return ()
        if state is not DONE and state != DONE:
            return (closure.positions.text_like(self, state, self.low, self.high),)
        low = self.low - 1 if self.low else 0
        high = None if self.high is None else self.high - 1
        more = () if high == 0 else (closure.positions.text_like(self, None, low, high),)
        return more if low else more + closure.enter(self.rest)


@dataclass(eq=False, slots=True)
class InExcept(Position):
    """Inside a run of characters of one set that must not equal any of some texts.

    So far it consists of the first `depth` bytes that ``values[low:high]`` have in common.
    """

    chars: CharSet
    values: tuple[bytes, ...]
    low: int
    high: int
    depth: int

    def reads(self) -> tuple:
        return InExcept, id(self.chars), id(self.values), self.low, self.high, self.depth

    @property
    def may_end(self) -> bool:
        """Whether the run so far is none of the texts."""
        return len(self.values[self.low]) > self.depth

    def first(self) -> Iterable[int]:
        return self.chars.edges(None).keys()

    def _step(self, closure: Successors, byte: int) -> Reached:
        low = self.low if self.may_end else self.low + 1
        head = self.values[self.low][: self.depth] + bytes((byte,))
        low = bisect_left(self.values, head, low, self.high)
        high = bisect_left(self.values, head[:-1] + bytes((byte + 1,)), low, self.high) if byte < 255 else low
        if low == high:
            return closure.positions.text(self.chars, None, 0, None, self.rest).step(closure, byte)
        after = closure.positions.unlike(self.chars, self.values, low, high, self.depth + 1, self.rest)
        return (after, *closure.enter(self.rest)) if after.may_end else (after,)


class Loop(NamedTuple):
    """The item of a repeat that is either a character of a set, or something that begins with other bytes.

    Attributes
    ----------
    item : Alt
        The whole item.
    env : Env
    others : Node
        The alternatives that are not the character.
    first : frozenset of int
        The bytes that `others` begin with.
    """

    item: n.Alt
    env: Env
    others: n.Node
    first: frozenset[int]


@dataclass(eq=False, slots=True)
class InLoop(InText):
    """Inside a run as in `InText`, in which each character may also be something else: see `Loop`."""

    loop: Loop

    def reads(self) -> tuple:
        return InLoop, id(self.chars), self.inside, self.low, self.high, id(self.loop)

    def first(self) -> Iterable[int]:
        heads = self.chars.edges(self.inside).keys()
        return heads if self.inside is not None else {*heads, *self.loop.first}

    def _step(self, closure: Successors, byte: int) -> Reached:
        if self.inside is not None or byte not in self.loop.first:
            return InText._step(self, closure, byte)  # super() fails: slots=True creates the class anew
        other = closure.aside(self.loop, self.low, self.high, self.rest)
        return tuple(after for q in closure.enter(other) for after in q.step(closure, byte))


@dataclass(eq=False, slots=True)
class InJsonText(Position):
    """Inside a JSON string that `table` reads.

    `state` is the table's state, `left` the characters left (None: any number), `inside` what of a character was read.
    """

    table: Table
    state: int
    left: int | None
    inside: int

    def reads(self) -> tuple:
        return InJsonText, id(self.table), self.state, self.left, self.inside

    def first(self) -> Iterable[int]:
        return [b for b in range(256) if self.table.step(self.state, self.left, self.inside, b)]

    def _step(self, closure: Successors, byte: int) -> Reached:
        after = self.table.step(self.state, self.left, self.inside, byte)
        if after is None:
            return ()
        state, left, inside = after
        goes_on = inside or self.table.goes_on(state, left)
        more = (closure.positions.json_text(self.table, *after, self.rest),) if goes_on else ()
        return more if inside or not self.table.ends[state] else more + closure.enter(self.rest)


class Positions:
    """Interns positions."""

    def __init__(self, limits: Limits):
        self._limit = limits.positions
        self._known: dict[tuple, Position] = {}
        self.accept: Position = self._add((Accept, -1), Accept(1, None))

    def __len__(self) -> int:
        return len(self._known)

    def _add(self, key: tuple, position: Position) -> Position:
        if len(self._known) >= self._limit:
            raise LimitError(
                "positions",
                self._limit,
                "the automaton has too many positions",
                "loosen a bound: bounded repeats of bounded repeats multiply",
            )
        self._known[key] = position
        return position

    def accept_over(self, rest: Frame) -> Position:
        """A position that says that the frame `rest` was reached; for `rest` that isn't the end of the text."""
        key = Accept, rest.number
        return self._known.get(key) or self._add(key, Accept(len(self._known) + 1, rest))

    def step_end(self, rest: Stack) -> Position:
        key = StepEnd, rest.number if rest else -1
        return self._known.get(key) or self._add(key, StepEnd(len(self._known) + 1, rest))

    def literal(self, data: bytes, at: int, rest: Stack) -> Position:
        key = InLiteral, data, at, rest.number if rest else -1
        return self._known.get(key) or self._add(key, InLiteral(len(self._known) + 1, rest, data, at))

    def text(self, chars: CharSet, inside: tuple | None, low: int, high: int | None, rest: Stack) -> Position:
        key = InText, id(chars), inside, low, high, rest.number if rest else -1
        return self._known.get(key) or self._add(key, InText(len(self._known) + 1, rest, chars, inside, low, high))

    def text_like(
        self, q: InText, inside: tuple | None, low: int, high: int | None, rest: Stack | bool = False
    ) -> Position:
        """The position like `q` with other counts, and with the stack `rest` if it is given."""
        after = q.rest if isinstance(rest, bool) else rest
        if isinstance(q, InLoop):
            return self.loop(q.chars, inside, low, high, after, q.loop)
        return self.text(q.chars, inside, low, high, after)

    def loop(
        self, chars: CharSet, inside: tuple | None, low: int, high: int | None, rest: Stack, loop: Loop
    ) -> Position:
        key = InLoop, id(chars), inside, low, high, rest.number if rest else -1, id(loop)
        return self._known.get(key) or self._add(
            key, InLoop(len(self._known) + 1, rest, chars, inside, low, high, loop)
        )

    def choices(
        self, values: tuple[bytes, ...], low: int, high: int, depth: int, bind: str | None, rest: Stack
    ) -> Position:
        key = InChoices, id(values), low, high, depth, bind, rest.number if rest else -1
        return self._known.get(key) or self._add(
            key, InChoices(len(self._known) + 1, rest, values, low, high, depth, bind)
        )

    def unlike(
        self, chars: CharSet, values: tuple[bytes, ...], low: int, high: int, depth: int, rest: Stack
    ) -> InExcept:
        key = InExcept, id(chars), id(values), low, high, depth, rest.number if rest else -1
        position = self._known.get(key) or self._add(
            key, InExcept(len(self._known) + 1, rest, chars, values, low, high, depth)
        )
        assert isinstance(position, InExcept), "the key begins with its type"
        return position

    def json_text(self, table: Table, state: int, left: int | None, inside: int, rest: Stack) -> Position:
        key = InJsonText, id(table), state, left, inside, rest.number if rest else -1
        return self._known.get(key) or self._add(
            key, InJsonText(len(self._known) + 1, rest, table, state, left, inside)
        )

    def with_rest(self, q: Position, rest: Stack) -> Position:
        """The position that reads the same as `q`, with the stack `rest`."""
        if isinstance(q, InLiteral):
            return self.literal(q.data, q.at, rest)
        if isinstance(q, InText):
            return self.text_like(q, q.inside, q.low, q.high, rest)
        if isinstance(q, InChoices):
            return self.choices(q.values, q.low, q.high, q.depth, q.bind, rest)
        if isinstance(q, InExcept):
            return self.unlike(q.chars, q.values, q.low, q.high, q.depth, rest)
        if isinstance(q, InJsonText):
            return self.json_text(q.table, q.state, q.left, q.inside, rest)
        return self.step_end(rest)
