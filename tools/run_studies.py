"""The studies of boundaries and patterns, run anew from simulation and recordings: `nox -s studies`, or

    python tools/run_studies.py [CONFIG ...]

Two configs run at a time, each in a process of its own. Their tables and figures are the files of `reports/boundary_studies`.
Those of the paraphrase, which git holds in the report of its run, come into `reports/paraphrase`.
A config of another study runs if it is named, and has its folder. So have the three runs that `bench advise` goes by: their
trials are kept.
"""

from __future__ import annotations

import gzip
import lzma
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from golden.items import CONFIGS

import bench
from bench.read.analysis.factors import OCCASIONS
from bench.read.analysis.frames import Run
from bench.read.render.drawing import style
from bench.read.render.table import comma_separated, markdown
from bench.read.report.studies import study_pictures, study_tables
from bench.record.files import write_files
from bench.record.store import RunWriter
from bench.rerun.advise.evidence import COLUMNS, TABLE
from bench.rerun.prepared import prepared
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.trial.loop import run

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports"
ASKED = (
    *("boundary", "momentum", "momentum_escape", "pattern_failure", "pattern_failure_further", "pattern_failure_children"),
    *("pattern_failure_undo", "second_contract", "orchestration", "proposers"),
    *("log_or_row", "model_exchange", "approval", "replay_divergence", "replay_divergence_running", "paraphrase"),
)
RECORDED = {"paraphrase": ("qwen2.5-coder-1.5b-instruct", "paraphrase-qwen2.5-coder-1.5b-instruct")}
"""Config -> its model, and the committed run whose recorded replies it is given."""
EVIDENCE = ("advise", "advise_held_out", "advise_no_keys")
RECOUNTED = ("second_contract", "log_or_row")
"""Configs of whose trials git keeps a row each, so that a stranger recounts what damage they are said to do."""
ROWS = list(dict.fromkeys([*COLUMNS, "model", *(name for names in OCCASIONS.values() for name in names), "tool_retries"]))
ROWS.remove("tokens")


def made_anew(config: str) -> float:
    """Run a config, write what is kept of it, and return the seconds that it took."""
    began = monotonic()
    with TemporaryDirectory() as temporary:
        name = f"{config}-simulated" if config in EVIDENCE else config
        folder = Path(temporary) / name
        path, models = CONFIGS[config], {}
        if config in RECORDED:
            model, recording = RECORDED[config]
            models = {model: {"kind": "recorded", "run": f"results/{recording}"}}
        loaded = load_config(path, {"models": list(models) or None}, models)
        matrix = build_matrix(loaded, [ROOT / "scenarios"], "code")
        writer = RunWriter(folder, manifest_of(matrix, name, prepared(matrix)))
        run(run_matrix(matrix, writer, lambda _: None))
        writer.close()
        if config in EVIDENCE:
            write_files(REPORTS / name, evidence_of(folder))
        else:
            folder_name = (
                config if all(model.timing == "recorded" for model in matrix.models.values()) else f"{config}-simulated"
            )
            report = "boundary_studies" if config in ASKED and config not in RECORDED else folder_name
            shown = bench.load_run(folder)
            write_files(REPORTS / report, files_of(shown) | (rows_of(shown, config) if config in RECOUNTED else {}))
    return monotonic() - began


def evidence_of(folder: Path) -> dict[str, bytes]:
    """What `bench advise` reads of a run: its manifest, and a row of each trial."""
    trials = bench.load_run(folder).trials[COLUMNS].to_csv(index=False)
    return {"manifest.json": (folder / "manifest.json").read_bytes(), TABLE: gzip.compress(trials.encode(), mtime=0)}


def rows_of(shown: Run, config: str) -> dict[str, bytes]:
    """A row of each trial, in order of what it is of, by the path in the report."""
    rows = shown.trials[ROWS].sort_values(["scenario", "model", "plan", "architecture", "instance", "repetition"])
    packed = lzma.compress(rows.to_csv(index=False).encode(), preset=9 | lzma.PRESET_EXTREME)
    return {f"rows/{config}.csv.xz": packed}


def files_of(shown: Run) -> dict[str, bytes]:
    """The study's tables and figures, by their paths in the report."""
    files: dict[str, bytes] = {}
    for table in study_tables(shown):
        files[f"tables/{table.name}.md"] = markdown(table).encode()
        files[f"tables/{table.name}.csv"] = comma_separated(table).encode()
    with style():
        return files | {f"figures/{picture.name}.png": picture.png for picture in study_pictures(shown)}


def main(configs: Sequence[str]) -> None:
    """Run these configs, or all."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for config, seconds in zip(configs, pool.map(made_anew, configs), strict=True):
            print(f"{config}: {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ASKED)
