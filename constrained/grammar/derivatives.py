"""Derivatives of regular expressions with lookaround: what remains of an expression after one more character.

The rest of an expression is a *residual*: a piece still to be read, and the residual after it. Equal
residuals have the same number. They are the variables of the formulas in `alternating_automaton`.
(Brzozowski, "Derivatives of regular expressions", 1964.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from constrained.grammar import nodes
from constrained.grammar.assertions import Atomic, LazyRepeat, Look
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.charset import CharSet, charset
from constrained.grammar.nodes import Alt, Chars, Choices, LiteralText, Node, Repeat, Seq

YES, END = 0, 1
"""The residual of an assertion that holds, and the residual at the end of the expression's own text."""

GROUP_END = "group end"

END_ATOM = (charset([]), END)
"""The atom for "the expression ends here": it reads no next character."""

Piece = tuple[Any, ...]
"""What is read next, one of:

- ("node", node);
- ("items", sequence, from): its items from that index on;
- ("times", repeat, low, high): its item, so many more times;
- ("texts", texts): one of some texts, in the order in which they are tried;
- ("group end", some, good): the end of an atomic group. `some` is the residual that holds if the end is reached at all,
  `good` the one that must hold after the first way to reach it.
"""


Both = tuple[int, int]
"""Two formulas; see :class:`Derivatives`."""


@dataclass(frozen=True)
class Residual:
    """The rest of an expression: `piece`, and then the residual numbered `then`."""

    piece: Piece
    then: int  # the residual after it
    plain: bool  # nothing in it looks around, and the expression ends with it
    looks_back: bool
    asked: bool  # part of an assertion, not of what is read
    in_order: bool  # in an atomic group, where only the first way counts


class Residuals:
    """The residuals of one expression, by number; `count` is called for each new one."""

    def __init__(self, count: Callable[[int], None]):
        self.count = count
        self.known = [  # YES and END
            Residual((), 0, plain=False, looks_back=False, asked=True, in_order=False),
            Residual((), 0, plain=True, looks_back=False, asked=False, in_order=False),
        ]
        self._numbers: dict[tuple[Piece, int], int] = {}
        self._looks: dict[Node, tuple[bool, bool]] = {}

    def number(self, piece: Piece, then: int) -> int:
        """The number of the residual: `piece`, then residual `then`."""
        cached = self._numbers.get((piece, then))
        if cached is None:
            kind, node, *rest = piece
            inside = () if kind == "texts" else node.items[rest[0] :] if kind == "items" else (node,)
            looks = [self._looks_in(n) for n in inside]
            after = self.known[then]
            plain = after.plain and not any(around for around, _ in looks)
            back = after.looks_back or any(back for _, back in looks)
            cached = self._add(Residual(piece, then, plain, back, after.asked, after.in_order))
        return cached

    def group_end(self, some: int, good: int) -> int:
        """The number of the end of an atomic group; see :data:`Piece`."""
        piece = GROUP_END, some, good
        cached = self._numbers.get((piece, YES))
        if cached is None:
            back = self.known[some].looks_back or self.known[good].looks_back
            cached = self._add(Residual(piece, YES, False, back, self.known[good].asked, in_order=True))
        return cached

    def any_way(self, number: int) -> int:
        """The same residual, but every way to the end of its atomic group counts, not the first one alone."""
        residual = self.known[number]
        if not residual.in_order:
            return number
        if residual.piece[0] == GROUP_END:
            return residual.piece[1]
        return self.number(residual.piece, self.any_way(residual.then))

    def node(self, number: int) -> Node:
        """A plain residual as one node."""
        items: list[Node] = []
        while number != END:
            (kind, node, *rest), number = self.known[number].piece, self.known[number].then
            if kind == "texts":
                items.append(nodes.choices(t.encode() for t in node))
            elif kind == "items":
                items += node.items[rest[0] :]
            elif kind == "times":
                items.append(nodes.repeat(node.item, *rest))
            else:
                items.append(node)
        return nodes.seq(items)

    def _add(self, residual: Residual) -> int:
        self.count(1)
        number = self._numbers[residual.piece, residual.then] = len(self.known)
        self.known.append(residual)
        return number

    def _looks_in(self, node: Node) -> tuple[bool, bool]:
        """Whether anything in `node` looks around, and whether anything looks back."""
        cached = self._looks.get(node)
        if cached is None:
            below = (node.node,) if isinstance(node, (Look, Atomic)) else node.parts
            inner = [self._looks_in(n) for n in below]
            around = isinstance(node, (Look, Atomic)) or any(a for a, _ in inner)
            back = (isinstance(node, Look) and node.behind is not None) or any(b for _, b in inner)
            cached = self._looks[node] = around, back
        return cached


class Derivatives:
    """Turns formulas over residuals into formulas over atoms, at a place in a text with a given past.

    An atom (characters, residual) holds if one of the characters comes next and the residual holds after it.

    The methods below return two formulas: whether there is a way through a piece, and whether what must come after
    the piece holds. They differ only in atomic groups, where the second is about the first way, in the order in which
    `re` tries them. `entered` holds the repeats that began at this same place: to enter one of them again, before a
    character was read, leads nowhere new.
    """

    def __init__(self, formulas: Formulas, residuals: Residuals, behind: list[Look], past: tuple):
        self.formulas, self.residuals = formulas, residuals
        self.behind, self.past = behind, past
        self._known: dict[tuple[int, frozenset], Both] = {}
        self._held: dict[Look, int] = {}
        self._expanded: dict[int, int] = {}

    def expand(self, formula: int) -> int:
        """The formula over atoms of a formula over residuals."""
        cached = self._expanded.get(formula)
        if cached is None:
            cached = self.formulas.replace(formula, lambda number: self._residual(number, frozenset())[1])
            self._expanded[formula] = cached
        return cached

    def begun(self, index: int) -> tuple[int, ...]:
        """The formulas of a lookbehind that begins here, and of those begun 1, 2, ... characters earlier.

        The one that ends here is left out.
        """
        look = self.behind[index]
        return (self._piece(("node", look.node), YES, frozenset())[1], *map(self.expand, self.past[index][:-1]))

    def _residual(self, number: int, entered: frozenset) -> Both:
        if number == YES:
            return TRUE, TRUE
        if number == END:
            return (self.formulas.variable(END_ATOM),) * 2
        key = number, entered
        cached = self._known.get(key)
        if cached is None:
            self.formulas.count(1)
            residual = self.residuals.known[number]
            if residual.piece[0] == GROUP_END:
                _, some, good = residual.piece
                cached = self._residual(some, entered)[1], self._residual(good, entered)[1]
            else:
                cached = self._piece(residual.piece, residual.then, entered)
            self._known[key] = cached
        return cached

    def _piece(self, piece: Piece, then: int, entered: frozenset) -> Both:
        """Both formulas for `piece`, then residual `then`."""
        match piece:
            case ("texts", texts):
                return self._texts(texts, then, entered)
            case ("items", node, index):
                return self._items(node, index, then, entered)
            case ("times", node, low, high):
                return self._times(node, low, high, then, entered)
        match node := piece[1]:  # what remains is ("node", node)
            case Chars():
                return self._atom(node.chars, then)
            case LiteralText() | Choices():
                return self._texts(texts_of(node), then, entered)
            case Seq():
                return self._items(node, 0, then, entered)
            case Repeat():
                return self._times(node, node.low, node.high, then, entered)
            case Look():  # it reads nothing: it and what follows hold at the same place
                held = self._holds(node)
                if held == FALSE:
                    return FALSE, FALSE
                some, good = self._residual(then, entered)
                return self.formulas.both(held, some), self.formulas.both(held, good)
            case Atomic():  # once: whether any way reaches the end, and whether what follows holds after the first way
                ends = self.residuals.group_end(YES, self.residuals.any_way(then)), self.residuals.group_end(YES, then)
                some, good = (self._piece(("node", node.node), end, entered)[1] for end in ends)
                return some, good
        assert isinstance(node, Alt)
        return self._first_of([self._piece(("node", item), then, entered) for item in node.items])

    def _first_of(self, ways: list[Both]) -> Both:
        """The two formulas of several ways, in the order in which `re` tries them."""
        some = good = FALSE
        for one, followed in reversed(ways):  # where one way is open, the later ones don't count for `good`
            alike = one == followed and some == good
            good = self.formulas.choose(one, followed, good)
            some = good if alike else self.formulas.either(one, some)
        return some, good

    def _atom(self, chars: CharSet, then: int) -> Both:
        if not chars:
            return FALSE, FALSE
        good = self.formulas.variable((chars, then))
        way = self.residuals.any_way(then)
        return (good if way == then else self.formulas.variable((chars, way))), good

    def _texts(self, texts: tuple[str, ...], then: int, entered: frozenset) -> Both:
        ways: list[Both] = []
        for first, same in groupby(texts, lambda t: t[:1]):
            if not first:
                ways.append(self._residual(then, entered))
                continue
            rests = tuple(t[1:] for t in same)
            after = then if rests == ("",) else self.residuals.number(("texts", rests), then)
            ways.append(self._atom(charset([(ord(first), ord(first))]), after))
        return self._first_of(ways)

    def _items(self, node: Seq, index: int, then: int, entered: frozenset) -> Both:
        if index == len(node.items):
            return self._residual(then, entered)
        if index < len(node.items) - 1:
            then = self.residuals.number(("items", node, index + 1), then)
        return self._piece(("node", node.items[index]), then, entered)

    def _times(self, node: Repeat, low: int, high: int | None, then: int, entered: frozenset) -> Both:
        if self.residuals.known[then].in_order:
            return self._times_in_order(node, low, high, then, entered)
        if high == 0:
            return self._residual(then, entered)
        # `entered` has (repeat, residual after it, whether rounds were still required). To come back to the repeat at
        # the same place, a round was empty. Then the required rounds that remain can be empty, too; and where none was
        # required, another round leads nowhere new.
        padded = (node, then, True) in entered
        ends = [self._residual(then, entered)] if padded or low == 0 else []
        if (node, then, False) in entered:
            return FALSE, FALSE
        low = 0 if padded else low
        once = self._once(node, low, high, then)
        self.formulas.count(1 + len(entered))
        inside = self._piece(("node", node.item), once, entered | {(node, then, low > 0)})
        return self._first_of([inside, *ends])

    def _times_in_order(self, node: Repeat, low: int, high: int | None, then: int, entered: frozenset) -> Both:
        """As `re` does: a round that reads nothing is the last one, except among those that are required."""
        if high == 0 or (low == 0 and (node, then) in entered):
            return self._residual(then, entered)
        once = self._once(node, low, high, then)
        self.formulas.count(1 + len(entered))
        if low:
            return self._piece(("node", node.item), once, entered)
        ways = [self._piece(("node", node.item), once, entered | {(node, then)}), self._residual(then, entered)]
        return self._first_of(ways[::-1] if isinstance(node, LazyRepeat) else ways)

    def _once(self, node: Repeat, low: int, high: int | None, then: int) -> int:
        return self.residuals.number(("times", node, max(low - 1, 0), None if high is None else high - 1), then)

    def _holds(self, look: Look) -> int:
        held = self._held.get(look)
        if held is None:
            if look.behind:
                held = self.expand(self.past[self.behind.index(look)][-1])
            else:
                held = self._piece(("node", look.node), YES, frozenset())[1]
            held = self._held[look] = held if look.holds else self.formulas.negation(held)
        return held


def texts_of(node: Node) -> tuple[str, ...]:
    """The texts that `node` lists, if it does."""
    if isinstance(node, LiteralText):
        return (node.data.decode(),)
    return tuple(v.decode() for v in node.values) if isinstance(node, Choices) else ()
