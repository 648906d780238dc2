"""Write a `probe.toml` from what a folder holds: the agent's command, its MCP config, its databases, its model."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.common.errors import ConfigError
from bench.common.escaping import escape_line
from bench.common.files import opened, text_of
from bench.probe.run.agent_code import places_in, reads_arguments

CONFIGS = (
    ".mcp.json", "mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "claude_desktop_config.json", "opencode.json",
    "fastagent.config.yaml",
)  # fmt: skip
IN_HOME = (".config/Claude/claude_desktop_config.json", "Library/Application Support/Claude/claude_desktop_config.json")
"""The places of Claude Desktop's config on Linux and on macOS."""
PROGRAMS = (("agent.py", "python"), ("main.py", "python"), ("app.py", "python"), ("agent.ts", "npx tsx"), ("index.js", "node"))
LEFT_OUT = frozenset(("node_modules", "venv", "env", "site-packages", "__pycache__", "dist", "build", "target"))
CLIENTS = r"agent_framework|agents|agno|anthropic|autogen\w*|crewai|google\.adk|haystack|lang\w+|litellm|llama_index|openai"
CLIENTS += "|pydantic_ai|smolagents|strands"
IMPORTS = re.compile(rf"^[ \t]*(?:from|import)[ \t]+(?:{CLIENTS})\b|\bClientSession\b", re.MULTILINE)
"""What an agent in Python imports."""
SQLITE = b"SQLite format 3\0"
MOST_FILES, MOST_PROGRAMS, DEEPEST, MOST_STORES, MOST_BYTES = 5_000, 100, 4, 5, 2**20


@dataclass(frozen=True)
class FileLine:
    """A line of the file: the setting, and the reason for it. `table` is the table to which the line belongs."""

    written: str
    why: str
    table: str = ""


def write_probe_file(path: Path, environment: Mapping[str, str] = os.environ, home: Path | None = None) -> str:
    """Write the file, and return its text. Raises ConfigError if it is there already.

    Args:
        path: The file. What it names is looked for in its folder.
        environment: The owner's variables.
        home: The owner's home, in which Claude Desktop has its config.
    """
    text = "".join(f"{line}\n" for line in _lines(path.absolute().parent, environment, home or Path.home()))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(
            f"{path}: is there already, and is left as it is; move it away, or name another: bench probe FILE --init"
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return text


def _lines(folder: Path, environment: Mapping[str, str], home: Path) -> Iterator[str]:
    """Yield the lines of the file."""
    table = ""
    for line in (*_agent(folder, home), *_config(folder, home), *_stores(folder, environment), *_model(environment)):
        if line.table and (line.table != table or line.table.startswith("[[")):
            yield line.table
            table = line.table
        yield f"{line.written}  # {escape_line(line.why)}"


def _agent(folder: Path, home: Path) -> Iterator[FileLine]:
    command, why = _command(folder)
    program = next((place for place in places_in(tuple(shlex.split(command))) if (folder / place).is_file()), None)
    if program and any(_configs(folder, home)) and reads_arguments(_content(folder / program)):
        why = f"{why}; write the command of one whole task, with {{mcp}} where it takes the path of its MCP config"
        yield FileLine(f"agent = {_text(f'{command} {{mcp}}')}", why)
    elif command and any(_configs(folder, home)):
        why = f"{why}; let it take the path of its MCP config as a word, and write {{mcp}} there, or from a `variable` of `mcp`"
        yield FileLine(f"agent = {_text(command)}", why)
    elif command:
        yield FileLine(f"agent = {_text(command)}", f"{why}; write the command that starts one whole task")
    else:
        yield FileLine('# agent = "python agent.py"', "no command was found: write the one that starts one whole task")


def _command(folder: Path) -> tuple[str, str]:
    """Return a command that the files of a folder name, and the file that names it; "" if none does."""
    for name, program in PROGRAMS:
        if (folder / name).is_file():
            return f"{program} {name}", f"{name} is here"
    agents = [path.name for path in sorted(folder.glob("*.py"))[:MOST_PROGRAMS] if IMPORTS.search(_content(path))]
    if len(agents) == 1:
        return f"python {shlex.quote(agents[0])}", f"{agents[0]} imports a client of models or tools"
    scripts = _table(_parsed(folder / "pyproject.toml", tomllib.loads), "project", "scripts")
    if scripts:
        return str(next(iter(scripts))), "the first of [project.scripts] in pyproject.toml"
    scripts = _table(_parsed(folder / "package.json", json.loads), "scripts")
    if "start" in scripts:
        return "npm start", "scripts.start in package.json"
    return "", ""


def _configs(folder: Path, home: Path) -> Iterator[Path]:
    places = (*(folder / name for name in CONFIGS), *(home / name for name in IN_HOME))
    return (place for place in places if place.is_file())


def _config(folder: Path, home: Path) -> Iterator[FileLine]:
    for place in _configs(folder, home):
        shown = place.relative_to(folder).as_posix() if place.is_relative_to(folder) else str(place)
        yield FileLine(f"mcp = {_text(shown)}", "the agent gets a rewritten copy; this file stays as it is")
        return
    yield FileLine('# mcp = ".mcp.json"', "no MCP config was found: name it, if the agent has one")
    yield FileLine('# functions = ["MODULE:FUNCTION"]', "name what acts in its own process, but for tools of known frameworks")


def _stores(folder: Path, environment: Mapping[str, str]) -> Iterator[FileLine]:
    places = [path.relative_to(folder).as_posix() for path in islice(_databases(folder), MOST_STORES)]
    address = environment.get("DATABASE_URL", "")
    for place in places:
        yield FileLine(f"sqlite = {_text(place)}", "its rows are compared; the agent works on a copy", "[[store]]")
    if re.match(r"postgres\w*:", address, re.IGNORECASE):
        yield FileLine('postgres = "$DATABASE_URL"', "its rows are compared; the agent works on a copy", "[[store]]")
    elif not places:
        why = "no store was found: name an SQLite file, postgres = ADDRESS or folder = PATH"
        yield FileLine('# sqlite = "FILE"', why, "[[store]]")


def _model(environment: Mapping[str, str]) -> Iterator[FileLine]:
    why = "the agent finds its model's address here; leave the table out for no model"
    if environment.get("OPENAI_API_KEY") or environment.get("OPENAI_BASE_URL"):
        yield FileLine('variables = ["OPENAI_BASE_URL"]', why, "[model]")
    elif environment.get("ANTHROPIC_API_KEY"):
        yield FileLine('variables = ["ANTHROPIC_BASE_URL"]', why, "[model]")
        yield FileLine('suffix = ""', "what follows the address in it", "[model]")
        yield FileLine('dialect = "anthropic"', "the API that it speaks", "[model]")


def _databases(folder: Path) -> Iterator[Path]:
    """Yield the SQLite files in a folder, at most DEEPEST levels down. Only the first bytes of at most MOST_FILES files are
    read."""
    for path in islice(_files(folder, DEEPEST), MOST_FILES):
        try:
            with opened(path) as file:
                if file.read(len(SQLITE)) == SQLITE:
                    yield path
        except OSError:
            continue


def _files(folder: Path, deep: int) -> Iterator[Path]:
    """Yield the files of a folder, then the files of its subfolders. Links are not followed, and hidden files are skipped."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    shown = [entry for entry in entries if not entry.name.startswith(".") and entry.name not in LEFT_OUT]
    yield from (Path(entry.path) for entry in shown if entry.is_file(follow_symlinks=False))
    if deep:
        for entry in shown:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path), deep - 1)


def _content(path: Path) -> str:
    try:
        return text_of(path, MOST_BYTES)
    except (OSError, ValueError):
        return ""


def _parsed(path: Path, parse: Callable[[str], object]) -> object:
    try:
        return parse(text_of(path, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def _table(value: object, *keys: str) -> Mapping[str, object]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _text(text: str) -> str:
    """Return a text in the notation of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
