"""A pattern's forms: how a config asks for one, and what the boundary's three settings each change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from trips import AGAINST_POLICY, ONE, PACK, PATTERNS, REMEDIED, Says, Trip, denying, effects, environment, harm, worked

from bench.common.errors import ConfigError
from bench.record.events import Called, of_kind
from bench.record.form import BARE, Form
from bench.record.world_events import ToolCalled
from bench.run.architectures.registry import ARCHITECTURES, architecture_named, load_architecture
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix

LOST = [{"point": "tool", "effect": "lost_ack", "tool": "pay", "attempts": [1]}]


def matrix_of(**variant: Any) -> Any:
    values = {
        "name": "t",
        "scenarios": ["trips"],
        "architectures": ["mine"],
        "models": ["m"],
        "plans": ["none"],
        "repetitions": 1,
        "seed": 1,
        "model": {"m": {"kind": "simulated"}},
        "architecture": {"mine": variant},
    }
    return build_matrix(Config.model_validate(values), (), "code", scenarios={"trips": PACK})


def test_a_variant_asks_for_a_form_and_is_another_trial_by_it() -> None:
    bare, remedied = matrix_of(base="state_machine"), matrix_of(base="state_machine", remedies=True)
    keyed = matrix_of(base="state_machine", commit="idempotent")
    assert len({each.specs[0].id for each in (bare, remedied, keyed)}) == 3


def test_an_architecture_with_one_form_refuses_another() -> None:
    with pytest.raises(ConfigError, match="has but one form; leave `remedies`"):
        load_architecture(architecture_named("clerks:bare"), form=Form(remedies=True))


@pytest.mark.parametrize(("commit", "doubled"), [("plain", 1), ("idempotent", 0), ("compare_and_swap", 0)])
def test_a_lost_receipt_doubles_an_effect_that_has_no_key(commit: Any, doubled: int) -> None:
    assert harm(worked("bare_agent", Form(commit=commit), LOST)).get("doubled", 0) == doubled


@pytest.mark.parametrize(("commit", "carrier"), [("idempotent", "north"), ("compare_and_swap", "south")])
def test_only_compare_and_swap_sees_that_the_world_has_moved_since_it_was_read(commit: Any, carrier: str) -> None:
    """A booking that takes so long that the strike comes before it."""
    slow = [{"point": "tool", "effect": "slow", "tool": "book_flight", "attempts": [1], "minutes": 3 * 24 * 60}]
    world = replace(environment(ONE, [1]), procedure=environment(ONE).procedure)
    result = worked("bare_agent", Form(commit=commit), slow, world=world)
    assert result.record.outcome == ("solved" if carrier == "south" else "wrong")


WITHOUT_SCHEMA = '{"book": true, "amount": 300.5}'


@pytest.mark.parametrize(("strength", "asked"), [("schema", 1), ("policy", 2), ("business_rule", 2)])
def test_a_boundary_with_policy_rejects_what_the_policy_would_deny(strength: Any, asked: int) -> None:
    model = Says(AGAINST_POLICY)
    result = worked("bare_agent", Form(strength=strength), world=denying(), model=model)
    assert len(model.heard) == asked
    assert bool(harm(result).get("unauthorised")) is (asked == 1)


@pytest.mark.parametrize(("strength", "asked"), [("none", 1), ("schema", 2)])
def test_a_boundary_without_strength_takes_any_object(strength: Any, asked: int) -> None:
    model = Says(WITHOUT_SCHEMA)
    worked("bare_agent", Form(strength=strength), model=model)
    assert len(model.heard) == asked


def test_a_typed_signal_says_why_an_untyped_one_that_and_a_success_that_is_none_ends_the_step() -> None:
    heard = {}
    for signal in ("typed", "untyped", "as_success"):
        model = Says(AGAINST_POLICY)
        result = worked("bare_agent", Form(strength="policy", signal=signal), world=denying(), model=model)
        heard[signal] = model.heard
        assert ("pay" in effects(result)) is (signal != "as_success")
    assert "499 is not the price" in heard["typed"][1]
    assert "499 is not the price" not in heard["untyped"][1] and "it was not accepted" in heard["untyped"][1]
    assert len(heard["as_success"]) == 1


def test_the_bare_form_is_the_form_of_a_name_without_a_variant() -> None:
    assert effects(worked("bare_agent", BARE)) == effects(worked(load_architecture(ARCHITECTURES["bare_agent"])))


def test_with_remedies_a_judgment_of_which_nothing_is_accepted_costs_its_step_and_not_the_others() -> None:
    model = Says(*["no JSON"] * 3)
    result = worked("bare_agent", Form(remedies=True), trips=[Trip(1, 300), Trip(2, 200)], model=model)
    assert result.record.outcome == "wrong"
    assert effects(result).count("pay") == 1


def test_a_form_that_says_nothing_of_approval_has_the_settings_that_it_had_before_there_was_one() -> None:
    assert Form(remedies=True).settings == {"remedies": True, "strength": None, "commit": None, "signal": None}
    assert Form(approval="never").settings["approval"] == "never"
    assert Form(deadline=10).settings["deadline"] == 10


TYPED = Form(remedies=True, strength="schema")
HANGS = [{"point": "tool", "effect": "slow", "tool": "read_trip", "attempts": [1], "minutes": 3 * 24 * 60}]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_read_that_hangs_is_given_up_at_the_deadline_and_made_again(pattern: str) -> None:
    """Without a deadline the agent waits for three days."""
    paid = [
        next(
            event.day
            for event in worked(pattern, form, HANGS).record.events
            if isinstance(event, ToolCalled) and event.tool == "pay"
        )
        for form in (REMEDIED, replace(REMEDIED, deadline=10))
    ]
    assert paid[0] >= 3 > paid[1]


def test_a_deadline_gives_up_no_write_since_it_may_happen_later() -> None:
    slow = [{"point": "tool", "effect": "slow", "tool": "pay", "attempts": [1], "minutes": 60}]
    calls = [event for event in worked("bare_agent", Form(deadline=10), slow).record.events if isinstance(event, ToolCalled)]
    assert [call.outcome for call in calls if call.tool == "pay"] == ["done"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_who_catches_up_hears_of_an_event_of_which_no_notice_came(pattern: str) -> None:
    missed = [{"point": "event", "effect": "missed", "event": "requested", "attempts": [1]}]
    assert effects(worked(pattern, REMEDIED, missed)) == []
    told = worked(pattern, replace(REMEDIED, catches_up=True), missed)
    assert (told.record.outcome, harm(told)) == ("solved", {})


@pytest.mark.parametrize("erring", [1, 2])
@pytest.mark.parametrize(("form", "heeded"), [(BARE, 2), (TYPED, 1)])
def test_of_children_that_disagree_the_last_has_the_word_and_with_remedies_the_first(
    form: Form, heeded: int, erring: int
) -> None:
    errs = {"point": "output", "effect": "wrong_value", "probability": 1.0}
    only = [{"target": "choose", "attempt": 1, "sample": erring}]
    result = worked("hierarchical_delegation", replace(form, children=2), [{**errs, "only": only}])
    assert (result.record.outcome == "solved") is (erring != heeded)
    assert len(of_kind(result.record.events, Called)) == 2
