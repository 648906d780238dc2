"""The state knows what each output was made from, and takes back exactly what stands on an output that was wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.run.trial.reply import ReplyPart
from bench.run.trial.state import Source, State
from bench.scenario import Output, Subtask, Task

NAMES = ("a", "b", "c", "d")
READS = {"a": ("doc",), "b": ("a",), "c": ("a", "doc"), "d": ("b",)}
STANDS_ON = {"a": {"a", "b", "c", "d"}, "b": {"b", "d"}, "c": {"c"}, "d": {"d"}}


def empty() -> State:
    subtasks = tuple(Subtask(name, "do it", reads, Output) for name, reads in READS.items())
    return State(Task("task", "role", {"doc": "text"}, subtasks))


def write(state: State, name: str, call: int) -> None:
    state.put(name, ReplyPart(f"{name} by {call}", {"by": call}), (call,), state.sources([state.subtask(name)]))


def full() -> State:
    state = empty()
    for call, name in enumerate(NAMES, 1):
        write(state, name, call)
    return state


def test_a_source_is_what_would_be_read_now() -> None:
    state = full()
    write(state, "a", 5)
    newest = state.current("a")
    assert newest is not None
    first, document = state.sources([state.subtask("c")])
    assert first == Source("a", 2, newest.digest)
    assert (document.name, document.version) == ("doc", 0)
    state.withdraw("a")
    assert state.sources([state.subtask("c")]) == (document,)


@given(st.sampled_from(NAMES))
def test_withdrawing_takes_an_output_and_exactly_what_was_made_from_it(name: str) -> None:
    state = full()
    taken = state.withdraw(name)
    assert sorted(taken) == sorted(STANDS_ON[name])
    assert {committed for committed in NAMES if committed in state} == set(NAMES) - STANDS_ON[name]
    assert state.withdraw(name) == []


def test_versions_are_counted_through_a_withdrawal_and_the_one_before_is_remembered() -> None:
    state = full()
    assert state.previous("a") is None
    state.withdraw("a")
    write(state, "a", 9)
    newest, before = state.current("a"), state.previous("a")
    assert newest is not None
    assert before is not None
    assert (newest.number, before.text) == (2, "a by 1")


def test_what_a_subtask_lacks_is_what_it_reads_and_nobody_has_written() -> None:
    state = empty()
    assert [state.missing_inputs(state.subtask(name)) for name in NAMES] == [[], ["a"], ["a"], ["b"]]
    write(state, "a", 1)
    assert [state.missing_inputs(state.subtask(name)) for name in NAMES] == [[], [], [], ["b"]]


def test_what_subtasks_read_of_one_another_is_no_source_of_their_joint_call() -> None:
    state = full()
    assert [source.name for source in state.sources([state.subtask("a"), state.subtask("b")])] == ["doc"]
    assert [source.name for source in state.sources([state.subtask("b"), state.subtask("d")])] == ["a"]


@pytest.mark.parametrize(("name", "reads"), [("a", ()), ("doc", ()), ("e", ("nothing",)), ("e", ("e",))])
def test_a_subtask_whose_name_is_taken_or_that_reads_what_does_not_exist_is_refused(name: str, reads: tuple[str, ...]) -> None:
    state = empty()
    with pytest.raises(ValueError, match=name if name != "e" else reads[0]):
        state.add(Subtask(name, "do it", reads, Output))
    assert [subtask.name for subtask in state.ready] == ["a"]


def test_a_subtask_that_is_added_comes_last_and_may_be_read_by_the_next() -> None:
    state = empty()
    state.add(Subtask("e", "do it", ("doc",), Output))
    state.add(Subtask("f", "do it", ("e",), Output))
    assert [subtask.name for subtask in state.ready] == ["a", "e"]
    assert state.missing_inputs(state.subtask("f")) == ["e"]
