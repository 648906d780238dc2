"""What came of each cell of an agent whose tools are functions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FunctionCell:
    """A cell: what the probe says, and what our own SQL counted in the copy: refunds, their cents, mails."""

    framework: str
    version: str
    store: str
    cell: str
    verdict: str
    refunds: int
    cents: str
    mails: int
    said_done: bool

    @property
    def differs(self) -> bool:
        """Whether the verdict is another than these counts say."""
        if max(self.refunds, self.mails) > 1:
            expected = "doubled"
        elif min(self.refunds, self.mails) < 1:
            expected = "lost" if self.said_done else "gave_up"
        else:
            expected = "same"
        return self.verdict != expected


@dataclass(frozen=True)
class ClientRows:
    """A client with an `sslmode`, or without one: how many lines it printed at the copy, whether they were the same through the
    door, the calls there, and the milliseconds of the processor that the door took for a call."""

    client: str
    mode: str
    lines: int
    equal: bool
    calls: int
    milliseconds: float
