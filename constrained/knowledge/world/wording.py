"""How what is known is told to a model: the `means`, `shows`, `again` and `explores` lines of a `.lark` file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from constrained.planning.model import Condition, Literal

ASKS = "asks "
"""Before a predicate: whether the goal asks for such a fact."""


@dataclass(frozen=True)
class Where:
    """A condition on what is known, with the names of the sentence's holes in it: without these it never holds."""

    condition: Condition
    holes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Means:
    """A fact that follows from others: where the first of some conditions that holds anywhere does.

    Attributes
    ----------
    literal : Literal
    once : bool
        Of one thing only: the first for which it holds.
    conditions : tuple of Where
    """

    literal: Literal
    once: bool
    conditions: tuple[Where, ...]


@dataclass(frozen=True)
class Piece:
    """A piece of text, written where its condition holds.

    Attributes
    ----------
    parts : tuple of str or (str, str)
        Texts, and holes: a name and "" for one thing, "," for a list, "..." for a list by kind.
    where : Where
    """

    parts: tuple[str | tuple[str, str], ...]
    where: Where


@dataclass(frozen=True)
class Shows:
    """A line, or a part of one, that tells a model what is known.

    Attributes
    ----------
    label : str
        With which the line begins; lines of one label are joined.
    most : int or None
        Entries that are written; further ones are counted.
    entries : Where
        What there is an entry for.
    pieces : tuple of Piece
        Of an entry.
    otherwise : str or None
        What is written where there is no entry; None: then there is no line.
    """

    label: str
    most: int | None
    entries: Where
    pieces: tuple[Piece, ...]
    otherwise: str | None


@dataclass(frozen=True)
class Again:
    """Facts that still hold when the same episode is started anew."""

    literal: Literal
    where: Where


@dataclass
class Wording:
    """What a file says of how to tell what is known.

    Attributes
    ----------
    means : dict of str to list of Means
        Predicate -> what it follows from.
    shows : list of Shows
    again : list of Again
    explores : list of Piece
        Actions that show something new; the first of these that there are.
    """

    means: dict[str, list[Means]] = field(default_factory=dict)
    shows: list[Shows] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)
    explores: list[Piece] = field(default_factory=list)

    def conditions(self) -> Iterable[Condition]:
        """All conditions in it."""
        for means in (one for rules in self.means.values() for one in rules):
            yield from (where.condition for where in means.conditions)
        for shows in self.shows:
            yield shows.entries.condition
            yield from (piece.where.condition for piece in shows.pieces)
        yield from (again.where.condition for again in self.again)
        yield from (piece.where.condition for piece in self.explores)
