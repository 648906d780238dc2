"""The order in which subtasks are asked for: in waves. The subtasks of a wave are asked for at the same time, after the replies
of the wave before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.scenario import Subtask

Waves = tuple[tuple[Subtask, ...], ...]


def one_by_one(subtasks: Sequence[Subtask]) -> Waves:
    """Return one wave for each subtask, in the listed order."""
    return tuple((subtask,) for subtask in subtasks)


def by_reads(subtasks: Sequence[Subtask]) -> Waves:
    """Return the subtasks in waves. Each subtask is in the first wave after those of these subtasks that it reads."""
    return by_needs(subtasks, {subtask.name: subtask.reads for subtask in subtasks})


def by_needs(subtasks: Sequence[Subtask], needs: Mapping[str, Collection[str]]) -> Waves:
    """Return the subtasks in waves. Each subtask is in the first wave after those of these subtasks that it needs. Raises
    ValueError if some subtasks need each other."""
    waves: list[tuple[Subtask, ...]] = []
    remaining = list(subtasks)
    while remaining:
        pending = {subtask.name for subtask in remaining}
        wave = tuple(subtask for subtask in remaining if pending.isdisjoint(needs[subtask.name]))
        if not wave:
            raise ValueError(f"none of these can be the first, since each waits for another: {', '.join(sorted(pending))}")
        waves.append(wave)
        remaining = [subtask for subtask in remaining if subtask not in wave]
    return tuple(waves)
