"""A safe reader for any TOML file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bench.common.errors import ConfigError
from bench.common.files import text_of

MAX_LEVELS = 64
"""The most tables and lists inside each other. A dotted key has as many levels as parts."""
LARGEST_INTEGER = 2**64 - 1
"""The largest absolute value of an integer in a file."""
LARGEST_FLOAT = 1e9
"""The largest absolute value of a number with a fraction, for instance of seconds or dollars. A million times this number
still is a finite float."""
MAX_BYTES = 256 * 2**10
"""The most bytes of a file. The largest config of this package has 7 KB."""

_part = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_too_deep = re.compile(rf"(?<![\w-])(?:{_part}\.[ \t]*+){{{MAX_LEVELS}}}")
"""Matches a dotted key of too many parts: the time and memory of tomllib grow as the square of the number of parts."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a file. Raises ConfigError if the file cannot be read, is no TOML, is nested too deep, or has an
    extreme number."""
    try:
        text = text_of(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if deep := _too_deep.search(text):
        raise ConfigError(f"{path}: {deep[0][:40]}…: is nested more than {MAX_LEVELS} levels deep")
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{path}: is not TOML: it is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error
    try:
        _refuse_extremes(values)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    return values


def _refuse_extremes(values: dict[str, Any]) -> None:
    """Raise ValueError for more than MAX_LEVELS levels, for a number beyond LARGEST_INTEGER or LARGEST_FLOAT, or for a zero
    character, which no path may contain. The values are checked level by level, because Python bounds recursion."""
    level: list[tuple[str, Any]] = [("", values)]
    for _ in range(MAX_LEVELS):
        below = list[tuple[str, Any]]()
        for place, table in level:
            for name, value in table.items() if isinstance(table, dict) else enumerate(table):
                where = f"{place}.{name}" if place else str(name)
                if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
                    raise ValueError(f"{where}: must be at most {LARGEST_INTEGER}")
                if isinstance(value, float) and not abs(value) <= LARGEST_FLOAT:
                    raise ValueError(f"{where}: must be a number of at most {LARGEST_FLOAT:,.0f}, not {value}")
                if isinstance(value, str) and "\0" in value:
                    raise ValueError(f"{where}: holds a zero character; take it out")
                if isinstance(value, dict | list):
                    below.append((where, value))
        level = below
    if level:
        raise ValueError(f"{level[0][0][:40]}…: is nested more than {MAX_LEVELS} levels deep")
