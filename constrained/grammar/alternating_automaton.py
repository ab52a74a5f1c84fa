"""One step of a regular expression that looks around: what must hold of the rest of the text.

What is left of the expression at some place is a Boolean formula over *continuations* (a
piece still to be read, and what comes after it). Reading one character turns it into
another formula: "one of these" for alternatives, "and" for a lookahead beside what is
read on, "not" for a negative one. That is an alternating automaton (Chandra, Kozen and
Stockmeyer, "Alternation", 1981) walked by derivatives. A lookbehind of width n is begun at
every place, and what is left of it n characters later says whether it holds there.
"""

from __future__ import annotations

from constrained.grammar import nodes
from constrained.grammar.assertions import ANY, Look, parts
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.charset import CharSet, charset, partition
from constrained.grammar.derivatives import END, END_ATOM, YES, Continuations, Place, listed
from constrained.grammar.nodes import Chars, Node
from constrained.limits import Limits

NOTHING: tuple = ()
"""The past of a state that will never look back."""


class Steps:
    """Steps of work on regular expressions that look around, of those that ``limits.lookaround`` allows."""

    def __init__(self, limits: Limits):
        self.limits, self.taken = limits, 0

    def __call__(self, steps: int) -> None:
        self.taken += steps
        what = "lookaround in regular expressions takes too many steps"
        self.limits.check("lookaround", self.taken, what, "write it with less lookaround, or smaller repeats beside it")


class AlternatingAutomaton:
    """Formulas over what is left of one expression.

    A *state* is (past, formula): for every lookbehind what is left of it, begun 1, 2, ... characters ago, and what
    must hold from here on.
    """

    def __init__(self, node: Node, steps: Steps):
        self.node, self.count = node, steps
        self.formulas = Formulas(steps)
        self.continuations = Continuations(steps)
        self._behind = [p for p in parts(node) if isinstance(p, Look) and p.behind]
        self._partitions: dict[frozenset, list[CharSet]] = {}
        self._next: dict[tuple, list] = {}
        self._alphabet: list[CharSet] | None = None
        self._pasts: list[tuple] = []
        self._further: dict[tuple, list] = {}
        self.start = self.formulas.variable(self.continuations.number(("node", node), END))
        self.text_start = tuple((FALSE,) * look.behind for look in self._behind)

    def state(self, past: tuple, formula: int) -> tuple:
        """A state, with no past if it will never be asked for."""
        looks_back = any(self.continuations.left[k].looks_back for k in self.formulas.of(formula))
        return (past if looks_back else NOTHING), formula

    def place(self, past: tuple) -> Place:
        return Place(self.formulas, self.continuations, self._behind, past)

    def after(self, state: tuple) -> list[tuple[CharSet, tuple]]:
        """The characters that may come next, in sets that lead to one state each."""
        found = self._next.get(state)
        if found is None:
            found = self._next[state] = self._after(*state)
        return found

    def _after(self, past: tuple, formula: int) -> list:
        place = self.place(past)
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
            found = [(chars, then) for chars, then, _ in self._read(self.place(past), FALSE, True)]
            self._further[past] = found
        return found

    def _read(self, place: Place, here: int, remember: bool) -> list[tuple[CharSet, tuple, int]]:
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
        here = self.place(state[0]).expand(state[1])

        def by(atom: tuple) -> int:
            if self.continuations.left[atom[1]].asked:
                return self.formulas.variable(atom)
            return TRUE if atom == END_ATOM else FALSE  # what would be read further is not

        return state[0], self.formulas.replace(here, by)

    def met_at_end(self, ended: tuple) -> bool:
        """Whether all of that is met if no text follows."""
        return self.formulas.replace(ended[1], lambda atom: FALSE) == TRUE

    def after_end(self, ended: tuple) -> list[tuple[CharSet, tuple]]:
        """As `after`, for the first character that follows."""
        past, over = ended
        read = self._read(self.place(past), over, bool(past))
        return [(chars, self.state(then, left)) for chars, then, left in read]

    def classes(self, chars: CharSet) -> frozenset[int]:
        """Which of the characters that this expression tells apart are in `chars`."""
        if self._alphabet is None:
            sets = {p.chars for p in parts(self.node) if isinstance(p, Chars)}
            texts = {c for p in parts(self.node) for t in listed(p) for c in t}
            self._alphabet = self.partition(frozenset(sets | {charset([(ord(c), ord(c))]) for c in texts}))
        self.count(len(self._alphabet) // 8)
        return frozenset(i for i, one in enumerate(self._alphabet) if one.meets(chars))

    def partition(self, sets: frozenset[CharSet]) -> list[CharSet]:
        """The coarsest classes of all characters that each of `sets` holds wholly or not at all."""
        found = self._partitions.get(sets)
        if found is None:
            self.count(sum(len(chars.ranges) for chars in sets) // 8)
            found = self._partitions[sets] = partition([ANY, *sets])
        return found

    def plain(self, state: tuple) -> Node | None:
        """What is left to read, as one node, if nothing looks around any more."""
        left = self.formulas.alternatives(state[1])
        if not left or state[0] or not all(self.continuations.left[k].plain for k in left):
            return None
        return nodes.alt([self.continuations.node(k) for k in left])
