"""The file `probe.toml`, as its owner writes it: the agent, its tool servers, services and model, and its stores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from bench.common.bounds import Lookup, Many
from bench.common.errors import ConfigError, nearest
from bench.common.paths import NAME
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.probe.run.addresses import hosts_and_ports
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings
from bench.record.entry import MOST, ConfigEntry

FILE = Path("probe.toml")
CommandText = str | Many[str]
"""A command as one text, which is taken apart as a shell does, or as a list of its words."""
VariableName = Annotated[str, Field(pattern=r"^[^=]*$")]
"""The name of a variable: no system takes one with an equals sign."""
UNREAD = (
    "no witness reads {0}, and nothing resets it. (1) If the tools can, let them use SQLite or PostgreSQL for the probe: "
    "sqlite = FILE or postgres = ADDRESS. (2) Else write memory = FILE here: calls are struck and counted, nobody sees what "
    "they did, and `agent` must begin by loading the same data into {0}. (3) Or a package of yours reads it: docs/own_parts.md"
)
"""What a user can do whose store no witness reads."""
PLACES = "sqlite = FILE, postgres = ADDRESS, folder = PATH, file = FILE, memory = PATH, mail = HOST, webhook = ADDRESS"
OURS = ("sqlite", "postgres", "folder", "file", "memory")
"""The kinds of stores that have a key of their own here."""
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
        known = [kind.name for kind in DOOR_KINDS if kind.opens]
        if door not in known:
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
                is_place = not re.search(r"[/@\s]", each) and all(host and port for host, port in hosts_and_ports([each]))
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


def _keys_beside(place: str) -> Sequence[str]:
    entries: Sequence[type[BaseModel]] = (StoreEntry, ServiceEntry, ModelSourceEntry, McpEntry, CheckEntry, MeanwhileEntry)
    tables = dict(zip(("store", "service", "model", "mcp", "check", "meanwhile"), entries, strict=True))
    table, _, key = place.partition(".")
    return list((tables.get(table, ProbeFile) if key else ProbeFile).model_fields)
