"""Signs tell apart what they stand for."""

from __future__ import annotations

from bench.read.render.marks import SHAPES, signs_of


def test_names_of_a_figure_have_different_signs_thirteen_of_them_in_grey() -> None:
    signs = signs_of([f"plan_{number}" for number in range(40)])
    assert len(signs) == len(set(signs.values())) == 40
    assert len({marker for marker, _ in list(signs.values())[: len(SHAPES)]}) == len(SHAPES)
