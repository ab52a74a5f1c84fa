"""JSON Schema (drafts 4 to 2020-12) to grammar rules."""

from __future__ import annotations

from constrained.errors import GrammarError
from constrained.grammar.analysis import productive_rules, trim
from constrained.grammar.json_schema.containers import Layout, layout
from constrained.grammar.json_schema.document import read_schema
from constrained.grammar.json_schema.keywords import Options
from constrained.grammar.json_schema.writer import write_schema
from constrained.grammar.nodes import Rule

__all__ = ["Layout", "Options", "layout", "read_schema", "schema_rules", "write_schema"]


def schema_rules(schema, whitespace: str, options: Options) -> dict[str, Rule]:
    """The rules of the JSON texts of `schema`, from the rule ``start``.

    Raises
    ------
    GrammarError
        As `Grammar.from_json_schema`.
    """
    rules: dict[str, Rule] = {}
    node = write_schema(read_schema(schema, options.limits), rules, "", layout(whitespace), options)
    rules["start"] = Rule("start", node)
    productive = productive_rules(rules)
    if "start" not in productive:
        hint = "look for keywords that rule each other out, and for $ref that never come to an end"
        raise GrammarError("JSON Schema at #: no value is valid", hint=hint)
    # texts begin with text of their own: no left recursion to turn round
    return rules if len(productive) == len(rules) else trim(rules, productive)
