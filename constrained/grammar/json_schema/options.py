"""How a schema is to be read, and what of it was left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrained.grammar.json_schema.document import Part, error, escaped
from constrained.limits import Limits


@dataclass(frozen=True)
class Options:
    """See `Grammar.from_json_schema`.

    Attributes
    ----------
    left_out : dict
        The places of keywords that are not honoured, as its keys.
    """

    limits: Limits
    any_order: bool = False
    closed: bool = False
    lenient: bool = False
    left_out: dict[str, None] = field(default_factory=dict)

    def refuse(self, part: Part, keyword: str, what: str, hint: str) -> None:
        """Leave a keyword out if that was asked for; else raise GrammarError."""
        if not self.lenient:
            raise error(part, keyword, what, f"{hint}; or lenient=True leaves it out")
        self.left_out[f"{part.at}/{escaped(keyword)}"] = None
