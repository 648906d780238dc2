"""World time: days and minutes of a world's own, moved by events and by waiting, never by the machine's clock."""

from __future__ import annotations

from typing import NamedTuple

DAY = 24 * 60
"""Minutes."""


class Moment(NamedTuple):
    """A minute of a day; days may be negative, as in "90 days before the contract ends". Moments compare as time does."""

    day: int
    minute: int = 0

    @staticmethod
    def of(total: int) -> Moment:
        """The moment so many minutes after day 0, 00:00."""
        return Moment(*divmod(total, DAY))

    @property
    def total(self) -> int:
        """Minutes since day 0, 00:00."""
        return self.day * DAY + self.minute

    def after(self, days: int = 0, minutes: int = 0) -> Moment:
        return Moment.of(self.total + days * DAY + minutes)

    def __str__(self) -> str:
        return f"day {self.day}, {self.minute // 60:02}:{self.minute % 60:02}"
