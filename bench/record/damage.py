"""The types for the damage in a world, which `bench.worlds.run.environment.damage` counts, and for a world that was rebuilt
from a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bench.record.journal import JournalEntry


@dataclass(frozen=True)
class Damage:
    """The number of damaged effects of each kind in one trial. None for a kind that this way of counting cannot count."""

    lost: int = 0
    doubled: int = 0
    orphaned: int | None = None
    unauthorised: int | None = None
    uncompensated: int = 0
    stale: int | None = None
    late: int | None = None

    @property
    def total(self) -> int:
        """The number of damaged effects of all kinds."""
        return sum(count or 0 for count in asdict(self).values())

    def agrees(self, other: Damage) -> bool:
        """Whether two counts are equal for all kinds that both can count."""
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return all(first == two for first, two in pairs if first is not None and two is not None)


DAMAGES = tuple(field.name for field in fields(Damage))


@dataclass(frozen=True)
class Harm:
    """A damaged effect: its business key, how often it was damaged, and the numbers of the journal entries that show it (none
    if the effect is lost)."""

    effect: str
    times: int
    entries: tuple[int, ...]


@dataclass(frozen=True)
class RowChange:
    """A row of a table before and after a step; None if the row was absent."""

    table: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def text(self) -> str:
        """The change as one line: + marks an added row, - a removed row, ~ a changed row."""
        if self.before is None or self.after is None:
            row = self.after if self.before is None else self.before
            return f"{'+' if self.before is None else '-'} {self.table}: {_row_text(row or {})}"
        same = {name: value for name, value in self.after.items() if self.before[name] == value}
        moved = [f"{name} {self.before[name]} → {value}" for name, value in self.after.items() if name not in same]
        return f"~ {self.table}: {', '.join(moved)} ({_row_text(same)})"


def _row_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)


@dataclass(frozen=True)
class Remade:
    """A world that was rebuilt from a record.

    entries   the journal
    changes   number of a journal entry -> the rows that it changed; an entry that changed nothing is absent
    harms     kind of damage -> the damaged effects
    lacking   why changes and harms are unknown; "" if they are known
    """

    entries: tuple[JournalEntry, ...]
    changes: Mapping[int, Sequence[RowChange]] = field(default_factory=dict)
    harms: Mapping[str, Sequence[Harm]] = field(default_factory=dict)
    lacking: str = ""
