"""How what is known is described to a model: the `means`, `shows`, `again` and `explores` lines of a `.lark` file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from constrained.planning.model import Condition, Literal

ASKS = "asks "
"""The prefix of a predicate that stands for "the goal asks for such a fact"."""


class Where(NamedTuple):
    """A condition on what is known; `holes`: the holes of the task's sentence without which it never holds."""

    condition: Condition
    holes: frozenset[str] = frozenset()


class Means(NamedTuple):
    """A derived fact: it follows from the first of some conditions that has answers; `once`: from one answer only."""

    literal: Literal
    once: bool
    conditions: tuple[Where, ...]


class Piece(NamedTuple):
    """A piece of text, written if its condition holds: alternating texts, and holes (name, format).

    The format is "" for one object, "," for a list, "..." for a list by kind.
    """

    parts: tuple[str | tuple[str, str], ...]
    where: Where

    @property
    def holes(self) -> list[tuple[str, str]]:
        """The holes alone."""
        return [part for part in self.parts if not isinstance(part, str)]


class Shows(NamedTuple):
    """A line of text with a list of entries; lines with the same label are joined.

    There is an entry, made of the pieces, for each answer to `entries`; beyond `most`, they are only counted. If there
    are none, `otherwise` is written, or no line if that is None.
    """

    label: str
    most: int | None
    entries: Where
    pieces: tuple[Piece, ...]
    otherwise: str | None


class Again(NamedTuple):
    """Facts that still hold when the same episode starts again."""

    literal: Literal
    where: Where


@dataclass
class Wording:
    """All such lines of a file; the pieces of `explores` write the actions that show something new."""

    means: dict[str, list[Means]] = field(default_factory=dict)
    shows: list[Shows] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)
    explores: list[Piece] = field(default_factory=list)

    def conditions(self) -> Iterable[Condition]:
        """All conditions in the lines."""
        pieces = [*self.explores, *(piece for shows in self.shows for piece in shows.pieces)]
        wheres = [piece.where for piece in pieces] + [again.where for again in self.again]
        wheres += [shows.entries for shows in self.shows]
        wheres += [where for rules in self.means.values() for means in rules for where in means.conditions]
        return [where.condition for where in wheres]
