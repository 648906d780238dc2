"""What can be known about an agent without running it, and the `probe.toml` that is written from it.

The sources are the agent's folder, its owner's variables, and its command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.common.addresses import host_of, is_this_machine
from bench.common.errors import ConfigError
from bench.common.escaping import escape_line
from bench.common.files import opened
from bench.probe.run.agent_code import CODE_SUFFIXES, code_text
from bench.probe.run.box.loading import loader_of
from bench.probe.run.gateway.agent_config import expand, read_config
from bench.probe.run.gateway.subject import McpConfig, ProbedAgent, Service, Subject
from bench.probe.run.secrets import DOTENV_LINE, redacted_command, without_login
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings

MCP_CONFIGS = (
    ".mcp.json", "mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "claude_desktop_config.json", "opencode.json",
    "fastagent.config.yaml",
)  # fmt: skip
HOME_MCP_CONFIGS = (
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)
"""The paths of Claude Desktop's config in a home, on Linux and on macOS."""
SKIPPED_FOLDERS = frozenset(("node_modules", "venv", "env", "site-packages", "__pycache__", "dist", "build", "target"))
MODEL_VARIABLES = {
    "OPENAI_BASE_URL": ("OPENAI_API_KEY", "https://api.openai.com/v1"),
    "ANTHROPIC_BASE_URL": ("ANTHROPIC_API_KEY", "https://api.anthropic.com"),
}
"""Variable of a provider's address -> the variable of the provider's key, and the address if the variable is not set."""
ANTHROPIC_VARIABLE = "ANTHROPIC_BASE_URL"
POSTGRES_ADDRESS = re.compile(r"postgres\w*:", re.IGNORECASE)
KEYLESS_ADDRESS = re.compile(r"https?://[^/@?#]*(?:/|/v1/?)?")
"""Matches an address that contains no key: it has only a host, or a host and `/v1`."""
NO_SERVICE_VARIABLE = re.compile(r"proxy|index|registry|mirror|^OTEL_", re.IGNORECASE)
"""Matches variables with addresses on which no agent acts, such as proxies."""
SQLITE_HEADER = b"SQLite format 3\0"
MAX_SEARCHED_FILES, MAX_DEPTH, MAX_STORES = 5_000, 4, 5
SYSTEM_FOLDERS = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
    sys.prefix,
)
"""Folders of the system's programs, which hold no data of an agent."""
MAX_PATH_CHARS = 4096
WATCHED_RUN_TIMEOUT_S = 300.0
"""Seconds that a watched run may take."""


@dataclass(frozen=True)
class FileLine:
    """A line of the file: `written`, a setting or a setting in a comment, and `why`, the comment with the reason."""

    written: str
    why: str


@dataclass(frozen=True)
class FileTable:
    """A table of the file, such as `[[store]]`; "" for the top of the file. A table with only comments is a comment itself."""

    name: str
    lines: Sequence[FileLine]

    @property
    def text(self) -> Iterator[str]:
        """The lines of the table."""
        is_comment = all(line.written.startswith("#") for line in self.lines)
        if self.name:
            yield f"# {self.name}" if is_comment else self.name
        yield from (f"{line.written}  # {escape_line(line.why)}" for line in self.lines)


@dataclass(frozen=True)
class AgentDraft:
    """What is known about an agent without running it.

    folder      its working folder
    command     the words of its command, () if none is known; `agent` is the line about it
    config      the file of its MCP servers; None if none was found, or if it cannot be read, for the reason `unread`
    databases   SQLite files, relative to the folder
    variables   the owner's variables, and those of the folder's `.env`
    owners      the names of the owner's own variables
    home        the owner's home
    """

    folder: Path
    command: Sequence[str]
    agent: FileLine
    config: McpConfig | None
    unread: str
    databases: Sequence[str]
    variables: Mapping[str, str]
    owners: frozenset[str]
    home: Path

    @property
    def addresses(self) -> Mapping[str, str]:
        """The variables in which the agent may find a model or a service, with the addresses. A provider whose key is set has
        its usual address."""
        urls = {name: text for name, text in self.variables.items() if re.match(r"https?://\S+$", text)}
        providers = {name: url for name, (key, url) in MODEL_VARIABLES.items() if self.variables.get(key)}
        return {**providers, **{name: url for name, url in urls.items() if not NO_SERVICE_VARIABLE.search(name)}}

    @property
    def servers(self) -> Mapping[str, str]:
        """The addresses of PostgreSQL databases. The key is the variable that holds the address, or, for an address in a
        command or a config, the address without the login."""
        in_words = [text for text in self._words if POSTGRES_ADDRESS.match(text) and text not in self.variables.values()]
        in_variables = {name: text for name, text in self.variables.items() if POSTGRES_ADDRESS.match(text)}
        return {**{without_login(text): text for text in in_words}, **in_variables}

    @property
    def _words(self) -> Iterator[str]:
        """The words of the commands of the agent and its servers, without the programs, and the variables that its config
        sets."""
        yield from self.command[1:]
        for server in self.config.servers if self.config else ():
            yield from (*server.command[1:], *server.environment.values())

    @property
    def remote_service(self) -> str:
        """A service on another machine that the agent uses, in words; "" if none is known."""
        for name, text in self.servers.items():
            hosts = STORE_KINDS["postgres"].hosts(text, self.variables)
            if remote_host := next((host for host in hosts if not is_this_machine(host)), ""):
                return f"the database that {name} names is at {remote_host}"
        for server in self.config.servers if self.config else ():
            if server.url and not is_this_machine(host := host_of(expand(server.url, self.variables))):
                return f"the MCP server {server.name} is at {host}"
            if loader := loader_of(server.command):
                return f"{loader} loads the MCP server {server.name}, which has the whole network meanwhile"
        return ""

    @property
    def further_data(self) -> Sequence[Path]:
        """Files and folders that commands name by an absolute path, and databases that a variable names: the agent's data may
        be there."""
        words = [*self._words]
        words += [text for text in self.variables.values() if text.startswith("/") and _is_database(Path(text))]
        return [path for word in words if len(word) < MAX_PATH_CHARS and _is_data(path := Path(word.rpartition("=")[2]))]

    def watched_subject(self, unasked: bool) -> tuple[Subject, Sequence[StoreSettings]]:
        """Return the subject of a watched run, and the databases that are copied for it. If nobody was asked, the run
        reaches no service on another machine."""
        agent = ProbedAgent(tuple(self.command), tuple(self.command), self.folder, limit=WATCHED_RUN_TIMEOUT_S)
        reachable = {
            name: url
            for name, url in self.addresses.items()
            if name in MODEL_VARIABLES or is_this_machine(host_of(url)) or not unasked
        }
        services = tuple(Service(name, name, url) for name, url in reachable.items())
        configs = (self.config,) if self.config else ()
        stores = [
            StoreSettings(name, "postgres", text, {name: "{store}"} if name in self.variables else {})
            for name, text in self.servers.items()
        ]
        return Subject("agent", agent, configs, services, functions=(), watched=True), stores

    @property
    def plan(self) -> Iterator[str]:
        """Lines about what a watched run starts, copies and calls."""
        yield f"to be run once, in {self.folder.resolve()}, to see what it uses:"
        yield f"  {redacted_command(self.command)}"
        yield "  in a box: this folder and the home are copies there, temporary folders are new, and all else is read-only;"
        yield "  by the network it reaches the servers that are named here, FOR REAL, and nothing else"
        for server in self.config.servers if self.config else ():
            yield f"  the MCP server {server.name}: {without_login(server.url) or redacted_command(server.command)}"
            if loader := loader_of(server.command):
                yield f"    before that it is started once with your variables and the WHOLE network, so that {loader} loads it"
        yield from (f"  {host_of(url)}, the host of {name}" for name, url in self.addresses.items())
        yield from (f"  a copy of the database at {name}" for name in self.servers)

    def for_terminal(self, text: str) -> str:
        """Return the text of the file for a terminal: without the secrets of the command, which the file must contain."""
        return text.replace(toml_of(shlex.join(self.command)), toml_of(redacted_command(self.command)))

    def shown_path(self, path: Path) -> str:
        """Return a path as the file has it: relative to its folder, to the home, or absolute."""
        path = self.folder / path
        for base, prefix in ((self.folder, ""), (self.home, "~/")):
            for folder in (base, base.resolve()):
                if path.is_relative_to(folder) and path != folder:
                    return f"{prefix}{path.relative_to(folder).as_posix()}"
        return str(path)

    def config_line(self, why: str = "the agent gets a rewritten copy; this file stays as it is") -> FileLine:
        """Return the line about the file of its MCP servers."""
        if self.config:
            return FileLine(f"mcp = {toml_of(self.shown_path(self.config.path))}", why)
        why_missing = self.unread or "no MCP config was found: name it, if the agent has one"
        return FileLine('# mcp = ".mcp.json"', why_missing)

    def database(self, name: str, why: str) -> FileTable:
        """Return the table of a database, without the login in its address. `name` is its key in `servers`."""
        address, why = f"${name}" if name in self.variables else name, f"{why}; the agent works on a copy"
        line = FileLine(f"postgres = {toml_of(address)}", why)
        if name in self.variables and name not in self.owners:
            line = FileLine(f"# {line.written}", f"it is in .env alone: export it. {why}")
        elif name not in self.variables and self.servers[name] != name:
            advice = f'its address holds a login: put it into a variable, and write postgres = "$NAME". {why}'
            line = FileLine(f"# {line.written}", advice)
        return FileTable("[[store]]", [line])

    def url(self, name: str, why: str) -> FileLine:
        """Return the line about an address in a variable, without a login or key."""
        text = self.addresses[name]
        if name in self.owners:
            return FileLine(f'url = "${name}"', why)
        if not KEYLESS_ADDRESS.fullmatch(text):
            return FileLine(f'url = "${name}"', f"{name} stands in .env alone, and can hold a key: export it")
        return FileLine(f"url = {toml_of(text)}", why)

    def model(self, name: str, why: str, dialect: str = "") -> FileTable:
        """Return the table of a model whose address is in a variable. By default the dialect is the provider's own."""
        lines = [FileLine(f"variables = [{toml_of(name)}]", why)]
        if name not in self.owners and name in self.variables:
            lines.append(self.url(name, "as .env has it"))
        if name == ANTHROPIC_VARIABLE:
            lines.append(FileLine('suffix = ""', "what follows the address in it"))
        if (dialect := dialect or ("anthropic" if name == ANTHROPIC_VARIABLE else "chat")) != "chat":
            lines.append(FileLine(f"dialect = {toml_of(dialect)}", "the API that it speaks"))
        return FileTable("[model]", lines)


def draft_of(folder: Path, environment: Mapping[str, str], home: Path, command: Sequence[str] = ()) -> AgentDraft:
    """Return what is known about an agent without running it.

    Args:
        folder: Its working folder.
        environment: The owner's variables.
        home: The owner's home, in which Claude Desktop has its config.
        command: The words of its command, if the owner gave them.
    """
    dotenv = {name: value.strip().strip("\"'") for name, value in DOTENV_LINE.findall(code_text(folder / ".env"))}
    config, unread = _find_config(folder, home, command)
    why = "as it was given"
    if redacted_command(command) != shlex.join(command):
        why = f"{why}, with a secret, which this file now holds too: better let the agent take it from a variable"
    agent = FileLine('# agent = "python agent.py"', "write the command that starts one whole task")
    if command:
        agent = FileLine(f"agent = {toml_of(shlex.join(command))}", why)
    databases = [path.relative_to(folder).as_posix() for path in islice(_databases(folder), MAX_STORES)]
    variables = {**dotenv, **environment}
    return AgentDraft(folder, tuple(command), agent, config, unread, databases, variables, frozenset(environment), home)


def static_tables(draft: AgentDraft) -> Iterator[FileTable]:
    """Yield the tables of the `probe.toml` for an agent that was not watched."""
    functions = FileLine('# functions = ["MODULE:FUNCTION"]', "what acts in its own process, but for tools of known frameworks")
    yield FileTable("", [draft.agent, draft.config_line(), *([] if draft.config else [functions])])
    for database in draft.databases:
        yield FileTable(
            "[[store]]", [FileLine(f"sqlite = {toml_of(database)}", "its rows are compared; the agent works on a copy")]
        )
    yield from (draft.database(name, "its rows are compared") for name in draft.servers)
    if not draft.databases and not draft.servers:
        yield store_placeholder("no store was found")
    for name in [name for name in MODEL_VARIABLES if name in draft.addresses][:1]:
        yield draft.model(name, "the agent finds its model's address here; leave the table out for no model")


def store_placeholder(why: str) -> FileTable:
    """Return the table that is written if no store is known."""
    advice = f"{why}: name an SQLite file, postgres = ADDRESS or folder = PATH"
    return FileTable("[[store]]", [FileLine('# sqlite = "FILE"', advice)])


def write_probe_file(path: Path, tables: Iterable[FileTable], *top: str) -> str:
    """Write a `probe.toml`, and return its text. Raises ConfigError if the file exists.

    Args:
        path: The path of the file.
        tables: The tables of the file.
        top: Comments at the top of the file.
    """
    lines = [*(f"# {escape_line(line)}" for line in top), *(line for table in tables for line in table.text)]
    text = "".join(f"{line}\n" for line in lines)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise file_exists_error(path) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return text


def file_exists_error(path: Path) -> ConfigError:
    """Return the error for a file that exists."""
    return ConfigError(
        f"{path}: is there already, and is left as it is; move it away, or name another: bench probe FILE --init"
    )


def toml_of(text: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _find_config(folder: Path, home: Path, command: Sequence[str]) -> tuple[McpConfig | None, str]:
    """Return the MCP config that a command names, else the first config at a usual path; None and the reason if none can be
    read."""
    words = [folder / word.rpartition("=")[2] for word in command if Path(word).suffix in (".json", ".toml", ".yaml", ".yml")]
    usual_paths = [*(folder / name for name in MCP_CONFIGS), *(home / name for name in HOME_MCP_CONFIGS)]
    why = ""
    for path in filter(Path.is_file, (*words, *usual_paths)):
        try:
            return read_config(path), ""
        except ConfigError as error:  # a file that the command names may be no MCP config at all, so it gives no reason
            why = why or ("" if path in words else str(error))
    return None, why


def _databases(folder: Path) -> Iterator[Path]:
    """Yield the SQLite files in a folder, at most MAX_DEPTH levels down, among at most MAX_SEARCHED_FILES files."""
    for path in islice(_files_below(folder, MAX_DEPTH), MAX_SEARCHED_FILES):
        if _is_database(path):
            yield path


def _is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database."""
    try:
        with opened(path) as file:
            return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except (OSError, ValueError):
        return False


def _is_data(path: Path) -> bool:
    """Return whether a path is absolute, and a file or folder that this user may change, outside of `SYSTEM_FOLDERS`. A file
    with code is none."""
    try:
        is_writable = path.is_absolute() and path != path.parent and path.exists() and os.access(path, os.W_OK)
    except (OSError, ValueError):
        return False
    return is_writable and path.suffix not in CODE_SUFFIXES and not any(map(path.resolve().is_relative_to, SYSTEM_FOLDERS))


def _files_below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the files of a folder, then those of its subfolders. Links are not followed, and hidden files are skipped."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    visible = [entry for entry in entries if not entry.name.startswith(".") and entry.name not in SKIPPED_FOLDERS]
    yield from (Path(entry.path) for entry in visible if entry.is_file(follow_symlinks=False))
    if depth:
        for entry in visible:
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(Path(entry.path), depth - 1)
