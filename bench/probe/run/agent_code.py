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

CODE = frozenset((".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".go", ".rb", ".rs", ".java", ".kt", ".sh"))
NO_CODE = frozenset(("node_modules", "site-packages", "__pycache__", "tests", "results", "reports", "build", "dist"))
MOST_CODE, MOST_BYTES = 2_000, 2**20
ARGUMENTS = re.compile(
    r"\bargv\b|\bARGV\b|\bargparse\b|\bclick\b|\btyper\b|\bfire\b|\bdocopt\b|\bgetopts?\b|\bparseArgs\b|\byargs\b|\bcommander\b"
    r"|\bos\.Args\b|\benv::args\b|\bString\s*\[\]\s*args\b|\$(?:[1-9@*]|\{[1-9@*])"
)
"""What stands in a program that reads the words of its command."""


@dataclass(frozen=True)
class StartedProgram:
    """A command that the probe starts: the agent first, then its servers and services.

    who        what it is, in words
    words      the words of the command; `variables` are set for it
    folder     its working folder
    sets       the names of the variables that the owner's files set for it
    is_server  whether it is an MCP server over stdio
    """

    who: str
    words: CommandWords
    variables: Mapping[str, str]
    folder: Path
    sets: tuple[str, ...] = ()
    is_server: bool = False

    @cached_property
    def files(self) -> frozenset[Path]:
        """The code files that its words name."""
        return frozenset((self.folder / place).resolve() for place in paths_in(self.words) if place.suffix in CODE)


def code_text(file: Path) -> str:
    """Return the text of a file; "" if it cannot be read, or is too long."""
    try:
        return text_of(file, MOST_BYTES)
    except (OSError, ValueError):
        return ""


def reads_arguments(text: str) -> bool:
    """Return whether a program seems to read its command-line arguments."""
    return ARGUMENTS.search(text) is not None


def paths_in(command: CommandWords) -> Iterator[Path]:
    """Yield the paths that a command may name. For `python -m MODULE` these are the paths of the module."""
    for before, word in pairwise(("", *command)):
        yield Path(word)
        if before == "-m":
            module = Path(*word.split("."))
            yield from (module.with_suffix(".py"), module / "__init__.py", module / "__main__.py")


def code_files(folder: Path) -> Iterator[Path]:
    """Yield the code files in a folder and below, at most `MOST_CODE`, without installed packages, tests, results and hidden
    folders."""
    remaining = MOST_CODE
    for parent, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in NO_CODE and not name.startswith("."))
        for name in sorted(names):
            if Path(name).suffix in CODE and remaining:
                remaining -= 1
                yield Path(parent, name)
        if not remaining:
            return
