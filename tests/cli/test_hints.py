"""Commands and options that messages name exist."""

import argparse
import ast
import re
from pathlib import Path

import constrained
from constrained.cli import make_parser

PACKAGE = Path(constrained.__file__).parent
_COMMAND = re.compile(r"(?<![\w-])constrained ([a-z]+)((?: [^`'\"\n]*)?)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def options(parser: argparse.ArgumentParser) -> set[str]:
    """All options of a command and of those below it."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found |= options(below)
    return found


def test_messages_name_commands_and_options_that_exist():
    parser = make_parser("check")
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    named = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            for command, rest in _COMMAND.findall(node.value):
                if command in commands.choices and command != "bench":
                    named += 1
                    known = options(commands.choices[command])
                    unknown = [
                        option for option in _OPTION.findall(rest.split("constrained")[0]) if option not in known
                    ]
                    assert not unknown, f"{path.name}: `constrained {command}{rest}` has no {unknown}"
    assert named > 20
