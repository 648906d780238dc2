"""The state knows what each output was made from, and takes back exactly what stands on an output that was wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.runtime.state import Source, State

NAMES = ("a", "b", "c", "d")
READS = {"a": ("doc",), "b": ("a",), "c": ("a", "doc"), "d": ("b",)}
STANDS_ON = {"a": {"a", "b", "c", "d"}, "b": {"b", "d"}, "c": {"c"}, "d": {"d"}}


def write(state: State, name: str, call: int | None) -> None:
    sources = [source for read in READS[name] if (source := state.source(read))]
    state.put(name, f"{name} by {call}", {"by": call}, call, sources)


def full() -> State:
    state = State({"doc": "text"})
    for call, name in enumerate(NAMES, 1):
        write(state, name, call)
    return state


def test_a_source_is_what_would_be_read_now() -> None:
    state = full()
    document = state.source("doc")
    assert document is not None
    assert (document.name, document.version) == ("doc", 0)
    write(state, "a", 5)
    newest = state.current("a")
    assert newest is not None
    assert state.source("a") == Source("a", 2, newest.digest)
    assert state.source("nothing") is None


@given(st.sampled_from(NAMES))
def test_withdrawing_takes_an_output_and_exactly_what_was_made_from_it(name: str) -> None:
    state = full()
    taken = state.withdraw(name)
    assert sorted(taken) == sorted(STANDS_ON[name])
    assert {one for one in NAMES if one in state} == set(NAMES) - STANDS_ON[name]
    assert state.withdraw(name) == []


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=25))
def test_the_lineage_is_closed_and_holds_nothing_else(steps: list[tuple[str, bool]]) -> None:
    """Against a second reckoning: the calls of each current version, and of all that it says that it was made from."""
    state = State({"doc": "text"})
    made: dict[tuple[str, int], tuple[int, tuple[Source, ...]]] = {}
    for call, (name, withdrawn) in enumerate(steps, 1):
        if withdrawn:
            state.withdraw(name)
        else:
            write(state, name, call)
            version = state.current(name)
            assert version is not None
            made[name, version.number] = (call, version.made_from)

    def calls_of(name: str, number: int) -> set[int]:
        call, sources = made[name, number]
        return {call}.union(*(calls_of(source.name, source.version) for source in sources if source.version))

    current = [version for name in NAMES if (version := state.current(name))]
    assert state.lineage() == set().union(*(calls_of(version.subtask, version.number) for version in current))


def test_what_code_wrote_is_no_call_but_what_it_was_made_from_counts() -> None:
    state = State({"doc": "text"})
    write(state, "a", 7)
    write(state, "b", None)
    assert state.lineage() == {7}


def test_versions_are_counted_through_a_withdrawal_and_the_one_before_is_remembered() -> None:
    state = full()
    assert state.previous("a") is None
    state.withdraw("a")
    write(state, "a", 9)
    newest, before = state.current("a"), state.previous("a")
    assert newest is not None
    assert before is not None
    assert (newest.number, before.text) == (2, "a by 1")
