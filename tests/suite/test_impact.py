"""Which mutants of an open package are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from impact.__main__ import chosen
from impact.mutants import Mutant
from impact.trial import Suite


@dataclass(frozen=True)
class Results:
    """The full runs of a suite of ten tests: mutant N changes as many results as the Nth count; None does not end."""

    counts: tuple[int | None, ...]
    base = frozenset(range(10))

    def ends(self, mutant: Mutant) -> bool:
        return self.counts[mutant.line] is not None

    def changed(self, mutant: Mutant) -> range:
        return range(self.counts[mutant.line] or 0)


def numbers(*counts: int | None, screened: int) -> list[tuple[str, int]]:
    """How each mutant of four drawn and two of the widest was chosen, with its number."""
    candidates = [Mutant("a.py", number, "", "") for number in range(len(counts))]
    sample = chosen(cast(Suite, Results(counts)), candidates, screened, drawn=4, widest=2)
    return [(choice, mutant.line) for choice, mutant in sample]


def test_the_first_are_taken_as_drawn_and_of_the_rest_those_that_change_most() -> None:
    drawn = [("drawn", number) for number in (0, 1, 2, 3)]
    assert numbers(1, 0, 9, 0, 2, 5, 3, 4, screened=8) == [*drawn, ("widest", 5), ("widest", 7)]


def test_more_are_screened_until_there_are_enough_and_no_further() -> None:
    drawn = [("drawn", number) for number in (0, 2, 3, 4)]
    assert numbers(1, None, 1, 1, 1, 6, 0, 2, 6, 3, 5, 5, screened=4) == [*drawn, ("widest", 9), ("widest", 7)]


def test_at_most_half_of_those_taken_as_drawn_change_no_result() -> None:
    assert numbers(0, 0, 0, 0, 0, 2, 1, screened=7) == [("drawn", number) for number in (0, 1, 5, 6)]


def test_a_package_with_too_few_mutants_gives_what_it_has() -> None:
    assert numbers(1, None, 0, screened=24) == [("drawn", 0), ("drawn", 2)]
