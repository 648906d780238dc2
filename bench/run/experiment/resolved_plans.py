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
        target = (_world_target if entry.point in WORLD_POINTS else _subtask_to_strike)(entry, f"plan '{name}'", scenario)
        only = None if entry.only is None else tuple(Strike(**strike.model_dump()) for strike in entry.only)
        trigger = (entry.attempts, entry.probability, entry.seconds, entry.minutes, only)
        faults.append(Fault(entry.point, entry.effect, target, *trigger))
    return FaultPlan(name, tuple(faults))


def _subtask_to_strike(entry: FaultEntry, where: str, scenario: Scenario) -> str:
    """Return the name of the subtask that a fault strikes, or EVERY. Raises ConfigError if the scenario has no such subtask, or
    if the effect could never strike it."""
    pack, task = scenario.name.partition(":")[0], scenario.task
    names = [candidate.name for candidate in task.subtasks]
    subtask = entry.subtask.get(pack) if isinstance(entry.subtask, dict) else entry.subtask
    if entry.position:
        subtask = at_position(names, entry.position)
    if subtask is None:
        raise ConfigError(f"{where}: {entry.effect} names no subtask for scenario '{pack}'; add {pack} = \"...\" to it")
    if subtask != EVERY and subtask not in names:
        raise ConfigError(f"{where}: scenario '{pack}' has no subtask '{subtask}'; {nearest(subtask, names)}")
    effect = EFFECTS[entry.effect, entry.point]
    struck = [candidate for candidate in task.subtasks if subtask in (EVERY, candidate.name)]
    if isinstance(effect, TextEffect):
        reads_outputs = any(set(target.reads) - set(task.documents) for target in struck)
        if entry.point == "input" and effect.needs_json and not reads_outputs:
            raise ConfigError(f"{where}: '{subtask}' reads only documents, so {entry.effect} can never strike its input")
        if effect.alarms and subtask != EVERY and not any(target.finds for target in struck):
            raise ConfigError(f"{where}: '{subtask}' finds nothing wrong with others, so {entry.effect} can never strike it")
    return subtask


def at_position(names: Sequence[str], position: Position) -> str:
    """Return the first, the middle or the last of these names. The middle of n names is at index (n - 1) // 2."""
    return names[{"first": 0, "middle": (len(names) - 1) // 2, "last": -1}[position]]


def _world_target(entry: FaultEntry, where: str, scenario: Scenario) -> str:
    """Return the tool or the kind of event that a fault strikes, or EVERY. Raises ConfigError if the pack has no world, or
    nothing that the effect could strike."""
    pack, environment, name, kind = scenario.name.partition(":")[0], scenario.environment, entry.effect, entry.target_key
    effect = EFFECTS[name, entry.point]
    if environment is None:
        problem = f"scenario '{pack}' has no world, so {name} can never strike at '{entry.point}'"
        raise ConfigError(f"{where}: {problem}; leave the fault or the scenario out")
    if entry.point == "process" and not effect.on:
        return EVERY
    chosen = entry.event if entry.point == "event" else entry.tool
    target = (chosen.get(pack) if isinstance(chosen, Mapping) else chosen or EVERY) or ""
    if not target:
        raise ConfigError(f"{where}: {name} names no {kind} for scenario '{pack}'; add {pack} = \"...\" to it")
    targets = of_packs(environment).targets(environment, entry.point, effect.on)
    if not targets:
        raise ConfigError(f"{where}: scenario '{pack}' has no {kind} that {name} can strike; leave the fault out")
    if target not in (EVERY, *targets):
        problem = f"scenario '{pack}' has no {kind} '{target}' that {name} can strike"
        raise ConfigError(f"{where}: {problem}; {nearest(target, targets)}")
    return target
