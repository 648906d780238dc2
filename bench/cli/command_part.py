"""The commands, the engines, what packs are made of, and the forms in which `bench compare` compares, that are registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bench.registry import Part, Registry, attribute_at


@dataclass(frozen=True)
class CommandPart(Part):
    """A command. `path` is its function, of which typer reads the arguments and the help, or a typer app.

    Its module imports no pandas.
    """

    path: str


@dataclass(frozen=True)
class EnginePart(Part):
    """What runs the trials of `bench run --engine NAME`, or of `--engine NAME://HOST:PORT`.

    path   of a function of the matrix, the folders of packs, what `--engine` says, and how many trials run at a time, or None.
           It returns a coroutine function of the matrix, the writer, who watches, and the session
    """

    path: str


class Compared(NamedTuple):
    """What a comparison came to: as Markdown, as JSON, and the verdict, of those of `bench compare`."""

    markdown: str
    json: str
    verdict: str


@dataclass(frozen=True)
class ComparisonPart(Part):
    """A form of two runs that is compared in the place of their trials.

    path     a function of two names, the margin, and whether runs that differ in what they hold are refused (`Compared`)
    suffix   of a file that holds the form by itself
    """

    path: str
    suffix: str = field(kw_only=True)

    def is_file(self, name: str) -> bool:
        """Whether a file of this form is named, and no run."""
        return name.endswith(self.suffix) and not Path(name).is_dir()

    def compared(self, first: str, second: str, margin: float, whole: bool) -> Compared:
        """Return what the comparison of two runs, or of two files, came to."""
        compare: Callable[[str, str, float, bool], Compared] = attribute_at(self.path)
        return compare(first, second, margin, whole)


@dataclass(frozen=True)
class PackSourcePart(Part):
    """A form of file that `bench new scenario --from FILE` makes a pack of.

    path      a function of the pack's name, the folder of packs, the file, and the columns that `--expected` names; it returns
              what is told of the pack, line by line
    suffixes  how the names of such files end, in small letters
    """

    path: str
    suffixes: tuple[str, ...] = ()


COMMANDS = Registry("command", CommandPart)
PACK_SOURCES = Registry("source of packs", PackSourcePart, plural="pack_sources")
ENGINES = Registry("engine", EnginePart)
COMPARISONS = Registry("form of comparison", ComparisonPart, plural="comparisons")
