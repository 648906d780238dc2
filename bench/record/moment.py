"""A moment of world time, in days and minutes. Events and waiting advance world time, never the machine's clock."""

from __future__ import annotations

from typing import NamedTuple

DAY = 24 * 60
"""Minutes in a day."""


class Moment(NamedTuple):
    """A minute of a day. Days can be negative, as in "90 days before the contract ends". Moments compare as times do."""

    day: int
    minute: int = 0

    @staticmethod
    def of(total: int) -> Moment:
        """Return the moment this many minutes after day 0, 00:00."""
        return Moment(*divmod(total, DAY))

    @property
    def total(self) -> int:
        """Minutes since day 0, 00:00."""
        return self.day * DAY + self.minute

    def after(self, days: int = 0, minutes: int = 0) -> Moment:
        return Moment.of(self.total + days * DAY + minutes)

    def __str__(self) -> str:
        return f"day {self.day}, {self.minute // 60:02}:{self.minute % 60:02}"
