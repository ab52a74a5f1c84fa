"""An MCP session behind a guard; the server offers the shop of tool_policy.py.

It needs `pip install mcp`.
"""

import asyncio

from tool_policy import POLICY, call

from constrained.guard import guard


def make_server():
    """The shop as an MCP server."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("shop")

    @server.tool()
    def list_orders() -> str:
        """The customer's orders."""
        return call("list_orders", {})

    @server.tool()
    def get_order(id: str) -> str:
        """An order's status and items."""
        return call("get_order", {"id": id})

    @server.tool()
    def cancel_order(id: str, reason: str) -> str:
        """Cancel a pending order."""
        return call("cancel_order", {"id": id, "reason": reason})

    return server


async def main():
    from mcp import Client

    cancel = {"id": "#11", "reason": "no longer needed"}
    async with Client(make_server()) as client:
        session = guard(client, POLICY, on_violation="tell")
        told = [await session.call_tool("cancel_order", cancel)]  # nothing has shown it
        told += [await session.call_tool("list_orders"), await session.call_tool("get_order", {"id": "#11"})]
        session.said("Shall I cancel order #11?")
        session.heard("Yes, please.")
        told += [await session.call_tool("cancel_order", cancel), await session.call_tool("cancel_order", cancel)]
    for result in told:
        print(result.content[0].text)
    return told


if __name__ == "__main__":
    asyncio.run(main())
