"""The domains, a file each: a small program that is right, bugs that can be put into it, and calls that test it.

A text has names and numbers as `$placeholders`, which are drawn for an instance. A line of a bug stands once in its module.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

FOLDER = Path(__file__).parent / "domains"
DOMAINS = ("billing", "inventory", "league", "scheduling", "settings")


class Line(BaseModel):
    """A line of a module, and what may stand there instead."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    module: str
    find: str
    replace: str


class Bug(BaseModel):
    """A line that is made wrong.

    kind      what is done to it, in words
    probes    calls within the module, which return something else while the bug is there, and only then
    instead   a repair in the place where it shows, which leaves the bug as it is
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    module: str
    kind: str
    right: str
    wrong: str
    probes: tuple[str, ...]
    instead: Line


class Argument(BaseModel):
    """How an argument of a call is drawn: some of `pick`, between `open` and `close`, and those of `always` among them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pick: tuple[str, ...]
    least: int = Field(1, alias="from")
    most: int = Field(1, alias="to")
    open: str = ""
    close: str = ""
    always: tuple[str, ...] = ()
    keep_order: bool = False


class Tests(BaseModel):
    """Calls of the module on which all others bear, with their arguments in braces."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    module: str
    calls: tuple[str, ...]
    inputs: Mapping[str, Argument]


class Domain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    names: Mapping[str, tuple[str, ...]]
    constants: tuple[Mapping[str, int | str], ...]
    modules: Mapping[str, str]
    tests: Tests
    bugs: tuple[Bug, ...]


@cache
def raw(name: str) -> Mapping[str, Any]:
    """The domain's file as it stands."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def filled(name: str, drawn: Mapping[str, int | str]) -> Domain:
    """The domain with what was drawn in the place of its placeholders."""
    return Domain.model_validate(_filled(raw(name), drawn))


def _filled(value: Any, drawn: Mapping[str, int | str]) -> Any:
    if isinstance(value, str):
        return Template(value).substitute(drawn)
    if isinstance(value, Mapping):
        return {name: _filled(inner, drawn) for name, inner in value.items()}
    if isinstance(value, Sequence):
        return [_filled(inner, drawn) for inner in value]
    return value
