"""The committed reports, and how each is made anew: `nox -s reports`, or, into any folder,

    python tools/committed.py [--to FOLDER] [REPORT ...]

All of them together also write `results/index.json`, the rows of the committed runs in `bench runs`.

Git holds `report.md` and the figures that it shows of each of them, and of `SNAPSHOT` the tables in every format as well,
which tests compare. Of `structured_output` and `substitution` git holds one table each. This program writes all formats; what
git does not hold is ignored by it. Git's figures were packed to 16 colours, and a figure that is made has 32.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import merge
from bench.read.overview.kept import COMMITTED_ROWS, committed_rows
from bench.read.overview.runs import row_of
from bench.read.report.written_report import report_of
from bench.record.files import runs_in, write_files
from bench.record.reading import read_manifest, read_trials
from bench.record.store import RunWriter
from bench.rerun.world_views import WorldViews
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.recording import recorded_entries
from bench.run.experiment.runner import run_matrix
from bench.run.trial.loop import run

ROOT = Path(__file__).parents[1]
RESULTS, REPORTS = ROOT / "results", ROOT / "reports"
SNAPSHOT = "paper-qwen2.5-coder-1.5b-instruct"
"""The run of whose report git holds the tables in all formats."""
HUMANEVAL = "humaneval_one_call-qwen2.5-coder-1.5b-instruct"
REPLAYED = (SNAPSHOT, "structured_output-qwen2.5-coder-1.5b-instruct", HUMANEVAL)
"""Runs whose report is of their replay, since their calls waited for each other when they were recorded."""
TOGETHER: Mapping[str, Sequence[str]] = {
    "two-models": ("incidents-qwen2.5-coder-1.5b-instruct", "incidents-qwen2.5-coder-0.5b-instruct")
}
"""A report of several runs -> the runs. Git does not hold it."""
ASKED_LATER = {HUMANEVAL: "humaneval"}
"""The study of a report whose run was recorded without one."""


def recorded_reports() -> list[str]:
    """Name the committed reports of runs as they were recorded."""
    names = (folder.name for folder in runs_in(RESULTS))
    return [name for name in names if name not in REPLAYED and (REPORTS / name / "report.md").exists()]


def replay(name: str, folder: Path, **changes: Any) -> Run:
    """Run a committed run's own experiment again, answered by its recording.

    Args:
        name: The run's name under results/.
        folder: Where the replay is recorded.
        changes: Keys of the run's config that are to have other values. As many repetitions are replayed as were recorded.
    """
    config = read_manifest(RESULTS / name).config
    recorded = {"repetitions": max(record.repetition for record in read_trials(RESULTS / name))}
    asked = {"model": recorded_entries(RESULTS / name), "study": ASKED_LATER.get(name, config.study)}
    settings = {**config.model_dump(), **asked}
    matrix = build_matrix(Config.model_validate({**settings, **recorded, **changes}), [ROOT / "scenarios"], "code")
    writer = RunWriter(folder, manifest_of(matrix, folder.name))
    run(run_matrix(matrix, writer, lambda _: None))
    writer.close()
    return bench.load_run(folder)


def main(names: Sequence[str], reports: Path = REPORTS) -> None:
    """Write the committed reports of these names, or all, into a folder of reports."""
    for name in names or (*REPLAYED, *TOGETHER, *recorded_reports()):
        with tempfile.TemporaryDirectory() as folder:
            if name in REPLAYED:
                shown = replay(name, Path(folder) / f"{name}-replay")
            else:
                shown = merge([bench.load_run(RESULTS / run) for run in TOGETHER.get(name, (name,))])
            written = write_files(reports / name, report_of(shown, WorldViews()).files)
        print(f"{reports.name}/{name}: {len(written)} files", flush=True)
    if not names and reports == REPORTS:
        write_rows()


def write_rows() -> None:
    """Write the rows that `bench runs` shows of the committed runs."""
    runs = [RESULTS / archive.stem for archive in sorted(RESULTS.glob("*.zip"))]
    write_files(RESULTS, {COMMITTED_ROWS: committed_rows((run, row_of(run)) for run in runs)})


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--to", type=Path, default=REPORTS)
    asked.add_argument("names", nargs="*", metavar="REPORT")
    given = asked.parse_args()
    main(given.names, given.to)
