"""Live Wikipedia, held against a server here that speaks MediaWiki's API: its answers, its failures, its slowness."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from constrained.environments.question import wikipedia
from constrained.environments.question.env import QuestionEnv
from constrained.environments.question.index import PassageIndex
from constrained.environments.question.wikipedia import Wikipedia
from constrained.errors import DataError, ToolError
from tests.environments.question.small import QUESTION

TEXTS = {
    "Milhouse Van Houten": "Milhouse is a character. He was named after Richard Nixon.\n\n\nHistory\nHe is ten.",
    "Matt Groening": "Matt Groening is a cartoonist.",
    "Empty": "",
}
REDIRECTS = {"Milhouse": "Milhouse Van Houten"}


def api(asked: dict[str, str]):
    """MediaWiki's answer with formatversion=2, in the parts that are used here."""
    assert asked["format"] == "json" and asked["formatversion"] == "2"
    if asked["action"] == "opensearch":
        found = [title for title in TEXTS if asked["search"].lower() in title.lower()]
        return [asked["search"], found, [], []]
    assert (asked["action"], asked["prop"], asked["explaintext"]) == ("query", "extracts", "1")
    if asked.get("generator") == "search":
        words = asked["gsrsearch"].lower().split()
        found = [title for title, text in TEXTS.items() if any(word in f"{title} {text}".lower() for word in words)]
        pages = [
            {"pageid": i, "ns": 0, "title": title, "index": i, "extract": TEXTS[title].split("\n")[0]}
            for i, title in enumerate(found[: int(asked["gsrlimit"])], 1)
        ]
        return {"batchcomplete": True, "query": {"pages": pages[::-1]}} if pages else {"batchcomplete": True}
    title = REDIRECTS.get(asked["titles"], asked["titles"])
    if title not in TEXTS:
        return {"batchcomplete": True, "query": {"pages": [{"ns": 0, "title": title, "missing": True}]}}
    return {
        "batchcomplete": True,
        "query": {"pages": [{"pageid": 1, "ns": 0, "title": title, "extract": TEXTS[title]}]},
    }


@contextmanager
def serving(respond):
    """A wiki at an address of this machine; `respond(handler, asked)` writes each answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            with suppress(BrokenPipeError, ConnectionResetError):
                respond(self, asked)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/w/api.php"
    finally:
        server.shutdown()
        server.server_close()


def send(handler, content: bytes, status: int = 200, retry_after: str = "0"):
    handler.send_response(status)
    handler.send_header("Retry-After", retry_after)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def answer(handler, asked):
    send(handler, json.dumps(api(asked)).encode())


def test_search_pages_and_similar_titles():
    with serving(answer) as url:
        wiki = Wikipedia(url)
        assert isinstance(wiki, PassageIndex)
        found = wiki.search("Who is a character or a cartoonist?")
        assert [passage.title for passage in found] == ["Milhouse Van Houten", "Matt Groening"]
        assert found[0].sentences == ("Milhouse is a character.", "He was named after Richard Nixon.")
        page = wiki.page("Milhouse")
        assert page.title == "Milhouse Van Houten" and page.sentences[-1] == "He is ten."
        assert wiki.page("Nobody") is None and wiki.page("Empty") is None
        assert wiki.similar("van houten") == ["Milhouse Van Houten"]
        assert wiki.search("zzz") == [] == wiki.search("") == wiki.search("???") == wiki.similar("!")
        wiki.close()


def test_a_question_is_answered_with_it():
    with serving(answer) as url:
        env = QuestionEnv(QUESTION, Wikipedia(url))
        assert env.step("Search[Milhouse]")[0].startswith("Milhouse Van Houten: Milhouse is a character.")
        assert env.step("Lookup[named]")[0] == "(Result 1 / 1) He was named after Richard Nixon."
        assert env.step("Finish[Richard Nixon]")[1] == 1.0


def test_a_models_text_is_never_an_operator_of_the_wikis_search_nor_a_second_title():
    asked_of = []

    def note(handler, asked):
        asked_of.append(asked)
        answer(handler, asked)

    with serving(note) as url:
        wiki = Wikipedia(url)
        wiki.search('insource:/a.*b/ -x "y" ~z* &titles=Empty \ud800')
        assert asked_of[-1]["gsrsearch"] == "insource a b x y z titles Empty" and "titles" not in asked_of[-1]
        for title in ("Empty|Matt Groening", "#x", "a\nb", "<b>", "  "):
            assert wiki.page(title) is None
        assert len(asked_of) == 1
        wiki.page("Empty&prop=links")
        assert asked_of[-1]["titles"] == "Empty&prop=links" and asked_of[-1]["prop"] == "extracts"
        wiki.page("\ud800")


def drip(handler, asked):
    handler.send_response(200)
    handler.end_headers()
    while True:  # until nobody listens
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def drip_headers(handler, asked):
    while True:
        handler.wfile.write(b"H")
        handler.wfile.flush()
        time.sleep(0.05)


def silent(handler, asked):
    handler.rfile.read(1)  # until nobody listens


@pytest.mark.parametrize("slow", [silent, drip, drip_headers])
def test_an_answer_that_takes_too_long_is_not_waited_for(slow):
    with serving(slow) as url:
        with pytest.raises(ToolError, match="127.0.0.1:.* did not answer within 0.3 s"):
            Wikipedia(url, timeout=0.3).search("x")
        observation, _, done = QuestionEnv(QUESTION, Wikipedia(url, timeout=0.3)).step("Retrieve[x]")
        assert observation.startswith("Search error: 127.0.0.1") and not done


@pytest.mark.parametrize(
    "content, status, message",
    [
        (b"<html>", 200, "not JSON"),
        (b"", 200, "not JSON"),
        (b"\xff\xfe\xff", 200, "not JSON"),
        (b"[" * 100_000, 200, "not JSON"),
        (b"[]", 200, "another form"),
        (b'"query"', 200, "another form"),
        (b'{"query": {}}', 200, "another form"),
        (b'{"query": {"pages": [1]}}', 200, "another form"),
        (b'{"query": {"pages": [{"extract": "x"}]}}', 200, "another form"),
        (b'{"query": {"pages": [{"title": 1, "extract": "x"}]}}', 200, "another form"),
        (b'{"error": {"code": "ratelimited", "info": "slow down"}}', 200, "ratelimited"),
        (b"no", 429, "429 Too Many Requests"),
        (b"no", 500, "500"),
    ],
)
def test_whatever_else_it_answers_is_a_tools_failure(content, status, message):
    with serving(lambda handler, asked: send(handler, content, status)) as url, pytest.raises(ToolError, match=message):
        Wikipedia(url).search("x")


def test_a_busy_wiki_is_asked_again_and_not_for_ever():
    times = []

    def busy(handler, asked):
        times.append(asked)
        if len(times) == 3:
            answer(handler, asked)
        else:
            send(handler, b"wait", 429)

    with serving(busy) as url:
        assert Wikipedia(url).page("Milhouse") is not None and len(times) == 3
        with pytest.raises(ToolError, match="429"):
            Wikipedia(url).page("Milhouse")
        assert len(times) == 6
    with (
        serving(lambda handler, asked: send(handler, b"wait", 503, retry_after="9999")) as url,
        pytest.raises(ToolError, match="within 0.3 s"),
    ):
        Wikipedia(url, timeout=0.3).page("Milhouse")


def test_similar_titles_of_another_form_are_a_tools_failure():
    for content in (b"{}", b"[1]", b'["x", "y"]'):
        with (
            serving(lambda handler, asked, content=content: send(handler, content)) as url,
            pytest.raises(ToolError, match="another form"),
        ):
            Wikipedia(url).similar("x")


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(wikipedia, "MAX_BYTES", 10_000)
    with (
        serving(lambda handler, asked: send(handler, b"x" * 100_000)) as url,
        pytest.raises(ToolError, match="more than 10,000 bytes"),
    ):
        Wikipedia(url).search("x")


def test_an_answer_cut_short_and_a_closed_door_are_tools_failures():
    def cut(handler, asked):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"query": ')

    with serving(cut) as url, pytest.raises(ToolError):
        Wikipedia(url).search("x")
    with pytest.raises(ToolError, match="can't be reached"):
        Wikipedia(url).search("x")  # nobody listens there any more


def test_an_address_that_is_none_is_refused():
    with pytest.raises(DataError, match="api.php"):
        Wikipedia("file:///etc/passwd")
