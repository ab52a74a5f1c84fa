"""What is wrong where `//:` lines don't parse: what belongs there, and what may be meant."""

from __future__ import annotations

import re
from difflib import get_close_matches

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from constrained.errors import GrammarError
from constrained.grammar.lark_tokens import comments
from constrained.grammar.source import Source

MARK = "//:"

MAX_NAME = 60
"""Characters of a name that an error asks to quote."""

_EXPECTED = {
    "NAME": "a name",
    "STRING": 'a text in quotes ("...")',
    "RPAR": "`)`",
    "LPAR": "`(`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "IF": "`if`",
    "BY": "`by`",
    "MANY": "`one`",
    "QUANTIFIER": "`some`",
    "ANY": "`*`",
    "SET": "`=`",
    "EQUAL": "a comparison",
    "SIGN": "`+`",
    "OVER": "`/`",
    "EMPTY": 'a text in quotes ("...")',
    "NUMBER": "a number",
    "PATH": "a JSON path ($.orders[*])",
    "DOT": "`.`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "SEMICOLON": "`;`",
    "$END": "the end",
}
STATEMENTS = ("type", "fact", "object", "init", "goal", "action", "needs", "makes", "tells", "maybe", "fails",
              "means", "shows", "again", "explores")  # fmt: skip
"""The keywords that a world's lines begin with."""
OF_WORLDS = ("type", "object", "goal", "action", "maybe", "means", "shows", "again", "explores")
"""Those that only worlds have."""
OF_TOOLS = ("let", "message", "user", "write")
"""Those that only the lines of policies of tools begin with."""

_OF_VALUES = {"SIGN", "OVER", "EQUAL", "DOT", "LSQB", "LBRACE", "NUMBER", "EMPTY", "FOR", "IN", "PATH",
              *map(str.upper, OF_TOOLS)}  # fmt: skip

_SIGNS = {"&": "`and`, or a comma", "|": "`or`", "!": "`not`", "}": "the name without braces", ":": "nothing"}
"""Signs of other languages -> what to write instead."""
_WORDS = {"no": "not", "exists": "some", "any": "some", "forall": "every", "each": "every"}
"""Words of other languages -> what to write instead."""


def explained(source: Source, error: UnexpectedInput) -> GrammarError:
    """lark's error as a GrammarError with its place; the hint says what may be meant, and what belongs there."""
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if isinstance(error, UnexpectedToken):
        wanted = set(error.accepts or error.expected)
        problem = "the lines end" if at_end else f"unexpected `{error.token}`"
    else:
        assert isinstance(error, UnexpectedCharacters)
        shown = error.char if error.char.isprintable() else ascii(error.char)[1:-1]
        wanted, problem = set(error.allowed or ()), f"unexpected `{shown}`"
    # The place: where the text stops fitting, or the end of the last `//:` line if it ends too early.
    line, column, meant = error.line, error.column, ""
    if at_end or line < 1:
        *_, last = (comment for comment in comments(source.text) if source.text.startswith(MARK, comment.offset))
        end = source.text.find("\n", last.offset)
        line, column = source.line_column(len(source.text) if end < 0 else end)
    else:
        meant = _meant(source.text.splitlines()[line - 1], column - 1)
    hint = f"{meant}here belongs {', '.join(_belonging(source, wanted))}"
    return source.error(f"{problem} in a `{MARK}` line", hint, line, column)


def _belonging(source: Source, wanted: set[str]) -> list[str]:
    """What belongs at a place, of lark's terminals `wanted`."""
    if re.search(rf"(?m)^\s*{MARK}\s*({'|'.join(OF_TOOLS)})\b", source.text) is None:  # a world has no values
        wanted = wanted - (_OF_VALUES if "EQUAL" not in wanted else {*_OF_VALUES, "ANY"})
    # If every statement may begin here, a hint lists the statements alone, or says "a new line" for them.
    keywords = {word.upper() for word in STATEMENTS}
    words = sorted({_EXPECTED.get(name, f"`{name.lower()}`") for name in wanted - keywords if not name.startswith("_")})
    if keywords <= wanted:
        words = [f"`{word}`" for word in STATEMENTS] if wanted <= keywords | {"$END"} else [*words, "a new line"]
    return words


def _meant(text: str, at: int) -> str:
    """A hint on what may be meant at a column of a line; "" if nothing is known."""
    begins = re.match(rf"\s*{MARK}\s*([\w-]+)", text)
    keyword, first_ends = (begins[1], begins.end()) if begins else ("", 0)
    sign, before = text[at : at + 1], re.search(r"([\w-]+)\s+$", text[:at])
    if begins and keyword not in (*STATEMENTS, *OF_TOOLS):
        if like := get_close_matches(keyword, STATEMENTS, 1, 0.7):
            return f"did you mean `{like[0]}`, at the beginning of the line? Else "
        if at == begins.start(1):
            return f"no line begins with `{keyword}`, but with {', '.join(STATEMENTS)}; after the line before, "
    if sign in _SIGNS and (sign != ":" or at == first_ends):
        return f"write {_SIGNS[sign]} for `{sign}`; " if sign != ":" else f"write no `:` after `{keyword}`; "
    if before and before[1] in _WORDS:
        return f"write `{_WORDS[before[1]]}` for `{before[1]}`; else "
    if keyword == "makes" and text.startswith("and", at):
        return "join what an action makes by commas; "
    if keyword == "object" and sign == "," and ":" in text[first_ends:at]:
        return "the type comes after its objects, and `;` before those of another type (a, b: room; c: box); "
    # The words between separators are a name, if names alone may stand there: in `object` lines and within brackets.
    first = max(text.rfind(sign, 0, at) for sign in "(,;:[{") + 1
    end = min((place for sign in "),;:]}" if (place := text.find(sign, at)) >= 0), default=len(text))
    in_brackets = keyword not in ("fact", "type") and text.count("(", 0, at) > text.count(")", 0, at)
    if keyword == "object" or in_brackets:
        name = re.sub(r"^object\s", "", text[first:end].strip()).strip()
        if (
            '"' not in name
            and not re.fullmatch(r"[A-Za-z_][\w-]*|", name)
            and name.isprintable()
            and len(name) <= MAX_NAME
        ):
            return f'if it is a name, write it in quotes: `"{name}"`; else '
    return ""
