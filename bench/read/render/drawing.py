"""Functions that draw figures in colours that everybody can tell apart, hatched for print, and with the same bytes each
time."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from PIL import Image

from bench.common.escaping import escape_terminal

# Okabe and Ito's colours.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73"),
    *("#F0E442", "#0072B2", "#D55E00", "#CC79A7"),
)
GREY, PALE = "#AAAAAA", "#DDDDDD"
MAX_WIDTH_INCHES = 12.0
"""The width above which a figure is not made wider by more panels. The page scrolls a wider figure."""


@dataclass(frozen=True)
class Look:
    """The colour and the hatch of an area. A hatch may only have lines: dots would be thousands of curves in each PDF."""

    colour: str
    hatch: str = ""

    def __post_init__(self) -> None:
        if not set(self.hatch) <= set("/\\|-+x"):
            raise ValueError(f"a hatch is of lines, not {self.hatch!r}")


MATPLOTLIB_SETTINGS: Mapping[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.titley": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "figure.dpi": 120,
}


@dataclass(frozen=True)
class Picture:
    """A finished figure. `name` is the name of its files, `caption` says in words what it shows, `width` is in inches, and
    `title` is the part of the caption that the figure itself shows."""

    name: str
    caption: str
    width: float
    png: bytes
    drawn: Figure = field(compare=False, repr=False)
    title: str = ""

    @property
    def pdf(self) -> bytes:
        """The figure as PDF. It is drawn again for each use."""
        from matplotlib.backends.backend_pdf import FigureCanvasPdf  # noqa: PLC0415  it takes a fifth of a second, seldom needed

        pdf, nothing = io.BytesIO(), dict.fromkeys(("CreationDate", "Creator", "Producer"))
        with style():
            FigureCanvasPdf(self.drawn).print_pdf(pdf, metadata=nothing)  # type: ignore[no-untyped-call]  # of matplotlib
        return pdf.getvalue()

    @property
    def below(self) -> str:
        """The text below the figure: the caption without the title."""
        return self.caption.removeprefix(f"{self.title}. ")


@contextmanager
def style() -> Iterator[None]:
    """A context in which figures are drawn with matplotlib's defaults and MATPLOTLIB_SETTINGS. The user's settings are
    restored at its end."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(MATPLOTLIB_SETTINGS)
        yield


def blank(width: float, height: float) -> Figure:
    """Return a figure that belongs to no window. Width and height are in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(count: int, across: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels, at most `across` in a row, and their axes. `width` and `height` are those of a
    panel, in inches."""
    across = max(1, min(across, count, int(MAX_WIDTH_INCHES // width)))
    down = -(-count // across)
    figure = blank(max(width * across, 4.6), height * down + 0.9)
    axes = figure.subplots(down, across, squeeze=False).flatten().tolist()
    for unused in axes[count:]:
        unused.set_axis_off()
    return figure, axes[:count]


def finish(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """Set the figure's title, and return it as a picture, whose PNG holds nothing of the day or the machine."""
    lines = textwrap.wrap(title, max(40, int(min(figure.get_figwidth(), MAX_WIDTH_INCHES) * 13)))
    heading = figure.suptitle("\n".join(lines), fontsize=10)
    if figure.get_figwidth() > MAX_WIDTH_INCHES:  # A page scrolls it: all that it says in words begins at its left edge.
        heading.set(x=0.01, ha="left")
        for axes in figure.axes:
            axes.title.set(x=0.0, ha="left")
        for legend in figure.legends:
            legend.set_loc("outside lower left")
    for text in figure.findobj(Text):
        text.set_text(escape_terminal(text.get_text()).replace("\t", " "))
    _fix_layout(figure)
    return Picture(name, caption, figure.get_figwidth(), _png(figure), figure, title)


def _png(figure: Figure) -> bytes:
    """Return the figure as a PNG in 32 colours. A figure has about ten, so no difference is seen, and the file is a fourth as
    large."""
    pixels, size = FigureCanvasAgg(figure).print_to_buffer()  # type: ignore[no-untyped-call]  # of matplotlib
    image = Image.frombuffer("RGBA", size, pixels, "raw", "RGBA", 0, 1)
    png = io.BytesIO()
    colours = image.convert("RGB").quantize(32, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colours.save(png, "PNG", dpi=(figure.dpi, figure.dpi), compress_level=9)
    return png.getvalue()


def _fix_layout(figure: Figure) -> None:
    """Fix the figure's layout for both file formats, with rounded positions, whose last digits differ between processes.
    `savefig` would draw the figure twice for each format, the first time only for the layout."""
    layout = figure.get_layout_engine()
    assert layout is not None, "`blank` gives each figure one"
    layout.execute(figure)  # `draw_without_rendering` would draw the whole figure a third time
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(bound, 6) for bound in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def names_below(ax: Axes, names: Sequence[str]) -> None:
    """Write architectures' names below the x axis at 0, 1, 2, broken into lines, and draw horizontal grid lines."""
    labels = ["\n".join(textwrap.wrap(escape_terminal(name).replace("_", " "), 12)) for name in names]
    ax.set_xticks(range(len(names)), labels)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.grid(axis="y", color=PALE, lw=0.6)


def panel_title(ax: Axes, *lines: str) -> None:
    """Set the panel's title: these lines, broken so that they stay within the panel."""
    ax.set_title("\n".join(part for line in lines for part in textwrap.wrap(line, 34)))


MAX_LEGEND_COLUMNS = 4
"""The most entries of a legend in one row."""


def legend_of(figure: Figure, looks: Mapping[str, Look], *signs: Line2D) -> None:
    """Draw a legend below the panels: the looks of areas by name, and labelled lines or markers."""
    areas = [Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0.4) for look in looks.values()]
    names = [*(name.replace("_", " ") for name in looks), *(str(sign.get_label()) for sign in signs)]
    _legend(figure, [*areas, *signs], names, MAX_LEGEND_COLUMNS)


def legend_of_points(figure: Figure, signs: Mapping[str, tuple[str, str]]) -> None:
    """Draw a legend below the panels: the (marker, colour) of points by name."""
    handles = [Line2D([], [], marker=marker, color=colour, lw=1, ms=4.5) for marker, colour in signs.values()]
    _legend(figure, handles, list(signs), 3)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Draw the legend of these axes below the panels."""
    _legend(figure, *axes.get_legend_handles_labels(), columns)


def _legend(figure: Figure, handles: Sequence[Any], names: Sequence[str], max_columns: int) -> None:
    """Draw a legend below the panels, in `max_columns` columns, or fewer if the figure is too narrow for these."""
    for columns in range(min(max_columns, len(names)), 0, -1):
        legend = figure.legend(handles, names, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
