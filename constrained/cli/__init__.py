"""The command line, `constrained COMMAND`: the parser, and how errors become messages and exit codes."""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import sys

from constrained import interrupts
from constrained.cli import bench, check, explain, knowledge_files, plan, serve, show, train
from constrained.cli.parser import CommandParser, examples
from constrained.errors import ConstrainedError
from constrained.version import __version__

COMMANDS = (
    plan.add_parser,
    knowledge_files.add_new,
    check.add_parser,
    show.add_parser,
    explain.add_parser,
    serve.add_view,
    serve.add_playground,
    serve.add_serve,
    knowledge_files.add_import,
    knowledge_files.add_export,
    knowledge_files.add_distill,
    train.add_parser,
    bench.add_bench,
    bench.add_plot,
    serve.add_lsp,
)
"""Each adds one command to the parser; in the order of `constrained --help`."""


ESCAPE = "constrained.escape"
"""The error handler that writes what the terminal's encoding lacks as JSON escapes it."""


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPE, _escape)


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; the documentation's page of commands is generated from it.

    Parameters
    ----------
    command : str, optional
        The command that it will parse. Unless that is `bench`, the benchmarks are not imported, which takes a second.
    """
    parser = CommandParser(
        prog="constrained",
        description="Token masks that keep a language-model agent to the actions it may take. What it may do stands in "
        "a .lark file, its action knowledge.",
        epilog=examples(
            'constrained plan "put a clean mug in the coffeemachine"',
            "constrained new --world den && constrained plan den.lark",
            "constrained plan --help",
        ),
    )
    parser.add_argument("--version", action="version", version=f"constrained {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add_command in COMMANDS:
        if add_command is bench.add_bench and command not in (None, "bench"):
            commands.add_parser("bench", help=bench.HELP)
        else:
            add_command(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code.

    0, or 1 after one message on standard error; 3: it is proven that a goal can't be reached; 130: interrupted.
    """
    try:
        with interrupts.raised():
            return _run(argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return interrupts.INTERRUPTED


def _run(argv: list[str] | None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=ESCAPE)
    words = knowledge_files.with_kind(sys.argv[1:] if argv is None else argv)
    parser = make_parser(words[0] if words else "")
    for word in words:
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in word):
            # surrogates are how Python shows bytes of the shell that are no UTF-8
            print(f"error: the argument {word[:80]!a} is not UTF-8 text", file=sys.stderr)
            return 1
    arguments, rest = parser.parse_known_args(words)
    if not _join_rest(arguments, rest):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return arguments.run(arguments) or 0
    except ConstrainedError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _join_rest(arguments, rest: list[str]) -> bool:
    """Add words after an option to the positional ones, which argparse doesn't; return whether they belong there."""
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
