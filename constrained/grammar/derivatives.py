"""What is left to read of a regular expression: a piece of it, then what comes after that piece.

Continuations are numbered, so that equal ones are one number: the variables of the formulas in `obligations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from constrained.grammar import nodes
from constrained.grammar.assertions import Atomic, Lazy, Look
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.charset import CharSet, charset
from constrained.grammar.nodes import Alt, Chars, Choices, Literal, Node, Repeat, Seq

# MERGED DOC: """What an expression that looks around says of the next character, at one place of the text."""


YES, END = 0, 1
"""Nothing is left to ask; the expression's own text is at its end."""

FIRST = ("first", None)
"""In place of a piece: the end of an atomic group. What comes after it is a pair, see `Continuations.first`."""


@dataclass(frozen=True)
class Left:
    """One continuation.

    Attributes
    ----------
    piece : tuple
        ("node", node), ("items", sequence, from), ("times", repeat, low, high) or ("texts", texts), or `FIRST`.
    then : int or (int, int)
        The continuation after it.
    plain : bool
        Nothing in it looks around, and the expression ends with it.
    looks_back : bool
    asked : bool
        It belongs to an assertion, not to what is read.
    in_order : bool
        It is in an atomic group, where only the first way counts.
    """

    piece: tuple
    then: int | tuple[int, int]
    plain: bool
    looks_back: bool
    asked: bool
    in_order: bool


class Continuations:
    """The continuations of one expression, by number; `count` is told of each new one."""

    def __init__(self, count: Callable[[int], None]):
        self.count = count
        self.left = [
            Left((), 0, plain=False, looks_back=False, asked=True, in_order=False),
            Left((), 0, plain=True, looks_back=False, asked=False, in_order=False),
        ]
        self._numbers: dict[tuple, int] = {}
        self._looks: dict[Node, tuple[bool, bool]] = {}

    def number(self, piece: tuple, then: int) -> int:
        """Of: read `piece`, then go on with continuation `then`."""
        found = self._numbers.get((piece, then))
        if found is None:
            kind, node, *rest = piece
            inside = () if kind == "texts" else node.items[rest[0] :] if kind == "items" else (node,)
            looks = [self._looks_in(n) for n in inside]
            after = self.left[then]
            found = self._new(
                Left(
                    piece,
                    then,
                    plain=after.plain and not any(some for some, _ in looks),
                    looks_back=after.looks_back or any(back for _, back in looks),
                    asked=after.asked,
                    in_order=after.in_order,
                )
            )
        return found

    def first(self, some: int, good: int) -> int:
        """The end of an atomic group: `some` for that it is come to, `good` for what must hold after the first way to it."""
        found = self._numbers.get((FIRST, (some, good)))
        if found is None:
            back = self.left[some].looks_back or self.left[good].looks_back
            found = self._new(Left(FIRST, (some, good), False, back, self.left[good].asked, in_order=True))
        return found

    def any_way(self, number: int) -> int:
        """Continuation `number`, in an atomic group, as far as the group's end, by whatever way."""
        left = self.left[number]
        return left.then[0] if left.piece == FIRST else self.number(left.piece, self.any_way(left.then))

    def node(self, number: int) -> Node:
        """A plain continuation as one node."""
        items: list[Node] = []
        while number != END:
            (kind, node, *rest), number = self.left[number].piece, self.left[number].then
            if kind == "texts":
                items.append(nodes.choices(t.encode() for t in node))
            elif kind == "items":
                items += node.items[rest[0] :]
            elif kind == "times":
                items.append(nodes.repeat(node.item, *rest))
            else:
                items.append(node)
        return nodes.seq(items)

    def _new(self, left: Left) -> int:
        self.count(1)
        number = self._numbers[left.piece, left.then] = len(self.left)
        self.left.append(left)
        return number

    def _looks_in(self, node: Node) -> tuple[bool, bool]:
        """Whether anything in `node` looks around, and whether anything looks back."""
        found = self._looks.get(node)
        if found is None:
            asks = isinstance(node, (Look, Atomic))
            inner = [self._looks_in(n) for n in ((node.node,) if asks else nodes.children(node))]
            some = asks or any(s for s, _ in inner)
            back = (isinstance(node, Look) and node.behind is not None) or any(b for _, b in inner)
            found = self._looks[node] = some, back
        return found


END_ATOM = (charset([]), END)
"""That the expression ends here: no character comes next in it."""


class Place:
    """What formulas over continuations say of the next character, at a place with this past.

    They become formulas over atoms: (characters, continuation), that one of these comes next and the continuation
    holds after it.
    """

    def __init__(self, formulas: Formulas, continuations: Continuations, behind: list[Look], past: tuple):
        self.formulas, self.continuations = formulas, continuations
        self.behind, self.past = behind, past
        self._known: dict[tuple, int] = {}
        self._held: dict[Look, int] = {}

    def expand(self, formula: int) -> int:
        return self.formulas.replace(formula, lambda k: self._continue(k, frozenset()))

    def begun(self, index: int) -> tuple[int, ...]:
        """A lookbehind begun here, and 1, 2, ... characters before, but for those that end here."""
        look = self.behind[index]
        return (self._piece(("node", look.node), YES, frozenset()), *map(self.expand, self.past[index][:-1]))

    def _continue(self, number: int, entered: frozenset) -> int:
        if number == YES:
            return TRUE
        if number == END:
            return self.formulas.variable(END_ATOM)
        key = number, entered
        found = self._known.get(key)
        if found is None:
            self.formulas.count(1)
            left = self.continuations.left[number]
            if left.in_order:
                found = self._ways(number, entered)[1]
            else:
                found = self._piece(left.piece, left.then, entered)
            self._known[key] = found
        return found

    def _piece(self, piece: tuple, then: int, entered: frozenset) -> int:
        kind, node, *rest = piece
        if kind == "texts":
            return self._texts(node, then, entered)
        if kind == "items":
            return self._items(node, rest[0], then, entered)
        if kind == "times":
            return self._times(node, *rest, then, entered)
        if isinstance(node, Chars):
            return self._atom(node.chars, then)
        if isinstance(node, (Literal, Choices)):
            return self._texts(listed(node), then, entered)
        if isinstance(node, Seq):
            return self._items(node, 0, then, entered)
        if isinstance(node, Repeat):
            return self._times(node, node.low, node.high, then, entered)
        if isinstance(node, Look):
            return self._look(node, then, entered)
        if isinstance(node, Atomic):
            return self._first(("node", node.node), self.continuations.first(YES, then), entered)[1]
        assert isinstance(node, Alt)
        out = FALSE
        for item in node.items:
            out = self.formulas.either(self._piece(("node", item), then, entered), out)
        return out

    def _atom(self, chars: CharSet, then: int) -> int:
        return self.formulas.variable((chars, then)) if chars else FALSE

    def _texts(self, texts: tuple[str, ...], then: int, entered: frozenset) -> int:
        out = FALSE
        for first, same in groupby(texts, lambda t: t[:1]):
            if not first:
                out = self.formulas.either(self._continue(then, entered), out)
                continue
            left = tuple(t[1:] for t in same)
            after = then if left == ("",) else self.continuations.number(("texts", left), then)
            out = self.formulas.either(self._atom(charset([(ord(first), ord(first))]), after), out)
        return out

    def _items(self, node: Seq, at: int, then: int, entered: frozenset) -> int:
        if at == len(node.items):
            return self._continue(then, entered)
        if at < len(node.items) - 1:
            then = self.continuations.number(("items", node, at + 1), then)
        return self._piece(("node", node.items[at]), then, entered)

    def _times(self, node: Repeat, low: int, high: int | None, then: int, entered: frozenset) -> int:
        """`entered`: repeats begun at this very place, and whether times are left that may be empty like the first."""
        if high == 0 or (node, then, True) in entered:
            out = self._continue(then, entered)
        else:
            out = self._continue(then, entered) if low == 0 else FALSE
        if high == 0 or (node, then, False) in entered:
            return out if high == 0 else FALSE
        padded = low > 0 and (node, then, True) not in entered
        if not padded:
            low = 0
        once = self.continuations.number(("times", node, max(low - 1, 0), None if high is None else high - 1), then)
        self.formulas.count(1 + len(entered))
        inside = self._piece(("node", node.item), once, entered | {(node, then, padded)})
        return self.formulas.either(inside, out)

    def _look(self, look: Look, then: int, entered: frozenset) -> int:
        held = self._holds(look)
        return self.formulas.both(held, self._continue(then, entered)) if held != FALSE else FALSE

    def _holds(self, look: Look) -> int:
        held = self._held.get(look)
        if held is None:
            if look.behind:
                before = self.past[self.behind.index(look)][-1]
                held = self.expand(before)
            else:
                held = self._piece(("node", look.node), YES, frozenset())
            held = self._held[look] = held if look.holds else self.formulas.negation(held)
        return held

    # In an atomic group: (whether there is a way through it, whether the first of them in `re`'s order goes on well)

    def _ways(self, number: int, entered: frozenset) -> tuple[int, int]:
        """Both of continuation `number`, whose end is that of an atomic group."""
        left = self.continuations.left[number]
        if left.piece == FIRST:
            return self._continue(left.then[0], entered), self._continue(left.then[1], entered)
        return self._first(left.piece, left.then, entered)

    def _first(self, piece: tuple, then: int, entered: frozenset) -> tuple[int, int]:
        """Both of reading `piece`, then continuation `then`."""
        kind, node, *rest = piece
        self.formulas.count(1)
        if kind == "texts":
            return self._first_text(node, then, entered)
        if kind == "items":
            return self._first_items(node, rest[0], then, entered)
        if kind == "times":
            return self._first_times(node, *rest, then, entered)
        if isinstance(node, Chars):
            return self._atom(node.chars, self.continuations.any_way(then)), self._atom(node.chars, then)
        if isinstance(node, Literal):
            return self._first_text(listed(node), then, entered)
        if isinstance(node, Seq):
            return self._first_items(node, 0, then, entered)
        if isinstance(node, Repeat):
            return self._first_times(node, node.low, node.high, then, entered)
        if isinstance(node, Look):
            held, (some, good) = self._holds(node), self._ways(then, entered)
            return self.formulas.both(held, some), self.formulas.both(held, good)
        if isinstance(node, Atomic):
            inner = "node", node.node
            some = self._first(inner, self.continuations.first(YES, self.continuations.any_way(then)), entered)[1]
            return some, self._first(inner, self.continuations.first(YES, then), entered)[1]
        assert isinstance(node, Alt)
        out = FALSE, FALSE
        for item in reversed(node.items):
            out = self._or_else(self._first(("node", item), then, entered), out)
        return out

    def _or_else(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return self.formulas.either(one[0], other[0]), self.formulas.choose(one[0], one[1], other[1])

    def _first_text(self, texts: tuple[str, ...], then: int, entered: frozenset) -> tuple[int, int]:
        (text,) = texts
        char = charset([(ord(text[0]), ord(text[0]))])
        after = self.continuations.number(("texts", (text[1:],)), then) if text[1:] else then
        return self._atom(char, self.continuations.any_way(after)), self._atom(char, after)

    def _first_items(self, node: Seq, at: int, then: int, entered: frozenset) -> tuple[int, int]:
        if at == len(node.items):
            return self._ways(then, entered)
        if at < len(node.items) - 1:
            then = self.continuations.number(("items", node, at + 1), then)
        return self._first(("node", node.items[at]), then, entered)

    def _first_times(self, node: Repeat, low: int, high: int | None, then: int, entered: frozenset) -> tuple[int, int]:
        """As `re` does: a round that reads nothing is the last, but among those that must be."""
        if high == 0 or (low == 0 and (node, then) in entered):
            return self._ways(then, entered)
        again = self.continuations.number(("times", node, max(low - 1, 0), None if high is None else high - 1), then)
        self.formulas.count(1 + len(entered))
        if low:
            return self._first(("node", node.item), again, entered)
        more = self._first(("node", node.item), again, entered | {(node, then)})
        end = self._ways(then, entered)
        return self._or_else(end, more) if isinstance(node, Lazy) else self._or_else(more, end)


def listed(node: Node) -> tuple[str, ...]:
    """The texts that `node` lists, if it does."""
    if isinstance(node, Literal):
        return (node.data.decode(),)
    return tuple(v.decode() for v in node.values) if isinstance(node, Choices) else ()
