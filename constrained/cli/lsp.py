"""`constrained lsp`: the language server for editors."""

from __future__ import annotations

import sys

from constrained.errors import needs_extra


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "lsp",
        help="serve an editor: what `constrained check` finds, as you type",
        description="A language server for .lark files, spoken to over standard input and output: what `constrained "
        "check` finds as you type, what an action is and what may follow it, and where a name is defined. Editors "
        "start it themselves; docs/notebooks_editors.md has their settings.",
    )
    parser.set_defaults(run=run)


def run(arguments) -> int:
    with needs_extra("lsp", "the language server", "pygls", "lsprotocol"):
        from constrained.language_server.server import make_server
    if sys.stdin.isatty():
        print("waiting for an editor on standard input; Ctrl-C ends it", file=sys.stderr)
    make_server().start_io()
    return 0
