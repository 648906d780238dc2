"""The file `probe.toml`, as its owner writes it: the agent, its tool servers, services and model, and its stores."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from bench.common.bounds import Lookup, Many
from bench.common.digests import digest_of, digest_of_file
from bench.common.errors import ConfigError, nearest, one_line
from bench.common.files import opened
from bench.common.paths import NAME, expanded_path
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.probe.run.addresses import Address, host_of, is_here, place_of, places_of
from bench.probe.run.agent_code import CODE, StartedProgram, code_in, places_in
from bench.probe.run.box.authority import ends_tls
from bench.probe.run.box.box import outside_by
from bench.probe.run.gateway.agent_config import expanded, read_config
from bench.probe.run.gateway.copied_paths import NOT_HANDED, with_copy
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.gateway.functions import FUNCTION
from bench.probe.run.gateway.subject import (
    CommandWords,
    McpConfig,
    ModelSource,
    OthersStep,
    OwnersCheck,
    ProbedAgent,
    Service,
    Subject,
)
from bench.probe.run.unboxed import copies_of, fixed_names, unheard
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings, is_address
from bench.probe.run.witness.originals import content_of
from bench.record.entry import MOST, ConfigEntry
from bench.record.model_parameters import ModelParameters
from bench.record.probe.probed import Probed, ProbedStore

FILE = Path("probe.toml")
CommandText = str | Many[str]
"""A command as one text, which is taken apart as a shell does, or as a list of its words."""
VariableName = Annotated[str, Field(pattern=r"^[^=]*$")]
"""The name of a variable: no system takes one with an equals sign."""
LONGEST_NAME = 90
PROVIDERS = {
    "chat": "https://api.openai.com/v1",
    "responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
UNREAD = (
    "no witness reads {0}, and nothing resets it. (1) If the tools can, let them use SQLite or PostgreSQL for the probe: "
    "sqlite = FILE or postgres = ADDRESS. (2) Else write memory = FILE here: calls are struck and counted, nobody sees what "
    "they did, and `agent` must begin by loading the same data into {0}. (3) Or a package of yours reads it: docs/own_parts.md"
)
"""What a user can do whose store no witness reads."""
NOT_IN_PLACE = (
    "the probe works on copies alone: in a box the copy stands at the path of the store; without one, let your code take the "
    "path from its command or a `variable`"
)
MODEL_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
PLACES = "sqlite = FILE, postgres = ADDRESS, folder = PATH, file = FILE, memory = PATH, mail = HOST, webhook = ADDRESS"
OURS = ("sqlite", "postgres", "folder", "file", "memory")
"""The kinds of stores that have a key of their own here."""
OUTBOXES = {"mail": "mail", "webhook": "http"}
"""The kinds of stores of what the agent sends -> the doors before them."""
REFERENCE = re.compile(r"\$(\w+)|\$\{(\w+)\}")


class StoreEntry(ConfigEntry):
    """A store on which the agent acts: `sqlite`, `postgres`, `folder` or `file`; or the agent's own `memory`. The probe
    works on a copy. It stands at the same path in the agent's box. Without a box, its path or address replaces the owner's in
    the agent's command, its MCP config and its variables."""

    sqlite: str | None = None
    """The file of an SQLite database."""
    postgres: str | None = None
    """The address of a PostgreSQL database; `$NAME` for what a variable holds."""
    folder: str | None = None
    """A folder whose files are what the agent changes."""
    file: str | None = None
    """A file that the agent changes."""
    memory: str | None = None
    """A file or a folder in which the agent keeps what it knows: checkpoints, sessions, conversations. It is reset before each
    run, and what changes in it is no effect. It may be absent."""
    ignore: Many[str] = ()
    """What is reset, but not read: tables, `TABLE.COLUMN`, paths of files, or `FILE/PLACE` in a file of JSON; `*` is any
    text."""
    name: str = ""
    """Its name in the verdicts; by default that of the file, the folder or the database."""
    variable: VariableName = ""
    """A variable that gets the path or address of the copy, besides."""
    door: bool | None = None
    """Whether the agent's own transactions are calls, which pass the gateway. Only `postgres` takes it. By default they are
    where the file has neither `mcp` nor `service`."""
    in_place: bool = False
    """Says that the agent finds the copy at the store's own path. In a box it does anyway; without a box it cannot."""
    others: Lookup[str, str] = Field(default_factory=dict, exclude_if=lambda others: not others)
    """Instead: the place of a store of a kind that another package brings. Write `KIND = ADDRESS`, as for ours."""

    @model_validator(mode="before")
    @classmethod
    def _take_other_kinds(cls, written: Any) -> Any:
        """Put the key of another package's kind among the others. All else is left for the checks of its fields."""
        if not isinstance(written, dict):
            return written
        others = {key: value for key, value in written.items() if key not in cls.model_fields and key in STORE_KINDS}
        return {**{key: value for key, value in written.items() if key not in others}, "others": others} if others else written

    @model_validator(mode="after")
    def _one_kind(self) -> StoreEntry:
        if len(self._places) != 1:
            raise ValueError(f"a store is one of: {PLACES}")
        scheme = re.match(r"(\w+)(?:\+\w+)?://", self.place)
        if self.kind in OURS and scheme and scheme[1] not in ("postgres", "postgresql", self.kind):
            raise ValueError(UNREAD.format(scheme[1]))
        if self.kind not in STORE_KINDS:
            raise ValueError(STORE_KINDS.unknown(self.kind))
        takes = {"name", "variable", *STORE_KINDS[self.kind].takes}
        if refused := sorted(
            key for key in self.model_fields_set - takes - {self.kind, "others", "in_place"} if getattr(self, key)
        ):
            raise ValueError(f"{refused[0]}: a store of kind {self.kind} takes {', '.join(sorted(takes))} only")
        return self

    @property
    def kind(self) -> str:
        return next(iter(self._places))

    @property
    def place(self) -> str:
        """The path or address, as the file gives it."""
        return self._places[self.kind]

    @property
    def _places(self) -> dict[str, str]:
        given = {**dict(self), **self.others}
        return {kind: given[kind] for kind in (*OURS, *self.others) if given[kind]}


class ServiceEntry(ConfigEntry):
    """An HTTP service that the agent calls. It gets the address of the probe's gateway in a variable."""

    name: str
    """Its name in the verdicts."""
    variable: VariableName = ""
    """The variable in which the agent finds its address. In a box it can be left out: the service is at its own host and port
    there."""
    url: str
    """Where it listens. `{port}` stands for a free port, if the probe starts it; `$NAME` for what a variable holds."""
    command: CommandText = ()
    """The command that starts it, if the probe is to start it, so that it is stopped while its store is reset. `{port}` is
    replaced."""
    health: str = ""
    """A path that answers below 500 once it is ready; by default it is ready when its port takes connections."""
    door: str = "http"
    """The kind of its door, which names its calls: `http`, or a kind that another package brings."""

    @field_validator("door")
    @classmethod
    def _is_known(cls, door: str) -> str:
        if not (known := [kind.name for kind in DOOR_KINDS if kind.opens]).count(door):
            raise ValueError(f"no kind of door for a service is named '{door}'; {nearest(door, known)}")
        return door


class CheckEntry(ConfigEntry):
    """A question at the end of each run. Where all checks answer as after clean runs, rows that differ are no damage: the agent
    may have undone what it did twice."""

    sql: str = ""
    """A query, such as `SELECT sum(cents) FROM payment`. It cannot change the store."""
    store: str = ""
    """The name of the store that the query is for; by default the first one."""
    command: CommandText = ()
    """Instead of a query: a command. Its exit code and what it prints are its answer."""

    @model_validator(mode="after")
    def _one_question(self) -> CheckEntry:
        if bool(self.sql) == bool(self.command):
            raise ValueError('a check is a query, sql = "SELECT ...", or a command')
        if self.sql and not re.match(r"\s*(SELECT|WITH|VALUES)\b", self.sql, re.IGNORECASE):
            raise ValueError("a check's sql begins with SELECT, WITH or VALUES: it asks, and does nothing")
        return self


class MeanwhileEntry(ConfigEntry):
    """What another writer does right before a call is done, in the copy: what a person was shown changes before the agent acts
    on it. The rows have to end as after clean runs, with what this changed."""

    sql: str
    """One statement, such as `UPDATE bill SET cents = 99900 WHERE id = 7`."""
    store: str = ""
    """The name of the store that the statement is for; by default the first one."""
    call: str = "*"
    """The calls before which it is done: `SERVER.TOOL`; `*` is any text. By default all calls with an effect."""


class ModelSourceEntry(ConfigEntry):
    """Where the agent's requests to its model go. The agent gets the address of the probe's gateway in variables."""

    variables: Many[VariableName] = ("OPENAI_BASE_URL",)
    """The variables in which the agent finds the address."""
    suffix: str = "/v1"
    """What follows the gateway's address in these variables."""
    url: str = ""
    """The provider's address; by default that of the first variable as it is now, or else OpenAI's. No key of your environment
    goes to an address of this file, unless it is the provider's own, or your `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL` names
    it too."""
    script: CommandText = ()
    """Instead of a provider: a command that serves a model at `{port}`."""
    dialect: Literal["chat", "responses", "anthropic"] = "chat"
    """Which API it speaks."""
    name: str = "model"
    """The model's name in the record."""
    price_in: float | None = Field(None, ge=0.0)
    """Dollars per million tokens read."""
    price_out: float | None = Field(None, ge=0.0)
    """Dollars per million tokens written."""

    @model_validator(mode="after")
    def _one_source(self) -> ModelSourceEntry:
        if self.url and self.script:
            raise ValueError("a model has a url or a script, not both")
        return self


class McpEntry(ConfigEntry):
    """A file in which the agent finds its MCP servers. The agent gets a rewritten copy; the file stays as it is. In a box the
    copy stands at its path."""

    path: str
    """The file: `.mcp.json`, `claude_desktop_config.json`, an editor's, or another agent's, in JSON, TOML or YAML."""
    variable: VariableName = ""
    """The variable that hands the copy's path over. By default the copy's path stands for the file's in the agent's command."""


class ProbeFile(ConfigEntry):
    """A probe: an agent, the servers through which it acts, and its stores. Paths are relative to the folder in which the
    command is run."""

    agent: CommandText
    """The command that starts the agent on its task."""
    mcp: str | Many[str] | Many[McpEntry] = ()
    """The file in which the agent finds its MCP servers, or several; a table with `path` and `variable` where a variable hands
    it over."""
    store: Many[StoreEntry] = Field(min_length=1, max_length=MOST)
    """The stores on which the agent acts, each with its table `[[store]]`."""
    service: Many[ServiceEntry] = Field((), max_length=MOST)
    """HTTP services that it calls, each with its table `[[service]]`."""
    model: ModelSourceEntry | None = None
    """Its model. Without this table the probe does not stand before the model, and strikes no reply of it."""
    name: str = ""
    """The subject's name; by default that of the folder in which the command is run."""
    resume: CommandText = ()
    """The command that goes on with the task after a death; by default the same as `agent`."""
    folder: str = "."
    """Where the agent is started."""
    environment: Lookup[VariableName, str] = Field(default_factory=dict)
    """Variables for the agent, beside your own; `$NAME` in a value is what your variable holds. Their values are in no
    output, unless they are plain words, numbers or paths."""
    done: CommandText = ()
    """A command that ends with code 0 if the task is done. By default the agent's code 0, and at least one effect."""
    said_done: CommandText = ()
    """How the agent says that it is done: a pattern that its output holds, as a text, or a command, as a list of words. By
    default it says so by its exit code 0."""
    answers: str = ""
    """What the agent reads on its standard input, in each of its lives, such as `"y\\n"`. By default that is empty."""
    limit: float = Field(300.0, gt=0.0)
    """Seconds that all lives of the agent in one run may take together."""
    settle: float = Field(0.1, gt=0.0, le=600.0)
    """Seconds between two readings of a store that must be equal."""
    patience: float = Field(10.0, gt=0.0, le=3600.0)
    """Seconds of silence after which a client counts as one that waits longer."""
    reads: Many[str] = ()
    """Tools that only read, as you know, whether or not they claim it: `SERVER.TOOL`, and `SERVICE.METHOD PATH` for a service;
    `*` is any text. A call of such a tool is a read, unless a witness sees that it changed something."""
    hide: Many[str] = ()
    """Columns and arguments whose values are in no output."""
    remote: Many[str] = ()
    """Hosts, other than this machine, that the probe may strike: those of MCP servers with a URL, of services, of databases.
    What is done there is done for real, in each run. In a box also hosts of the web that the agent calls besides: its calls
    there are seen and struck. To a `HOST:PORT` bytes are passed on as they are, and no call is seen."""

    @field_validator("remote")
    @classmethod
    def _are_places(cls, remote: tuple[str, ...]) -> tuple[str, ...]:
        for each in remote:
            try:
                is_place = not re.search(r"[/@\s]", each) and all(host and port for host, port in places_of([each]))
            except ValueError:
                is_place = False
            if not is_place:
                raise ValueError(f"{each!r} is no host, such as api.example.com or api.example.com:8443")
        return remote

    takes_copies: bool = False
    """Whether agent and servers take each path from what the probe hands over, even where their code has the name of an MCP
    config or a store. Without it, `--yes` is refused for such code, if there is no box."""
    functions: Many[str] | None = Field(None, max_length=MOST)
    """Tools that are functions in the agent's own process (Python), beside those of known frameworks: `MODULE:FUNCTION`, such
    as `shop.payments:refund`. A script's module is its file's name. By default those of frameworks are sought where the file
    has neither `mcp` nor `service`; `[]` seeks them beside these."""
    meant: Many[str] = ()
    """Tools that the task is meant to call more than once with the same arguments: `SERVER.TOOL`; `*` is any text."""
    unsaid_fails: bool = False
    """Whether it is damage that all effects stand and the agent said that it failed. The customer of an agent that pays is told
    no then, and whoever takes up the task pays again. By default it is only told."""
    check: Many[CheckEntry] = Field((), max_length=MOST)
    """What is asked at the end of each run, each with its table `[[check]]`."""
    meanwhile: Many[MeanwhileEntry] = Field((), max_length=MOST)
    """What another writer does right before calls, each with its table `[[meanwhile]]`. By default it changes a number to which
    the call adds."""

    @field_validator("functions")
    @classmethod
    def _are_functions(cls, functions: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for each in functions or ():
            if not re.fullmatch(r"[^\W\d]\w*(\.\w+)*:[^\W\d]\w*(\.\w+)*", each):
                raise ValueError(f'{each!r} is no MODULE:FUNCTION, such as "shop.payments:refund"')
        return functions

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if name and not re.fullmatch(NAME, name):
            raise ValueError(f"{name!r} is no name: use letters, digits and . _ + -, a letter or digit first")
        return name


def read_probe_file(path: Path) -> ProbeFile:
    """Return what a `probe.toml` says. Raises ConfigError in one line."""
    if not path.exists():
        raise ConfigError(f"{path}: is not there; write it by: bench probe --init -- COMMAND")
    try:
        return ProbeFile.model_validate(read_toml(path))
    except ValidationError as error:
        first = first_violation(error, "extra_forbidden")
        if first.place == "store":
            raise ConfigError(
                f"{path}: store: {first.words}; write what the agent changes under [[store]], in two brackets: {PLACES}. If no "
                f"witness reads it: memory = FILE, a file that the agent keeps; then calls are counted and nobody sees effects"
            ) from error
        if first.kind != "extra_forbidden":
            raise ConfigError(f"{path}: {first.line}") from error
        known = _keys_beside(first.place)
        *_, table, _, key = ("", "", *first.place.split("."))
        if table == "store" and not get_close_matches(key.lower(), known):
            raise ConfigError(f"{path}: {first.place}: {UNREAD.format(key)}") from error
        raise ConfigError(f"{path}: unknown key '{first.place}'; {nearest(first.place.rpartition('.')[2], known)}") from error


def stores_named(path: Path, environment: Mapping[str, str] = os.environ) -> Iterator[StoreSettings]:
    """Yield the stores that a `probe.toml` names, whether or not they are there any more. Raises ConfigError."""
    for entry in read_probe_file(path).store:
        where = REFERENCE.sub(lambda name: environment.get(name[1] or name[2], ""), entry.place)
        if where:
            yield StoreSettings(entry.name, entry.kind, where if STORE_KINDS[entry.kind].is_address else entry.place)


class ProbeSettings:
    """The settings that a `probe.toml` and the owner's variables give together. Raises ConfigError if a file, folder or
    variable that they name does not exist.

    subject      what is probed
    stores       its stores; if it `is_taped`, only what the agent knows, since a tape stands for the others
    is_boxed     whether it runs in a box, where the copies stand at the paths of the owner's own
    addresses    where its servers, services, databases and its model are; none if it `is_taped`
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
                Service(entry.name, entry.variable, self._filled("service.url", entry.url), words, entry.health, entry.door)
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
                OthersStep(entry.store or self._name_of(file.store[0]), entry.sql, entry.call) for entry in file.meanwhile
            ),
            takes_sql=frozenset(self._name_of(entry) for entry in file.store if STORE_KINDS[entry.kind].takes_sql),
            hosts=self._hosts(configs),
            passes=self._passes(configs),
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
        """The addresses of its stores, which can hold passwords."""
        return [store.where for store in self.stores if is_address(store)]

    @property
    def absent(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Names and variables of the stores for which a tape stands, with what an agent finds there: no file that can be."""
        names, variables = dict[str, str](), dict[str, str]()
        for entry in self._file.store if self._is_taped else ():
            nowhere, path = f"{os.devnull}/{entry.kind}", Path(entry.place)
            if entry.kind != "memory" and not STORE_KINDS[entry.kind].is_address:
                names |= dict.fromkeys((entry.place, str(path.absolute()), str(path.resolve())), nowhere)
            variables |= {entry.variable: nowhere} if entry.variable and entry.kind != "memory" else {}
        return names, variables

    def probed(self, all_forms: bool, only: Sequence[str]) -> Probed:
        """Return what the manifest says of the subject."""
        subject = self.subject
        servers = [server for config in subject.configs for server in config.servers]
        doors = {server.name: "mcp_http" if server.url else "mcp_stdio" for server in servers}
        doors |= {service.name: service.door for service in subject.services}
        doors |= {store.name: "database" for store in self.stores if store.is_door}
        doors |= {name: "http" for host in subject.hosts for name in (host, f"{host}:80")}
        doors |= {store.name: OUTBOXES[store.kind] for store in self.stores if store.kind in OUTBOXES}
        doors |= {FUNCTION: "function"} if subject.functions is not None else {}
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
        """Why no box can hold its stores, in words; "" if one can."""
        kinds = [entry.kind for entry in self._file.store if entry.kind not in OURS and not STORE_KINDS[entry.kind].is_address]
        return f"nobody knows how a box holds a store of kind {kinds[0]}" if kinds and not self._is_taped else ""

    def programs(self) -> list[StartedProgram]:
        """Return each program that the probe runs, the agent first."""
        agent, model = self.subject.agent, self.subject.model
        stores = [name for store in self.stores for name in store.variables]
        given = {name: text for name, text in self._environment.items() if name not in ("PWD", "OLDPWD")}
        doors = [*(service.variable for service in self.subject.services), *(model.variables if model else ())]
        doors += [config.variable for config in self.subject.configs if config.variable]

        def program(who: str, words: CommandWords, sets: Mapping[str, str], more: Sequence[str] = ()) -> StartedProgram:
            return StartedProgram(who, words, {**given, **sets}, agent.folder, tuple(sorted({*sets, *stores, *more})))

        programs = [program("the agent", agent.start, agent.environment, doors)]
        if agent.resume != agent.start:
            programs.append(program("the agent, after a death", agent.resume, agent.environment, doors))
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
        file = self._file
        start = self._words("agent", file.agent)
        if not start:
            raise ConfigError(f"{self._path}: agent: is empty; write the command that starts the agent")
        claim = file.said_done
        return ProbedAgent(
            start=start,
            resume=self._words("resume", file.resume) or start,
            folder=self._existing("folder", file.folder, is_folder=True),
            environment={name: self._filled(f"environment.{name}", value) for name, value in file.environment.items()},
            done=self._words("done", file.done) or None,
            said_done=(claim if isinstance(claim, str) else tuple(claim)) or None,
            answers=file.answers.encode(),
            limit=file.limit,
        )

    def _configs(self, agent: ProbedAgent) -> Iterator[McpConfig]:
        given = (self._file.mcp,) if isinstance(self._file.mcp, str) else self._file.mcp
        for entry in given:
            path, variable = (entry, "") if isinstance(entry, str) else (entry.path, entry.variable)
            self._existing("mcp", path)
            config = read_config(Path(path), variable)
            for words in (agent.start, agent.resume):
                if any("{mcp}" in word for word in words):
                    raise ConfigError(f"{self._path}: agent: {{mcp}} is gone; write the path of the config there: {path}")
                handed = variable or any(with_copy(word, config, agent.folder, Path()) != word for word in words)
                if not handed and not self.is_boxed:
                    raise ConfigError(f"{path}: {NOT_HANDED}")
            yield config

    def _model(self) -> ModelSource | None:
        if (entry := self._file.model) is None:
            return None
        now = next((self._environment[name] for name in entry.variables if self._environment.get(name)), "")
        url = self._filled("model.url", entry.url) or ("" if entry.script else now or PROVIDERS[entry.dialect])
        script = self._words("model.script", entry.script)
        family = "ANTHROPIC" if entry.dialect == "anthropic" else "OPENAI"
        owners = [PROVIDERS[entry.dialect], *(self._environment.get(f"{family}_{end}", "") for end in ("BASE_URL", "API_BASE"))]
        trusted = bool(url) and _origin(url) in map(_origin, owners)
        stands_for = PROVIDERS[entry.dialect] if script else ""
        return ModelSource(entry.variables, entry.suffix, url, script, entry.dialect, trusted, stands_for)

    def _name_of(self, entry: StoreEntry) -> str:
        """Return the name of a store, whether or not it is there."""
        where = REFERENCE.sub(lambda name: self._environment.get(name[1] or name[2], ""), entry.place)
        return entry.name or _store_name(entry.kind, where)

    def _stores(self) -> Iterator[StoreSettings]:
        names = set[str]()
        for entry in self._file.store:
            if self._is_taped and entry.kind != "memory":
                continue
            kind = STORE_KINDS[entry.kind]
            where = self._filled(f"store.{kind.name}", entry.place) if kind.is_address else entry.place
            if kind.must_be:
                self._existing(f"store.{kind.name}", where, is_folder=kind.must_be == "folder")
            name = entry.name or _store_name(entry.kind, where)
            if name in names:
                raise ConfigError(f"{self._path}: store: two are called '{name}'; give each a name")
            names.add(name)
            if entry.in_place and not self.is_boxed:
                raise ConfigError(f"{self._path}: store {name}: in_place: {NOT_IN_PLACE}")
            if kind.needs_box and not self.is_boxed:
                raise ConfigError(f"{self._path}: store {name}: {kind.name} is caught in a box alone; leave --unboxed out")
            if kind.needs_box and not ends_tls():
                raise ConfigError(
                    f"{self._path}: store {name}: TLS is ended by cryptography: pip install 'recovery-bench[probe]'"
                )
            variables = {entry.variable: "{store}"} if entry.variable else {}
            ignored = list(entry.ignore)
            for config in self.subject.configs if self.is_boxed and entry.kind == "folder" else ():
                with suppress(ValueError):  # the agent's copy of a config that lies in the folder is the probe's doing
                    ignored.append(escape(str(config.path.resolve().relative_to(Path(where).expanduser().resolve()))))
            opens = not (self._file.mcp or self._file.service) if entry.door is None else entry.door
            is_door = opens and "door" in kind.takes
            yield StoreSettings(name, entry.kind, where, variables, tuple(ignored), is_door)

    def _addresses(self) -> Iterator[Address]:
        """Yield where servers, services, databases and the model are."""
        variables = {**self._environment, **self.subject.agent.environment}
        for config in self.subject.configs:
            for server in config.servers:
                for url in (server.url, *(word for word in server.command if re.match(r"https?://", word))):
                    if url:
                        yield Address(f"the MCP server {server.name}", url, (host_of(expanded(url, variables)),), is_real=True)
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
        """Return the hosts that the file allows without a port, and that nothing else declares, if TLS can be ended."""
        if not (self.is_boxed and ends_tls()):
            return ()
        urls = [server.url for config in configs for server in config.servers if server.url]
        urls += [*_urls_in(configs), *(entry.url for entry in self._file.service)]
        urls += [self._file.model.url] if self._file.model else []
        known = {host_of(expanded(REFERENCE.sub(r"${\1\2}", url), self._environment)) for url in urls}
        for entry in self._file.store:
            if STORE_KINDS[entry.kind].is_address and not self._is_taped:
                where = self._filled(f"store.{entry.kind}", entry.place)
                known |= {*STORE_KINDS[entry.kind].hosts(where, self._environment)}
        return tuple(dict.fromkeys(host for host in self._file.remote if ":" not in host and host not in known))

    def _passes(self, configs: Sequence[McpConfig]) -> tuple[tuple[str, int], ...]:
        """Return the hosts and ports to which bytes are passed on: those that the file allows, if no call is seen there, and
        those in commands of MCP servers."""
        remote = [host for host in self._file.remote if ":" in host or not (self.is_boxed and ends_tls())]
        places = [*places_of(remote), *map(place_of, _urls_in(configs))]
        return () if self._is_taped else tuple(dict.fromkeys(place for place in places if all(place)))

    def _check_hosts(self) -> None:
        """Raise ConfigError for a host that is not this machine, and that the file does not allow."""
        allowed = {host for host, _ in places_of(self._file.remote)}
        for address in self.addresses:
            for host in address.hosts if address.is_struck else ():
                if not is_here(host) and host not in allowed:
                    raise ConfigError(
                        f"{self._path}: {address.what} is at {one_line(host, LONGEST_NAME)}, not on this machine, and each run "
                        f"would call it for real; name a stand-in, or allow it by: remote = {json.dumps([host])}"
                    )

    def _check_copies_are_named(self) -> None:
        """Raise ConfigError for a copy of a file or folder of which the agent cannot hear: it would work on the owner's own."""
        if copied := None if self.is_boxed else unheard(self.programs(), copies_of(self.subject, self.stores)):
            raise ConfigError(
                f"{self._path}: store {copied.store}: no command, MCP config or variable has the path {copied.path}, so the "
                f"agent would work on the store itself; write the path there, or name a `variable`"
            )

    def _check_doors(self) -> None:
        """Raise ConfigError for a server or a service whose name is another's: their calls could not be told apart."""
        servers = {server.name for config in self.subject.configs for server in config.servers}
        services = [service.name for service in self.subject.services]
        services += [store.name for store in self.stores if store.kind in OUTBOXES]
        databases = [store.name for store in self.stores if store.is_door]
        if nameless := [service.name for service in self.subject.services if not (service.variable or self.is_boxed)]:
            raise ConfigError(
                f"{self._path}: service {nameless[0]}: without a box a variable hands its address over; name it by: variable"
            )
        for name in dict.fromkeys((*servers, *services, *databases)):
            if name in (FUNCTION, "model"):
                raise ConfigError(f"{self._path}: {name!r} is the probe's own name; rename this server or service")
            if services.count(name) + (name in servers) + (name in databases) > 1:
                raise ConfigError(f"{self._path}: two servers or services are named {name!r}; rename one")

    def _check_programs(self) -> None:
        """Raise ConfigError for a program that no box holds: a server starts its work outside."""
        for program in self.programs() if self.is_boxed else ():
            if name := outside_by(program.words):
                raise ConfigError(
                    f"{self._path}: {program.who} is started by {name}, whose server runs it outside of the box, on your "
                    f"own files; name the command that runs in the image, or give --unboxed"
                )

    @cached_property
    def fixed_names(self) -> Sequence[str]:
        """A line for each file of code that has the name of a config or store whose copy nothing hands over to it."""
        if self._file.takes_copies or self.is_boxed:
            return []
        places = fixed_names(self.programs(), list(copies_of(self.subject, self.stores)))
        return [f"{_shown(file)} names {path}, and nothing hands the copy over to it" for file, path in places]

    def check_unasked(self) -> None:
        """Raise ConfigError if a person should be asked first, since the agent may open the owner's own by its name."""
        if lines := self.fixed_names:
            more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
            raise ConfigError(
                f"{self._path}: {lines[0]}{more}: it may open yours, and not the copy; let it take the path from its "
                f"command or a variable, and write takes_copies = true, or run it without --yes"
            )

    def _digest(self) -> str:
        """Return the digest of everything that determines what the cells do, as far as files show it: the settings, the MCP
        configs, the files that commands name, and the code beside these files."""
        parts = [json.dumps(self._file.model_dump(mode="json"), sort_keys=True)]
        folder = self.subject.agent.folder
        words = [place for each in self.programs() for place in places_in(each.words)]
        beside = {(folder / place).parent.resolve() for place in words if place.suffix in CODE and (folder / place).is_file()}
        code = [path for each in sorted({folder.resolve(), *beside}) for path in code_in(each)]
        stores = {Path(store.where).resolve(): store.kind for store in self.stores if not is_address(store)}
        for path in dict.fromkeys((*(config.path for config in self.subject.configs), *words, *code)):
            with suppress(OSError, ValueError, sqlite3.Error):
                if kind := stores.get((folder / path).resolve()):  # its content: a restored database has other bytes
                    parts.append(content_of(kind, (folder / path).resolve()))
                    continue
                with opened(folder / path) as file:
                    parts.append(digest_of_file(file))
        return digest_of("\0".join(parts))

    def _filled(self, key: str, text: str) -> str:
        """Return a text in which the owner's variables replace `$NAME`. Raises ConfigError for a variable that is not set."""

        def value(reference: re.Match[str]) -> str:
            name = reference[1] or reference[2]
            if name not in self._environment:
                raise ConfigError(f"{self._path}: {key}: the variable {name} is not set; set it, or write the value")
            if key in ("model.url", "service.url") and name in MODEL_KEYS:
                raise ConfigError(f"{self._path}: {key}: would send {name}, a model's key, with the address; leave it out")
            return self._environment[name]

        return REFERENCE.sub(value, text)

    def _words(self, key: str, command: CommandText) -> CommandWords:
        """Return the words of a command. Raises ConfigError for a text that no shell could split."""
        if not isinstance(command, str):
            return tuple(command)
        try:
            return tuple(shlex.split(command))
        except ValueError as error:
            raise ConfigError(f"{self._path}: {key}: {error}; close the quotation, or give a list of words") from error

    def _existing(self, key: str, written: str, *, is_folder: bool = False) -> Path:
        path = expanded_path(written)
        if not (path.is_dir() if is_folder else path.is_file()):
            raise ConfigError(f"{self._path}: {key}: {path} is no {'folder' if is_folder else 'file'} here; name another")
        return path


def _urls_in(configs: Sequence[McpConfig]) -> list[str]:
    """Return the URLs in commands of MCP servers."""
    words = (word for config in configs for server in config.servers for word in server.command)
    return [word for word in words if re.match(r"https?://", word)]


def _origin(url: str) -> tuple[str, str]:
    """Return an address's scheme and place, without a login."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


def _name_of(folder: Path) -> str:
    made = re.sub(r"[^A-Za-z0-9._+-]+", "-", folder.name).strip("-._+")
    return made[:LONGEST_NAME] or "agent"


def _store_name(kind: str, where: str) -> str:
    """Return the name of the file, the folder or the database. An address can hold a password, and is never a name."""
    if STORE_KINDS[kind].needs_box:
        return kind
    if not STORE_KINDS[kind].is_address:
        return Path(where).resolve().stem if kind == "sqlite" else Path(where).resolve().name
    path = re.sub(r"[?#].*", "", where).rpartition("/")[2] if "://" in where else ""
    return path if re.fullmatch(r"[\w-]+", path) else kind


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _keys_beside(place: str) -> Sequence[str]:
    entries: Sequence[type[BaseModel]] = (StoreEntry, ServiceEntry, ModelSourceEntry, McpEntry, CheckEntry, MeanwhileEntry)
    tables = dict(zip(("store", "service", "model", "mcp", "check", "meanwhile"), entries, strict=True))
    table, _, key = place.partition(".")
    return list((tables.get(table, ProbeFile) if key else ProbeFile).model_fields)
