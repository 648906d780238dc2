"""The tools of a world as an MCP server, by the official SDK. Run as a program, it serves the tools over stdio.

It imports nothing of this package: only this file is copied beside an agent and run there. A `.json` file of the same name
beside it holds the server's `address` and `token`, because clients start such programs without their own environment.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

KEY_FIELD, VERSIONS_FIELD = "idempotencyKey", "ifMatch"
"""Fields of a call's `_meta`: its idempotency key, and the versions that things must have."""
ToolDescriptions = list[dict[str, Any]]
"""Tools, in the form of a chat completion."""
CallTool = Callable[[str, Mapping[str, Any], str | None, Mapping[str, Any] | None], Awaitable[tuple[bool, Mapping[str, Any]]]]
"""(tool, arguments, key, expected versions) -> whether it was done, and the answer's body."""


def tool_server(list_tools: Callable[[], Awaitable[ToolDescriptions]], call: CallTool) -> Server[Any]:
    """Return an MCP server that lists the tools from `list_tools` and runs a tool with `call`."""

    async def on_list_tools(_: Any, __: Any) -> types.ListToolsResult:
        """Return the tools in MCP's form."""
        functions = [tool["function"] for tool in await list_tools()]
        tools = [
            types.Tool(name=function["name"], description=function["description"], input_schema=function["parameters"])
            for function in functions
        ]
        return types.ListToolsResult(tools=tools)

    async def on_call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run a tool, and return its result as a text and as an object."""
        meta: Mapping[str, Any] = params.meta or {}
        ok, body = await call(params.name, params.arguments or {}, meta.get(KEY_FIELD), meta.get(VERSIONS_FIELD))
        text = types.TextContent(type="text", text=json.dumps(body, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=dict(body), is_error=not ok)

    return Server("tools", version="1", on_list_tools=on_list_tools, on_call_tool=on_call_tool)


class WorldClient:
    """An HTTP client of a world's server. It uses no proxy."""

    def __init__(self, address: str, token: str):
        self._address, self._token = address, token
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    async def list_tools(self) -> ToolDescriptions:
        """Return the tools that the server offers."""
        _, tools = await asyncio.to_thread(self._ask, "/tools", None, {})
        return tools  # type: ignore[no-any-return]

    async def call(
        self, name: str, arguments: Mapping[str, Any], key: str | None, expected: Mapping[str, Any] | None
    ) -> tuple[bool, Mapping[str, Any]]:
        """Call a tool over HTTP. Return whether it was done, and the body of the answer."""
        headers = {"Idempotency-Key": str(key)} if key else {}
        if expected:
            headers["If-Match"] = ", ".join(f"{thing}={version}" for thing, version in expected.items())
        path = f"/tools/{urllib.parse.quote(name, safe='')}"
        return await asyncio.to_thread(self._ask, path, json.dumps(arguments).encode(), headers)

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[bool, Any]:
        """Send a request to the world's server. Return whether it succeeded, and the JSON of the response or of an error."""
        common = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, body, {**common, **headers})
        try:
            with self._opener.open(request) as answer:
                return True, json.load(answer)
        except urllib.error.HTTPError as refused:
            return False, json.load(refused)
        except (OSError, http.client.HTTPException) as error:
            return False, {"error": {"code": "unanswered", "message": f"no answer came: {type(error).__name__}"}}


async def main() -> None:
    """Serve the tools over stdio."""
    settings = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    client = WorldClient(settings["address"], settings["token"])
    server = tool_server(client.list_tools, client.call)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
