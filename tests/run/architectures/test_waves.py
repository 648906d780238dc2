"""Waves ask for everything once, for nothing too early, and for nothing later than they must."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.run.architectures.waves import by_needs, by_reads, one_by_one
from bench.scenario import Output, Subtask


@st.composite
def tasks(draw: st.DrawFn) -> list[Subtask]:
    """Subtasks of which each reads a document and some of those before it."""
    names = [f"s{number}" for number in range(draw(st.integers(0, 8)))]
    earlier = [draw(st.sets(st.sampled_from(names[:at]))) if at else set() for at in range(len(names))]
    return [Subtask(name, "Do.", ("notes.txt", *sorted(reads)), Output) for name, reads in zip(names, earlier, strict=True)]


@given(tasks())
def test_each_subtask_stands_in_the_first_wave_in_which_all_that_it_reads_is_there(subtasks: list[Subtask]) -> None:
    waves = by_reads(subtasks)
    wave_of = {subtask.name: number for number, wave in enumerate(waves) for subtask in wave}
    assert sorted(subtask.name for subtask in chain(*waves)) == [subtask.name for subtask in subtasks]
    for subtask in subtasks:
        assert wave_of[subtask.name] == max((wave_of[read] + 1 for read in subtask.reads if read in wave_of), default=0)


@given(tasks())
def test_one_by_one_keeps_the_listed_order(subtasks: list[Subtask]) -> None:
    assert list(chain(*one_by_one(subtasks))) == subtasks and {len(wave) for wave in one_by_one(subtasks)} <= {1}


def test_subtasks_that_wait_for_each_other_are_refused_by_name() -> None:
    subtasks = [Subtask(name, "Do.", (), Output) for name in ("a", "b", "c")]
    with pytest.raises(ValueError, match="none of these can be the first, since each waits for another: b, c"):
        by_needs(subtasks, {"a": (), "b": ("c",), "c": ("a", "b")})
