"""What is planted in a careful agent by an edit of its code is named, and the page says how surely."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnosis.score import TRIALS, WEAKNESSES, matrix_of, planted_in, read_scored, scored, summary
from diagnosis.weaknesses import DOUBLE, SINGLE, agent_with

PAGE = (Path(__file__).parents[2] / "docs" / "diagnosing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("weakness", ["the pack's rules are not held against a proposal", "the key of an effect is dropped"])
def test_a_part_whose_code_was_edited_is_named_and_no_other(weakness: str) -> None:
    [trial] = scored(matrix_of(repetitions=1), weakness, 1)
    assert trial.blamed == planted_in(weakness)


@pytest.mark.parametrize("weakness", WEAKNESSES)
def test_each_edit_of_code_can_be_made(weakness: str) -> None:
    assert agent_with(WEAKNESSES[weakness]).remedied


def test_twelve_weaknesses_are_planted_beside_a_harmless_one() -> None:
    assert (len(SINGLE), len(DOUBLE), len(WEAKNESSES)) == (8, 4, 13)


@pytest.mark.endurance
@pytest.mark.parametrize("weakness", WEAKNESSES)
def test_the_committed_trials_are_diagnosed_so_again(weakness: str) -> None:
    assert list(scored(matrix_of(), weakness, TRIALS)) == [each for each in read_scored() if each.weakness == weakness]


def test_the_page_adds_up_the_committed_trials() -> None:
    single, double, harmless = summary(read_scored())
    page = " ".join(PAGE.split())
    assert f"names a single weakness exactly in {single} trials, and two weaknesses in {double}. " in page
    assert f"blames the harmless edit in {harmless.replace(' [', ' trials [')}. " in page
