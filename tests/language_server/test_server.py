"""The language server as an editor meets it: a process of its own, spoken to over standard input and output."""

import asyncio
import re
import sys
from contextlib import contextmanager

import pytest

pytest.importorskip("pygls", reason="needs pygls: pip install -c constraints.txt .[test]")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from constrained.grammar.source import SHIPPED
from constrained.knowledge.lint import check_file
from constrained.language_server import server as language_server
from constrained.subprocesses import Worker

GOOD = SHIPPED / "template.lark"
BROKEN = (
    "%declare _STEP PLACE // where one can go\r\n// start: Größe\nstart: one\n"
    '// one: says 🙂 <b>*\none: "🙂é" two _STEP\n'
)


class Editor:
    """One editor with its server."""

    def __init__(self, encodings=None):
        self.client = LanguageClient("test", "1")
        self.told = asyncio.Queue()
        self.encodings = encodings
        self.open_files = set()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def told(params):
            self.told.put_nowait(params)

    async def __aenter__(self):
        await self.client.start_io(sys.executable, "-m", "constrained", "lsp")
        general = types.GeneralClientCapabilities(position_encodings=self.encodings)
        capabilities = types.ClientCapabilities(general=general)
        self.can = (await self.client.initialize_async(types.InitializeParams(capabilities))).capabilities
        self.client.initialized(types.InitializedParams())
        return self

    async def __aexit__(self, *_):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await asyncio.wait_for(self.client._server.wait(), 120)
        self.code = self.client._server.returncode
        await self.client.stop()

    def open(self, text, uri="untitled:one", language="lark"):
        self.open_files.add(uri)
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 1, text))
        )

    def close(self, uri="untitled:one"):
        self.open_files.remove(uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def close_all(self):
        """Close all files, and forget what was told about them."""
        for uri in [*self.open_files]:
            self.close(uri)
        await self.hover(0, 0)  # answered after everything before it
        while not self.told.empty():
            self.told.get_nowait()

    def change(self, text, version, uri="untitled:one"):
        named = types.VersionedTextDocumentIdentifier(version, uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [whole]))

    async def diagnostics(self):
        return await asyncio.wait_for(self.told.get(), 120)

    async def coloured(self, text, uri="untitled:one"):
        """Each name with what it is, in the file's order."""
        asked = types.SemanticTokensParams(types.TextDocumentIdentifier(uri))
        found = await self.client.text_document_semantic_tokens_full_async(asked)
        legend, lines, line, column, out = self.can.semantic_tokens_provider.legend, text.split("\n"), 0, 0, []
        for down, right, length, kind, defines in zip(*[iter(found.data)] * 5):
            line, column = line + down, right if down else column + right
            name = lines[line].encode("utf-16-le")[2 * column :][: 2 * length].decode("utf-16-le")
            out.append((name, legend.token_types[kind], bool(defines)))
        return out

    async def hover(self, line, character, uri="untitled:one"):
        asked = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        found = await self.client.text_document_hover_async(asked)
        return found and found.contents.value

    async def definition(self, line, character, uri="untitled:one"):
        asked = types.DefinitionParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        found = await self.client.text_document_definition_async(asked)
        return found and found.range


def span(line, first, last):
    return types.Range(types.Position(line, first), types.Position(line, last))


@contextmanager
def running(**options):
    """A function that runs a session of an editor, from its first file to its last; the server must end well."""
    loop = asyncio.new_event_loop()
    editor = Editor(**options)
    loop.run_until_complete(editor.__aenter__())

    def talk(session):
        loop.run_until_complete(session(editor))
        loop.run_until_complete(editor.close_all())

    yield talk
    loop.run_until_complete(editor.__aexit__())
    loop.close()
    assert editor.code == 0


@pytest.fixture(scope="module")
def talk():
    """Sessions of one editor, with one server: it takes seconds to start."""
    with running() as one:
        yield one


def test_findings_come_as_one_types_and_go_when_they_are_mended(talk):
    async def session(editor):
        editor.open(BROKEN)
        told = await editor.diagnostics()
        by_code = {d.code: d for d in told.diagnostics}
        assert set(by_code) == {f.code for f in check_file(BROKEN).findings} >= {"undefined-rule", "unused-slot"}
        undefined, unused = by_code["undefined-rule"], by_code["unused-slot"]
        assert undefined.range == span(4, 11, 14)  # 🙂 is two units of UTF-16
        assert undefined.severity == types.DiagnosticSeverity.Error and undefined.source == "constrained"
        assert "two" in undefined.message and "\nfix: " in undefined.message
        assert unused.range == span(0, 15, 20) and list(unused.tags) == [types.DiagnosticTag.Unnecessary]
        assert told.version == 1
        editor.change(BROKEN.replace(" two", "").replace("PLACE", ""), 2)
        told = await editor.diagnostics()
        assert list(told.diagnostics) == [] and told.version == 2
        editor.close()
        assert list((await editor.diagnostics()).diagnostics) == []

    talk(session)


@pytest.mark.parametrize("encoding, first", [("utf-8", 14), ("utf-32", 10)])
def test_columns_are_in_the_units_that_the_editor_counts_in(encoding, first):
    async def session(editor):
        assert editor.can.position_encoding == encoding
        editor.open(BROKEN)
        told = await editor.diagnostics()
        assert next(d for d in told.diagnostics if d.code == "undefined-rule").range == span(4, first, first + 3)
        assert await editor.hover(4, first + 30) is None

    with running(encodings=[types.PositionEncodingKind(encoding)]) as talk:
        talk(session)


def test_names_have_cards_and_definitions(talk):
    async def session(editor):
        text = GOOD.read_text(encoding="utf-8")
        lines = text.split("\n")
        editor.open(text, GOOD.as_uri())
        assert list((await editor.diagnostics()).diagnostics) == []
        line = next(n for n, words in enumerate(lines) if words.startswith("start:"))
        card = await editor.hover(line, lines[line].index("search") + 2, GOOD.as_uri())
        assert card.startswith("**search**: action\n\nsearch: search\\[words\\] lists the pages")
        assert card.endswith("then: open, search, ask")
        where = await editor.definition(line, lines[line].index("search") + 2, GOOD.as_uri())
        defined = lines.index('search: "search[" WORDS "]" _STEP (open | search | ask)')
        assert where == span(defined, 0, len("search"))
        assert await editor.hover(line, lines[line].index(":") + 1, GOOD.as_uri()) is None
        assert await editor.definition(9999, 5, GOOD.as_uri()) is None
        # a mistake doesn't take the cards away
        editor.change(text + "\n\nbroken: (", 2, GOOD.as_uri())
        assert next(d.severity for d in (await editor.diagnostics()).diagnostics) == types.DiagnosticSeverity.Error
        assert await editor.hover(line, lines[line].index("search") + 2, GOOD.as_uri()) == card

    talk(session)


def test_names_are_coloured_by_what_they_are(talk):
    text = (
        "%declare _STEP PLACE\n%import relations (another)\nstart: go{PLACE} | wait\nwait: WORD\n"
        'go{r}: "🙂" r "at" _STEP at{r}\nat{r}: | go{another{PLACE, r}}\nWORD: "w"\n'
    )
    expected = """
        +_STEP keyword, +PLACE variable, +another macro, +start class, go function, PLACE variable, wait function,
        +wait function, WORD type, +go function, r parameter, _STEP keyword, at class, r parameter,
        +at class, go function, another macro, PLACE variable, r parameter, +WORD type
    """

    async def session(editor):
        editor.open(text)
        found = await editor.coloured(text)  # asked for before the file is read, it waits
        assert [f"{'+' * defined}{name} {kind}" for name, kind, defined in found] == re.split(r",\s+", expected.strip())

    talk(session)


def test_other_files_are_left_alone_and_a_file_that_is_gone_is_no_trouble(talk):
    async def session(editor):
        editor.open("start: nothing", "file:///somewhere/notes.txt", "plaintext")
        editor.open("start: nothing", "file:///no/such/folder/mine.lark", "other")
        told = await editor.diagnostics()
        assert told.uri.endswith("mine.lark") and told.diagnostics[0].code == "undefined-rule"
        assert await editor.hover(0, 8, "file:///somewhere/notes.txt") is None
        assert await editor.hover(0, 8, "untitled:never") is None

    talk(session)


def test_relative_imports_start_where_the_file_is(talk, tmp_path):
    (tmp_path / "more.lark").write_text('WORD: "a"\n')

    async def session(editor):
        editor.open("%import .more.WORD\nstart: WORD\n", (tmp_path / "unsaved.lark").as_uri())
        assert list((await editor.diagnostics()).diagnostics) == []
        assert "imported from .more" in await editor.hover(1, 8, (tmp_path / "unsaved.lark").as_uri())

    talk(session)


def test_changes_that_follow_each_other_are_read_once(talk):
    async def session(editor):
        editor.open("start: nothing")
        for version in range(2, 40):
            editor.change(f"start: nothing{version}", version)
        told = await editor.diagnostics()
        assert told.version == 39 and "nothing39" in told.diagnostics[0].message
        assert editor.told.empty()

    talk(session)


SLOW = "start: " + "(" * 400 + '"a"' + "?)~0..9" * 400
HUGE = "".join(f'rule{n}: "{"x" * 50}" rule{n + 1}\n' for n in range(40_000))


HOSTILE = [
    SLOW, HUGE, 'start: "a\u2028" \x00 nothing\x85\n' * 100, "\ufeff", "", "(" * 100_000, 'start: "\ud800" nothing',
]  # fmt: skip


def test_what_is_large_or_hostile_holds_up_nothing_else(talk):
    async def session(editor):
        files = {f"untitled:{number}": text for number, text in enumerate([*HOSTILE, "start: nothing"])}
        for uri, text in files.items():
            editor.open(text, uri)
        assert await asyncio.wait_for(editor.hover(0, 8, "untitled:1"), 600) is None
        told = {one.uri: list(one.diagnostics) for one in [await editor.diagnostics() for _ in files]}
        assert set(told) == set(files) and told["untitled:7"][0].code == "undefined-rule"
        assert all(told[uri] for uri in files)
        for uri, text in files.items():
            lines = text.split("\n")
            for end in (diagnostic.range.end for diagnostic in told[uri]):
                assert end.character <= len(lines[end.line].encode("utf-16-le", "surrogatepass")) // 2

    talk(session)


def test_a_reading_that_nobody_waits_for_is_ended(monkeypatch):
    started, start = [], Worker.start

    def noted(worker):
        start(worker)
        started.append(worker)

    async def give_up():
        monkeypatch.setattr(Worker, "start", noted)
        reader = language_server.FileReader()
        reading = asyncio.ensure_future(reader.read(HUGE, "huge", None))
        while not started:
            await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled() and not started[0].running
        assert len(started) == 2 and started[1].running  # the next is ready
        assert (await reader.read("start: nothing", "one", None))["findings"] and not started[1].running
        reader.close()
        assert not any(worker.running for worker in started)

    asyncio.run(give_up())


def read_once(text) -> dict:
    async def reading():
        reader = language_server.FileReader()
        try:
            return await reader.read(text, "one", None)
        finally:
            reader.close()

    return asyncio.run(reading())


def test_what_a_folder_holds_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("open('taken', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert read_once("start: nothing")["findings"][0]["code"] == "undefined-rule"
    assert not (tmp_path / "taken").exists()


def test_a_reading_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(language_server, "SECONDS", 0.05)
    (finding,) = read_once(HUGE)["findings"]
    assert finding["code"] == "not-checked" and "longer than 0.05" in finding["message"]


def test_a_reading_that_fails_or_cant_begin_says_so(monkeypatch):
    for program, words in [("/no/such/python", "couldn't be started"), ("/bin/true", "reading it failed")]:
        monkeypatch.setattr(sys, "executable", program)
        assert words in read_once("start: nothing")["findings"][0]["message"]
