"""A server for tests on the loopback address, its clients, and what they ask; the model is real, tiny and random."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from constrained.grammar import read_source
from constrained.models import load
from tests.decoding.tiny import tiny_llama, tiny_tokenizer

openai = pytest.importorskip("openai", reason="needs the extra remote")
pytest.importorskip("starlette", reason="needs the extra serve")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra serve")
http = pytest.importorskip("httpx2", reason="comes with openai 3")

from constrained.server.app import make_app  # noqa: E402
from constrained.server.connections import config  # noqa: E402

ORDER = {"type": "string"}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": words, "parameters": schema}}
    for name, words, schema in [
        ("list_orders", "The customer's orders.", {"type": "object", "properties": {}}),
        (
            "get_order",
            "An order.",
            {"type": "object", "properties": {"id": ORDER}, "required": ["id"]},
        ),
        (
            "cancel_order",
            "Cancel a pending order.",
            {
                "type": "object",
                "properties": {"id": ORDER, "reason": {"enum": ["no longer needed", "é\n"]}},
                "required": ["id", "reason"],
            },
        ),
    ]
]
SHOP = json.loads(
    json.dumps(TOOLS).replace('{"id": {"type": "string"}}', '{"id": {"type": "string", "x-slot": "ORDER"}}')
)
POLICY = """
%declare _STEP RESPOND LIST_ORDERS GET_ORDER CANCEL_ORDER

//: message respond
//: init said = ""
//: tells said = $ by respond
//: tells ORDER = $.orders[*] by list_orders
//: tells order[@.id] = $ by get_order, cancel_order
//: let yes() = search("(?i)yes", said)

// Help a customer with their orders.
start: list_orders
// respond: say something.
respond: RESPOND _STEP [more]
// list_orders: begin with this.
list_orders: LIST_ORDERS _STEP [more]
// get_order: look.
get_order: GET_ORDER _STEP [more]
// cancel_order: only a pending order, and only after a yes.
//: needs yes() // the customer hasn't said yes
//: needs id in [o for o in keys(order) if order[o].status == "pending"] // it isn't pending
cancel_order: CANCEL_ORDER _STEP [more]
more: respond | get_order | cancel_order
"""
TEMPLATE = (
    "{% if tools %}<tool_call> {{ tools | length }}{% endif %}{% for m in messages %}"
    "<s>{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments.id }}{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}<s>assistant: {% endif %}"
)
ASK = [{"role": "user", "content": "What about my order?"}]


def start(policy: str | None = None, template: str | None = TEMPLATE, key: str | None = None):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    loaded = load((tiny_llama(len(tokenizer), context=4096), tokenizer))
    loaded.name = "tiny"
    app = make_app(loaded, read_source(policy) if policy else None, key=key, hosts=["127.0.0.1"])
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config(app))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    return server, thread, f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def running(policy: str | None = None, template: str | None = TEMPLATE, key: str | None = None) -> Iterator[Any]:
    """OpenAI's client of a server, which ends with the generator."""
    server, thread, url = start(policy, template, key)
    yield openai.OpenAI(base_url=url, api_key=key or "none", max_retries=0, timeout=600)
    server.should_exit = True
    thread.join()


def post(client: Any, body: Any) -> Any:
    """The answer to a body that OpenAI's client wouldn't send: an object, whose usual fields are filled in, or text."""
    usual = {"model": "tiny", "messages": ASK, "max_tokens": 5}
    data = body if isinstance(body, (str, bytes)) else json.dumps({**usual, **body})
    url = f"{client.base_url}chat/completions"
    return http.post(url, content=data, headers={"Content-Type": "application/json"}, timeout=600)


def ask(client, messages=ASK, **options):
    options = {"max_tokens": 120, "temperature": 1.0, "seed": 1, **options}
    return client.chat.completions.create(model="tiny", messages=messages, **options)


def schema_format(schema) -> dict:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}


def fits(call) -> bool:
    arguments = json.loads(call.function.arguments)
    if call.function.name == "cancel_order":
        return set(arguments) == {"id", "reason"} and arguments["reason"] in ("no longer needed", "é\n")
    return set(arguments) == {"list_orders": set(), "get_order": {"id"}}[call.function.name]


def called(name, arguments, result):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": name, "content": result},
    ]
