"""Resolve a config's fault plans for one scenario: find the subtask, tool or event that each fault strikes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.common.errors import ConfigError, nearest
from bench.record.plan_entries import EVERY, FaultEntry, Position
from bench.run.experiment.config import Config
from bench.run.packs import find_packs
from bench.run.packs.environments import of_packs
from bench.run.trial.effects import EFFECTS, WORLD_POINTS, TextEffect
from bench.run.trial.faults import Fault, FaultPlan, Strike
from bench.scenario import Scenario


def refuse_unknown_packs(config: Config, scenarios: Iterable[Scenario], packs: Sequence[Path]) -> None:
    """Raise ConfigError if a plan names a pack that does not exist. The pack can be one that this run leaves out."""
    known = {scenario.name.partition(":")[0] for scenario in scenarios}
    for name in config.plans:
        for pack in config.plan[name].scenarios if name in config.plan else ():
            if pack not in known and pack not in (available := find_packs(packs)):
                raise ConfigError(f"plan '{name}': scenarios names no pack '{pack}'; {nearest(pack, [*known, *available])}")


def resolve_plan(config: Config, name: str, scenario: Scenario) -> FaultPlan:
    """Return the fault plan for one scenario. Raises ConfigError if the plan names a subtask that the scenario lacks, or an
    effect that could never strike that subtask."""
    faults = []
    for entry in config.faults_of(name):
        target = (_in_world if entry.point in WORLD_POINTS else _in_task)(entry, f"plan '{name}'", scenario)
        only = None if entry.only is None else tuple(Strike(**strike.model_dump()) for strike in entry.only)
        trigger = (entry.attempts, entry.probability, entry.seconds, entry.minutes, only)
        faults.append(Fault(entry.point, entry.effect, target, *trigger))
    return FaultPlan(name, tuple(faults))


def _in_task(entry: FaultEntry, where: str, scenario: Scenario) -> str:
    """Return the subtask that a fault strikes."""
    pack, task = scenario.name.partition(":")[0], scenario.task
    names = [each.name for each in task.subtasks]
    subtask = entry.subtask.get(pack) if isinstance(entry.subtask, dict) else entry.subtask
    if entry.position:
        subtask = at_position(names, entry.position)
    if subtask is None:
        raise ConfigError(f"{where}: {entry.effect} names no subtask for scenario '{pack}'; add {pack} = \"...\" to it")
    if subtask != EVERY and subtask not in names:
        raise ConfigError(f"{where}: scenario '{pack}' has no subtask '{subtask}'; {nearest(subtask, names)}")
    effect, struck = EFFECTS[entry.effect, entry.point], [each for each in task.subtasks if subtask in (EVERY, each.name)]
    if isinstance(effect, TextEffect):
        reads_outputs = any(set(each.reads) - set(task.documents) for each in struck)
        if entry.point == "input" and effect.needs_json and not reads_outputs:
            raise ConfigError(f"{where}: '{subtask}' reads only documents, so {entry.effect} can never strike its input")
        if effect.alarms and subtask != EVERY and not any(each.finds for each in struck):
            raise ConfigError(f"{where}: '{subtask}' finds nothing wrong with others, so {entry.effect} can never strike it")
    return subtask


def at_position(names: Sequence[str], position: Position) -> str:
    """Return the first of n names, the name at place (n - 1) // 2 counted from 0, or the last."""
    return names[{"first": 0, "middle": (len(names) - 1) // 2, "last": -1}[position]]


def _in_world(entry: FaultEntry, where: str, scenario: Scenario) -> str:
    """Return the tool or the kind of event that a fault strikes. Raises ConfigError if the pack has no world, or nothing that
    the effect could strike."""
    pack, environment, name, what = scenario.name.partition(":")[0], scenario.environment, entry.effect, entry.target_key
    effect = EFFECTS[name, entry.point]
    if environment is None:
        problem = f"scenario '{pack}' has no world, so {name} can never strike at '{entry.point}'"
        raise ConfigError(f"{where}: {problem}; leave the fault or the scenario out")
    if entry.point == "process" and not effect.on:
        return EVERY
    given = entry.event if entry.point == "event" else entry.tool
    target = (given.get(pack) if isinstance(given, Mapping) else given or EVERY) or ""
    if not target:
        raise ConfigError(f"{where}: {name} names no {what} for scenario '{pack}'; add {pack} = \"...\" to it")
    known = of_packs(environment).targets(environment, entry.point, effect.on)
    if not known:
        raise ConfigError(f"{where}: scenario '{pack}' has no {what} that {name} can strike; leave the fault out")
    if target not in (EVERY, *known):
        problem = f"scenario '{pack}' has no {what} '{target}' that {name} can strike"
        raise ConfigError(f"{where}: {problem}; {nearest(target, known)}")
    return target
