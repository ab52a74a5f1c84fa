"""JSON Schema (draft 2020-12) to grammar rules."""

from __future__ import annotations

from constrained.errors import GrammarError
from constrained.grammar.json_schema.document import read_schema
from constrained.grammar.json_schema.layout import layout
from constrained.grammar.json_schema.writer import write_schema
from constrained.grammar.nodes import Rule
from constrained.grammar.trim import productive_rules
from constrained.limits import Limits

__all__ = ["read_schema", "schema_rules"]


def schema_rules(schema, whitespace: str, limits: Limits, **options) -> tuple[dict[str, Rule], list[str]]:
    """The rules of the JSON texts of `schema`, from the rule ``start``; and where keywords were left out.

    Raises
    ------
    GrammarError
        As `Grammar.from_json_schema`.
    """
    rules: dict[str, Rule] = {}
    node, left_out = write_schema(read_schema(schema, limits), rules, "", layout(whitespace), limits, **options)
    rules["start"] = Rule("start", node)
    if "start" not in productive_rules(rules):
        raise GrammarError("JSON Schema at #: no value is valid", hint="look for keywords that rule each other out, or endless $ref")
    return rules, left_out
