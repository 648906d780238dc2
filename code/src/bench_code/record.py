"""Types for what an execution depended on: its facts, and the records that it shares with other executions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

ABSENT = "absent"


class Fact(NamedTuple):
    """A property of the tree or its surroundings that an execution relied on.

    kind    a word of FACT_WORDS
    name    `path::function`, a path, a variable's name, or "" for what there is but one of
    value   its digest then; "absent" if it did not exist
    """

    kind: str
    name: str
    value: str

    @property
    def words(self) -> str:
        """What it is a fact of, in words."""
        return FACT_WORDS.get(self.kind, "{}").format(self.name)


FACT_WORDS = {
    "body": "the function {}",
    "skeleton": "the outside of functions in {}",
    "helpers": "more than functions of tests in {}",
    "code": "the code of {}",
    "file": "the file {}",
    "folder": "which files lie in the folder {}",
    "files": "which files there are",
    "environment": "the variable {}",
    "variables": "which variables there are",
    "platform": "Python, its options or the installed packages",
    "left": "what {} leaves in memory",
    "tree": "the tree, and each change of it counts",
}
"""The kinds of facts, each with what a fact of it is about."""


@dataclass(frozen=True)
class Record:
    """Facts that belong together, and why. Equal records are kept once.

    kind   "rest", which is all that is no body of a function; "shared", of what ran outside of tests; "test", of what one test
           ran and read; "fixtures" of a file or folder; "always" of a test that runs on every change; "left", of what a test
           before it left; "script" and "document", of what these used
    name   whose facts they are, or the reason
    """

    kind: str
    name: str
    facts: frozenset[Fact]


@dataclass(frozen=True)
class Execution:
    """One execution: its outcome, and the records that it depends on.

    kind       "test", "script" or "document"
    outcome    a word such as passed, failed, skipped or error
    detail     what else is part of the result: the type of an error, the digest of an output
    seconds    its duration, in wall seconds
    volatile   why it runs on every change, or is never kept; "" if only its facts count
    """

    kind: str
    name: str
    outcome: str
    detail: str
    seconds: float
    records: tuple[Record, ...]
    volatile: str = ""
