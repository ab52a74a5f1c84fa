r"""The notation of the `.cases` files beside this one.

    === the name of a case                    one idea, the grammar below it indented
    lark                                      or `regex`, `regex is` (flags), `choices` (one a line)
        start: "a" WORD
        %import .words.WORD
    file words.lark                           a file that the grammar imports
        WORD: /\w+/
    start rule                                another start than `start`
    bind THING = ["cup", "pan"]               a slot's values as JSON; or a /regex/, or: lark start: "(" start ")" | "x"
    means                                     a plain lark grammar of the same language, which the oracles read instead
        start: "a cup" | "a pan"
    chart only: why                           lark's parser is known to differ: the chart alone is the oracle
    fault: what                               the engine is known to be wrong
    + a text of the language
    - a text that nothing completes
    - abc»d                                   the same; it dies at the character after »
    ~ a text that is not whole, but begins one

A text is what stands after the sign and one space, with Python's escapes (`\n`, `\x20`, `\u00e9`, `\\`); nothing is
the empty text, and `‹ab›×300` stands for 300 times `ab`. Of long texts the oracles get a short form, where all counts
are lowered by as much, or to what follows a slash: `‹a›×200/8‹b›×100/4`. Lines that begin with `#` are remarks.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from constrained import Grammar

_TIMES = re.compile(r"‹(.*?)›×(\d+)(?:/(\d+))?")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "a": re.ASCII, "m": re.MULTILINE, "x": re.VERBOSE, "u": re.UNICODE}
LONG = 300
"""Characters above which a text is long: not walked at every prefix, nor cut in several ways."""
FEW = 4
"""What the smallest count of a long text becomes for the oracles."""


@dataclass
class Text:
    """A text and what is said of it.

    Attributes
    ----------
    sign : str
        `+`, `-` or `~`.
    text : str
    dies : int or None
        Characters of it that still begin a text; the next one doesn't.
    small : str
        For oracles that take their time: the short form of a long text.
    """

    sign: str
    text: str
    dies: int | None
    small: str


@dataclass
class Case:
    """A grammar and its texts."""

    name: str
    place: str
    kind: str = "lark"
    flags: int = 0
    body: str = ""
    start: str = "start"
    files: dict[str, str] = field(default_factory=dict)
    binds: dict[str, str] = field(default_factory=dict)
    means: str | None = None
    chart_only: str | None = None
    fault: str | None = None
    texts: list[Text] = field(default_factory=list)

    def grammar(self, folder: Path) -> Grammar:
        """The engine's reading; `folder` takes the files."""
        if self.kind == "regex":
            return Grammar.from_regex(self.body, self.flags)
        if self.kind == "choices":
            return Grammar.from_choices([unescape(line) for line in self.body.split("\n")])
        grammar = Grammar.from_lark(self.source(folder), start=self.start)
        return grammar.bind(**{name: bound(value) for name, value in self.binds.items()}) if self.binds else grammar

    def source(self, folder: Path) -> Path | str:
        """The grammar's text; its path if it imports files."""
        if not self.files:
            return self.body + "\n"
        for name, text in {**self.files, "main.lark": self.body}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        return folder / "main.lark"


def bound(value: str):
    """What a slot is bound to."""
    if value.startswith("/"):
        return Grammar.from_regex(value[1:-1])
    if value.startswith("lark "):
        return Grammar.from_lark(value.removeprefix("lark ") + "\n")
    return json.loads(value)


def unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: _LETTERS[m[1]] if len(m[1]) == 1 else chr(int(m[1][1:], 16)), text)


def read_text(sign: str, written: str) -> Text:
    whole = unescape(_TIMES.sub(lambda m: m[1] * int(m[2]), written))
    less = max(min((int(m[2]) for m in _TIMES.finditer(written)), default=0) - FEW, 0)
    small = unescape(_TIMES.sub(lambda m: m[1] * (int(m[3]) if m[3] else int(m[2]) - less), written))
    dies = whole.index("»") if "»" in whole else None
    whole, small = whole.replace("»", ""), small.replace("»", "")
    return Text(sign, whole, dies, small if len(whole) > LONG else whole)


def read_cases(path: Path) -> list[Case]:
    """The cases of one file.

    Raises
    ------
    ValueError
        A line that is no part of the notation.
    """
    cases: list[Case] = []
    block: list[str] | None = None  # lines of the block being read
    blocks: list[tuple[Case, str, list[str]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        place = f"{path.name}:{number}"
        if line.startswith("    ") and block is not None:
            block.append(line[4:])
            continue
        if line.startswith("===") and (name := line[3:].strip()):
            case = Case(name, place)
            cases.append(case)
            continue
        if not line.strip() or line.startswith("#"):
            if block:
                block.append("")
            continue
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word in ("lark", "regex", "choices"):
            case.kind = word
            case.flags = sum(_FLAGS[letter] for letter in rest)
            blocks.append((case, "body", block := []))
        elif word == "means":
            blocks.append((case, "means", block := []))
        elif word == "file":
            blocks.append((case, rest, block := []))
        elif word == "start":
            case.start = rest
        elif word == "bind":
            slot, _, value = rest.partition(" = ")
            case.binds[slot] = value
        elif line.startswith("chart only: "):
            case.chart_only = line.removeprefix("chart only: ")
        elif line.startswith("fault: "):
            case.fault = line.removeprefix("fault: ")
        elif word in ("+", "-", "~"):
            case.texts.append(read_text(word, line[2:]))
        else:
            raise ValueError(f"{place}: what is {line!r}?")
    for case, name, lines in blocks:
        text = "\n".join(lines).rstrip("\n")
        if name in ("body", "means"):
            setattr(case, name, text)
        else:
            case.files[name] = text
    return cases


def oracle_case(case: Case) -> Case:
    """What the oracles read for `case`; `re` takes long texts as they are."""
    return case if case.means is None else replace(case, kind="lark", body=case.means, start="start", files={})
