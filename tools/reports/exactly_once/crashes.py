"""The study's config at full size, in process: one architecture and one repetition at a time, so that what lies on the disk
between two of them is small, and of each trial the row alone is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

import bench
from bench.read.analysis.frames import Run
from bench.record.store import RunWriter
from bench.rerun.prepared import study_values
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.trial.loop import run
from bench.worlds.read.beyond_control import PAIR_COLUMNS

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "studies" / "exactly_once" / "config.toml"
INSTANCES = 40
KEPT = [
    *(*PAIR_COLUMNS, "plan", "outcome", "timing", "lives", "recount_agrees"),
    *("faults_planned", "faults_delivered", "faults_not_applicable"),
    *(f"damage_{kind}" for kind in ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale", "late")),
]
"""The columns that are kept of `run.trials`."""


def matrix_of(repetitions: int, instances: int = INSTANCES, config_file: Path = CONFIG) -> Matrix:
    config = load_config(config_file, {"instances": instances, "repetitions": repetitions})
    return build_matrix(config, [ROOT / "scenarios"], our_codebase().digest)


def measured(matrix: Matrix, folder: Path) -> Iterator[Path]:
    """Each file of rows, once it is there: one for each repetition and architecture. What is there already is not made anew."""
    folder.mkdir(parents=True, exist_ok=True)
    for repetition in range(1, matrix.config.repetitions + 1):
        for architecture in matrix.config.architectures:
            kept = folder / f"{repetition}-{architecture}.csv"
            if not kept.exists():
                _trials(matrix, architecture, repetition).to_csv(kept, index=False)
            yield kept


def _trials(matrix: Matrix, architecture: str, repetition: int) -> pd.DataFrame:
    specs = [spec for spec in matrix.specs if (spec.architecture, spec.repetition) == (architecture, repetition)]
    part = replace(matrix, specs=tuple(specs))
    with tempfile.TemporaryDirectory() as name:
        return lived(part, Path(name) / "run").trials[KEPT]


def lived(matrix: Matrix, folder: Path) -> Run:
    writer = RunWriter(folder, manifest_of(matrix, "exactly_once", study_values(matrix)))
    run(run_matrix(matrix, writer, lambda _: None))
    writer.close()
    return bench.load_run(folder)


def as_run(matrix: Matrix, files: list[Path]) -> Run:
    """Return the rows of these files as one run, for the study to read: its trials alone."""
    counts = {name: "Int64" for name in KEPT if name.startswith(("damage_", "faults_")) or name in ("lives", "repetition")}
    frames = [pd.read_csv(file, dtype=counts) for file in files]
    none = pd.DataFrame()
    manifest = manifest_of(matrix, "exactly_once", study_values(matrix))
    return Run(manifest, (), pd.concat(frames, ignore_index=True), none, none, none, none, none, 0)
