"""Every pack, on every architecture, under every fault: no trial ends in an error, and its record adds up.

The short form has a quarter of all packs, faults and triggers, in which each pack meets each trigger and half of the faults or
more, and each fault each trigger on several packs; the long form has the others. Of the faults of worlds the short form has one
for each world but `service_upgrade`, whose trials take longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from trials import AVAILABLE, CALLS, CELLS, OURS, ROOTS, answered_packs, events, matrix_of, needs_json, run_all, stages

from bench.cli.authoring.hooks import TaskHooks
from bench.cli.authoring.soundness import WORLD_CHECKS
from bench.record.events import Answered, Called, Committed, Event, Faulted, Judged
from bench.record.ledger import book, imbalance
from bench.record.lineage import Lineage
from bench.record.record import RECORD, TrialRecord
from bench.record.world_events import ProcessDied
from bench.run.experiment.trial import TrialResult
from bench.run.packs import instances_of, load_pack, variants_of
from bench.scenario import Scenario
from bench.worlds.run.effects import EFFECTS as WORLD_EFFECTS
from bench.worlds.run.entries import MODEL_LED, PATTERNS

FENCED = " in code blocks"
PACKS = [*answered_packs(), f"workshop{FENCED}"]
VARIANTS = [f"{name}:{size}" for name in answered_packs() for size in variants_of(AVAILABLE[name])]
VALIDATED = [name for name in VARIANTS if any(subtask.finds for subtask in load_pack(name, ROOTS).task.subtasks)]
"""Those with a subtask that can find an earlier one's output wrong."""
WORLDS = [name for name in AVAILABLE if name not in answered_packs()]
TRIGGERS: dict[str, dict[str, object]] = {
    "first": {"attempts": [1]},
    "persistent": {"attempts": "every"},
    "once an attempt": {"probability": 1.0},
}
"""A content fault of probability 1 is a persistent one. A call fault is not: that strikes every request."""
VARIED: dict[str, dict[str, object]] = {
    **{f"{base}_parallel": {"base": base, "parallel": True} for base in ("static", "runtime_structured")},
    "learned": {"base": "learned_policy", "policy": Path(__file__).parents[1] / "support" / "orchard_policy.json"},
    "untold": {"base": "runtime_structured", "repair": "none"},
}
IN_WORLDS = (*PATTERNS, *MODEL_LED)
MENDED: dict[str, dict[str, object]] = {f"{name}_remedied": {"base": name, "remedies": True} for name in IN_WORLDS}
FORKS = "orchard"
"""The pack on which these forms are run: in a chain the parallel ones are the forms that ask one after another."""
STRUCTURAL = ("missing_field", "wrong_type", "truncated", "not_json", "empty", "refusal")
FORMS = 4
"""The short form is one of so many parts."""
FEW = 2
"""Instances of a pack: they differ in their texts, not in what can happen to them."""
MOST_SUBTASKS = 6
"""Of a pack in its first variant. One call for all of them fails once for the fault of each."""
NEVER_FATAL = ("rate_limit", "server_error", "timeout", "cut_off", "slow")
LAWFUL = {
    ("planned", "delivered", "recovered"),
    ("planned", "delivered", "undetected"),
    ("planned", "delivered", "gave_up"),
    ("planned", "delivered", "detected", "recovered"),
    ("planned", "delivered", "detected", "gave_up"),
}


def ran(pack: str, effect: str, point: str, trigger: str) -> Mapping[str, TrialResult]:
    """The results by architecture and, of a pack that has several, instance."""
    fenced = pack.endswith(FENCED)
    model = {"wrapping": fenced, "answer_format": "fenced" if fenced else "json"}
    plans = {"plan": [{"point": point, "effect": effect, **TRIGGERS[trigger]}]}
    architectures = [*OURS, *(VARIED if pack == FORKS else ())]
    settings = {"instances": FEW, "back_off": {"tries": MOST_SUBTASKS + 1}, "architecture": VARIED}
    matrix = matrix_of(pack.removesuffix(FENCED), plans, model, architectures=architectures, **settings)
    return {f"{result.record.architecture}/{result.record.instance}": result for result in run_all(matrix)}


def cells() -> list[Any]:
    """Each pack under each fault by each trigger that is one of its own there."""
    return [
        pytest.param(pack, *fault, trigger, marks=_form(pack, fault, trigger))
        for pack in PACKS
        for fault in CELLS
        for trigger in TRIGGERS
        if fault[1] == "call" or trigger != "once an attempt"
    ]


def _form(pack: str, fault: tuple[str, str], trigger: str) -> list[pytest.MarkDecorator]:
    place = PACKS.index(pack) + CELLS.index(fault) + list(TRIGGERS).index(trigger)
    return [pytest.mark.endurance] if place % FORMS else []


@pytest.mark.parametrize("pack", VARIANTS)
def test_without_a_fault_every_architecture_solves_every_pack_at_the_first_try(pack: str) -> None:
    for result in run_all(matrix_of(pack, instances=FEW)):
        architecture = result.record.architecture
        assert result.record.outcome == "solved", (architecture, result.record.reason)
        assert {call.cause for call in events(result, Called)} == {"first"}, architecture
        assert not events(result, Faulted), architecture


@pytest.mark.parametrize(("pack", "effect", "point", "trigger"), cells())
def test_no_fault_ends_in_an_error_every_record_adds_up_and_each_fault_comes_to_its_end(
    pack: str, effect: str, point: str, trigger: str
) -> None:
    for architecture, result in ran(pack, effect, point, trigger).items():
        record = result.record
        assert record.outcome != "error", (architecture, record.reason)
        assert sum(call.tokens_in + call.tokens_out for call in events(result, Called)) == record.tokens
        assert imbalance(book(record.events), record.tokens) is None
        assert_texts_are_kept(result)
        assert_lineage_is_closed(result)
        assert_failures_cause_retries(result)
        assert RECORD.validate_json(RECORD.dump_json(record)) == record
        assert_each_fault_is_delivered_and_followed(result, effect, point, architecture)
        if point == "output" and effect in STRUCTURAL and trigger == "first":
            assert_a_broken_first_reply_is_recovered_from(result, architecture)
        if point == "output" and effect in STRUCTURAL and trigger == "persistent":
            assert_it_gives_up_where_every_reply_is_broken(result, architecture)
        if point == "call" and effect in NEVER_FATAL and trigger != "persistent":
            assert record.outcome == "solved", (architecture, record.reason)
        if point == "call" and effect in NEVER_FATAL and CALLS[effect].fails and trigger == "persistent":
            assert_it_gives_up_after_the_tries_of_one_call(result, architecture)


@pytest.mark.parametrize("pack", VALIDATED)
def test_a_validation_that_refuses_a_right_output_is_recovered_from(pack: str) -> None:
    for architecture, result in ran(pack, "says_no", "output", "first").items():
        assert result.record.outcome == "solved", (architecture, result.record.reason)
        ways = Counter(map(tuple, stages(result).values()))
        assert ways["planned", "delivered", "detected", "recovered"] == 1, architecture
        assert set(ways) <= {("planned", "not_applicable"), ("planned", "delivered", "detected", "recovered")}, architecture
        assert_failures_cause_retries(result)
        assert imbalance(book(result.record.events), result.record.tokens) is None


@pytest.mark.parametrize("answer_format", ["schema", "fenced"])
@pytest.mark.parametrize("pack", answered_packs())
def test_every_pack_is_solved_in_every_answer_format(pack: str, answer_format: str) -> None:
    for result in run_all(matrix_of(pack, answer_format=answer_format, instances=FEW)):
        assert result.record.outcome == "solved", result.record.reason
        assert {call.cause for call in events(result, Called)} == {"first"}


@pytest.mark.parametrize("pack", WORLDS)
def test_every_world_is_sound(pack: str) -> None:
    for instance in instances_of(pack, ROOTS)[:FEW]:
        hooks = TaskHooks(load_pack(pack, ROOTS, instance), AVAILABLE[pack])
        assert [problem for check in WORLD_CHECKS.values() for problem in check(hooks).problems] == []


def world_cells() -> list[Any]:
    """Each world under each fault of worlds."""
    short = {(pack, (place + 1) * len(WORLD_EFFECTS) // len(WORLDS) - 1) for place, pack in enumerate(WORLDS)}
    short = {(pack, number) for pack, number in short if pack != "service_upgrade"}
    return [
        pytest.param(pack, effect.name, marks=[] if (pack, number) in short else [pytest.mark.endurance])
        for place, pack in enumerate(WORLDS)
        for number, effect in enumerate(WORLD_EFFECTS)
    ]


@pytest.mark.parametrize(("pack", "effect"), world_cells())
def test_in_a_world_no_fault_ends_in_an_error_and_each_is_followed_to_its_end(pack: str, effect: str) -> None:
    [part] = (each for each in WORLD_EFFECTS if each.name == effect)
    [point] = part.points
    target = {"event": "*"} if point == "event" else {"tool": "*"} if part.on else {}
    plans = {"plan": [{"point": point, "effect": effect, "attempts": [1], **target}]}
    architectures = [*IN_WORLDS, *MENDED]
    matrix = matrix_of(pack, plans, {"wrapping": False}, architectures=architectures, architecture=MENDED, instances=1)
    for result in run_all(matrix):
        record = result.record
        assert record.outcome != "error", (record.architecture, record.reason)
        assert sum(call.tokens_in + call.tokens_out for call in events(result, Called)) == record.tokens
        assert imbalance(book(record.events), record.tokens) is None
        assert_texts_are_kept(result)
        assert_failures_cause_retries(result)
        assert RECORD.validate_json(RECORD.dump_json(record)) == record
        assert record.outcome != "solved" or not any("gave_up" in way for way in stages(result).values())
        assert {tuple(way) for way in stages(result).values()} <= {*LAWFUL, ("planned", "not_applicable")}


def test_an_event_of_a_kind_that_nobody_knows_yet_is_kept_as_it_stands_and_read_over() -> None:
    [result] = run_all(matrix_of(architectures=["static"]))
    later = {"kind": "tool_called", "tool": "refund", "args": {"order": 7}}
    record = replace(result.record, events=(*result.record.events[:3], later, *result.record.events[3:]))
    back = RECORD.validate_json(RECORD.dump_json(record))
    assert isinstance(back, TrialRecord)
    assert back == record
    assert book(back.events) == book(result.record.events)
    assert Lineage(back.events).of_answer == Lineage(result.record.events).of_answer


def reads_the_same(result: TrialResult, number: int) -> bool:
    """Whether a fault struck a reply that was read as before: it is then not applicable."""
    return any(event.fault == number and event.detail.endswith("reads the same") for event in events(result, Faulted))


def assert_each_fault_is_delivered_and_followed(result: TrialResult, effect: str, point: str, architecture: str) -> None:
    for number, way in stages(result).items():
        assert tuple(way) in LAWFUL or reads_the_same(result, number), (architecture, number, way)
    seen_by_nobody = point == "input" and architecture.startswith("monolithic") and needs_json(effect, point)
    assert bool(stages(result)) is not seen_by_nobody, architecture


def assert_a_broken_first_reply_is_recovered_from(result: TrialResult, architecture: str) -> None:
    assert result.record.outcome == "solved", (architecture, result.record.reason)
    struck = [way for number, way in stages(result).items() if not reads_the_same(result, number)]
    assert {way[-1] for way in struck} <= {"recovered"}
    assert all("detected" in way for way in struck), architecture


def assert_it_gives_up_where_every_reply_is_broken(result: TrialResult, architecture: str) -> None:
    assert result.record.outcome == "gave_up", architecture
    asked = Counter(name for call in events(result, Called) for name in call.subtasks)
    assert max(asked.values()) == 3, architecture


def assert_it_gives_up_after_the_tries_of_one_call(result: TrialResult, architecture: str) -> None:
    asked = events(result, Called)
    assert result.record.outcome == "gave_up", architecture
    assert {(call.attempt, call.failure is None) for call in asked} == {(1, False)}, architecture
    assert len(asked) == len(stages(result)), architecture
    assert max(Counter(call.subtasks for call in asked).values()) == MOST_SUBTASKS + 1, architecture


def assert_texts_are_kept(result: TrialResult) -> None:
    named = [message.content for call in events(result, Called) for message in call.messages]
    named += [digest for call in events(result, Called) for digest in (call.reply, call.delivered) if digest is not None]
    named += [commit.digest for commit in events(result, Committed)]
    assert set(named) <= set(result.texts), "an event names a text that was not kept"


def assert_lineage_is_closed(result: TrialResult) -> None:
    """The answer has one version of every subtask; each version was written before it was read, by calls that were answered."""
    task = scenario_of(result.record.scenario, result.record.instance).task
    answered = {call.call for call in events(result, Called) if call.failure is None}
    written: set[tuple[str, int]] = set()
    for event in result.record.events:
        if isinstance(event, Committed):
            assert set(event.calls) <= answered
            assert {(name, version) for name, version, _ in event.made_from if version} <= written
            assert {name for name, version, _ in event.made_from if not version} <= set(task.documents)
            written.add((event.subtask, event.version))
    for answer in events(result, Answered):
        assert [name for name, _ in answer.versions] == list(task.answer_names)
        assert set(answer.versions) <= written


def assert_failures_cause_retries(result: TrialResult) -> None:
    """A retry or a rerun names the rejection, or the loss of a paid reply, that made it necessary; no other call names any but
    a judge call."""
    every = result.record.events
    for number, call in enumerate(every):
        if not isinstance(call, Called):
            continue
        if call.cause in ("first", "step", "sample"):
            assert call.caused_by is None
        elif call.cause != "judge" or call.caused_by is not None:
            assert call.caused_by is not None
            assert call.caused_by < number
            why = every[call.caused_by]
            assert is_failure(why), why
            subtasks = (why.subtask,) if isinstance(why, Judged) else why.subtasks if isinstance(why, Called) else ()
            if not isinstance(why, ProcessDied):
                assert bool(set(subtasks) & set(call.subtasks)) is not (call.cause == "rerun")


def is_failure(event: Event) -> bool:
    if isinstance(event, Judged):
        return not event.accepted and event.view in ("told", "shadow")
    return isinstance(event, ProcessDied) or (isinstance(event, Called) and event.failure is not None and event.tokens_in > 0)


@cache
def scenario_of(name: str, instance: str) -> Scenario:
    return load_pack(name, ROOTS, instance)
