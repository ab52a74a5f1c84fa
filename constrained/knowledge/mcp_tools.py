"""The tools of an MCP server, by its address."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from constrained.errors import KnowledgeError, needs_extra

MAX_TOOLS = 10_000
"""Tools of a server; a list that goes on is refused."""

SECONDS = 30.0
"""Time that a server has for its list."""


def is_address(tools: Any) -> bool:
    """Whether this is a server's address."""
    return isinstance(tools, str) and tools.startswith(("http://", "https://"))


def named_tools(name: str) -> str | Path:
    """What a command's option names: a server's address, or else a file."""
    return name if is_address(name) else Path(name)


def tools_at(address: str) -> list[dict[str, Any]]:
    """The tools that an MCP server lists, all pages, asked over streamable HTTP.

    Raises KnowledgeError: the server can't be reached, is too slow, or lists no tools.
    """
    result: list[dict[str, Any]] = []
    failed: list[Exception] = []

    def ask() -> None:
        try:
            result.extend(asyncio.run(asyncio.wait_for(_listed(address), SECONDS)))
        except Exception as error:
            failed.append(error)

    with needs_extra("mcp", "the tool list of an MCP server", "mcp"):
        import mcp  # noqa: F401
    thread = threading.Thread(target=ask)  # the caller's thread may have an event loop that runs
    thread.start()
    thread.join()
    if failed:
        error = _first(failed[0])
        if isinstance(error, KnowledgeError):
            raise error
        why = f"no answer in {SECONDS:g} s" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
        raise KnowledgeError(f"the tools at {address} can't be read: {why[:300]}", "is it an MCP server over HTTP?")
    return result


async def _listed(address: str) -> list[dict[str, Any]]:
    from mcp import Client

    result: list[dict[str, Any]] = []
    async with Client(address) as client:
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            result += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
            if len(result) > MAX_TOOLS:
                raise KnowledgeError(f"the server at {address} lists more than {MAX_TOOLS:,} tools")
            cursor = page.next_cursor
            if not cursor:
                return result


def _first(error: BaseException) -> BaseException:
    """The error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
