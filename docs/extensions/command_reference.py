"""The page of commands, written from the parsers themselves, so that it says what the commands say.

The line `<!-- every command -->` of a page becomes a section for each command, with its options.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator

from constrained.cli import make_parser

MARK = "<!-- every command -->"
WIDTH = "88"
"""Columns that usage lines are wrapped to."""


def every_command(parser: argparse.ArgumentParser, level: int = 2) -> Iterator[str]:
    """Markdown for each command of `parser`, and for those within them."""
    for inner in (action for action in parser._actions if isinstance(action, argparse._SubParsersAction)):
        for command in inner.choices.values():
            yield from section(command, level)
            yield from every_command(command, level + 1)


def section(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """A command: what it does, how it is called, and each of its arguments and options."""
    yield f"{'#' * level} `{parser.prog}`\n"
    if parser.description:
        yield f"{escaped(parser.description)}\n"
    if parser._subparsers is not None:
        return  # its commands follow
    yield f"```text\n{parser.format_usage().removeprefix('usage: ')}```\n"
    formatter = parser._get_formatter()  # knows whether defaults are told
    for action in parser._actions:
        if action.help and action.dest != "help":
            yield f"`{_call(action, formatter)}`\n: {escaped(formatter._expand_help(action))}\n"
    if parser.epilog:
        yield f"```text\n{parser.epilog}\n```\n"


def _call(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    """How it is written: `--seed N`."""
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}"
        if action.choices
        else formatter._get_default_metavar_for_optional(action)
    )
    if not action.option_strings:
        return str(action.metavar or action.dest)
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def escaped(words: str) -> str:
    """Plain words as Markdown; options in them are code."""
    plain = re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", " ".join(words.split()))
    return re.sub(r"(?<!\S)(--[a-z][a-z-]*)", r"`\1`", plain)


def _fill(app, docname: str, source: list[str]) -> None:
    if MARK in source[0]:
        columns = os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = WIDTH
        try:
            source[0] = source[0].replace(MARK, "\n".join(every_command(make_parser())))
        finally:
            os.environ.pop("COLUMNS")
            if columns is not None:
                os.environ["COLUMNS"] = columns


def setup(app):
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}
