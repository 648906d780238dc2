"""The kind of part that a command is, and what a comparison returns to `bench compare`."""

from __future__ import annotations

from dataclasses import dataclass
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


COMMANDS = Registry("command", CommandPart)
