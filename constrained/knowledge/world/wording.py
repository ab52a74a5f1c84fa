"""How what is known is told to a model: the `means`, `shows`, `again` and `explores` lines of a `.lark` file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from constrained.planning.model import Condition, Literal

ASKS = "asks "
"""Before a predicate: whether the goal asks for such a fact."""


class Where(NamedTuple):
    """A condition on what is known; it never holds without the holes of the task's sentence that it names."""

    condition: Condition
    holes: frozenset[str] = frozenset()


class Means(NamedTuple):
    """A fact that follows where the first of some conditions holds that holds at all; `once`: for one thing only."""

    literal: Literal
    once: bool
    conditions: tuple[Where, ...]


class Piece(NamedTuple):
    """A piece of text, written where its condition holds: in turns texts, and holes with "" for one thing, "," for a
    list, "..." for a list by kind.
    """

    parts: tuple[str | tuple[str, str], ...]
    where: Where

    @property
    def holes(self) -> list[tuple[str, str]]:
        """The holes alone."""
        return [part for part in self.parts if not isinstance(part, str)]


class Shows(NamedTuple):
    """A line of a text, or a part of one: lines of one label are joined.

    There is an entry, of some pieces, for each answer to `entries`; beyond `most` they are counted. Where there is
    none, `otherwise` is written, and no line if it is None.
    """

    label: str
    most: int | None
    entries: Where
    pieces: tuple[Piece, ...]
    otherwise: str | None


class Again(NamedTuple):
    """Facts that still hold when the same episode is started anew."""

    literal: Literal
    where: Where


@dataclass
class Wording:
    """What a file says of how to tell what is known; `explores` writes the actions that show something new."""

    means: dict[str, list[Means]] = field(default_factory=dict)
    shows: list[Shows] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)
    explores: list[Piece] = field(default_factory=list)

    def conditions(self) -> Iterable[Condition]:
        """All conditions in it."""
        pieces = [*self.explores, *(piece for shows in self.shows for piece in shows.pieces)]
        wheres = [piece.where for piece in pieces] + [again.where for again in self.again]
        wheres += [shows.entries for shows in self.shows]
        wheres += [where for rules in self.means.values() for means in rules for where in means.conditions]
        return [where.condition for where in wheres]
