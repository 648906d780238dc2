"""What the consumer of a log accounts for: who decided an event, and which notices came late, twice, out of order or never."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from scripted_model import ScriptedModel
from trials import Fault, events, matrix_of, run_all
from trips import BARE, ONE, REMEDIED, effects, environment, harm, worked

from bench.record.events import Faulted
from bench.record.form import Form
from bench.record.world_events import Stored
from bench.run.architectures.registry import ARCHITECTURES, load_architecture
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Reply, Request, Sleep
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Call, Environment, Moment, ProcedureStep, Scheduled
from bench.worlds.run.patterns.accounts import IRREGULAR


def irregular(result: TrialResult) -> list[dict[str, Any]]:
    """What was noted, in order."""
    return [json.loads(result.texts[event.value]) for event in stored(result, IRREGULAR)]


def stored(result: TrialResult, name: str) -> list[Stored]:
    return [event for event in result.record.events if isinstance(event, Stored) and event.name == name]


def kinds(result: TrialResult) -> list[str]:
    return [entry["what"] for entry in irregular(result)]


# A model that is exchanged between two lives


class Exchanged(ScriptedModel):
    """Another model in each life of the agent, which has another amount paid."""

    def __init__(self, names: Sequence[str]):
        super().__init__({})
        self._names, self.name, self.asked = names, names[0], list[str]()

    def live(self, life: int) -> None:
        self.name = self._names[min(life, len(self._names)) - 1]

    async def reply(self, _: Request, __: Sleep) -> Reply:
        self.asked.append(self.name)
        return Reply(json.dumps({"book": True, "amount": 300 if self.name == "old" else 200}))


def lived_by(model: Exchanged, form: Form, fault: Fault, pattern: str = "event_driven") -> TrialResult:
    whole = load_architecture(ARCHITECTURES[pattern], form=form)

    async def architecture(task: Task, workbench: Workbench) -> None:
        model.live(workbench.world.life)
        await whole(task, workbench)

    return worked(architecture, faults=[fault], model=model)


DIES: Fault = {"point": "process", "effect": "unacknowledged", "tool": "book_hotel", "attempts": [1]}


def test_bare_another_model_decides_the_same_event_anew_and_nobody_notices() -> None:
    model = Exchanged(["old", "new"])
    result = lived_by(model, BARE, DIES)
    assert model.asked == ["old", "new"]
    assert (result.record.outcome, kinds(result)) == ("wrong", []) and harm(result)["doubled"] > 0


def test_with_remedies_a_decision_of_another_model_stands_and_the_divergence_is_noted() -> None:
    model = Exchanged(["old", "new"])
    result = lived_by(model, REMEDIED, DIES)
    assert model.asked == ["old"], "what is recorded is replayed, and no model is asked"
    assert (result.record.outcome, harm(result)) == ("solved", {})
    [noted] = irregular(result)
    assert (noted["what"], noted["step"], noted["by"].split()[0], noted["now"].split()[0]) == (
        "diverged",
        "choose 1",
        "old",
        "new",
    )


@pytest.mark.parametrize("pattern", ["event_driven", "state_machine"])
def test_a_pinned_decision_of_another_model_stands_in_a_pattern_that_is_bare_but_for_that(pattern: str) -> None:
    model = Exchanged(["old", "new"])
    result = lived_by(model, Form(pins=True), DIES, pattern)
    assert model.asked == ["old"]
    assert harm(result)["doubled"] > 0, "nothing but the decision is kept"
    [pin] = [json.loads(result.texts[each.value]) for each in stored(result, "pinned choose 1")]
    assert pin["by"].split()[0] == "old" and pin["decided"]["amount"] == 300


def test_a_divergence_is_noted_once_however_often_the_agent_dies_and_none_where_the_model_is_the_same() -> None:
    often: Fault = {"point": "process", "effect": "unacknowledged", "tool": "*", "attempts": [1]}
    assert kinds(lived_by(Exchanged(["old", "new"]), REMEDIED, often)) == ["diverged"]
    assert kinds(lived_by(Exchanged(["old"]), REMEDIED, often)) == []


# Watermarks

LOOK = ProcedureStep("look", starts=Moment(2, 60), reads=lambda _: {"seen": Call("read_trip", {"trip": 1})})
"""Reads the trip an hour after its flight was struck."""


def struck_and_moved() -> Environment:
    """What comes a day after the strike changes the trip again, and its carrier no more."""
    world = environment(ONE, [1])
    moved = replace(world.by_kind["strike"], name="moved")
    scheduled = (*world.events, Scheduled("moved 1", "moved", Moment(3), {"trip": 1}))
    return replace(world, events=scheduled, kinds=(*world.kinds, moved), procedure=(*world.procedure, LOOK))


def after_fault(effect: str, minutes: int = 0) -> TrialResult:
    """How the log accounts for the strike, whose notice carries a fault."""
    fault = {"point": "event", "effect": effect, "event": "strike", "probability": 1.0, "minutes": minutes}
    return worked("event_driven", REMEDIED, [fault], world=struck_and_moved())


def test_without_a_fault_nothing_is_irregular() -> None:
    result = worked("event_driven", REMEDIED, world=struck_and_moved())
    assert (irregular(result), result.record.outcome, harm(result)) == ([], "solved", {})


def test_a_change_that_is_read_before_its_notice_comes_is_unheard_and_then_the_notice_is_late() -> None:
    result = after_fault("late", 90)
    unheard, late = irregular(result)
    assert (unheard["what"], unheard["thing"], unheard["changes"]) == ("unheard", "trip 1", 1)
    assert late == {"what": "late", "event": "strike 1", "thing": "trip 1", "version": unheard["version"]}
    assert (result.record.outcome, harm(result)) == ("solved", {})


def test_a_notice_that_never_comes_is_missed() -> None:
    assert kinds(after_fault("late", 20 * 24 * 60)) == ["unheard", "missed"]


def test_a_notice_that_comes_twice_is_doubled_and_begins_nothing() -> None:
    result = after_fault("doubled")
    assert kinds(result) == ["doubled"]
    assert (result.record.outcome, harm(result)) == ("solved", {}) and effects(result).count("cancel_flight") == 1


def test_a_notice_behind_that_of_a_later_change_is_out_of_order() -> None:
    result = after_fault("reordered")
    assert kinds(result) == ["unheard", "out of order"]
    assert (result.record.outcome, harm(result)) == ("solved", {})


@pytest.mark.parametrize("effect", ["error", "slow", "duplicate", "lost_ack", "stale_read"])
def test_no_fault_of_a_tool_is_taken_for_an_irregular_notice(effect: str) -> None:
    assert (
        irregular(worked("event_driven", REMEDIED, [{"point": "tool", "effect": effect, "attempts": [1]}], strikes=[1])) == []
    )


@pytest.mark.parametrize("point", ["before", "unacknowledged", "unrecorded", "recorded"])
def test_no_crash_is_taken_for_an_irregular_notice(point: str) -> None:
    fault: Fault = {"point": "process", "effect": point, "tool": "*", "attempts": [1]}
    assert irregular(worked("event_driven", REMEDIED, [fault], strikes=[1])) == []


def test_in_the_worlds_of_the_packs_what_the_world_does_by_itself_is_regular() -> None:
    for pack in ("contract_renewal/case_04", "incident_response/case_02"):
        kept = {"kept": {"base": "event_driven", "remedies": True}}
        [result] = run_all(matrix_of(pack, architectures=["kept"], architecture=kept))
        assert (irregular(result), result.record.outcome) == ([], "solved")


# Over the packs

TOLD = {
    ("contract_renewal", "doubled"): (159, {"doubled": 159}, 40),
    ("contract_renewal", "late"): (159, {}, 40),
    ("contract_renewal", "reordered"): (89, {"unheard": 3, "late": 3}, 39),
    ("incident_response", "doubled"): (169, {"doubled": 169}, 48),
    ("incident_response", "late"): (168, {"unheard": 4, "late": 4}, 40),
    ("incident_response", "reordered"): (133, {"unheard": 7, "late": 7}, 44),
}
"""Pack and fault -> notices that carried it, what was noted, instances that are right: the table in docs/patterns.md."""
MINUTES = {"contract_renewal": 2 * 24 * 60, "incident_response": 20, "support_desk": 20}


def over(pack: str, effect: str, instances: int) -> list[TrialResult]:
    late = {"minutes": MINUTES[pack]} if effect == "late" else {}
    plans: dict[str, list[Fault]] = {effect: [{"point": "event", "effect": effect, "event": "*", "attempts": [1], **late}]}
    kept = {"kept": {"base": "event_driven", "remedies": True}}
    settings: dict[str, Any] = {"architectures": ["kept"], "architecture": kept, "instances": instances, "seed": 20260520}
    return run_all(matrix_of(pack, plans, **settings))


@pytest.mark.parametrize("pack", MINUTES)
def test_each_notice_that_comes_twice_is_noted_and_harms_nothing(pack: str) -> None:
    for result in over(pack, "doubled", 2):
        delivered = sum(event.stage == "delivered" for event in events(result, Faulted))
        assert kinds(result) == delivered * ["doubled"] and delivered > 1
        assert (result.record.outcome, harm(result)) == ("solved", {})


@pytest.mark.endurance
@pytest.mark.parametrize(("pack", "effect"), TOLD)
def test_the_documents_table_is_what_the_packs_give(pack: str, effect: str) -> None:
    carried, noted, solved = TOLD[pack, effect]
    results = over(pack, effect, 48 if pack == "incident_response" else 40)
    assert sum(event.stage == "delivered" for result in results for event in events(result, Faulted)) == carried
    assert Counter(kind for result in results for kind in kinds(result)) == noted
    assert sum(result.record.outcome == "solved" for result in results) == solved
