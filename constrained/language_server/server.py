"""The server: diagnostics while typing, a card for the name under the cursor, and its definition."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from constrained.errors import ConstrainedError
from constrained.knowledge.lint import ERROR, NOTE, WARNING
from constrained.language_server.semantic import MODIFIERS, TYPES, encode
from constrained.subprocesses import SubprocessError, Worker
from constrained.version import __version__

DELAY = 0.25
"""Seconds without a change before a file is read."""

SOURCE = "constrained"
_SEVERITIES = {
    ERROR: types.DiagnosticSeverity.Error,
    WARNING: types.DiagnosticSeverity.Warning,
    NOTE: types.DiagnosticSeverity.Information,
}
_UNUSED = {"unused-rule", "unused-slot", "unused-parameter", "unreachable-action"}
_WORD = re.compile(r"\w+")

SECONDS = 10.0
"""Time limit for reading one file."""

AT_ONCE = 2
"""Files that are read at the same time."""

MEMORY = 1 << 30
"""Bytes that reading a file may take (Linux)."""


class FileReader:
    """Reads files, each in a fresh child process; the next one is started ahead, since its imports take longest."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._next: Worker | None = None

    async def read(self, text: str, name: str, path: str | None) -> dict:
        """Call `reading.read` in a child process; a finding says so if it takes too long or too much.

        Cancelling kills the process.
        """
        async with self._turns:
            process, self._next = self._next or _new(), None
            try:
                return await asyncio.to_thread(process.ask, {"text": text, "name": name, "path": path}, SECONDS)
            except SubprocessError as error:
                return _not_read(f"reading it {error.how}" if error.late else f"reading it failed: {error.message}")
            except ConstrainedError as error:
                return _not_read(f"reading it failed: {error.message}")
            finally:
                process.close()
                if self._next is None:
                    self._next = _new()
                    with suppress(SubprocessError):  # the next reading will say so
                        self._next.start()

    def close(self) -> None:
        """Kill the process that was started ahead."""
        if self._next is not None:
            self._next.close()


def _new() -> Worker:
    return Worker("constrained.language_server.reading", MEMORY)


def _not_read(message: str) -> dict:
    finding = {
        "code": "not-checked",
        "severity": NOTE,
        "message": message,
        "why": "there may be more to find",
        "fix": "constrained check has no such limit",
        **dict.fromkeys(("line", "column", "end_column")),
    }
    return {"findings": [finding], "names": {}, "tokens": [], "loads": False}


class Server(LanguageServer):
    """One editor's server: the cards and tokens of each open file, and the readings in progress."""

    def __init__(self) -> None:
        # Whole texts: pygls would cut lines for partial changes at characters that end no line in the protocol.
        super().__init__(SOURCE, __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.cards: dict[str, dict[str, dict]] = {}
        self.tokens: dict[str, list[int]] = {}
        self.readings: dict[str, asyncio.Task] = {}
        self.reader = FileReader()

    def read_soon(self, uri: str) -> None:
        """Read a file when it hasn't changed for `DELAY` seconds; cancel an older reading of it."""
        self.forget(uri)
        self.readings[uri] = asyncio.ensure_future(self._read(uri))

    def forget(self, uri: str) -> None:
        """Cancel the reading of a file, if there is one."""
        if reading := self.readings.pop(uri, None):
            reading.cancel()

    async def _read(self, uri: str) -> None:
        await asyncio.sleep(DELAY)
        document = self.workspace.get_text_document(uri)
        path = document.path if document.uri.startswith("file:") else None
        found = await self.reader.read(document.source, document.filename or uri, path)
        self.cards[uri] = found["names"] if found["loads"] else _kept(self.cards.get(uri, {}), found["names"])
        units = document.position_codec.client_num_units
        self.tokens[uri] = encode(found["tokens"], document.source.split("\n"), units)
        diagnostics = [diagnostic(finding, document) for finding in found["findings"]]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, document.version))


def _kept(earlier: dict[str, dict], names: dict[str, dict]) -> dict[str, dict]:
    """The cards of a file that can't be loaded now: the last words of each name, at its new place."""
    return earlier | {name: {**card, "words": earlier.get(name, card)["words"]} for name, card in names.items()}


def span(document: TextDocument, line: int, first: int, last: int | None) -> types.Range:
    """Convert one-based columns to a range from 0, in the editor's units; `last` None: to the line's end."""
    lines, units = document.source.split("\n"), document.position_codec.client_num_units
    number = min(line, len(lines)) - 1
    text = lines[number].rstrip("\r")
    ends = (units(text[: column - 1]) for column in (first, last or len(text) + 1))
    return types.Range(*(types.Position(number, end) for end in ends))


def diagnostic(finding: dict, document: TextDocument) -> types.Diagnostic:
    """Convert a finding; one about the file as a whole is put on its first line."""
    return types.Diagnostic(
        span(document, finding["line"] or 1, finding["column"] or 1, finding["end_column"]),
        f"{finding['message']}\n{finding['why']}\nfix: {finding['fix']}",
        severity=_SEVERITIES[finding["severity"]],
        code=finding["code"],
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if finding["code"] in _UNUSED else None,
    )


def name_at(document: TextDocument, position: types.Position) -> str:
    """The name under the cursor; empty if there is none."""
    lines = document.source.split("\n")
    line = lines[position.line] if position.line < len(lines) else ""
    units = document.position_codec.client_num_units
    words = _WORD.finditer(line)
    return next((w[0] for w in words if units(line[: w.start()]) <= position.character <= units(line[: w.end()])), "")


def make_server() -> Server:
    """Make a server with all its features; `start_io` serves the editor that started this process."""
    server = Server()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: Server, params) -> None:
        document = ls.workspace.get_text_document(params.text_document.uri)
        if document.language_id == "lark" or Path(document.path).suffix == ".lark":
            ls.read_soon(document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)
        ls.tokens.pop(params.text_document.uri, None)
        if ls.cards.pop(params.text_document.uri, None) is not None:
            ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.SHUTDOWN)
    async def shutdown(ls: Server, params) -> None:
        for reading in ls.readings.values():
            reading.cancel()
        await asyncio.gather(*ls.readings.values(), return_exceptions=True)
        ls.reader.close()

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        card = card_at(ls, params)
        return None if card is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, card["words"]))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: Server, params: types.DefinitionParams) -> types.Location | None:
        card, uri = card_at(ls, params), params.text_document.uri
        if not card:
            return None
        return types.Location(uri, span(ls.workspace.get_text_document(uri), card["line"], card["column"], card["end"]))

    coloured = types.SemanticTokensRegistrationOptions(types.SemanticTokensLegend(TYPES, MODIFIERS), full=True)

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, coloured)
    async def tokens(ls: Server, params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        uri = params.text_document.uri
        while (reading := ls.readings.get(uri)) and not reading.done():  # else they would be those of an older text
            await asyncio.wait([reading])
        return types.SemanticTokens(ls.tokens[uri]) if uri in ls.tokens else None

    return server


def card_at(server: Server, params: types.HoverParams | types.DefinitionParams) -> dict | None:
    """The card of the name under the cursor, in an open file."""
    uri = params.text_document.uri
    if uri not in server.cards:
        return None
    return server.cards[uri].get(name_at(server.workspace.get_text_document(uri), params.position))
