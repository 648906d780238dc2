"""The lineage of an answer: every call that it stands on, and no other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.record.events import Answered, Committed, Event
from bench.record.lineage import Lineage

NAMES = ("a", "b", "c")
Version = tuple[str, int]


def committed(subtask: str, version: int, calls: tuple[int, ...], made_from: tuple[Version, ...] = ()) -> Committed:
    return Committed(subtask, version, calls, True, "d", (("doc", 0, "d"), *((*source, "d") for source in made_from)))


@st.composite
def courses(draw: st.DrawFn) -> list[Event]:
    """Versions made by any calls, from any earlier versions; some are written again when they are verified, and then answer."""
    events: list[Event] = []
    written: list[Version] = []
    call = 0
    for _ in range(draw(st.integers(1, 10))):
        name = draw(st.sampled_from(NAMES))
        calls = tuple(range(call + 1, call + 1 + draw(st.integers(0, 3))))
        call += len(calls)
        made_from = tuple(draw(st.lists(st.sampled_from(written), unique=True, max_size=2))) if written else ()
        version = (name, 1 + sum(earlier == name for earlier, _ in written))
        events.append(committed(*version, calls, made_from))
        if draw(st.booleans()):
            events.append(events[-1])
        written.append(version)
    if draw(st.booleans()):
        events.append(Answered(tuple(draw(st.lists(st.sampled_from(written), unique=True, min_size=1)))))
    return events


def reckoned(events: list[Event], outputs: tuple[Version, ...]) -> set[int]:
    """A second reckoning, by walking through the events backwards."""
    needed, calls = set(outputs), set[int]()
    for event in reversed(events):
        if isinstance(event, Committed) and (event.subtask, event.version) in needed:
            needed |= {(name, version) for name, version, _ in event.made_from}
            calls |= set(event.calls)
    return calls


@given(courses())
def test_the_lineage_of_the_answer_is_closed_and_holds_nothing_else(events: list[Event]) -> None:
    lineage = Lineage(events)
    answer = events[-1].versions if isinstance(events[-1], Answered) else ()
    assert lineage.of_answer == reckoned(events, answer)
    ancestry = lineage.ancestry(answer)
    for event in events:
        if isinstance(event, Committed) and (event.subtask, event.version) in ancestry:
            assert {(name, version) for name, version, _ in event.made_from if version} <= ancestry
            assert set(event.calls) <= lineage.of_answer


@given(courses(), st.sets(st.integers(1, 12)))
def test_what_was_made_from_a_call_is_every_output_that_has_it_in_its_lineage(events: list[Event], calls: set[int]) -> None:
    lineage = Lineage(events)
    commits = [event for event in events if isinstance(event, Committed)]
    made = {
        call for commit in commits if reckoned(events, ((commit.subtask, commit.version),)) & calls for call in commit.calls
    }
    assert lineage.calls_made_from(calls) == calls | made


def test_all_calls_of_one_output_are_in_its_lineage() -> None:
    events: list[Event] = [committed("a", 1, (1, 2, 4)), committed("b", 1, (5,), (("a", 1),)), Answered((("b", 1),))]
    assert Lineage(events).of_answer == {1, 2, 4, 5}


def test_what_code_wrote_is_no_call_but_what_it_was_made_from_counts() -> None:
    events: list[Event] = [committed("a", 1, (7,)), committed("b", 1, (), (("a", 1),)), Answered((("b", 1),))]
    assert Lineage(events).of_answer == {7}


def test_without_an_answer_nothing_has_a_lineage() -> None:
    assert Lineage([committed("a", 1, (1,))]).of_answer == frozenset()


def test_an_event_of_a_later_kind_is_read_over() -> None:
    events: list[Event] = [committed("a", 1, (1,)), {"kind": "tool", "calls": [9]}, Answered((("a", 1),))]
    assert Lineage(events).of_answer == {1}
