"""Kinds of registered parts: commands, engines, sources of packs, and forms of comparison for `bench compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.common.registry import Part, Registry

if TYPE_CHECKING:
    from bench.read.render.table import Table


@dataclass(frozen=True)
class CommandPart(Part):
    """A command, or with `GROUP NAME` as its name a command of a group. `path` is its function, whose arguments and help typer
    reads, or a typer app; a group has none. Its module must not import pandas. `help` is the first line of its help, by which
    `bench --help` need not import it."""

    path: str = ""
    help: str = ""


@dataclass(frozen=True)
class EnginePart(Part):
    """An engine that runs the trials of `bench run --engine NAME`, or of `--engine NAME://HOST:PORT`.

    path   a function of the matrix, the folders of packs, what `--engine` says, and how many trials run at a time (or None). It
           returns a coroutine function of the matrix, the writer, a function that is told each result, and the session
    """

    path: str


class ComparedCase(NamedTuple):
    """A question of a comparison, with its own verdict and the reason for it."""

    of: str
    what: str
    verdict: str
    reason: str


class Compared(NamedTuple):
    """The result of a comparison, with the verdict of `bench compare`.

    tables   for people
    json     for a program
    lines    texts above the tables; the first says the verdict
    wide     titles of columns that a terminal has no room for
    cases    the questions that the verdict consists of, and those beside it
    """

    verdict: str
    tables: tuple[Table, ...]
    json: str
    lines: tuple[str, ...]
    wide: tuple[str, ...] = ()
    cases: tuple[ComparedCase, ...] = ()


@dataclass(frozen=True)
class ComparisonPart(Part):
    """A form of two runs that is compared instead of their trials.

    path     a function of two names, the gate (how much worse each measure may be), whether to refuse runs that differ in what
             they hold, and how many effects more may be damaged, by kind; returns `Compared`
    suffix   the end of the names of files in this form; a file packed by gzip has `.gz` after it
    """

    path: str
    suffix: str = field(kw_only=True)

    def is_file(self, name: str) -> bool:
        """Return whether the name is a file of this form, not a run."""
        return name.removesuffix(".gz").endswith(self.suffix) and not Path(name).is_dir()

    def compared(self, first: str, second: str, gate: Mapping[str, float], whole: bool, allowed: Mapping[str, int]) -> Compared:
        """Return the comparison of two runs or two files."""
        compare: Callable[[str, str, Mapping[str, float], bool, Mapping[str, int]], Compared] = self.load(self.path)
        return compare(first, second, gate, whole, allowed)


@dataclass(frozen=True)
class PackSourcePart(Part):
    """A form of file from which `bench new scenario --from FILE` makes a pack.

    path      a function of the pack's name, the folder of packs, the file, and the columns that `--expected` names; it returns
              lines on the pack
    suffixes  the ends of such files' names, in lower case
    """

    path: str
    suffixes: tuple[str, ...] = ()


COMMANDS = Registry("command", CommandPart)
PACK_SOURCES = Registry("source of packs", PackSourcePart, plural="pack_sources")
ENGINES = Registry("engine", EnginePart)
COMPARISONS = Registry("form of comparison", ComparisonPart, plural="comparisons")
