"""The MCP servers over stdio: the agent starts a shim in place of each, and the gateway starts the server and relays.

The shim (`shim.py`) passes its standard streams to the gateway through a socket in the gateway's folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from bench.common.wording import plural
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.gateway.mcp import KnownServer
from bench.probe.run.gateway.server_errors import ServerErrors
from bench.probe.run.gateway.stdio import StdioRelay
from bench.probe.run.gateway.subject import CommandWords, McpConfig, McpServer
from bench.probe.run.gateway.tools_list import list_tools
from bench.record.probe_events import GatewayCall
from bench.wire.agent_process import EXIT_NOT_STARTED, AgentProcess
from bench.wire.json_rpc import Pipe

SHIM = Path(__file__).with_name("shim.py")
MAX_HEADER_BYTES = 2**23
"""The longest message of a shim about its server. The kernel limits the command and the variables to 2 MiB."""
HEADER_TIMEOUT_S, EXIT_GRACE_S = 10.0, 2.0
"""The time for a shim's header to arrive, and for a server to exit after its agent has disconnected."""

ServerHeader = dict[str, Any]
"""What a shim sends about its server: the key `server` (`INDEX/NAME`), its command (`words`), its folder (`cwd`) and its
`environment`."""
Streams = tuple[int, int, int]
"""The files of a server's stdin, stdout and stderr."""


class StdioServers:
    """Starts the MCP servers over stdio for the agent's shims, and relays their messages, while its context lasts.

    Args:
        configs: The agent's configs, which name the servers.
        folder: The private folder of the gateway; the socket `gateway` is in it.
        context: What all doors share.
        start: Starts a server as its shim's header says. Raises OSError.
    """

    def __init__(
        self,
        configs: Sequence[McpConfig],
        folder: Path,
        context: DoorContext,
        start: Callable[[ServerHeader, Streams], AgentProcess],
    ) -> None:
        self._folder, self._context, self._start = folder, context, start
        self._servers = [
            {server.name: KnownServer(server.name, "mcp_stdio") for server in config.servers} for config in configs
        ]
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[StdioRelay, tuple[AgentProcess, asyncio.Task[None]]] = {}
        self._gate_error: BaseException | None = None
        self._headers: dict[KnownServer, ServerHeader] = {}
        """The header with which each server was started last."""

    def listen(self, listening: socket.socket) -> None:
        """Accept the connections of shims at this socket, until `close`."""
        self._socket = listening
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self.accept)

    def close(self) -> None:
        """Accept no further connections."""
        asyncio.get_running_loop().remove_reader(self._socket)

    @property
    def handshakes(self) -> Mapping[str, dict[str, Any]]:
        """The responses of each server to messages that are no calls, by server and method."""
        return {name: server.handshake for servers in self._servers for name, server in servers.items()}

    async def record_claims(self, calls: Sequence[GatewayCall]) -> tuple[GatewayCall, ...]:
        """Return calls with what their tools say of themselves: whether they only read, and are idempotent. A server that got
        one of these calls, and was never asked for its tools, is started once more, asked for its tools, and ended."""
        called_doors, asked_servers = {call.door for call in calls if call.door_kind == "mcp_stdio"}, dict[str, KnownServer]()
        for known, header in list(self._headers.items()):  # a server can start meanwhile
            if known.door in called_doors and not known.was_asked:
                known.was_asked, asked_servers[known.door] = True, known
                await list_tools(partial(self._start, header), known)
        return tuple(
            asked_servers[call.door].with_claims(call) if call.door in asked_servers and call.reads is None else call
            for call in calls
        )

    def shim(self, index: int, server: McpServer) -> CommandWords:
        """Return the command of the shim that replaces a server's command. `index` is the position of the server's config."""
        shim = (sys.executable, "-I", "-S", str(SHIM), str(self._folder.absolute()))
        return *shim, f"{index}/{server.name}", *server.command

    def accept(self) -> None:
        """Accept the connections of all shims that wait at the socket, and serve each in a task."""
        with suppress(OSError):  # no shim waits any more
            while True:
                connection = self._socket.accept()[0]
                task = asyncio.get_running_loop().create_task(self._serve(connection))
                self._tasks.add(task)
                task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Keep the first exception of a task for `end`, which raises it."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._gate_error = self._gate_error or (error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error)

    async def end(self, *, busy: bool) -> None:
        """Kill the servers, since their agent has ended; if `busy`, also those with a held call. Raises an exception of a
        gate."""
        ending_tasks = self._tasks - {task for _, task in self._running.values()}
        running = {relay: process_and_task for relay, process_and_task in self._running.items() if busy or not relay.is_busy}
        for task in ending_tasks:
            task.cancel()
        for relay, (process, task) in running.items():
            process.kill()
            if not relay.stop():
                ending_tasks.add(task)
        await asyncio.gather(*(asyncio.shield(process.ended) for process, _ in running.values()))
        if ending_tasks:
            await asyncio.wait(ending_tasks)
        if gate_error := self._gate_error:
            self._gate_error = None
            raise gate_error

    async def _serve(self, connection: socket.socket) -> None:
        """Start the server for a shim, and relay its messages until one of them has ended."""
        files: list[int] = []
        with connection:
            connection.setblocking(False)
            try:
                async with asyncio.timeout(HEADER_TIMEOUT_S):
                    header = await _receive_header(connection, files)
                index, _, name = header["server"].partition("/")
                known = self._servers[int(index)][name]
                code = await self._relay(connection, files, header, known)
                await asyncio.get_running_loop().sock_sendall(connection, str(code).encode())
            except (TimeoutError, ValueError, LookupError):
                self._context.gate().notice(
                    "", "a process that is no server of the agent's config connected to the gateway; it was refused"
                )
            except OSError:
                return  # the shim is gone
            finally:
                for file in files:
                    os.close(file)

    async def _relay(self, connection: socket.socket, files: list[int], header: dict[str, Any], known: KnownServer) -> int:
        """Start a server, and relay its messages until it or its agent has disconnected. Return its exit code for the shim.

        Args:
            connection: The connection to the shim.
            files: The shim's stdin, stdout and stderr. The first two are removed from the list, since the relay owns them.
            header: The shim's header.
            known: What is known about the server.
        """
        server_input, to_server = os.pipe()
        from_server, server_output = os.pipe()
        errors = ServerErrors(files[2])
        streams = (server_input, server_output, errors.input)
        self._headers[known] = header
        try:
            process = self._start(header, streams)
        except OSError as error:
            for file in (from_server, to_server):
                os.close(file)
            return self._report_not_started(files[2], known, error.strerror or str(error))
        finally:
            for file in streams:
                os.close(file)
        agent_input, agent_output = files[:2]
        del files[:2]
        agents, servers = (Pipe(agent_input), Pipe(agent_output)), (Pipe(from_server), Pipe(to_server))
        relay = StdioRelay(known, agents, servers, self._context)
        serving = asyncio.current_task()
        assert serving
        self._running[relay] = process, serving
        relaying = asyncio.create_task(relay.run())
        disconnected = asyncio.create_task(_until_closed(connection))
        line: str | None = None
        try:
            await asyncio.wait({relaying, disconnected}, return_when=asyncio.FIRST_COMPLETED)
            if relay.is_busy and not relaying.done():  # the agent has left, and a held call may still be delivered
                finishing = asyncio.ensure_future(relay.finish())
                await asyncio.wait({relaying, finishing}, return_when=asyncio.FIRST_COMPLETED)
                finishing.cancel()
            if relaying.done():
                relaying.result()
            if await _has_ended_by_itself(process, relay, disconnected):
                line = await errors.last_line()
        finally:
            gate = self._context.gate()
            for call in relay.calls_unanswered(gate.patience):
                late = f"it did not answer call {call.number} ({call.tool}) within {gate.patience:g} s, until it was ended"
                gate.notice(known.door, late)
            disconnected.cancel()
            relaying.cancel()
            await process.close()
            await asyncio.gather(relaying, disconnected, return_exceptions=True)
            del self._running[relay]
        ended = process.ended.result()
        if ended.failed:
            return self._report_not_started(files[0], known, os.strerror(ended.failed))
        code = ended.code if ended.code is not None else 128 + (ended.signal or 0)
        if line is not None and (ended.code is not None or not relay.is_stopped):
            unanswered = len(relay.calls_unanswered())
            unanswered_note = f" and left {plural(unanswered, 'call')} unanswered" if unanswered else ""
            problem = f"it ended with exit code {code}{unanswered_note}: {line or 'it printed no error'}"
            self._context.gate().notice(known.door, problem)
        return 1 if relay.is_stopped else code

    def _report_not_started(self, errors: int, known: KnownServer, why: str) -> int:
        """Report that a server cannot be started. Return the exit code for the shim."""
        line = f"the server '{known.door}' cannot be started ({why}); correct its command in the agent's config"
        self._context.gate().notice(known.door, line)
        with suppress(OSError):
            os.write(errors, f"bench probe: {line}\n".encode())
        return EXIT_NOT_STARTED


async def _receive_header(connection: socket.socket, files: list[int]) -> dict[str, Any]:
    """Return a shim's header, and append the three files that it passes to `files`. Raises OSError, and ValueError for an
    invalid header."""
    loop, text = asyncio.get_running_loop(), bytearray()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    files += socket.recv_fds(connection, 1, 3)[1]
    while not text.endswith(b"\n") and len(text) < MAX_HEADER_BYTES:
        if not (data := await loop.sock_recv(connection, 2**16)):
            raise ConnectionError
        text += data
    header = json.loads(text)
    if not isinstance(header, dict) or len(files) != 3:
        raise ValueError
    return header


async def _has_ended_by_itself(process: AgentProcess, relay: StdioRelay, disconnected: asyncio.Task[None]) -> bool:
    """Wait until a server has ended or its agent has disconnected. Return whether the server ended while its agent was
    connected."""
    if disconnected.done():
        process.terminate()
        await asyncio.wait({process.ended}, timeout=EXIT_GRACE_S)
        return False
    if relay.is_stopped:
        return False
    is_agent_connected = not relay.has_agent_left
    ends: set[asyncio.Future[Any]] = {process.ended, disconnected}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if is_agent_connected:
        await asyncio.wait({process.ended}, timeout=EXIT_GRACE_S)  # an agent ends soon after its server
    return is_agent_connected and process.ended.done()


async def _until_closed(connection: socket.socket) -> None:
    """Wait until a connection is closed."""
    with suppress(OSError):
        await asyncio.get_running_loop().sock_recv(connection, 1)
