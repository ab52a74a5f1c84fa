"""`constrained playground`: write knowledge and see at once what it says."""

from __future__ import annotations

from constrained.errors import needs_extra
from constrained.playground.bounds import PORT


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "playground",
        help="a page to write knowledge in: its errors, graph and text, what may come next, and runs",
        description="Serve a page on this machine, and on it alone: an editor that shows errors as you type, the "
        "action graph, the text that models read, what may come next after a path, and runs of the embedded model.",
        epilog="example: constrained playground kitchen.lark",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="a .lark file to open (none: look at what ships)")
    parser.add_argument("--port", type=int, help=f"default: {PORT}, or the next that is free; 0: any")
    parser.add_argument("--no-browser", action="store_true", help="only say where it is")
    parser.add_argument("--tokenizer", action="append", default=[], metavar="NAME", help="whose tokens to look at, "
                        "beside the embedded model's: a tokenizer.json or tekken.json, a folder of some, or a name of "
                        "the Hub")  # fmt: skip
    parser.add_argument("--model", help="what runs: folder, GGUF file or hub name (default: the embedded model)")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    with needs_extra("playground", "the playground", "flask", "werkzeug"):
        from constrained.playground.app import play

    play(
        arguments.file,
        port=arguments.port,
        tokenizers=arguments.tokenizer,
        model=arguments.model,
        browser=not arguments.no_browser,
    )
    return 0
