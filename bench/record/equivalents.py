"""The name of an equivalent of a task in a record: the same world with the same truth, described in another way
(`bench.run.packs.equivalents` makes equivalents)."""

LEVELS = ("epsilon_1", "epsilon_2")
REORDERED, REWORDED = 1, 2


def level_of(scenario: str) -> int:
    """Return the level ε of an equivalent, by the scenario's name; 0 if the scenario is not an equivalent."""
    variant = scenario.rpartition(":")[2]
    return LEVELS.index(variant) + 1 if variant in LEVELS else 0


def task_of(scenario: str) -> str:
    """Return the scenario of which this is an equivalent; its own name if it is not an equivalent. Faults are drawn by this
    name, so that an equivalent gets the same faults as the task."""
    return scenario.rpartition(":")[0] if level_of(scenario) else scenario
