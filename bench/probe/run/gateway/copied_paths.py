"""How the agent's command, configs and variables are changed so that they name the copies in place of the owner's files and
addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os.path import normpath
from pathlib import Path

from bench.probe.run.gateway.subject import McpConfig

NO_COPY_PATH_TEXT = (
    "no word of the agent's command hands it over; write the config's path there, or name a variable. "
    "An agent that opens the file by a fixed name has to take its path from one of both"
)


def with_copy(word: str, config: McpConfig, folder: Path, copy: Path) -> str:
    """Return a word of the agent's command in which the path of the copy replaces the path of the config.

    Args:
        word: A path, or an option with a path, such as `--mcp=PATH`.
        config: The config whose path is replaced.
        folder: The working folder of the command.
        copy: The path of the copy.
    """
    head, equals, path = word.rpartition("=")
    if path and normpath((folder / path).absolute()) == normpath(config.path.absolute()):
        return f"{head}{equals}{copy}"
    return word


def replacement(replaces: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces the names of stores in a text. A name within a longer name is not replaced; a full stop
    at the end of a sentence does not belong to a name."""
    names = {re.escape(name): name for name in sorted(replaces, key=len, reverse=True) if name}
    if not names:
        return lambda text: text
    # what must come before a name: no letter of a longer path; before a relative path also no slash, except of `sqlite:///`
    absolute, relative = r"(?<![\w.-])", r"(?:(?<![\w./-])(?:\./)?|(?<=:///))"
    starts = [absolute if name.startswith("/") or ":" in name else relative for name in names.values()]
    pattern = re.compile("|".join(f"{start}({name})(?![\\w-]|\\.[\\w-])" for start, name in zip(starts, names, strict=True)))
    return lambda text: pattern.sub(lambda match: replaces[match[match.lastindex or 0]], text)
