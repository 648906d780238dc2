"""Chance that can be told again: by what it is about, and by nothing else."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from bench.common.seeding import draw_for, seed_of

PARTS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.integers(), min_size=1, max_size=4
)


@given(PARTS, PARTS)
def test_a_seed_depends_on_every_part_and_on_their_order(parts: list[object], other: list[object]) -> None:
    same = [str(part) for part in parts] == [str(part) for part in other]
    assert (seed_of(*parts) == seed_of(*other)) is same
    assert 0 <= seed_of(*parts) < 2**64


def test_a_seed_is_the_same_in_every_process() -> None:
    program = "from bench.common.seeding import seed_of; print(seed_of('k8s', 3, 'triage'))"
    printed = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(2)}
    assert printed == {f"{seed_of('k8s', 3, 'triage')}\n".encode()}


def test_each_draw_begins_anew() -> None:
    assert [draw_for("a", 1).random() for _ in range(2)] == [draw_for("a", 1).random()] * 2
