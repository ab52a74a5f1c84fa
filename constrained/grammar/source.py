"""Where a grammar's text comes from, and where in it something is wrong."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from constrained.errors import GrammarError
from constrained.limits import DEFAULT, Limits

_PACKAGE = Path(__file__).resolve().parent.parent
SHIPPED = next((f for f in (_PACKAGE / "grammars", _PACKAGE.parent / "grammars") if f.is_dir()), _PACKAGE / "grammars")
"""The grammars that ship: inside the package in a wheel, beside it in a checkout."""

LIBRARIES = frozenset({"relations"})
"""Files among them that are only imported from."""

_CONTEXT = 160  # characters of a line that an error shows


@dataclass(frozen=True)
class Source:
    """A grammar's text and the name it goes by in messages."""

    text: str
    name: str
    path: Path | None

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line begins."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def place(self, at: int) -> tuple[int, int]:
        """One-based line and column of an offset."""
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1

    def context(self, line: int, column: int) -> str:
        """The line, with a caret below the column; a long one cut to what is around it."""
        if not 1 <= line <= len(self._lines):
            return ""
        start = self._lines[line - 1]
        end = self.text.find("\n", start)
        length = (len(self.text) if end < 0 else end) - start
        first = max(0, min(column - _CONTEXT // 2, length - _CONTEXT)) if length > _CONTEXT else 0
        shown = self.text[start + first : start + min(length, first + _CONTEXT)].rstrip("\r")
        shown = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in shown)
        before = "".join("\t" if c == "\t" else " " for c in shown[: column - 1 - first].ljust(column - 1 - first))
        if first:
            shown, before = f"...{shown}", f"   {before}"
        return f"{shown}{'...' if first + _CONTEXT < length else ''}\n{before}^"

    def error(self, message: str, name: str | None = None, hint: str | None = None, line=None, column=None):
        """A GrammarError at `line`/`column`, or where `name` first stands in the text."""
        if line is None and name:
            found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", blank_comments(self.text))
            if found:
                line, column = self.place(found.start())
        if line is not None and column is None:
            column = 1
        context = self.context(line, column) if line is not None else ""
        return GrammarError(message, line=line, column=column, context=context, hint=hint, source=self.name)


def read_source(text_or_path, limits: Limits = DEFAULT) -> Source:
    """Grammar text, a path, or the name of a grammar that ships, as a :class:`Source`; a source as it is.

    One line without a colon, or that ends in ``.lark``, is a path or a name.
    """
    if isinstance(text_or_path, Source):
        return text_or_path
    if isinstance(text_or_path, str) and ("\n" in text_or_path or ":" in text_or_path):
        if "\n" in text_or_path or not text_or_path.endswith(".lark"):
            return Source(text_or_path.removeprefix("\ufeff"), "<string>", None)
    if not isinstance(text_or_path, (str, Path)):
        raise GrammarError(f"a grammar is text or a path, not {type(text_or_path).__name__}")
    path = Path(text_or_path)
    try:
        if not path.is_file() and (SHIPPED / f"{text_or_path}.lark").is_file():
            path = SHIPPED / f"{text_or_path}.lark"
        return read_file(path, limits)
    except (OSError, ValueError) as error:
        shipped = ", ".join(shipped_names())
        raise GrammarError(
            f"no grammar file {str(text_or_path)[:200]!r}: {str(error)[:200]}",
            hint=f"give grammar text, a path, or one that ships: {shipped}",
        ) from None


def read_file(path: Path, limits: Limits) -> Source:
    """A `.lark` file; a byte order mark, as some editors write it, is no part of its text.

    Raises
    ------
    OSError
        There is no such file.
    GrammarError
        It is too large, or not UTF-8.
    """
    if path.exists() and not path.is_file():  # a folder; or a device, which might never end
        raise OSError("it is not a file")
    size = path.stat().st_size
    limits.check("characters", size // 4, f"{path.name} has {size:,} bytes")
    try:
        return Source(path.read_text(encoding="utf-8-sig"), path.name, path)
    except UnicodeDecodeError as error:
        raise GrammarError(f"{path} is not UTF-8 text: {error}", hint="save it as UTF-8") from None


def shipped_names() -> list[str]:
    """The grammars that ship, by the name `from_lark` takes."""
    return sorted({str(p.relative_to(SHIPPED).with_suffix("")) for p in SHIPPED.rglob("*.lark")} - LIBRARIES)


def blank_comments(text: str) -> str:
    """`text` with its comment lines turned into spaces."""
    return re.sub(r"(?m)^[ \t]*(//|#).*$", lambda m: " " * len(m[0]), text)
