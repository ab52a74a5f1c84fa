"""Named limits on what a grammar may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from constrained.arguments import ArgumentKind
from constrained.errors import GrammarError, LimitError


@dataclass(frozen=True)
class Limits:
    """Limits on what a grammar may cost; :class:`LimitError` is raised when one is exceeded.

    The defaults leave agents a wide margin and stop a hostile grammar within seconds and some hundred megabytes.
    ``Grammar.from_*(…, limits=Limits(…))`` and ``compile_grammar(…, limits=Limits(…))`` take others.

    Attributes
    ----------
    characters : int
        Characters of a grammar's text and of the files that it imports.
    symbols : int
        Names, literals and operators of one `.lark` file.
    pattern : int
        Characters of a grammar's regular expressions together, without plain words and alternatives of them.
    imports : int
        Imported files, counted as often as they are imported.
    depth : int
        Nested groups in a rule or regular expression.
    nodes : int
        Nodes of a grammar after left-recursion elimination.
    lookaround : int
        Steps of building automata for regular expressions with lookaround.
    repeat : int
        Either bound of a repeat; at most 2**31 - 1, what a counter holds.
    schema : int
        Rules, combinations, and states of single patterns that a JSON Schema is compiled to.
    pattern_steps : int
        States, by the classes of characters that are told apart, of what a JSON Schema says of one string: patterns,
        formats, lengths, and what these leave out, together.
    values : int
        Texts of one slot or one choice.
    value_bytes : int
        Bytes of all those texts together.
    distinct : int
        Items, or members, of one array or object that are remembered so that the next ones differ; it has no more.
    closure : int
        Constructs entered one after the other without reading a byte.
    entered : int
        Constructs entered in that way over an automaton's life (once for each stack).
    cases : int
        Rule bodies, each with its parameters' values, that are examined to decide whether a text can be finished when
        a slot has no value for some key.
    positions : int
        Positions of one automaton, each with its stack.
    frames : int
        Frames of those stacks; shared ones count once.
    states : int
        States of one automaton: sets of positions.
    state_positions : int
        Positions of one state: the ways to read the text so far.
    joins : int
        Steps of joining the stacks of one state's positions into one.
    row_bytes : int
        Bytes of mask rows that one compiled grammar keeps; when they are used up it starts again (no error).
    precomputed : int
        Positions that `CompiledGrammar.precompute` visits.
    search_positions : int
        Positions visited in the search for a shortest text.
    search_steps : int
        Token steps of one search for the fewest tokens to the end.
    search_milliseconds : int
        Time of one such search, or of one for a shortest text.
    mask_steps : int
        Steps of single positions, one byte each, for one token mask; joining stacks in Python counts as 5,000.
    check_steps : int
        Steps of single positions, one byte each, with which `constrained check` compares actions.
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
    pattern_steps: int = 1_000_000
    values: int = 1_000_000
    value_bytes: int = 256 << 20
    distinct: int = 1_000
    closure: int = 200_000
    entered: int = 5_000_000
    cases: int = 200_000
    positions: int = 500_000
    frames: int = 1_000_000
    states: int = 500_000
    state_positions: int = 10_000
    joins: int = 2_000
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

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # computed once: caches ask for it at every pattern
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    def check(self, limit: str, found: int, what: str, advice: str | None = None, **position: Any) -> None:
        """Raise LimitError if `found` exceeds the limit of that name."""
        if found > getattr(self, limit):
            raise LimitError(limit, getattr(self, limit), what, advice, **position)


DEFAULT = Limits()

KIND = ArgumentKind((Limits,), "Limits(…)")
"""For arguments that are checked."""
