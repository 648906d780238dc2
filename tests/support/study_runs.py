"""Runs of small matrices, written and read again, for the tests of the studies."""

from __future__ import annotations

from pathlib import Path

from trials import run_all

import bench
from bench.read.analysis.frames import Run
from bench.record.store import RunWriter
from bench.rerun.prepared import study_values
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.new_manifest import manifest_of


def run_of_matrix(folder: Path, matrix: Matrix) -> Run:
    writer = RunWriter(folder / "run", manifest_of(matrix, "run", study_values(matrix)))
    for result in run_all(matrix):
        writer.add(result.record, result.texts)
    writer.close()
    return bench.load_run(folder / "run")
