"""What was measured, kept as CSV, so that a page can be made again when only a part of it was measured anew."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class Tried:
    """What the tests of one promise came to. `skipped`: those that could not be tried here, and why."""

    promise: str
    tries: int
    failures: int
    skipped: str


@dataclass(frozen=True)
class Measured:
    """The most that one place took in so many tries; `what` is one of `reliability.measured.PROMISED`."""

    place: str
    what: str
    tries: int
    most: float


@dataclass(frozen=True)
class Taken:
    """What one run of one client under load came to: `in_flight` calls at a time, each answered after `seconds`.

    wall         from the first request's arrival to the last reply, by what the same calls ideally take
    recorded     mean recorded seconds of a call by the endpoint's own; None for a bare client, which records none
    client       what our process added to a call, by its seconds; the mean
    processor    seconds of processor a call, of the client's process, its start included
    errors       calls that failed and should not have
    peak         MiB of memory at most, where that is told
    load         the machine's load average when it ended
    """

    seconds: float
    in_flight: int
    calls: int
    who: str
    wall: float
    recorded: float | None
    client: float | None
    processor: float
    errors: int
    peak: float | None
    load: float


@dataclass(frozen=True)
class Guarded:
    """What came of one class of attacks on the sandbox where these guards were left out; `through` names what got through."""

    user: str
    removed: str
    attacks: str
    tried: int
    held: int
    through: str


@dataclass(frozen=True)
class Attacked:
    """What came of one attack by a stranger's files or services.

    commands     how many commands ran
    outside      files that they made, changed or removed outside of their folder
    peak         MiB that a command held at most
    seconds      the longest of them
    codes        their exit codes; negative: the signal that ended it, 9 if it took too long
    tracebacks   how many printed a traceback
    kept         whether what is promised was kept
    """

    attack: str
    commands: int
    outside: int
    peak: float
    seconds: float
    codes: str
    tracebacks: int
    kept: bool


@dataclass(frozen=True)
class Made:
    """The machine on which a part was made last, and its load average at the end, if that was written."""

    part: str
    machine: str
    load: float | None


Row = TypeVar("Row", bound="DataclassInstance")


def write(folder: Path, kind: type[Row], rows: Sequence[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{kind.__name__.lower()}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(kind)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {name: round(value, 5) if isinstance(value, float) else value for name, value in asdict(row).items()}
            )


def read(folder: Path, kind: type[Row]) -> list[Row]:
    """Return the content as it was written; nothing if it never was."""
    path = folder / f"{kind.__name__.lower()}.csv"
    if not path.exists():
        return []
    texts = {field.name for field in fields(kind) if field.type == "str"}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{name: value or ("" if name in texts else None) for name, value in row.items()} for row in csv.DictReader(file)]
    return TypeAdapter(list[kind]).validate_python(rows)  # type: ignore[valid-type]
