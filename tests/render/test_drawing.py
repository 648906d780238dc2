"""A figure is the same bytes whoever draws it."""

from __future__ import annotations

import pytest

from bench.render.drawing import Picture, blank, finish, style


def drawn(nudge: float) -> Picture:
    """A figure whose one panel was laid out with this error."""
    with style():
        figure = blank(4.0, 3.0)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.2 + nudge, 0.2, 0.7, 0.6 - nudge))
        axes.plot([1, 2, 3], [1, 3, 2])
        return finish(figure, "demo", "Demo", "A demo.")


@pytest.mark.parametrize("nudge", [1e-15, 1e-12, -1e-9])
def test_the_last_digits_of_a_layout_do_not_reach_the_files(nudge: float) -> None:
    assert drawn(nudge) == drawn(0.0)
