"""Functions, LangGraph's node, MCP sessions and OpenAI's client behind a guard: nothing refused is carried out."""

from __future__ import annotations

import asyncio
import importlib
import socket
import threading
from pathlib import Path

import pytest

from constrained.cli import main
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.guard import Guard, Refused, guard
from constrained.guard.verdict import REFUSED
from tests.guard.scripted import as_input, event, scripted
from tests.guard.shop import AGREED, CANCEL, FLAT, LISTED, LOOKED, PENDING, POLICY, TOOLS, asked, said

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Shop:
    """The shop's functions, which note what is really carried out."""

    def __init__(self):
        self.done = []

    def list_orders(self):
        self.done.append("list_orders")
        return {"orders": ["#11", "#12"]}

    def get_order(self, id):
        self.done.append(f"get_order {id}")
        return PENDING

    async def cancel_order(self, id, reason):
        await asyncio.sleep(0)
        self.done.append(f"cancel_order {id}")
        return {"id": id, "status": "cancelled"}

    def refund(self, id, amount):
        self.done.append(f"refund {id}")
        raise OSError("the bank is away")

    def tools(self, **options):
        functions = [self.list_orders, self.get_order, self.cancel_order, self.refund]
        return guard(functions, POLICY, schemas=TOOLS, **options)


def test_a_refused_function_is_not_called_and_raises():
    shop = Shop()
    tools = shop.tools()
    with pytest.raises(Refused, match=r"get_order was not carried out: id in ORDER") as error:
        tools["get_order"](id="#11")
    assert error.value.verdict.name == "get_order" and isinstance(error.value, ConstrainedError)
    assert "list_orders" in str(error.value)
    assert shop.done == []


def test_results_and_words_open_what_they_should():
    shop = Shop()
    tools = shop.tools(on_violation="tell")
    assert tools["list_orders"]() == {"orders": ["#11", "#12"]}
    assert tools["get_order"]("#11") == PENDING
    assert asyncio.run(tools["cancel_order"](**CANCEL)).startswith(f"{REFUSED}cancel_order: the customer hasn't said")
    tools.said("Shall I?")
    tools.heard("Yes.")
    assert asyncio.run(tools["cancel_order"](**CANCEL))["status"] == "cancelled"
    assert asyncio.run(tools["cancel_order"](**CANCEL)).startswith(REFUSED)  # the consent is used up
    assert shop.done == ["list_orders", "get_order #11", "cancel_order #11"]


def test_two_calls_at_once_can_not_use_one_consent_twice():
    shop = Shop()
    tools = shop.tools(on_violation="tell")
    tools.follow(AGREED)

    async def both():
        return await asyncio.gather(tools["cancel_order"](**CANCEL), tools["cancel_order"](**CANCEL))

    first, second = asyncio.run(both())
    assert first["status"] == "cancelled" and second.startswith(REFUSED)
    assert shop.done == ["cancel_order #11"]


def test_threads_can_share_guarded_tools():
    shop = Shop()
    tools = shop.tools(on_violation="tell")
    tools.follow(LISTED)
    threads = [threading.Thread(target=tools["get_order"], args=("#11",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shop.done == ["get_order #11"] * 8 and not tools.conversation.waiting


def test_a_function_that_fails_tells_nothing_and_its_error_is_the_program_s():
    shop = Shop()
    tools = shop.tools()
    tools.follow(LOOKED)
    with pytest.raises(OSError, match="the bank is away"):
        tools["refund"](id="#11", amount=1)
    assert shop.done == ["refund #11"] and not tools.conversation.waiting


def test_a_function_of_the_verdict_decides_what_is_returned():
    tools = Shop().tools(on_violation=lambda verdict: {"refused": verdict.unmet[0].kind})
    assert tools["get_order"](id="#11") == {"refused": "facts"}


@pytest.mark.parametrize(
    ("tools", "options", "message"),
    [
        (7, {}, "int can't be guarded"),
        ({"list_orders": "no"}, {}, "is no function"),
        ({"list_orders": print}, {}, "can't be passed by name"),
        ({"list_orders": lambda: ""}, {"on_violation": "log"}, "on_violation is 'log'"),
    ],
)
def test_what_cannot_be_guarded_is_refused(tools, options, message):
    with pytest.raises(KnowledgeError, match=message):
        guard(tools, POLICY, **options)


def run_example(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    importlib.reload(importlib.import_module("tool_policy"))  # its shop anew
    return importlib.reload(importlib.import_module(name))


def test_the_example_with_functions_runs(monkeypatch, capsys):
    told = asyncio.run(run_example("guarded_tools", monkeypatch).main())
    assert [text.startswith(REFUSED) for text in told] == [False, True, False, True, False, True]
    assert "the customer hasn't said yes" in capsys.readouterr().out


def test_the_example_with_langgraph_runs(monkeypatch, capsys):
    pytest.importorskip("langgraph", reason="needs langgraph")
    messages = run_example("guarded_langgraph", monkeypatch).main()
    results = [message for message in messages if message.type == "tool"]
    assert [result.content.startswith(REFUSED) for result in results] == [False, True, False, True, False]
    assert [result.status for result in results][1::2] == ["error", "error"]
    assert messages[-1].content == "It is cancelled."


def test_langgraph_s_node_is_guarded_in_async_graphs_too(monkeypatch):
    pytest.importorskip("langgraph", reason="needs langgraph")
    example = run_example("guarded_langgraph", monkeypatch)
    graph = example.make_graph([example.written("", ("cancel_order", CANCEL)), example.written("Sorry.")])
    state = asyncio.run(graph.ainvoke({"messages": [("user", "About #11.")]}))
    assert state["messages"][2].content.startswith(f"{REFUSED}cancel_order")


def test_the_example_with_mcp_runs(monkeypatch, capsys):
    pytest.importorskip("mcp", reason="needs mcp")
    if not hasattr(importlib.import_module("mcp"), "Client"):
        pytest.skip("needs mcp 2")
    results = asyncio.run(run_example("guarded_mcp", monkeypatch).main())
    texts = [result.content[0].text for result in results]
    assert [text.startswith(REFUSED) for text in texts] == [True, False, False, False, True]
    assert [bool(result.is_error) for result in results] == [True, False, False, False, True]


class Listing:
    """An MCP server over HTTP, in a process's thread, until the block ends."""

    def __enter__(self):
        mcp = pytest.importorskip("mcp", reason="needs mcp")
        if not hasattr(mcp, "Client"):
            pytest.skip("needs mcp 2")
        import uvicorn
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("shop")
        for name in ("list_orders", "get_order", "cancel_order", "refund"):
            server.tool(name)(getattr(Shop(), name))
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}/mcp"
        self.server = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
        self.thread = threading.Thread(target=self.server.run, args=([self.listening],), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()


def test_tools_may_be_those_of_an_mcp_server_at_an_address(tmp_path, capsys):
    (tmp_path / "shop.lark").write_text(POLICY.replace("needs amount", "needs sum"), encoding="utf-8")
    with Listing() as listing:
        tools = guard({"list_orders": Shop().list_orders}, POLICY, schemas=listing.address)
        assert {*tools.guard.tools.calls} >= {"list_orders", "get_order", "cancel_order", "refund"}
        assert tools["list_orders"]() and tools.judge("get_order", {"id": "#11"})
        assert main(["check", str(tmp_path / "shop.lark"), "--tools", listing.address]) != 0
    assert "sum" in capsys.readouterr().out
    with pytest.raises(KnowledgeError, match=r"the tools at http://127\.0\.0\.1:9/mcp can't be read"):
        Guard("http://127.0.0.1:9/mcp", POLICY)


# openai


def asks(script, messages, stream=False, sync=True, api="chat", **options):
    """What a guarded client gives: the text, and the calls."""
    openai = pytest.importorskip("openai", reason="needs the extra remote")
    kind = openai.OpenAI if sync else openai.AsyncOpenAI
    client = guard(kind(base_url=script.url, api_key="none", max_retries=0), POLICY, **options)
    if api == "chat":
        request = {"messages": messages, "tools": TOOLS}
        endpoint = client.chat.completions
    else:
        request = {"input": as_input(messages), "tools": FLAT}
        endpoint = client.responses
    request |= {"model": "scripted", "stream": stream}
    read = whole if api == "chat" else whole_response
    if sync:
        answer = endpoint.create(**request)
        return read([*answer] if stream else answer, stream)

    async def later():
        async with client:
            answer = await endpoint.create(**request)
            return read([chunk async for chunk in answer] if stream else answer, stream)

    return asyncio.run(later())


def whole(answer, stream):
    if not stream:
        message = answer.choices[0].message
        return message.content, [call.function.name for call in message.tool_calls or []]
    deltas = [chunk.choices[0].delta for chunk in answer]
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    return "".join(delta.content or "" for delta in deltas), [c.function.name for c in calls if c.function.name]


def whole_response(answer, stream):
    """As the program may read it: the whole response, which the events before it must say, too."""
    if stream:
        events, answer = answer, answer[-1].response
        assert [event.sequence_number for event in events] == [*range(len(events))]
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        items = [event.item for event in events if event.type == "response.output_item.done"]
        assert text == answer.output_text
        assert [item.model_dump() for item in items] == [item.model_dump() for item in answer.output]
    return answer.output_text, [item.name for item in answer.output if item.type == "function_call"]


apis = pytest.mark.parametrize("api", ["chat", "responses"])


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("stream", [False, True])
@apis
def test_a_refused_answer_goes_back_to_the_model(stream, sync, api):
    cancel = asked(("cancel_order", CANCEL), ("list_orders", {}))
    with scripted() as script:
        script.answers = [cancel, said("Shall I cancel it?")]
        text, calls = asks(script, LOOKED, stream, sync, api, on_violation="tell")
    assert text.strip() == "Shall I cancel it?" and calls == []
    if api == "chat":
        before, sent = LOOKED, [body["messages"] for _, body in script.requests]
        assert [m["role"] for m in sent[1][len(before) :]] == ["assistant", "tool", "tool"]
        assert "the customer hasn't said yes" in sent[1][-2]["content"]
    else:
        before, sent = as_input(LOOKED), [body["input"] for _, body in script.requests]
        assert [m["type"] for m in sent[1][len(before) :]] == ["function_call"] * 2 + ["function_call_output"] * 2
        assert "the customer hasn't said yes" in sent[1][-2]["output"]
    assert sent[0] == before and sent[1][: len(before)] == before


@apis
@pytest.mark.parametrize("stream", [False, True])
def test_the_admitted_calls_before_a_refused_one_are_kept(stream, api):
    calls = asked(("list_orders", {}), ("cancel_order", CANCEL), ("list_orders", {}))
    with scripted() as script:
        script.answers = [{**calls, "content": "Let me look."}]
        text, names = asks(script, LOOKED, stream, api=api)
    assert (text.strip(), names) == ("Let me look.", ["list_orders"])


def test_whole_calls_without_numbers_in_a_stream_are_judged_one_by_one():
    calls = asked(("list_orders", {}), ("cancel_order", CANCEL))["tool_calls"]
    raw = "".join(event({"tool_calls": [call]}) for call in calls) + event({}, "tool_calls") + "data: [DONE]\n\n"
    with scripted() as script:
        script.answers = [{"raw": raw}]
        assert asks(script, LOOKED, True)[1] == ["list_orders"]


@apis
def test_a_model_that_insists_is_refused_in_the_end(api):
    with scripted() as script:
        script.answers = [asked(("cancel_order", CANCEL))] * 9
        with pytest.raises(Refused, match="the customer hasn't said yes"):
            asks(script, LOOKED, api=api, on_violation="tell", retries=3)
        assert len(script.requests) == 4
        with pytest.raises(Refused):
            asks(script, LOOKED, api=api)
        assert len(script.requests) == 5


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id can't be judged"),
        ({"conversation": "conv_1"}, "conversation can't be judged"),
        ({"background": True}, "background can't be judged"),
        ({"tools": [{"type": "web_search"}]}, "tools of the type 'web_search' can't be judged"),
        ({"tools": [{"type": "custom", "name": "cancel_order"}]}, "tools of the type 'custom' can't be judged"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, r"input\[0\]: items of the type 'item_reference'"),
        ({"input": [7]}, r"input\[0\] is no item"),
        ({"input": 7}, "the input is no text and no list"),
    ],
)
def test_what_of_the_responses_api_cannot_be_judged_is_refused(request_, message, stream):
    openai = pytest.importorskip("openai", reason="needs the extra remote")
    client = guard(openai.OpenAI(base_url="http://127.0.0.1:9", api_key="none"), POLICY)
    with pytest.raises(KnowledgeError, match=message):
        client.responses.create(**{"model": "m", "input": "Hello.", "tools": FLAT, "stream": stream, **request_})


def test_other_ways_to_a_model_are_not_open():
    openai = pytest.importorskip("openai", reason="needs the extra remote")
    client = guard(openai.OpenAI(base_url="http://127.0.0.1:9", api_key="none"), POLICY)
    for ask in (lambda: client.responses.parse, lambda: client.chat.completions.parse, lambda: client.beta):
        with pytest.raises(KnowledgeError, match="isn't guarded"):
            ask()
    assert client.api_key == "none" and client.responses is client.responses  # which keeps what it made of the tools
