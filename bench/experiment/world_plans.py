"""A fault plan's entries for a world, as they are for one scenario: which tool or which kind of event each strikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.environment import Environment
from bench.errors import ConfigError, nearest
from bench.runtime.faults import EVERY, Fault
from bench.runtime.world_effects import WORLD_EFFECTS


def in_world(
    fault: Fault, what: str, given: str | Mapping[str, str] | None, pack: str, where: str, environment: Environment | None
) -> Fault:
    """The fault as it strikes in this pack's world; `given` is the plan's word on `what` it strikes, a tool or an event. Raises
    ConfigError where the pack has no world, or nothing in it that the effect could ever strike."""
    effect = fault.effect
    if environment is None:
        said = f"scenario '{pack}' has no world, so {effect} can never strike at '{fault.point}'"
        raise ConfigError(f"{where}: {said}; leave the fault or the scenario out")
    if effect == "mid_stream":
        return fault
    target = (given.get(pack) if isinstance(given, Mapping) else given or EVERY) or ""
    if not target:
        raise ConfigError(f"{where}: {effect} names no {what} for scenario '{pack}'; add {pack} = \"...\" to it")
    known = targets(effect, environment)
    if not known:
        raise ConfigError(f"{where}: scenario '{pack}' has no {what} that {effect} can strike; leave the fault out")
    if target not in (EVERY, *known):
        said = f"scenario '{pack}' has no {what} '{target}' that {effect} can strike"
        raise ConfigError(f"{where}: {said}; {nearest(target, known)}")
    return replace(fault, subtask=target)


def targets(effect: str, environment: Environment) -> list[str]:
    """The tools, or kinds of event, that an effect can strike in this world; none where the cell is not applicable."""
    row = WORLD_EFFECTS[effect]
    if row.point == "event":
        return [kind.name for kind in environment.kinds]
    return [tool.name for tool in environment.tools if row.on in ("any", "write" if tool.writes else "read")]
