"""How a trial failed: its outcome, and its damage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.record.events import of_kind
from bench.record.record import TrialRecord
from bench.record.worlds.events import WorldEnded


@dataclass(frozen=True)
class TrialFailure:
    """How a trial ended: its outcome, and in a world how often each kind of damage happened."""

    outcome: str
    damage: Mapping[str, int]

    @staticmethod
    def of(record: TrialRecord) -> TrialFailure:
        ended = next(iter(of_kind(record.events, WorldEnded)), None)
        kinds: Mapping[str, Any] = ended.damage if ended else {}
        return TrialFailure(record.outcome, {kind: times for kind, times in kinds.items() if times})

    @property
    def times(self) -> int:
        """The number of damaged effects, of all kinds."""
        return sum(self.damage.values())

    def beyond(self, control: TrialFailure) -> frozenset[str]:
        """Return the kinds of damage that occurred more often than in the control."""
        return frozenset(kind for kind, times in self.damage.items() if times > control.damage.get(kind, 0))

    @property
    def words(self) -> str:
        damage = ", ".join(f"{times} {kind}" for kind, times in self.damage.items())
        return f"{self.outcome.replace('_', ' ')}, with {damage}" if damage else self.outcome.replace("_", " ")
