"""A run as logs of Inspect AI: its own reader finds each trial, with its grade, its calls and its faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_runs import config, run

from bench.analysis.frames import Run, load_run
from bench.report.export_part import EXPORTS, export

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(config({"kind": "simulated", "failure_rate": 0.2}, plans=["none", "early"], repetitions=2), folder)
    return load_run(folder)


def test_inspects_own_reader_finds_each_trial_with_its_grade_its_calls_and_its_faults(recorded: Run, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    logs = [read_eval_log(str(path)) for path in export(recorded, EXPORTS["inspect"], tmp_path)]
    assert len(logs) == len(recorded.trials.groupby(["scenario", "architecture", "model", "plan"]))
    samples = {sample.uuid: sample for log in logs for sample in log.samples or ()}
    assert samples.keys() == set(recorded.trials["trial"])
    for trial, outcome in recorded.trials[["trial", "outcome"]].itertuples(index=False):
        assert (samples[trial].scores or {})["grade"].value == ("C" if outcome == "solved" else "I")
    events = [event for sample in samples.values() for event in sample.events]
    assert sum(event.event == "model" for event in events) == len(recorded.calls)
    faults = [event.data for event in events if event.event == "info" and event.source == "recovery_bench.fault"]
    assert (
        sum(fault["stage"] == "delivered" for fault in faults if isinstance(fault, dict))
        == recorded.faults["delivered"].sum()
        > 0
    )
    used = [usage for sample in samples.values() for usage in sample.model_usage.values()]
    assert sum(usage.total_tokens for usage in used) == recorded.trials["tokens"].sum()
    for log in logs:
        assert log.results and log.status == "success" and log.eval.model.endswith("(SIMULATED)")
        solved = [sample.metadata["outcome"] == "solved" for sample in log.samples or ()]
        assert log.results.scores[0].metrics["accuracy"].value == sum(solved) / len(solved)
