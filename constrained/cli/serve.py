"""`constrained view`, `playground`, `serve` and `lsp`: commands that run until they are interrupted."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

from constrained.cli.options import KNOWLEDGE, MODELS, TOKENIZERS, add_device
from constrained.cli.parser import examples
from constrained.errors import DataError, needs_extra
from constrained.files import check_separate, write_whole
from constrained.knowledge.report import counted
from constrained.models.source import check_source
from constrained.playground.bounds import PORT
from constrained.server.bounds import PORT as SERVE_PORT
from constrained.waiting import waiting


def add_view(commands) -> None:
    parser = commands.add_parser(
        "view",
        help="show a run as an HTML page: each step, each token, and what the mask removed",
        description="Write one HTML file that shows a run step by step: the action graph with the actions that were "
        "possible and, for a run recorded with --trace, each token with its probability, the probability that the mask "
        "removed, and the rule that forbade the likeliest other token. The file needs no network.",
        epilog=examples("constrained view runs/agents/RUN.jsonl --open", "constrained view --serve runs/agents"),
    )
    add = parser.add_argument
    add("run_file", nargs="?", metavar="RUN.jsonl", help="the file of a run, from `plan --trace` or `bench agents`")
    add("--output", metavar="FILE.html", help="the page to write (default: beside the run, with the same name)")
    words = "show only this task (* matches any text); repeatable (default: all)"
    add("--task", action="append", default=[], metavar="NAME", help=words)
    add("--most", type=int, metavar="N", help="show only the first N tasks (default: all)")
    words = "in place of RUN.jsonl: browse the runs in FOLDER (default: runs) at 127.0.0.1"
    add("--serve", nargs="?", const="runs", metavar="FOLDER", help=words)
    add("--port", type=int, default=8765, help="the port of --serve; 0: any free one (default: 8765)")
    add("--open", action="store_true", help="open the browser")
    parser.set_defaults(run=run_view)


def run_view(arguments) -> int:
    if (arguments.run_file is None) == (arguments.serve is None):
        raise DataError("give a run's file or --serve, one of the two", "constrained view --help shows examples")
    if arguments.most is not None and arguments.most < 1:
        raise DataError(f"--most is {arguments.most}", "use 1 or more, or leave it out")
    return _write_page(arguments) if arguments.serve is None else _serve_runs(arguments)


def _write_page(arguments) -> int:
    from constrained.pages.trace_page import render, run_data

    source = Path(arguments.run_file)
    if arguments.output is None and not source.is_file() or not source.name:
        hint = "name a run's .jsonl file; `constrained view --serve FOLDER` browses a folder"
        raise DataError(f"{arguments.run_file!r} is not a file", hint)
    target = Path(arguments.output) if arguments.output else source.with_suffix(".html")
    if target == source:
        raise DataError(f"{target} is the run itself", "give another name to --output")
    check_separate(target, source)
    data = run_data(source, tasks=arguments.task, most=arguments.most)
    text = render(data)
    write_whole(target, text)
    tokens = "" if data["traced"] else "; its tokens were not recorded (--trace)"
    print(f"wrote {target}: {counted(len(data['tasks']), 'task')}, {len(text.encode()) / 1e6:.1f} MB{tokens}")
    if data["left_out"]:
        why = "the page would be too large" if data["too_large"] else "as requested"
        print(f"left out {counted(data['left_out'], 'task')}: {why}; --task NAME chooses")
    if arguments.open:
        webbrowser.open(target.resolve().as_uri())
    return 0


def _serve_runs(arguments) -> int:
    with needs_extra("playground", "view --serve", "starlette", "uvicorn"):
        from constrained.pages.run_list import serve

    def ready(url: str) -> None:
        print(f"runs of {arguments.serve} at {url} (Ctrl+C ends it)", flush=True)
        if arguments.open:
            webbrowser.open(url)

    serve(arguments.serve, arguments.port, ready)
    return 0


def add_playground(commands) -> None:
    parser = commands.add_parser(
        "playground",
        help="edit action knowledge in the browser",
        description="Edit action knowledge in the browser: errors as you type, the action graph, the text that models "
        "read, what may come next after a path, and runs of a model. Only this machine can reach the page.",
        epilog=examples("constrained playground kitchen.lark"),
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="a .lark file to open (default: those that ship can be opened)")
    add("--port", type=int, help=f"the port of the page; 0: any free one (default: {PORT}, or the next free one)")
    add("--no-browser", action="store_true", help="don't open the browser")
    words = f"a tokenizer to offer beside the embedded model's: {TOKENIZERS}; repeatable"
    add("--tokenizer", action="append", default=[], metavar="NAME", help=words)
    add("--model", help=f"{MODELS} (default: the embedded model)")
    parser.set_defaults(run=run_playground)


def run_playground(arguments) -> int:
    with needs_extra("playground", "the playground", "starlette", "uvicorn"):
        from constrained.playground.app import play

    browser = not arguments.no_browser
    play(arguments.file, port=arguments.port, tokenizers=arguments.tokenizer, model=arguments.model, browser=browser)
    return 0


def add_serve(commands) -> None:
    parser = commands.add_parser(
        "serve",
        help="serve a model as OpenAI's API does, with tool calls under a policy",
        description="Serve a model as OpenAI's chat completions, for any OpenAI client. A tool call always fits the "
        "schema of a tool of the request. With --knowledge it also obeys a policy: the order of calls, and conditions "
        "on earlier results. With --upstream, another server's answers are held to the policy.",
        epilog=examples(
            "constrained serve --model smollm2 --knowledge shop.lark",
            "constrained serve --upstream https://api.openai.com/v1 --knowledge shop.lark",
        ),
    )
    add = parser.add_argument
    add("--model", help=MODELS)
    add_device(parser)
    words = f"the policy, whose rules are named after the tools: {KNOWLEDGE}"
    add("--knowledge", metavar="FILE", help=words)
    add("--name", metavar="NAME", help="what clients call the model (default: what --model says)")
    words = "how the model writes a call (default: hermes if its chat template says <tool_call>, else json)"
    add("--call-format", choices=("hermes", "json", "llama"), help=words)
    words = "the address to listen at (default: 127.0.0.1, which only this machine can reach)"
    add("--host", default="127.0.0.1", metavar="ADDRESS", help=words)
    add("--port", type=int, default=SERVE_PORT, help=f"the port to listen at; 0: any free one (default: {SERVE_PORT})")
    words = "be a proxy before this server, in place of serving --model"
    add("--upstream", metavar="URL", help=words)
    words = "with --upstream: how often a refused answer goes back to the model, with the reason (default: 2)"
    add("--retries", type=int, default=2, metavar="N", help=words)
    words = """with --upstream: what clients get if an answer is refused to the last: a question to the user (ask), an
        error (block), or the answer with a mark (flag) (default: ask)"""
    add("--on-violation", choices=("ask", "block", "flag"), default="ask", help=words)
    words = "with --upstream: show the model only the tools and values that are admitted now"
    add("--narrow", action="store_true", help=words)
    words = """with --upstream: a Python function FUNCTION(said, heard) that says whether the user agrees (default: by
        the words of the policy)"""
    add("--says-yes", metavar="MODULE:FUNCTION", help=words)
    words = "with --upstream: seconds without a byte of its answer before it is given up (default: 300)"
    add("--timeout", type=float, default=300.0, metavar="S", help=words)
    parser.set_defaults(run=run_serve)


def run_proxy(arguments) -> int:
    with needs_extra("proxy", "constrained serve --upstream", "starlette", "uvicorn", "httpx2"):
        from constrained.server.connections import ProxiedConnection, is_loopback, serve
        from constrained.server.proxy import JsonLines, make_proxy
    from constrained.grammar import read_source

    if arguments.model or not arguments.knowledge:
        what = "a model is served, or an upstream" if arguments.model else "--upstream needs a policy"
        raise DataError(what, "give --upstream URL --knowledge FILE")
    if not arguments.timeout > 0:
        raise DataError(f"--timeout is {arguments.timeout}", "use more than 0 seconds")
    local = is_loopback(arguments.host)
    if not local:
        print("warning: the proxy's connections are not encrypted; keys pass through it", file=sys.stderr)
    app = make_proxy(
        arguments.upstream,
        read_source(arguments.knowledge),
        retries=arguments.retries,
        on_violation=arguments.on_violation,
        narrow=arguments.narrow,
        seconds=arguments.timeout,
        says_yes=_function(arguments.says_yes) if arguments.says_yes else None,
        hosts=["127.0.0.1", "localhost", arguments.host] if local else None,
    )
    handler = logging.StreamHandler()  # on standard error
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("constrained.proxy").setLevel(logging.INFO)

    def ready(url: str) -> None:
        print(f"{arguments.upstream} under {arguments.knowledge} at {url} (Ctrl+C ends it)", flush=True)

    serve(app, arguments.host, arguments.port, ready, ProxiedConnection)
    return 0


def _function(name: str) -> Callable[[str, str], bool]:
    """The function of `--says-yes`. Raises DataError: there is none, or it doesn't take two texts."""
    module, _, function = name.partition(":")
    hint = "such as consent:says_yes, for `def says_yes(said, heard)` in consent.py"
    if not module or not function:
        raise DataError(f"--says-yes is {name!r}", hint)
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # the installed command doesn't look there
    try:
        predicate = getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever the module does when it is imported
        raise DataError(f"--says-yes: {name} can't be imported: {type(error).__name__}: {error}", hint) from None
    try:
        inspect.signature(predicate).bind("said", "heard")
    except (TypeError, ValueError):
        raise DataError(f"--says-yes: {name} can't be called with two texts", hint) from None
    if inspect.iscoroutinefunction(predicate):
        raise DataError(f"--says-yes: {name} is async", hint)
    return predicate


def run_serve(arguments) -> int:
    if arguments.upstream is not None:
        return run_proxy(arguments)
    if arguments.model is None:
        raise DataError("there is no model to serve", "give --model NAME, or --upstream URL --knowledge FILE")
    check_source(arguments.model)  # before torch is imported, which takes seconds
    with needs_extra("serve", "constrained serve", "starlette", "uvicorn"):
        from constrained.server.app import make_app
        from constrained.server.connections import is_loopback, serve
    from constrained.grammar import read_source
    from constrained.models import load
    from constrained.server.conversation import read_rules

    source = None
    if arguments.knowledge is not None:
        source = read_source(arguments.knowledge)
        read_rules(source)  # before the model is loaded
    key, local = os.environ.get("CONSTRAINED_API_KEY"), is_loopback(arguments.host)
    if not local:
        who = "whoever has CONSTRAINED_API_KEY" if key else "anyone"
        print(f"warning: {who} on the network can use this server; its connections are not encrypted", file=sys.stderr)
    with waiting("loading the model"):
        loaded = load(arguments.model, device=arguments.device)
    loaded.name = arguments.name or loaded.name
    hosts = ["127.0.0.1", "localhost", arguments.host] if local else None
    app = make_app(loaded, source, call_format=arguments.call_format, key=key, hosts=hosts)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")  # on standard error
    logging.getLogger("constrained.server").setLevel(logging.INFO)

    def ready(url: str) -> None:
        obeys = f"calls obey {arguments.knowledge}" if arguments.knowledge else "calls fit their tools' schemas"
        print(f"{loaded.name} at {url}; {obeys} (Ctrl+C ends it)", flush=True)

    serve(app, arguments.host, arguments.port, ready)
    return 0


def add_lsp(commands) -> None:
    parser = commands.add_parser(
        "lsp",
        help="run the language server, which editors start",
        description="A language server for .lark files, over standard input and output: the findings of `constrained "
        "check` as you type, what an action means and what may follow it, and where a name is defined. Editors start "
        "it themselves; docs/notebooks_editors.md has their settings.",
        epilog=examples("constrained lsp"),
    )
    parser.set_defaults(run=run_lsp)


def run_lsp(arguments) -> int:
    with needs_extra("lsp", "the language server", "pygls", "lsprotocol"):
        from constrained.language_server.server import make_server
    if sys.stdin.isatty():
        print("waiting for an editor on standard input; Ctrl-C ends it", file=sys.stderr)
    make_server().start_io()
    return 0
