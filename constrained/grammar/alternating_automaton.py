"""Regular expressions with lookaround as alternating automata.

At each place of a text, the rest of the expression is a Boolean formula over *residuals* (a piece
still to be read, and what comes after it). Reading a character turns it into another formula:
alternatives are "or", a lookahead beside what is read is "and", a negative one is "not". That is an
alternating automaton (Chandra, Kozen and Stockmeyer, "Alternation", 1981) whose transitions are
derivatives. A lookbehind of width n is begun at every place; n characters later, its formula says
whether it holds there.
"""

from __future__ import annotations

from constrained.grammar import nodes
from constrained.grammar.assertions import ANY, Look, walk_inside
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.charset import CharSet, charset, partition
from constrained.grammar.derivatives import END, END_ATOM, YES, Derivatives, Residuals, texts_of
from constrained.grammar.nodes import Chars, Node
from constrained.grammar.traverse import reached
from constrained.limits import Limits

Past = tuple[tuple[int, ...], ...]
"""For each lookbehind, its formulas if it began 1, 2, ... characters ago."""

AlternatingState = tuple[Past, int]
"""(past, formula that must hold from here on)"""

NOTHING: Past = ()
"""The past of a state that never looks back."""


class Steps:
    """Count the work on expressions that look around, and raise LimitError beyond ``limits.lookaround``."""

    def __init__(self, limits: Limits):
        self.limits, self.taken = limits, 0

    def __call__(self, steps: int) -> None:
        self.taken += steps
        if self.taken > self.limits.lookaround:
            what = "lookaround in regular expressions takes too many steps"
            hint = "write it with less lookaround, or smaller repeats beside it"
            self.limits.check("lookaround", self.taken, what, hint)


class AlternatingAutomaton:
    """The automaton of one expression; its states are created lazily."""

    def __init__(self, node: Node, steps: Steps):
        self.node, self.count = node, steps
        self.formulas = Formulas(steps)
        self.residuals = Residuals(steps)
        self._behind = [p for p in walk_inside(node) if isinstance(p, Look) and p.behind]
        self._partitions: dict[frozenset[CharSet], list[CharSet]] = {}
        self._after: dict[AlternatingState, list[tuple[CharSet, AlternatingState]]] = {}
        self._alphabet: list[CharSet] | None = None
        self._pasts: list[Past] = []
        self._past_after: dict[Past, list[tuple[CharSet, Past]]] = {}
        self._derivatives: dict[Past, Derivatives] = {}
        self.start = self.formulas.variable(self.residuals.number(("node", node), END))
        self.text_start: Past = tuple((FALSE,) * (look.behind or 0) for look in self._behind)

    def state(self, past: Past, formula: int) -> AlternatingState:
        """A state, without its past if it never looks back."""
        looks_back = any(self.residuals.known[k].looks_back for k in self.formulas.variables_of(formula))
        return (past if looks_back else NOTHING), formula

    def derivatives(self, past: Past) -> Derivatives:
        cached = self._derivatives.get(past)
        if cached is None:
            cached = self._derivatives[past] = Derivatives(self.formulas, self.residuals, self._behind, past)
        return cached

    def after(self, state: AlternatingState) -> list[tuple[CharSet, AlternatingState]]:
        """The characters that can come next as (set, state after it)."""
        cached = self._after.get(state)
        if cached is None:
            past, formula = state
            derivatives = self.derivatives(past)
            read = self._read(derivatives, derivatives.expand(formula), bool(past))
            cached = self._after[state] = [(chars, self.state(then, rest)) for chars, then, rest in read]
        return cached

    def pasts(self) -> list[Past]:
        """Every past that a text can leave, including that of the empty text."""
        if not self._pasts:
            after = self.past_after if self._behind else lambda past: []
            self._pasts = reached([self.text_start], lambda past: (then for _, then in after(past)))
        return self._pasts

    def past_after(self, past: Past) -> list[tuple[CharSet, Past]]:
        """The past after each next character."""
        cached = self._past_after.get(past)
        if cached is None:
            cached = [(chars, then) for chars, then, _ in self._read(self.derivatives(past), FALSE, True)]
            self._past_after[past] = cached
        return cached

    def _read(self, derivatives: Derivatives, here: int, remember: bool) -> list[tuple[CharSet, Past, int]]:
        """(next characters, past after one of them, formula after it) for the formula over atoms `here`."""
        # A lookbehind is begun at every place. All formulas, of the text itself and of the lookbehinds under way, read
        # the same next character, and only the classes that some atom tells apart make a difference.
        begun = [derivatives.begun(i) for i in range(len(self._behind))] if remember else []
        formulas = {here, *(formula for look in begun for formula in look)}
        atoms: set[tuple[CharSet, int]] = set().union(*map(self.formulas.variables_of, formulas))
        self.count(sum(map(len, begun)) + len(atoms))
        out = []
        for chars in self.partition(frozenset(seen for seen, _ in atoms)):
            example = chars.ranges[0][0]  # any other character of the class does the same

            def through(atom: tuple[CharSet, int], example: int = example) -> int:
                seen, then = atom
                return FALSE if example not in seen else TRUE if then == YES else self.formulas.variable(then)

            read = {formula: self.formulas.replace(formula, through) for formula in formulas}
            out.append((chars, tuple(tuple(read[formula] for formula in look) for look in begun), read[here]))
        return out

    def ended(self, state: AlternatingState) -> AlternatingState:
        """(past, formula over atoms): what the following text must satisfy if the expression ends here."""
        here = self.derivatives(state[0]).expand(state[1])

        def by(atom: tuple[CharSet, int]) -> int:
            if self.residuals.known[atom[1]].asked:
                return self.formulas.variable(atom)
            return TRUE if atom == END_ATOM else FALSE  # the expression itself reads no more text

        return state[0], self.formulas.replace(here, by)

    def met_at_end(self, ended: AlternatingState) -> bool:
        """Whether `ended` (see :meth:`ended`) holds if no text follows."""
        return self.formulas.replace(ended[1], lambda atom: FALSE) == TRUE

    def after_end(self, ended: AlternatingState) -> list[tuple[CharSet, AlternatingState]]:
        """The same as :meth:`after`, for the first character after the end of the expression."""
        past, formula = ended
        read = self._read(self.derivatives(past), formula, bool(past))
        return [(chars, self.state(then, rest)) for chars, then, rest in read]

    def classes(self, chars: CharSet) -> frozenset[int]:
        """The indices of the character classes that `chars` meets, among those the expression distinguishes."""
        if self._alphabet is None:
            sets = {p.chars for p in walk_inside(self.node) if isinstance(p, Chars)}
            texts = {c for p in walk_inside(self.node) for t in texts_of(p) for c in t}
            self._alphabet = self.partition(frozenset(sets | {charset([(ord(c), ord(c))]) for c in texts}))
        self.count(len(self._alphabet) // 8)
        return frozenset(i for i, members in enumerate(self._alphabet) if members.meets(chars))

    def partition(self, sets: frozenset[CharSet]) -> list[CharSet]:
        """The coarsest partition of all characters in which each of `sets` is a union of classes."""
        cached = self._partitions.get(sets)
        if cached is None:
            self.count(sum(len(chars.ranges) for chars in sets) // 8)
            cached = self._partitions[sets] = partition([ANY, *sets])
        return cached

    def plain(self, state: AlternatingState) -> Node | None:
        """The rest of the expression as one node, if nothing in it looks around; else None."""
        numbers = self.formulas.alternatives(state[1])
        if not numbers or state[0] or not all(self.residuals.known[k].plain for k in numbers):
            return None
        return nodes.alt([self.residuals.node(k) for k in numbers])
