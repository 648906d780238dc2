"""Runs of small matrices, written and read again, for the tests of the studies."""

from __future__ import annotations

from pathlib import Path

from trials import run_all

import bench
from bench.analysis.frames import Run
from bench.experiment.matrix import Matrix
from bench.experiment.new_manifest import manifest_of
from bench.experiment.store import RunWriter
from bench.report.studies import prepared


def run_of_matrix(folder: Path, matrix: Matrix) -> Run:
    writer = RunWriter(folder / "run", manifest_of(matrix, "run", prepared(matrix)))
    for result in run_all(matrix):
        writer.add(result.record, result.texts)
    writer.close()
    return bench.load_run(folder / "run")
