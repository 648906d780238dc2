"""Equivalents of the renewals in other words: `bench.run.packs.equivalents` describes the levels.

A customer has another name from level 1 on, unless the policy names it, and writes another letter of the same meaning at
level 2. Its number, its products, its dates and all amounts stay, and so do the reference, the truth and what is owed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from bench.record.equivalents import LEVELS, REORDERED, REWORDED, level_of
from bench.run.packs import PackFolder
from bench.run.packs.equivalents import another, retold
from bench.scenario import Scenario

from .limits import NAMED
from .scenario import environment, instances
from .scenario import scenario as as_it_is
from .story import BAD, FIRST, GOOD, LAST, Case, story

__all__ = ["VARIANTS", "instances", "scenario"]

VARIANTS = LEVELS
NAMES = tuple(map(" ".join, product(FIRST, LAST)))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    plain = as_it_is(folder, instance)
    case = told(story(instance), instance, level_of(folder.variant))
    return retold(replace(plain, environment=environment(case, plain.task.subtasks, folder.prompt("work"))), folder)


def told(case: Case, instance: str, level: int) -> Case:
    """Return the customer in the form that is shown at this level."""
    if level >= REORDERED and case.name not in NAMED:
        case = replace(case, name=another(NAMES, case.name, instance, "name"))
    if level < REWORDED:
        return case
    signals = {
        kind: {**shown, "remark": another(_mood(shown["remark"]), shown["remark"], instance, "remark", kind)}
        for kind, shown in case.signals.items()
    }
    return replace(case, signals=signals, wording=case.wording + 1)  # the next letter of those that mean the same


def _mood(remark: object) -> tuple[str, ...]:
    return GOOD if remark in GOOD else BAD
