"""The order in which subtasks are asked: in waves. A wave's subtasks are asked at the same time, after the replies of the wave
before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.scenario import Subtask

Waves = tuple[tuple[Subtask, ...], ...]


def one_by_one(subtasks: Sequence[Subtask]) -> Waves:
    """Return one wave for each subtask, in the listed order."""
    return tuple((subtask,) for subtask in subtasks)


def by_reads(subtasks: Sequence[Subtask]) -> Waves:
    """Put each subtask into the first wave after all of these subtasks that it reads."""
    return by_needs(subtasks, {subtask.name: subtask.reads for subtask in subtasks})


def by_needs(subtasks: Sequence[Subtask], needs: Mapping[str, Collection[str]]) -> Waves:
    """Put each subtask into the first wave after all of these subtasks that it needs. Raises ValueError if some need each
    other."""
    waves: list[tuple[Subtask, ...]] = []
    left = list(subtasks)
    while left:
        pending = {subtask.name for subtask in left}
        wave = tuple(subtask for subtask in left if pending.isdisjoint(needs[subtask.name]))
        if not wave:
            raise ValueError(f"none of these can be the first, since each waits for another: {', '.join(sorted(pending))}")
        waves.append(wave)
        left = [subtask for subtask in left if subtask not in wave]
    return tuple(waves)
