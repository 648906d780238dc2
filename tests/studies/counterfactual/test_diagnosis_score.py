"""What is planted in a careful agent by an edit of its code is named, and the page says how surely."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from diagnosis.score import matrix_of, row, scored
from diagnosis.weaknesses import DOUBLE, HARMLESS, SINGLE, agent_with, parts_of

PAGE = Path(__file__).parents[3] / "docs" / "diagnosing.md"


@pytest.mark.parametrize("weakness", ["the pack's rules are not held against a proposal", "the key of an effect is dropped"])
def test_a_part_whose_code_was_edited_is_named_and_no_other(weakness: str) -> None:
    plants = SINGLE[weakness]
    [trial] = scored(matrix_of(repetitions=1), plants, parts_of(plants), 1)
    assert trial.diagnosis.blamed == parts_of(plants)


@pytest.mark.parametrize("weakness", [*SINGLE, *DOUBLE, *HARMLESS])
def test_each_edit_of_code_can_be_made(weakness: str) -> None:
    assert agent_with({**SINGLE, **DOUBLE, **HARMLESS}[weakness]).remedied


@pytest.mark.endurance
@pytest.mark.parametrize("weakness", [*SINGLE, *DOUBLE, *HARMLESS])
def test_the_page_says_how_often_what_was_planted_is_named(weakness: str) -> None:
    assert row(matrix_of(), weakness, {**SINGLE, **DOUBLE, **HARMLESS}[weakness]) in PAGE.read_text(encoding="utf-8")


def test_the_sentence_above_the_table_adds_its_rows() -> None:
    page = PAGE.read_text(encoding="utf-8")

    def total(weaknesses: Iterable[str]) -> str:
        cells = [re.search(rf"^\| {re.escape(name)} \|[^|]*\| (\d+) of (\d+) \|", page, re.MULTILINE) for name in weaknesses]
        return f"{sum(int(cell[1]) for cell in cells if cell)} of {sum(int(cell[2]) for cell in cells if cell)}"

    assert f"in {total(SINGLE)} trials, two are in {total(DOUBLE)}, and" in page
