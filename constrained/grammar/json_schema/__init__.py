"""JSON Schema (drafts 4 to 2020-12) to grammar rules."""

from constrained.grammar.json_schema.document import read_schema
from constrained.grammar.json_schema.keywords import Options
from constrained.grammar.json_schema.whitespace import Layout, layout
from constrained.grammar.json_schema.writer import load_schema, validator, write_schema

__all__ = ["Layout", "Options", "layout", "load_schema", "read_schema", "validator", "write_schema"]
