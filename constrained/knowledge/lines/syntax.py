"""Parse the `//:` lines of a `.lark` file, which say what its actions need and change.

For lark and for our grammar reader, these lines are comments. Here all other text is blanked out, so that the lines
keep their places, and lark parses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from constrained.errors import GrammarError
from constrained.grammar.lark_tokens import Comment, comments
from constrained.grammar.source import Source
from constrained.knowledge.lines.syntax_errors import MARK, explained


@dataclass(frozen=True)
class ParseTree:
    """A statement or a part of one: the name of its rule in the grammar below, and its tokens and parts.

    `meta`: its place; None if it wasn't parsed from text.
    """

    data: str
    children: list[Any]
    meta: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, tree: Tree[Token]) -> ParseTree:
        """Convert lark's tree."""
        return cls(str(tree.data), [cls.of(c) if isinstance(c, Tree) else c for c in tree.children], tree.meta)

    def tokens(self) -> Iterator[Token]:
        """All tokens, from left to right."""
        for child in self.children:
            if isinstance(child, ParseTree):
                yield from child.tokens()
            elif child is not None:
                yield child

    def parts(self) -> Iterator[ParseTree]:
        """The tree itself and all trees in it."""
        yield self
        for child in self.children:
            if isinstance(child, ParseTree):
                yield from child.parts()


MAX_CHARACTERS = 4_000_000
"""Characters of a file with `//:` lines; the same limit as for PDDL files."""
KEPT, MAX_KEPT = 16, 100_000
"""How many files' statements are kept, and of how many characters at most."""
MAX_DEPTH = 60
"""Nested brackets in a condition; the same limit as for PDDL."""

_GRAMMAR = r"""
start: _statement*
_statement: action | type | fact | object | init | goal | needs | makes | tells | maybe | fails
          | means | shows | again | explores | let | message | user | write

action: "action" NAME
type: "type" kinds (";" kinds)*
kinds: NAME ("," NAME)* [":" NAME]
fact: "fact" predicate ("," predicate)*
predicate: NAME ["(" argument ("," argument)* ")"]
argument: [MANY] NAME
object: "object" things (";" things)*
things: _name ("," _name)* [":" NAME]
init: "init" _setting ("," _setting)*
_setting: atom | assignment
goal: "goal" [patterns ":"] conditions
needs: "needs" conditions
makes: "makes" effects
tells: "tells" (told ("," told)* | stored) ["if" conditions] "by" (patterns | tools)
maybe: "maybe" atom ("," atom)* ["if" conditions]
fails: "fails" "by" patterns
means: "means" [MANY] atom "if" conditions ("else" conditions)*
shows: "shows" STRING ["for" [NUMBER "of"] conditions] ":" piece ("," piece)* ["else" STRING]
again: "again" atom ("," atom)* ["if" conditions]
explores: "explores" piece ("else" piece)*
piece: STRING ["if" either]
place: NAME ["[" PATH ("," PATH)* "]"]
let: "let" NAME "(" [NAME ("," NAME)*] ")" "=" _value
message: "message" NAME
user: "user" NAME ("," NAME)*
write: "write" NAME ":" NAME ("," NAME)*

patterns: STRING ("," STRING)*
tools: NAME ("," NAME)*
told: [ALL | NOT] atom
stored: place "=" PATH ["with" NAME]
effects: _effect ("," _effect)*
_effect: change | each | assignment | each_of
change: [NOT] atom ["if" either]
each: QUANTIFIER variables "(" effects ")"
each_of: QUANTIFIER NAME "in" _value ":" "(" effects ")"
assignment: _place "=" _value
conditions: either ("," either)*
?either: both ("or" both)*
?both: one ("and" one)*
?one: negation | quantified | equality | contained | asks | _sum
negation: NOT one
asks: "asks" atom
quantified: QUANTIFIER variables "(" conditions ")"
equality: _sum (EQUAL | SET) _sum
contained: _sum [NOT] "in" _sum
variables: variable ("," variable)*
variable: NAME ":" NAME
atom: NAME ["(" _argument ("," _argument)* ")"]
call: NAME "(" ")"
_argument: _value | ANY

_value: either | choice | listing
choice: either "if" either "else" _value
listing: _value "for" NAME ("," NAME)* "in" either ["if" either]
_sum: _product | sum
sum: _sum SIGN _product
_product: _signed | product
product: _product (ANY | OVER) _signed
_signed: _place | STRING | NUMBER | EMPTY | minus
minus: SIGN _signed
_place: atom | call | member | item | list | mapping | "(" (conditions | choice) ")"
member: _place "." NAME
item: _place "[" _value ("," _value)* "]"
list: "[" [_value ("," _value)*] "]"
mapping: "{" [pair ("," pair)*] "}"
pair: _value ":" _value
_name: NAME | STRING

MANY.2: /(one|at-most-one)(?![\w-])/
ALL.2: /all(?![\w-])/
NOT.2: /not(?![\w-])/
QUANTIFIER.2: /(some|every)(?![\w-])/
SET: "="
EQUAL: "!=" | "==" | "<=" | ">=" | "<" | ">"
SIGN: "+" | "-"
OVER: "/" | "%"
EMPTY: "\"\""
ANY: "*"
NUMBER: /\d{1,15}(\.\d{1,15})?/
PATH: /[$@](\.\*|\[\*\]|\.[A-Za-z_][\w-]*|\[-?\d+\]|\['[^']*'\]|\["[^"]*"\])*/
NAME: /[A-Za-z_][\w-]*/
STRING: /"(?:[^"\\\n]|\\[^\n])+"/
%ignore /\s+/
"""


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _lines(text: str) -> Iterator[Comment]:
    return (comment for comment in comments(text) if comment.alone and text.startswith(MARK, comment.offset))


def parse_lines(source: Source) -> list[ParseTree]:
    """The statements of a file's `//:` lines, each with line and column.

    Raises
    ------
    GrammarError
        They don't parse; the message has the place of the first error and what is expected there.
    """
    text = source.text
    if len(text) > MAX_CHARACTERS:
        raise GrammarError(f"the file has more than {MAX_CHARACTERS:,} characters", source=source.name)
    # Everything but the `//:` lines becomes spaces, so that offsets, lines and columns stay those of the file.
    blanked = re.sub(r"[^\n]", " ", text)
    pieces, at = [], 0
    for comment in _lines(text):
        end = text.find("\n", comment.offset)
        end = len(text) if end < 0 else end
        pieces += [blanked[at : comment.offset + len(MARK)], _without_note(text[comment.offset + len(MARK) : end])]
        at = end
    if not pieces:
        return []  # without making the parser, which takes a fifth of a second
    visible = "".join([*pieces, blanked[at:]])
    _check_depth(source, visible)
    try:
        return list((_parsed_again if len(visible) <= MAX_KEPT else _parsed)(visible))
    except UnexpectedInput as error:
        raise explained(source, error) from None
    except RecursionError:
        raise source.error(f"a `{MARK}` line nests too deeply", "state it flatter") from None


def _parsed(visible: str) -> tuple[ParseTree, ...]:
    return tuple(
        ParseTree.of(statement) for statement in _parser().parse(visible).children if isinstance(statement, Tree)
    )


_parsed_again = lru_cache(KEPT)(_parsed)  # every plan reads its knowledge anew


def _without_note(line: str) -> str:
    """A line with its `//` comment blanked out, unless that is inside a string."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|//.*', lambda found: found[1] or " " * len(found[0]), line)


def _check_depth(source: Source, text: str) -> None:
    depth = 0
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"|[][(){}]', text):
        depth += 1 if found[0] in "([{" else -1 if found[0] in ")]}" else 0
        if depth > MAX_DEPTH:
            line, column = source.line_column(found.start())
            raise source.error(f"brackets nest deeper than {MAX_DEPTH}", "state it flatter", line, column)
