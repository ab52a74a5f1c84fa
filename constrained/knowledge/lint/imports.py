"""The files that a `.lark` file imports from, as outlines."""

from __future__ import annotations

from pathlib import Path

import lark

from constrained.errors import GrammarError
from constrained.grammar.lark_outline import Outline, read_outline
from constrained.grammar.source import SHIPPED, Source, read_source

_STANDARD = Path(lark.__file__).parent / "grammars"


def library(source: Source, dotted: str) -> tuple[Source, Outline] | None:
    """The file that an import's path, its last name aside, stands for; None if it can't be read.

    Parameters
    ----------
    source : Source
        The importing file.
    dotted : str
        As `Definition.library` has it.
    """
    path = dotted.lstrip(".").split(".")[:-1]
    beside = [source.path.parent] if source.path else []
    for folder in beside if dotted.startswith(".") else [SHIPPED, _STANDARD]:
        file = folder.joinpath(*path).with_suffix(".lark")
        if path and file.is_file():
            try:
                found = read_source(file)
            except GrammarError:
                return None  # told of by the loader
            outline = read_outline(found)
            outline.ignored.clear()  # an import brings no %ignore
            return found, outline
    return None
