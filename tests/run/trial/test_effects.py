"""An effect changes what it strikes, in the way that its name says, or says that it cannot."""

from __future__ import annotations

import itertools
import json
from random import Random
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import TINY, loaded_packs

from bench.run.trial.decoding import Extracted
from bench.run.trial.effects import EFFECTS, Target, TextEffect, dump
from bench.run.trial.verification import Rejected, Unreadable, extract, validate
from bench.scenario import Json, Output, Scenario, Subtask

SCENARIOS = [*loaded_packs().values()]
OUTPUTS = [(scenario, subtask) for scenario in SCENARIOS for subtask in scenario.task.subtasks]
ON_TEXT = {effect.name: effect for effect in EFFECTS if isinstance(effect, TextEffect)}
ON_ANY = [name for name, effect in ON_TEXT.items() if not effect.alarms]
"""Those that strike any subtask's output."""
SEEDS = st.integers(0, 2**32)


def target(scenario: Scenario, subtask: Subtask, wrong_outputs: tuple[Json, ...] = (), earlier: str | None = None) -> Target:
    value = scenario.reference[subtask.name]
    return Target(dump(value), value, subtask.output, earlier, wrong_outputs)


def strike(name: str, struck: Target, seed: int = 0) -> str | None:
    return ON_TEXT[name].strike(struck, Random(seed))


@given(st.sampled_from(sorted(ON_ANY)), st.sampled_from(OUTPUTS), SEEDS, st.booleans(), st.booleans())
def test_an_effect_on_an_output_always_changes_it_and_is_the_same_for_the_same_draw(
    name: str, output: tuple[Scenario, Subtask], seed: int, with_decoys: bool, with_earlier: bool
) -> None:
    scenario, subtask = output
    wrong_outputs = scenario.wrong_outputs.get(subtask.name, ()) if with_decoys else ()
    struck = target(scenario, subtask, wrong_outputs, dump(scenario.reference[subtask.name]) if with_earlier else None)
    before = json.dumps(struck.value)
    changed = strike(name, struck, seed)
    assert changed is not None
    assert changed != struck.text
    assert changed == strike(name, struck, seed)
    assert json.dumps(struck.value) == before, "the value itself was changed"


@given(st.sampled_from(sorted(ON_TEXT)), st.text(), SEEDS)
def test_an_effect_on_a_text_changes_it_or_says_that_it_cannot(name: str, text: str, seed: int) -> None:
    changed = strike(name, Target(text), seed)
    assert changed is None or changed != text


@pytest.mark.parametrize("name", [name for name, effect in ON_TEXT.items() if effect.needs_json])
def test_an_effect_on_json_cannot_strike_a_text_without_any(name: str) -> None:
    assert strike(name, Target("no JSON at all")) is None


@given(st.sampled_from(["missing_field", "wrong_type"]), st.sampled_from(OUTPUTS), SEEDS)
def test_a_broken_field_never_passes_the_schema(name: str, output: tuple[Scenario, Subtask], seed: int) -> None:
    scenario, subtask = output
    changed = strike(name, target(scenario, subtask), seed)
    assert changed is not None
    assert isinstance(validate(subtask, json.loads(changed)), Rejected)


class Line(Output):
    needed: int
    noted: str = ""


class Partly(Output):
    lines: list[Line]
    title: str = "none"


@given(st.sampled_from(["missing_field", "wrong_type"]), SEEDS)
def test_only_required_fields_are_broken_however_deep(name: str, seed: int) -> None:
    value = {"title": "t", "lines": [{"needed": 1, "noted": "n"}, {"needed": 2, "noted": "m"}]}
    changed = json.loads(str(strike(name, Target(dump(value), value, Partly), seed)))
    assert changed["title"] == "t"
    lines = changed.get("lines")
    if isinstance(lines, list):
        assert [line["noted"] for line in lines] == ["n", "m"]
        assert sum(line.get("needed") not in (1, 2) for line in lines) == 1


def test_a_value_without_a_required_field_has_none_to_lose() -> None:
    assert strike("missing_field", Target('{"title": "t"}', {"title": "t"}, Partly)) is None


@given(st.sampled_from(OUTPUTS), SEEDS, st.booleans())
def test_a_wrong_value_is_valid_by_schema_and_another_value(
    output: tuple[Scenario, Subtask], seed: int, with_decoys: bool
) -> None:
    scenario, subtask = output
    changed = strike(
        "wrong_value", target(scenario, subtask, scenario.wrong_outputs.get(subtask.name, ()) if with_decoys else ()), seed
    )
    assert changed is not None
    assert not isinstance(validate(subtask, json.loads(changed)), Rejected)
    assert json.loads(changed) != scenario.reference[subtask.name]


@given(st.sampled_from(OUTPUTS), SEEDS)
def test_a_truncated_object_is_cut_off(output: tuple[Scenario, Subtask], seed: int) -> None:
    changed = strike("truncated", target(*output), seed)
    assert changed is not None
    reading = extract(changed)
    assert isinstance(reading, Unreadable)
    assert reading.reason == "cut_off"


@pytest.mark.parametrize(("name", "reason"), [("not_json", "not_json"), ("empty", "empty"), ("refusal", "refusal")])
def test_a_reply_without_json_is_read_as_what_it_is(name: str, reason: str) -> None:
    for (scenario, subtask), seed in itertools.product(OUTPUTS, range(5)):
        reading = extract(str(strike(name, target(scenario, subtask), seed)))
        assert not isinstance(reading, Extracted), (scenario.name, subtask.name)
        assert reading.reason == reason, (scenario.name, subtask.name)


GATHER = TINY.task.subtasks[0]


@pytest.mark.parametrize("effect", sorted(ON_TEXT))
def test_an_output_of_many_values_that_fits_no_schema_is_struck_in_good_time(effect: str) -> None:
    value: Json = {"deliveries": [1] * 4000}
    began = process_time()
    strike(effect, Target(dump(value), value, GATHER.output, None, ()))
    assert process_time() - began < 5  # a tenth of a second


@pytest.mark.parametrize("number", [10**400, -(10**400), 10**4300 - 1])
def test_a_number_that_no_float_holds_is_struck_as_any_other(number: int) -> None:
    value: Json = {"deliveries": [{"day": "Monday", "apples": number}], "confidence": 1}
    for effect, seed in itertools.product(ON_TEXT, range(20)):
        assert strike(effect, Target(dump(value), value, GATHER.output, None, ()), seed) != dump(value)


def test_a_decoy_that_the_model_gave_itself_is_no_wrong_value() -> None:
    total = TINY.task.subtask("total")
    right, wrong = TINY.reference["total"], {"total": 47, "unit": "apples"}
    for seed in range(10):
        assert json.loads(str(strike("wrong_value", target(TINY, total, (right, wrong)), seed))) == wrong


def test_stale_is_the_version_before_and_where_there_is_none_the_first_half() -> None:
    gather = TINY.task.subtask("gather")
    assert strike("stale", target(TINY, gather, earlier="as it was")) == "as it was"
    halved = json.loads(str(strike("stale", target(TINY, gather))))
    assert halved["deliveries"] == TINY.reference["gather"]["deliveries"][:1]
    assert strike("stale", Target("one\ntwo\nthree\nfour\n")) == "one\ntwo\n"
