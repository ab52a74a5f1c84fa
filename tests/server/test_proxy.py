"""The proxy: any OpenAI client before any server; what the policy doesn't admit never reaches the client."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time

import pytest

openai = pytest.importorskip("openai", reason="needs the extra remote")
pytest.importorskip("starlette", reason="needs the extra proxy")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra proxy")
http = pytest.importorskip("httpx2", reason="needs the extra proxy")

from constrained.cli import main  # noqa: E402
from constrained.errors import ConstrainedError  # noqa: E402
from constrained.grammar import read_source  # noqa: E402
from constrained.guard.narrowing import without_slots  # noqa: E402
from constrained.guard.verdict import REFUSED  # noqa: E402
from constrained.server import bounds  # noqa: E402
from constrained.server.connections import ProxiedConnection, Stage  # noqa: E402
from constrained.server.proxy import JsonLines, make_proxy  # noqa: E402
from tests.guard.scripted import event, events  # noqa: E402
from tests.guard.shop import AGREED, CANCEL, LISTED, LOOKED, POLICY, TOOLS, asked, said, told, user  # noqa: E402
from tests.server.proxied import CANCELS, Running, both  # noqa: E402


@both
def test_an_admitted_answer_reaches_the_client_as_it_is(script, proxy, stream):
    script.answers = [asked(("cancel_order", CANCEL), ("list_orders", {})), said("It is done, é.")]
    text, calls, finish, _ = proxy.ask(AGREED, stream, temperature=0.5, seed=7)
    assert (text, calls, finish) == ("", ["cancel_order", "list_orders"], "tool_calls")
    assert proxy.ask(LOOKED, stream)[0] == "It is done, é."
    headers, body = script.requests[0]
    assert body["messages"] == AGREED and body["tools"] == without_slots(TOOLS)
    assert (body["temperature"], body["seed"]) == (0.5, 7)
    assert headers["authorization" if "authorization" in headers else "Authorization"] == "Bearer sk-secret"


@both
def test_a_refused_answer_goes_back_to_the_model_and_the_client_sees_the_next(script, proxy, stream):
    script.answers = [CANCELS, said("Shall I cancel it?")]
    text, calls, finish, _ = proxy.ask(LOOKED, stream)
    assert (text, calls, finish) == ("Shall I cancel it?", [], "stop")
    sent = script.requests[1][1]["messages"]
    assert sent[: len(LOOKED)] == LOOKED and [m["role"] for m in sent[len(LOOKED) :]] == ["assistant", "tool"]
    assert sent[-1]["content"].startswith(f"{REFUSED}cancel_order: the customer hasn't said yes")


@both
def test_the_admitted_beginning_of_several_calls_is_kept(script, proxy, stream):
    script.answers = [asked(("list_orders", {}), ("cancel_order", CANCEL), ("list_orders", {}))]
    _, calls, finish, _ = proxy.ask(LOOKED, stream)
    assert (calls, finish) == (["list_orders"], "tool_calls") and len(script.requests) == 1


@both
def test_a_model_that_insists_leads_to_a_question(script, proxy, stream):
    script.answers = [CANCELS] * 9
    text, calls, finish, _ = proxy.ask(LOOKED, stream)
    assert calls == [] and finish == "stop" and len(script.requests) == 3
    assert text.startswith('May I go ahead with cancel_order (id: "#11"')
    # The user's answer to that question is the consent.
    script.answers = [CANCELS]
    assert proxy.ask([*LOOKED, said(text), user("Yes.")], stream)[1] == ["cancel_order"]


@both
def test_what_facts_forbid_is_explained(script, proxy, stream):
    script.answers = [asked(("get_order", {"id": "#9"}))] * 3
    text, calls, _, _ = proxy.ask(LISTED, stream)
    assert calls == [] and text.startswith("I can't do that now (get_order): id in ORDER")


@both
def test_block_is_an_error_and_flag_a_mark(script, stream):
    with Running(script.url, retries=0, on_violation="block") as proxy:
        script.answers = [CANCELS]
        with pytest.raises(openai.APIError, match="the customer hasn't said yes"):
            proxy.ask(LOOKED, stream)
    with Running(script.url, retries=0, on_violation="flag") as proxy:
        script.answers = [CANCELS]
        _, calls, _, answer = proxy.ask(LOOKED, stream)
        assert calls == ["cancel_order"]
        marked = answer[-1] if stream else answer
        assert marked.model_extra["constrained"]["unmet"][0]["why"] == "the customer hasn't said yes"


def test_text_flows_while_it_is_written(script, proxy):
    script.answers = [{"endless": "word "}]
    answer = proxy.client.chat.completions.create(model="m", messages=LISTED, tools=TOOLS, stream=True)
    seen = [next(answer).choices[0].delta.content for _ in range(5)]
    assert seen == ["word "] * 5
    answer.close()  # the upstream is told
    until = time.monotonic() + 60
    while not script.gone and time.monotonic() < until:
        time.sleep(0.05)
    assert script.gone == 1


def test_a_client_that_leaves_before_its_answer_ends_its_request_upstream(script, proxy):
    script.answers = [{"paced": 60, "message": said("Too late.")}]
    with pytest.raises(openai.APITimeoutError):
        proxy.client.with_options(timeout=0.5).chat.completions.create(model="m", messages=LISTED, tools=TOOLS)
    until = time.monotonic() + 30
    while not script.gone and time.monotonic() < until:
        time.sleep(0.05)
    assert script.gone == 1


@both
@pytest.mark.parametrize(
    ("arguments", "name"),
    [('{"id": "#11"', "get_order"), ("[]", "get_order"), ('{"id": "#11"}', "delete_everything"), ("", "get_order")],
)
def test_nonsense_calls_are_corrected_and_never_reach_the_client(script, proxy, arguments, name, stream):
    script.answers = [asked((name, arguments)), said("Sorry.")]
    assert proxy.ask(LISTED, stream)[:2] == ("Sorry.", [])
    back = script.requests[1][1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(back), dict)


def test_a_function_may_say_whether_the_user_agrees(script):
    da = [*AGREED[:-1], user("Da.")]
    with Running(script.url, retries=0, says_yes=lambda said, heard: said.endswith("?") and heard == "Da.") as proxy:
        for messages, calls in ((da, ["cancel_order"]), (AGREED, []), (LOOKED, [])):
            script.answers = [CANCELS]
            assert proxy.ask(messages)[1] == calls


@pytest.mark.parametrize(
    "more",
    [
        {"requestor": "user"},  # as records of tau2-bench mark the user's own calls
        {"args": {}, "input": {}},
        {"function": {**CANCELS["tool_calls"][0]["function"], "args": {}, "kwargs": {}}},
    ],
)
def test_no_field_hides_a_call(script, proxy, more):
    [call] = CANCELS["tool_calls"]
    script.answers = [{**CANCELS, "tool_calls": [{**call, **more}]}, said("Shall I?")]
    assert proxy.ask(LOOKED)[:2] == ("Shall I?", [])


@pytest.mark.parametrize("api", ["ask", "respond"])
@both
def test_half_a_character_in_an_answer_is_a_question_mark(script, proxy, stream, api):
    script.answers = [{**CANCELS, "content": "half \ud83d"}, said("whole \U0001f600, half \ud83d")]
    assert getattr(proxy, api)(LOOKED, stream)[0].endswith("whole \U0001f600, half ?")
    script.answers = [said("half \ud83d")]
    assert getattr(proxy, api)(LOOKED, stream)[0] == "half ?"


# an upstream that misbehaves


@both
def test_an_upstream_that_is_away_is_one_clear_error(stream):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    with Running(address) as proxy:
        with pytest.raises(openai.InternalServerError, match="the upstream can't be reached") as error:
            proxy.ask(LISTED, stream)
        assert error.value.status_code == 502
        assert http.get(f"{proxy.address}/health").status_code == 200
        assert http.get(f"{proxy.address}/ready").status_code == 503


@both
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"raw": "<html>"}, "can't be read"),
        ({"raw": "[]"}, "can't be read"),
        ({"raw": '{"choices": []}'}, "can't be read"),
        ({"raw": 'data: {"choices": [{"index": 0, "delta": {"tool_calls": 7}}]}\n\n'}, "can't be read"),
        ({"raw": 'data: {"choices": 7}\n\ndata: [DONE]\n\n'}, "can't be read"),
        ({"raw": 'data: {"error": {"message": "out of memory"}}\n\n'}, "can't be read"),
        ({"cut": []}, "can't be read|broke off"),
        ({"cut": [*events(CANCELS)][:4]}, "can't be read|broke off"),
    ],
)
def test_an_upstream_s_nonsense_is_one_clear_error_and_no_call(script, proxy, answer, message, stream):
    script.answers = [answer]
    with pytest.raises(openai.APIError, match=message):
        proxy.ask(AGREED, stream)
    script.answers = [said("Hello.")]
    assert proxy.ask(AGREED, stream)[0] == "Hello."


@both
@pytest.mark.parametrize(
    "more",
    [
        {"function_call": {"name": "cancel_order", "arguments": json.dumps(CANCEL)}},
        {"content": [{"type": "tool_use", "id": "t", "name": "cancel_order", "input": CANCEL}]},
    ],
)
def test_calls_in_another_form_do_not_slip_through(script, proxy, more, stream):
    message = {**asked(("list_orders", {})), **more}
    raw = event(message) + event({}, "stop") + "data: [DONE]\n\n"
    script.answers = [{"raw": raw}] if stream else [message]
    with pytest.raises(openai.APIError, match="a form that isn't judged"):
        proxy.ask(LOOKED, stream)


def test_an_error_at_the_second_attempt_is_the_client_s_answer(script, proxy):
    for stream in (False, True):
        script.answers = [CANCELS, {"status": 429, "body": {"error": {"message": "slow down"}}}]
        with pytest.raises(openai.RateLimitError, match="slow down"):
            proxy.ask(LOOKED, stream)
    # Where a text has been sent already, it is the stream's last event.
    message = {"role": "assistant", "content": "I will do it.", "tool_calls": CANCELS["tool_calls"]}
    script.answers = [message, {"status": 429, "body": {"error": {"message": "slow down"}}}]
    with pytest.raises(openai.APIError, match="slow down"):
        proxy.ask(LOOKED, stream=True)
    assert proxy.ask(LOOKED)[0] == "Hello."


def test_a_stream_that_is_cut_after_some_text_ends_with_an_error(script, proxy):
    script.answers = [{"cut": [event({"role": "assistant", "content": "I will"}), event({"content": " now"})]}]
    with pytest.raises(openai.APIError, match="broke off|can't be read"):
        proxy.ask(AGREED, stream=True)


@both
def test_a_slow_upstream_is_given_up(script, stream):
    with Running(script.url, seconds=0.3) as proxy:
        script.answers = [{"sleep": 3}]
        with pytest.raises(openai.InternalServerError, match="said nothing for 0.3 s") as error:
            proxy.ask(LISTED, stream)
        assert error.value.status_code == 504


@both
def test_an_upstream_s_own_errors_reach_the_client_as_they_are(script, proxy, stream):
    body = {"error": {"message": "slow down", "type": "rate_limit", "code": "x"}}
    script.answers = [{"status": 429, "body": body}]
    with pytest.raises(openai.RateLimitError, match="slow down"):
        proxy.ask(LISTED, stream)


# many clients, and slow ones


def test_a_client_s_own_retries_wait_as_long_as_the_upstream_says(script, proxy):
    script.answers = [{"status": 429, "headers": {"retry-after-ms": "300", "x-ratelimit-limit-requests": "7"}}]
    client = proxy.client.with_options(max_retries=1)
    began = time.monotonic()
    answer = client.chat.completions.with_raw_response.create(model="m", messages=LISTED, tools=TOOLS)
    assert answer.parse().choices[0].message.content == "Hello." and time.monotonic() - began >= 0.3
    assert len(script.requests) == 2


def test_a_corrected_request_is_another_request(script, proxy):
    script.answers = [CANCELS]
    proxy.ask(LOOKED, extra_headers={"Idempotency-Key": "k"})
    first, second = ({name.lower(): value for name, value in headers.items()} for headers, _ in script.requests)
    assert first["idempotency-key"] == "k" and "idempotency-key" not in second


def test_more_requests_than_can_be_answered_are_told_to_come_later(script, proxy, monkeypatch):
    monkeypatch.setattr(bounds, "WAITING", 1)
    script.answers = [{"endless": "word "}]
    answer = proxy.client.chat.completions.create(model="m", messages=LISTED, tools=TOOLS, stream=True)
    next(answer)
    with pytest.raises(openai.RateLimitError, match="too many requests") as error:
        proxy.ask(LISTED)
    assert error.value.response.headers["retry-after"] == "1"
    answer.close()
    assert proxy.client.with_options(max_retries=9).chat.completions.create(model="m", messages=LISTED, tools=TOOLS)


def test_a_client_that_does_not_read_ends_its_request_upstream(script, proxy, monkeypatch):
    monkeypatch.setattr(bounds, "READING_SECONDS", 0.3)
    script.answers = [{"endless": "word " * 20_000}]
    body = json.dumps({"model": "m", "messages": LISTED, "tools": TOOLS, "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(proxy.address.rpartition(":")[2])))
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        until = time.monotonic() + 30
        while not script.gone and time.monotonic() < until:
            time.sleep(0.05)
    assert script.gone == 1


def test_connections_are_kept_between_requests_but_not_with_half_a_header(script, monkeypatch):
    monkeypatch.setitem(ProxiedConnection.seconds, Stage.HEAD, 1.0)
    with Running(script.url) as proxy, socket.create_connection(proxy.address[7:].split(":"), timeout=30) as client:
        ask = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        for wait in (1.5, 0.0):
            client.sendall(ask)
            data = b""
            while not data.endswith(b'{"status":"ok"}'):
                data += client.recv(4096)
            time.sleep(wait)
        client.sendall(ask[:20])
        assert client.recv(4096) == b""


# requests


def test_tools_that_cannot_be_called_are_left_out_and_values_are_listed(script):
    with Running(script.url, narrow=True) as proxy:
        proxy.ask(LOOKED)
        tools = {one["function"]["name"]: one["function"] for one in script.requests[-1][1]["tools"]}
        assert set(tools) == {"list_orders", "get_order", "refund"}
        assert tools["get_order"]["parameters"]["properties"]["id"] == {"type": "string", "enum": ["#11", "#12"]}
        with pytest.raises(openai.UnprocessableEntityError, match="no call of cancel_order is admitted now"):
            proxy.ask(LOOKED, tool_choice={"type": "function", "function": {"name": "cancel_order"}})


def test_a_policy_that_admits_nothing_now_is_one_clear_answer(script, proxy):
    with pytest.raises(openai.UnprocessableEntityError, match="the policy admits nothing now"):
        proxy.ask([user("Hello.")], tools=TOOLS[1:])
    assert script.requests == []


def test_a_conversation_that_holds_a_violation_goes_on_and_says_so(script, proxy):
    past = [*LOOKED, CANCELS, *told('{"id": "#11", "status": "cancelled"}')]
    answer = proxy.post({"messages": past})
    assert answer.status_code == 200 and answer.headers["x-constrained-past-violations"] == "1"
    script.answers = [CANCELS] * 3
    assert proxy.ask([*past, said("Again?"), user("Yes.")])[1] == []  # it is cancelled already


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("7", "a JSON object"),
        ({"messages": []}, "no messages"),
        ({"messages": LISTED, "n": 2}, "several answers"),
        ({"messages": LISTED, "tools": 7}, "tools are no list"),
        ({"messages": LISTED, "tools": [7]}, "has no name"),
        ({"messages": LISTED, "functions": [{"name": "f"}]}, "functions can't be judged"),
        ({"messages": [{"role": "robot", "content": "?"}]}, "the role 'robot'"),
        ({"messages": [user("\ud800")]}, "half a character"),
    ],
)
def test_requests_that_cannot_be_judged_are_refused(script, proxy, body, message):
    answer = proxy.post(body)
    assert answer.status_code == 400 and message in answer.json()["error"]["message"]
    assert script.requests == []


def test_other_ways_to_the_model_are_closed_and_the_list_of_models_is_passed_on(script, proxy):
    assert [model.id for model in proxy.client.models.list()] == ["scripted"]
    for path in ("completions", "messages", "responses/compact"):
        answer = http.post(f"{proxy.address}/v1/{path}", json={})
        assert answer.status_code == 404 and "isn't guarded" in answer.text
    assert script.requests == []


def test_keys_and_contents_are_never_logged_and_requests_are_counted(script, proxy, caplog):
    caplog.set_level(logging.DEBUG, "constrained")
    script.answers = [CANCELS, said("Shall I cancel order number 11?")]
    proxy.ask(LOOKED)
    lines = [JsonLines().format(one) for one in caplog.records]
    [record] = [line for line in map(json.loads, lines) if line["logger"] == "constrained.proxy"]
    assert record["attempts"] == 2 and record["violations"][0]["tool"] == "cancel_order"
    for body in ({"messages": [{"role": "#11", "content": "#11"}]}, {"messages": ["#11"]}, '{"#11'):
        assert proxy.post(body).status_code == 400
    for answer in ({"raw": "[#11"}, {"raw": '{"choices": [{"message": {"tool_calls": [{"id": "#11"}]}}]}'}):
        script.answers = [answer]
        assert proxy.post({"messages": LOOKED}).status_code == 502
    lines = [JsonLines().format(one) for one in caplog.records]
    errors = [line["error"] for line in map(json.loads, lines) if "error" in line]
    assert len(errors) == 5 and errors[3] == "the upstream's answer can't be read"
    text = " ".join(lines)
    assert "sk-secret" not in text and "Shall I" not in text and "#11" not in text
    measured = http.get(f"{proxy.address}/metrics")
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        assert measured.status_code == 501 and "constrained-agents[proxy]" in measured.text
    else:
        assert 'constrained_violations_total{kind="words"} 1.0' in measured.text


@both
def test_our_own_server_can_be_the_upstream(stream):
    from tests.server.served import running

    # A tiny random model without a policy of its own: whatever it writes, only what is admitted comes through.
    for client in running():
        with Running(str(client.base_url).rstrip("/"), retries=1) as proxy:
            for seed in range(3):
                options = {"model": "tiny", "max_tokens": 120, "seed": seed, "tool_choice": "required"}
                text, calls, _, _ = proxy.ask(LISTED, stream, **options)
                assert set(calls) <= {"list_orders", "get_order", "refund"} and (calls or text)


def test_the_proxy_loads_no_language_model_s_libraries():
    code = "import sys, constrained.cli.serve, constrained.server.proxy; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "url", ["", "host", "ftp://host/v1", "http://user:secret@host/v1", "http://host/v1?key=secret"]
)
def test_an_address_that_is_none_or_holds_a_key_is_refused(url):
    with pytest.raises(ConstrainedError, match="no server's address|a key or parameters") as error:
        make_proxy(url, read_source(POLICY))
    assert "secret" not in str(error.value)


BEFORE = ["--upstream", "http://127.0.0.1:9/v1", "--knowledge", "tau_retail"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no model to serve"),
        (["--upstream", "http://127.0.0.1:9/v1"], "--upstream needs a policy"),
        (["--upstream", "http://127.0.0.1:9/v1", "--model", "smollm2", "--knowledge", "tau_retail"], "or an upstream"),
        (["--upstream", "nowhere", "--knowledge", "tau_retail"], "is no server's address"),
        ([*BEFORE, "--says-yes", "json"], "such as consent:says_yes"),
        ([*BEFORE, "--says-yes", "no.such:f"], "can't be imported: ModuleNotFoundError"),
        ([*BEFORE, "--says-yes", "json:no"], "can't be imported: AttributeError"),
        ([*BEFORE, "--says-yes", "json:decoder"], "can't be called with two texts"),
        ([*BEFORE, "--says-yes", "math:sqrt"], "can't be called with two texts"),
        ([*BEFORE, "--says-yes", "asyncio:wait_for"], "is async"),
        (["--upstream", "http://127.0.0.1:9/v1", "--knowledge", "tau_retail", "--retries", "99"], "use 0 to 10"),
        (["--upstream", "http://127.0.0.1:9/v1", "--knowledge", "tau_retail", "--timeout", "nan"], "use more than 0"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_served(arguments, message, capsys):
    assert main(["serve", *arguments]) != 0
    assert message in capsys.readouterr().err
