"""Where a grammar's text comes from, and where in it something is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lark.exceptions import UnexpectedInput, UnexpectedToken

from constrained.errors import GrammarError

_PACKAGE = Path(__file__).resolve().parent.parent
SHIPPED = next(
    (f for f in (_PACKAGE / "grammars", _PACKAGE.parent / "grammars") if f.is_dir()), _PACKAGE / "grammars"
)
"""The grammars that ship: inside the package in a wheel, beside it in a checkout."""

_DEFINITION = re.compile(
    r"[ \t]*(?:%(?:override|extend)[ \t]+)?[?!]*(\w+)[ \t]*(?:\{[^}]*\}[ \t]*)?(?:\.[ \t]*-?\d+[ \t]*)?:"
)
_SYNTAX = "see the Lark grammar reference; a rule is `name: expansion`, a terminal `NAME: ...`"
_PLACE = re.compile(r",? ?(?:at )?line (\d+),? column (\d+)(?: in (.+?))?(?=: ?$|$)")


@dataclass(frozen=True)
class Source:
    """A grammar's text and the name it goes by in messages."""

    text: str
    name: str
    path: Path | None

    def error(self, message: str, name: str | None = None, hint: str | None = None, line=None, column=None):
        """A GrammarError at `line`/`column`, or where `name` first stands in the text."""
        if line is None and name:
            found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", blank_comments(self.text))
            if found:
                line = self.text.count("\n", 0, found.start()) + 1
                column = found.start() - (self.text.rfind("\n", 0, found.start()) + 1) + 1
        if line is not None and column is None:
            column = 1
        context = ""
        lines = self.text.split("\n")
        if line is not None and 1 <= line <= len(lines):
            context = f"{lines[line - 1]}\n{' ' * ((column or 1) - 1)}^"
        return GrammarError(
            message, line=line, column=column, context=context, hint=hint, source=self.name
        )


def read_source(text_or_path) -> Source:
    """Grammar text, a path, or the name of a grammar that ships, as a :class:`Source`."""
    if isinstance(text_or_path, Path) or (
        isinstance(text_or_path, str) and "\n" not in text_or_path and ":" not in text_or_path
    ) or (isinstance(text_or_path, str) and "\n" not in text_or_path and text_or_path.endswith(".lark")):
        path = Path(text_or_path)
        try:
            if not path.is_file() and (SHIPPED / f"{text_or_path}.lark").is_file():
                path = SHIPPED / f"{text_or_path}.lark"
            return Source(path.read_text(encoding="utf-8"), path.name, path)
        except UnicodeDecodeError as error:
            raise GrammarError(f"{path} is not UTF-8 text: {error}") from None
        except (OSError, ValueError) as error:
            shipped = ", ".join(shipped_names())
            raise GrammarError(
                f"no grammar file {str(text_or_path)!r}: {error}",
                hint=f"give grammar text, a path, or one that ships: {shipped}",
            ) from None
    if not isinstance(text_or_path, str):
        raise GrammarError(f"a grammar is text or a path, not {type(text_or_path).__name__}")
    return Source(text_or_path, "<string>", None)


def shipped_names() -> list[str]:
    """The grammars that ship, by the name `from_lark` takes."""
    return sorted(str(p.relative_to(SHIPPED).with_suffix("")) for p in SHIPPED.rglob("*.lark"))


def definitions(text: str) -> dict[str, list[int]]:
    """Rule or terminal -> the lines its definitions begin on."""
    lines: dict[str, list[int]] = {}
    for number, line in enumerate(blank_comments(text).split("\n"), 1):
        found = _DEFINITION.match(line)
        if found:
            lines.setdefault(found[1], []).append(number)
    return lines


def blank_comments(text: str) -> str:
    """`text` with its comment lines turned into spaces."""
    return re.sub(r"(?m)^[ \t]*(//|#).*$", lambda m: " " * len(m[0]), text)


def explain(source: Source, error: Exception) -> GrammarError:
    """What lark, or the file system, found wrong with `source` or a file that it imports."""
    if isinstance(error, OSError):
        name = Path(error.filename or "").stem
        return source.error(f"can't import {name}: {error.strerror or error}", name)
    if isinstance(error, UnexpectedInput):
        what = "does not parse"
        if isinstance(error, UnexpectedToken):
            what = "the line ends too early" if error.token.type in ("_NL", "$END") else f"unexpected {error.token}"
        return source.error(what, line=error.line, column=error.column, hint=_SYNTAX)
    message = str(error)
    head = message.split("\n", 1)[0]
    place = _PLACE.search(head)
    if place:
        if place[3] and place[3] not in (str(source.path), source.name):  # in an imported file
            path = Path(place[3])
            source = Source(path.read_text(encoding="utf-8") if path.is_file() else "", path.name, path)
        what = _PLACE.sub("", head).strip(" ,:") or "does not parse"
        return source.error(what, line=int(place[1]), column=int(place[2]), hint=_SYNTAX)
    named = re.search(r"'(\w+)'|used for (\w+)|in template (\w+)", head)
    name = next(filter(None, named.groups()), None) if named else None
    line = hint = None
    if "used but not defined" in head:
        hint = "define it, or `%declare` it if it is a slot bound at run time"
    elif "Recursion in terminal" in head:
        hint = "terminals can't be recursive: make it a rule (lower case)"
    elif "more than once" in head:
        line = (definitions(source.text).get(name) or [None])[-1]
        hint = "keep one, or write `%override` or `%extend` before the other"
    elif "Empty terminals" in head:
        name, hint = None, "an empty alternative needs no text: `rule: | \"a\"`"
        at = source.text.find('""')
        if at >= 0:
            line = source.text.count("\n", 0, at) + 1
            return source.error(head, line=line, column=at - source.text.rfind("\n", 0, at), hint=hint)
    return source.error(head, name, hint, line)
