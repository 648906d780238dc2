"""The code of an agent and its servers, as far as files show it, and the names of configs and stores that stand in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
CALLS = r"(?:open|Path|connect|join|listdir|scandir|mkdir\w*|read\w*|write\w*|glob)"


@dataclass(frozen=True)
class StartedProgram:
    """A command that the probe runs: the agent first, its servers and services.

    who        what it is, in words
    words      its words; `variables` are set for it
    folder     where it starts
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
        """The files that its words name."""
        return frozenset((self.folder / place).resolve() for place in places_in(self.words) if place.suffix in CODE)


@dataclass(frozen=True)
class Copied:
    """A config or a store of which the agent gets a copy.

    store      the store's name; "" for a config, which is the agent's alone, and is handed over in no variable of its owner's
    path       where the owner's own is
    put        puts the path of the copy into a text, where the owner's stands
    variables  variables that hold the copy's path besides
    """

    store: str
    path: Path
    put: Callable[[str], str]
    variables: frozenset[str] = frozenset()

    def stands_in(self, text: str) -> bool:
        """Return whether a text holds its path."""
        return self.put(text) != text

    @cached_property
    def literal(self) -> re.Pattern[str]:
        """What stands in code that opens it by its name. A name without a dot is an everyday word."""
        name = re.escape(self.path.name)
        if "." in self.path.name:
            return re.compile(rf"""["'`](?:[^"'`\n]{{0,200}}[/\\:])?{name}["'`?/#]""")
        return re.compile(rf"""["'`](?:\./)?{name}/|\b{CALLS}\(\s*[rf]?["'`](?:\./)?{name}["'`]""")


def fixed_names(programs: Sequence[StartedProgram], copied: Sequence[Copied]) -> list[tuple[Path, Path]]:
    """Return the files of code in which the name of a config or store stands, although nothing hands its copy over to the
    program that the file belongs to; each with the path of that config or store. A file that no command names belongs to the
    agent.

    Args:
        programs: The commands, the agent's first.
        copied: The configs and stores.
    """
    agent = programs[0]
    folders = sorted({agent.folder.resolve(), *(file.parent for file in agent.files if file.is_file())})
    named = [file for program in programs for file in sorted(program.files)]
    texts = {
        file: text
        for file in dict.fromkeys((*(file for each in folders for file in code_in(each)), *named))
        if (text := code_text(file))
    }

    def is_handed(each: Copied, program: StartedProgram) -> bool:
        code = [texts[file] for file in program.files if file in texts]
        if any(map(each.stands_in, program.words)) and (not code or any(map(reads_arguments, code))):
            return True
        names = each.variables | {name for name, value in program.variables.items() if each.store and each.stands_in(value)}
        named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b") if names else None
        return named is not None and any(map(named.search, texts.values() if program is agent else code))

    places = []
    for each in copied:
        deaf = [program for program in (programs if each.store else (agent,)) if not is_handed(each, program)]
        for file, text in texts.items() if deaf else ():
            owners = [program for program in programs if file in program.files] or [agent]
            if any(owner in deaf for owner in owners) and each.literal.search(text):
                places.append((file, each.path))
    return places


def code_text(file: Path) -> str:
    """Return the text of a file; "" if it cannot be read, or is long."""
    try:
        return text_of(file, MOST_BYTES)
    except (OSError, ValueError):
        return ""


def reads_arguments(text: str) -> bool:
    """Return whether a program seems to read the words of its command."""
    return ARGUMENTS.search(text) is not None


def places_in(command: CommandWords) -> Iterator[Path]:
    """Yield the paths that a command may name. For `python -m MODULE` these are the paths of the module."""
    for before, word in pairwise(("", *command)):
        yield Path(word)
        if before == "-m":
            module = Path(*word.split("."))
            yield from (module.with_suffix(".py"), module / "__init__.py", module / "__main__.py")


def code_in(folder: Path) -> Iterator[Path]:
    """Yield the code files in a folder and below, at most `MOST_CODE`. Installed packages, tests, results and hidden folders
    are left out."""
    left = MOST_CODE
    for parent, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in NO_CODE and not name.startswith("."))
        for name in sorted(names):
            if Path(name).suffix in CODE and left:
                left -= 1
                yield Path(parent, name)
        if not left:
            return
