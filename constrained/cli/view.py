"""`constrained view`: the trace of a run as a page, or a folder of runs to browse."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from constrained.errors import DataError, needs_extra
from constrained.files import write_whole


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "view",
        help="look at a run: each step, each token, and what the masks took",
        description="Write one HTML file that shows a run step by step: the action graph with what was open, and, for a "
        "run that was recorded with --trace, each token with its probability, what the mask removed, and the rule "
        "that forbade the best alternative. It needs no network and no server. With --serve: browse a folder of runs.",
        epilog="examples: constrained view runs/agents/RUN.jsonl --open; constrained view --serve runs/agents",
    )
    parser.add_argument("run_file", nargs="?", metavar="RUN.jsonl", help="the record of a run")
    parser.add_argument("--output", metavar="FILE.html", help="default: beside the run, of its name")
    parser.add_argument("--task", action="append", default=[], metavar="NAME",
                        help="this task alone; repeatable, and * stands for any text")  # fmt: skip
    parser.add_argument("--most", type=int, default=None, metavar="N", help="the first N tasks")
    parser.add_argument("--serve", nargs="?", const="runs", metavar="FOLDER",
                        help="browse the runs of FOLDER (default: runs), at 127.0.0.1 alone")  # fmt: skip
    parser.add_argument("--port", type=int, default=8765, help="of --serve (default: 8765; 0: any that is free)")
    parser.add_argument("--open", action="store_true", help="open the browser")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    if (arguments.run_file is None) == (arguments.serve is None):
        raise DataError("give a run's file or --serve, one of the two", "constrained view --help shows examples")
    if arguments.most is not None and arguments.most < 1:
        raise DataError(f"--most is {arguments.most}", "use 1 or more, or leave it out")
    if arguments.serve is not None:
        return _serve(arguments)
    return _write(arguments)


def _write(arguments) -> int:
    from constrained.pages.trace_page import render, run_data

    source = Path(arguments.run_file)
    target = Path(arguments.output) if arguments.output else source.with_suffix(".html")
    if target == source:
        raise DataError(f"{target} is the run itself", "give another name to --output")
    data = run_data(source, tasks=arguments.task, most=arguments.most)
    text = render(data)
    write_whole(target, text)
    tokens = "" if data["traced"] else "; its tokens were not recorded (--trace)"
    print(f"wrote {target}: {_count(len(data['tasks']), 'task')}, {len(text.encode()) / 1e6:.1f} MB{tokens}")
    if data["left_out"]:
        why = "a page may be no larger" if data["too_large"] else "as was asked"
        print(f"left out {_count(data['left_out'], 'task')}: {why}; --task NAME chooses")
    if arguments.open:
        webbrowser.open(target.resolve().as_uri())
    return 0


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _serve(arguments) -> int:
    with needs_extra("playground", "view --serve", "flask", "werkzeug"):
        from constrained.pages.run_list import serve

    def ready(url: str) -> None:
        print(f"runs of {arguments.serve} at {url} (Ctrl+C ends it)", flush=True)
        if arguments.open:
            webbrowser.open(url)

    serve(arguments.serve, arguments.port, ready)
    return 0
