"""The gate before an effect: whom it asks, and what the person is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trials import matrix_of, run_all
from trips import BARE, REMEDIED, Trip, effects, harm, waited, worked

from bench.record.events import Faulted, of_kind
from bench.record.form import Approval
from bench.record.world_events import PersonAsked, PersonDecided, ProcessDied
from bench.run.experiment.trial import TrialResult
from bench.worlds.run.environment.people import REVIEWER

DEAR = Trip(1, 900)


def test_who_is_asked_is_shown_the_rows_that_the_effect_would_change_and_its_risks() -> None:
    [asked] = of_kind(worked("state_machine", REMEDIED, trips=[DEAR]).record.events, PersonAsked)
    assert asked.shown.splitlines() == [
        "pay: payment for trip 1",
        "risk: it cannot be taken back",
        "risk: the policy wants a person: large (900 is more than 500)",
        "+ payments: trip 1, amount 900",
    ]


@pytest.mark.parametrize(
    "pack", ["contract_renewal", "incident_response", "support_desk", "service_upgrade:pull_request", "payment_run:5"]
)
def test_in_every_pack_a_reviewer_is_shown_what_each_effect_would_change_and_its_risks(pack: str) -> None:
    asks = {"base": "state_machine", "remedies": True, "approval": "always"}
    [result] = run_all(matrix_of(pack, architectures=["asks"], architecture={"asks": asks}, instances=1))
    shown = [asked.shown.splitlines() for asked in of_kind(result.record.events, PersonAsked)]
    assert shown and all(any(line.startswith("risk: ") for line in lines) for lines in shown)
    changes = [line for lines in shown for line in lines if line[:2] in ("+ ", "- ", "~ ")]
    assert len(changes) >= len(shown) / 2, "most effects change rows that can be shown ahead"
    assert max(map(len, shown)) < 20


def test_a_gate_shows_every_pattern_the_same_of_the_same_effect() -> None:
    shown = {
        asked.shown
        for pattern, form in (("human_in_the_loop", BARE), ("composition", BARE), ("supervisor_gate", REMEDIED))
        for asked in of_kind(worked(pattern, form, trips=[DEAR]).record.events, PersonAsked)
    }
    assert len(shown) == 1


def test_behind_a_throttled_gate_remedies_wait_and_bare_patterns_give_up() -> None:
    throttled = [{"point": "tool", "effect": "throttled", "tool": "pay", "attempts": [1, 2, 3], "minutes": 30}]
    bare, remedied = (worked("human_in_the_loop", form, throttled, [DEAR]) for form in (BARE, REMEDIED))
    assert "pay" not in effects(bare)
    assert (effects(remedied).count("pay"), remedied.record.outcome) == (1, "solved")


def asking(approval: Approval, *, says: str = "", trip: Trip = DEAR) -> TrialResult:
    """A trial of the durable row that asks before these effects, of people who answer in this manner."""
    faults = [{"point": "event", "effect": says, "event": "answer", "attempts": [1]}] if says else []
    return worked("state_machine", replace(REMEDIED, approval=approval), faults, [trip])


def people(result: TrialResult) -> list[str]:
    return [asked.person for asked in of_kind(result.record.events, PersonAsked)]


def test_a_person_is_asked_of_nothing_of_what_is_risky_or_of_every_effect() -> None:
    never, risky, always = (asking(approval) for approval in ("never", "risky", "always"))
    assert (people(never), harm(never)) == ([], {"unauthorised": 1})
    assert (len(people(risky)), harm(risky)) == (1, {})
    assert len(people(always)) == len(effects(always))
    assert people(always).count(REVIEWER) == len(effects(always)) - 1
    assert waited(always) > waited(risky) > waited(never) == 0


def test_a_person_who_says_yes_to_all_takes_the_wrong_away_from_no_effect() -> None:
    private = Trip(1, 900, reason="private")
    assert "pay" not in effects(asking("risky", trip=private))
    assert "pay" in effects(asking("risky", says="says_yes", trip=private))


def test_a_models_yes_in_a_persons_place_is_taken_bare_and_with_remedies_the_person_is_waited_for() -> None:
    faults = [{"point": "event", "effect": "model_answers", "event": "answer", "attempts": [1]}]
    bare, remedied = (worked("human_in_the_loop", form, faults, [DEAR]) for form in (BARE, REMEDIED))
    assert (effects(bare).count("pay"), harm(bare)) == (1, {"unauthorised": 1})
    assert (effects(remedied).count("pay"), harm(remedied), remedied.record.outcome) == (1, {}, "solved")
    assert waited(remedied) > waited(bare)


@pytest.mark.parametrize(("says", "answers"), [("never_answers", {"late"}), ("contradicts", {"approved"})])
def test_who_never_answers_has_not_agreed_and_who_contradicts_is_heard_at_the_first_word(says: str, answers: set[str]) -> None:
    result = asking("risky", says=says)
    assert {decided.said for decided in of_kind(result.record.events, PersonDecided)} == answers
    assert [fault.effect for fault in of_kind(result.record.events, Faulted) if fault.stage == "delivered"] == [says]


def test_a_question_outlives_a_death_while_it_is_pending_with_remedies_and_is_asked_anew_without() -> None:
    dies = [{"point": "process", "effect": "approval_pending", "attempts": [1]}]
    bare, remedied = (worked("human_in_the_loop", form, dies, [DEAR]) for form in (BARE, REMEDIED))
    for result, tickets in ((remedied, 1), (bare, 2)):
        assert next(died.point for died in of_kind(result.record.events, ProcessDied)) == "approval_pending"
        assert len({asked.ticket for asked in of_kind(result.record.events, PersonAsked)}) == tickets
    assert (harm(remedied), effects(remedied).count("pay")) == ({}, 1)
