"""What an endpoint does to a run costs it time and nothing else: the run slows down, pauses, goes on, or ends with one line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counting import Counting
from experiment_runs import config, run_matrix_in, sessions_of
from scripted_server import ScriptedServer, Step, completion, cut_after, hang, hang_up, html, raw, status
from trials import ROOTS

from bench.common.errors import EndpointError
from bench.record.events import Called
from bench.record.reading import read_trials
from bench.record.record import EndpointTrouble, TrialRecord, latest
from bench.record.store import RunWriter
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.experiment.session import Session
from bench.run.trial import loop
from bench.run.trial.gate import FAILURES_BEFORE_PAUSE

BUSY = status(429, headers={"Retry-After": "0.01"})
UNPAID = [status(500), status(503), hang_up(), html(), raw(""), raw('{"error": {"message": "full", "code": 529}}'), BUSY]
"""Passing trouble, some of it in a 200."""


STORMS = [hang_up(), *(pytest.param(storm, marks=pytest.mark.endurance) for storm in (status(502), cut_after(30), hang(60)))]


def matrix_at(server: ScriptedServer, tries: int = 6, repetitions: int = 2, most: float = 0.05, **entry: Any) -> Matrix:
    given = {"kind": "openai", "base_url": server.base_url, "timeout_seconds": 5, **entry}
    bounded = {"base": 0.001, "most": most, "tries": tries}
    return build_matrix(config(given, plans=["none", "early"], repetitions=repetitions, back_off=bounded), ROOTS, "code")


@pytest.fixture(scope="module")
def fair(tmp_path_factory: pytest.TempPathFactory) -> list[TrialRecord]:
    """The run under no trouble at all."""
    folder = tmp_path_factory.mktemp("fair") / "run"
    with ScriptedServer(Counting()) as server:
        trials = run_matrix_in(matrix_at(server, concurrency=4), folder)
    assert sessions_of(folder)[-1].trouble == () and {trial.outcome for trial in trials} == {"solved"}
    return trials


def run_under(folder: Path, trouble: Callable[[int], Step | None], **settings: Any) -> tuple[list[TrialRecord], list[str]]:
    """A run under this trouble, and what a person was told."""
    lines = list[str]()
    with ScriptedServer(Counting(trouble)) as server:
        return run_matrix_in(matrix_at(server, **settings), folder, Session(say=lines.append)), lines


def calls_of(trials: list[TrialRecord]) -> list[Called]:
    return [event for trial in trials for event in trial.events if isinstance(event, Called)]


def trouble_in(folder: Path) -> tuple[EndpointTrouble, ...]:
    return sessions_of(folder)[-1].trouble


def read_alone(trials: list[TrialRecord]) -> list[tuple[str, int, str, int]]:
    """What was read, and why it was asked for, call by call."""
    return sorted(
        (trial.arm, trial.repetition, call.cause, call.tokens_in + call.tokens_out)
        for trial in trials
        for call in calls_of([trial])
        if not call.failure
    )


@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.endurance), 4])
def test_passing_trouble_of_every_kind_costs_tries_and_neither_tokens_nor_a_retry(
    tmp_path: Path, fair: list[TrialRecord], concurrency: int
) -> None:
    def every_third(number: int) -> Step | None:
        return UNPAID[number // 3 % len(UNPAID)] if number % 3 == 2 else None

    trials, lines = run_under(tmp_path, every_third, concurrency=concurrency, tries=12)
    failed = [call for call in calls_of(trials) if call.failure]
    assert len(failed) > len(UNPAID) and {call.tokens_in + call.tokens_out for call in failed} == {0}
    assert read_alone(trials) == read_alone(fair), "no token more, and no call for another cause"
    assert sum(trial.tokens for trial in trials) == sum(trial.tokens for trial in fair)
    assert lines == []


def test_the_limit_falls_at_429_and_what_it_fell_to_is_recorded(tmp_path: Path, fair: list[TrialRecord]) -> None:
    trials, _ = run_under(tmp_path, lambda number: BUSY if 6 <= number < 10 else None, concurrency=4)
    assert read_alone(trials) == read_alone(fair)
    [seen] = trouble_in(tmp_path)
    assert (seen.limit, seen.pauses) == (4, 0) and seen.endpoint.endswith("/v1")
    assert 1 <= seen.fell <= 4 and 1 <= seen.lowest <= 2


@pytest.mark.parametrize("storm", STORMS, ids=["reset", "502", "cut", "hang"])
def test_a_run_pauses_in_a_storm_says_so_and_goes_on_once_one_call_is_answered(
    tmp_path: Path, fair: list[TrialRecord], storm: Step
) -> None:
    first = 8
    last = first + FAILURES_BEFORE_PAUSE + 4
    trials, lines = run_under(
        tmp_path, lambda number: storm if first <= number < last else None, concurrency=4, timeout_seconds=2.0
    )
    begun, gone_on = lines
    assert f": {FAILURES_BEFORE_PAUSE} calls in a row failed (" in begun and begun.endswith("; the run pauses")
    assert gone_on.endswith("answers again; the run goes on")
    [seen] = trouble_in(tmp_path)
    assert (seen.fell, seen.pauses) == (0, 1) and seen.paused > 0
    assert {trial.outcome for trial in trials} == {"solved"}
    failed = [call for call in calls_of(trials) if call.failure]
    assert FAILURES_BEFORE_PAUSE <= len(failed) < FAILURES_BEFORE_PAUSE + 4, (
        "those in flight when it paused; the probes are no trial's"
    )
    if storm in (hang_up(), status(502)):  # the others were paid, for all that is known
        assert read_alone(trials) == read_alone(fair)


def test_an_endpoint_that_stays_in_trouble_ends_the_run_with_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with ScriptedServer(counting := Counting(lambda number: status(503) if number > 6 else None)) as server:
        matrix, lines = matrix_at(server, tries=3, concurrency=4), list[str]()
        with pytest.raises(EndpointError) as ended:
            run_matrix_in(matrix, tmp_path, Session(say=lines.append))
        line = str(ended.value)
        assert line.startswith(f"model 'small' at {server.base_url}: HTTP 503: scripted 503; ") and "\n" not in line
        assert line.endswith("; no reply after 3 pauses: the same command goes on once it answers again")
        assert len(lines) == 1 and sessions_of(tmp_path)[-1].detail == "stopped: the endpoint is in trouble"
        assert counting.requests < 6 + FAILURES_BEFORE_PAUSE + 4 + 3 + 1, "not a request more than it takes to know"
        counting.before = lambda _: None
        assert {trial.outcome for trial in latest(run_matrix_in(matrix, tmp_path))} == {"solved"}
    assert counting.answered.total() == len(calls_of(latest(list(read_trials(tmp_path))))), "none was asked again"


def test_a_session_that_ends_waits_for_no_back_off_and_books_no_trial_that_was_in_one(tmp_path: Path) -> None:
    later = status(429, headers={"Retry-After": "3600"})
    with ScriptedServer(counting := Counting(lambda number: later if number > 8 else None)) as server:
        matrix = matrix_at(server, most=3600.0)
        session, writer = Session(), RunWriter(tmp_path, manifest_of(matrix, "run"))

        async def work() -> None:
            def end_in_the_back_off() -> None:
                if counting.requests > 8 and not session.in_flight:
                    session.end("enough")
                else:
                    asyncio.get_running_loop().call_later(0.001, end_in_the_back_off)

            end_in_the_back_off()
            await asyncio.wait_for(run_matrix(matrix, writer, lambda _: None, session), 30)

        loop.run(work())
        writer.close()
    assert {trial.outcome for trial in read_trials(tmp_path)} == {"solved"}
    assert sessions_of(tmp_path)[-1].detail == "stopped: enough"


def test_an_endpoint_that_answers_nothing_but_the_probe_ends_the_run_as_well(tmp_path: Path) -> None:
    def only_probes(body: Any) -> Step:
        return completion("OK") if len(body["messages"]) == 1 else status(502)

    with ScriptedServer(only_probes) as server:
        matrix = matrix_at(server, tries=1, repetitions=6, concurrency=8)
        with pytest.raises(EndpointError, match="HTTP 502: scripted 502; no reply after 1 pauses"):
            run_matrix_in(matrix, tmp_path)
    assert len(list(read_trials(tmp_path))) < len(matrix.specs)
