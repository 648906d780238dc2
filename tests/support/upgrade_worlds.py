"""Worlds of the pack service_upgrade, and the damage in them, on which two counts agree."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from bench.worlds.run.environment import Environment, World
from scenarios.service_upgrade.scenario import environment
from scenarios.service_upgrade.story import case_of


@cache
def world_of(instance: str) -> Environment:
    return environment(case_of(instance))


def harm(world: World) -> dict[str, int]:
    """Return the damage at the end, but for what the agent does not record."""
    world.end()
    journal, tables = world.damage()
    assert journal.agrees(tables), (journal, tables)
    return {kind: count for kind, count in asdict(journal).items() if count and kind != "orphaned"}
