"""What the calibration found: one CSV with every result, one page, one figure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from calibration.experiments import Result, Simulations
from calibration.worlds import Recorded
from matplotlib.axes import Axes

from bench.analysis.statistics.limits import BEARABLE
from bench.render.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    Picture,
    finish,
    legend_below,
    panel_title,
    panels,
    style,
)
from bench.render.table import Table, markdown

FALSE = 0.06
"""A test at 5% that finds more often what is not there is limited."""
MARK = " (!)"
PREFACE = Path(__file__).with_name("preface.md")
LOOKS = {
    "Student t": (BLUE, "o"),
    "BCa": (VERMILION, "s"),
    "percentile": (ORANGE, "v"),
    "bootstrap-t": (GREEN, "^"),
    "Cox, of logarithms": (GREY, "D"),
}

TITLES = {
    ("coverage", "mean"): "Coverage of 95% intervals of a mean",
    ("coverage", "paired difference"): "Coverage of 95% intervals of a mean paired difference",
    ("coverage", "ratio of paired means"): "Coverage of 95% intervals of the ratio of two paired means",
    ("false positives", "paired test"): "False positives of paired tests at 5%",
    ("coverage", "rate"): "Coverage of 95% intervals of a rate (exact)",
    ("coverage", "difference of paired rates"): "Coverage of the 95% interval of the difference of two paired rates (exact)",
    ("false positives", "test of paired rates"): "False positives of the test of paired rates at 5% (exact)",
    ("false positives", "test of unpaired rates"): "False positives of the test of two unpaired rates at 5% (exact)",
    ("false positives", "test of two groups"): "False positives of the test of two unpaired groups at 5%",
    ("false positives", "any of 6 sign-flip tests"): "Any false positive in a family of six tests at 5%",
    ("coverage", "mean of packs at large"): "Coverage of 95% intervals of the mean of packs at large, by number of packs",
    ("coverage", "mean of these packs"): "Coverage of the 95% interval of the mean of these packs, by number of packs",
    ("enough", "required pairs"): "Pilots whose required number of pairs gives 80% power, by the pilot's size",
}


def write(folder: Path, results: Sequence[Result], found: Recorded, simulations: Simulations) -> None:
    """Writes README.md, calibration.csv and coverage.{png,svg}: the same bytes for the same results."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = figure(results)
    (folder / "calibration.csv").write_text(comma_separated(results), encoding="utf-8")
    (folder / "README.md").write_text(page(results, found, simulations, picture), encoding="utf-8")
    (folder / f"{picture.name}.png").write_bytes(picture.png)
    (folder / f"{picture.name}.svg").write_bytes(picture.svg)


def comma_separated(results: Iterable[Result]) -> str:
    """Every field, and the Monte-Carlo error of the share; a width without bound, or none, is an empty field."""
    written = io.StringIO()
    names = [one.name for one in fields(Result)]
    writer = csv.DictWriter(written, [*names, "error"], lineterminator="\n")
    writer.writeheader()
    for one in results:
        row = {**asdict(one), "share": round(one.share, 6), "error": round(one.error, 6)}
        writer.writerow(row | {"width": _finite(one.width), "wide": _finite(one.wide)})
    return written.getvalue()


def _finite(width: float | None) -> float | None:
    return round(width, 3) if width is not None and math.isfinite(width) else None


def page(results: Sequence[Result], found: Recorded, simulations: Simulations, picture: Picture) -> str:
    widths = [one for one in results if one.about == "mean" and one.method != "Student t"]
    parts = [
        _preface(found, simulations),
        f"![{picture.caption}]({picture.name}.png)\n",
        *(markdown(_table(title, kind, about, results)) for (kind, about), title in TITLES.items()),
        markdown(_widths(widths)),
    ]
    return "\n".join(parts)


def _preface(found: Recorded, simulations: Simulations) -> str:
    text = PREFACE.read_text(encoding="utf-8")
    return text.format(found=found, simulations=simulations, mark=MARK.strip(), bearable=BEARABLE, false=FALSE)


def _table(title: str, kind: str, about: str, results: Iterable[Result]) -> Table:
    """World and method down, N across."""
    own = [one for one in results if (one.kind, one.about) == (kind, about)]
    sizes = list(dict.fromkeys(one.n for one in own))
    cells = {(_world(one), one.method, one.n): _share(one) for one in own}
    lines = dict.fromkeys((_world(one), one.method) for one in own)
    rows = tuple((*line, *(cells.get((*line, n), "–") for n in sizes)) for line in lines)
    return Table(about, title, ("World", "Method", *(f"N={n}" for n in sizes)), rows)


def _world(one: Result) -> str:
    # The worst rate is another one at each N: it goes into the cell.
    name = one.world.split(":")[0]
    return f"{name}, recorded" if one.recorded and one.about in ("mean", "paired difference") else name


def _share(one: Result) -> str:
    bad = (one.kind == "coverage" and one.share < BEARABLE) or (one.kind == "false positives" and one.share > FALSE)
    error = f" ± {100 * one.error:.1f}" if one.simulations else ""
    where = f" at {one.world.split(': ')[1]}" if ": " in one.world else ""
    return f"{100 * one.share:.1f}%{error}{where}{MARK if bad else ''}"


def _widths(own: Sequence[Result]) -> Table:
    sizes = list(dict.fromkeys(one.n for one in own))
    cells = {(one.world, one.method, one.n): f"{_times(one.width)} ({_times(one.wide)})" for one in own}
    lines = dict.fromkeys((one.world, one.method) for one in own)
    rows = tuple((*line, *(cells[(*line, n)] for n in sizes)) for line in lines)
    title = "Width of an interval of a mean by that of Student's t: in the median (and exceeded by one in twenty)"
    return Table("width", title, ("World", "Method", *(f"N={n}" for n in sizes)), rows)


def _times(width: float | None) -> str:
    finite = _finite(width)
    return "without bound" if finite is None else f"{finite:.2f}"


def figure(results: Iterable[Result]) -> Picture:
    """Coverage by N, a panel for each world."""
    own = [one for one in results if one.about == "mean"]
    names = list(dict.fromkeys(one.world for one in own))
    with style():
        drawn, axes = panels(len(names), 4, 2.9, 2.3)
        for ax, name in zip(axes, names, strict=True):
            _panel(ax, name, [one for one in own if one.world == name])
        legend_below(drawn, axes[0], len(LOOKS))
        title = "How often a 95% interval of a mean holds the truth, by number of values (SIMULATED)"
        caption = "Coverage by N in each simulated world, with two Monte-Carlo standard errors; dashed: 95%, dotted: 93%"
        return finish(drawn, "coverage", title, caption)


def _panel(ax: Axes, name: str, own: Sequence[Result]) -> None:
    for method, (colour, marker) in LOOKS.items():
        line = [one for one in own if one.method == method]
        sizes, shares = [one.n for one in line], [100 * one.share for one in line]
        ax.errorbar(sizes, shares, [200 * one.error for one in line], color=colour, marker=marker, ms=3.5, lw=1, label=method)
    ax.axhline(95, color=BLACK, lw=0.7, ls="--")
    ax.axhline(100 * BEARABLE, color=BLACK, lw=0.7, ls=":")
    ax.set(xscale="log", ylim=(50, 101), ylabel="coverage %", xlabel="N")
    panel_title(ax, name, *(["recorded"] if own[0].recorded else []))
    ax.set_xticks([one.n for one in own if one.method == "Student t"], [str(one.n) for one in own if one.method == "Student t"])
    ax.minorticks_off()
