"""Models behind servers: a stand-in that misbehaves on purpose; real ones are in hosts/test_llama_cpp_servers.py."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from constrained import Grammar
from constrained.decoding.remote import PROBE, RemoteModel, most_like
from constrained.decoding.request import Request
from constrained.errors import ModelError
from constrained.models import load_roles
from tests.decoding.openai_server import Server

pytest.importorskip("openai", reason="needs the extra remote")

ACTIONS = Grammar.from_choices(["go to desk 1", "go to desk 10", "take mug 1 from desk 1"])
KEY = "sk-secret-of-this-test"


def ask(action: Grammar | None = ACTIONS, text: str = "What next?", **fields: Any) -> Request:
    return Request("", action, messages=[{"role": "user", "content": text}], **fields)


@pytest.fixture
def serve():
    started = []

    def start(reply: Callable[[dict], Any], **options: Any) -> tuple[Server, RemoteModel]:
        server = Server(reply)
        started.append(server)
        return server, RemoteModel(server.url, **{"api_key": KEY, "retries": 0, "timeout": 60.0, **options})

    yield start
    for server in started:
        server.http.shutdown()
        server.http.server_close()


def test_an_admitted_answer_is_taken(serve):
    server, model = serve(lambda body: " go to desk 10\n", enforce="nothing")
    [written] = model.write([ask()])
    assert written.text == "go to desk 10" and not written.replaced
    assert (written.prompt_tokens, written.completion_tokens) == (7, 3)
    assert written.model == model.name == f"tiny at {server.url}"
    assert server.keys == {f"Bearer {KEY}"} and KEY not in repr(model) + model.name


def test_what_is_not_admitted_is_asked_for_again_with_the_reason(serve):
    answers = iter(["burn the desk", "go to desk 1"])
    server, model = serve(lambda body: next(answers), enforce="nothing")
    [written] = model.write([ask()])
    assert written.text == "go to desk 1" and not written.replaced
    again = server.bodies[1]["messages"]
    assert again[1] == {"role": "assistant", "content": "burn the desk"}
    assert (
        "'burn the desk' is not possible now" in again[2]["content"] and "take mug 1 from desk 1" in again[2]["content"]
    )


def test_after_the_last_attempt_the_nearest_admitted_action_is_taken_and_told(serve):
    server, model = serve(lambda body: "take mug 1 from the desk", enforce="nothing", attempts=2)
    [written] = model.write([ask()])
    assert written.text == "take mug 1 from desk 1" and written.replaced == "take mug 1 from the desk"
    assert len(server.bodies) == 2 and written.completion_tokens == 6


def test_of_an_endless_language_the_admitted_beginning_is_finished():
    search = Grammar.from_lark('start: "Search[" /[a-z é]{1,20}/ "]"\n')
    assert most_like("Search[milhouse](now)", search) == "Search[milhouse]"
    assert most_like("Search[café", search) == "Search[café]"
    assert search.matches(most_like("Burn", search))


def obeying(field: str) -> Callable[[dict], str]:
    """A server that obeys one field and refuses or ignores the others."""

    def reply(body: dict) -> str:
        sent = body.get("response_format") if field == "response_format" else body.get(field)
        if not sent:
            return "Hello!"
        listed = [text for text in (*PROBE, "go to desk 1") if text in json.dumps(sent)]
        return json.dumps({"action": listed[0]}) if field == "response_format" else listed[0]

    return reply


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("structured_outputs", "structured_outputs"),
        ("guided_choice", "guided"),
        ("grammar", "grammar"),
        ("ebnf", "ebnf"),
        ("regex", "regex"),
        ("response_format", "json_schema"),
        ("none of them", "nothing"),
    ],
)
def test_what_a_server_obeys_is_found_out(serve, field, name):
    server, model = serve(obeying(field))
    assert model.enforce == name
    if name != "nothing":
        server.bodies.clear()
        [written] = model.write([ask()])
        assert written.text == "go to desk 1" and len(server.bodies) == 1


def test_an_unknown_field_that_is_refused_is_no_obstacle(serve):
    def reply(body: dict):
        return (400, "unknown field") if "structured_outputs" in body else obeying("grammar")(body)

    assert serve(reply)[1].enforce == "grammar"


def test_many_requests_side_by_side_each_with_its_answer(serve):
    def reply(body: dict) -> str:
        time.sleep(0.05)
        return body["messages"][0]["content"]

    _, model = serve(reply, enforce="nothing")
    names = [f"go to desk {i}" for i in range(40)]
    written = model.write([ask(Grammar.from_choices(names), name) for name in names])
    assert [one.text for one in written] == names


def test_free_text_is_not_judged(serve):
    server, model = serve(lambda body: "I think so.", enforce="grammar")
    [written] = model.write([ask(None, stop="\n")])
    assert written.text == "I think so." and server.bodies[0]["stop"] == ["\n"] and "grammar" not in server.bodies[0]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (lambda body: (401, "no"), "refuses the key"),
        (lambda body: (400, "max_tokens is too large"), "refuses the request: 400 .*max_tokens is too large"),
        (lambda body: (500, "out of memory"), "refuses the request: 500"),
        (lambda body: (404, "Not Found"), "refuses the request: 404 Not Found"),
        (lambda body: b"<html>not an API</html>", "without a text|unreadable"),
        (lambda body: b'{"choices": []}', "without a text"),
        (lambda body: None, "without a text"),
        (lambda body: b'{"choices": [{"mess', "without a text|unreadable"),
        (lambda body: (403, f"{KEY} may not do this"), "may not do this"),
        (lambda body: (400, "x" * 290 + KEY), "refuses the request: 400"),  # cut where the key stands
        (lambda body: b"[" * 100_000, "unreadable"),
    ],
)
def test_a_server_that_fails_is_one_clear_error_without_the_key(serve, reply, told):
    _, model = serve(reply, enforce="nothing", model="tiny")
    [error] = model.write([ask()])
    assert isinstance(error, ModelError) and re.search(told, error.message) and KEY[:6] not in str(error)


def test_a_server_that_is_away_or_slow(serve):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = RemoteModel(f"http://127.0.0.1:{free.getsockname()[1]}/v1", retries=0)
        [error] = away.write([ask()])  # the port is kept, so that nobody else answers there
    assert "no server answers at" in error.message
    given_up = threading.Event()
    _, slow = serve(lambda body: given_up.wait(600) and "late", timeout=0.2, enforce="nothing", model="tiny")
    [error] = slow.write([ask()])
    given_up.set()
    assert "took too long" in error.message


def test_a_failure_is_tried_again(serve):
    answers = iter([(503, "loading"), "go to desk 1"])
    _, model = serve(lambda body: next(answers), enforce="nothing", retries=2)
    assert model.write([ask()])[0].text == "go to desk 1"


@pytest.mark.parametrize(
    "arguments",
    [
        ("localhost:8000",),
        ("http://",),
        ("http://localhost:99999/v1",),
        ("http://me:secret@localhost/v1",),
        ("http://localhost/v1?api-key=secret",),
        ("http://localhost/v1#secret",),
        ("http://localhost/v1;secret",),
        ("http://localhost/v1;key=secret/more",),
        ("http://localhost/sk-secret-of-mine/v1",),
        ("http://localhost/%73k-secret-of-mine/v1",),
        ("http://localhost/v1", "sk-secret-of-mine"),
        ("http://localhost/v1", "gsk_secret_of_mine"),
        ("http://localhost/v1/secret-secret", "m", {"api_key": "secret-secret"}),
        ("http://localhost/v1", "secret-secret", {"api_key": "secret-secret"}),
        ("ftp://me:secret@localhost/v1",),
        ("http://x/v1", "m", {"enforce": "magic"}),
        ("http://x/v1", "m", {"attempts": 0}),
        ("http://x/v1", "m", {"retries": -1}),
        ("http://x/v1", "m", {"timeout": 0}),
        ("http://x/v1", "m", {"api_key": "in two\nlines"}),
    ],
)
def test_arguments_that_make_no_sense(arguments):
    *given, options = [*arguments, {}] if not isinstance(arguments[-1], dict) else arguments
    with pytest.raises(ModelError) as error:
        RemoteModel(*given, **options)
    assert "secret" not in str(error.value)


def test_a_key_in_the_fragment_of_a_models_address_reaches_nothing():
    with pytest.raises(ModelError, match="the model's name holds a key") as error:
        load_roles("http://localhost:8000/v1#sk-secret-of-mine")
    assert "secret" not in str(error.value)
    for name in ("Qwen/Qwen2.5-1.5B-Instruct", "gpt-4o-mini-2024-07-18", "hf-internal-testing/tiny", "pplx-70b-chat"):
        assert load_roles(f"http://localhost:8000/v1#{name}")["policy"].name == f"{name} at http://localhost:8000/v1"


@pytest.mark.parametrize("used", [b"5", b'{"prompt_tokens": "a"}', b"null"])
def test_an_odd_answer_is_still_judged(serve, used):
    """Half of a pair of surrogates, and counts that are none."""
    _, model = serve(
        lambda body: b'{"choices": [{"message": {"content": "go to \\ud800"}}], "usage": %s}' % used, enforce="nothing"
    )
    [written] = model.write([ask()])
    assert (written.text, written.replaced, written.prompt_tokens) == ("go to desk 1", "go to ?", 0)


def test_white_space_at_the_edges_belongs_to_an_action_that_has_it(serve):
    _, model = serve(lambda body: " say hi\n", enforce="nothing", attempts=1)
    for text in (" say hi\n", "say hi"):
        [written] = model.write([ask(Grammar.from_choices([text, "look"]))])
        assert written.text == text and not written.replaced


def test_an_answer_that_is_cut_off_is_told_so(serve):
    server, model = serve(lambda body: (200, "go to"), enforce="nothing", attempts=2)
    [written] = model.write([ask()])
    assert written.text == "go to desk 1" and written.replaced == "go to"
    assert "'go to' was cut off, as it got too long" in server.bodies[1]["messages"][2]["content"]


def test_an_empty_answer_is_replaced_and_told(serve):
    _, model = serve(lambda body: "", enforce="nothing", attempts=1)
    [written] = model.write([ask()])
    assert ACTIONS.matches(written.text) and written.replaced == "(nothing)"


def test_a_constraint_that_is_refused_is_left_out_and_the_answer_judged(serve, caplog):
    def reply(body: dict):
        return (400, "too many repetitions") if "grammar" in body else "go to desk 1"

    server, model = serve(reply, enforce="grammar")
    [written] = model.write([ask()])
    assert written.text == "go to desk 1" and ["grammar" in body for body in server.bodies] == [True, False]
    assert "too many repetitions" in caplog.text and KEY not in caplog.text
