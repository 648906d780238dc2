"""The studies of boundaries and patterns, run anew from simulation and recordings: `nox -s studies`, or

    PYTHONPATH=tools python tools/reports/run_studies.py [CONFIG ...]

Two configs run at a time, each in a process of its own. Their tables and figures are the files of `reports/boundary_studies`.
Those of the paraphrase, which git holds in the report of its run, come into `reports/paraphrase`.
A config of another study runs if it is named, and has its folder. So have the three runs that `bench more advise` goes by:
their trials are kept.
"""

from __future__ import annotations

import gzip
import lzma
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import pandas as pd
from golden.items import CONFIGS

import bench
from bench.common.digests import digest_of
from bench.read.analysis.factors import OCCASION_COLUMNS
from bench.read.analysis.frames import Run
from bench.read.render.drawing import style
from bench.read.render.table import comma_separated, markdown
from bench.read.report.studies import study_pictures, study_tables
from bench.record.files import write_files
from bench.record.store import RunWriter
from bench.rerun.divergence import effects_by_trial
from bench.rerun.evidence import COLUMNS, TABLE
from bench.rerun.prepared import study_values
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.trial.loop import run
from studies.model_exchange import study as model_exchange
from studies.momentum import study as momentum
from studies.patching import study as patching
from studies.retesting import study as retesting

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"
ASKED = (
    *("boundary", "momentum", "momentum_escape", "pattern_failure", "pattern_failure_further", "pattern_failure_children"),
    *("pattern_failure_undo", "orchestration", "contradicted", "proposers"),
    *("log_or_row", "model_exchange", "approval", "replay_divergence", "replay_divergence_running", "paraphrase"),
)
RECORDED = {"paraphrase": ("qwen2.5-coder-1.5b-instruct", "paraphrase-qwen2.5-coder-1.5b-instruct")}
"""Config -> its model, and the committed run whose recorded replies it is given."""
EVIDENCE = ("advise", "advise_held_out", "advise_no_keys")
SIZES = {"reliability_surface": {"instances": 40, "repetitions": 1}}
"""Config -> its size, where what is kept of it is of another size than the config's."""
ROWS_ALONE = {
    "exactly_once_upgrade": "exactly_once_upgrade-simulated",
    "renewal_bank": "renewal_bank-errs_as_qwen",
    "support_desk": "support_desk-simulated",
}
"""Config -> its report, whose tables another command makes: the rows alone are written."""
BY_CASE: Mapping[str, Callable[[Run], Mapping[str, Mapping[str, Sequence[Any]]]]] = {
    "patching_arms": patching.followed,
    "retesting": retesting.retested,
}
"""Config -> the result of each case, by what its arms repair under and by arm: a row is a case."""
NOT_RECOUNTED = ("replay_divergence", "paraphrase")
"""Configs that read recorded replies alone. Git holds these whole."""
ROWS = list(
    dict.fromkeys([*COLUMNS, "model", *(name for names in OCCASION_COLUMNS.values() for name in names), "tool_retries"])
)
ROWS.remove("tokens")


def onsets_of(shown: Run) -> pd.DataFrame:
    """Return how many effects each trial committed, which of them damaged it, and how many first replies were rejected."""
    second = shown.calls[shown.calls["attempt"].eq(2)].groupby("trial", observed=True).size()
    dated = momentum.onsets(shown)[["trial", "effects", "onset"]]
    return dated.assign(second_attempts=dated["trial"].map(second).fillna(0).astype(int))


def drift_of(shown: Run) -> pd.DataFrame:
    """Return the processes of each trial, the judgments that it asked again after its death, and the effects that drifted."""
    assert shown.folder is not None
    counts = pd.DataFrame.from_dict(dict(model_exchange.replayed(shown.folder)), "index", columns=["asked_again", "drifted"])
    return shown.trials[["trial", "lives"]].merge(counts, left_on="trial", right_index=True)


def course_of(shown: Run) -> pd.DataFrame:
    """Return a digest of the effects that each trial ended with: the same where they are."""
    assert shown.folder is not None
    made = effects_by_trial(shown.folder)
    return pd.DataFrame({"trial": list(made), "course": [digest_of("\n".join(sorted(course)))[:8] for course in made.values()]})


FURTHER: Mapping[str, Callable[[Run], pd.DataFrame]] = {
    "approval": lambda shown: shown.trials[["trial", "tokens", "calls"]],
    "model_exchange": drift_of,
    "momentum": onsets_of,
    "momentum_escape": onsets_of,
    "replay_divergence_running": course_of,
    "exactly_once_upgrade": lambda shown: shown.trials[["trial", "lives"]],
    "support_desk": lambda shown: shown.trials[["trial", "lives", "tokens"]],
}
"""Config -> what its study measures of each trial beside the columns of every config's rows."""


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
        loaded = load_config(path, {"models": list(models) or None} | SIZES.get(config, {}), models)
        matrix = build_matrix(loaded, [ROOT / "scenarios"], "code")
        writer = RunWriter(folder, manifest_of(matrix, name, study_values(matrix)))
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
            tables = {} if config in ROWS_ALONE else files_of(shown)
            write_files(REPORTS / ROWS_ALONE.get(config, report), tables | rows_of(shown, config))
    return monotonic() - began


def evidence_of(folder: Path) -> dict[str, bytes]:
    """What `bench more advise` reads of a run: its manifest, and a row of each trial."""
    trials = bench.load_run(folder).trials[COLUMNS].to_csv(index=False)
    return {"manifest.json": (folder / "manifest.json").read_bytes(), TABLE: gzip.compress(trials.encode(), mtime=0)}


def rows_of(shown: Run, config: str) -> dict[str, bytes]:
    """A row of each trial, in order of what it is of, by the path in the report: a stranger recounts the tables from it."""
    if config in NOT_RECOUNTED:
        return {}
    if config in BY_CASE:
        rows = pd.DataFrame(
            {"under": under, "arm": arm, "case": case, **asdict(result)}
            for under, arms in BY_CASE[config](shown).items()
            for arm, results in arms.items()
            for case, result in enumerate(results, 1)
        )
    else:
        rows = shown.trials[["trial", *ROWS]]
        if config in FURTHER:
            rows = rows.merge(FURTHER[config](shown), on="trial")
        rows = rows.drop(columns="trial")
        rows = rows.sort_values(["scenario", "model", "plan", "architecture", "instance", "repetition"])
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
