"""The gateway of one worker: all proxies between an agent and its tool servers, its services, its databases and its model."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, chdir, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from bench.common.addresses import WEB_PORTS, host_and_port
from bench.common.errors import ConfigError
from bench.common.files import new_file
from bench.probe.run.box.authority import Authority, ends_tls
from bench.probe.run.box.box import Box
from bench.probe.run.box.closed_network import NOT_FOR_REAL, ClosedNetwork, without_proxies
from bench.probe.run.box.loading import OFFLINE_VARIABLES, loader_of
from bench.probe.run.box.names import NameTable
from bench.probe.run.box.refusals import advice
from bench.probe.run.gateway.agent_config import expand, rewrite
from bench.probe.run.gateway.copied_paths import NO_COPY_PATH_TEXT, replacement, with_copy
from bench.probe.run.gateway.database import DatabaseDoor
from bench.probe.run.gateway.functions import DOOR_VARIABLE, FunctionDoor
from bench.probe.run.gateway.gate import CallGate, DoorContext
from bench.probe.run.gateway.listener import AgentListener
from bench.probe.run.gateway.model import OPEN_GATE
from bench.probe.run.gateway.outbox_doors import MailDoor, WebhookDoor
from bench.probe.run.gateway.stdio_servers import EXIT_GRACE_S, SHIM, ServerHeader, StdioServers, Streams
from bench.probe.run.gateway.subject import CommandWords, McpServer, Service, Subject
from bench.probe.run.witness.outbox import OutboxStore
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.store import DatabaseServer
from bench.wire.agent_process import AgentProcess

FIRST_PORT = 5432
"""The port in the name of the first database's socket; each further one has the next port."""
MAIL_TLS_PORT = 465
"""The port of a mail server whose connections begin with TLS."""
LIBPQ_ROOTS_PATH = Path(".postgresql", "root.crt")
"""The file in the user's home in which libpq looks for root certificates."""
NO_CHANNEL_BINDING = {"PGCHANNELBINDING": "disable"}
"""A variable for libpq. A login that is bound to TLS would fail, since TLS ends at the gateway."""
NO_CONFIG_PATH = Path()
"""The path of a config without a file: the agent's command contains the servers' commands."""
MAX_COMMAND_CHARS = 10_000
"""The longest word of the agent's command in which a server's command is looked for."""


class Gateway:
    """All doors of a subject, for one worker. Use it as an asynchronous context manager.

    gate            decides what happens to each call; set it before the agent is started
    process_number  the number of the agent's process that makes the calls, from 1
    functions       the door of tools in the agent's own process
    servers         the MCP servers over stdio
    calls           the number of calls that have arrived at all doors; set it to 0 for a new journal
    outboxes        the stores of messages that the agent sends; set them before the agent's box is made
    roots           variables by which programs in the box trust the authority that ends TLS, and use no channel binding
    networks        the networks of the agent's box in which the gateway answers: the agent's and the services'; () without a
                    box
    box             the agent's box, if it has one: copies of configs are at the owner's paths there, and servers are started
                    there
    databases       the doors of databases, one for each database server
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
        """Prepare the doors.

        Args:
            subject: What is probed.
            replaces: The names of the owner's stores -> the names of the copies.
            folder: A private folder, for sockets and copies of configs. No other user can read it.
            databases: The database servers, each with the copies there.
        """
        self._subject, self._folder, self._replaces = subject, folder, replacement(replaces)
        self._context = context = DoorContext(lambda: self.gate, self.next_number, lambda: self.process_number)
        self.databases = [
            DatabaseDoor(server, copies, context, subject.hide, self._ensure_authority) for server, copies in databases.items()
        ]
        self.process_number, self.calls = 1, 0
        self.servers = StdioServers(subject.configs, folder, context, self._start_server)
        self._listener = AgentListener(context)
        self.functions = FunctionDoor(context, subject.functions or (), watched=subject.watched)
        self._addresses: dict[str, str] = {}
        """Variables of the agent -> addresses of the gateway."""
        self._urls: list[dict[str, str]] = [{} for _ in subject.configs]
        """For each config: name of a server -> its new URL."""
        self.networks: Sequence[ClosedNetwork] = ()
        self._authority: Authority | None = None
        self.roots: Mapping[str, str] = {}
        self._mails = dict[MailDoor, float]()
        """The doors of mails -> the seconds that an open session gets when the agent ends: 0 for the sessions of services,
        which do not end with the agent."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exits:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            exits.callback(self._remove_files)
            await exits.enter_async_context(self._listener)
            await exits.enter_async_context(self.functions)
            self._add_doors()
            shim_socket = exits.enter_context(self._unix_listener("gateway"))
            for number, door in enumerate(self.databases):
                name = f".s.PGSQL.{FIRST_PORT + number}"
                listening = self._unix_listener(name) if door.server.socket else None
                await exits.enter_async_context(door.open(self._folder / name, listening))
            exits.push_async_callback(self.end_servers)
            self.servers.listen(shim_socket)
            exits.callback(self.servers.close)
            self._exits = exits.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    def certify(self, environment: Mapping[str, str], packages: Iterable[Path]) -> tuple[tuple[Path, bytes], ...]:
        """Make the authority that ends TLS in a box, if a server uses TLS. Return the path of each bundle of root certificates,
        and the content that the agent sees there. `packages` are folders of Python packages."""
        servers = [door.server for door in self.databases]
        if any(server.tries_tls for server in servers):
            self.roots = NO_CHANNEL_BINDING
        root_files = [Path(server.roots) for server in servers if server.roots]
        # whether the agent verifies the certificate of a database server
        is_verified = bool(root_files) or any(server.mode == "verify-full" for server in servers)
        if not ends_tls() or not (self._subject.hosts or self.outboxes or self._listener.has_tls or is_verified):
            return ()
        self._authority = Authority()
        self.roots = {**self.roots, **self._authority.write(self._folder, environment)}
        root_files += [Path(environment["HOME"], LIBPQ_ROOTS_PATH)] if is_verified and environment.get("HOME") else []
        return tuple(self._authority.bundles(packages, root_files))

    def _ensure_authority(self) -> Authority | None:
        """Return the authority that ends TLS, and make it first if there is none; None if it cannot be made."""
        if self._authority is None and ends_tls():
            self._authority = Authority()
        return self._authority

    async def enter_box(self, box: Box) -> None:
        """Serve the doors at the declared addresses in both networks of the agent's box, and relay to the real servers that the
        owner allows, until the gateway ends. Raises ConfigError."""
        self.box = box
        names, service_commands = NameTable(), [(service.url, service.command) for service in self._subject.services]
        if model := self._subject.model:
            service_commands.append((model.url, model.script))
        started_ports = [host_and_port(url)[1] for url, command in service_commands if command]
        real_places = [host_and_port(url) for url, command in service_commands if not command]
        agents = await self._exits.enter_async_context(ClosedNetwork(box, "agent", names))
        servers = await self._exits.enter_async_context(ClosedNetwork(box, "servers", names, started_ports))
        for host in self._subject.hosts:
            self._listener.add_service(Service(host, "", f"https://{host}"))
            self._listener.add_service(Service(f"{host}:80", "", f"http://{host}"))
        for outbox in self.outboxes:
            await self._serve_outbox(outbox, agents, servers)
        addresses_of_servers = await self._listener.serve_in_box(agents, servers, self._authority)
        await self.functions.serve_in_box(agents)
        for addresses in (self._addresses, *self._urls):
            addresses.update({name: addresses_of_servers.get(address, address) for name, address in addresses.items()})
        for door in self.databases:
            if not door.server.socket:
                await agents.serve_at(door.server.host, door.server.port, door.serve, "postgres")
                await servers.serve_at(door.server.host, door.server.port, door.serve_other, "postgres")
        web = [(host, port) for host in self._subject.hosts for port in WEB_PORTS]
        for network, places in ((agents, self._subject.passes), (servers, (*self._subject.passes, *web, *real_places))):
            for host, port in places:
                if port and not network.serves(host, port):
                    await network.relay(host, port)
        self.networks = (agents, servers)

    async def _serve_outbox(self, outbox: OutboxStore, agents: ClosedNetwork, servers: ClosedNetwork) -> None:
        """Serve the doors of an outbox, which keep its messages, in both networks. A message of the agent is a call; a message
        of a service is part of another call."""
        place, context = outbox.place, self._context
        tls = self._authority.context(place.host) if self._authority else None
        if outbox.kind == "webhook":
            door = WebhookDoor(outbox, context)
            self._listener.add(door)
            await servers.serve_at(
                place.host, place.ports[0], door.keep_messages, "webhook", tls=tls if door.origin.tls else None
            )
            return
        for network, gate in ((agents, context), (servers, DoorContext(lambda: OPEN_GATE, lambda: 0, lambda: 1))):
            mails = MailDoor(outbox, gate, tls)
            self._mails[mails] = EXIT_GRACE_S if network is agents else 0.0
            for port in place.ports:
                tls_from_start = tls if port == MAIL_TLS_PORT else None
                serve = partial(mails.serve, has_tls=tls_from_start is not None)
                await network.serve_at(place.host, port, serve, "mail", tls=tls_from_start)

    def forget_reached(self) -> None:
        """Forget which addresses were reached in the box's networks."""
        for network in self.networks:
            network.forget_reached()

    def refusals(self) -> Iterator[tuple[str, str, float]]:
        """Yield (`HOST:PORT`, a line about the refusal, the time on the monotonic clock) for each address whose connections
        were refused in the box's networks."""
        for network, who in zip(self.networks, ("the agent", "a service or a check"), strict=bool(self.networks)):
            network.read_refusals()
            for place, time in network.reached.items():
                if not place.kind:  # a place that was served has a kind
                    setting = f'if it may be used for real, unread: remote = ["{place.place}"]'
                    why = f": {place.why}" if place.why else f"; {advice(place.name, place.port)}"
                    why += f"; {setting}" if place.why and place.why not in NOT_FOR_REAL else ""
                    yield place.place, f"{who} reached for {place.place}, and was refused{why}", time

    def _add_doors(self) -> None:
        """Add the doors of services, of MCP servers with a URL, and of the model. Raises ConfigError."""
        for service in self._subject.services:
            address = self._listener.add_service(service)
            self._addresses |= {service.variable: address} if service.variable else {}
        if model := self._subject.model:
            self._addresses |= dict.fromkeys(model.variables, self._listener.add_model(model))
        variables = {**os.environ, **self._subject.agent.environment}
        added_addresses: dict[tuple[str, str], str] = {}
        for config, urls in zip(self._subject.configs, self._urls, strict=True):
            for server in (server for server in config.servers if server.url):
                url = expand(server.url, variables)
                if (server.name, url) not in added_addresses:
                    added_addresses[server.name, url] = self._listener.add_mcp(replace(server, url=url))
                urls[server.name] = added_addresses[server.name, url]

    @property
    def sockets(self) -> Mapping[Path, Path]:
        """The paths at which the agent looks for a database's socket -> the sockets that replace them in a box."""
        return {Path(door.server.socket): door.path for door in self.databases if door.path}

    def _unix_listener(self, name: str) -> socket.socket:
        """Return a listening Unix socket with this name in the gateway's folder."""
        (self._folder / name).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        with chdir(self._folder):  # a short path, since the length of a socket's path is limited
            listening.bind(name)
        listening.listen()
        return listening

    def _remove_files(self) -> None:
        """Remove the files in the gateway's folder."""
        roots = [Path(path) for path in self.roots.values() if Path(path).is_relative_to(self._folder)]
        copies = map(self._config_copy_path, range(len(self._subject.configs)))
        for path in (*roots, self._folder / "gateway", *self.sockets.values(), *copies):
            path.unlink(missing_ok=True)

    @property
    def facts_seen(self) -> Sequence[tuple[str, str]]:
        """The kind and the text of each fact that the agent's Python processes reported, except facts about the gateway's
        shims."""
        return [(kind, fact) for kind, fact in self.functions.facts if str(SHIM) not in fact]

    def next_number(self) -> int:
        """Count a new call, and return its number."""
        self.calls += 1
        return self.calls

    def launch(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[CommandWords, Mapping[str, str]]:
        """Return the command and the variables with which the agent starts, so that its calls pass through the gateway.

        The copies of its configs are written anew. In the command the path of a config is replaced by the path of the copy,
        and the command of a server by a shim.

        Raises:
            ConfigError: A config cannot be read, or nothing hands its copy over to the agent.
        """
        with_store_copies, variables = self.with_copies(words, environment)
        variables = without_proxies(variables) if self.box else variables
        command, variables = list(with_store_copies), variables | self._addresses | dict(self.roots)
        for door in self.databases:
            door.counts = True
            command = list(map(door.with_door_addresses, command))
            variables = {name: door.with_door_addresses(value) for name, value in variables.items()}
        if self._subject.functions is not None:
            variables |= self.functions.variables(variables)
        for index, config in enumerate(self._subject.configs):
            if config.path == NO_CONFIG_PATH:
                for server in config.servers:
                    command = _replace_command(command, server, self.servers.shim(index, server))
                continue
            content = rewrite(config, partial(self.servers.shim, index), self._urls[index])
            if self.box:
                copy = config.path.resolve()
                self.box.write(copy, content)
            else:
                copy = self._config_copy_path(index).absolute()
                with new_file(copy, 0o600) as file:
                    file.write(content)
            with_config_copy = [with_copy(word, config, self._subject.agent.folder, copy) for word in command]
            if config.variable:
                variables[config.variable] = str(copy)
            elif with_config_copy == command and not self.box:
                raise ConfigError(f"{config.path}: {NO_COPY_PATH_TEXT}")
            command = with_config_copy
        return tuple(command), variables

    def with_copies(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[CommandWords, dict[str, str]]:
        """Return a command and variables in which the copies replace the owner's stores."""
        return tuple(map(self._replaces, words)), {name: self._replaces(value) for name, value in environment.items()}

    def _without_doors(self, words: CommandWords, environment: dict[str, str]) -> tuple[CommandWords, dict[str, str]]:
        """Return a server's command and variables with the copies' own addresses in place of the doors': a server's functions
        are no tools of the agent, and its transactions are no calls."""
        for door in self.databases:
            words = tuple(map(door.with_copy_addresses, words))
            environment = {name: door.with_copy_addresses(value) for name, value in environment.items()}
        return words, {name: value for name, value in environment.items() if name != DOOR_VARIABLE}

    async def end_servers(self, *, busy: bool = True) -> None:
        """Kill all servers over stdio and close all connections, since the agent has ended; if `busy`, also those with a
        held call. Afterwards no server runs, and no request of the agent arrives. A gate may await this at a call. Raises
        an exception that the gate has raised."""
        self.servers.accept()
        await self.functions.end()
        for door in self.databases:
            await door.end(busy=busy)
        for mail_door, seconds in self._mails.items():
            if seconds or busy:  # between processes of one agent (not `busy`) the sessions of services stay open
                await mail_door.end(seconds)
        await self.servers.end(busy=busy)

    def _config_copy_path(self, index: int) -> Path:
        """Return the path of the copy of a config, outside a box."""
        return self._folder / f"mcp-{index}{self._subject.configs[index].path.suffix or '.json'}"

    def _start_server(self, header: ServerHeader, streams: Streams) -> AgentProcess:
        """Start a server over stdio as the agent would: with its shim's command, variables and folder. Raises OSError."""
        (program, *words), environment = self._without_doors(*self.with_copies(header["words"], header["environment"]))
        environment |= {**self.roots, **(OFFLINE_VARIABLES if self.box and loader_of([program]) else {})}
        cwd = Path(self._replaces(header["cwd"]))
        path = shutil.which(program, path=environment.get("PATH")) if os.sep not in program else str(cwd / program)
        file_size_limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        namespaces = self.box.namespaces if self.box else ()
        return AgentProcess(
            [path or program, *words], cwd, environment, file_size_limit, streams=streams, namespaces=namespaces
        )


def _replace_command(words: Sequence[str], server: McpServer, replacement_words: CommandWords) -> list[str]:
    """Return the agent's command in which another command replaces a server's, as several words or within one word. Raises
    ConfigError if the server's command is not in it."""
    length = len(server.command)
    for index, word in enumerate(words):
        if tuple(words[index : index + length]) == server.command:
            return [*words[:index], *replacement_words, *words[index + length :]]
        # a word can be an option such as `--mcp=COMMAND`: head `--mcp`, line `COMMAND`
        head, _, line = word.rpartition("=") if word.startswith("--") else ("", "", word)
        with suppress(ValueError):  # a quote that is not closed
            if len(line) < MAX_COMMAND_CHARS and tuple(shlex.split(line)) == server.command:
                return [
                    *words[:index],
                    f"{head}={shlex.join(replacement_words)}" if head else shlex.join(replacement_words),
                    *words[index + 1 :],
                ]
    problem = f"the agent's command does not hold the command of the server '{server.name}'"
    raise ConfigError(f"{problem}; write it there as it stands in the probe's file: {shlex.join(server.command)}")
