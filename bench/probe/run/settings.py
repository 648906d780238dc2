"""The settings of a probe: a checked `probe.toml` together with the owner's variables."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape
from pathlib import Path
from urllib.parse import urlsplit

from bench.common.addresses import host_and_port, host_of, hosts_and_ports, is_this_machine
from bench.common.digests import digest_of, digest_of_file
from bench.common.errors import ConfigError, one_line
from bench.common.files import opened
from bench.common.paths import expanded_path
from bench.probe.run.agent_code import CODE_SUFFIXES, StartedProgram, code_files, paths_in
from bench.probe.run.box.authority import ends_tls
from bench.probe.run.box.box import program_outside_box
from bench.probe.run.gateway.agent_config import expand, read_config
from bench.probe.run.gateway.copied_paths import NO_COPY_PATH_TEXT, with_copy
from bench.probe.run.gateway.functions import FUNCTION_DOOR
from bench.probe.run.gateway.subject import (
    CommandWords,
    McpConfig,
    ModelSource,
    OthersStatement,
    OwnersCheck,
    ProbedAgent,
    Service,
    Subject,
)
from bench.probe.run.probe_file import BUILT_IN_KINDS, VARIABLE_REFERENCE, CommandText, StoreEntry, read_probe_file
from bench.probe.run.unboxed import copied_paths, files_with_fixed_names, first_unnamed
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings, is_address
from bench.probe.run.witness.originals import content_of
from bench.record.model_parameters import ModelParameters
from bench.record.probed import Probed, ProbedStore

MAX_NAME_CHARS = 90
PROVIDER_URLS = {
    "chat": "https://api.openai.com/v1",
    "responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
IN_PLACE_ADVICE = (
    "the probe works on copies alone: in a box the copy stands at the path of the store; without one, let your code take the "
    "path from its command or a `variable`"
)
MODEL_KEY_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
OUTBOX_DOORS = {"mail": "mail", "webhook": "http"}
"""Kinds of stores that catch what the agent sends -> the kind of their door."""


@dataclass(frozen=True)
class Address:
    """The address of a server, a service, a database or the model.

    what       the server in words, such as `the service NAME`
    url        the URL in the owner's file; "" if it may contain a password
    hosts      the names of the hosts at this address
    is_real    whether it runs already, so that calls act on a service that the probe neither starts nor resets
    is_struck  whether faults are injected into calls to it
    """

    what: str
    url: str
    hosts: tuple[str, ...]
    is_real: bool = False
    is_struck: bool = True


class ProbeSettings:
    """The settings of a probe. Raises ConfigError if a file, folder or variable does not exist.

    subject      what is probed
    stores       the stores; with a tape only the agent's memory, since the tape replaces the other stores
    is_boxed     whether the agent runs in a box, where the copies are at the owner's paths
    addresses    the addresses of servers, services, databases and the model; with a tape none
    parameters   the model's name and prices; None without a model
    """

    def __init__(self, path: Path, environment: Mapping[str, str] = os.environ, *, is_taped: bool = False, boxed: bool = False):
        self._path, self._environment, self._is_taped = path, environment, is_taped
        self._file = file = read_probe_file(path)
        self.is_boxed = boxed and not self.unboxable
        agent = self._agent()
        configs = tuple(self._configs(agent))
        self.subject = Subject(
            name=file.name or _name_of(Path.cwd()),
            agent=agent,
            configs=configs,
            services=tuple(
                Service(entry.name, entry.variable, self._fill("service.url", entry.url), words, entry.health, entry.door)
                for entry in file.service
                for words in [self._words("service.command", entry.command)]
            ),
            model=self._model(),
            settle=file.settle,
            patience=file.patience,
            hide=frozenset(file.hide),
            reads=file.reads,
            meant=file.meant,
            remembers=any(entry.memory for entry in file.store),
            meanwhile=tuple(
                OthersStatement(entry.store or self._name_of(file.store[0]), entry.sql, entry.call) for entry in file.meanwhile
            ),
            takes_sql=frozenset(self._name_of(entry) for entry in file.store if STORE_KINDS[entry.kind].takes_sql),
            stand_ins=frozenset(self._name_of(entry) for entry in file.store if entry.kind in OUTBOX_DOORS),
            hosts=self._hosts(configs),
            passes=self._forwarded_addresses(configs),
            functions=file.functions if file.mcp or file.service else file.functions or (),
            checks=tuple(
                OwnersCheck(entry.store or self._name_of(file.store[0]), entry.sql, self._words("check.command", entry.command))
                for entry in file.check
            ),
        )
        self.stores = tuple(self._stores())
        self.addresses = () if is_taped else tuple(self._addresses())
        self._check_doors()
        self._check_copies_are_named()
        self._check_programs()
        self._check_hosts()
        self.parameters: ModelParameters | None = None
        if model := file.model:
            self.parameters = ModelParameters(model=model.name, price_in=model.price_in, price_out=model.price_out)

    @property
    def secret_addresses(self) -> list[str]:
        """The addresses of the stores, which may contain passwords."""
        return [store.where for store in self.stores if is_address(store)]

    @property
    def paths_of_absent_stores(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The names and the variables of the stores that a tape replaces, each with a path at which no file can exist."""
        names, variables = dict[str, str](), dict[str, str]()
        for entry in self._file.store if self._is_taped else ():
            nowhere, path = f"{os.devnull}/{entry.kind}", Path(entry.place)
            if entry.kind != "memory" and not STORE_KINDS[entry.kind].is_address:
                names |= dict.fromkeys((entry.place, str(path.absolute()), str(path.resolve())), nowhere)
            variables |= {entry.variable: nowhere} if entry.variable and entry.kind != "memory" else {}
        return names, variables

    def manifest_entry(self, all_forms: bool, only: Sequence[str]) -> Probed:
        """Return the entry of the manifest about the subject, and about the request for `all_forms` or `only` some cells."""
        subject = self.subject
        servers = [server for config in subject.configs for server in config.servers]
        doors = {server.name: "mcp_http" if server.url else "mcp_stdio" for server in servers}
        doors |= {service.name: service.door for service in subject.services}
        doors |= {store.name: "database" for store in self.stores if store.is_door}
        doors |= {name: "http" for host in subject.hosts for name in (host, f"{host}:80")}
        doors |= {store.name: OUTBOX_DOORS[store.kind] for store in self.stores if store.kind in OUTBOX_DOORS}
        doors |= {FUNCTION_DOOR: "function"} if subject.functions is not None else {}
        doors |= {"model": "model"} if subject.model else {}
        return Probed(
            subject=self._digest(),
            doors=doors,
            stores={store.name: ProbedStore(kind=store.kind) for store in self.stores},
            settle=subject.settle,
            patience=subject.patience,
            limit=subject.agent.limit,
            resumes=subject.agent.resume != subject.agent.start,
            all_forms=all_forms,
            only=tuple(only),
            hide=tuple(sorted(subject.hide)),
            reads=tuple(subject.reads),
            boxed=self.is_boxed,
            unsaid_fails=self._file.unsaid_fails,
        )

    @property
    def unboxable(self) -> str:
        """The reason why no box can contain the stores, in words; "" if a box can."""
        kinds = [
            entry.kind
            for entry in self._file.store
            if entry.kind not in BUILT_IN_KINDS and not STORE_KINDS[entry.kind].is_address
        ]
        return f"nobody knows how a box holds a store of kind {kinds[0]}" if kinds and not self._is_taped else ""

    def programs(self) -> list[StartedProgram]:
        """Return each program that the probe starts, with the variables that it gets, the agent first."""
        agent, model = self.subject.agent, self.subject.model
        store_names = [name for store in self.stores for name in store.variables]
        owners_variables = {name: text for name, text in self._environment.items() if name not in ("PWD", "OLDPWD")}
        address_names = [*(service.variable for service in self.subject.services), *(model.variables if model else ())]
        address_names += [config.variable for config in self.subject.configs if config.variable]

        def program(who: str, words: CommandWords, sets: Mapping[str, str], names: Sequence[str] = ()) -> StartedProgram:
            """Return a program that gets the owner's variables, those in `sets`, and variables with these further `names`."""
            variables, set_names = {**owners_variables, **sets}, tuple(sorted({*sets, *store_names, *names}))
            return StartedProgram(who, words, variables, agent.folder, set_names)

        programs = [program("the agent", agent.start, agent.environment, address_names)]
        if agent.resume != agent.start:
            programs.append(program("the agent, after a death", agent.resume, agent.environment, address_names))
        for who, words in (("whether it is done", agent.done), ("whether it says so", agent.said_done)):
            if words and not isinstance(words, str):
                programs.append(program(who, words, agent.environment))
        programs += [program("a check", check.command, agent.environment) for check in self.subject.checks if check.command]
        for server in (server for config in self.subject.configs for server in config.servers if server.command):
            sets = {**agent.environment, **server.environment}
            programs.append(replace(program(f"the MCP server {server.name}", server.command, sets), is_server=True))
        for service in (service for service in self.subject.services if service.command):
            programs.append(program(f"the service {service.name}", service.command, {}))
        if model and model.script:
            programs.append(program("the model", model.script, {}))
        return programs

    def _agent(self) -> ProbedAgent:
        """Return the agent's commands, folder, variables and limit."""
        file = self._file
        start = self._words("agent", file.agent)
        if not start:
            raise ConfigError(f"{self._path}: agent: is empty; write the command that starts the agent")
        said_done = file.said_done
        return ProbedAgent(
            start=start,
            resume=self._words("resume", file.resume) or start,
            folder=self._existing("folder", file.folder, is_folder=True),
            environment={name: self._fill(f"environment.{name}", value) for name, value in file.environment.items()},
            done=self._words("done", file.done) or None,
            said_done=(said_done if isinstance(said_done, str) else tuple(said_done)) or None,
            answers=file.answers.encode(),
            limit=file.limit,
        )

    def _configs(self, agent: ProbedAgent) -> Iterator[McpConfig]:
        """Yield the agent's MCP configs. Raises ConfigError if the copy of a config would not reach the agent."""
        entries = (self._file.mcp,) if isinstance(self._file.mcp, str) else self._file.mcp
        for entry in entries:
            path, variable = (entry, "") if isinstance(entry, str) else (entry.path, entry.variable)
            self._existing("mcp", path)
            config = read_config(Path(path), variable)
            for words in (agent.start, agent.resume):
                if any("{mcp}" in word for word in words):
                    raise ConfigError(f"{self._path}: agent: {{mcp}} is gone; write the path of the config there: {path}")
                is_handed_over = variable or any(with_copy(word, config, agent.folder, Path()) != word for word in words)
                if not is_handed_over and not self.is_boxed:
                    raise ConfigError(f"{path}: {NO_COPY_PATH_TEXT}")
            yield config

    def _model(self) -> ModelSource | None:
        """Return the address or script to which the gateway forwards requests to the model; None without a model."""
        if (entry := self._file.model) is None:
            return None
        current_url = next((self._environment[name] for name in entry.variables if self._environment.get(name)), "")
        url = self._fill("model.url", entry.url) or ("" if entry.script else current_url or PROVIDER_URLS[entry.dialect])
        script = self._words("model.script", entry.script)
        family = "ANTHROPIC" if entry.dialect == "anthropic" else "OPENAI"
        owners_urls = [self._environment.get(f"{family}_{end}", "") for end in ("BASE_URL", "API_BASE")]
        trusted = bool(url) and _origin(url) in map(_origin, (PROVIDER_URLS[entry.dialect], *owners_urls))
        stands_for = PROVIDER_URLS[entry.dialect] if script else ""
        return ModelSource(entry.variables, entry.suffix, url, script, entry.dialect, trusted, stands_for)

    def _name_of(self, entry: StoreEntry) -> str:
        """Return the name of a store, whether or not the store exists."""
        location = VARIABLE_REFERENCE.sub(lambda match: self._environment.get(match[1] or match[2], ""), entry.place)
        return entry.name or _store_name(entry.kind, location)

    def _stores(self) -> Iterator[StoreSettings]:
        """Yield the stores. Raises ConfigError for a store that does not exist, has the name of another, or needs a box."""
        names = set[str]()
        for entry in self._file.store:
            if self._is_taped and entry.kind != "memory":
                continue
            kind = STORE_KINDS[entry.kind]
            location = self._fill(f"store.{kind.name}", entry.place) if kind.is_address else entry.place
            if kind.must_be:
                self._existing(f"store.{kind.name}", location, is_folder=kind.must_be == "folder")
            name = entry.name or _store_name(entry.kind, location)
            if name in names:
                raise ConfigError(f"{self._path}: store: two are called '{name}'; give each a name")
            names.add(name)
            if entry.in_place and not self.is_boxed:
                raise ConfigError(f"{self._path}: store {name}: in_place: {IN_PLACE_ADVICE}")
            if kind.needs_box and not self.is_boxed:
                raise ConfigError(f"{self._path}: store {name}: {kind.name} is caught in a box alone; leave --unboxed out")
            if kind.needs_box and not ends_tls():
                raise ConfigError(
                    f"{self._path}: store {name}: TLS is ended by cryptography: pip install 'recovery-bench[probe]'"
                )
            variables = {entry.variable: "{store}"} if entry.variable else {}
            ignored = list(entry.ignore)
            for config in self.subject.configs if self.is_boxed and entry.kind == "folder" else ():
                with suppress(ValueError):  # the probe itself writes the agent's copy of a config in the folder
                    ignored.append(escape(str(config.path.resolve().relative_to(Path(location).expanduser().resolve()))))
            opens_door = not (self._file.mcp or self._file.service) if entry.door is None else entry.door
            is_door = opens_door and "door" in kind.takes
            yield StoreSettings(name, entry.kind, location, variables, tuple(ignored), is_door)

    def _addresses(self) -> Iterator[Address]:
        """Yield the addresses of servers, services, databases and the model."""
        variables = {**self._environment, **self.subject.agent.environment}
        for config in self.subject.configs:
            for server in config.servers:
                for url in (server.url, *(word for word in server.command if re.match(r"https?://", word))):
                    if url:
                        yield Address(f"the MCP server {server.name}", url, (host_of(expand(url, variables)),), is_real=True)
        for entry, service in zip(self._file.service, self.subject.services, strict=True):
            yield Address(f"the service {entry.name}", entry.url, (host_of(service.url),), is_real=not service.command)
        for store in self.stores:
            if is_address(store):
                hosts = STORE_KINDS[store.kind].hosts(store.where, self._environment)
                yield Address(f"the database of store {store.name}", "", hosts)
        if (model := self.subject.model) and model.url:
            url = self._file.model.url if self._file.model else ""
            yield Address("the model", url, (host_of(model.url),), is_struck=False)

    def _hosts(self, configs: Sequence[McpConfig]) -> tuple[str, ...]:
        """Return the hosts that the file allows without a port and that no service declares, if TLS can be ended."""
        if not (self.is_boxed and ends_tls()):
            return ()
        urls = [server.url for config in configs for server in config.servers if server.url]
        urls += [*_urls_in(configs), *(entry.url for entry in self._file.service)]
        urls += [self._file.model.url] if self._file.model else []
        declared = {host_of(expand(VARIABLE_REFERENCE.sub(r"${\1\2}", url), self._environment)) for url in urls}
        for entry in self._file.store:
            if STORE_KINDS[entry.kind].is_address and not self._is_taped:
                address = self._fill(f"store.{entry.kind}", entry.place)
                declared |= {*STORE_KINDS[entry.kind].hosts(address, self._environment)}
        return tuple(dict.fromkeys(host for host in self._file.remote if ":" not in host and host not in declared))

    def _forwarded_addresses(self, configs: Sequence[McpConfig]) -> tuple[tuple[str, int], ...]:
        """Return the hosts and ports to which a box forwards bytes: allowed hosts whose calls are not seen, and hosts in
        commands of MCP servers."""
        remote = [host for host in self._file.remote if ":" in host or not (self.is_boxed and ends_tls())]
        addresses = [*hosts_and_ports(remote), *map(host_and_port, _urls_in(configs))]
        return () if self._is_taped else tuple(dict.fromkeys(address for address in addresses if all(address)))

    def _check_hosts(self) -> None:
        """Raise ConfigError if an address whose calls can get a fault is on another machine, and the file does not allow its
        host."""
        allowed = {host for host, _ in hosts_and_ports(self._file.remote)}
        for address in self.addresses:
            for host in address.hosts if address.is_struck else ():
                if not is_this_machine(host) and host not in allowed:
                    raise ConfigError(
                        f"{self._path}: {address.what} is at {one_line(host, MAX_NAME_CHARS)}, not on this machine, and each "
                        f"run would call it for real; name a stand-in, or allow it by: remote = {json.dumps([host])}"
                    )

    def _check_copies_are_named(self) -> None:
        """Raise ConfigError for a store whose copy no command and no variable names: the agent would open the owner's own."""
        if copied := None if self.is_boxed else first_unnamed(self.programs(), copied_paths(self.subject, self.stores)):
            raise ConfigError(
                f"{self._path}: store {copied.store}: no command, MCP config or variable has the path {copied.path}, so the "
                f"agent would work on the store itself; write the path there, or name a `variable`"
            )

    def _check_doors(self) -> None:
        """Raise ConfigError for two servers or services of the same name, whose calls could not be told apart."""
        servers = {server.name for config in self.subject.configs for server in config.servers}
        services = [service.name for service in self.subject.services]
        services += [store.name for store in self.stores if store.kind in OUTBOX_DOORS]
        databases = [store.name for store in self.stores if store.is_door]
        if nameless := [service.name for service in self.subject.services if not (service.variable or self.is_boxed)]:
            raise ConfigError(
                f"{self._path}: service {nameless[0]}: without a box a variable hands its address over; name it by: variable"
            )
        for name in dict.fromkeys((*servers, *services, *databases)):
            if name in (FUNCTION_DOOR, "model"):
                raise ConfigError(f"{self._path}: {name!r} is the probe's own name; rename this server or service")
            if services.count(name) + (name in servers) + (name in databases) > 1:
                raise ConfigError(f"{self._path}: two servers or services are named {name!r}; rename one")

    def _check_programs(self) -> None:
        """Raise ConfigError for a program that starts processes outside the box."""
        for program in self.programs() if self.is_boxed else ():
            if name := program_outside_box(program.words):
                raise ConfigError(
                    f"{self._path}: {program.who} is started by {name}, whose server runs it outside of the box, on your "
                    f"own files; name the command that runs in the image, or give --unboxed"
                )

    @cached_property
    def fixed_names(self) -> Sequence[str]:
        """A line for each code file that contains the name of a config or store, though the copy is not handed over to its
        program."""
        if self._file.takes_copies or self.is_boxed:
            return []
        files = files_with_fixed_names(self.programs(), list(copied_paths(self.subject, self.stores)))
        return [f"{_path_from_here(file)} names {path}, and nothing hands the copy over to it" for file, path in files]

    def check_unasked(self) -> None:
        """Raise ConfigError if the probe may not run without asking a person, since the agent may open the owner's own files by
        name."""
        if lines := self.fixed_names:
            rest = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
            raise ConfigError(
                f"{self._path}: {lines[0]}{rest}: it may open yours, and not the copy; let it take the path from its "
                f"command or a variable, and write takes_copies = true, or run it without --yes"
            )

    def _digest(self) -> str:
        """Return the digest of all files that determine what the cells do: the settings, the MCP configs, the files that
        commands name, and the code in their folders."""
        parts = [json.dumps(self._file.model_dump(mode="json"), sort_keys=True)]
        folder = self.subject.agent.folder
        named_paths = [path for program in self.programs() for path in paths_in(program.words)]
        scripts = [folder / path for path in named_paths if path.suffix in CODE_SUFFIXES]
        code_folders = {script.parent.resolve() for script in scripts if script.is_file()}
        code = [path for code_folder in sorted({folder.resolve(), *code_folders}) for path in code_files(code_folder)]
        stores = {Path(store.where).resolve(): store.kind for store in self.stores if not is_address(store)}
        for path in dict.fromkeys((*(config.path for config in self.subject.configs), *named_paths, *code)):
            with suppress(OSError, ValueError, sqlite3.Error):
                if kind := stores.get((folder / path).resolve()):  # its content: a restored database has other bytes
                    parts.append(content_of(kind, (folder / path).resolve()))
                    continue
                with opened(folder / path) as file:
                    parts.append(digest_of_file(file))
        return digest_of("\0".join(parts))

    def _fill(self, key: str, text: str) -> str:
        """Return a text with the owner's variables in place of `$NAME`. Raises ConfigError for a variable that is not set."""

        def value(reference: re.Match[str]) -> str:
            """Return the value of the variable in a reference such as `$NAME`."""
            name = reference[1] or reference[2]
            if name not in self._environment:
                raise ConfigError(f"{self._path}: {key}: the variable {name} is not set; set it, or write the value")
            if key in ("model.url", "service.url") and name in MODEL_KEY_VARIABLES:
                raise ConfigError(f"{self._path}: {key}: would send {name}, a model's key, with the address; leave it out")
            return self._environment[name]

        return VARIABLE_REFERENCE.sub(value, text)

    def _words(self, key: str, command: CommandText) -> CommandWords:
        """Return the words of a command. Raises ConfigError for a text that a shell could not split."""
        if not isinstance(command, str):
            return tuple(command)
        try:
            return tuple(shlex.split(command))
        except ValueError as error:
            raise ConfigError(f"{self._path}: {key}: {error}; close the quotation, or give a list of words") from error

    def _existing(self, key: str, written: str, *, is_folder: bool = False) -> Path:
        """Return the path that is written at a key of the file. Raises ConfigError if it is no file, or, if `is_folder`, no
        folder."""
        path = expanded_path(written)
        if not (path.is_dir() if is_folder else path.is_file()):
            raise ConfigError(f"{self._path}: {key}: {path} is no {'folder' if is_folder else 'file'} here; name another")
        return path


def _urls_in(configs: Sequence[McpConfig]) -> list[str]:
    """Return the URLs in commands of MCP servers."""
    words = (word for config in configs for server in config.servers for word in server.command)
    return [word for word in words if re.match(r"https?://", word)]


def _origin(url: str) -> tuple[str, str]:
    """Return the scheme and the host with port of an address, without a login."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


def _name_of(folder: Path) -> str:
    """Return the name of a folder, without characters that no name may contain."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", folder.name).strip("-._+")[:MAX_NAME_CHARS] or "agent"


def _store_name(kind: str, location: str) -> str:
    """Return the default name of a store: the name of its file, folder or database, else its kind. An address is never a name,
    since it may contain a password."""
    if STORE_KINDS[kind].needs_box:
        return kind
    if not STORE_KINDS[kind].is_address:
        return Path(location).resolve().stem if kind == "sqlite" else Path(location).resolve().name
    path = re.sub(r"[?#].*", "", location).rpartition("/")[2] if "://" in location else ""
    return path if re.fullmatch(r"[\w-]+", path) else kind


def _path_from_here(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
