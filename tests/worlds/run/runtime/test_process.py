"""The agent's process: it dies where it is to, nothing holds its death, and its store outlives it."""

from __future__ import annotations

from random import Random

import pytest

from bench.record.events import Faulted
from bench.run.trial.faults import DueFault, Fault, OpenReceipt
from bench.worlds.run.runtime.process import Crashed, Process, Store


class Parts:
    def __init__(self) -> None:
        self.deaths: list[str] = []
        self.events: list[Faulted] = []
        self.process = Process(self.deaths.append)
        self.store = Store(self.process, lambda *_: None)

    def receipt(self, effect: str) -> OpenReceipt:
        due = DueFault(Fault("process", effect), 0, "refund", 1, Random(0))
        return OpenReceipt(1, due, None, self.events.append)

    @property
    def stages(self) -> list[str]:
        return [event.stage for event in self.events]


def test_no_exception_handler_holds_a_death() -> None:
    parts = Parts()
    with pytest.raises(Crashed):
        try:
            parts.process.die(parts.receipt("before"))
        except Exception:
            pytest.fail("an agent could handle its own death")
    assert parts.deaths == ["before"]


def test_what_still_runs_of_a_dead_process_dies_at_its_next_step() -> None:
    parts = Parts()
    with pytest.raises(Crashed):
        parts.process.die()
    with pytest.raises(Crashed):
        parts.process.step()
    for write in (parts.store.put, parts.store.append):
        with pytest.raises(Crashed):
            write("name", 1)
    assert parts.store.names() == []


def test_acknowledged_and_unrecorded_it_dies_before_it_writes_that_down() -> None:
    parts = Parts()
    parts.process.arm("unrecorded", parts.receipt("unrecorded"))
    with pytest.raises(Crashed):
        parts.store.put("done", True)
    assert (parts.store.get("done"), parts.stages) == (None, ["delivered"])


def test_recorded_it_dies_once_that_is_written_down() -> None:
    parts = Parts()
    parts.process.arm("recorded", parts.receipt("recorded"))
    parts.process.step()
    with pytest.raises(Crashed):
        parts.store.put("done", True)
    assert parts.store.get("done") is True


def test_one_that_writes_nothing_down_dies_before_its_next_effect() -> None:
    parts = Parts()
    parts.process.arm("recorded", parts.receipt("recorded"))
    with pytest.raises(Crashed):
        parts.process.step(effect=True)


@pytest.mark.parametrize("when", ["unrecorded", "recorded"])
def test_one_that_ends_first_has_died_all_the_same(when: str) -> None:
    parts = Parts()
    parts.process.arm(when, parts.receipt(when))  # type: ignore[arg-type]
    assert parts.process.note_end()
    parts.process.restart()
    assert not parts.process.note_end()
    assert parts.stages == ["delivered", "detected"]


def test_a_store_gives_back_json_and_refuses_what_is_none() -> None:
    store = Parts().store
    store.put("value", {"a": [1, None]})
    store.append("log", 1)
    store.append("log", "two")
    assert (store.get("value"), store.log("log"), store.get("other", 3), store.log("none")) == (
        {"a": [1, None]},
        [1, "two"],
        3,
        [],
    )
    store.get("value")["a"].append(2)
    assert store.get("value") == {"a": [1, None]}, "what was read can be changed without changing what is kept"
    with pytest.raises(TypeError):
        store.put("value", object())
