"""The registry of commands, and the result type of `bench compare`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bench.common.registry import Part, Registry

if TYPE_CHECKING:
    from bench.read.render.table import Table


@dataclass(frozen=True)
class CommandPart(Part):
    """A command, or a command of a group if the name is `GROUP NAME`.

    path   the command's function, whose arguments and help typer reads, or a typer app; a group has none. Its module must
    not import pandas
    help   the first line of the command's help, so that `bench --help` need not import the command
    """

    path: str = ""
    help: str = ""


class ComparedCase(NamedTuple):
    """A question of a comparison, with its own verdict and the reason for the verdict."""

    group: str
    question: str
    verdict: str
    reason: str


class ComparisonOutput(NamedTuple):
    """The result of a comparison, with the verdict of `bench compare`.

    tables   the tables for people
    json     the result for a program
    lines    the lines above the tables; the first line has the verdict
    wide     the titles of columns that are too wide for a terminal
    cases    the questions that decide the verdict, and further questions
    """

    verdict: str
    tables: tuple[Table, ...]
    json: str
    lines: tuple[str, ...]
    wide: tuple[str, ...] = ()
    cases: tuple[ComparedCase, ...] = ()


COMMANDS = Registry("command", CommandPart)
