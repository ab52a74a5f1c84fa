"""JSON Schema (drafts 4 to 2020-12) to grammar rules.

1. `document` holds the schema: its subschemas, what `$ref` refers to, the drafts. `keywords` checks their form.
2. `alternatives` resolves what joins schemas (`$ref`, allOf, anyOf, oneOf, not, if, dependencies). A schema becomes
   alternatives; each is a conjunction of schemas that hold for one value. Complements are made by `negation`. Choices
   are kept few: `disjoint` finds branches that share no value, `settled` drops branches that other schemas decide, and
   `presence` makes conditions on which names an object has one formula instead of alternatives.
3. `constraints` reads a conjunction as one: its types, bounds, and what holds for the parts of the value.
4. `writer` writes each conjunction, type by type: `objects` and `arrays`, with what differs in them by `unique`,
   `numbers`, and `strings` with `patterns`, `pattern_trees`, `finite_automata` and `character_automata`, where what
   several patterns have in common, or leave out, is worked out; `whitespace` is what stands between the pieces.
5. `plain_walk` tells which schemas may wait: they are written when a text reaches them. `plain` has what it asks of
   objects, arrays, numbers and patterns, also where several schemas hold together. `validity` decides whether one
   value fits a schema, which enum, const and listed names ask for. `misfit` says why one
   doesn't, and how the masks write it; `missing` why no value fits.
6. `python_types` makes schemas of Python's types.
"""

from constrained.grammar.json_schema.document import read_schema
from constrained.grammar.json_schema.keywords import Options
from constrained.grammar.json_schema.misfit import Misfit, Values, missing_property
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
