"""The playground: a server on this machine whose page writes, checks and runs action knowledge."""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from constrained.agents.strategies import STRATEGIES
from constrained.automaton.tokenizers import EMBEDDED
from constrained.errors import ConstrainedError
from constrained.grammar import shipped_names
from constrained.pages import local_server
from constrained.pages.html_page import STATIC, page, static
from constrained.pages.trace_page import trace_page
from constrained.playground import bounds
from constrained.playground.document import FILE, OpenFile, path_of, shipped_text
from constrained.subprocesses import BEAT, ChildError, SubprocessError, Worker, error_data
from constrained.version import __version__

FIELDS: dict[str, tuple[tuple[type, ...], int | None]] = {
    "text": ((str,), bounds.TEXT),
    "document": ((str, NoneType), None),
    "version": ((str, NoneType), None),
    "values": ((dict,), None),
    "path": ((str,), bounds.PATH),
    "tokenizer": ((str,), None),
    "task": ((str,), bounds.TASK),
    "strategy": ((str,), None),
    "masks": ((bool,), None),
    "seed": ((int,), 2**31 - 1),
    "steps": ((int, NoneType), bounds.STEPS),
}
"""Field -> its types, and the maximum of its length or value (the minimum is 0)."""

EXPLAIN = ("values", "path", "tokenizer")
RUN = ("values", "task", "strategy", "masks", "seed", "steps")


class PageRequestError(ConstrainedError):
    """A request in another form than the page sends."""


def read_fields(data: Any, *names: str) -> dict[str, Any]:
    """The named fields of a request's JSON.

    Raises RequestError: a field is missing or of another type. Raises ConstrainedError: a value is beyond its bound, or
    is no text in Unicode.
    """
    return {name: _field(data, name) for name in names}


def _field(data: Any, name: str) -> Any:
    types, most = FIELDS[name]
    value = data.get(name) if isinstance(data, dict) else ...
    if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
        raise PageRequestError(f"the request has no {name!r} of the right kind", "reload the page")
    if name == "strategy" and value not in STRATEGIES:
        raise PageRequestError(f"no strategy {value!r}", f"use one of {', '.join(STRATEGIES)}")
    if isinstance(value, str):
        if most is not None and len(value) > most:
            raise ConstrainedError(f"the {name} has {len(value):,} characters", f"the playground takes {most:,}")
        if re.search("[\ud800-\udfff]", value):  # JSON can hold it, UTF-8 can't
            raise ConstrainedError(f"the {name} has a lone surrogate, which is not a character", "delete it")
    elif most is not None and isinstance(value, int) and not 0 <= value <= most:
        raise ConstrainedError(f"{name} is {value}", f"use 0 to {most:,}")
    return value


FIRST_SHOWN = "household"
"""The shipped grammar that is shown without a file; its tasks can be run."""

_log = logging.getLogger(__name__)


def play(
    file: str | None = None,
    *,
    port: int | None = None,
    tokenizers: Sequence[str] = (),
    model: str | None = None,
    browser: bool = True,
) -> None:
    """Serve the playground until Ctrl-C.

    Parameters
    ----------
    file : str, optional
        A `.lark` file to open or create.
    port : int, optional
        Default: 8750, or the next that is free; 0: any.
    tokenizers : sequence of str
        Tokenizers offered beside the embedded model's: names, files, or folders that hold such files.
    model : str, optional
        The model that runs tasks; default: the embedded one.
    browser : bool
        Open the page in a browser.

    Raises
    ------
    ConstrainedError
        The file can't be read, or the port is taken.
    """

    def ready(address: str) -> None:
        print(f"playground: {address}\nonly this machine can reach it; Ctrl-C ends it", flush=True)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    document = OpenFile.open(file) if file else None
    ports = range(bounds.PORT, bounds.PORT + bounds.PORTS) if port is None else [port]
    listening = local_server.listen(ports)
    result = [EMBEDDED, *(one for name in tokenizers for one in tokenizers_at(name))]
    playground = Playground(listening.getsockname()[1], document, list(dict.fromkeys(result)), model)
    local_server.serve(create_app(playground), listening, ready)


def tokenizers_at(name: str) -> list[str]:
    """The tokenizer files in a folder and its subfolders; a name that is no folder is a tokenizer itself."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return [name]
    files = [*folder.glob("tokenizer.json"), *folder.glob("*/tokenizer.json"), *folder.rglob("tekken*.json")]
    if not files:
        raise ConstrainedError(f"no tokenizer.json or tekken.json in {name}", "name the file, or the folder it is in")
    return sorted(str(file) for file in files)


class JobError(ConstrainedError):
    """A job that took too long or too much memory, was stopped, or came while another was running."""


class Jobs:
    """Runs jobs of `constrained.playground.jobs` in one child process, one at a time.

    `memory`: bytes that the process may take beyond what its libraries take.
    """

    def __init__(self, memory: int | None = None):
        self.process = Worker("constrained.playground.jobs", memory)
        self._turn = threading.Lock()

    def answer(self, *jobs: tuple[str, dict, float]) -> dict:
        """Do (name, request, seconds) jobs one after the other and return the answer of the last.

        Raises ChildError: a job failed. Raises JobError: a job took too long or too much memory.
        """
        with self._turn:
            for job, asked, seconds in jobs:
                *_, last = filter(None, self._messages(job, asked, seconds))
        return last

    def messages(self, job: str, asked: dict, seconds: float) -> Generator[dict, None, None]:
        """Yield a job's messages, and an empty one after every second without a message.

        Closing the iterator ends the job. Raises as `answer` does, and JobError if a job is running.
        """
        if not self._turn.acquire(timeout=2 * BEAT):  # enough for a job that was just stopped
            raise JobError("a run is under way", "stop it, or wait for its end")
        try:
            yield from self._messages(job, asked, seconds)
        finally:
            self._turn.release()

    def stop(self) -> None:
        """End the running job, if there is one."""
        if self._turn.locked():
            self.process.kill()

    def _messages(self, job: str, asked: dict, seconds: float) -> Iterator[dict]:
        try:
            for message in self.process.messages({**asked, "job": job}, seconds):
                yield message or {}
        except SubprocessError as error:
            if error.late:
                raise JobError(f"it {error.how}", "make it simpler") from None
            raise JobError("it was stopped, or took more memory than it may") from None
        except ChildError as error:
            if error.traceback:
                _log.error("a job of the playground failed:\n%s", error.traceback)
            raise


@dataclass
class Playground:
    """The state of one running playground. `trace`: the trace of the last run."""

    port: int
    document: OpenFile | None  # the open file
    tokenizers: Sequence[str]  # those that may be chosen; the first is preselected
    model: str | None = None  # the model that runs tasks; None: the embedded one
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))  # sent with every request of our own page

    def __post_init__(self) -> None:
        self.checks, self.explanations, self.runs = Jobs(bounds.MEMORY), Jobs(bounds.MEMORY), Jobs()
        self._folder = TemporaryDirectory(prefix="constrained-playground-")
        self.trace = Path(self._folder.name, "run.jsonl")

    def close(self) -> None:
        """Kill the child processes and delete the trace."""
        for jobs in (self.checks, self.explanations, self.runs):
            jobs.process.close()
        self._folder.cleanup()

    def page(self) -> str:
        """The page with its initial data."""
        data = {
            "version": __version__,
            "token": self.token,
            "file": self.document and {"name": self.document.path.name, "path": str(self.document.path)},
            "begin": FILE if self.document else FIRST_SHOWN,
            "shipped": shipped_names(),
            "tokenizers": list(self.tokenizers),
            "strategies": list(STRATEGIES),
            "model": self.model or "embedded",
            "bounds": {"text": bounds.TEXT, "steps": bounds.STEPS, "path": bounds.PATH, "task": bounds.TASK},
        }
        title = f"{self.document.path.name if self.document else 'constrained'} - playground"
        styles = ["graph.css", *(f"playground/{name}.css" for name in ("layout", "editor", "panels", "run"))]
        body = static("playground/body.html")
        return page(title, body, styles=styles, modules=["static/playground/main.js"], data=data)

    def _text(self, data: Any) -> dict:
        """The text in a request, with the path of its document."""
        asked = read_fields(data, "text", "document")
        path = path_of(asked["document"], self.document)
        return {**asked, "source": str(path) if path else None}

    # what the page asks for: each takes a request's JSON

    def open(self, data: Any) -> dict:
        """A document's text and version."""
        name = read_fields(data, "document")["document"]
        if name == FILE and self.document is not None:
            return self.document.read()
        return {"text": shipped_text(name), "version": None}

    def save(self, data: Any) -> dict:
        """Write the open file."""
        if self.document is None:
            raise PageRequestError("no file is open", "start it with a file: constrained playground FILE.lark")
        return self.document.save(**read_fields(data, "text", "version"))

    def check(self, data: Any) -> dict:
        """The findings about a text, and its graph."""
        answer = self.checks.answer(("check", self._text(data), bounds.CHECK_SECONDS))
        return {**answer, "version": self.document.read()["version"] if self.document else None}

    def explain(self, data: Any) -> dict:
        """What may come next."""
        asked = {**self._text(data), **read_fields(data, *EXPLAIN)}
        if asked["tokenizer"] not in self.tokenizers:
            problem = f"no tokenizer {asked['tokenizer']!r} was named at the start"
            raise PageRequestError(problem, "reload the page")
        return self.explanations.answer(
            ("tokenizer", asked, bounds.TOKENIZER_SECONDS), ("explain", asked, bounds.CHECK_SECONDS)
        )

    def run(self, data: Any) -> AsyncIterator[str]:
        """Plan a task: the messages as JSON Lines."""
        asked = {**self._text(data), **read_fields(data, *RUN), "model": self.model}
        return _lines(self.runs, {**asked, "trace": str(self.trace)})

    def stop(self, data: Any) -> dict:
        """End the run."""
        self.runs.stop()
        return {}


def create_app(playground: Playground) -> local_server.Protected:
    """The server as an ASGI application; when it ends, so does `playground`."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        playground.close()

    app = Starlette(
        routes=_routes(playground),
        exception_handlers=dict.fromkeys((ConstrainedError, HTTPException, Exception), _error),
        lifespan=lifespan,
    )
    return local_server.Protected(app, playground.port, playground.token)


def _error(request: Request, error: Exception) -> Response:
    if isinstance(error, ConstrainedError):
        # browsers report other codes as faults of the page, and what is being typed may be wrong
        return local_server.json_response(
            {"error": error_data(error)}, 400 if isinstance(error, PageRequestError) else 200
        )
    if isinstance(error, HTTPException):
        return local_server.error_response(error.detail, error.status_code)
    _log.error("the playground failed at %s", request.url.path, exc_info=error)
    return local_server.error_response("the playground failed; its terminal says how", 500)


def _routes(playground: Playground) -> list[Route]:
    def files(folder: str, suffix: str) -> list[str]:
        return [f"{folder}/{file.name}" for file in (STATIC / folder).iterdir() if file.name.endswith(suffix)]

    # Only these files can be asked for, whatever the path says.
    served = dict.fromkeys(("dom.js", *files("playground", ".js"), *files("vendor", ".js")), "text/javascript")
    served |= dict.fromkeys(files("vendor", ".LICENSE"), "text/plain")

    def index(request: Request) -> Response:
        return HTMLResponse(playground.page())

    def trace(request: Request) -> Response:
        if not playground.trace.exists():
            return PlainTextResponse("There was no run yet.", 404)
        return HTMLResponse(trace_page(playground.trace))

    def script(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in served:
            raise HTTPException(404, "there is no such file")
        return Response((STATIC / name).read_bytes(), media_type=served[name])

    def posted(work: Callable[[Any], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            data = await local_server.json_body(request, bounds.REQUEST)
            found = await run_in_threadpool(work, data)
            if isinstance(found, dict):
                return local_server.json_response(found)
            return StreamingResponse(found, media_type="application/x-ndjson")

        return Route(f"/api/{work.__name__}", endpoint, methods=["POST"])

    asked = playground.open, playground.save, playground.check, playground.explain, playground.run, playground.stop
    pages = [Route("/", index), Route("/trace", trace), Route("/static/{name:path}", script)]
    return [*pages, *map(posted, asked)]


async def _lines(jobs: Jobs, asked: dict) -> AsyncIterator[str]:
    """The messages of a run as JSON Lines; the empty ones are sent too, which notices a page that has gone."""
    messages = jobs.messages("run", asked, bounds.RUN_SECONDS)
    try:
        async for message in iterate_in_threadpool(messages):
            yield json.dumps(message) + "\n"
    except ConstrainedError as error:
        yield json.dumps({"error": error_data(error)}) + "\n"
    finally:
        with suppress(ValueError):  # the task was cancelled while a thread waits in it; that ends it
            messages.close()
