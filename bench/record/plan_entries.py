"""The form of a fault plan's table in a config, and of the faults in it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from bench.common.bounds import BoundedTable, Many
from bench.record.entry import ConfigEntry

Point = Literal["output", "input", "call", "state", "tool", "event", "process"]
"""Where a fault strikes; the last three exist only in worlds."""
EVERY = "*"
"""In place of a name: every subtask, tool or event."""
Position = Literal["first", "middle", "last"]


class StrikeEntry(ConfigEntry):
    """One strike of a fault: the attempt at a subtask; in a world the try of one effect, or an event."""

    target: str
    """The subtask, the tool or the kind of event."""
    attempt: int = Field(1, ge=1)
    """The attempt at the subtask, or the try of the effect, counted from 1."""
    key: str = ""
    """In a world: the business key of the effect, or the event's name."""
    sample: int = Field(1, ge=1)
    """If an architecture asks for several samples of an attempt: which sample."""


class FaultEntry(ConfigEntry):
    """One fault of a plan. It has one trigger: either `attempts` or `probability`."""

    point: Point
    """Where it strikes: in a reply, in a subtask's input, in what is written to the state, or at the call itself."""
    effect: str
    """Its effect there; `bench list` shows each effect with the points at which it can strike."""
    subtask: str | BoundedTable[str, str] = EVERY
    """What it strikes: a subtask's name, `*` for every subtask, or a table with one name for each scenario."""
    position: Position | None = Field(None, exclude_if=lambda position: position is None)
    """Instead of `subtask`: its place in the order in which the task lists its subtasks. The middle one of an even number is
    the earlier of the two."""
    tool: str | BoundedTable[str, str] | None = Field(None, exclude_if=lambda tool: tool is None)
    """At `tool` and `process`, instead of `subtask`: the tool whose calls it strikes, `*` for every tool, or a table with one
    name for each scenario. For `worker_dies` and `claimed_twice`: the step of the procedure that is claimed."""
    event: str | BoundedTable[str, str] | None = Field(None, exclude_if=lambda event: event is None)
    """At `event`, instead of `subtask`: the kind of event that it strikes, given as `tool` is."""
    attempts: Many[int] | Literal["every"] = ()
    """The attempts at the subtask that it strikes, counted from 1; or `every`, for a persistent fault that never wears off. At
    `call`, `every` strikes each request of each attempt, so that if it makes calls fail, all tries fail and the trial gives up.
    Of several samples of an attempt only the first is struck."""
    probability: float = Field(0.0, ge=0.0, le=1.0)
    """The probability with which it strikes each attempt."""
    seconds: float = Field(1.0, ge=0.0)
    """For `slow`: how much later the reply comes. For `timeout`: how long nothing comes. For `rate_limit`: the Retry-After. No
    other effect uses it."""
    minutes: int = Field(0, ge=0, exclude_if=lambda minutes: not minutes)
    """In a world's time. For `slow` at a tool: how much later it is called, an hour by default. For `throttled`: how long the
    tool takes no call, ten by default. For `late`: how much later the agent hears of the event, a day by default. No other
    effect uses it."""
    only: Many[StrikeEntry] | None = Field(None, exclude_if=lambda only: only is None)
    """Only these of the strikes that the trigger draws are made; the draws stay those of the whole plan. `bench explain
    shrink` writes it."""

    @field_validator("attempts", mode="before")
    @classmethod
    def _require_attempts(cls, given: object) -> object:
        """Return the attempts. Raises ValueError unless they are "every" or a list of whole numbers above 0."""
        numbers = isinstance(given, list | tuple) and all(isinstance(number, int) and number > 0 for number in given)
        if given != "every" and not numbers:
            raise ValueError(f'must be a list of attempts, counted from 1, or "every", not {given!r}')
        return given

    @property
    def target_key(self) -> str:
        """The config key that names the target of this fault."""
        if self.point in ("tool", "process"):
            return "tool"
        return "event" if self.point == "event" else "subtask"


class PlanEntry(ConfigEntry):
    """A fault plan. The plan `none` needs no table: it is the control."""

    scenarios: Many[str] = Field((), exclude_if=lambda scenarios: not scenarios)
    """The packs on which it is run, by name without a variant; all packs, if none is named."""
    faults: Many[FaultEntry] = ()
    """Its faults. A text carries one fault: if several are due for the same text, the plan's first strikes."""
