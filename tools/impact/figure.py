"""The figure of the report: which share of the tests each selector ran, by package, and what it missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

COLOURS = {"bench": "#0072B2", "testmon": "#E69F00"}


def draw(shares: Mapping[str, Mapping[str, float]], missed: Mapping[str, Mapping[str, int]], to: Path) -> None:
    """Write the figure.

    Args:
        shares: For each selector and package, the share of tests that it ran, in percent.
        missed: For each selector and package, the changed results that it missed.
        to: The PNG file.
    """
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    packages: Sequence[str] = list(next(iter(shares.values())))
    for number, (selector, of_package) in enumerate(shares.items()):
        places = [packages.index(name) + (number - 0.5) * 0.38 for name in of_package]
        bars = axes.barh(places, list(of_package.values()), height=0.36, color=COLOURS[selector], label=selector)
        words = [f"{of_package[name]:.0f}% run, {missed[selector][name]} missed" for name in of_package]
        axes.bar_label(bars, words, padding=3, fontsize=8)
    axes.set_yticks(range(len(packages)), packages)
    axes.invert_yaxis()
    axes.set_xlim(0, 130)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("Tests run after a mutant, % of the suite")
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(to, dpi=100, metadata={"Software": None})
    Image.open(to).convert("RGB").quantize(32, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(to, optimize=True)
