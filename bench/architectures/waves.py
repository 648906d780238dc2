"""In which order subtasks are asked: in waves. A wave's subtasks are asked at the same time, once the wave before has its
replies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.scenario import Subtask

Waves = tuple[tuple[Subtask, ...], ...]


def one_by_one(subtasks: Sequence[Subtask]) -> Waves:
    """In the listed order, each a wave of its own."""
    return tuple((subtask,) for subtask in subtasks)


def by_reads(subtasks: Sequence[Subtask]) -> Waves:
    """Each in the first wave in which all is there that it reads of these."""
    return by_needs(subtasks, {subtask.name: subtask.reads for subtask in subtasks})


def by_needs(subtasks: Sequence[Subtask], needs: Mapping[str, Collection[str]]) -> Waves:
    """Each in the first wave in which all is there that it needs of these. Raises ValueError where some need each other."""
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
