"""Every bound on what a grammar may cost, by name."""

from __future__ import annotations

from dataclasses import dataclass, fields

from constrained.errors import GrammarError, LimitError


@dataclass(frozen=True)
class Limits:
    """What a grammar may cost; a passed limit raises :class:`LimitError`.

    The defaults let through what agents need with a wide margin, and stop a hostile grammar
    within seconds and some hundred megabytes. ``Grammar.from_*(…, limits=Limits(…))`` and
    ``compile_grammar(…, limits=Limits(…))`` take other ones.

    Attributes
    ----------
    characters : int
        Characters of a grammar's text, with that of what it imports.
    symbols : int
        Names, literals and signs of one `.lark` file.
    pattern : int
        Characters of a grammar's regular expressions together, plain words and alternatives of these aside.
    imports : int
        Files that a grammar imports, each as often as it is.
    depth : int
        Groups within each other, in a rule or in a regular expression.
    nodes : int
        Pieces of a grammar once it is read and its left recursion eliminated.
    lookaround : int
        Steps of making automata of a grammar's regular expressions that look around.
    repeat : int
        Either bound of a repeat; at most 2**31 - 1, what a counter holds.
    schema : int
        Rules, combinations, and states of a pattern that a JSON Schema is written out into.
    values : int
        Texts of one slot or of one choice.
    value_bytes : int
        Bytes of all those texts together.
    closure : int
        Constructs entered one after the other without reading a byte.
    entered : int
        Constructs entered so in all, over an automaton's life (each stack's only once).
    cases : int
        Rule bodies, each with its parameters' values, looked at to tell whether a text can
        be finished where a slot has no value for some key.
    positions : int
        Places in the grammar that one automaton comes to hold, each with its stack.
    frames : int
        Entries of those stacks, shared ones once.
    states : int
        Sets of positions that it comes to hold.
    state_positions : int
        Ways in which one text so far can be read.
    row_bytes : int
        Bytes of mask rows kept by one compiled grammar; beyond, it begins anew (no error).
    precomputed : int
        Positions that `CompiledGrammar.precompute` visits.
    search_positions : int
        Positions visited to find a shortest text.
    search_steps : int
        Token steps of one search for the fewest tokens to the end.
    search_milliseconds : int
        Time of one such search, and of one for a shortest text.
    mask_steps : int
        Steps of single positions, a byte each, that one token mask may take.
    check_steps : int
        Steps of single positions, a byte each, by which `constrained check` tells actions apart.
    """

    characters: int = 1_000_000
    symbols: int = 100_000
    pattern: int = 150_000
    imports: int = 500
    depth: int = 200
    nodes: int = 400_000
    lookaround: int = 100_000
    repeat: int = 10**9
    schema: int = 10_000
    values: int = 1_000_000
    value_bytes: int = 256 << 20
    closure: int = 200_000
    entered: int = 5_000_000
    cases: int = 200_000
    positions: int = 500_000
    frames: int = 1_000_000
    states: int = 500_000
    state_positions: int = 10_000
    row_bytes: int = 64 << 20
    precomputed: int = 200_000
    search_positions: int = 200_000
    search_steps: int = 2_000_000
    search_milliseconds: int = 30_000
    mask_steps: int = 50_000_000
    check_steps: int = 500_000

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise GrammarError(f"limit {field.name} is {value!r}", hint="a limit is a whole number above 0")
        if self.repeat >= 2**31:
            raise GrammarError(f"limit repeat is {self.repeat}", hint="counters hold numbers below 2**31")

    def check(self, limit: str, found: int, what: str, advice: str | None = None, **place) -> None:
        """Raise LimitError if `found` is above the limit of that name."""
        if found > getattr(self, limit):
            raise LimitError(limit, getattr(self, limit), what, advice, **place)


DEFAULT = Limits()
