"""The worlds of a run's trials, made again by their packs, as the trace explorer and `bench trace --trial` show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from bench.common.errors import BenchError
from bench.common.paths import PACKS
from bench.read.analysis.frames import Run
from bench.record.damage import Remade
from bench.record.reading import read_texts
from bench.record.record import TrialRecord
from bench.record.world_events import WorldEnded
from bench.rerun.remade import remake
from bench.run.experiment.keys import key_of
from bench.run.packs import load_pack
from bench.worlds.read.steps import damage_rows, steps_of
from bench.worlds.read.trace import WorldTrace
from bench.worlds.run.environment import Environment

MAX_REMADE = 200
"""The most trials of a page whose worlds are rebuilt. For the other trials the page shows no rows, and says so."""
SQL_BEGINNING = "BEGIN TRANSACTION;\nCREATE TABLE"
"""The beginning of a world's SQL in a record."""
STATE_NOT_RECORDED = "its last state is not in the run's texts"


class WorldViews:
    """Makes the views of trials in a world that a report shows: the steps, the rows that they changed, and the damage.
    `packs` are the folders that hold the packs."""

    def __init__(self, packs: Sequence[Path] = PACKS):
        self._packs = packs

    def texts_of(self, run: Run, folders: Iterable[Path]) -> dict[str, str]:
        """Return the texts of a run by their digests; empty if no trial of the run has a world."""
        if run.trials["lives"].isna().all():
            return {}
        return {digest: text for folder in folders for digest, text in read_texts(folder).items()}

    def is_shown_otherwise(self, text: str) -> bool:
        """Return whether a text is the SQL of a world. The page shows the content of such a text in the steps instead."""
        return text.startswith(SQL_BEGINNING)

    def views(self, run: Run, texts: Mapping[str, str]) -> Worlds:
        """Return the worlds of a run."""
        return Worlds(run, texts, self._packs)


class Worlds:
    """Rebuilds the worlds of a run's trials. `packs` are the folders that hold the packs."""

    def __init__(self, run: Run, texts: Mapping[str, str], packs: Sequence[Path] = PACKS):
        self._seed, self._texts, self._packs = run.config.seed, texts, packs
        self._remade_count = 0
        self._environment = cache(self._load)

    def of(self, record: TrialRecord) -> dict[str, WorldTrace]:
        """Return the trace of a trial; empty if the trial has no world or did not end."""
        end_event = next((event for event in record.events if isinstance(event, WorldEnded)), None)
        if end_event is None:
            return {}
        world = self._remake(record, end_event)
        steps = steps_of(record.events, world, self._texts)
        return {
            "world": WorldTrace(steps, end_event.damage, end_event.recount, damage_rows(world), end_event.lives, world.lacking)
        }

    def _remake(self, record: TrialRecord, end_event: WorldEnded) -> Remade:
        """Rebuild the world of a trial. After MAX_REMADE worlds, return a result without a world, with the reason."""
        if end_event.kept not in self._texts:
            return Remade((), lacking=STATE_NOT_RECORDED)
        self._remade_count += 1
        if self._remade_count > MAX_REMADE:
            return Remade((), lacking=f"a page has room for those of {MAX_REMADE} trials; bench trace RUN --trial ID shows all")
        environment = self._environment(record.scenario, record.instance)
        return remake(self._texts[end_event.kept], end_event.digest, environment, key_of(self._seed, record).drawn_from)

    def _load(self, scenario: str, instance: str) -> Environment | None:
        """Return the environment of a pack; None if the pack cannot be loaded."""
        try:
            environment: Environment | None = load_pack(scenario, self._packs, instance).environment
        except BenchError:
            return None
        return environment
