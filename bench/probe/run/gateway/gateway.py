"""The gateway of one worker: through it an agent reaches its tool servers, its services and its model."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shlex
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, chdir, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from bench.common.errors import ConfigError
from bench.common.files import new_file
from bench.common.wording import plural
from bench.probe.run.addresses import WEB, place_of
from bench.probe.run.box.authority import Authority, ends_tls
from bench.probe.run.box.box import Box
from bench.probe.run.box.closed_network import NOT_FOR_REAL, ClosedNetwork, without_proxies
from bench.probe.run.box.loading import OFFLINE, loader_of
from bench.probe.run.box.names import NameTable
from bench.probe.run.box.refusals import advice
from bench.probe.run.gateway.agent_config import expand, rewrite
from bench.probe.run.gateway.copied_paths import NOT_HANDED, replacement, with_copy
from bench.probe.run.gateway.database import DatabaseDoor
from bench.probe.run.gateway.functions import VARIABLE, FunctionDoor
from bench.probe.run.gateway.gate import CallGate, Desk
from bench.probe.run.gateway.listener import AgentListener
from bench.probe.run.gateway.mcp import KnownServer
from bench.probe.run.gateway.model import OPEN
from bench.probe.run.gateway.outbox_doors import MailDoor, WebhookDoor
from bench.probe.run.gateway.server_errors import ServerErrors
from bench.probe.run.gateway.stdio import StdioRelay
from bench.probe.run.gateway.subject import CommandWords, McpServer, Service, Subject
from bench.probe.run.gateway.tools_list import list_tools
from bench.probe.run.witness.outbox import OutboxStore
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.store import DatabaseServer
from bench.record.probe_events import GatewayCall
from bench.wire.agent_process import CANNOT_START, AgentProcess
from bench.wire.json_rpc import Pipe

SHIM = Path(__file__).with_name("shim.py")
LARGEST_HEADER = 2**23
"""Bytes of what a shim says of its server. The kernel lets words and variables have 2 MiB."""
FIRST_PORT = 5432
"""The number in the name of a database's first socket."""
HEADER_TIME, GRACE = 10.0, 2.0
"""Seconds: for a shim's header, and for a server to end after its agent has left it."""
MAIL_TLS = 465
"""The port at which a mail server begins with TLS."""
ROOTS_OF_LIBPQ = Path(".postgresql", "root.crt")
"""Where libpq looks for roots, in the home."""
WITHOUT_BINDING = {"PGCHANNELBINDING": "disable"}
"""A login that is bound to TLS cannot pass: TLS ends at the gateway."""
NO_FILE = Path()
"""The path of a config that is no file: the servers' commands stand in the agent's command."""
LONGEST_LINE = 10_000
"""Characters of a word that can hold a server's command."""


class Gateway:
    """All proxies for a subject, for one worker at a time. Use it as an asynchronous context manager.

    gate    decides at each call; set it before the agent is started
    life    in which process of the agent calls come, from 1
    functions   the door of tools in the agent's own process
    calls   how many calls have arrived, over all doors; set it to 0 for a new journal
    outboxes  the stores of what the agent sends; set them before the agent's box is made
    roots   variables by which programs in the box know the authority that ends TLS there, and bind no login to TLS
    networks  in which it answers, if the agent runs in a box: that of the agent, and that of the services
    box     the agent's, if it has one: a config's copy stands there in the place of the owner's, and servers are started there
    databases  the doors of databases, one for each server
    """

    gate: CallGate
    box: Box | None = None
    outboxes: Sequence[OutboxStore] = ()

    def __init__(
        self,
        subject: Subject,
        replaces: Mapping[str, str],
        folder: Path,
        databases: Mapping[DatabaseServer, Sequence[PostgresStore]] = {},
    ):
        """`replaces` has what stands for the owner's stores -> what stands there for the copies. `folder` is private: sockets
        and the copies of configs lie in it, and no other user reaches them. `databases` has the servers of databases, each with
        the copies there."""
        self._subject, self._folder, self._replaces = subject, folder, replacement(replaces)
        self._desk = desk = Desk(lambda: self.gate, self.number, lambda: self.life)
        self.databases = [
            DatabaseDoor(server, copies, desk, subject.hide, self._end_of_tls) for server, copies in databases.items()
        ]
        self.life, self.calls = 1, 0
        self._doors = [{server.name: KnownServer(server.name, "mcp_stdio") for server in c.servers} for c in subject.configs]
        self._listener = AgentListener(desk)
        self.functions = FunctionDoor(desk, subject.functions or (), watched=subject.watched)
        self._addresses: dict[str, str] = {}
        """Variables of the agent -> addresses of the gateway."""
        self._urls: list[dict[str, str]] = [{} for _ in subject.configs]
        """For each config the new URLs of its servers."""
        self._serving: set[asyncio.Task[None]] = set()
        self._running: dict[StdioRelay, tuple[AgentProcess, asyncio.Task[None]]] = {}
        self._failed: BaseException | None = None
        self._headers: dict[KnownServer, dict[str, Any]] = {}
        """How each server over stdio was started last."""
        self.networks: Sequence[ClosedNetwork] = ()
        self._authority: Authority | None = None
        self.roots: Mapping[str, str] = {}
        self._mails = dict[MailDoor, float]()
        """The doors of mails -> the seconds that a session has to end with its client. A service lasts, and its session has
        none."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exits:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            exits.callback(self._remove_files)
            await exits.enter_async_context(self._listener)
            await exits.enter_async_context(self.functions)
            self._add_doors()
            self._socket = exits.enter_context(self._listening("gateway"))
            self._socket.setblocking(False)
            for number, door in enumerate(self.databases):
                name = f".s.PGSQL.{FIRST_PORT + number}"
                listening = self._listening(name) if door.server.socket else None
                await exits.enter_async_context(door.open(self._folder / name, listening))
            exits.push_async_callback(self.end_servers)
            loop = asyncio.get_running_loop()
            loop.add_reader(self._socket, self._accept)
            exits.callback(loop.remove_reader, self._socket)
            self._exits = exits.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    def certify(self, environment: Mapping[str, str], packages: Iterable[Path]) -> tuple[tuple[Path, bytes], ...]:
        """Make the authority that ends TLS in a box, if a server has TLS. Return the files of roots that stand there in the
        place of the machine's, with their content. `packages` are folders of Python's packages."""
        servers = [door.server for door in self.databases]
        if any(server.tries_tls for server in servers):
            self.roots = WITHOUT_BINDING
        named = [Path(server.roots) for server in servers if server.roots]
        is_verified = bool(named) or any(server.mode == "verify-full" for server in servers)
        if not ends_tls() or not (self._subject.hosts or self.outboxes or self._listener.has_tls or is_verified):
            return ()
        self._authority = Authority()
        self.roots = {**self.roots, **self._authority.write(self._folder, environment)}
        named += [Path(environment["HOME"], ROOTS_OF_LIBPQ)] if is_verified and environment.get("HOME") else []
        return tuple(self._authority.bundles(packages, named))

    def _end_of_tls(self) -> Authority | None:
        """Return the authority, which is made now if there is none; None if there can be none."""
        if self._authority is None and ends_tls():
            self._authority = Authority()
        return self._authority

    async def enter(self, box: Box) -> None:
        """Answer in the networks of the agent's box, until the gateway ends. Raises ConfigError."""
        self.box = box
        names, servers_of = NameTable(), [(service.url, service.command) for service in self._subject.services]
        servers_of += [(model.url, model.script) for model in [self._subject.model] if model]
        started = [place_of(url)[1] for url, command in servers_of if command]
        real = [place_of(url) for url, command in servers_of if not command]
        agents = await self._exits.enter_async_context(ClosedNetwork(box, "agent", names))
        servers = await self._exits.enter_async_context(ClosedNetwork(box, "servers", names, started))
        for host in self._subject.hosts:
            self._listener.add_service(Service(host, "", f"https://{host}"))
            self._listener.add_service(Service(f"{host}:80", "", f"http://{host}"))
        for outbox in self.outboxes:
            await self._catch(outbox, agents, servers)
        addresses_of_servers = await self._listener.stand_in(agents, servers, self._authority)
        await self.functions.stand_in(agents)
        for addresses in (self._addresses, *self._urls):
            addresses.update({name: addresses_of_servers.get(address, address) for name, address in addresses.items()})
        for door in (door for door in self.databases if not door.server.socket):
            for network, serve in ((agents, door.serve), (servers, door.relay)):
                await network.lead(door.server.host, door.server.port, serve, "postgres")
        web = [(host, port) for host in self._subject.hosts for port in WEB]
        for network, places in ((agents, self._subject.passes), (servers, (*self._subject.passes, *web, *real))):
            for host, port in places:
                if port and not network.leads(host, port):
                    await network.relay(host, port)
        self.networks = (agents, servers)

    async def _catch(self, outbox: OutboxStore, agents: ClosedNetwork, servers: ClosedNetwork) -> None:
        """Have what is sent to a place of the owner's kept: by the agent as a call, by a service as a part of another call."""
        place, desk = outbox.place, self._desk
        tls = self._authority.context(place.host) if self._authority else None
        if outbox.kind == "webhook":
            door = WebhookDoor(outbox, desk)
            self._listener.add_webhook(door)
            await servers.lead(place.host, place.ports[0], door.take, "webhook", tls=tls if door.origin.tls else None)
            return
        for network, gate in ((agents, desk), (servers, Desk(lambda: OPEN, lambda: 0, lambda: 1))):
            mails = MailDoor(outbox, gate, tls)
            self._mails[mails] = GRACE if network is agents else 0.0
            for port in place.ports:
                ends = tls if port == MAIL_TLS else None
                await network.lead(place.host, port, partial(mails.serve, has_tls=ends is not None), "mail", tls=ends)

    def begin(self) -> None:
        """Forget what was reached for in the box's networks until now."""
        for network in self.networks:
            network.begin()

    def refusals(self) -> Iterator[tuple[str, str, float]]:
        """Yield what was reached for in the box's networks and was refused: its host and port, the line about it, and the time
        of the monotonic clock."""
        for network, who in zip(self.networks, ("the agent", "a service or a check"), strict=bool(self.networks)):
            network.look()
            for place, at in network.reached.items():
                if not place.kind:
                    unread = f'if it may be used for real, unread: remote = ["{place.place}"]'
                    why = f": {place.why}" if place.why else f"; {advice(place.name, place.port)}"
                    why += f"; {unread}" if place.why and place.why not in NOT_FOR_REAL else ""
                    yield place.place, f"{who} reached for {place.place}, and was refused{why}", at

    def _add_doors(self) -> None:
        """Open the doors of services, of MCP servers with a URL, and of the model. Raises ConfigError."""
        for service in self._subject.services:
            address = self._listener.add_service(service)
            self._addresses |= {service.variable: address} if service.variable else {}
        if model := self._subject.model:
            self._addresses |= dict.fromkeys(model.variables, self._listener.add_model(model))
        variables = {**os.environ, **self._subject.agent.environment}
        known: dict[tuple[str, str], str] = {}
        for config, urls in zip(self._subject.configs, self._urls, strict=True):
            for server in (server for server in config.servers if server.url):
                url = expand(server.url, variables)
                if (server.name, url) not in known:
                    known[server.name, url] = self._listener.add_mcp(replace(server, url=url))
                urls[server.name] = known[server.name, url]

    @property
    def sockets(self) -> Mapping[Path, Path]:
        """The paths at which the agent finds a database's socket -> the sockets that stand there in a box."""
        return {Path(door.server.socket): door.path for door in self.databases if door.path}

    def _listening(self, name: str) -> socket.socket:
        (self._folder / name).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        with chdir(self._folder):  # the path of a socket can't be long
            listening.bind(name)
        listening.listen()
        return listening

    def _remove_files(self) -> None:
        roots = [Path(path) for path in self.roots.values() if Path(path).is_relative_to(self._folder)]
        copies = map(self._copy, range(len(self._subject.configs)))
        for path in (*roots, self._folder / "gateway", *self.sockets.values(), *copies):
            path.unlink(missing_ok=True)

    @property
    def facts_seen(self) -> Sequence[tuple[str, str]]:
        """What the agent's Pythons told of what they load and start, without what is the gateway's own."""
        return [(kind, what) for kind, what in self.functions.seen if str(SHIM) not in what]

    @property
    def handshakes(self) -> Mapping[str, dict[str, Any]]:
        """The answers of each MCP server over stdio to messages that are no calls, by method."""
        return {name: server.handshake for doors in self._doors for name, server in doors.items()}

    async def ask_for_tools(self, calls: Sequence[GatewayCall]) -> tuple[GatewayCall, ...]:
        """Return an agent's calls with what their tools claim. A server over stdio that got one of these calls, and was never
        asked for its tools, is started once more as the agent started it, asked for them, and ended."""
        reached, asked = {call.door for call in calls if call.door_kind == "mcp_stdio"}, dict[str, KnownServer]()
        for known, header in list(self._headers.items()):  # a server can start meanwhile
            if known.door in reached and not known.was_asked:
                known.was_asked, asked[known.door] = True, known
                await list_tools(partial(self._start, header), known)
        return tuple(
            asked[call.door].with_claims(call) if call.door in asked and call.reads is None else call for call in calls
        )

    def number(self) -> int:
        """Return the number of the next call."""
        self.calls += 1
        return self.calls

    def launch(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[CommandWords, Mapping[str, str]]:
        """Return the words and the variables with which the agent starts, so that its calls pass through the gateway.

        The copies of its configs are written anew. A config's path in a word becomes the copy's. A server's command that stands
        in the agent's own command is replaced there.

        Raises:
            ConfigError: A config cannot be read, or nothing hands its copy over to the agent.
        """
        replaced, variables = self.with_copies(words, environment)
        variables = without_proxies(variables) if self.box else variables
        changed, variables = list(replaced), variables | self._addresses | dict(self.roots)
        for door in self.databases:
            door.counts = True
            changed = list(map(door.toward, changed))
            variables = {name: door.toward(value) for name, value in variables.items()}
        if self._subject.functions is not None:
            variables |= self.functions.variables(variables)
        for index, config in enumerate(self._subject.configs):
            if config.path == NO_FILE:
                for server in config.servers:
                    changed = _with_words(changed, server, self._shim(index, server))
                continue
            content = rewrite(config, partial(self._shim, index), self._urls[index])
            if self.box:
                copy = config.path.resolve()
                self.box.write(copy, content)
            else:
                copy = self._copy(index).absolute()
                with new_file(copy, 0o600) as file:
                    file.write(content)
            handed = [with_copy(word, config, self._subject.agent.folder, copy) for word in changed]
            if config.variable:
                variables[config.variable] = str(copy)
            elif handed == changed and not self.box:
                raise ConfigError(f"{config.path}: {NOT_HANDED}")
            changed = handed
        return tuple(changed), variables

    def with_copies(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[CommandWords, dict[str, str]]:
        """Return words and variables in which the copies replace the owner's stores."""
        return tuple(map(self._replaces, words)), {name: self._replaces(value) for name, value in environment.items()}

    def _around(self, words: CommandWords, environment: dict[str, str]) -> tuple[CommandWords, dict[str, str]]:
        """Return a server's words and variables without what leads to a door of the agent's own process: its functions are no
        tools of the agent, and its transactions no calls."""
        for door in self.databases:
            words = tuple(map(door.around, words))
            environment = {name: door.around(value) for name, value in environment.items()}
        return words, {name: value for name, value in environment.items() if name != VARIABLE}

    async def end_servers(self, *, busy: bool = True) -> None:
        """Kill all servers over stdio, as they end with their agent, and the `busy` ones too. Nothing of them runs once this
        returns, and nothing that the agent wrote arrives any more. A gate can await this at a call. Raises what the gate has
        raised at a call."""
        self._accept()
        await self.functions.end()
        for door in self.databases:
            await door.end(busy=busy)
        for mails, seconds in self._mails.items():
            if seconds or busy:
                await mails.end(seconds)
        ending = self._serving - {serving for _, serving in self._running.values()}
        running = {relay: held for relay, held in self._running.items() if busy or not relay.is_busy}
        for task in ending:
            task.cancel()
        for relay, (process, serving) in running.items():
            process.kill()
            if not relay.stop():
                ending.add(serving)
        await asyncio.gather(*(asyncio.shield(process.ended) for process, _ in running.values()))
        if ending:
            await asyncio.wait(ending)
        if failed := self._failed:
            self._failed = None
            raise failed

    def _copy(self, index: int) -> Path:
        return self._folder / f"mcp-{index}{self._subject.configs[index].path.suffix or '.json'}"

    def _shim(self, index: int, server: McpServer) -> CommandWords:
        shim = (sys.executable, "-I", "-S", str(SHIM), str(self._folder.absolute()))
        return *shim, f"{index}/{server.name}", *server.command

    def _accept(self) -> None:
        with suppress(OSError):  # nobody waits any more
            while True:
                connection = self._socket.accept()[0]
                task = asyncio.get_running_loop().create_task(self._serve(connection))
                self._serving.add(task)
                task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._failed = self._failed or (error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error)

    async def _serve(self, connection: socket.socket) -> None:
        """Start the server for which a shim stands, and relay until either has ended."""
        files: list[int] = []
        with connection:
            connection.setblocking(False)
            try:
                async with asyncio.timeout(HEADER_TIME):
                    header = await _receive_header(connection, files)
                index, _, name = header["server"].partition("/")
                door = self._doors[int(index)][name]
                code = await self._relay(connection, files, header, door)
                await asyncio.get_running_loop().sock_sendall(connection, str(code).encode())
            except (TimeoutError, ValueError, LookupError):
                self.gate.notice(
                    "", "a process that is no server of the agent's config connected to the gateway; it was refused"
                )
            except OSError:
                return  # the shim is gone
            finally:
                for file in files:
                    os.close(file)

    async def _relay(self, connection: socket.socket, files: list[int], header: dict[str, Any], door: KnownServer) -> int:
        """Return the exit code of the server."""
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        errors = ServerErrors(files[2])
        streams = (their_input, their_output, errors.input)
        self._headers[door] = header
        try:
            process = self._start(header, streams)
        except OSError as error:
            for file in (our_input, our_output):
                os.close(file)
            return self._not_started(files[2], door, error.strerror or str(error))
        finally:
            for file in streams:
                os.close(file)
        agent_input, agent_output = files[:2]
        del files[:2]
        agents, servers = (Pipe(agent_input), Pipe(agent_output)), (Pipe(our_input), Pipe(our_output))
        relay = StdioRelay(door, agents, servers, self._desk)
        serving = asyncio.current_task()
        assert serving
        self._running[relay] = process, serving
        relaying = asyncio.create_task(relay.run())
        left = asyncio.create_task(_until_closed(connection))
        line: str | None = None
        try:
            await asyncio.wait({relaying, left}, return_when=asyncio.FIRST_COMPLETED)
            if relay.is_busy and not relaying.done():
                finishing = asyncio.ensure_future(relay.finish())
                await asyncio.wait({relaying, finishing}, return_when=asyncio.FIRST_COMPLETED)
                finishing.cancel()
            if relaying.done():
                relaying.result()
            if await _ended_by_itself(process, relay, left):
                line = await errors.last_line()
        finally:
            for call in relay.calls_unanswered(self.gate.patience):
                what = f"it did not answer call {call.number} ({call.tool}) within {self.gate.patience:g} s, until it was ended"
                self.gate.notice(door.door, what)
            left.cancel()
            relaying.cancel()
            await process.close()
            await asyncio.gather(relaying, left, return_exceptions=True)
            del self._running[relay]
        ended = process.ended.result()
        if ended.failed:
            return self._not_started(files[0], door, os.strerror(ended.failed))
        code = ended.code if ended.code is not None else 128 + (ended.signal or 0)
        if line is not None and (ended.code is not None or not relay.is_stopped):
            waits = len(relay.calls_unanswered())
            left_open = f" and left {plural(waits, 'call')} unanswered" if waits else ""
            self.gate.notice(door.door, f"it ended with exit code {code}{left_open}: {line or 'it printed no error'}")
        return 1 if relay.is_stopped else code

    def _start(self, header: dict[str, Any], streams: tuple[int, int, int]) -> AgentProcess:
        """Start a server as a shim's header says that its agent would. Raises OSError."""
        (program, *words), environment = self._around(*self.with_copies(header["words"], header["environment"]))
        environment |= {**self.roots, **(OFFLINE if self.box and loader_of([program]) else {})}
        cwd = Path(self._replaces(header["cwd"]))
        located = shutil.which(program, path=environment.get("PATH")) if os.sep not in program else str(cwd / program)
        largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        inside = self.box.namespaces if self.box else ()
        return AgentProcess([located or program, *words], cwd, environment, largest, streams=streams, namespaces=inside)

    def _not_started(self, errors: int, door: KnownServer, why: str) -> int:
        line = f"the server '{door.door}' cannot be started ({why}); correct its command in the agent's config"
        self.gate.notice(door.door, line)
        with suppress(OSError):
            os.write(errors, f"bench probe: {line}\n".encode())
        return CANNOT_START


def _with_words(words: Sequence[str], server: McpServer, new: CommandWords) -> list[str]:
    """Return an agent's command with other words where a server's command stands, as words or as a single word. Raises
    ConfigError if it stands nowhere."""
    size = len(server.command)
    for at, word in enumerate(words):
        if tuple(words[at : at + size]) == server.command:
            return [*words[:at], *new, *words[at + size :]]
        head, _, line = word.rpartition("=") if word.startswith("--") else ("", "", word)
        with suppress(ValueError):  # a quote that is not closed
            if len(line) < LONGEST_LINE and tuple(shlex.split(line)) == server.command:
                return [*words[:at], f"{head}={shlex.join(new)}" if head else shlex.join(new), *words[at + 1 :]]
    what = f"the agent's command does not hold the command of the server '{server.name}'"
    raise ConfigError(f"{what}; write it there as it stands in the probe's file: {shlex.join(server.command)}")


async def _receive_header(connection: socket.socket, files: list[int]) -> dict[str, Any]:
    """Return a shim's header, and put its files into the list. Raises OSError, and ValueError if it is no header."""
    loop, text = asyncio.get_running_loop(), bytearray()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    files += socket.recv_fds(connection, 1, 3)[1]
    while not text.endswith(b"\n") and len(text) < LARGEST_HEADER:
        if not (more := await loop.sock_recv(connection, 2**16)):
            raise ConnectionError
        text += more
    header = json.loads(text)
    if not isinstance(header, dict) or len(files) != 3:
        raise ValueError
    return header


async def _ended_by_itself(process: AgentProcess, relay: StdioRelay, left: asyncio.Task[None]) -> bool:
    """Wait until a server has ended or its agent has left it. Return whether the server ended while its agent needed it."""
    if left.done():
        process.terminate()
        await asyncio.wait({process.ended}, timeout=GRACE)
        return False
    if relay.is_stopped:
        return False
    needed = not relay.is_left
    ends: set[asyncio.Future[Any]] = {process.ended, left}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if needed:
        await asyncio.wait({process.ended}, timeout=GRACE)  # an agent ends soon after its server
    return needed and process.ended.done()


async def _until_closed(connection: socket.socket) -> None:
    with suppress(OSError):
        await asyncio.get_running_loop().sock_recv(connection, 1)
