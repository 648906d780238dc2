"""The runner does what is missing, bounds what is in flight, and stops where going on would be no use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_runs import sessions_of

from bench.cli.authoring.new import new_scenario
from bench.common.digests import digest_of
from bench.common.errors import (
    BadAnswer,
    CallFailed,
    EndpointError,
    GaveUp,
    NoText,
    ResultsError,
    ServerFailed,
    UnknownFinish,
    UsedUp,
)
from bench.record.events import Waited
from bench.record.messages import Timing
from bench.record.reading import read_trials
from bench.record.record import TrialRecord, latest
from bench.record.store import RunWriter
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.model_entries import RoutedEntry, SimulatedEntry
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import MAX_FAILED_TRIALS, missing_trials, run_matrix
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Model, Reply, Request, Sleep
from bench.run.models.routed import RoutedModel
from bench.run.models.simulated import SimulatedModel
from bench.run.trial import loop
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

REAL_SECONDS = 0.02
MIXED = RoutedEntry(kind="routed", default="wide", subtasks={"decide": "narrow"})


class Live(SimulatedModel):
    """Answers like the simulated model, but takes real time, shares an endpoint, and fails as it is told."""

    timing: Timing = "live"
    concurrency = 1
    in_flight = most_in_flight = 0
    failing: Callable[[Request], CallFailed | None] = staticmethod(lambda _: None)
    closed = False

    async def reply(self, request: Request, sleep: Sleep) -> Reply:  # noqa: ARG002
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(REAL_SECONDS)
            if failure := self.failing(request):
                raise failure

            async def no_time(_: float) -> None:
                return None

            return await super().reply(request, no_time)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    new_scenario("demo", tmp_path / "packs")
    config = Config(
        name="test",
        scenarios=("demo",),
        architectures=("static", "runtime_structured"),
        models=("model",),
        repetitions=6,
        seed=1,
        model={"model": SimulatedEntry(kind="simulated")},
    )
    return build_matrix(config, [tmp_path / "packs"], "code")


def live(matrix: Matrix, concurrency: int = 1) -> tuple[Matrix, Live]:
    model = Live("model", SimulatedEntry(kind="simulated"), matrix.scenarios)
    model.concurrency = concurrency
    return replace(matrix, models={"model": model}), model


def run(matrix: Matrix, folder: Path, watch: Callable[[TrialResult], None] = lambda _: None) -> list[TrialRecord]:
    writer = RunWriter(folder, manifest_of(matrix, "test"))
    try:
        loop.run(run_matrix(matrix, writer, watch))
    finally:
        writer.close()
    return list(read_trials(folder))


def test_every_trial_is_stored_in_order_and_shown_once_it_is(matrix: Matrix, tmp_path: Path) -> None:
    shown: list[TrialResult] = []
    stored = run(matrix, tmp_path / "run", shown.append)
    assert [trial.id for trial in stored] == [spec.id for spec in matrix.specs] == [trial.record.id for trial in shown]
    assert [session.detail for session in sessions_of(tmp_path / "run")] == ["12 of 12 trials to run", "complete"]


def test_calls_in_flight_never_exceed_the_concurrency_and_reach_it(matrix: Matrix, tmp_path: Path) -> None:
    three, model = live(matrix, concurrency=3)
    run(three, tmp_path / "run")
    assert model.most_in_flight == 3


def of_several(matrix: Matrix, *models: Model) -> Matrix:
    """Every trial once for each of these models, in turns."""
    specs = [
        replace(spec, model=model.name, id=digest_of(f"{model.name}{spec.id}")) for spec in matrix.specs for model in models
    ]
    return replace(matrix, models={model.name: model for model in models}, specs=tuple(specs))


def live_at(matrix: Matrix, name: str, endpoint: str, concurrency: int = 1) -> Live:
    model = Live(name, SimulatedEntry(kind="simulated"), matrix.scenarios)
    model.endpoint, model.concurrency = endpoint, concurrency
    return model


def test_models_that_share_an_endpoint_take_turns_so_that_no_trial_waits_for_another(matrix: Matrix, tmp_path: Path) -> None:
    sharing = [live_at(matrix, "one", "here"), live_at(matrix, "other", "here")]
    trials = run(of_several(matrix, *sharing, live_at(matrix, "apart", "there")), tmp_path / "run")
    assert [(trial.waiting_seconds, waits_of(trial)) for trial in trials if trial.waiting_seconds or waits_of(trial)] == []
    models = [trial.model for trial in trials]
    assert models.index("other") < len(models) - models[::-1].index("one"), "in turns, not one after the other"


def test_models_that_a_routed_one_joins_run_as_many_trials_as_the_endpoint_takes_that_takes_the_fewest(
    matrix: Matrix, tmp_path: Path
) -> None:
    wide, narrow = live_at(matrix, "wide", "there", concurrency=3), live_at(matrix, "narrow", "here")
    mixed = RoutedModel("mixed", MIXED, {"wide": wide, "narrow": narrow})
    run(of_several(matrix, wide, narrow), tmp_path / "apart")
    assert (wide.most_in_flight, narrow.most_in_flight) == (3, 1)
    wide.most_in_flight = 0
    trials = run(of_several(matrix, wide, narrow, mixed), tmp_path / "joined")
    assert (wide.most_in_flight, narrow.most_in_flight) == (1, 1)
    assert sum(len(waits_of(trial)) for trial in trials) == 0


async def twice_at_once(task: Task, workbench: Workbench) -> None:
    """An architecture that asks for each output twice at the same time, and leaves it at that."""
    for subtask in task.subtasks:
        proposal, _ = await asyncio.gather(workbench.propose(subtask), workbench.propose(subtask))
        workbench.commit_unverified(proposal)
    raise GaveUp([task.subtasks[0].name], "it was only to be asked for")


def test_a_call_waits_for_a_slot_at_the_endpoint_that_answers_it_and_at_no_other(matrix: Matrix, tmp_path: Path) -> None:
    wide, narrow = live_at(matrix, "wide", "there", concurrency=2), live_at(matrix, "narrow", "here")
    mixed = RoutedModel("mixed", MIXED, {"wide": wide, "narrow": narrow})
    both = matrix.with_architecture(twice_at_once)
    trials = run(of_several(both, mixed), tmp_path / "run")
    assert (wide.most_in_flight, narrow.most_in_flight) == (2, 1)
    assert [[wait.why for wait in waits_of(trial)] for trial in trials] == [["slot"]] * len(trials)


def waits_of(trial: TrialRecord) -> list[Waited]:
    return [event for event in trial.events if isinstance(event, Waited)]


def test_a_trial_that_ended_in_an_error_is_run_again_and_both_records_are_kept(matrix: Matrix, tmp_path: Path) -> None:
    failing, model = live(replace(matrix, back_off=replace(matrix.back_off, tries=1)))
    model.failing = lambda request: ServerFailed("500") if request.context.repetition == 2 else None
    first = run(failing, tmp_path / "run")
    assert [trial.repetition for trial in first if trial.outcome == "error"] == [2, 2]
    assert len(missing_trials(failing.specs, {trial.place for trial in first if trial.outcome != "error"})) == 2
    model.failing = lambda _: None
    trials = run(failing, tmp_path / "run")
    assert len(trials) == 14
    assert {trial.outcome for trial in latest(trials)} == {"solved"}


@pytest.mark.parametrize("kind", [BadAnswer, UnknownFinish, NoText])
def test_an_endpoint_that_gives_no_answer_stops_the_run_after_a_few_trials(
    matrix: Matrix, tmp_path: Path, kind: type[CallFailed]
) -> None:
    failing, model = live(replace(matrix, back_off=replace(matrix.back_off, tries=1)))
    model.failing = lambda _: kind("404 no such model")
    with pytest.raises(EndpointError, match="failed 3 trials in a row: 404 no such model; see to it; the same command goes on"):
        run(failing, tmp_path / "run")
    assert len(list(read_trials(tmp_path / "run"))) == MAX_FAILED_TRIALS
    assert model.closed
    assert [session.detail for session in sessions_of(tmp_path / "run")][-1] == "stopped: the endpoint fails"


def test_an_empty_account_stops_the_run_after_the_trial_that_met_it(matrix: Matrix, tmp_path: Path) -> None:
    failing, model = live(matrix)
    model.failing = lambda request: UsedUp("the quota is used up") if request.context.repetition == 2 else None
    with pytest.raises(EndpointError, match="failed 1 trials in a row: the quota is used up"):
        run(failing, tmp_path / "run")
    assert [trial.outcome for trial in read_trials(tmp_path / "run")][-2:] == ["solved", "error"]


def test_a_record_that_cannot_be_written_stops_the_run_with_its_own_line(matrix: Matrix, tmp_path: Path) -> None:
    def full_after_two(_: TrialResult) -> None:
        if len(list(read_trials(tmp_path / "run"))) == 2:
            raise ResultsError("the disk is full")

    with pytest.raises(ResultsError, match="the disk is full"):
        run(matrix, tmp_path / "run", full_after_two)
    assert len(list(read_trials(tmp_path / "run"))) == 2


def test_a_response_that_cannot_be_written_stops_the_run_and_is_no_trials_error(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: RunWriter, __: object, ___: object) -> None:
        raise ResultsError("the disk is full")

    monkeypatch.setattr(RunWriter, "respond", full)
    with pytest.raises(ResultsError, match="the disk is full"):
        run(matrix, tmp_path / "run")
    assert list(read_trials(tmp_path / "run")) == []


def test_nothing_is_asked_of_a_model_whose_trials_are_all_there(matrix: Matrix, tmp_path: Path) -> None:
    run(matrix, tmp_path / "run")
    writer = RunWriter(tmp_path / "run", manifest_of(matrix, "test"))
    assert list(missing_trials(matrix.specs, writer.ended)) == []
    writer.close()
