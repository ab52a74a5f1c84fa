"""One step of a regular expression that looks around: what must hold of the rest of the text.

What is left of the expression at some place is a Boolean formula over *continuations* (a
piece still to be read, and what comes after it). Reading one character turns it into
another formula: "one of these" for alternatives, "and" for a lookahead beside what is
read on, "not" for a negative one. That is an alternating automaton (Chandra, Kozen and
Stockmeyer, "Alternation", 1981) walked by derivatives. A lookbehind of width n is begun at
every place, and what is left of it n characters later says whether it holds there.
"""

from __future__ import annotations

from itertools import groupby

from constrained.grammar import nodes
from constrained.grammar.assertions import ANY, Atomic, Lazy, Look, parts
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.charset import CharSet, charset
from constrained.grammar.nodes import Alt, Chars, Choices, Literal, Node, Repeat, Seq
from constrained.limits import Limits

YES, END = 0, 1
"""Continuations: nothing is left to ask; the expression's own text is at its end."""

FIRST = ("first", None)
"""In place of a piece: the end of an atomic group."""

NOTHING: tuple = ()
"""The past of a state that will never look back."""

_END_ATOM = (charset([]), END)


class Steps:
    """Steps of work on regular expressions that look around, of those that ``limits.lookaround`` allows."""

    def __init__(self, limits: Limits):
        self.limits, self.taken = limits, 0

    def __call__(self, steps: int) -> None:
        self.taken += steps
        what = "lookaround in regular expressions takes too many steps"
        self.limits.check("lookaround", self.taken, what, "write it with less lookaround, or smaller repeats beside it")


class Obligations:
    """Formulas over what is left of one expression.

    A *state* is (past, formula): for every lookbehind what is left of it, begun 1, 2, ... characters ago, and what
    must hold from here on.
    """

    def __init__(self, node: Node, steps: Steps):
        self.node, self.count = node, steps
        self.formulas = Formulas(steps)
        self._left: list[tuple] = [(), ()]
        self._numbers: dict[tuple, int] = {}
        self._remembers = [False, False]
        self._plain = [False, True]
        self._in_order = [False, False]  # whether it is in an atomic group, where only the first way counts
        self._asked = [True, False]  # whether a continuation belongs to an assertion, not to what is read
        self._behind = [p for p in parts(node) if isinstance(p, Look) and p.behind]
        self._asks: dict[Node, tuple[bool, bool]] = {}
        self._partitions: dict[frozenset, list[CharSet]] = {}
        self._next: dict[tuple, list] = {}
        self._alphabet: list[CharSet] | None = None
        self._pasts: list[tuple] = []
        self._further: dict[tuple, list] = {}
        self.start = self.formulas.variable(self._continuation(("node", node), END))
        self.text_start = tuple((FALSE,) * look.behind for look in self._behind)

    def state(self, past: tuple, formula: int) -> tuple:
        """A state, with no past if it will never be asked for."""
        remembers = any(self._remembers[k] for k in self.formulas.of(formula))
        return (past if remembers else NOTHING), formula

    def after(self, state: tuple) -> list[tuple[CharSet, tuple]]:
        """The characters that may come next, in sets that lead to one state each."""
        found = self._next.get(state)
        if found is None:
            found = self._next[state] = self._after(*state)
        return found

    def _after(self, past: tuple, formula: int) -> list:
        place = _Place(self, past)
        here = place.expand(formula)
        return [(chars, self.state(then, left)) for chars, then, left in self._read(place, here, bool(past))]

    def pasts(self) -> list[tuple]:
        """Every past that a text can leave behind it, the empty text's among them."""
        if not self._pasts:
            seen = {self.text_start: None}
            work = [self.text_start]
            while work and self._behind:
                for _, then in self.past_after(work.pop()):
                    if then not in seen:
                        seen[then] = None
                        work.append(then)
            self._pasts = list(seen)
        return self._pasts

    def past_after(self, past: tuple) -> list[tuple[CharSet, tuple]]:
        """The past after each next character."""
        found = self._further.get(past)
        if found is None:
            found = [(chars, then) for chars, then, _ in self._read(_Place(self, past), FALSE, True)]
            self._further[past] = found
        return found

    def _read(self, place: _Place, here: int, remember: bool) -> list[tuple[CharSet, tuple, int]]:
        """(next characters, the past after one of them, what is left of the formula over atoms `here`)."""
        begun = [place.begun(i) for i in range(len(self._behind))] if remember else []
        formulas = {here, *(g for look in begun for g in look)}
        atoms = set().union(*map(self.formulas.of, formulas))
        self.count(sum(map(len, begun)) + len(atoms))
        out = []
        for chars in self.partition(frozenset(seen for seen, _ in atoms)):
            one = chars.ranges[0][0]
            read = {f: self.formulas.replace(f, lambda atom: self._through(atom, one)) for f in formulas}
            out.append((chars, tuple(tuple(read[g] for g in look) for look in begun), read[here]))
        return out

    def _through(self, atom: tuple, char: int) -> int:
        seen, then = atom
        return FALSE if char not in seen else TRUE if then == YES else self.formulas.variable(then)

    def ended(self, state: tuple) -> tuple:
        """(past, formula over atoms) of what is asked of the text that follows if the expression ends here."""
        here = _Place(self, state[0]).expand(state[1])

        def by(atom: tuple) -> int:
            if self._asked[atom[1]]:
                return self.formulas.variable(atom)
            return TRUE if atom == _END_ATOM else FALSE  # what would be read further is not

        return state[0], self.formulas.replace(here, by)

    def met_at_end(self, ended: tuple) -> bool:
        """Whether all of that is met if no text follows."""
        return self.formulas.replace(ended[1], lambda atom: FALSE) == TRUE

    def after_end(self, ended: tuple) -> list[tuple[CharSet, tuple]]:
        """As `after`, for the first character that follows."""
        past, over = ended
        read = self._read(_Place(self, past), over, bool(past))
        return [(chars, self.state(then, left)) for chars, then, left in read]

    def classes(self, chars: CharSet) -> frozenset[int]:
        """Which of the characters that this expression tells apart are in `chars`."""
        if self._alphabet is None:
            sets = {p.chars for p in parts(self.node) if isinstance(p, Chars)}
            texts = {c for p in parts(self.node) for t in _texts(p) for c in t}
            self._alphabet = self.partition(frozenset(sets | {charset([(ord(c), ord(c))]) for c in texts}))
        self.count(len(self._alphabet) // 8)
        return frozenset(i for i, one in enumerate(self._alphabet) if one.meets(chars))

    def partition(self, sets: frozenset[CharSet]) -> list[CharSet]:
        """The coarsest classes of characters that each of `sets` holds wholly or not at all."""
        found = self._partitions.get(sets)
        if found is None:
            edges: dict[int, int] = {}
            for i, chars in enumerate((ANY, *sets)):
                self.count(len(chars.ranges) // 8)
                for low, high in chars.ranges:
                    edges[low] = edges.get(low, 0) ^ 1 << i
                    edges[high + 1] = edges.get(high + 1, 0) ^ 1 << i
            classes: dict[int, list] = {}
            holding, places = 0, sorted(edges)
            for low, high in zip(places, places[1:]):
                holding ^= edges[low]
                if holding:
                    classes.setdefault(holding, []).append((low, high - 1))
            found = self._partitions[sets] = [charset(ranges) for ranges in classes.values()]
        return found

    def plain(self, state: tuple) -> Node | None:
        """What is left to read, as one node, if nothing looks around any more."""
        left = self.formulas.alternatives(state[1])
        if not left or state[0] or not all(self._plain[k] for k in left):
            return None
        return nodes.alt([self._node(k) for k in left])

    def _node(self, number: int) -> Node:
        items = []
        while number != END:
            (kind, node, *rest), number = self._left[number]
            if kind == "texts":
                items.append(nodes.choices(t.encode() for t in node))
            elif kind == "items":
                items += node.items[rest[0] :]
            elif kind == "times":
                items.append(nodes.repeat(node.item, *rest))
            else:
                items.append(node)
        return nodes.seq(items)

    def _continuation(self, piece: tuple, then) -> int:
        """The number of: read `piece`, then go on with continuation `then`."""
        key = piece, then
        found = self._numbers.get(key)
        if found is None:
            self.count(1)
            found = self._numbers[key] = len(self._left)
            self._left.append(key)
            self._in_order.append(piece == FIRST or self._in_order[then])
            if piece == FIRST:
                self._asked.append(self._asked[then[1]])
                self._plain.append(False)
                self._remembers.append(self._remembers[then[0]] or self._remembers[then[1]])
                return found
            self._asked.append(self._asked[then])
            kind, node, *rest = piece
            inside = () if kind == "texts" else node.items[rest[0] :] if kind == "items" else (node,)
            looks = [self._looks_in(n) for n in inside]
            self._plain.append(self._plain[then] and not any(some for some, _ in looks))
            self._remembers.append(self._remembers[then] or any(back for _, back in looks))
        return found

    def first(self, some: int, good: int) -> int:
        """The end of an atomic group: `some` for that it is come to, `good` for what must hold after the first way to it."""
        return self._continuation(FIRST, (some, good))

    def in_order(self, number: int) -> bool:
        """Whether continuation `number` is in an atomic group."""
        return self._in_order[number]

    def any_way(self, number: int) -> int:
        """Continuation `number`, in an atomic group, as far as the group's end, by whatever way."""
        piece, then = self._left[number]
        return then[0] if piece == FIRST else self._continuation(piece, self.any_way(then))

    def _looks_in(self, node: Node) -> tuple[bool, bool]:
        """Whether anything in `node` looks around, and whether anything looks back."""
        found = self._asks.get(node)
        if found is None:
            asks = isinstance(node, (Look, Atomic))
            inner = [self._looks_in(n) for n in ((node.node,) if asks else nodes.children(node))]
            some = asks or any(s for s, _ in inner)
            back = (isinstance(node, Look) and node.behind is not None) or any(b for _, b in inner)
            found = self._asks[node] = some, back
        return found


class _Place:
    """What formulas over continuations say of the next character, at a place with this past.

    They become formulas over atoms: (characters, continuation), that one of these comes next and the continuation
    holds after it.
    """

    def __init__(self, owner: Obligations, past: tuple):
        self.owner, self.past = owner, past
        self.formulas = owner.formulas
        self._known: dict[tuple, int] = {}
        self._held: dict[Look, int] = {}

    def expand(self, formula: int) -> int:
        return self.formulas.replace(formula, lambda k: self._continue(k, frozenset()))

    def begun(self, index: int) -> tuple[int, ...]:
        """A lookbehind begun here, and 1, 2, ... characters before, but for those that end here."""
        look = self.owner._behind[index]
        return (self._piece(("node", look.node), YES, frozenset()), *map(self.expand, self.past[index][:-1]))

    def _continue(self, number: int, entered: frozenset) -> int:
        if number == YES:
            return TRUE
        if number == END:
            return self.formulas.variable(_END_ATOM)
        key = number, entered
        found = self._known.get(key)
        if found is None:
            self.owner.count(1)
            piece, then = self.owner._left[number]
            if piece == FIRST:
                found = self._continue(then[1], entered)
            elif self.owner.in_order(number):
                found = self._ways(number, entered)[1]
            else:
                found = self._piece(piece, then, entered)
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
            return self._texts(_texts(node), then, entered)
        if isinstance(node, Seq):
            return self._items(node, 0, then, entered)
        if isinstance(node, Repeat):
            return self._times(node, node.low, node.high, then, entered)
        if isinstance(node, Look):
            return self._look(node, then, entered)
        if isinstance(node, Atomic):
            return self._first(("node", node.node), self.owner.first(YES, then), entered)[1]
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
            after = then if left == ("",) else self.owner._continuation(("texts", left), then)
            out = self.formulas.either(self._atom(charset([(ord(first), ord(first))]), after), out)
        return out

    def _items(self, node: Seq, at: int, then: int, entered: frozenset) -> int:
        if at == len(node.items):
            return self._continue(then, entered)
        if at < len(node.items) - 1:
            then = self.owner._continuation(("items", node, at + 1), then)
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
        once = self.owner._continuation(("times", node, max(low - 1, 0), None if high is None else high - 1), then)
        self.owner.count(1 + len(entered))
        inside = self._piece(("node", node.item), once, entered | {(node, then, padded)})
        return self.formulas.either(inside, out)

    def _look(self, look: Look, then: int, entered: frozenset) -> int:
        held = self._holds(look)
        return self.formulas.both(held, self._continue(then, entered)) if held != FALSE else FALSE

    def _holds(self, look: Look) -> int:
        held = self._held.get(look)
        if held is None:
            if look.behind:
                before = self.past[self.owner._behind.index(look)][-1]
                held = self.expand(before)
            else:
                held = self._piece(("node", look.node), YES, frozenset())
            held = self._held[look] = held if look.holds else self.formulas.negation(held)
        return held

    # In an atomic group: (whether there is a way through it, whether the first of them in `re`'s order goes on well)

    def _ways(self, number: int, entered: frozenset) -> tuple[int, int]:
        """Both of continuation `number`, whose end is that of an atomic group."""
        piece, then = self.owner._left[number]
        if piece == FIRST:
            return self._continue(then[0], entered), self._continue(then[1], entered)
        return self._first(piece, then, entered)

    def _first(self, piece: tuple, then: int, entered: frozenset) -> tuple[int, int]:
        """Both of reading `piece`, then continuation `then`."""
        kind, node, *rest = piece
        self.owner.count(1)
        if kind == "texts":
            return self._first_text(node, then, entered)
        if kind == "items":
            return self._first_items(node, rest[0], then, entered)
        if kind == "times":
            return self._first_times(node, *rest, then, entered)
        if isinstance(node, Chars):
            return self._atom(node.chars, self.owner.any_way(then)), self._atom(node.chars, then)
        if isinstance(node, Literal):
            return self._first_text(_texts(node), then, entered)
        if isinstance(node, Seq):
            return self._first_items(node, 0, then, entered)
        if isinstance(node, Repeat):
            return self._first_times(node, node.low, node.high, then, entered)
        if isinstance(node, Look):
            held, (some, good) = self._holds(node), self._ways(then, entered)
            return self.formulas.both(held, some), self.formulas.both(held, good)
        if isinstance(node, Atomic):
            inner = "node", node.node
            some = self._first(inner, self.owner.first(YES, self.owner.any_way(then)), entered)[1]
            return some, self._first(inner, self.owner.first(YES, then), entered)[1]
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
        after = self.owner._continuation(("texts", (text[1:],)), then) if text[1:] else then
        return self._atom(char, self.owner.any_way(after)), self._atom(char, after)

    def _first_items(self, node: Seq, at: int, then: int, entered: frozenset) -> tuple[int, int]:
        if at == len(node.items):
            return self._ways(then, entered)
        if at < len(node.items) - 1:
            then = self.owner._continuation(("items", node, at + 1), then)
        return self._first(("node", node.items[at]), then, entered)

    def _first_times(self, node: Repeat, low: int, high: int | None, then: int, entered: frozenset) -> tuple[int, int]:
        """As `re` does: a round that reads nothing is the last, but among those that must be."""
        if high == 0 or (low == 0 and (node, then) in entered):
            return self._ways(then, entered)
        again = self.owner._continuation(("times", node, max(low - 1, 0), None if high is None else high - 1), then)
        self.owner.count(1 + len(entered))
        if low:
            return self._first(("node", node.item), again, entered)
        more = self._first(("node", node.item), again, entered | {(node, then)})
        end = self._ways(then, entered)
        return self._or_else(end, more) if isinstance(node, Lazy) else self._or_else(more, end)


def _texts(node: Node) -> tuple[str, ...]:
    """The texts that `node` lists, if it does."""
    if isinstance(node, Literal):
        return (node.data.decode(),)
    return tuple(v.decode() for v in node.values) if isinstance(node, Choices) else ()
