"""A fault plan's entries for a world, as they are for one scenario: which tool or which kind of event each strikes."""

from __future__ import annotations

from typing import Literal, Protocol

from bench.environment import Environment
from bench.errors import ConfigError, nearest
from bench.runtime.effects import Point
from bench.runtime.faults import EVERY, Fault
from bench.runtime.world_effects import WORLD_EFFECTS


class Entry(Protocol):
    """A fault of a plan, as `bench.experiment.config.FaultEntry` has it."""

    point: Point
    effect: str
    tool: str | dict[str, str] | None
    event: str | dict[str, str] | None
    attempts: tuple[int, ...] | Literal["every"]
    probability: float
    seconds: float
    minutes: int


def in_world(entry: Entry, what: str, pack: str, where: str, environment: Environment | None) -> Fault:
    """The fault as it strikes in this pack's world; `what` is `tool` or `event`. Raises ConfigError where the pack has no
    world, or nothing in it that the effect could ever strike."""
    if environment is None:
        said = f"scenario '{pack}' has no world, so {entry.effect} can never strike at '{entry.point}'"
        raise ConfigError(f"{where}: {said}; leave the fault or the scenario out")
    given = entry.event if what == "event" else entry.tool
    target = given.get(pack) if isinstance(given, dict) else given or EVERY
    if target is None:
        raise ConfigError(f"{where}: {entry.effect} names no {what} for scenario '{pack}'; add {pack} = \"...\" to it")
    known = targets(entry.effect, environment)
    if not known:
        raise ConfigError(f"{where}: scenario '{pack}' has no {what} that {entry.effect} can strike; leave the fault out")
    if target not in (EVERY, *known):
        said = f"scenario '{pack}' has no {what} '{target}' that {entry.effect} can strike"
        raise ConfigError(f"{where}: {said}; {nearest(target, known)}")
    return Fault(entry.point, entry.effect, target, entry.attempts, entry.probability, entry.seconds, entry.minutes)


def targets(effect: str, environment: Environment) -> list[str]:
    """The tools, or kinds of event, that an effect can strike in this world; none where the cell is not applicable."""
    row = WORLD_EFFECTS[effect]
    if row.point == "event":
        return [kind.name for kind in environment.kinds]
    return [tool.name for tool in environment.tools if row.on in ("any", "write" if tool.writes else "read")]
