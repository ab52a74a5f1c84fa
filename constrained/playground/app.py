"""The playground's server: what its page asks for, answered by processes of their own."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from constrained import __version__
from constrained.agents.strategies import STRATEGIES
from constrained.errors import ConstrainedError
from constrained.grammar import shipped_names
from constrained.pages import local_server
from constrained.pages.html_page import STATIC, page, static
from constrained.pages.trace_page import trace_page
from constrained.playground import bounds, requests
from constrained.playground.document import FILE, Document, path_of, shipped_text
from constrained.playground.jobs import error_data
from constrained.playground.worker import Worker

BEGIN_WITH = "household"
"""The shipped grammar that is shown where no file is opened: its tasks can be played."""


@dataclass
class Playground:
    """What one start of the playground holds.

    Attributes
    ----------
    port : int
    document : Document or None
        The file that is open.
    tokenizers : sequence of str
        Those that may be chosen, the first at first.
    model : str or None
        What runs; None: the embedded model.
    token : str
        What requests of our own page carry.
    trace : Path
        The record of the last run, token by token.
    """

    port: int
    document: Document | None
    tokenizers: Sequence[str]
    model: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def __post_init__(self):
        self.checks, self.explanations = Worker(bounds.MEMORY), Worker(bounds.MEMORY)
        self.runs = Worker()
        self._folder = TemporaryDirectory(prefix="constrained-playground-")
        self.trace = Path(self._folder.name, "run.jsonl")

    def close(self) -> None:
        """End what is under way, and leave nothing behind."""
        for worker in (self.checks, self.explanations, self.runs):
            worker.close()
        self._folder.cleanup()

    def page(self) -> str:
        """The page, as it opens."""
        data = {
            "version": __version__,
            "token": self.token,
            "file": self.document and {"name": self.document.path.name, "path": str(self.document.path)},
            "begin": FILE if self.document else BEGIN_WITH,
            "shipped": shipped_names(),
            "tokenizers": list(self.tokenizers),
            "strategies": list(STRATEGIES),
            "model": self.model or "embedded",
            "bounds": {"text": bounds.TEXT, "steps": bounds.STEPS, "path": bounds.PATH, "task": bounds.TASK},
        }
        title = f"{self.document.path.name if self.document else 'constrained'} - playground"
        return page(
            title,
            static("playground/body.html"),
            styles=["graph.css", *(f"playground/{name}.css" for name in ("layout", "editor", "panels", "run"))],
            modules=["static/playground/main.js"],
            data=data,
            connect=True,
        )

    def text(self, data: dict) -> dict:
        """A request's text, with where its document is."""
        asked = requests.text(data)
        return {**asked, "source": path_of(asked["document"], self.document)}


def create_app(playground: Playground) -> Flask:
    """The server of one start, as a WSGI application."""
    app = Flask("constrained.playground", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = bounds.REQUEST
    app.json.ensure_ascii = False

    @app.before_request
    def only_our_own():
        token = playground.token if request.method == "POST" else None
        why = local_server.refused(request.headers, playground.port, token)
        return (jsonify(error={"message": f"refused: {why}", "hint": None}), 403) if why else None

    @app.after_request
    def with_headers(response: Response) -> Response:
        for name, value in local_server.HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.errorhandler(ConstrainedError)
    def as_data(error: ConstrainedError):
        # a browser reports other codes as faults of the page, and what is typed may be wrong
        return jsonify(error=error_data(error)), 400 if isinstance(error, requests.RequestError) else 200

    @app.errorhandler(HTTPException)
    def in_words(error: HTTPException):
        return jsonify(error={"message": error.description, "hint": None}), error.code

    _add_pages(app, playground)
    _add_documents(app, playground)
    _add_jobs(app, playground)
    return app


def _add_pages(app: Flask, playground: Playground) -> None:
    served = dict.fromkeys(("dom.js", *_files("playground", ".js"), *_files("vendor", ".js")), "text/javascript")
    served |= dict.fromkeys(_files("vendor", ".LICENSE"), "text/plain")

    @app.get("/")
    def index():
        return playground.page()

    @app.get("/trace")
    def trace():
        if not playground.trace.exists():
            return "There was no run yet.", 404
        return trace_page(playground.trace)

    @app.get("/static/<path:name>")
    def script(name: str):
        if name not in served:
            return jsonify(error={"message": "there is no such file", "hint": None}), 404
        return Response((STATIC / name).read_bytes(), mimetype=served[name])


def _files(folder: str, end: str) -> list[str]:
    return [f"{folder}/{one.name}" for one in (STATIC / folder).iterdir() if one.name.endswith(end)]


def _add_documents(app: Flask, playground: Playground) -> None:
    @app.post("/api/open")
    def open_():
        name = requests.field(request.get_json(), "document", str)
        if name == FILE and playground.document is not None:
            return playground.document.read()
        return {"text": shipped_text(name), "version": None}

    @app.post("/api/save")
    def save():
        data = request.get_json()
        if playground.document is None:
            raise requests.RequestError("no file is open", "start it with a file: constrained playground FILE.lark")
        text = requests.unicode(requests.field(data, "text", str, bounds.TEXT))
        return playground.document.save(text, requests.field(data, "version", (str, type(None))))


def _add_jobs(app: Flask, playground: Playground) -> None:
    @app.post("/api/check")
    def check():
        said = playground.checks.answer(("check", playground.text(request.get_json()), bounds.CHECK_SECONDS))
        version = playground.document.read()["version"] if playground.document else None
        return {**said, "version": version}

    @app.post("/api/explain")
    def explain():
        data = request.get_json()
        asked = {**playground.text(data), **requests.explain(data)}
        if asked["tokenizer"] not in playground.tokenizers:
            raise requests.RequestError(
                f"no tokenizer {asked['tokenizer']!r} was named at the start", "reload the page"
            )
        return playground.explanations.answer(
            ("tokenizer", asked, bounds.TOKENIZER_SECONDS), ("explain", asked, bounds.CHECK_SECONDS)
        )

    @app.post("/api/run")
    def run():
        data = request.get_json()
        asked = {
            **playground.text(data),
            **requests.run(data),
            "model": playground.model,
            "trace": str(playground.trace),
        }
        return Response(_lines(playground.runs, asked), mimetype="application/x-ndjson")

    @app.post("/api/stop")
    def stop():
        playground.runs.stop()
        return {}


def _lines(worker: Worker, asked: dict) -> Iterator[str]:
    """What a run says, as JSON Lines; empty objects while it says nothing, so that a page that has gone is noticed."""
    try:
        for message in worker.messages("run", asked, bounds.RUN_SECONDS):
            yield json.dumps(message, ensure_ascii=False) + "\n"
    except ConstrainedError as error:
        yield json.dumps({"error": error_data(error)}, ensure_ascii=False) + "\n"
