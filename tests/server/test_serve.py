"""`constrained serve`, asked by OpenAI's own client on the loopback address; the model is real, tiny and random."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from constrained import Grammar
from constrained.cli import main
from constrained.decoding.remote import RemoteModel
from constrained.decoding.request import Request
from constrained.errors import LimitError
from constrained.server import bounds
from constrained.server.texts import FollowedText
from tests.decoding.tiny import tiny_llama, tiny_tokenizer
from tests.server.served import ASK, POLICY, SHOP, TOOLS, ask, called, fits, http, openai, post, running, schema_format


@pytest.fixture(scope="module")
def client():
    yield from running()


@pytest.fixture(scope="module")
def plain():
    """A model without a chat template, which writes calls as JSON."""
    yield from running(template=None)


@pytest.fixture(scope="module")
def shop():
    yield from running(POLICY)


def test_the_model_is_listed(client):
    assert [model.id for model in client.models.list()] == ["tiny"] and client.models.retrieve("tiny").id == "tiny"


def test_free_text_and_what_it_cost(client):
    whole = ask(client, max_tokens=10)
    [choice] = whole.choices
    assert choice.message.content and choice.finish_reason in ("stop", "length") and choice.message.tool_calls is None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert ask(client, max_tokens=10).choices[0].message.content == choice.message.content  # the same seed
    assert ask(client, max_tokens=10, seed=2).choices[0].message.content != choice.message.content
    stop = choice.message.content[2]
    said = choice.message.content
    assert ask(client, max_tokens=10, stop=stop).choices[0].message.content == said.partition(stop)[0]
    stops = ["no such text", said[4:], said[3]]  # the one that comes first ends it
    stopped = said[: min(map(said.find, stops[1:]))]
    assert ask(client, max_tokens=10, stop=stops).choices[0].message.content == stopped
    chunks = ask(client, max_tokens=10, stop=stops, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == stopped


@pytest.mark.parametrize("kind", ["client", "plain"])
def test_a_call_fits_its_tools_schema(kind, request):
    client = request.getfixturevalue(kind)
    for seed in range(3):
        [choice] = ask(client, tools=TOOLS, tool_choice="required", seed=seed).choices
        assert choice.finish_reason == "tool_calls" and fits(choice.message.tool_calls[0]), choice
    named = {"type": "function", "function": {"name": "cancel_order"}}
    [call] = ask(client, tools=TOOLS, tool_choice=named).choices[0].message.tool_calls
    assert call.function.name == "cancel_order" and fits(call)
    assert ask(client, tools=TOOLS, tool_choice="none", max_tokens=5).choices[0].message.tool_calls is None


@pytest.mark.parametrize("kind", ["client", "plain"])
def test_on_its_own_it_says_something_or_calls_or_both(kind, request):
    client = request.getfixturevalue(kind)
    for seed in range(4):
        [choice] = ask(client, tools=TOOLS, seed=seed, max_tokens=90).choices
        assert choice.message.content or choice.message.tool_calls
        assert all(map(fits, choice.message.tool_calls or []))
        assert "<tool_call>" not in (choice.message.content or "")


def test_a_response_format_is_kept(client):
    schema = {"type": "object", "properties": {"n": {"enum": [1, 22]}, "s": {"type": "string"}}, "required": ["n", "s"]}
    form = schema_format(schema)
    for seed in range(2):
        [choice] = ask(client, response_format=form, seed=seed).choices
        found = json.loads(choice.message.content)
        assert set(found) == {"n", "s"} and found["n"] in (1, 22) and choice.finish_reason == "stop"
    assert isinstance(json.loads(ask(client, response_format={"type": "json_object"}).choices[0].message.content), dict)
    for seed in range(2):  # beside tools: a call, or the JSON
        message = ask(client, response_format=form, tools=TOOLS, seed=seed).choices[0].message
        assert fits(message.tool_calls[0]) if message.tool_calls else json.loads(message.content)["n"] in (1, 22)


@pytest.mark.parametrize(
    "options",
    [{}, {"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "required"}, {"response_format": {"type": "json_object"}}],
)
@pytest.mark.parametrize("kind", ["client", "plain"])
def test_a_stream_is_the_same_answer_in_pieces(kind, options, request):
    client = request.getfixturevalue(kind)
    options = {"max_tokens": 100 if "tools" in options else 20, **options}
    for seed in (3,) if options["max_tokens"] > 20 else (3, 4):
        whole = ask(client, seed=seed, **options)
        said, calls, finish, usage = "", [], None, None
        for chunk in ask(client, seed=seed, stream=True, stream_options={"include_usage": True}, **options):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                said += choice.delta.content or ""
                calls += choice.delta.tool_calls or []
                finish = choice.finish_reason or finish
        message = whole.choices[0].message
        assert (said, finish, usage) == (message.content or "", whole.choices[0].finish_reason, whole.usage)
        assert [c.function for c in calls] == [
            type(c.function)(**vars(w.function)) for c, w in zip(calls, message.tool_calls or [], strict=True)
        ]


def test_the_order_of_calls_follows_the_conversation(shop):
    for seed in range(2):  # nothing but the list is admitted first, not even words
        [choice] = ask(shop, tools=SHOP, seed=seed).choices
        assert [call.function.name for call in choice.message.tool_calls] == ["list_orders"]
    listed = [*ASK, *called("list_orders", {}, '{"orders": ["#11", "#12"]}')]
    found = set()
    for seed in range(4):
        [call] = ask(shop, listed, tools=SHOP, tool_choice="required", seed=seed).choices[0].message.tool_calls
        found.add((call.function.name, json.loads(call.function.arguments)["id"]))
    assert found <= {("get_order", "#11"), ("get_order", "#12")} and found


def test_conditions_look_at_results_and_at_what_the_user_said(shop):
    cancel = {"type": "function", "function": {"name": "cancel_order"}}
    talk = [*ASK, *called("list_orders", {}, '{"orders": ["#11"]}')]
    talk += called("get_order", {"id": "#11"}, '{"id": "#11", "status": "pending"}')
    with pytest.raises(openai.BadRequestError, match="no call of cancel_order is admitted at this point"):
        ask(shop, talk, tools=SHOP, tool_choice=cancel)
    talk += [{"role": "assistant", "content": "Shall I cancel it?"}, {"role": "user", "content": "Yes."}]
    [call] = ask(shop, talk, tools=SHOP, tool_choice=cancel).choices[0].message.tool_calls
    assert json.loads(call.function.arguments)["id"] == "#11"
    assert ask(shop, talk, tools=SHOP, tool_choice="none", max_tokens=5).choices[0].message.content


def test_a_conversation_that_breaks_the_knowledge_is_told(shop):
    with pytest.raises(openai.BadRequestError, match=r"messages\[1\]: get_order is not admitted there"):
        ask(shop, [*ASK, *called("get_order", {"id": "#11"}, "{}")], tools=SHOP)
    with pytest.raises(openai.BadRequestError, match=r"messages\[1\] is the result of a call that isn.t in"):
        ask(shop, [*ASK, {"role": "tool", "tool_call_id": "x", "content": "{}"}], tools=SHOP)


def test_requests_join_those_that_are_being_written(client):
    """A long answer is begun; others join it, each written as it is alone, and end before it does."""
    options = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    long = ask(client, max_tokens=3900, stream=True)
    next(iter(long))
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda i: ask(client, seed=i, **options), range(12)))
    assert next(iter(long)).choices[0].finish_reason is None  # still being written
    long.close()
    assert all(fits(answer.choices[0].message.tool_calls[0]) for answer in answers)
    alone = ask(client, seed=7, **options).choices[0].message.tool_calls[0].function
    assert alone == answers[7].choices[0].message.tool_calls[0].function


def test_several_calls_in_an_answer(client, plain, shop):
    """Where the model's form of calls has several, and no knowledge says that a result decides what may follow."""
    counts = {}
    for name, one, more in [
        ("client", client, {}),
        ("off", client, {"parallel_tool_calls": False}),
        ("plain", plain, {}),
    ]:
        found = [ask(one, tools=TOOLS, tool_choice="required", seed=i, max_tokens=400, **more) for i in range(4)]
        calls = [answer.choices[0].message.tool_calls for answer in found]
        assert all(fits(call) for listed in calls for call in listed)
        counts[name] = max(map(len, calls))
        assert len({call.id for listed in calls for call in listed}) == sum(map(len, calls))
    assert counts["client"] > 1 == counts["off"] == counts["plain"]
    [_] = ask(shop, tools=SHOP, tool_choice="required", max_tokens=400).choices[0].message.tool_calls
    talk = [*ASK, {"role": "assistant", "content": None, "tool_calls": [call.model_dump() for call in calls[0]]}]
    talk += [{"role": "tool", "tool_call_id": call.id, "content": "{}"} for call in calls[0]]
    assert ask(client, talk, tools=TOOLS).choices[0].finish_reason


def test_stop_texts_beside_tools(client, plain):
    """They end what is said, never a call in its middle: that ends the answer where it is whole."""
    several = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 400}
    for seed in range(4):
        whole = ask(client, seed=seed, **several).choices[0].message.tool_calls
        for stop in ('"name"', "</tool_call>", "<tool_call>", "{"):
            [choice] = ask(client, seed=seed, stop=["no such text", stop], **several).choices
            assert choice.finish_reason == "tool_calls"
            assert [call.function for call in choice.message.tool_calls] == [whole[0].function]
    [call] = ask(plain, stop='"', **several).choices[0].message.tool_calls
    assert fits(call)
    cut = 0
    for seed in range(6):
        for one in (client, plain):
            options = {"tools": TOOLS, "seed": seed, "max_tokens": 90}
            message = ask(one, **options).choices[0].message
            if message.content and len(message.content) > 3:
                stop, cut = message.content[2], cut + 1
                [choice] = ask(one, stop=stop, **options).choices
                assert choice.message.content == message.content.partition(stop)[0]
                assert choice.finish_reason == "stop" and not choice.message.tool_calls
                chunks = [*ask(one, stop=stop, stream=True, **options)]
                assert "".join(c.choices[0].delta.content or "" for c in chunks) == choice.message.content
    assert cut


def test_json_is_not_cut_by_stop_texts(client):
    form = schema_format({"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"]})
    for more in ({}, {"tools": TOOLS}):
        message = ask(client, response_format=form, stop=['"', ":"], **more).choices[0].message
        assert fits(message.tool_calls[0]) if message.tool_calls else json.loads(message.content)["n"] in (1, 22)


def test_what_an_agent_of_smolagents_sends(client):
    talk = [{"role": one["role"], "content": [{"type": "text", "text": one["content"]}]} for one in ASK]
    stop = ["Observation:", "Calling tools:"]
    [choice] = ask(client, talk, tools=TOOLS, tool_choice="required", stop=stop).choices
    assert choice.finish_reason == "tool_calls" and fits(choice.message.tool_calls[0])


FIELDS = """max_tokens max_completion_tokens temperature top_p seed stop stream stream_options tools tool_choice
    parallel_tool_calls response_format n logprobs top_logprobs logit_bias frequency_penalty presence_penalty functions
    function_call modalities user store metadata""".split()


def test_null_is_as_if_the_field_were_not_there(client):
    for field in FIELDS:
        answer = post(client, {"max_completion_tokens": 3, field: None, "seed": 1})
        assert answer.status_code == 200, answer.text
    assert post(client, {"max_tokens": 3, **dict.fromkeys(set(FIELDS) - {"max_tokens"})}).status_code == 200
    for limits in ({"max_tokens": 3, "max_completion_tokens": None}, {"max_tokens": None, "max_completion_tokens": 3}):
        used = post(client, {"temperature": 1.0, **limits}).json()["usage"]
        assert used["completion_tokens"] <= 3
    assert post(client, {"max_tokens": 9, "max_completion_tokens": 3}).json()["usage"]["completion_tokens"] <= 3
    tool = {"type": "function", "function": {"name": "look", "description": None, "parameters": None, "strict": None}}
    called = {"id": "1", "type": "function", "function": {"name": "look", "arguments": None}}
    talk = [
        {"role": "user", "content": "?", "name": None, "tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": [called], "refusal": None},
        {"role": "tool", "tool_call_id": "1", "content": None},
    ]
    answer = post(client, {"messages": talk, "tools": [tool], "stream_options": {"include_usage": None}})
    assert answer.status_code == 200, answer.text


def test_an_error_while_an_answer_is_written_ends_it_alone(client, monkeypatch):
    def fails(text, token):
        raise LimitError("states", 1, "too many states")

    long = ask(client, max_tokens=3900, stream=True)
    next(iter(long))
    monkeypatch.setattr(FollowedText, "accept", fails)
    with pytest.raises(openai.BadRequestError, match="too many states"):
        ask(client, tools=TOOLS, tool_choice="required")
    assert next(iter(long)).choices[0].finish_reason is None
    long.close()


def test_a_bad_request_fails_alone(client):
    def one(i):
        long = [{"role": "user", "content": "x" * 30_000}]
        try:
            return ask(client, long if i % 3 == 0 else ASK, max_tokens=5).choices[0].finish_reason
        except openai.APIStatusError as error:
            return error.status_code

    with ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(one, range(9)))
    assert [answer == 400 for answer in answers] == [i % 3 == 0 for i in range(9)]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("[1]", 400, "a request is a JSON object"),
        ("{", 400, "not JSON"),
        ("[" * 100_000, 400, "nested too deeply"),
        ({"model": "gpt"}, 404, "there is no model 'gpt'"),
        ({"messages": []}, 400, "there are no messages"),
        ({"messages": [{"role": "king"}]}, 400, r"messages\[0\] has the role 'king'"),
        ({"messages": [{"content": "Hello"}]}, 400, r"messages\[0\] has no role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "parts that are not text"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "half a character"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": ["\ud800"]}]}, 400, "half a character"),
        ({"messages": called("get_order", {"id": "\ud800"}, "{}")}, 400, "half a character"),
        ({"messages": called("\ud800", [], "{}")}, 400, "half a character"),
        ({"stop": ["\ud800"]}, 400, "half a character"),
        ({"temperature": 1e-46}, 400, "temperature is 1e-46"),
        ({"messages": ASK * 2000}, 400, "has 2000 entries, at most 1000"),
        ({"n": 2}, 400, "n is not served"),
        ({"max_tokens": 0}, 400, "max_tokens is 0"),
        ({"max_tokens": True}, 400, "max_tokens is True"),
        ({"temperature": float("nan")}, 400, "temperature is nan"),
        ({"stop": ["a", ""]}, 400, "stop holds what is no text, or an empty one"),
        ({"stop": [str(i) for i in range(17)]}, 400, "stop has 17 texts"),
        ({"parallel_tool_calls": "no"}, 400, "parallel_tool_calls is 'no'"),
        ({"tools": {}}, 400, "tools is a list"),
        ({"tools": [{"x": 1}]}, 400, "tool 0 has no name"),
        ({"tools": [TOOLS[0]] * 2}, 400, "2 tools named"),
        ({"tools": TOOLS, "tool_choice": "maybe"}, 400, "tool_choice is 'maybe'"),
        ({"tools": TOOLS, "tool_choice": {"function": {"name": "burn"}}}, 400, "there is no tool 'burn'"),
        ({"tool_choice": "required"}, 400, "there are no tools"),
        ({"response_format": {"type": "xml"}}, 400, "response_format can't be read"),
        ({"response_format": schema_format({"$ref": "#/no"})}, 400, "response_format"),
        ({"max_tokens": 4, "response_format": schema_format({"const": "a" * 99})}, 400, "token"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_one_clear_error(client, body, status, told):
    found = post(client, body)
    error = found.json()["error"]
    assert found.status_code == status, error
    assert error["type"] == "invalid_request_error"
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(error["message"])


def test_limits_and_paths(client, monkeypatch):
    url = f"{client.base_url}chat/completions"
    monkeypatch.setattr(bounds, "BODY", 1000)
    big = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "x" * 2000}]})
    assert http.post(url, content=big, headers={"Content-Type": "application/json"}).status_code == 413
    assert http.post(url, content="{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert http.get(url).json()["error"]["message"] == "Method Not Allowed"
    assert http.get(f"{client.base_url}nothing").status_code == 404
    assert http.get(f"{client.base_url}models", headers={"Host": "evil.example"}).status_code == 400
    monkeypatch.setattr(bounds, "WAITING", 0)
    with pytest.raises(openai.RateLimitError, match="try again later"):
        ask(client)
    monkeypatch.setattr(bounds, "WAITING", 64)
    monkeypatch.setattr(bounds, "SECONDS", 0.0)
    with pytest.raises(openai.InternalServerError, match="took longer"):
        ask(client, max_tokens=3000)
    with pytest.raises(openai.APIError, match="took longer"):
        list(ask(client, max_tokens=3000, stream=True))


def test_a_client_that_goes_away_ends_its_answer(client):
    stream = ask(client, max_tokens=3900, stream=True)
    next(iter(stream))
    stream.close()
    assert ask(client, max_tokens=1).usage.completion_tokens <= 1


def test_a_key_is_asked_for():
    for client in running(key="secret"):
        assert client.models.list().data
        wrong = openai.OpenAI(base_url=client.base_url, api_key="other", max_retries=0)
        with pytest.raises(openai.AuthenticationError, match="wrong or missing"):
            wrong.models.list()


def test_our_own_remote_model_finds_out_what_it_obeys(client):
    model = RemoteModel(str(client.base_url))
    assert model.enforce == "json_schema"
    action = Grammar.from_choices(["go to desk 1", "look"])
    [written] = model.write([Request("", action, 60, messages=ASK)])
    assert action.matches(written.text) and not written.replaced


def test_the_command_says_where_it_listens_and_warns_on_the_network(tmp_path, monkeypatch, capsys):
    ready = []

    def stop(app, host, port, say):
        say(f"http://{host}:{port}/v1")
        ready.append(app)

    monkeypatch.setattr("constrained.server.connections.serve", stop)
    tokenizer = tiny_tokenizer()
    tiny_llama(len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "shop.lark").write_text(POLICY)
    words = ["serve", "--model", str(tmp_path), "--name", "tiny", "--knowledge", str(tmp_path / "shop.lark")]
    capsys.readouterr()
    assert main(words) == 0
    out = capsys.readouterr()
    assert "tiny at http://127.0.0.1:8000/v1; calls obey" in out.out and not out.err
    assert main([*words, "--host", "0.0.0.0"]) == 0
    assert "warning: anyone on the network can use this server" in capsys.readouterr().err
    assert len(ready) == 2


def test_a_wrong_start_is_one_clear_error(tmp_path, capsys):
    (tmp_path / "bad.lark").write_text('//: burns x\nstart: "a"\n')
    assert main(["serve", "--model", "embedded", "--knowledge", str(tmp_path / "bad.lark")]) == 1
    assert "unexpected `burns`" in capsys.readouterr().err
    (tmp_path / "bad.lark").write_text(POLICY + POLICY.partition("start: list_orders")[2])
    assert main(["serve", "--model", "embedded", "--knowledge", str(tmp_path / "bad.lark")]) == 1
    assert "rule 'respond' is defined already" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--model", "embedded", "--port", str(taken.getsockname()[1])]) == 1
    assert "can't listen at 127.0.0.1" in capsys.readouterr().err
