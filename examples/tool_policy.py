"""A shop's tools under a policy: what no result has shown can't be named, and no change is made without a yes.

python examples/tool_policy.py
"""

import json

from constrained import ActionKnowledge

ORDERS = {
    "#11": {"id": "#11", "status": "pending", "items": ["kettle", "mouse"]},
    "#12": {"id": "#12", "status": "delivered", "items": ["lamp"]},
}

ORDER = {"type": "string", "description": "The order's number."}
TOOLS = [
    {
        "name": "list_orders",
        "description": "The customer's orders.",
        "parameters": {"type": "object", "properties": {}},
    },
    {
        "name": "get_order",
        "description": "An order's status and items.",
        "parameters": {"type": "object", "properties": {"id": {**ORDER, "x-slot": "ORDER"}}, "required": ["id"]},
    },
    {
        "name": "cancel_order",
        "description": "Cancel a pending order.",
        "parameters": {
            "type": "object",
            "properties": {"id": ORDER, "reason": {"enum": ["no longer needed", "ordered by mistake"]}},
            "required": ["id", "reason"],
        },
    },
]

POLICY = """
%declare _STEP RESPOND LIST_ORDERS GET_ORDER CANCEL_ORDER

//: message respond
//: fails by "Error"
//: init said = ""
//: tells said = $ by respond
//: tells ORDER = $.orders[*] by list_orders
//: tells order[@.id] = $ by get_order, cancel_order
//: let yes() = search("(?i)yes", said)

// Help a customer with their orders.
start: respond | list_orders | get_order | cancel_order

// respond: say something, and wait for the answer.
respond: RESPOND _STEP [start]

// list_orders: begin with this.
list_orders: LIST_ORDERS _STEP start

// get_order: look before you change anything.
get_order: GET_ORDER _STEP start

// cancel_order: only a pending order that was looked up, and only after a clear yes.
//: needs yes() // the customer hasn't said yes
//: needs id in [o for o in keys(order) if order[o].status == "pending"] // it wasn't looked up, or isn't pending
cancel_order: CANCEL_ORDER _STEP start
"""


def call(name: str, arguments: dict) -> str:
    """The shop's own tools."""
    if name == "list_orders":
        return json.dumps({"orders": list(ORDERS)})
    if name == "cancel_order":
        ORDERS[arguments["id"]] = {**ORDERS[arguments["id"]], "status": "cancelled"}
    return json.dumps(ORDERS[arguments["id"]])


def main() -> list[str]:
    knowledge = ActionKnowledge.from_tools(TOOLS, policy=POLICY)
    tools = knowledge.tools
    memory, verdicts = tools.policy.initial, []
    wanted = [
        ("get_order", {"id": "#11"}),  # nothing has shown it yet
        ("list_orders", {}),
        ("get_order", {"id": "#11"}),
        ("cancel_order", {"id": "#11", "reason": "no longer needed"}),  # nobody said yes
        ("respond", {"content": "Shall I cancel order #11?"}),
        ("cancel_order", {"id": "#12", "reason": "no longer needed"}),  # another order
        ("cancel_order", {"id": "#11", "reason": "no longer needed"}),
        ("cancel_order", {"id": "#11", "reason": "no longer needed"}),  # twice
    ]
    for name, arguments in wanted:
        now = knowledge.bind_view(tools.view(memory))  # the masks: now.next_action()
        judgement = now.judge({"name": name, "arguments": arguments})
        why = "; ".join(tools.unmet(memory, name, arguments))
        print(f"{judgement.verdict:<9} {name} {arguments} {why}")
        verdicts.append(judgement.verdict)
        if judgement:
            result = "Yes, please." if name == "respond" else call(name, arguments)
            memory, knowledge = tools.told(memory, judgement.text, result), now.after(judgement.text)
    return verdicts


if __name__ == "__main__":
    main()
