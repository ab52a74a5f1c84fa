"""How a schema is read: what is honoured, refused or left out, and what is noted meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrained.grammar.json_schema.shape import Schema
from constrained.grammar.json_schema.values import escaped
from constrained.grammar.nodes import Distinct
from constrained.grammar.patterns.formats import PATTERNS as FORMATS
from constrained.limits import Limits


@dataclass(frozen=True)
class Options:
    """See `Grammar.from_json_schema`.

    Attributes
    ----------
    left_out : dict
        Its keys are the pointers of keywords that are not honoured.
    unknown : dict
        Its keys are the pointers of annotations that are no keywords of the standard's.
    distinct : dict or None
        Rule -> what differs in what it reads (`nodes.Distinct`); None where that can't be remembered.
    closing : str
        What ends the text that the JSON stands in, such as ``</tool_call>``, and so may not stand literally in its
        strings; its first character occurs in it once. Empty if there is none.
    """

    limits: Limits
    any_order: bool = False
    closed: bool = False
    lenient: bool = False
    strict: bool = False
    formats: bool = True
    left_out: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    distinct: dict[str, Distinct] | None = None
    closing: str = ""

    def refuse(self, part: Schema, keyword: str, what: str, hint: str) -> None:
        """Leave a keyword out if `lenient`; else raise GrammarError."""
        if not self.lenient:
            raise part.error(keyword, what, f"{hint}; or lenient=True leaves it out")
        self.left_out[f"{part.pointer}/{escaped(keyword)}"] = None

    def enforces(self, format_name) -> bool:
        """Whether a `format` of that name restricts strings."""
        return self.formats and isinstance(format_name, str) and format_name in FORMATS

    def note(self, part: Schema, keyword: str) -> None:
        """Note a keyword that the standard doesn't know, and so takes for an annotation; if `strict`, raise."""
        if self.strict:
            raise part.error(
                keyword, f"{keyword[:80]!r} is no keyword that is known here", "correct it, or leave it out"
            )
        self.unknown[f"{part.pointer}/{escaped(keyword)}"] = None
