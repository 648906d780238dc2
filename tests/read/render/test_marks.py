"""Signs tell apart what they stand for, and no whisker is drawn that no table shows."""

from __future__ import annotations

from bench.read.render.cells import TOO_FEW, BoundedNumber
from bench.read.render.marks import SHAPES, errors_of, signs_of


def test_names_of_a_figure_have_different_signs_thirteen_of_them_in_grey() -> None:
    signs = signs_of([f"plan_{number}" for number in range(40)])
    assert len(signs) == len(set(signs.values())) == 40
    assert len({marker for marker, _ in list(signs.values())[: len(SHAPES)]}) == len(SHAPES)


def test_an_interval_that_a_table_leaves_out_is_not_drawn() -> None:
    wide, narrow = (2.77, 0.04, 215.0), (2.77, 2.0, 4.0)
    assert BoundedNumber(*wide, digits=2).text() == f"2.77 {TOO_FEW}" and errors_of(wide) is None
    assert "[2.00, 4.00]" in BoundedNumber(*narrow, digits=2).text() and errors_of(narrow)
    assert errors_of((0.01, 0.0, 0.9), is_rate=True)
