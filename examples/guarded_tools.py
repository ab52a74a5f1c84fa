"""A shop's functions behind a guard: whatever loop calls them, what the policy doesn't admit is not carried out.

python examples/guarded_tools.py
"""

from tool_policy import POLICY, TOOLS, call

from constrained.guard import guard


def list_orders() -> str:
    return call("list_orders", {})


def get_order(id: str) -> str:
    return call("get_order", {"id": id})


async def cancel_order(id: str, reason: str) -> str:
    return call("cancel_order", {"id": id, "reason": reason})


async def main() -> list[str]:
    tools = guard([list_orders, get_order, cancel_order], POLICY, schemas=TOOLS, on_violation="tell")
    cancel = {"id": "#11", "reason": "no longer needed"}
    tools.heard("I don't need order #11 any more.")
    told = [
        tools["list_orders"](),
        await tools["cancel_order"](**cancel),  # nobody looked it up, and nobody said yes
        tools["get_order"](id="#11"),
        await tools["cancel_order"](**cancel),  # nobody said yes
    ]
    tools.said("Shall I cancel order #11?")
    tools.heard("Yes, please.")
    told += [await tools["cancel_order"](**cancel), await tools["cancel_order"](**cancel)]  # twice
    print(*told, sep="\n")
    return told


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
