"""The tokens of `.lark` text, and what to say of one that stands in the wrong place."""

from __future__ import annotations

import difflib
import re

from constrained.errors import GrammarError
from constrained.grammar.source import Source
from constrained.limits import Limits

DIRECTIVES = ("%declare", "%extend", "%ignore", "%import", "%override")

# A comment takes the blank space before it, lines too; a newline all that is blank after it.
_TOKEN = re.compile(
    r"""
    (?P<blank>     [ \t]+ | \\[ ]*\r?\n )
  | (?P<comment>   \s*(?://|\#)[^\n]* )
  | (?P<string>    "(?:[^"\\\n]|\\[^\n])*"i? )
  | (?P<regex>     /(?!/)(?:[^/\\]|\\[\s\S])*/[imslux]* )
  | (?P<rule>      _?[a-z][_a-z0-9]* )
  | (?P<terminal>  _?[A-Z][_A-Z0-9]* )
  | (?P<bar>       (?:\r?\n\s*)?\| )
  | (?P<newline>   \r?\n\s* )
  | (?P<number>    [+-]?\d+ )
  | (?P<modifiers> (?:!\??|\?!?)(?=[_a-z]) )
  | (?P<operator>  [+*?] )
  | (?P<sign>      \.\.|->|[.:,~(){}\[\]] )
  | (?P<directive> %(?:declare|extend|ignore|import|override) )
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"\w+")
_SPACE = "a space parts `?` from the name after it: `x? y`"
# of what other notations, and slips, look like here: (pattern, message, hint)
_SLIPS = (
    (r"'[^'\n]*'", "strings stand in double quotes", "write \"...\" for '...'"),
    (r"'", "strings stand in double quotes", "write \"...\" for '...'"),
    (r'"', "this string is never closed", 'close it with `"` on the same line; a quote inside is written `\\"`'),
    (r"/", "this regular expression is never closed", "close it with `/`; a slash inside is written `\\/`"),
    (r";", "unexpected `;`", "a definition ends with its line: leave `;` out"),
    (r"=", "unexpected `=`", "a rule is written `name: ...`"),
    (r"<", "unexpected `<`", "names stand by themselves, without `<` and `>`"),
    (r"-", "unexpected `-`", "names have letters, digits and `_`; `-` is none of these"),
    (r"%\w*", "unknown directive {0}", "the directives are " + ", ".join(DIRECTIVES)),
    (r"!", "unexpected `!`", "`!` stands only before the name of the rule that is defined"),
    (r"\\", "unexpected `\\`", "a backslash continues a line only at its very end"),
    (r"\r", "a lone carriage return is no line end", "end lines with \\n or \\r\\n"),
)


class Tokens:
    """A text's tokens: their kinds, texts and offsets, side by side, blanks and comments left out.

    The kind of a sign is the sign itself; the last token is of kind "end".

    Raises
    ------
    GrammarError
        At what is no token.
    LimitError
        There are more than there may be.
    """

    def __init__(self, source: Source, limits: Limits):
        self.source = source
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        text, at, most = source.text, 0, limits.symbols
        scan = _TOKEN.scanner(text).match
        while (found := scan()) is not None:
            kind = found.lastgroup
            at = found.end()
            if kind == "blank" or kind == "comment":
                continue
            self.texts.append(found[0])
            self.starts.append(found.start())
            self.kinds.append(found[0] if kind == "sign" else "|" if kind == "bar" else kind)
            if kind == "regex" and "\n" in found[0] and "x" not in found[0][found[0].rindex("/") :]:
                hint = "close it with `/`; over several lines it is written with the flag x: `/.../x`"
                raise self.error("this regular expression is not closed on its line", len(self.kinds) - 1, hint)
            if len(self.kinds) > most:
                advice = "split it into files, or bind long lists to a slot"
                what = "the grammar has too many names, literals and signs"
                limits.check("symbols", len(self.kinds), what, advice, **self.place(len(self.kinds) - 1))
        if at < len(text):
            raise self._no_token(at)
        self.kinds.append("end")
        self.texts.append("")
        self.starts.append(len(text))

    def error(self, message: str, index: int, hint: str | None = None) -> GrammarError:
        """A GrammarError at a token."""
        return self.error_at(message, self.starts[index], hint)

    def error_at(self, message: str, at: int, hint: str | None = None) -> GrammarError:
        """A GrammarError at an offset."""
        line, column = self.source.place(at)
        return self.source.error(message, hint=hint, line=line, column=column)

    def place(self, index: int) -> dict:
        """A token's place, as :class:`GrammarError` takes it."""
        line, column = self.source.place(self.starts[index])
        return {
            "line": line,
            "column": column,
            "context": self.source.context(line, column),
            "source": self.source.name,
        }

    def named(self, index: int) -> str:
        """A token's place in words."""
        return "line {}, column {}".format(*self.source.place(self.starts[index]))

    def shown(self, index: int) -> str:
        """A token in words."""
        kind, text = self.kinds[index], self.texts[index].strip()
        if kind == "end":
            return "the end of the text"
        if kind in ("rule", "terminal"):
            text = _WORD.match(self.source.text, self.starts[index])[0]
        return "the end of the line" if kind == "newline" else f"`{text if len(text) <= 40 else text[:37] + '...'}`"

    def no_colon(self, name: int, index: int) -> GrammarError:
        """Of a definition that goes on otherwise than with its `:`."""
        following, kind = self.texts[index], self.kinds[index]
        if kind in ("rule", "terminal") and self.starts[index] == self.starts[index - 1] + len(self.texts[index - 1]):
            return self._mixed(self.starts[name])
        if kind == "{":
            return self.error("terminals take no parameters", index, "make it a rule (lower case)")
        hint = f"a definition is written `{self.texts[name]}: ...`"
        if self.kinds[name] == "rule" and following == "-" or kind == "number":
            hint = "names have letters, digits and `_` only"
        elif index == name + 1 and name and self.kinds[name - 1] == "newline":
            hint += "; a line goes on only before `|`, or after a backslash at its end"
        return self.error(f"`:` expected after '{self.texts[name]}', not {self.shown(index)}", index, hint)

    def misplaced(self, index: int) -> GrammarError:
        """Of a token that no alternative can go on with."""
        kind, before = self.kinds[index], self.kinds[index - 1]
        hint = None
        if (
            kind in ("modifiers", "operator")
            and self.texts[index] == "?"
            and self.kinds[index + 1] in ("rule", "terminal")
        ):
            hint = _SPACE
        elif kind == "modifiers":
            hint = "`!` stands only before the name of the rule that is defined"
        elif kind in ("operator", "~"):
            hint = "it stands after what it repeats: a name, a literal or a group"
        elif kind == ":":
            hint = "each definition begins on a line of its own"
        elif kind == "{":
            hint = "a count is written `x~2..5`; arguments `template{a, b}` stand right behind a rule's name"
        elif kind == ",":
            hint = "what follows each other stands side by side, without commas"
            hint = "a count from two to five is written `x~2..5`" if before == "number" else hint
        elif kind == "..":
            hint = 'a range goes from string to string: `"a".."z"`'
        elif kind == "directive":
            hint = "a directive begins on a line of its own"
        elif kind == "number":
            hint = "a count is written `x~2..5`; text in quotes"
        elif kind == "." and before == "terminal":
            hint = "names from other files are imported: `%import file.NAME`"
        return self.error(f"unexpected {self.shown(index)}", index, hint)

    def _mixed(self, at: int) -> GrammarError:
        name = _WORD.match(self.source.text, at)[0]
        hint = f"rules are lower case ({name.lower()}), terminals upper case ({name.upper()}); digits and `_` in either"
        return self.error_at(f"the name '{name}' is neither a rule's nor a terminal's", at, hint)

    def _no_token(self, at: int) -> GrammarError:
        text = self.source.text
        for pattern, message, hint in _SLIPS:
            found = re.compile(pattern).match(text, at)
            if found:
                near = difflib.get_close_matches(found[0], DIRECTIVES, 1)
                if near:
                    hint = f"did you mean {near[0]}? {hint}"
                return self.error_at(message.format(found[0][:40]), at, hint)
        while at and _WORD.match(text[at - 1]):
            at -= 1
        word = _WORD.match(text, at)
        if word:
            hint = "names are made of a-z or A-Z, digits and `_`, and begin with a letter, or `_` and a letter"
            return self.error_at(f"'{word[0][:40]}' is no name", at, hint)
        return self.error_at(f"unexpected character {text[at]!r}", at, "text stands in double quotes")
