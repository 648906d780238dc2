"""An HTTP server for a world's tools.

    GET  /openapi.json   all of it, as OpenAPI
    GET  /tools          the tools, in the form of a chat completion's `tools`
    POST /tools/NAME     call one; takes `Idempotency-Key` and `If-Match`
    POST /mcp            the same tools, as an MCP server over streamable HTTP without a separate stream (GET: 405)

An answer that a fault loses is never sent: the connection closes. Calls are answered one after the other, as they come.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from bench.common.errors import ConfigError
from bench.run.endpoint.server import hang_up
from bench.wire.problem import Problem
from bench.worlds.run.driver.asgi import asgi_response
from bench.worlds.run.driver.openapi import openapi
from bench.worlds.run.driver.tool_answers import ToolResponse
from bench.worlds.run.driver.tool_requests import arguments_of, expected_of, key_of, versions_of
from bench.worlds.run.driver.tools import Tools
from bench.worlds.run.runtime.acting import Acting


class ToolServer:
    """The HTTP server of one trial's tools."""

    def __init__(self, tools: Tools, acting: Acting):
        self._tools, self._acting = tools, acting
        self._turn = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the server."""
        return [
            web.get("/openapi.json", self._openapi),
            web.get("/tools", self._list_tools),
            web.post("/tools/{name}", self._call_tool),
            web.post("/mcp", self._mcp),
        ]

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(openapi(self._tools.offers, f"http://{request.host}"))

    async def _list_tools(self, _: web.Request) -> web.StreamResponse:
        return web.json_response([offer.function for offer in self._tools.offers])

    async def _call_tool(self, request: web.Request) -> web.StreamResponse:
        """Answer a call of a tool over HTTP. If a fault loses the answer, close the connection."""
        arguments = arguments_of(await request.read())
        key, expect = key_of(request.headers.get("Idempotency-Key")), versions_of(request.headers.get("If-Match"))
        async with self._turn:
            answer = await self._tools.call(request.match_info["name"], arguments, key, expect)
            if answer.lost:
                return hang_up(request, web.Response())
            return await self._send(request, web.json_response(dict(answer.body), status=answer.status))

    async def _mcp(self, request: web.Request) -> web.StreamResponse:
        """Answer an MCP request. One request is answered at a time."""
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415  an extra

            from bench.worlds.run.driver.mcp_server import tool_server  # noqa: PLC0415  an extra
        except ModuleNotFoundError as error:
            raise ConfigError("an agent asked at MCP_URL, which needs: pip install '.[mcp]'") from error
        exchange = _McpExchange(self._tools)
        server = tool_server(exchange.list_tools, exchange.call)
        async with self._turn:
            manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
            async with manager.run():
                response = await asgi_response(manager.handle_request, request)
            exchange.check()
            return hang_up(request, web.Response()) if exchange.lost else await self._send(request, response)

    async def _send(self, request: web.Request, response: web.Response) -> web.StreamResponse:
        """Send an answer. Raises Crashed if the agent dies before it records the content."""
        with self._acting.process.sending_answer():
            await response.prepare(request)
            await response.write_eof()
        return response


class _McpExchange:
    """One request to the MCP server. It keeps an exception that was raised: the SDK would turn it into an answer."""

    def __init__(self, tools: Tools):
        self._tools = tools
        self._error: BaseException | None = None
        self.lost = False

    async def list_tools(self) -> list[dict[str, Any]]:
        return [offer.function for offer in self._tools.offers]

    async def call(
        self, name: str, arguments: Mapping[str, Any], key: str | None, expected: Mapping[str, Any] | None
    ) -> tuple[bool, Mapping[str, Any]]:
        """Call a tool for an MCP client; return whether it succeeded, and the result or the error."""
        try:
            given = arguments_of(json.dumps(arguments).encode())
            answer = await self._tools.call(name, given, key_of(key), expected_of(expected))
        except Problem as problem:
            return False, {"error": {"code": problem.code, "message": problem.message}}
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._error, answer = error, ToolResponse(503, {}, lost=True)
        self.lost = self.lost or answer.lost
        return answer.ok, answer.body

    def check(self) -> None:
        """Raise the exception that was kept, if there is one."""
        if self._error:
            raise self._error
