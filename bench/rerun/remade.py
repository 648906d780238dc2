"""The world of a recorded trial, rebuilt step by step: the rows that each journal entry changed, and the effects that count
as damage. The pack's present code rebuilds the world. The digest in the record shows whether the world is still the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from bench.common.errors import BenchError
from bench.common.raised import type_and_message
from bench.record.damage import Remade, RowChange
from bench.worlds.run.environment import CannotRestore, Environment, JournalEntry, World, final_world
from bench.worlds.run.environment.changes import changes, rows_in
from bench.worlds.run.environment.final import content_of


def remake(recorded_sql: str, digest: str, environment: Environment | None, drawn_from: tuple[object, ...]) -> Remade:
    """Rebuild a recorded world.

    Args:
        recorded_sql: The recorded content of the world.
        digest: The digest of its tables at the end.
        environment: The environment of its pack; None if the pack is absent.
        drawn_from: The seed of its random draws.
    """
    try:
        content = content_of(recorded_sql)
        entries = final_world(content).journal
    except CannotRestore as error:
        return Remade((), lacking=str(error))
    if environment is None:
        return Remade(entries, lacking="its pack is not here; bench trace --scenarios DIR names its folder")
    try:
        changed = _changes(environment, entries, digest, drawn_from)
        with closing(World(environment, content=content)) as world:
            return Remade(entries, changed, world.harms())
    except BenchError as error:
        return Remade(entries, lacking=str(error))
    except Exception as error:  # a pack's code that has changed since can raise anything
        return Remade(entries, lacking=f"its pack raised {type_and_message(error)}")


def _changes(
    environment: Environment, entries: Sequence[JournalEntry], digest: str, drawn_from: tuple[object, ...]
) -> dict[int, Sequence[RowChange]]:
    """Return the rows that each journal entry changed. Raises CannotRestore if the pack's code makes another world of these
    entries."""
    by_effect: dict[int, Sequence[RowChange]] = {}
    with closing(World(environment, drawn_from=drawn_from)) as world:
        rows_before, digest_before = rows_in(world.snapshot().content), world.digest()
        for entry in entries:
            world.replay([entry])
            if world.digest() != digest_before:
                rows_after = rows_in(world.snapshot().content)
                by_effect[entry.seq] = changes(rows_before, rows_after)
                rows_before, digest_before = rows_after, world.digest()
        if digest_before != digest:
            raise CannotRestore("its pack makes another world of the same calls; it has changed since")
    return by_effect
