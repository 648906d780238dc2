"""What one execution depended on: facts of its own, and the records of what it used, such as modules and fixtures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

ABSENT = "absent"


class Fact(NamedTuple):
    """Something that was so when an execution relied on it.

    kind    body, skeleton, file, status, listing, name, environment or platform
    name    `path::function`, a path, a module's name, a variable's name
    value   a digest, or "absent"
    """

    kind: str
    name: str
    value: str


@dataclass(eq=False)
class ExecutionContext:
    """What is being recorded of one test, module, fixture, collection or session, or of one script.

    codes      the functions that ran, each by its file, first line and name
    imports    what was imported, as the import system was asked: package, name, level, names
    facts      what was read, by kind and name, as it was when it was first read
    uses       contexts whose outcome this one relies on
    volatile   why no result of it can be kept
    outputs    files of the tree that it wrote, where that is what it is for
    """

    kind: str
    name: str
    codes: set[tuple[str, int, str]] = field(default_factory=set)
    imports: set[tuple[str, str, int, tuple[str, ...]]] = field(default_factory=set)
    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    uses: set[ExecutionContext] = field(default_factory=set)
    volatile: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)

    def note(self, kind: str, name: str, value: str) -> None:
        """Add a fact, unless an earlier one says how the same thing was before."""
        self.facts.setdefault((kind, name), value)


@dataclass(frozen=True)
class Record:
    """A finished context's own facts. Records of equal content are kept once."""

    kind: str
    name: str
    facts: frozenset[Fact]


@dataclass(frozen=True)
class Execution:
    """One execution: what ran, how it came out, and the records that it depends on.

    kind       test, script, step or document
    outcome    passed, failed, skipped, error or the like
    detail     what else must come out the same: the type of an error, the digest of an output
    seconds    how long it took, in wall seconds
    volatile   why its result is never kept; "" where it is
    """

    kind: str
    name: str
    outcome: str
    detail: str
    seconds: float
    records: tuple[Record, ...]
    volatile: str = ""

    @property
    def facts(self) -> frozenset[Fact]:
        return frozenset(fact for record in self.records for fact in record.facts)
