"""The code of an agent and of its servers, as far as their commands and folders show it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from bench.common.files import text_of
from bench.probe.run.gateway.subject import CommandWords

CODE_SUFFIXES = frozenset(
    (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".go", ".rb", ".rs", ".java", ".kt", ".sh")
)
SKIPPED_FOLDERS = frozenset(("node_modules", "site-packages", "__pycache__", "tests", "results", "reports", "build", "dist"))
MAX_CODE_FILES, MAX_CODE_BYTES = 2_000, 2**20
ARGUMENT_PARSING = re.compile(
    r"\bargv\b|\bARGV\b|\bargparse\b|\bclick\b|\btyper\b|\bfire\b|\bdocopt\b|\bgetopts?\b|\bparseArgs\b|\byargs\b|\bcommander\b"
    r"|\bos\.Args\b|\benv::args\b|\bString\s*\[\]\s*args\b|\$(?:[1-9@*]|\{[1-9@*])"
)
"""Matches code that reads the command-line arguments, in several languages."""


@dataclass(frozen=True)
class StartedProgram:
    """A command that the probe starts: the agent first, then its servers and services.

    who        the program in words, such as `the agent`
    words      the words of the command
    variables  the environment variables of the program
    folder     the working folder
    sets       the names of the variables that the owner's files set
    is_server  whether the program is an MCP server over stdio
    """

    who: str
    words: CommandWords
    variables: Mapping[str, str]
    folder: Path
    sets: tuple[str, ...] = ()
    is_server: bool = False

    @cached_property
    def files(self) -> frozenset[Path]:
        """The code files that the words of the command name."""
        return frozenset((self.folder / path).resolve() for path in paths_in(self.words) if path.suffix in CODE_SUFFIXES)


def code_text(file: Path) -> str:
    """Return the text of a file; "" if it cannot be read, or is too long."""
    try:
        return text_of(file, MAX_CODE_BYTES)
    except (OSError, ValueError):
        return ""


def reads_arguments(text: str) -> bool:
    """Return whether a program seems to read its command-line arguments."""
    return ARGUMENT_PARSING.search(text) is not None


def paths_in(command: CommandWords) -> Iterator[Path]:
    """Yield the paths that a command may name: each word, and after `-m` also the files of the Python module."""
    for before, word in pairwise(("", *command)):
        yield Path(word)
        if before == "-m":
            module = Path(*word.split("."))
            yield from (module.with_suffix(".py"), module / "__init__.py", module / "__main__.py")


def code_files(folder: Path) -> Iterator[Path]:
    """Yield at most `MAX_CODE_FILES` code files in a folder and below, without installed packages, tests, results and hidden
    folders."""
    remaining = MAX_CODE_FILES
    for parent, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
        for name in sorted(names):
            if Path(name).suffix in CODE_SUFFIXES and remaining:
                remaining -= 1
                yield Path(parent, name)
        if not remaining:
            return
