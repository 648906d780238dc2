"""The gate before an effect: whom it asks, and what the person is shown."""

from __future__ import annotations

from trips import BARE, REMEDIED, Trip, effects, worked

from bench.runtime.events import of_kind
from bench.worlds.runtime.events import PersonAsked

DEAR = Trip(1, 900)


def test_who_is_asked_is_shown_the_rows_that_the_effect_would_change_and_its_risks() -> None:
    [asked] = of_kind(worked("state_machine", REMEDIED, trips=[DEAR]).record.events, PersonAsked)
    assert asked.shown.splitlines() == [
        "pay: payment for trip 1",
        "risk: it cannot be taken back",
        "risk: the policy wants a person: large (900 is more than 500)",
        "+ payments: trip 1, amount 900",
    ]


def test_a_gate_shows_every_pattern_the_same_of_the_same_effect() -> None:
    shown = {
        asked.shown
        for pattern, form in (("human_in_the_loop", BARE), ("composition", BARE), ("supervisor_gate", REMEDIED))
        for asked in of_kind(worked(pattern, form, trips=[DEAR]).record.events, PersonAsked)
    }
    assert len(shown) == 1


def test_behind_a_gate_that_is_throttled_a_remedied_pattern_waits_as_long_as_it_is_told_and_a_bare_one_gives_up() -> None:
    throttled = [{"point": "tool", "effect": "throttled", "tool": "pay", "attempts": [1, 2, 3], "minutes": 30}]
    bare, remedied = (worked("human_in_the_loop", form, throttled, [DEAR]) for form in (BARE, REMEDIED))
    assert "pay" not in effects(bare)
    assert (effects(remedied).count("pay"), remedied.record.outcome) == (1, "solved")
