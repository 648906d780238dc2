"""A command that is measured: its words, folder and environment. A command that cannot be started is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench.common.errors import ConfigError
from bench.wire.program import start_problem

DRIVER_VARIABLES = (
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_MODEL",
    "AGENT_TASK",
    "AGENT_FOLDER",
    "TOOLS_URL",
    "MCP_URL",
    "MCP_COMMAND",
    "HOME",
)
"""Variables that the driver sets for the agent. A config must not set them."""
SCRIPT_SUFFIXES = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".jar"})
"""Suffixes of files that a command can run."""


@dataclass(frozen=True)
class Bounds:
    """The limits on all processes of an agent in one trial together: real `seconds`, and model calls (None: no limit)."""

    seconds: float
    model_calls: int | None = None


@dataclass(frozen=True)
class Command:
    """A command that is ready to run.

    words          the program and its arguments, with the whole paths of files
    path           the PATH on which the program was looked up and which the agent gets
    versions       package that the command needs -> its version
    kills_caller   whether a planned kill ends only the process that made the call
    digest         the digest of the command's content, which does not depend on the folder of its files
    """

    words: tuple[str, ...]
    path: str
    env: Mapping[str, str]
    bounds: Bounds
    versions: Mapping[str, str]
    digest: str
    kills_caller: bool = False


def command_of(
    words: Sequence[str],
    folder: Path | None,
    env: Mapping[str, str],
    bounds: Bounds,
    where: str,
    more_files: Sequence[Path] = (),
    packages: Sequence[str] = (),
    kills_caller: bool = False,
) -> Command:
    """Return the command that a config describes.

    `where` names the command in an error, `more_files` holds files that it needs, and `packages` the packages that it needs.
    Raises ConfigError if a program, file or package is missing, or if `env` sets a variable that the driver sets.
    """
    home = (folder or Path.cwd()).resolve()
    if not os.path.isdir(home):  # noqa: PTH112  `Path.is_dir` raises without permission
        raise ConfigError(f"{where}.folder: there is no folder {folder}; give one that exists")
    for name in env:
        if name in DRIVER_VARIABLES or "=" in name or not name:
            raise ConfigError(f"{where}.env: '{name}' cannot be set; the driver itself sets {', '.join(DRIVER_VARIABLES)}")
    path = os.pathsep.join((str(Path(sys.executable).parent), env.get("PATH", os.environ.get("PATH", os.defpath))))
    files = _files([*words, *map(Path.as_posix, more_files)], home)
    program = _program(words[0], files, home, path, where)
    for word in words[1:]:
        if Path(word).suffix in SCRIPT_SUFFIXES and word not in files and not word.startswith("-"):
            raise ConfigError(f"{where}.command: there is no file {word} in {folder or 'the current folder'}")
    for file in more_files:
        if file.as_posix() not in files:
            raise ConfigError(f"{where}.files: there is no file {file} in {folder or 'the current folder'}")
    absolute = (program, *(str(files[word]) if word in files else word for word in words[1:]))
    versions = {name: _version(name, where) for name in packages}
    options = [option for option in (versions, bounds.model_calls, kills_caller) if option]  # so older digests stay the same
    try:
        digest = _digest([list(words), sorted(env.items()), bounds.seconds, *options], files)
    except OSError as error:
        raise ConfigError(f"{where}.command: {error.filename} cannot be read: {error.strerror}") from error
    return Command(absolute, path, dict(env), bounds, versions, digest, kills_caller)


def _files(names: Iterable[str], home: Path) -> dict[str, Path]:
    """Return the files among these words. A word can be anything; if its path cannot be read, the word is no file."""
    return {name: home / name for name in names if os.path.isfile(home / name)}  # noqa: PTH113  `Path.is_file` raises there


def _program(word: str, files: Mapping[str, Path], home: Path, path: str, where: str) -> str:
    """Return the path of the program that a command's first word names: one of `files`, or a program on the PATH. Raises
    ConfigError if the program cannot be started."""
    if word in files:
        program: str | None = str(files[word])
    else:
        program = shutil.which(word, path=path) or shutil.which(word, mode=os.F_OK, path=path)
    if not program and os.path.isdir(home / word):  # noqa: PTH112  as above
        program = str(home / word)
    if not program:
        raise ConfigError(f"{where}.command: there is no program '{word}'; install it, or give its path")
    if why := start_problem(program, path):
        raise ConfigError(f"{where}.command: '{word}' {why}")
    return os.path.abspath(program)  # noqa: PTH100  as above


def _version(package: str, where: str) -> str:
    """Return the version of an installed package. Raises ConfigError if the package is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        raise ConfigError(f"{where}.packages: {package} is not installed; install it where bench is installed") from error


def _digest(determining: object, files: Mapping[str, Path]) -> str:
    """Return the digest of the config's description of the command and of the files that the command needs. The code that
    drives the command is already part of a trial's id."""
    digest = hashlib.sha256(json.dumps(determining).encode())
    for name, path in files.items():
        content = path.read_bytes()
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:20]
