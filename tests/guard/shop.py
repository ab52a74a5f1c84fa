"""A shop under a policy, and messages of conversations in it."""

from __future__ import annotations

import json
from typing import Any

ORDER = {"type": "string"}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}
    for name, schema in [
        ("list_orders", {"properties": {}}),
        ("get_order", {"properties": {"id": {**ORDER, "x-slot": "ORDER"}}, "required": ["id"]}),
        (
            "cancel_order",
            {
                "properties": {"id": ORDER, "reason": {"enum": ["no longer needed", "by mistake"]}},
                "required": ["id", "reason"],
            },
        ),
        ("refund", {"properties": {"id": ORDER, "amount": {"type": "number"}}, "required": ["id", "amount"]}),
    ]
]
FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]
"""The tools as requests of the Responses API have them."""

POLICY = """
%declare _STEP RESPOND LIST_ORDERS GET_ORDER CANCEL_ORDER REFUND

//: message respond
//: fails by "Error"
//: fact agreed
//: tells ORDER = $.orders[*] by list_orders
//: tells order[@.id] = $ by get_order, cancel_order

// Help a customer with their orders.
start: list_orders
more: respond | list_orders | get_order | cancel_order | refund

// respond: say something, and wait for the answer.
//: makes not agreed
//: tells agreed by "yes", "oui"
respond: RESPOND _STEP [more]

// list_orders: begin with this.
list_orders: LIST_ORDERS _STEP [more]

// get_order: look before you change anything.
get_order: GET_ORDER _STEP [more]

// cancel_order: only a pending order, and only after a clear yes, which is used up.
//: needs agreed // the customer hasn't said yes
//: needs id in [o for o in keys(order) if order[o].status == "pending"] // not pending, or never looked up
//: makes not agreed
cancel_order: CANCEL_ORDER _STEP [more]

// refund: what the order cost, at most.
//: needs id in keys(order) // never looked up
//: needs amount > 0, amount <= order[id].price // more than the price
refund: REFUND _STEP [more]
"""
PENDING = json.dumps({"id": "#11", "status": "pending", "price": 20.5})
CANCEL = {"id": "#11", "reason": "no longer needed"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def asked(*calls: tuple[str, Any]) -> dict[str, Any]:
    """A message with calls; the identity of call i is c0, c1, ..."""
    listed = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": _text(arguments)}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def told(*results: str) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": f"c{i}", "content": text} for i, text in enumerate(results)]


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


LISTED = [user("About my order."), asked(("list_orders", {})), *told('{"orders": ["#11", "#12"]}')]
LOOKED = [*LISTED, asked(("get_order", {"id": "#11"})), *told(PENDING)]
AGREED = [*LOOKED, said("Shall I cancel it?"), user("Yes, please.")]
