"""JSON Schema (drafts 4 to 2020-12) to grammar rules.

1. `keywords` has a row for each keyword, and reads what is written into a `shape`: what a schema says, by type,
   immutable. `values` is about JSON values: types, equality, the forms that keywords take. `document` holds the
   schemas, what `$ref` refers to, and which say the same. `options`: how a schema is read.
2. `alternatives` resolves what joins schemas (`$ref`, allOf, anyOf, oneOf, not, if, dependencies): what hold together
   become shapes without joins. `complement` makes what breaks a schema, `presence` makes conditions on which names an
   object has one formula instead of alternatives.
3. `decide` tells whether a value fits, and whether no value fits two schemas; `satisfiable`, whether some value fits,
   so that a schema may be written when a text reaches it. Unknown means: it is written when the schema is loaded.
4. `writer` writes each shape, type by type: `objects`, `arrays` (those whose items are counted by `contains`), with
   what differs in them by `unique`, `numbers`, and `strings`, whose patterns and formats the package
   `grammar.patterns` reads; `whitespace` is what stands between the pieces.
5. `misfit` says why a value doesn't fit, or none does, and how the masks write one.
6. `python_types` makes schemas of Python's types.
"""

from constrained.grammar.json_schema.document import read_schema
from constrained.grammar.json_schema.misfit import Misfit, Values, missing_property
from constrained.grammar.json_schema.options import Options
from constrained.grammar.json_schema.python_types import as_schema
from constrained.grammar.json_schema.whitespace import Layout, layout
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
