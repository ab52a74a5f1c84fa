"""`Tells`: what the answers to actions, or the results of calls, tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic

from constrained.grammar.source import SourceSpan
from constrained.knowledge.lines.expression import Expression
from constrained.knowledge.lines.pattern import Pattern
from constrained.planning.model import Literal, Part


@dataclass(frozen=True)
class Told:
    """A fact that an answer tells; `all`: it also tells that the fact is false for all objects it doesn't name."""

    literal: Literal
    all: bool = False


@dataclass(frozen=True)
class Stored:
    """What of a result is stored: each value at `path`, as `name`, under the values at `keys` if there are any.

    `member` names an argument of the call that is added to objects as a member.
    """

    name: str
    keys: tuple[str, ...]
    path: str
    member: str = ""


@dataclass(frozen=True)
class Tells(Generic[Part]):
    """What an answer tells: facts, if it says one of some texts; or, in a policy of tools, values that it holds.

    Attributes
    ----------
    condition : Form
        What must be known. In a world, facts are told for all values of its variables.
    span : SourceSpan
        The place of the texts, or of the tools' names.
    facts : tuple of Told
        Their variables are holes of the patterns, parameters of the action, or variables of the condition.
    patterns : tuple of Pattern
        Texts in an answer, any of which tells the facts; empty: any answer tells them.
    stored : Stored or None
        The values that a result tells.
    rules : frozenset of str or None
        The actions or tools whose answers tell this; None: any, in a policy any of the user's.
    types : mapping of str to str
        Variable -> its type, in a world.
    """

    condition: Part
    span: SourceSpan
    facts: tuple[Told, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    stored: Stored | None = None
    rules: frozenset[str] | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def unfilled(self) -> list[str]:
        """The holes of the answer to an action for which nothing says what stands there: it is never given."""
        holes = (hole for pattern in self.patterns for hole in pattern.holes)
        return [] if self.rules is None else [hole for hole in holes if f"?{hole.lower()}" not in self.types]

    @cached_property
    def asked(self) -> Expression:
        """The condition, to be evaluated."""
        form: Any = self.condition
        return Expression(form)
