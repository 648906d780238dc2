"""A figure is the same bytes whoever draws it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from bench.read.render.drawing import (
    BLACK,
    GREEN,
    MATPLOTLIB_SETTINGS,
    PURPLE,
    VERMILION,
    Look,
    Picture,
    blank,
    finish,
    legend_of,
    legend_of_points,
    panel_title,
    style,
)

AREAS = {"in answer": Look(GREEN), "rejected": Look(VERMILION, "////"), "lost": Look(PURPLE, "xxxx")}


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


def test_a_png_of_few_colours_shows_what_was_drawn() -> None:
    with style():
        figure = blank(4.0, 2.0)
        axes = figure.subplots()
        for place, look in enumerate(AREAS.values()):
            axes.bar(place, place + 1, color=look.colour, hatch=look.hatch, edgecolor="white")
        legend_of(figure, AREAS)
        shown = Image.open(io.BytesIO(finish(figure, "demo", "Demo", "A demo.").png))
        figure.dpi = MATPLOTLIB_SETTINGS["figure.dpi"]
        drawn = np.frombuffer(FigureCanvasAgg(figure).print_to_buffer()[0], np.uint8)  # type: ignore[no-untyped-call]
    drawn = drawn.reshape(*reversed(shown.size), 4)[..., :3].astype(int)
    off = np.abs(np.asarray(shown.convert("RGB")) - drawn)
    assert shown.mode == "P" and off.max() <= 24 and off.mean() < 0.5


def test_a_hatch_of_dots_is_refused() -> None:
    with pytest.raises(ValueError, match="a hatch is of lines"):
        Look("#000000", "....")


@pytest.mark.parametrize(("length", "rows"), [(5, 1), (45, 3)])
def test_a_legend_is_no_wider_than_its_figure(length: int, rows: int) -> None:
    with style():
        figure = blank(6.0, 3.0)
        figure.subplots()
        legend_of_points(figure, {f"{name * length}": ("o", BLACK) for name in "abc"})
        finish(figure, "demo", "Demo", "A demo.")
        [legend] = figure.legends
        shown = legend.get_window_extent()
        heights = {round(text.get_window_extent().y0) for text in legend.get_texts()}
    assert shown.x0 >= 0 and shown.x1 <= figure.bbox.width
    assert len(heights) == rows


@pytest.mark.parametrize(("width", "least", "most"), [(30.0, 0, 60), (8.0, 60, 600)])
def test_the_words_of_a_figure_that_scrolls_begin_at_its_left_edge(width: float, least: int, most: int) -> None:
    with style():
        figure = blank(width, 3.0)
        panel_title(figure.subplots(), "A panel")
        legend_of(figure, AREAS)
        finish(figure, "demo", "A title of a few words", "A demo.")
        texts = [text for text in figure.findobj(Text) if text.get_text() in ("A title of a few words", "A panel", "in answer")]
        assert len(texts) == 3 and all(least < text.get_window_extent().x0 < most for text in texts)
