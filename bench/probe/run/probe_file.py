"""The config file `probe.toml`: the agent, its tool servers, its services, its model and its stores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from bench.common.addresses import hosts_and_ports
from bench.common.bounds import Lookup, Many
from bench.common.errors import ConfigError, nearest
from bench.common.paths import NAME
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings
from bench.probe.run.witness.stores import Orphan, orphans
from bench.record.entry import MAX_ENTRIES, ConfigEntry

CommandText = str | Many[str]
"""A command: a text, which is split into words by the rules of a shell, or a list of words."""
VariableName = Annotated[str, Field(pattern=r"^[^=]*$")]
"""The name of an environment variable. No operating system accepts an equals sign in the name."""
UNREAD_STORE_ADVICE = (
    "no witness reads {0}, and nothing resets it. (1) If the tools can, let them use SQLite or PostgreSQL for the probe: "
    "sqlite = FILE or postgres = ADDRESS. (2) Else write memory = FILE here: faults are injected and calls counted, but nobody "
    "sees what they did, and `agent` must begin by loading the same data into {0}. (3) Or a package of yours reads it: "
    "docs/own_parts.md"
)
"""The advice for a user whose store no witness can read."""
STORE_KEYS = "sqlite = FILE, postgres = ADDRESS, folder = PATH, file = FILE, memory = PATH, mail = HOST, webhook = ADDRESS"
BUILT_IN_KINDS = ("sqlite", "postgres", "folder", "file", "memory")
"""The kinds of stores that have a key of their own in this file."""
VARIABLE_REFERENCE = re.compile(r"\$(\w+)|\$\{(\w+)\}")


class StoreEntry(ConfigEntry):
    """A store that the agent changes: `sqlite`, `postgres`, `folder` or `file`; or the agent's own `memory`. The probe
    works on a copy. In the agent's box the copy has the path of the store. Without a box, the path or address of the copy
    replaces the store's own in the agent's command, MCP config and environment variables."""

    sqlite: str | None = None
    """The file of an SQLite database."""
    postgres: str | None = None
    """The address of a PostgreSQL database. `$NAME` is replaced by the value of an environment variable."""
    folder: str | None = None
    """A folder in which the agent changes files."""
    file: str | None = None
    """A file that the agent changes."""
    memory: str | None = None
    """A file or folder in which the agent stores its own state: checkpoints, sessions, conversations. The probe resets it
    before each run and counts no change in it as an effect. The file or folder may be absent."""
    ignore: Many[str] = ()
    """The parts of the store that the probe resets but does not read: tables, `TABLE.COLUMN`, paths of files, or `FILE/PLACE`
    in a JSON file; `*` matches any text."""
    name: str = ""
    """The name of the store in the verdicts. The default is the name of the file, the folder or the database."""
    variable: VariableName = ""
    """An environment variable that the probe also sets to the path or address of the copy."""
    door: bool | None = None
    """Whether the agent's own transactions are calls, and so pass through the gateway. Only a `postgres` store accepts this
    key. By default they are calls if the file has neither `mcp` nor `service`."""
    in_place: bool = False
    """Requires that the agent finds the copy at the store's own path. In a box the agent always does; without a box it
    cannot."""
    others: Lookup[str, str] = Field(default_factory=dict, exclude_if=lambda others: not others)
    """The path or address of a store whose kind another package adds. Write `KIND = ADDRESS`, as for a built-in kind."""

    @model_validator(mode="before")
    @classmethod
    def _take_other_kinds(cls, table: Any) -> Any:
        """Move the key of another package's store kind into `others`. The validation of the fields checks all other keys."""
        if not isinstance(table, dict):
            return table
        others = {key: value for key, value in table.items() if key not in cls.model_fields and key in STORE_KINDS}
        return {**{key: value for key, value in table.items() if key not in others}, "others": others} if others else table

    @model_validator(mode="after")
    def _check_kind(self) -> StoreEntry:
        if len(self._places) != 1:
            raise ValueError(f"a store is one of: {STORE_KEYS}")
        scheme = re.match(r"(\w+)(?:\+\w+)?://", self.place)
        if self.kind in BUILT_IN_KINDS and scheme and scheme[1] not in ("postgres", "postgresql", self.kind):
            raise ValueError(UNREAD_STORE_ADVICE.format(scheme[1]))
        if self.kind not in STORE_KINDS:
            raise ValueError(STORE_KINDS.unknown(self.kind))
        accepted_keys = {"name", "variable", *STORE_KINDS[self.kind].takes}
        if refused_keys := sorted(
            key for key in self.model_fields_set - accepted_keys - {self.kind, "others", "in_place"} if getattr(self, key)
        ):
            raise ValueError(f"{refused_keys[0]}: a store of kind {self.kind} takes {', '.join(sorted(accepted_keys))} only")
        return self

    @property
    def kind(self) -> str:
        return next(iter(self._places))

    @property
    def place(self) -> str:
        """The path or address of the store, as written in the file."""
        return self._places[self.kind]

    @property
    def _places(self) -> dict[str, str]:
        values = {**dict(self), **self.others}
        return {kind: values[kind] for kind in (*BUILT_IN_KINDS, *self.others) if values[kind]}


class ServiceEntry(ConfigEntry):
    """An HTTP service that the agent calls. An environment variable gives the agent the address of the probe's gateway."""

    name: str
    """The name of the service in the verdicts."""
    variable: VariableName = ""
    """The environment variable in which the agent finds the address of the service. It can be left out in a box: the agent
    reaches the service at its own host and port there."""
    url: str
    """The address at which the service listens. `{port}` is replaced by a free port if the probe starts the service. `$NAME`
    is replaced by the value of an environment variable."""
    command: CommandText = ()
    """The command with which the probe starts the service. The probe then stops the service while it resets the store.
    `{port}` is replaced by a free port."""
    health: str = ""
    """A path that responds with a status below 500 once the service is ready. By default the service is ready when its port
    accepts connections."""
    door: str = "http"
    """The kind of door in front of the service, which names the calls: `http`, or a kind that another package adds."""

    @field_validator("door")
    @classmethod
    def _check_door(cls, door: str) -> str:
        door_kinds = [kind.name for kind in DOOR_KINDS if kind.opens]
        if door not in door_kinds:
            raise ValueError(f"no kind of door for a service is named '{door}'; {nearest(door, door_kinds)}")
        return door


class CheckEntry(ConfigEntry):
    """A query or command that the probe runs at the end of each run. If all checks give the results of the clean runs, rows
    that differ are no damage: the agent may have undone a repeated effect."""

    sql: str = ""
    """A query, for example `SELECT sum(cents) FROM payment`. The query cannot change the store."""
    store: str = ""
    """The name of the store on which the query runs. The default is the first store."""
    command: CommandText = ()
    """A command instead of a query. The result is the exit code and the output of the command."""

    @model_validator(mode="after")
    def _check_one_query(self) -> CheckEntry:
        if bool(self.sql) == bool(self.command):
            raise ValueError('a check is a query, sql = "SELECT ...", or a command')
        if self.sql and not re.match(r"\s*(SELECT|WITH|VALUES)\b", self.sql, re.IGNORECASE):
            raise ValueError("a check's sql begins with SELECT, WITH or VALUES: it asks, and does nothing")
        return self


class MeanwhileEntry(ConfigEntry):
    """A change that another writer makes in the copy right before a call executes. It tests an agent that acts on data which
    changed after a person saw them. At the end, the rows have to equal the rows of the clean runs plus this change."""

    sql: str
    """One SQL statement, for example `UPDATE bill SET cents = 99900 WHERE id = 7`."""
    store: str = ""
    """The name of the store in which the statement runs. The default is the first store."""
    call: str = "*"
    """The calls before which the statement runs: `SERVER.TOOL`; `*` matches any text. The default is all calls with an
    effect."""


class ModelSourceEntry(ConfigEntry):
    """The model to which the gateway forwards the agent's requests. Environment variables give the agent the address of the
    probe's gateway."""

    variables: Many[VariableName] = ("OPENAI_BASE_URL",)
    """The environment variables in which the agent finds the address."""
    suffix: str = "/v1"
    """The path that the probe appends to the gateway's address in these variables."""
    url: str = ""
    """The provider's address. The default is the current value of the first variable, or else OpenAI's address. No API key of
    your environment goes to an address in this file, except to the provider's own address and to an address that your
    `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL` also names."""
    script: CommandText = ()
    """A command that serves a model at `{port}`, instead of a provider."""
    dialect: Literal["chat", "responses", "anthropic"] = "chat"
    """The API of the model."""
    name: str = "model"
    """The name of the model in the record."""
    price_in: float | None = Field(None, ge=0.0)
    """The price in dollars per million input tokens."""
    price_out: float | None = Field(None, ge=0.0)
    """The price in dollars per million output tokens."""

    @model_validator(mode="after")
    def _check_one_source(self) -> ModelSourceEntry:
        if self.url and self.script:
            raise ValueError("a model has a url or a script, not both")
        return self


class McpEntry(ConfigEntry):
    """A file in which the agent finds its MCP servers. The agent reads a rewritten copy; the probe does not change the file.
    In a box the copy has the path of the file."""

    path: str
    """The path of the file: `.mcp.json`, `claude_desktop_config.json`, or the config file of an editor or another agent, in
    JSON, TOML or YAML."""
    variable: VariableName = ""
    """The environment variable that gives the agent the path of the copy. By default the path of the copy replaces the path
    of the file in the agent's command."""


class ProbeFile(ConfigEntry):
    """A probe: an agent, the servers that it calls, and its stores. Paths are relative to the folder in which you run the
    command."""

    agent: CommandText
    """The command that starts the agent on its task."""
    mcp: str | Many[str] | Many[McpEntry] = ()
    """The file in which the agent finds its MCP servers, or several files. Write a table with `path` and `variable` if an
    environment variable gives the agent the path."""
    store: Many[StoreEntry] = Field(min_length=1, max_length=MAX_ENTRIES)
    """The stores that the agent changes. Each has a table `[[store]]`."""
    service: Many[ServiceEntry] = Field((), max_length=MAX_ENTRIES)
    """The HTTP services that the agent calls. Each has a table `[[service]]`."""
    model: ModelSourceEntry | None = None
    """The agent's model. Without this table the agent's requests to its model do not pass through the probe, and the probe
    injects no fault into the responses."""
    name: str = ""
    """The name of the probed agent. The default is the name of the folder in which you run the command."""
    resume: CommandText = ()
    """The command that continues the task after the agent's process was killed. The default is the command of `agent`."""
    folder: str = "."
    """The folder in which the probe starts the agent."""
    environment: Lookup[VariableName, str] = Field(default_factory=dict)
    """Environment variables for the agent, in addition to your own. `$NAME` in a value is replaced by the value of your
    variable. No output contains these values, unless they are plain words, numbers or paths."""
    done: CommandText = ()
    """A command that exits with code 0 if the task is done. By default the task is done if the agent exits with code 0 and a
    witness saw at least one effect."""
    said_done: CommandText = ()
    """How the agent reports that the task is done: a text, which is a pattern in the agent's output, or a list of words,
    which is a command. By default the exit code 0 reports it."""
    answers: str = ""
    """The standard input of each process of the agent, for example `"y\\n"`. The default is empty."""
    limit: float = Field(300.0, gt=0.0)
    """The time in seconds that all processes of the agent in one run may take together."""
    settle: float = Field(0.1, gt=0.0, le=600.0)
    """The time in seconds between two readings of a store, which have to be equal."""
    patience: float = Field(10.0, gt=0.0, le=3600.0)
    """The time in seconds without a response after which the probe notes that the client still waits."""
    reads: Many[str] = ()
    """Tools that only read, whether or not they declare it: `SERVER.TOOL`, or `SERVICE.METHOD PATH` for a service; `*` matches
    any text. A call of these tools counts as a read, unless a witness sees a change that the call made."""
    hide: Many[str] = ()
    """Columns, arguments, members of JSON, and parameters of URLs and forms whose values appear in no output."""
    remote: Many[str] = ()
    """Hosts, other than this machine, into whose calls the probe may inject faults: hosts of MCP servers with a URL, of
    services and of databases. Every run makes real changes there. In a box, also other hosts of the web that the agent calls:
    the probe sees these calls and injects faults into them. For a `HOST:PORT` the probe forwards the bytes unchanged and sees
    no call."""

    @field_validator("remote")
    @classmethod
    def _check_hosts(cls, remote: tuple[str, ...]) -> tuple[str, ...]:
        for host_text in remote:
            try:
                is_host = not re.search(r"[/@\s]", host_text) and all(
                    host and port for host, port in hosts_and_ports([host_text])
                )
            except ValueError:
                is_host = False
            if not is_host:
                raise ValueError(f"{host_text!r} is no host, such as api.example.com or api.example.com:8443")
        return remote

    takes_copies: bool = False
    """Declares that the agent and the servers take every path from what the probe gives them, even if their code contains the
    name of an MCP config file or a store. Without this declaration and without a box, `--yes` is refused for that code."""
    functions: Many[str] | None = Field(None, max_length=MAX_ENTRIES)
    """Tools that are Python functions in the agent's own process, in addition to the tools of known frameworks:
    `MODULE:FUNCTION`, for example `shop.payments:refund`. The module of a script is the name of its file. By default the probe
    looks for the tools of frameworks if the file has neither `mcp` nor `service`; `[]` looks for them in any case."""
    meant: Many[str] = ()
    """Tools that the task intends to call more than once with the same arguments: `SERVER.TOOL`; `*` matches any text."""
    unsaid_fails: bool = False
    """Whether it counts as damage that all effects exist but the agent reported a failure. For an agent that pays, the customer
    then hears that the payment failed, and the next attempt pays again. By default the verdict only mentions it."""
    check: Many[CheckEntry] = Field((), max_length=MAX_ENTRIES)
    """The checks at the end of each run. Each has a table `[[check]]`."""
    meanwhile: Many[MeanwhileEntry] = Field((), max_length=MAX_ENTRIES)
    """Changes by another writer right before calls. Each has a table `[[meanwhile]]`. By default the writer changes a number
    to which the call adds."""

    @field_validator("functions")
    @classmethod
    def _check_functions(cls, functions: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in functions or ():
            if not re.fullmatch(r"[^\W\d]\w*(\.\w+)*:[^\W\d]\w*(\.\w+)*", name):
                raise ValueError(f'{name!r} is no MODULE:FUNCTION, such as "shop.payments:refund"')
        return functions

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name and not re.fullmatch(NAME, name):
            raise ValueError(f"{name!r} is no name: use letters, digits and . _ + -, a letter or digit first")
        return name


def read_probe_file(path: Path) -> ProbeFile:
    """Return the content of a `probe.toml`.

    Raises:
        ConfigError: the file is absent or wrong; the message is one line.
    """
    if not path.exists():
        raise ConfigError(f"{path}: is not there; write it by: bench probe --init -- COMMAND")
    if path.suffix == ".py":
        raise ConfigError(f"{path}: is no probe file; a command is typed behind `--`, as in: bench probe -- python {path}")
    tables = read_toml(path)
    try:
        return ProbeFile.model_validate(tables)
    except ValidationError as error:
        violation = first_violation(error, "extra_forbidden", value=tables)
        if violation.place == "store":
            raise ConfigError(
                f"{path}: store: {violation.words}; write what the agent changes under [[store]], in two brackets: "
                f"{STORE_KEYS}. If no witness reads it: memory = FILE, a file that the agent keeps; then calls are counted and "
                f"nobody sees effects"
            ) from error
        if violation.kind != "extra_forbidden":
            raise ConfigError(f"{path}: {violation.line}") from error
        known_keys, key = _keys_of_table(violation.place), str(violation.path[-1])
        is_of_store = len(violation.path) == 3 and violation.path[0] == "store"
        if is_of_store and not get_close_matches(key.lower(), known_keys):
            raise ConfigError(f"{path}: {violation.place}: {UNREAD_STORE_ADVICE.format(key)}") from error
        raise ConfigError(f"{path}: unknown key '{violation.place}'; {nearest(key, known_keys)}") from error


def orphans_in_file(path: Path) -> Iterator[Orphan]:
    """Yield what killed probes left of the stores in a `probe.toml`, whether or not the stores still exist.

    Raises:
        ConfigError: The file is absent or wrong, or a server of a named database cannot be queried.
    """
    return orphans(_stores_in_file(path, os.environ))


def _stores_in_file(path: Path, environment: Mapping[str, str]) -> Iterator[StoreSettings]:
    """Yield the settings of the stores that have an address or a path."""
    for entry in read_probe_file(path).store:
        address = VARIABLE_REFERENCE.sub(lambda match: environment.get(match[1] or match[2], ""), entry.place)
        if address:
            yield StoreSettings(entry.name, entry.kind, address if STORE_KINDS[entry.kind].is_address else entry.place)


def _keys_of_table(key_path: str) -> Sequence[str]:
    """Return the keys of the table that contains the key with this path."""
    entries: Sequence[type[BaseModel]] = (StoreEntry, ServiceEntry, ModelSourceEntry, McpEntry, CheckEntry, MeanwhileEntry)
    tables = dict(zip(("store", "service", "model", "mcp", "check", "meanwhile"), entries, strict=True))
    table, _, key = key_path.partition(".")
    return list((tables.get(table, ProbeFile) if key else ProbeFile).model_fields)
