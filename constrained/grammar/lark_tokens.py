"""The tokens and comments of `.lark` text, and the error messages for a token in the wrong place."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from itertools import accumulate, compress

from constrained.errors import GrammarError
from constrained.grammar.source import Source
from constrained.limits import Limits

DIRECTIVES = ("%declare", "%extend", "%ignore", "%import", "%override")

_STRING = r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"i?'
_REGEX = r"/(?!/)(?:[^/\\]|\\[\s\S])*/[imslux]*"
_COMMENT = r"(?://|\#)[^\n]*"

# A token, and the blanks after it. A newline token includes all blank space and comments after the line break. Other
# comments, and backslashes at the end of a line, are tokens that are dropped later. The most frequent alternatives come
# first, and each begins with a character or a class rather than a group, so that `re` can skip it by looking at one
# character.
_TOKEN = re.compile(
    rf"""(?:
        [a-z][_a-z0-9]*
      | [|:(),~{{}}\[\]]
      | [A-Z][_A-Z0-9]*
      | {_STRING}
      | \n\s*(?:{_COMMENT}\s*)*
      | \r\n\s*(?:{_COMMENT}\s*)*
      | \.\.? | ->
      | {_REGEX}
      | [+-]?\d+
      | (?:!\??|\?!?)(?=[_a-z])
      | [+*?]
      | _[a-z][_a-z0-9]* | _[A-Z][_A-Z0-9]*
      | %(?:declare|extend|ignore|import|override)
      | {_COMMENT} | [^\S\n \t]\s*(?:{_COMMENT})? | \\[ ]*\r?\n
      | [^ \t]
    )[ \t]*""",
    re.VERBOSE,
)
_UNDECIDED, _SKIPPED = "undecided", "skipped"
"""Kinds that no token keeps: of `?` and `!`, which are modifiers before a name; of comments and continued lines."""
_BY_FIRST = {
    **{chr(code): "" for code in range(128)},
    **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "rule"),
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "terminal"),
    **{sign: sign for sign in "|:(),~{}[]"},
    **dict.fromkeys("0123456789", "number"),
    "*": "operator",
    '"': "string",
    "\n": "newline",
}
"""The kind of a token by its first character, an ASCII one; empty where the others matter, too."""


_TEXT_OR_COMMENT = re.compile(rf"{_STRING}|{_REGEX}|(?P<comment>{_COMMENT})")
_WORD = re.compile(r"\w+")
_SPACE = "a space parts `?` from the name after it: `x? y`"
# what slips and other notations look like here: (pattern, message, hint)
_MISTAKES = (
    (r"'", "strings stand in double quotes", "write \"...\" for '...'"),
    (r'"', "this string is never closed", 'close it with `"` on the same line; a quote inside is written `\\"`'),
    (r"/", "this regular expression is never closed", "close it with `/`; a slash inside is written `\\/`"),
    (r";", "unexpected `;`", "a definition ends with its line: leave `;` out"),
    (r"=", "unexpected `=`", "a rule is written `name: ...`, a terminal `NAME: ...`; a %declare has names alone"),
    (r"<", "unexpected `<`", "names stand by themselves, without `<` and `>`"),
    (r"-", "unexpected `-`", "names have letters, digits and `_`; `-` is none of these"),
    (r"%\w*", "unknown directive {0}", "the directives are " + ", ".join(DIRECTIVES)),
    (r"!", "unexpected `!`", "`!` stands only before the name of the rule that is defined"),
    (r"\\", "unexpected `\\`", "a backslash continues a line only at its very end"),
    (r"\r", "a lone carriage return is no line end", "end lines with \\n or \\r\\n"),
)


def word_at(text: str, offset: int) -> str:
    """The word that begins at an offset."""
    match = _WORD.match(text, offset)
    return match[0] if match else ""


@dataclass(frozen=True)
class Comment:
    """A comment: its text without the mark, its line, and whether nothing else stands on that line."""

    text: str
    offset: int
    line: int
    alone: bool


def comments(text: str) -> list[Comment]:
    """The comments of a `.lark` text, in order; never raises for what is wrong in it."""
    out = []
    line, counted = 1, 0
    for match in _TEXT_OR_COMMENT.finditer(text):
        comment = match["comment"]
        if comment is None:
            continue
        offset = match.start()
        line, counted = line + text.count("\n", counted, offset), offset
        alone = not text[text.rfind("\n", 0, offset) + 1 : offset].strip()
        out.append(Comment(comment[2 if comment[0] == "/" else 1 :].strip(), offset, line, alone))
    return out


def blank_comments(text: str) -> str:
    """`text` with its comments turned into spaces."""
    return _TEXT_OR_COMMENT.sub(lambda found: " " * len(found[0]) if found["comment"] else found[0], text)


def _kind(text: str) -> str:
    """The kind of a token, with the blanks after it, that its first character alone doesn't tell."""
    first = text[0]
    text = text.rstrip(" \t")
    second = text[1:2]
    if first == "/" and second:
        return _SKIPPED if second == "/" else "regex"
    if first in "?!":
        return _UNDECIDED
    if first == "." or text == "->":
        return text
    if first.isdecimal() or (first in "+-" and second):  # other digits than ASCII's, too
        return "number"
    if first == "+":
        return "operator"
    if first == "_" and second:
        return "rule" if second.islower() else "terminal"
    if first == "\r" and second == "\n":
        return "newline"
    if first == "#" or first.isspace() and not text.isspace():
        return _SKIPPED
    kinds = {"%": "directive", "\\": _SKIPPED}
    return kinds.get(first, "bad") if second else "bad"


class Tokens:
    """A text's tokens: their kinds, texts and offsets, side by side, without blanks and comments.

    The kind of a sign is the sign itself; the last token is of kind "end".

    Raises GrammarError: some text is no token. Raises LimitError: there are more than there may be.
    """

    def __init__(self, source: Source, limits: Limits):
        self.source = source
        # One call of `re` finds all tokens, and each token's first character nearly always tells its kind: what is left
        # to do one by one is rare.
        tokens = _TOKEN.findall(source.text)
        begin = len(source.text) - len(source.text.lstrip(" \t"))
        self.starts: list[int] = list(accumulate(map(len, tokens), initial=begin))
        self.texts: list[str] = [*map(str.rstrip, tokens), ""]
        by_first = _BY_FIRST if source.text.isascii() else {t[0]: _BY_FIRST.get(t[0], "") for t in tokens}
        self.kinds: list[str] = [by_first[text[0]] or _kind(text) for text in tokens]
        self.kinds.append("end")
        if '"' in self.texts:  # a string that is never closed
            self.kinds = ["bad" if text == '"' else kind for kind, text in zip(self.kinds, self.texts)]
        kinds = set(self.kinds)
        if _UNDECIDED in kinds:
            self._decide()
            kinds.update(self.kinds)
        if _SKIPPED in kinds:
            kept = [kind != _SKIPPED for kind in self.kinds]
            self.kinds, self.texts = list(compress(self.kinds, kept)), list(compress(self.texts, kept))
            self.starts = list(compress(self.starts, kept))
        if "bad" in kinds:
            for index in range(self.kinds.index("bad")):
                self.check_regex(index)
            raise self._no_token(self.starts[self.kinds.index("bad")])
        count = len(self.kinds) - 1
        if count > limits.symbols:
            advice = "split it into files, or bind long lists to a slot"
            what = "the grammar has too many names, literals and signs"
            limits.check("symbols", count, what, advice, **self.for_error(limits.symbols))

    def _decide(self) -> None:
        """Tell modifiers from operators."""
        for index, (kind, text, start) in enumerate(zip(self.kinds, self.texts, self.starts)):
            if kind == _UNDECIDED:
                after = start + len(text)
                following = self.source.text[after : after + 1]
                modifies = following == "_" or "a" <= following <= "z"
                self.kinds[index] = "modifiers" if modifies else "operator" if text == "?" else "bad"

    def check_regex(self, index: int) -> None:
        """Raise GrammarError if a token is a regular expression that goes on over its line's end by mistake."""
        text = self.texts[index]
        if "\n" in text and self.kinds[index] == "regex" and "x" not in text[text.rindex("/") :]:
            hint = "close it with `/`; over several lines it is written with the flag x: `/.../x`"
            raise self.error("this regular expression is not closed on its line", index, hint)

    def error(self, message: str, index: int, hint: str | None = None) -> GrammarError:
        """A GrammarError at a token."""
        return self.error_at(message, self.starts[index], hint)

    def error_at(self, message: str, at: int, hint: str | None = None) -> GrammarError:
        """A GrammarError at an offset."""
        return self.source.span(at).error(message, hint)

    def for_error(self, index: int) -> dict:
        """A token's place as the keywords that :class:`GrammarError` takes."""
        return self.source.span(self.starts[index]).for_error()

    def named(self, index: int) -> str:
        """A token's place in words."""
        return "line {}, column {}".format(*self.source.line_column(self.starts[index]))

    def shown(self, index: int) -> str:
        """A token in words."""
        kind, text = self.kinds[index], self.texts[index].strip()
        if kind == "end":
            return "the end of the text"
        if kind in ("rule", "terminal"):
            text = word_at(self.source.text, self.starts[index])
        return "the end of the line" if kind == "newline" else f"`{text if len(text) <= 40 else text[:37] + '...'}`"

    def no_colon(self, name: int, index: int) -> GrammarError:
        """The error for a definition without its `:`."""
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
        """The error for a token that can't stand in an alternative."""
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
        name = word_at(self.source.text, at)
        hint = f"rules are lower case ({name.lower()}), terminals upper case ({name.upper()}); digits and `_` in either"
        return self.error_at(f"the name '{name}' is neither a rule's nor a terminal's", at, hint)

    def _no_token(self, at: int) -> GrammarError:
        text = self.source.text
        for pattern, message, hint in _MISTAKES:
            match = re.compile(pattern).match(text, at)
            if match:
                near = difflib.get_close_matches(match[0], DIRECTIVES, 1)
                if near:
                    hint = f"did you mean {near[0]}? {hint}"
                return self.error_at(message.format(match[0][:40]), at, hint)
        while at and _WORD.match(text[at - 1]):
            at -= 1
        word = _WORD.match(text, at)
        if word:
            hint = "names are made of a-z or A-Z, digits and `_`, and begin with a letter, or `_` and a letter"
            return self.error_at(f"'{word[0][:40]}' is no name", at, hint)
        return self.error_at(f"unexpected character {text[at]!r}", at, "text stands in double quotes")
