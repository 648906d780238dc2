"""An undo that needs its effect's lost result repeats the effect's call: what the answer says of the effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from worlds.trips.scenario import Booking, Done, TripId

from bench.record.form import Form
from bench.run.trial.loop import run
from bench.worlds.run.environment import Acted, Call, ProcedureStep, Tool
from bench.worlds.run.patterns.boundary import EffectCommit
from bench.worlds.run.patterns.calling import LASTING_TRIES, ToolCaller
from bench.worlds.run.patterns.compensation import FOR_A_PERSON, undo_effects
from bench.worlds.run.patterns.judging import Judging
from bench.worlds.run.patterns.memory import Memory
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.runtime.actions import WorldActions
from bench.worlds.run.runtime.process import Process, Store

BOOK = Tool(
    "book",
    "compensable",
    Booking,
    Done,
    lambda *_: Done(number=7),
    effect=lambda arguments: f"trip {arguments.trip}",
    undo="cancel",
    undoing=lambda _, result: {"trip": result.number},
)
CANCEL = Tool(
    "cancel", "compensable", TripId, Done, lambda *_: Done(number=7), effect=lambda arguments: f"trip {arguments.trip}"
)
DONE = Acted("book", "trip 1", "done", Done(number=7))
REFUSED = Acted("book", "trip 1", "refused", code="declined")
THROTTLED = Acted("book", "trip 1", "refused", code="throttled")
FAILED = Acted("book", "trip 1", "failed", code="unanswered")
CANCELLED = Acted("cancel", "trip 1", "done", Done(number=7))


class TwoTools:
    """The actions of a world with a booking, which always gets `answer`, and a cancellation, which always gets `cancelled`."""

    procedure = ()

    def __init__(self, answer: Acted, cancelled: Acted = CANCELLED):
        self._answers, self.called = {"book": answer, "cancel": cancelled}, list[str]()
        self.store = Store(Process(lambda _: None), lambda *_: None)
        self.tools = {tool.name: tool for tool in (BOOK, CANCEL)}

    async def act(self, tool: str, *_: Any, **__: Any) -> Acted:
        self.called.append(tool)
        return self._answers[tool]

    def effect_of(self, _: str, arguments: Mapping[str, Any]) -> str:
        return f"trip {arguments['trip']}"

    async def wait(self, **_: Any) -> None:
        pass


class DecidesOnSouth:
    """A step's judgment that wants a booking with another carrier than before."""

    def effects(self, _: ProcedureStep) -> list[Call]:
        return [Call("book", {"trip": 1, "carrier": "south"})]


def new_memory() -> Memory:
    return Memory(Store(Process(lambda _: None), lambda *_: None), "work", {"cancel": "book"})


def undo_booking(world: TwoTools, form: Form, memory: Memory | None = None) -> bool:
    """Undo a booking that is intended, and whose result no record holds."""
    memory = memory or new_memory()
    booking = memory.intend("trip", "book", {"trip": 1, "carrier": "north"}, "trip 1", {})
    return run(ToolCaller(cast(WorldActions, world), form, memory, EffectCommit(form)).undo(booking))


@pytest.mark.parametrize(
    ("answer", "is_gone", "called"),
    [
        pytest.param(DONE, True, ["book", "cancel"], id="done"),
        pytest.param(REFUSED, True, ["book"], id="refused: it never happened"),
        pytest.param(THROTTLED, False, ["book"] * LASTING_TRIES, id="throttled: it can have happened"),
        pytest.param(FAILED, False, ["book"] * LASTING_TRIES, id="failed: it can have happened"),
    ],
)
def test_an_undo_says_whether_the_effect_is_gone_by_the_answer_to_its_repeated_call(
    answer: Acted, is_gone: bool, called: list[str]
) -> None:
    world = TwoTools(answer)
    assert undo_booking(world, Form(remedies=True)) is is_gone
    assert world.called == called


def test_without_keys_a_lost_result_is_not_asked_for_and_the_effect_is_left() -> None:
    world = TwoTools(DONE)
    assert undo_booking(world, Form()) is False
    assert world.called == []


@pytest.mark.parametrize(
    ("answer", "state"),
    [(DONE, "done"), (REFUSED, "refused"), (THROTTLED, "intended"), (FAILED, "intended")],
    ids=["done", "refused", "throttled", "failed"],
)
def test_after_a_repeated_call_an_effect_that_can_have_happened_stays_intended(answer: Acted, state: str) -> None:
    memory = new_memory()
    undo_booking(TwoTools(answer, FAILED), Form(remedies=True), memory)
    assert [effect.state for effect in memory.effects()] == [state]


@pytest.mark.parametrize(("cancelled", "is_gone"), [(REFUSED, True), (THROTTLED, False), (FAILED, False)])
def test_an_undo_that_a_busy_world_throttled_did_not_happen(cancelled: Acted, is_gone: bool) -> None:
    memory = new_memory()
    assert undo_booking(TwoTools(DONE, cancelled), Form(remedies=True), memory) is is_gone
    assert [effect.state for effect in memory.effects()] == ["undone" if is_gone else "done"]


def test_an_effect_that_several_undos_leave_is_one_note_for_a_person() -> None:
    world, memory, form = TwoTools(FAILED), new_memory(), Form(remedies=True)
    memory.intend("trip", "book", {"trip": 1, "carrier": "north"}, "trip 1", {})
    actions = cast(WorldActions, world)
    calling = ToolCaller(actions, form, memory, EffectCommit(form))
    for _ in range(2):
        run(undo_effects(["trip"], calling, memory, actions))
    assert world.store.log(FOR_A_PERSON) == [{"step": "trip", "not taken back": "trip 1"}]


@pytest.mark.parametrize(
    ("cancelled", "called", "states", "notes"),
    [
        pytest.param(CANCELLED, ["cancel", "book"], ["undone", "done"], 0, id="done"),
        pytest.param(REFUSED, ["cancel", "book"], ["undone", "done"], 0, id="refused: there is nothing to cancel"),
        pytest.param(THROTTLED, ["cancel"] * LASTING_TRIES + ["book"], ["done", "done"], 1, id="throttled"),
        pytest.param(FAILED, ["cancel"] * LASTING_TRIES + ["book"], ["done", "done"], 1, id="failed"),
    ],
)
def test_an_effect_that_a_new_decision_does_not_want_is_undone_first_or_left_to_a_person(
    cancelled: Acted, called: list[str], states: list[str], notes: int
) -> None:
    world, memory, form, step = TwoTools(DONE, cancelled), new_memory(), Form(remedies=True), ProcedureStep("trip")
    earlier = memory.intend("trip", "book", {"trip": 1, "carrier": "north"}, "trip 1", {})
    memory.note(replace(earlier, state="done", result={"number": 7}))
    runner = ProcedureRunner.__new__(ProcedureRunner)
    runner.memory, runner._world, runner._compensates, runner._gate = memory, cast(WorldActions, world), True, "open"
    runner._calling = ToolCaller(runner._world, form, memory, EffectCommit(form))
    runner._judging = cast(Judging, DecidesOnSouth())
    assert run(runner._act_step(step)) == ""
    assert world.called == called
    assert [effect.state for effect in memory.effects()] == states
    assert world.store.log(FOR_A_PERSON) == [{"step": "trip", "not taken back": "trip 1"}] * notes
    world.called.clear()
    assert (
        run(runner._act_step(step)) == "" and "book" not in world.called
    )  # the wanted effect is neither undone nor made again
    assert len(world.store.log(FOR_A_PERSON)) == notes
