"""Small text patterns, for what answers say and how tasks are worded.

``On the {p}, you see {t, ...}.`` has a hole for a name and one for a list of names; in ``You see:{t; ...}`` each name
is on a line of its own. ``(put|place) a[n] {K}`` has alternatives and an optional part (with a space beside it). A
backslash escapes the next character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

MAX_TEXT = 20_000
"""Characters of an answer or a task that are read."""

_HOLE = re.compile(r"\{\s*([A-Za-z_][\w-]*)\s*(?:([,;])\s*\.\.\.)?\s*\}")
_BRACKETS = r"\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)"
_WRITTEN = {
    None: r"([^.,;:!?()\n]+?)",
    ",": rf"((?:[^.()\n]|{_BRACKETS})*?)",
    ";": r"((?:[^\S\n]*\n[^\S\n]+\S[^\n]*)*)",
}
"""The text in a hole for a name, for a list of names, and for a list of indented lines."""
_ASIDE = re.compile(rf" ?{_BRACKETS}|, (?:which|currently) [^,.\n]*")
"""A remark behind a name in a list."""
_ARTICLE = re.compile(r"(?:an?|the|some|any) (?:\w+ (?:called|titled) )?", re.IGNORECASE)
_BETWEEN = re.compile(r",? and |, ?")
_LINES = re.compile(r"\n\s*")
_NONE = ("", "nothing", "none", "no one")


class PatternError(ValueError):
    """A pattern that can't be read; the second argument is the character at which it fails."""


class Pattern:
    """A text with holes.

    Parameters
    ----------
    text : str

    Attributes
    ----------
    holes : dict of str to bool
        Name of a hole -> whether it holds a list.

    Raises
    ------
    PatternError
        A bracket is never closed, or a hole has no name or occurs twice.
    """

    def __init__(self, text: str):
        self.text = text
        self.holes: dict[str, bool] = {}
        self._groups: list[str] = []
        self._pieces: list[str | tuple[str, str | None]] = []  # what `write` writes: texts, and holes with their mark
        self._regex = re.compile(self._read(), re.IGNORECASE)

    def _read(self) -> str:
        text, at = self.text, 0
        # One pass writes the regular expression (`out`) and what `write` needs (`_pieces`). `open_at`: the open
        # brackets, with their place and the number of pieces before them.
        out: list[str] = []
        open_at: list[tuple[str, int, int]] = []
        while at < len(text):
            sign = text[at]
            if sign == "\\" and at + 1 < len(text):
                at += 1
                self._literal(out, text[at])
            elif sign == "{":
                hole = _HOLE.match(text, at)
                if hole is None:
                    raise PatternError("a hole is written {name}, or {name, ...} for a list", at)
                name = hole[1]
                if name in self.holes:
                    raise PatternError(f"the hole {{{name}}} occurs twice", at)
                self.holes[name] = bool(hole[2])
                self._groups.append(name)
                self._pieces.append((name, hole[2]))
                out.append(_WRITTEN[hole[2]])
                at = hole.end() - 1
            elif sign in "([":
                open_at.append((sign, at, len(self._pieces)))
                out.append("(?:" if sign == "(" else "(?:(?:")
            elif sign in ")]":
                if not open_at or open_at[-1][0] != {")": "(", "]": "["}[sign]:
                    raise PatternError(f"this `{sign}` closes nothing", at)
                _, start, pieces = open_at.pop()
                if sign == "]":
                    out.append(")")
                if sign == "]" and text[at + 1 : at + 2] == " " and (start == 0 or text[start - 1] == " "):
                    out.append(r"\ ")  # one of the spaces around a word belongs to it
                    at += 1
                out.append(")?" if sign == "]" else ")")
                # `write` writes the first alternative, and no optional part
                bar = next((i for i in range(pieces, len(self._pieces)) if self._pieces[i] == "|"), None)
                if sign == "]":
                    del self._pieces[pieces:]
                elif bar is not None:
                    del self._pieces[bar:]
            elif sign == "|" and open_at:
                out.append("|")
                self._pieces.append("|")
            else:
                self._literal(out, sign)
            at += 1
        if open_at:
            raise PatternError(f"this `{open_at[-1][0]}` is never closed", open_at[-1][1])
        if out and out[-1] in _WRITTEN.values():
            out[-1] = out[-1].replace("?)", ")")  # a name at the end is whole
        return "".join(out)

    def _literal(self, out: list[str], sign: str) -> None:
        out.append(re.escape(sign))
        self._pieces.append(sign if sign != "|" else "\\|")

    def find(self, text: str) -> Iterator[dict[str, list[str]]]:
        """The names in the holes for each match in a text; a hole for one name has a list of one.

        Matches are also found in the brackets of a list: "a box (holding a cup (holding tea), a pen)".
        """
        for match in self._regex.finditer(text[:MAX_TEXT]):
            yield self._values(match)
            for number, name in enumerate(self._groups, 1):
                if self.holes[name] and "(" in (match[number] or ""):
                    yield from self.find(match[number])

    def found_in(self, text: str) -> bool:
        """Whether a text contains a match."""
        return self._regex.search(text[:MAX_TEXT]) is not None

    def begins(self, text: str) -> bool:
        """Whether a text begins with a match."""
        return self._regex.match(text[:MAX_TEXT]) is not None

    def match(self, text: str) -> dict[str, list[str]] | None:
        """The names in the holes if the whole text matches, else None."""
        match = self._regex.fullmatch(text[:MAX_TEXT])
        return None if match is None else self._values(match)

    def _values(self, match: re.Match[str]) -> dict[str, list[str]]:
        return {
            name: names_in(written) if self.holes[name] else [without_article(written)]
            for name, written in zip(self._groups, match.groups())
            if written is not None
        }

    def write(self, values: Mapping[str, Sequence[str]]) -> str:
        """The text with its holes filled, with the first of alternatives and without optional parts."""
        out: list[str] = []
        for piece in self._pieces:
            if isinstance(piece, tuple):
                names = values[piece[0]]
                if piece[1] == ";":
                    out += (f"\n\ta {name}" for name in names)
                else:
                    list_of = joined if "".join(out).endswith("the ") else listed
                    out.append(list_of(names) if piece[1] else names[0])
            else:
                out.append("|" if piece == "\\|" else piece)
        return "".join(out)


def without_article(name: str) -> str:
    """A name without the article before it."""
    name = name.strip()
    return name[match.end() :] if (match := _ARTICLE.match(name)) else name


def names_in(written: str) -> list[str]:
    """The names in a list such as "a mug 2, a pen 1 (red), and a book 1", or on lines; none in "nothing"."""
    between = _LINES if "\n" in written else _BETWEEN
    names = (without_article(re.split("[.,:;]", name)[0]) for name in between.split(_ASIDE.sub("", written.strip())))
    return [name for name in names if name.lower() not in _NONE]


def listed(names: Sequence[str]) -> str:
    """Names as a list that `names_in` can read: "a mug 2, and a pen 1", with "a" even before vowels."""
    return joined([f"a {name}" for name in names]) or "nothing"


def joined(parts: Sequence[str]) -> str:
    """Parts joined to a list, with a comma before "and" even between two, as ALFWorld's games write it."""
    return ", and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
