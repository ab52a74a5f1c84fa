"""JSON Schema (drafts 4 to 2020-12) to grammar rules.

1. `keywords` has a row for each keyword, and reads a schema as it is written into a `shape`: constraints by type,
   immutable. `values` is about JSON values: types, equality, the forms that keywords take. `document` resolves `$ref`
   and finds schemas that say the same. `options`: how a schema is read, and the space between its pieces.
2. `alternatives` brings schemas into disjunctive form: `$ref`, allOf, anyOf, oneOf, not, if and dependencies become
   alternatives without joins, each the intersection (`meet`) of what holds together. `complement` negates a schema;
   `presence` keeps conditions on which names an object has as one formula, in place of alternatives.
3. `satisfiable` infers whether some value fits. Schemas of which that is certain, and that are never refused, are
   deferred: written when a text reaches them. Unknown means: written when the schema is loaded. `decide` tells whether
   a value fits, and whether two schemas are disjoint, so that a oneOf needs no complements.
4. `writer` writes each shape as rules, type by type: `objects`, `arrays`, `numbers`, and `strings`, whose patterns and
   formats `grammar.patterns` reads.
5. `misfit` says why a value doesn't fit, or none does, and in which order and spelling the masks write it.
6. `python_types` makes schemas of Python's types.
"""

from constrained.grammar.json_schema.document import read_schema
from constrained.grammar.json_schema.misfit import Misfit, Values, missing_property
from constrained.grammar.json_schema.options import Layout, Options, layout
from constrained.grammar.json_schema.python_types import as_schema
from constrained.grammar.json_schema.writer import load_schema, validator, write_schema

__all__ = [
    "Layout",
    "Misfit",
    "Options",
    "Values",
    "as_schema",
    "layout",
    "load_schema",
    "missing_property",
    "read_schema",
    "validator",
    "write_schema",
]
