"""Reading grammars: `.lark` text, regular expressions, choices, JSON Schemas.

What they have in common is a tree of nodes (`nodes`, with the walks over it in `traverse`); `grammar` puts rules, a
start and the values of slots together. The automaton that says which texts a grammar accepts is in
`constrained.automaton`.

- `.lark` text: `lark_tokens` and `lark_syntax` parse it, `lark_definitions` resolves names and imports, `lark_literals`
  and `lark_terminals` read terminals, `lark_reader` rules. `lark_outline` is for tools: it also reads what can't be
  loaded.
- Rules are prepared for an automaton: `token_contexts` resolves lookaround, `left_recursion` rewrites (with
  `template_instances` and `nonempty`), and `analysis` finds what is nullable and productive (`first_follow`: what comes
  first and next).
- Regular expressions: `regex` reads them with `re`'s parser. Those that look around (`assertions`) become alternating
  automata (`alternating_automaton`, by `derivatives` of formulas in `bdd`), then deterministic ones (`lookaround`).
- JSON Schemas: the package `json_schema`, and `patterns` for those of strings; `members` and `json_text` are its own
  types of node. `deferred_rules` are rules that are written when a text reaches them.
- Places in the text: `source`, and `source_map` for rules that were rewritten.
"""

from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.lark_reader import read_lark
from constrained.grammar.nodes import STEP
from constrained.grammar.source import SourceSpan, read_source, shipped_names

__all__ = ["STEP", "ContextFreeGrammar", "SourceSpan", "read_lark", "read_source", "shipped_names"]
