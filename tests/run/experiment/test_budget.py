"""A budget ends a run between calls: what was answered is kept, and whoever goes on pays for the rest alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from counting import Counting
from experiment_runs import config, run_matrix_in, sessions_of
from scripted_server import ScriptedServer, hang
from trials import ROOTS, TINY

from bench.common.errors import CallFailed, ConfigError, CutOff, NoText, RateLimited, ServerFailed, TimedOut
from bench.record.events import Called, Waited
from bench.record.messages import Message
from bench.record.reading import read_responses
from bench.record.record import TrialRecord
from bench.record.verify import verify
from bench.run.experiment.budget import Budget, Spending
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.session import Session
from bench.run.models.base import Reply, Request, RequestContext, Response, Usage

PRICES = {"price_in": 1000.0, "price_out": 10_000.0}
"""With the server's usage of 100 and 10 tokens a call costs 0.2 $."""
ASKED = Request((Message("user", "one two three"),), 1, RequestContext(TINY.name, ("total",), 1, 1))


def matrix_at(server: ScriptedServer, **entry: Any) -> Matrix:
    given = {"kind": "openai", "base_url": server.base_url, **PRICES, **entry}
    return build_matrix(config(given, plans=["none", "early"], repetitions=2), ROOTS, "code")


def budgeted(matrix: Matrix, folder: Path, **budget: Any) -> tuple[Session, Spending, list[TrialRecord]]:
    spending = Spending(Budget(**budget), matrix.models)
    session = Session(spending)
    return session, spending, run_matrix_in(matrix, folder, session)


def by_trial(trials: list[TrialRecord]) -> dict[str, TrialRecord]:
    """The records by id, without what is this machine's, and whether a reply had been given before."""
    assert len(trials) == len({trial.id for trial in trials})
    return {
        trial.id: replace(trial, api_seconds=0, waiting_seconds=0, framework_seconds=0, events=_events(trial))
        for trial in trials
    }


def _events(trial: TrialRecord) -> tuple[Any, ...]:
    return tuple(
        replace(event, started=0, seconds=0, client=0, reused=False) if isinstance(event, Called) else event
        for event in trial.events
        if not isinstance(event, Waited)
    )


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_run_stopped_by_its_budget_ends_as_one_without_and_pays_once(tmp_path: Path, concurrency: int) -> None:
    folder = tmp_path / "run"
    with ScriptedServer(counting := Counting()) as server:
        matrix = matrix_at(server, concurrency=concurrency)
        expected = by_trial(run_matrix_in(matrix, tmp_path / "whole"))
        paid, sessions = counting.answered, 0
        counting.answered = Counter()
        while True:
            before, sessions = counting.answered.total(), sessions + 1
            session, spending, trials = budgeted(matrix, folder, cost=1.9)
            answered = counting.answered.total() - before
            assert spending.cost == pytest.approx(0.2 * answered)
            if len(trials) == len(expected):
                break
            assert 10 <= answered < 10 + concurrency, "calls in flight come back, and no further one begins"
            assert session.why == "--max-cost 1.9 is reached"
            spent = f"{spending.tokens:,} tokens, {spending.cost:.4g} $ in this invocation"
            assert sessions_of(folder)[-1].detail == f"stopped: {session.why} ({spent})"
            assert verify(folder).defects == ()
    assert sessions >= 3
    assert counting.answered == paid
    assert by_trial(trials) == expected


def test_a_run_whose_last_call_reaches_the_budget_is_complete(tmp_path: Path) -> None:
    with ScriptedServer(counting := Counting()) as server:
        matrix = matrix_at(server)
        run_matrix_in(matrix, tmp_path / "whole")
        session, _, trials = budgeted(matrix, tmp_path / "run", cost=0.2 * counting.answered.total() - 0.1)
    assert session.why and len(trials) == len(matrix.specs)
    assert sessions_of(tmp_path / "run")[-1].detail == "complete"


@pytest.mark.parametrize("bound", [{"tokens": 0}, {"cost": 0.0}])
def test_a_budget_of_nothing_asks_for_nothing(tmp_path: Path, bound: dict[str, Any]) -> None:
    with ScriptedServer(counting := Counting()) as server:
        session, _, trials = budgeted(matrix_at(server), tmp_path / "run", **bound)
    assert (counting.answered.total(), trials) == (0, []) and session.why


def test_minutes_end_a_run_whose_calls_go_on_and_the_call_in_flight_is_kept(tmp_path: Path) -> None:
    with ScriptedServer(Counting(lambda number: hang(0.02) if number == 2 else None)) as server:
        session, _, trials = budgeted(matrix_at(server), tmp_path / "run", minutes=0.01 / 60)
    assert session.why == "--max-minutes 0.000166667 is reached" and len(trials) < 8
    assert [response.failure for response in read_responses(tmp_path / "run")][:1] == [""]


def test_a_budget_holds_for_a_simulated_model_as_well(tmp_path: Path) -> None:
    matrix = build_matrix(config({"kind": "simulated"}, repetitions=4), ROOTS, "code")
    session, spending, trials = budgeted(matrix, tmp_path / "run", tokens=3000)
    assert 0 < len(trials) < len(matrix.specs) and 3000 <= spending.tokens < 4000
    assert session.why == "--max-tokens 3,000 is reached"
    told_at_last = by_trial(budgeted(matrix, tmp_path / "run")[2])
    assert told_at_last == by_trial(run_matrix_in(matrix, tmp_path / "whole"))


def spent(*outcomes: Reply | CallFailed, entry: dict[str, Any] = PRICES, **budget: Any) -> Spending:
    """Of one model, on whose requests this came."""
    matrix = build_matrix(config({"kind": "openai", "base_url": "http://127.0.0.1:1/v1", **entry}), ROOTS, "code")
    spending = Spending(Budget(**budget), matrix.models)
    for outcome in outcomes:
        spending.add(Response("small", ASKED, outcome, 0.1))
    return spending


def test_tokens_are_ours_and_money_goes_by_the_providers_count_where_it_told() -> None:
    assert spent(Reply("four five", usage=Usage(100, 10)), cost=9.0).tokens == 5
    assert spent(Reply("four five", usage=Usage(100, 10)), cost=9.0).cost == pytest.approx(0.2)
    assert spent(Reply("four five"), cost=9.0).cost == pytest.approx((3 * 1000 + 2 * 10_000) / 1e6)


def test_what_was_paid_and_lost_counts_and_what_nobody_was_paid_for_does_not() -> None:
    lost = spent(TimedOut("late"), CutOff("broke", partial="four"), cost=9.0)
    assert lost.tokens == 3 + 3 + 1 and lost.cost == pytest.approx((6 * 1000 + 10_000) / 1e6)
    spending = spent(RateLimited("so far", partial="four", counted=(100, 10)), NoText("nothing", counted=(100, 0)), cost=9.0)
    assert spending.tokens == 3 + 1 + 3 and spending.cost == pytest.approx((200 * 1000 + 10 * 10_000) / 1e6)
    assert spent(ServerFailed("500"), Reply("four", usage=Usage(9, 9), reused=True), cost=9.0).cost == 0.0


def test_a_cost_cannot_be_bounded_where_a_price_is_unknown() -> None:
    words = "--max-cost: model 'small' has no price_in and price_out, so what it costs is unknown; give both in its table"
    with pytest.raises(ConfigError, match=words):
        spent(entry={"price_in": 1.0}, cost=1.9)
    assert spent(entry={}, tokens=9).limit_reached == ""


def test_of_a_routed_model_each_call_is_charged_at_the_prices_of_who_answered() -> None:
    entries = {
        "mixed": {"kind": "routed", "default": "small", "subtasks": {"total": "large"}},
        "small": {"kind": "simulated", "price_in": 1.0, "price_out": 1.0},
        "large": {"kind": "simulated", "price_in": 1000.0, "price_out": 0.0},
    }
    matrix = build_matrix(config({}, models=["mixed"], model=entries), ROOTS, "code")
    spending = Spending(Budget(cost=9.0), matrix.models)
    spending.add(Response("mixed", ASKED, Reply("four", by="large"), 0.1))
    assert spending.cost == pytest.approx(3 * 1000 / 1e6)
    entries["large"] = {"kind": "simulated", "price_in": 1000.0}
    unpriced = build_matrix(config({}, models=["mixed"], model=entries), ROOTS, "code")
    with pytest.raises(ConfigError, match="model 'large' has no price_in and price_out"):
        Spending(Budget(cost=9.0), unpriced.models)
