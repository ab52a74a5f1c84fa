"""Where a grammar's text comes from, and places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from constrained.errors import GrammarError, nearest
from constrained.limits import DEFAULT, Limits

_PACKAGE = Path(__file__).resolve().parent.parent
SHIPPED = next((f for f in (_PACKAGE / "grammars", _PACKAGE.parent / "grammars") if f.is_dir()), _PACKAGE / "grammars")
"""The grammars that ship: inside the package in a wheel, beside it in a checkout."""

LIBRARIES = frozenset({"relations"})
"""Shipped files that are only imported from."""

_CONTEXT = 160  # characters of a line that an error shows


@dataclass(frozen=True)
class Source:
    """A grammar's text and the name it goes by in messages; `path` is None for text that is no file's."""

    text: str
    name: str
    path: Path | None

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts[:-1]

    def line_column(self, offset: int) -> tuple[int, int]:
        """The one-based line and column of an offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a one-based line and column."""
        return self._line_starts[line - 1] + column - 1

    def span(self, offset: int, length: int = 0, definition: str | None = None) -> SourceSpan:
        """The span of `length` characters from `offset`; see :class:`SourceSpan`."""
        return SourceSpan(self, offset, length, definition)

    def context(self, line: int, column: int) -> str:
        """The line, with a caret below the column; a long line is cut to the part around it."""
        if not 1 <= line <= len(self._line_starts):
            return ""
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        length = (len(self.text) if end < 0 else end) - start
        first = max(0, min(column - _CONTEXT // 2, length - _CONTEXT)) if length > _CONTEXT else 0
        shown = self.text[start + first : start + min(length, first + _CONTEXT)].rstrip("\r")
        shown = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in shown)
        before = "".join("\t" if c == "\t" else " " for c in shown[: column - 1 - first].ljust(column - 1 - first))
        if first:
            shown, before = f"...{shown}", f"   {before}"
        return f"{shown}{'...' if first + _CONTEXT < length else ''}\n{before}^"

    def error(
        self, message: str, hint: str | None = None, line: int | None = None, column: int | None = None
    ) -> GrammarError:
        """A GrammarError at `line` and `column`, where they are known."""
        if line is None:
            return GrammarError(message, hint=hint, source=self.name)
        column = column or 1
        context = self.context(line, column)
        return GrammarError(message, line=line, column=column, context=context, hint=hint, source=self.name)


class SourceSpan(NamedTuple):
    """Where something is written.

    Attributes
    ----------
    source : Source
        The file: the grammar's own, or one that it imports.
    start : int or None
        The offset of the first character; None: the file as a whole.
    length : int
        In characters; 0 where it is not known.
    definition : str or None
        The rule or terminal in whose definition it stands.
    rule : str or None
        The rule whose text it is part of, where that is known: the terminals of a rule are defined elsewhere.
    """

    source: Source
    start: int | None = None
    length: int = 0
    definition: str | None = None
    rule: str | None = None

    def __str__(self) -> str:
        place = f"{self.source.name}:{self.line}:{self.column}" if self.line else self.source.name
        if self.definition is None:
            return place
        if self.rule in (None, self.definition):
            return f"{'terminal' if self.definition.isupper() else 'rule'} {self.definition}, {place}"
        return f"{self.definition} in rule {self.rule}, {place}"

    def __repr__(self) -> str:  # without the file's text
        return f"<SourceSpan {self}>"

    @property
    def line(self) -> int:
        """The one-based line of the first character; 0 for the file as a whole."""
        return 0 if self.start is None else self.source.line_column(self.start)[0]

    @property
    def column(self) -> int:
        """The one-based column of the first character; 0 for the file as a whole."""
        return 0 if self.start is None else self.source.line_column(self.start)[1]

    @property
    def end(self) -> int | None:
        """The column after the last character; None where it is on another line, or not known."""
        line, column = self.source.line_column((self.start or 0) + self.length)
        return column if self.length and line == self.line else None

    @property
    def context(self) -> str:
        """The line, with a caret under the first character."""
        return self.source.context(self.line, self.column)

    def error(self, message: str, hint: str | None = None, code: str = "refused") -> GrammarError:
        """A GrammarError here; `code`: what `constrained check` calls it."""
        error = self.source.error(message, hint=hint, line=self.line, column=self.column)
        error.code = code
        return error

    def for_error(self) -> dict:
        """The place as the keywords that :class:`GrammarError` takes."""
        return {"line": self.line, "column": self.column, "context": self.context, "source": self.source.name}

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return {
            "rule": self.rule,
            "definition": self.definition,
            "source": self.source.name,
            "line": self.line or None,
            "column": self.column or None,
            "context": self.context,
        }


Place = tuple[Source, int, int, str | None]
"""The first four fields of a :class:`SourceSpan`: each literal has one, and few are ever asked for."""


def read_source(text_or_path: str | Path | Source, limits: Limits = DEFAULT) -> Source:
    """Grammar text, the file at a path, or the shipped grammar of a name as a :class:`Source`.

    One line without a colon, or that ends in ``.lark``, is a path or a name.
    """
    if isinstance(text_or_path, Source):
        return text_or_path
    if isinstance(text_or_path, str) and (
        "\n" in text_or_path or (":" in text_or_path and not text_or_path.endswith(".lark"))
    ):
        return Source(text_or_path.removeprefix("\ufeff"), "<string>", None)
    if not isinstance(text_or_path, (str, Path)):
        raise GrammarError(f"a grammar is text or a path, not {type(text_or_path).__name__}")
    path = Path(text_or_path)
    try:
        if not path.is_file() and (SHIPPED / f"{text_or_path}.lark").is_file():
            path = SHIPPED / f"{text_or_path}.lark"
        if path.suffix.lower() == ".pddl":
            hint = "`constrained import pddl` turns a domain into a .lark file; `constrained plan` takes DOMAIN PROBLEM"
            raise GrammarError(f"{path} is PDDL, not a .lark file", hint)
        return read_file(path, limits)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)[:200]
        hint = "name a file in it" if _is_folder(path) else _alike(path)
        raise GrammarError(f"no grammar file {str(text_or_path)[:200]!r}: {why}", hint) from None


def _alike(path: Path) -> str:
    """A hint for a file that isn't there: one beside it, or one that ships, with nearly the same name."""
    ships = shipped_names()
    if path.suffix != ".lark":
        listed = ", ".join(name for name in ships if "/" not in name)
        return nearest(str(path), ships, f"give the path of a .lark file, or one that ships: {listed}")
    try:
        beside = {one.stem: one for one in islice(path.parent.glob("*.lark"), 1_000) if one != path}
    except (OSError, ValueError):
        beside = {}
    close = get_close_matches(path.stem, beside, 1) if len(path.stem) < 100 else []
    return f"did you mean {beside[close[0]]}?" if close else "is the path right?"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and path.name != ""
    except (OSError, ValueError):
        return False


def read_file(path: Path, limits: Limits) -> Source:
    """Read a `.lark` file; a byte order mark, as some editors write it, is left out.

    Raises OSError: there is no such file. Raises GrammarError: it is too large, or not UTF-8.
    """
    if path.exists() and not path.is_file():  # a folder, or a device that might never end
        raise OSError("it is not a file")
    size = path.stat().st_size
    limits.check("characters", size // 4, f"{path.name} has {size:,} bytes")
    try:
        return Source(path.read_text(encoding="utf-8-sig"), path.name, path)
    except UnicodeDecodeError as error:
        raise GrammarError(f"{path} is not UTF-8 text: {error}", hint="save it as UTF-8") from None


def shipped_names() -> list[str]:
    """The names of the grammars that ship, as `from_lark` takes them."""
    return sorted({str(p.relative_to(SHIPPED).with_suffix("")) for p in SHIPPED.rglob("*.lark")} - LIBRARIES)
