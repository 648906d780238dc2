"""Whole probes of an agent that pays over HTTP: states in which it gives up, what clean runs show, and the owner's checks."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from payers import payer_of

from bench.common.errors import ConfigError
from bench.probe.read.blame import blame_of
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.gateway.fault_injector import CellFault
from bench.probe.run.gateway.subject import OthersStatement, OwnersCheck, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import EARLY, CellJudged, CellsPlanned, GatewayCall
from bench.record.process_events import ProcessStarted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")


def probed(folder: Path, subject: Subject, *only: str, until: str = "", kind: type[Worker] = Worker) -> list[CellRun]:
    """Return the runs of a probe; `until`: up to the first run of this plan, which cost a third of what all cost."""

    def worker(number: int) -> Worker:
        private = folder / f"worker-{number}"
        shop = StoreSettings("shop", "sqlite", str(folder / "shop.db"))
        memory = StoreSettings("journal", "memory", str(folder / "journal"), {"JOURNAL": "{store}"})
        stores = Stores.of([shop, memory], private / "stores", subject.settle, subject.hide, b"of this test")
        return kind(subject, stores, PrivateFolder(private, "agent"), Secrets(()))

    async def runs() -> list[CellRun]:
        made = list[CellRun]()
        async with aclosing(Probe(subject, worker, ProbeRequest(only=only)).runs()) as running:
            async for run in running:
                made.append(run)
                if run.plan == until:
                    break
        return made

    return asyncio.run(runs())


def first(runs: list[CellRun], plan: str) -> CellJudged:
    judged = next(run.judgement for run in runs if run.plan == plan)
    assert judged
    return judged


def planned(runs: list[CellRun]) -> CellsPlanned:
    return next(iter(of_kind(runs[2].events, CellsPlanned)))


LOST, FAILS = "pay.POST /pay#1.lost", "pay.POST /pay#1.error"


def test_an_agent_that_gives_up_half_way_is_started_once_more_and_judged_then(tmp_path: Path) -> None:
    judged = first(probed(tmp_path, payer_of(tmp_path, "two keyed"), "#1.lost", until=LOST), LOST)
    assert (judged.verdict, judged.half_way) == ("absorbed", True)


def test_the_second_start_from_a_half_paid_state_pays_twice(tmp_path: Path) -> None:
    judged = first(probed(tmp_path, payer_of(tmp_path, "two"), "#1.lost", until=LOST), LOST)
    assert (judged.verdict, judged.half_way) == ("doubled", True)


def test_an_agent_that_gives_up_before_anything_is_not_started_again(tmp_path: Path) -> None:
    judged = first(probed(tmp_path, payer_of(tmp_path, "two"), "#1.error", until=FAILS), FAILS)
    assert (judged.verdict, judged.half_way) == ("gave_up", False)


def test_an_error_that_is_answered_after_the_payment_was_done_makes_the_client_pay_again(tmp_path: Path) -> None:
    runs = probed(tmp_path, payer_of(tmp_path, "again"), "#1.lost")
    assert first(runs, f"{LOST}.error").verdict == "doubled"
    assert first(runs, LOST).verdict == "same"  # a broken connection is no HTTP error, so this client does not ask again


@pytest.mark.parametrize(
    ("sql", "verdict"),
    [("SELECT sum(cents) FROM payment", "compensated"), ("SELECT count(*) FROM payment", "doubled")],
)
def test_rows_that_differ_are_no_damage_where_the_owners_check_answers_as_ever(tmp_path: Path, sql: str, verdict: str) -> None:
    subject = replace(payer_of(tmp_path, "again regrets"), checks=(OwnersCheck("shop", sql),))
    plan = f"{LOST}.error"
    assert first(probed(tmp_path, subject, "#1.lost.error", until=plan), plan).verdict == verdict


def test_a_service_that_ends_before_it_is_ready_is_named_with_what_it_printed_last(tmp_path: Path) -> None:
    subject = payer_of(tmp_path, "keyed")
    broken = replace(subject.services[0], command=(sys.executable, "-c", "raise SystemExit('no licence')"))
    with pytest.raises(ConfigError, match=r"^pay ended before it was ready at .*It printed last: no licence$"):
        probed(tmp_path, replace(subject, services=(broken,)), "#1.lost")


def test_a_service_that_pays_after_its_answer_is_told_what_to_do_by_the_first_clean_run(tmp_path: Path) -> None:
    says = "changed nothing that a witness sees.*If the store is named, its tool may write after its answer"
    with pytest.raises(ConfigError, match=says):
        probed(tmp_path, payer_of(tmp_path, "later"), "#1.lost")


def test_a_call_that_each_clean_run_makes_twice_is_named_unless_it_is_meant(tmp_path: Path) -> None:
    subject = payer_of(tmp_path, "double")
    assert planned(probed(tmp_path, subject, "#1.error", until=FAILS)).again == ("pay.POST /pay#2",)
    meant = replace(subject, meant=("pay.POST /pay",))
    assert not planned(probed(tmp_path, meant, "#1.error", until=FAILS)).again


def test_calls_in_parallel_that_lose_an_update_are_a_race(tmp_path: Path) -> None:
    [row] = planned(probed(tmp_path, payer_of(tmp_path, "notes"), "#1.error", until="pay.POST /add#1.error")).race
    assert row.before and row.after
    assert [len(str(side["text"]).split()) for side in (row.before, row.after)] == [1, 2]


def test_an_agent_that_takes_an_intent_for_a_payment_is_blamed_for_its_memory(tmp_path: Path) -> None:
    runs = probed(tmp_path, payer_of(tmp_path, "intent"), "#1.killed_before")
    assert first(runs, "pay.POST /pay#1.killed_before").verdict == "lost"
    blame = blame_of("pay.POST /pay", [run.judgement for run in runs if run.judgement and run.judgement.mended])
    assert blame and blame.minimal == (frozenset({"memory"}),)


def test_payments_in_parallel_that_a_restart_makes_again_are_blamed_with_the_key_and_the_memory(tmp_path: Path) -> None:
    runs = probed(tmp_path, payer_of(tmp_path, "parallel"), "#1.unacknowledged")
    blame = blame_of("pay.POST /pay", [run.judgement for run in runs if run.judgement and run.judgement.mended])
    assert blame and set(blame.minimal) == {frozenset({"key"}), frozenset({"memory"})}


def test_of_two_equal_payments_the_one_that_is_made_again_after_a_restart_is_the_restarts(tmp_path: Path) -> None:
    plan = "pay.POST /pay#1.unacknowledged"
    cell = probed(tmp_path, payer_of(tmp_path, "equal"), "#1.unacknowledged", until=plan)[-1]
    calls = [(call.life, call.repeats, call.cause) for call in of_kind(cell.events, GatewayCall)]
    assert calls == [(1, None, ""), (2, 1, "restart"), (2, None, "")]


IN_FLIGHT = "pay.POST /pay#1.in_flight"


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [("hasty", "doubled"), ("hasty blind", "doubled"), ("hasty keyed", "absorbed"), ("one", "not_applicable")],
)
def test_a_request_still_in_flight_is_paid_after_the_agent_has_looked(tmp_path: Path, mode: str, verdict: str) -> None:
    runs = probed(tmp_path, payer_of(tmp_path, mode), "#1.in_flight", until=IN_FLIGHT)
    assert first(runs, IN_FLIGHT).verdict == verdict, first(runs, IN_FLIGHT).why
    cell = next(run for run in runs if run.plan == IN_FLIGHT)
    held, *later = of_kind(cell.events, GatewayCall)
    assert held.passed_on is not None and held.answered is not None
    if later:
        assert later[0].given is not None and held.passed_on > later[0].given and held.given is None


def test_an_agent_that_looks_pays_once_where_the_answer_alone_is_lost(tmp_path: Path) -> None:
    assert first(probed(tmp_path, payer_of(tmp_path, "hasty"), "#1.lost", until=LOST), LOST).verdict == "same"


RESUMED_TWICE = "pay.POST /pay#1.resumed_twice"


def test_two_processes_that_go_on_together_pay_twice_what_neither_saw_the_other_pay(tmp_path: Path) -> None:
    runs = probed(tmp_path, payer_of(tmp_path, "looks"), "#1.resumed_twice", "#1.unacknowledged")
    cell = next(run for run in runs if run.plan == RESUMED_TWICE)
    assert first(runs, RESUMED_TWICE).verdict == "doubled"
    assert [event.life for event in of_kind(cell.events, ProcessStarted)] == [1, 2, 3]
    assert first(runs, "pay.POST /pay#1.unacknowledged").verdict == "same"
    blame = blame_of("pay.POST /pay", [run.judgement for run in runs if run.judgement and run.judgement.mended])
    assert blame and set(blame.minimal) == {frozenset({"key"}), frozenset({"lease"})}


@pytest.mark.parametrize(("mode", "verdict"), [("looks lease", "same"), ("looks keyed", "absorbed")])
def test_two_processes_that_go_on_together_pay_once_under_a_lease_or_a_key(tmp_path: Path, mode: str, verdict: str) -> None:
    runs = probed(tmp_path, payer_of(tmp_path, mode), "#1.resumed_twice", until=RESUMED_TWICE)
    assert first(runs, RESUMED_TWICE).verdict == verdict


def test_nobody_resumes_twice_an_agent_without_a_command_that_resumes_it_and_without_a_memory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--only resumed_twice: no cell has this in its name"):
        probed(tmp_path, replace(payer_of(tmp_path, "looks"), remembers=False), "resumed_twice")


@pytest.mark.parametrize(
    ("mode", "point", "verdict"),
    [("ships", "redelivered", "lost"), ("ships", "twice", "absorbed"), ("ships numbered", "redelivered", "absorbed")],
)
def test_a_request_that_is_delivered_again_later_finds_more_than_one_that_comes_twice_at_once(
    tmp_path: Path, mode: str, point: str, verdict: str
) -> None:
    plan = f"pay.POST /state#1.{point}"
    judged = first(probed(tmp_path, payer_of(tmp_path, mode), f"#1.{point}", until=plan), plan)
    assert judged.verdict == verdict
    assert all(finding.culprit == "tool" for finding in judged.findings)


@pytest.mark.parametrize(("mode", "verdict"), [("debits", "overwritten"), ("debits swaps", "same"), ("debits adds", "same")])
def test_what_another_writer_changed_meanwhile_has_to_stand(tmp_path: Path, mode: str, verdict: str) -> None:
    plan = f"pay.POST {'/debit' if 'adds' in mode else '/balance'}#1.meanwhile"
    subject = payer_of(tmp_path, mode)
    truth = replace(subject, checks=(OwnersCheck("shop", "SELECT cents FROM account"),))
    runs = probed(tmp_path, truth, "#1.meanwhile", until="" if mode == "debits" else plan)
    cell = next(run for run in runs if run.plan == plan)
    assert cell.judgement and cell.judgement.verdict == verdict
    assert [cell.texts[check] for check in cell.judgement.checks] == [f"[({4500 if verdict == 'overwritten' else 4507},)]"]
    if mode == "debits":
        blame = blame_of("pay.POST /balance", [run.judgement for run in runs if run.judgement and run.judgement.mended])
        assert blame and blame.minimal == (frozenset({"swap"}),)


@pytest.mark.parametrize(
    ("mode", "verdict", "left"),
    [("triages", "same", 3), ("triages file raises", "overwritten", 3)],
)
def test_a_number_that_is_set_whatever_it_was_overwrites_nothing(tmp_path: Path, mode: str, verdict: str, left: int) -> None:
    plan = "pay.POST /priority#1.meanwhile"
    subject = replace(payer_of(tmp_path, mode), checks=(OwnersCheck("shop", "SELECT priority FROM ticket"),))
    words = (*subject.agent.start, str(tmp_path / "shop.db"))
    subject = replace(subject, agent=replace(subject.agent, start=words, resume=words))
    runs = probed(tmp_path, subject, "#1.meanwhile", until=plan)
    assert runs[-1].judgement and runs[-1].judgement.verdict == verdict
    assert [runs[-1].texts[check] for check in runs[-1].judgement.checks] == [f"[({left},)]"]
    assert [(run.plan, first(runs, EARLY).call) for run in runs if run.plan == EARLY] == [(EARLY, "pay.POST /priority#1")]


@pytest.mark.parametrize(
    ("mode", "verdict", "early"),
    [
        ("takes", "overwritten", ["no_verdict", "no_verdict"]),
        ("takes versioned", "same", ["no_verdict", "same"]),
        ("takes versioned once", "same", ["no_verdict", "same"]),
    ],
)
def test_an_agent_that_heeds_the_version_of_a_row_overwrites_nothing(
    tmp_path: Path, mode: str, verdict: str, early: list[str]
) -> None:
    plan = "pay.POST /stock#1.meanwhile"
    truth = replace(payer_of(tmp_path, mode), checks=(OwnersCheck("shop", "SELECT amount, version FROM stock"),))
    runs = probed(tmp_path, truth, "#1.meanwhile", until=plan)
    judged = [run.judgement for run in runs if run.judgement]
    assert judged[-1].verdict == verdict
    assert [run.verdict for run, made in zip(judged, runs, strict=True) if made.plan == EARLY] == early
    overwritten = [finding.rows for run in judged for finding in run.findings if finding.kind == "overwritten"]
    assert all(len(rows) == 1 for rows in overwritten)
    # another writer adds 7 in all runs, and in the last of them counts the version up too
    [left] = [runs[-2].texts[check] for check in judged[-2].checks]
    assert left == {"takes": "[(97, 4)]", "takes versioned": "[(104, 4)]", "takes versioned once": "[(107, 3)]"}[mode]


class NotReady(Worker):
    """Its services are not ready where another writer is to come before the agent."""

    async def run(self, masks: Masks, fault: CellFault | None = None, **rest: Any) -> AgentRun:
        if fault and fault.early:
            raise ConfigError("service pay is not ready")
        return await super().run(masks, fault, **rest)


def test_an_overwritten_number_stays_one_where_the_further_run_cannot_be_made(tmp_path: Path) -> None:
    plan = "pay.POST /priority#1.meanwhile"
    cell = probed(tmp_path, payer_of(tmp_path, "triages"), "#1.meanwhile", until=plan, kind=NotReady)[-1]
    assert cell.judgement and cell.judgement.verdict == "overwritten"


@pytest.mark.parametrize(("mode", "verdict"), [("approves", "changed"), ("approves shown", "gave_up")])
def test_what_was_approved_before_it_changed_is_not_paid_as_it_is_now(tmp_path: Path, mode: str, verdict: str) -> None:
    step, plan = OthersStatement("shop", "UPDATE bill SET cents = 99900", "pay.POST /settle"), "pay.POST /settle#1.meanwhile"
    subject = replace(payer_of(tmp_path, mode), meanwhile=(step,))
    truth = replace(subject, checks=(OwnersCheck("shop", "SELECT cents FROM payment"),))
    cell = next(run for run in probed(tmp_path, truth, "#1.meanwhile", until=plan) if run.plan == plan)
    assert cell.judgement and cell.judgement.verdict == verdict
    assert [cell.texts[check] for check in cell.judgement.checks] == ["[(99900,)]" if verdict == "changed" else "[]"]


def test_what_the_agent_leaves_running_is_named_since_nobody_sees_what_it_does(tmp_path: Path) -> None:
    [command] = planned(probed(tmp_path, payer_of(tmp_path, "keyed leaves"), "#1.lost", until=LOST)).left_running
    assert command.endswith("-c import time; time.sleep(600)")
