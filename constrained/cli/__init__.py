"""The command line: `constrained COMMAND`, each command a module."""

from __future__ import annotations

import argparse
import os
import sys

from constrained import __version__
from constrained.cli import bench, check, distill, explain, import_, lsp, new, plan, playground, plot, show, train, view
from constrained.errors import ConstrainedError

_COMMANDS = (plan, new, check, show, explain, view, playground, import_, distill, train, bench, plot, lsp)


def make_parser() -> argparse.ArgumentParser:
    """The whole command line; the documentation's page of commands is made from it."""
    parser = argparse.ArgumentParser(
        prog="constrained",
        description="Language-model agents that cannot write an invalid plan.",
        epilog='Start with: constrained plan "put a clean mug in the coffeemachine"',
    )
    parser.add_argument("--version", action="version", version=f"constrained {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 if it went well, 1 with one clear message if not."""
    parser = make_parser()
    arguments, rest = parser.parse_known_args(argv)
    if not _take_up(arguments, rest):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return arguments.run(arguments) or 0
    except ConstrainedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever reads us has seen enough, `head` say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _take_up(arguments, rest: list[str]) -> bool:
    """Join words after an option to those before it, which argparse does not; whether they belong there."""
    if any(word.startswith("-") for word in rest):
        return False
    if hasattr(arguments, "action"):
        arguments.action += rest
    elif len(rest) == 1 and getattr(arguments, "path", None) == "":
        arguments.path = rest[0]
    else:
        return not rest
    return True


if __name__ == "__main__":
    sys.exit(main())
