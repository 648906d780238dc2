"""A config's fault plans as they are for one scenario: which subtask, tool or event each fault strikes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.errors import ConfigError, nearest
from bench.experiment.config import Config
from bench.experiment.plan_entries import FaultEntry, Position
from bench.experiment.world_plans import in_world
from bench.runtime.effects import EFFECTS, TextEffect, effect_at
from bench.runtime.faults import EVERY, Fault, FaultPlan
from bench.runtime.world_effects import WORLD_POINTS
from bench.scenario import Scenario


def resolve_plan(config: Config, name: str, scenario: Scenario) -> FaultPlan:
    """The fault plan as it is for one scenario. Raises ConfigError where it names a subtask that the scenario lacks, or
    where an effect could never strike that subtask."""
    entries = config.plan[name].faults if name in config.plan else ()
    return FaultPlan(name, tuple(_resolve_fault(entry, name, scenario) for entry in entries))


def _resolve_fault(entry: FaultEntry, plan: str, scenario: Scenario) -> Fault:
    pack = scenario.name.partition(":")[0]
    if entry.point in WORLD_POINTS:
        fault = Fault(entry.point, entry.effect, EVERY, entry.attempts, entry.probability, entry.seconds, entry.minutes)
        given = entry.event if entry.point == "event" else entry.tool
        return in_world(fault, entry.target_key, given, pack, f"plan '{plan}'", scenario.environment)
    names = [one.name for one in scenario.task.subtasks]
    subtask = entry.subtask.get(pack) if isinstance(entry.subtask, dict) else entry.subtask
    if entry.position:
        subtask = at_position(names, entry.position)
    if subtask is None:
        raise ConfigError(f"plan '{plan}': {entry.effect} names no subtask for scenario '{pack}'; add {pack} = \"...\" to it")
    if subtask != EVERY and subtask not in names:
        raise ConfigError(f"plan '{plan}': scenario '{pack}' has no subtask '{subtask}'; {nearest(subtask, names)}")
    needs_output = entry.point == "input" and effect_at(entry.effect, entry.point, TextEffect).needs_json
    if needs_output and not _reads_outputs(scenario, subtask):
        raise ConfigError(f"plan '{plan}': '{subtask}' reads only documents, so {entry.effect} can never strike its input")
    effect = EFFECTS[entry.effect, entry.point]
    if isinstance(effect, TextEffect) and effect.alarms and not _validates(scenario, subtask):
        raise ConfigError(f"plan '{plan}': '{subtask}' finds nothing wrong with others, so {entry.effect} can never strike it")
    return Fault(entry.point, entry.effect, subtask, entry.attempts, entry.probability, entry.seconds)


def at_position(names: Sequence[str], position: Position) -> str:
    """Of n names in the task's order the first, the (n - 1) // 2-th counted from 0, or the last."""
    return names[{"first": 0, "middle": (len(names) - 1) // 2, "last": -1}[position]]


def _validates(scenario: Scenario, subtask: str) -> bool:
    """Whether this subtask, or for `*` any, can find an earlier subtask's output wrong."""
    return subtask == EVERY or any(one.finds for one in scenario.task.subtasks if one.name == subtask)


def _reads_outputs(scenario: Scenario, subtask: str) -> bool:
    """Whether this subtask, or for `*` any, reads an earlier subtask's output."""
    subtasks = [one for one in scenario.task.subtasks if subtask in (EVERY, one.name)]
    return any(set(one.reads) - set(scenario.task.documents) for one in subtasks)
