"""The files that a `.lark` file imports from, as outlines."""

from __future__ import annotations

from pathlib import Path

import lark

from constrained.errors import GrammarError
from constrained.grammar.lark_outline import IMPORT, Outline, OutlineEntry, read_outline
from constrained.grammar.source import SHIPPED, read_source

_STANDARD = Path(lark.__file__).parent / "grammars"


def library(outline: Outline, imported: OutlineEntry) -> Outline | None:
    """The outline of the file that an import names; None if it can't be read, or `imported` is no import."""
    path = imported.library.lstrip(".").split(".")[:-1]
    if imported.kind != IMPORT or not path:
        return None
    folders = [SHIPPED, _STANDARD]
    if imported.library.startswith("."):
        folders = [outline.source.path.parent] if outline.source.path else []
    for folder in folders:
        file = folder.joinpath(*path).with_suffix(".lark")
        if file.is_file():
            try:
                found = read_outline(read_source(file))
            except GrammarError:
                return None  # the loader reports it
            found.ignored.clear()  # an import brings no %ignore
            return found
    return None
