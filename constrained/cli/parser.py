"""The parser class of every command: how its help is laid out."""

from __future__ import annotations

import argparse
from pathlib import Path

from constrained.cli.options import seconds, whole_number


class HelpLayout(argparse.HelpFormatter):
    """Keeps the lines of examples, and names the value of an option after its type."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "\n".join(f"{indent}{line}" for line in text.splitlines())
        return super()._fill_text(text, width, indent)

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        if action.type in (int, whole_number):
            return "N"
        if action.type in (float, seconds):
            return "X"
        return "PATH" if action.type is Path else super()._get_default_metavar_for_optional(action)


class CommandParser(argparse.ArgumentParser):
    """A parser of a command; those of the commands in it are of this class, too."""

    def __init__(self, *args, **more):
        super().__init__(*args, **{"formatter_class": HelpLayout, **more})


def examples(*commands: str, note: str = "") -> str:
    """The end of a command's help: how it is called, a line each, and a remark before them."""
    return "\n".join([*([note, ""] if note else []), "examples:" if len(commands) > 1 else "example:",
                      *(f"  {command}" for command in commands)])  # fmt: skip
