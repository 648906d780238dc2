"""Types for what an execution depended on: its facts, and the records of the modules and fixtures that it used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

ABSENT = "absent"


class Fact(NamedTuple):
    """A property of the tree or its surroundings that an execution relied on.

    kind    body, skeleton, file, status, listing, name, environment, platform or drawn
    name    `path::function`, a path, a module's name or a variable's name
    value   its digest or its status then; "absent" if it did not exist
    """

    kind: str
    name: str
    value: str


CLOCK, CHANCE = "reads the clock", "draws unseeded chance"
"""Reasons why a result cannot be kept, unless the user says that these do not matter."""
UNRECORDED = "ran unrecorded"
"""The reason why a result of a session that recorded nothing is not kept. Earlier results, which were recorded, may be."""
DIFFERS = "has another result while it is recorded, so it runs unrecorded"
"""The reason why the result of a test is not kept whose result a recording changes."""


@dataclass(eq=False)
class ExecutionContext:
    """What is being recorded of one test, module, fixture, collection, session or script.

    codes      the functions that ran, each by its file, first line and name
    imports    the arguments of each import: package, name, level, names
    facts      the value of each thing that was read, by kind and name, when it was first read
    uses       the contexts whose outcome this one relies on
    volatile   the reasons why its result cannot be kept, each with the line that gave it; "" if that is not known
    drawn      for a module: what the clock or chance gave to statements at its top, by their lines
    outputs    the files of the tree that a script or a step wrote
    silent     whether the functions that run are not recorded, because what they depend on is known and the result never kept
    """

    kind: str
    name: str
    codes: set[tuple[str, int, str]] = field(default_factory=set)
    imports: set[tuple[str, str, int, tuple[str, ...]]] = field(default_factory=set)
    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    uses: set[ExecutionContext] = field(default_factory=set)
    volatile: dict[str, str] = field(default_factory=dict)
    drawn: dict[int, str] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)
    silent: bool = False

    def note(self, kind: str, name: str, value: str) -> None:
        """Add a fact, unless there is an earlier one of this kind and name."""
        self.facts.setdefault((kind, name), value)


@dataclass(frozen=True)
class Record:
    """The facts of a finished context, without those of the contexts that it uses. Equal records are kept once."""

    kind: str
    name: str
    facts: frozenset[Fact]


@dataclass(frozen=True)
class Execution:
    """One execution: its outcome, and the records that it depends on.

    kind       test, script, step or document
    outcome    a word such as passed, failed, skipped or error
    detail     what else is part of the result: the type of an error, the digest of an output
    seconds    its duration, in wall seconds
    volatile   why its result cannot be kept; "" if it can
    message    what pytest wrote of a failure; "" if there is none
    """

    kind: str
    name: str
    outcome: str
    detail: str
    seconds: float
    records: tuple[Record, ...]
    volatile: str = ""
    message: str = ""

    @property
    def facts(self) -> frozenset[Fact]:
        return frozenset(fact for record in self.records for fact in record.facts)
