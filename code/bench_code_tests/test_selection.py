"""What is kept after an edit is what a full run gives: on generated programs, with edits of all that a test can depend on."""

from __future__ import annotations

from pathlib import Path

import programs
import pytest


def differing(root: Path, seeds: range) -> tuple[list[str], int]:
    result, kept = [], 0
    for seed in seeds:
        folder = root / str(seed)
        folder.mkdir()
        wrong, count, _ = programs.mismatches(folder, seed)
        result += [f"seed {seed}: {each}" for each in wrong]
        kept += count
    return result, kept


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_the_selective_result_of_a_generated_program_is_the_full_result(tmp_path: Path, first: int) -> None:
    wrong, kept = differing(tmp_path, range(first, first + 10))
    assert not wrong
    assert kept > 50, "next to nothing was kept, so nothing was tried"
