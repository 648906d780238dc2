"""A run as logs of Inspect AI: its own reader finds each trial, with its grade, its calls and its faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from records import edit_manifest, trial, write_run, write_with_texts

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run, load_run
from bench.read.report.export_part import EXPORTS, export
from bench.record.record import Outcome

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
    for each, outcome in recorded.trials[["trial", "outcome"]].itertuples(index=False):
        assert (samples[each].scores or {})["grade"].value == ("C" if outcome == "solved" else "I")
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


TEXTS = {name: f"text {name}" for name in ("d", "d1", "d2")}
OUTCOMES: tuple[Outcome, ...] = ("solved", "wrong", "gave_up", "error", "solved")


def made(folder: Path, outcomes: dict[tuple[str, int], Outcome]) -> Run:
    """A run of one arm: (instance, repetition) -> how that trial ended."""
    records = [
        trial(repetition=epoch, outcome=outcome, id=f"{instance}-{epoch}", instance=instance, reason="timed out: twice")
        for (instance, epoch), outcome in outcomes.items()
    ]
    return write_with_texts(folder, records, TEXTS)


def only_log(run: Run, to: Path) -> Any:
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    [path] = export(run, EXPORTS["inspect"], to)
    return read_eval_log(str(path))


def test_an_error_has_an_error_and_no_score_and_the_accuracy_counts_what_our_reports_count(tmp_path: Path) -> None:
    run = made(tmp_path / "run", {("", epoch): outcome for epoch, outcome in enumerate(OUTCOMES, 1)})
    log = only_log(run, tmp_path / "out")
    assert [sample.scores and sample.scores["grade"].value for sample in log.samples] == ["C", "I", "I", None, "C"]
    assert [sample.error and sample.error.message for sample in log.samples] == [None, None, None, "timed out: twice", None]
    [arms] = arms_of(run).values()
    [score] = log.results.scores
    assert score.metrics["accuracy"].value == arms["static"].solved().rate == 0.5
    assert (score.scored_samples, log.results.completed_samples, log.results.total_samples) == (4, 4, 5)
    assert log.status == "error" and "1 of 5 trials ended in an error, the first: timed out: twice" in log.error.message


def test_epochs_count_as_trials_also_where_instances_lost_some_and_inspect_finds_the_same_again(tmp_path: Path) -> None:
    from inspect_ai.log import recompute_metrics  # noqa: PLC0415

    outcomes: dict[tuple[str, int], Outcome] = {("a", 1): "solved", ("a", 2): "wrong", ("b", 1): "solved", ("b", 2): "error"}
    run = made(tmp_path / "run", outcomes)
    log = only_log(run, tmp_path / "out")
    before = log.results.scores[0].metrics
    assert before["accuracy"].value == pytest.approx(2 / 3)
    recompute_metrics(log)
    assert log.results.scores[0].metrics == before
    assert (log.eval.config.epochs, log.eval.dataset.sample_ids) == (2, ["a", "b"])


def test_the_standard_error_is_that_of_instances_not_of_their_epochs(tmp_path: Path) -> None:
    """Two instances whose two epochs agree: by trials it would be sqrt(1/3) / 2 = 0.289, by instances it is 0.5."""
    alike: dict[tuple[str, int], Outcome] = {("a", 1): "solved", ("a", 2): "solved", ("b", 1): "wrong", ("b", 2): "wrong"}
    log = only_log(made(tmp_path / "run", alike), tmp_path / "out")
    assert log.results.scores[0].metrics["stderr"].value == pytest.approx(0.5)
    assert log.status == "success"


def test_where_nothing_was_scored_there_is_no_accuracy(tmp_path: Path) -> None:
    assert only_log(made(tmp_path / "run", {("", 1): "error", ("", 2): "error"}), tmp_path / "out").results.scores == []
    ungraded = only_log(made(tmp_path / "second", {("", 1): "ungraded"}), tmp_path / "third")
    assert (ungraded.results.scores, ungraded.status, ungraded.samples[0].scores) == ([], "success", None)


def test_an_unfinished_run_is_no_success(tmp_path: Path) -> None:
    """Without the note of a session's end the run may still go on."""
    goes_on = made(tmp_path / "run", {("", 1): "solved", ("", 3): "solved"})
    log = only_log(goes_on, tmp_path / "out")
    assert (log.status, log.results.total_samples, log.results.completed_samples) == ("started", 3, 2)
    folder = write_run(tmp_path / "stopped", [trial(repetition=1, events=[]), trial(repetition=2, events=[])])
    edit_manifest(folder, config={**goes_on.manifest.model_dump(mode="json")["config"], "repetitions": 3})
    assert only_log(load_run(folder), tmp_path / "more").status == "cancelled"
