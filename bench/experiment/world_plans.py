"""A fault plan's entries for a world, as they are for one scenario: which tool or which kind of event each strikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.environment import Environment
from bench.errors import ConfigError, nearest
from bench.runtime.effects import EFFECTS, Effect
from bench.runtime.faults import EVERY, Fault


def in_world(
    fault: Fault, what: str, given: str | Mapping[str, str] | None, pack: str, where: str, environment: Environment | None
) -> Fault:
    """The fault as it strikes in this pack's world; `given` is the plan's word on `what` it strikes, a tool or an event. Raises
    ConfigError where the pack has no world, or nothing in it that the effect could ever strike."""
    effect, name = EFFECTS[fault.effect, fault.point], fault.effect
    if environment is None:
        said = f"scenario '{pack}' has no world, so {name} can never strike at '{fault.point}'"
        raise ConfigError(f"{where}: {said}; leave the fault or the scenario out")
    if fault.point == "process" and not effect.on:
        return fault
    target = (given.get(pack) if isinstance(given, Mapping) else given or EVERY) or ""
    if not target:
        raise ConfigError(f"{where}: {name} names no {what} for scenario '{pack}'; add {pack} = \"...\" to it")
    known = _targets(fault, effect, environment)
    if not known:
        raise ConfigError(f"{where}: scenario '{pack}' has no {what} that {name} can strike; leave the fault out")
    if target not in (EVERY, *known):
        said = f"scenario '{pack}' has no {what} '{target}' that {name} can strike"
        raise ConfigError(f"{where}: {said}; {nearest(target, known)}")
    return replace(fault, subtask=target)


def _targets(fault: Fault, effect: Effect, environment: Environment) -> list[str]:
    """The tools, or kinds of event, that it can strike in this world; none where the cell is not applicable."""
    if fault.point == "event":
        return [kind.name for kind in environment.kinds]
    return [tool.name for tool in environment.tools if effect.on in ("any", "write" if tool.writes else "read")]
