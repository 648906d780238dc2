"""What is probed, as its owner describes it: the agent, the servers that it calls, and the time limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

CommandWords = tuple[str, ...]


@dataclass(frozen=True)
class ProbedAgent:
    """The agent as its owner starts it.

    start, resume   the commands that start a task, and that continue it after the agent was killed
    folder          the working folder; `environment` is added to the owner's own variables
    done            a command that exits with 0 if the task is done; None: the task is done if the agent's exit code is 0 and
                    it had at least one effect
    said_done       a command, or a pattern in the agent's output, by which the agent says that the task is done; None: an exit
                    code of 0 says so
    answers         the standard input of each of its processes
    limit           seconds that all its processes together may take
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
    """An MCP server in the agent's config: a command for stdio, or the URL of Streamable HTTP."""

    name: str
    command: CommandWords = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class McpConfig:
    """A file that lists the agent's MCP servers. The agent gets a rewritten copy. If `path` is empty, the agent's command
    contains the commands of the servers, and they are replaced there.

    variable   the variable that gets the path of the copy; "" if the path in the agent's command is replaced
    """

    path: Path
    servers: tuple[McpServer, ...]
    variable: str = ""


@dataclass(frozen=True)
class Service:
    """An HTTP service that the agent calls.

    door       the kind of its door (`bench.probe.run.gateway.door_kinds`)
    variable   the variable in which the agent finds its address
    url        where it listens
    command    starts it; () if the owner does. `{port}` is replaced here and in `url`
    health     a path that answers with a status below 500 once the service is ready; "": a connection to its port suffices
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
    dialect     the model's API
    stands_for  the provider's address, at which a script answers in a box; "" for none
    trusted     whether the owner's keys may be sent to `url`: it is the provider's own, or a variable of the owner's names it
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
    """A question of the owner's, which is asked at the end of each run: a query of a store, or a command. If all answers equal
    the answers of the clean runs, differing rows are no damage.

    store, sql   a store's name and the query
    command      a command; its exit code and its output are the answer
    """

    store: str = ""
    sql: str = ""
    command: CommandWords = ()


@dataclass(frozen=True)
class OthersStatement:
    """A statement that another writer executes right before a call.

    store, sql   the store's name, and the statement
    call         a pattern of `DOOR.TOOL`: the statement can be executed before calls that match
    counting     the same statement, which also counts up what the call counts up in the same row: this is how a writer writes
                 that heeds a version; "" if the call counts nothing up there
    """

    store: str
    sql: str
    call: str = "*"
    counting: str = ""


@dataclass(frozen=True)
class Subject:
    """Everything that is probed except the stores (`bench.probe.run.witness`).

    settle     seconds between two readings of a store that must be equal
    patience   seconds without a response after which a client is said to wait longer
    hide       names of columns and arguments whose values appear in no output
    reads      patterns of `DOOR.TOOL`: the owner says that these calls only read
    meant      patterns of `DOOR.TOOL`: calls that the task makes more than once with the same arguments
    checks     the owner's questions at the end of each run
    meanwhile  the owner's statements of another writer
    takes_sql  the names of the stores that take SQL
    stand_ins  the names of the stores that keep sent messages: how the real receiver treats a repeated message is not known
    remembers  whether one of its stores is the agent's memory
    hosts      further web hosts that the owner allows: calls there are seen, and faults injected, if the agent runs in a box
    passes     hosts and ports to which a box forwards bytes without looking for calls
    functions  `MODULE:FUNCTION` of tools in the agent's own process, besides the tools of frameworks; None: no tools are
               looked for
    watched    whether the agent's Python processes report which MCP servers they start
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
    meanwhile: tuple[OthersStatement, ...] = ()
    takes_sql: frozenset[str] = frozenset()
    stand_ins: frozenset[str] = frozenset()
    remembers: bool = False
    functions: tuple[str, ...] | None = None
    hosts: tuple[str, ...] = ()
    passes: tuple[tuple[str, int], ...] = ()
    watched: bool = False

    @property
    def can_resume(self) -> bool:
        """Whether the agent can continue a task after it was killed: it has a command for that, or a memory."""
        return self.remembers or self.agent.resume != self.agent.start
