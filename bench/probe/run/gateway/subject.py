"""The subject of a probe, as its owner describes it: the agent, the servers through which it acts, and the time limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

CommandWords = tuple[str, ...]


@dataclass(frozen=True)
class ProbedAgent:
    """The agent as its owner starts it.

    start, resume   the commands that begin a task, and that go on with it after a death
    folder          where it is started; `environment` is added to the owner's own variables
    done            a command that exits with 0 if the task is done; None: exit code 0 of the agent, and at least one effect
    said_done       a command, or a pattern in what it printed, by which it said that it was done; None: its exit code is 0
    answers         what it reads on its standard input, in each life
    limit           seconds that all its lives together may take
    """

    start: CommandWords
    resume: CommandWords
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    done: CommandWords | None = None
    said_done: CommandWords | str | None = None
    answers: bytes = b""
    limit: float = 300.0


@dataclass(frozen=True)
class McpServer:
    """An MCP server as the agent's config has it: a command over stdio, or the URL of Streamable HTTP."""

    name: str
    command: CommandWords = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class McpConfig:
    """A file in which the agent finds its MCP servers. The agent gets a rewritten copy. If `path` is empty, the agent's command
    holds the commands of the servers instead, and they are replaced there.

    variable   the variable that hands the copy over; "" if its path in the command is replaced
    """

    path: Path
    servers: tuple[McpServer, ...]
    variable: str = ""


@dataclass(frozen=True)
class Service:
    """An HTTP service that the agent calls.

    door       the kind of its door (`bench.probe.run.gateway.door_kinds`)
    variable   the variable in which the agent finds its address
    url        where it listens; `command` starts it, if the probe is to start it, and `{port}` in both is replaced
    health     a path that answers below 500 once it is ready; "": its port takes connections
    """

    name: str
    variable: str
    url: str
    command: CommandWords = ()
    health: str = ""
    door: str = "http"


@dataclass(frozen=True)
class ModelSource:
    """The provider or script that gets the requests to the model.

    variables   the variables in which the agent finds the address; each gets the gateway's, with `suffix` at its end
    url         the provider's address; "" for a script
    script      a command that serves a model at `{port}`, such as a script of the owner's
    dialect     which API it speaks
    stands_for  the provider's address, for which a script stands in a box; "" for none
    trusted     whether the owner's keys may go to `url`: it is the provider's own, or the owner's own variable names it
    """

    variables: tuple[str, ...] = ("OPENAI_BASE_URL",)
    suffix: str = "/v1"
    url: str = ""
    script: CommandWords = ()
    dialect: Literal["chat", "responses", "anthropic"] = "chat"
    trusted: bool = False
    stands_for: str = ""


@dataclass(frozen=True)
class OwnersCheck:
    """What the owner asks at the end of a run: a query of a store, or a command. Where all answers are those of clean runs,
    rows that differ are no damage.

    store, sql   a store's name and the query
    command      a command; its exit code and what it prints are its answer
    """

    store: str = ""
    sql: str = ""
    command: CommandWords = ()


@dataclass(frozen=True)
class OthersStep:
    """What another writer does right before a call.

    store, sql   the store's name, and one statement
    call         the pattern of `DOOR.TOOL` for which the owner wants it
    """

    store: str
    sql: str
    call: str = "*"


@dataclass(frozen=True)
class Subject:
    """Everything that is probed except the stores (`bench.probe.run.witness`).

    settle     seconds between two readings of a store that must be equal
    patience   seconds of silence after which it is said of a call that its client waits longer
    hide       names of columns and arguments whose values are in no output
    reads      patterns of `DOOR.TOOL` for what only reads, as the owner says
    meant      patterns of `DOOR.TOOL` for calls that the task makes more than once with the same arguments
    checks     what the owner asks at the end of each run
    meanwhile  what another writer does right before calls, as the owner says
    takes_sql  the names of the stores that take SQL
    stand_ins  the names of the stores that keep what is sent to others: how these take a message twice, nobody knows
    remembers  whether one of its stores is the agent's memory
    hosts      further hosts of the web that the owner allows: in a box what the agent calls there is seen, and struck
    passes     hosts and ports to which bytes are passed on from the box's network, and no call is seen
    functions  `MODULE:FUNCTION` of tools in the agent's own process, besides those of frameworks; None: none are sought
    watched    whether the agent's Pythons tell which MCP servers they start
    """

    name: str
    agent: ProbedAgent
    configs: tuple[McpConfig, ...] = ()
    services: tuple[Service, ...] = ()
    model: ModelSource | None = None
    settle: float = 0.1
    patience: float = 10.0
    hide: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()
    checks: tuple[OwnersCheck, ...] = ()
    meanwhile: tuple[OthersStep, ...] = ()
    takes_sql: frozenset[str] = frozenset()
    stand_ins: frozenset[str] = frozenset()
    remembers: bool = False
    functions: tuple[str, ...] | None = None
    hosts: tuple[str, ...] = ()
    passes: tuple[tuple[str, int], ...] = ()
    watched: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the agent can go on with a task after a death: it has a command for that, or a memory."""
        return self.remembers or self.agent.resume != self.agent.start
