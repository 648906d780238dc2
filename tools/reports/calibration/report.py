"""What the calibration found: one CSV with every result, one page, one figure."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from calibration.chosen import CHOSEN
from calibration.exchange import Verdicts
from calibration.experiments import Result, Simulations
from calibration.worlds import Recorded
from calibration.worst import table as worst_table
from calibration.worst import worst
from matplotlib.axes import Axes

from bench.read.analysis.statistics import share_of
from bench.read.analysis.statistics.limits import MEASURE_NAMES, MIN_COVERAGE
from bench.read.render.cells import Rate
from bench.read.render.drawing import (
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
from bench.read.render.table import Table, markdown
from bench.read.render.table import comma_separated as table_csv

FALSE = 0.06
"""A test at 5% that finds more often what is not there is limited."""
MARK = " (!)"
PREFACE = Path(__file__).with_name("preface.md")
LOOKS = {
    "Student t": (BLUE, "o"),
    "t of the logarithm": (GREEN, "D"),
    "BCa": (VERMILION, "s"),
    "percentile": (ORANGE, "v"),
    "bootstrap-t": (GREY, "^"),
}


def write(
    folder: Path, results: Sequence[Result], verdicts: Sequence[Verdicts], recorded: Recorded, simulations: Simulations
) -> None:
    """Write README.md, worst.md, two CSVs and coverage.{png,svg}. The same results give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = figure(results)
    (folder / "calibration.csv.gz").write_bytes(gzip.compress(comma_separated(results).encode(), mtime=0))
    (folder / "verdicts.csv").write_text(table_csv(verdicts_table(verdicts)), encoding="utf-8")
    (folder / "worst.md").write_text(markdown(worst_table(worst(results))), encoding="utf-8")
    (folder / "README.md").write_text(page(results, verdicts, recorded, simulations, picture), encoding="utf-8")
    (folder / f"{picture.name}.png").write_bytes(picture.png)


def comma_separated(results: Iterable[Result]) -> str:
    """Return every field, and the Monte-Carlo error of the share, as CSV. What has no bound, or is none, is an empty field."""
    written = io.StringIO()
    names = [field.name for field in fields(Result)]
    writer = csv.DictWriter(written, [*names, "error"], lineterminator="\n")
    writer.writeheader()
    for result in results:
        row = asdict(result) | {"error": result.error}
        rounded = {name: _finite(value, 3 if name in ("width", "wide") else 6) for name, value in row.items()}
        writer.writerow(rounded)
    return written.getvalue()


def read_back(text: str) -> list[Result]:
    """Return the results of a table, with its rounding."""
    rows = csv.DictReader(io.StringIO(text))
    return [
        Result(
            *(row["kind"], row["about"], row["world"], row["recorded"] == "True", int(row["n"]), row["method"]),
            *(float(row["share"] or "nan"), int(row["simulations"])),
            flat=float(row["flat"]) if row["flat"] else None,
            absent=float(row["absent"]) if row["absent"] else None,
            measure=row["measure"],
        )
        for row in rows
    ]


def _finite(value: object, digits: int) -> object:
    if not isinstance(value, float):
        return value
    return round(value, digits) if math.isfinite(value) else None


def page(
    results: Sequence[Result],
    verdicts: Sequence[Verdicts],
    recorded: Recorded,
    simulations: Simulations,
    picture: Picture,
) -> str:
    parts = [
        _preface(results, verdicts, recorded, simulations),
        markdown(_chosen()),
        markdown(worst_table(worst(results))),
        f"![{picture.caption}]({picture.name}.png)\n",
        markdown(verdicts_table(verdicts)),
    ]
    return "\n".join(parts)


def _preface(results: Sequence[Result], verdicts: Sequence[Verdicts], recorded: Recorded, simulations: Simulations) -> str:
    return PREFACE.read_text(encoding="utf-8").format(
        found=recorded,
        simulations=simulations,
        mark=MARK.strip(),
        bearable=MIN_COVERAGE,
        false=FALSE,
        held=_Held(results),
        upper=max((verdict.upper for verdict in verdicts), default=0.0),
    )


class _Held:
    """The numbers that the preface cites: `about|world|N|method`."""

    def __init__(self, results: Sequence[Result]):
        self._shares = {f"{result.about}|{result.world}|{result.n}|{result.method}": result.share for result in results}

    def __getitem__(self, key: str) -> str:
        return f"{self._shares[key]:.0%}" if key in self._shares else "–"


def _chosen() -> Table:
    rows = tuple((kind, *of_kind) for kind, of_kind in CHOSEN.items())
    return Table("chosen", "Which method the suite takes", ("Of a", "Method", "Why"), rows)


def verdicts_table(verdicts: Sequence[Verdicts]) -> Table:
    """Return the rates of false verdicts with their intervals, and how often the verdict is on the side that was measured."""
    rows = tuple(
        (
            *(verdict.run, verdict.claim, verdict.pairs, verdict.verdict or "–"),
            *(Rate(share_of(verdict.false, verdict.exchanges)), f"{verdict.upper:.1%}{MARK if verdict.upper > FALSE else ''}"),
            Rate(share_of(verdict.reached, verdict.redrawn)) if verdict.redrawn else "–",
        )
        for verdict in verdicts
    )
    return Table(
        "verdicts",
        "Recorded runs: verdicts where no architecture differs, and where they differ as measured",
        ("Run", "Claim", "N", "Verdict", "False, labels exchanged", "Upper limit", "Reached, pairs drawn anew"),
        rows,
    )


def result_table(title: str, kind: str, about: str, measure: str, results: Iterable[Result]) -> Table:
    """Return a table with world and method down, and N across."""
    shown = [result for result in results if (result.kind, result.about, result.measure) == (kind, about, measure)]
    sizes = list(dict.fromkeys(result.n for result in shown))
    cells = {(_world(result), result.method, result.n): _share(result) for result in shown}
    lines = dict.fromkeys((_world(result), result.method) for result in shown)
    rows = tuple((*line, *(cells.get((*line, n), "–") for n in sizes)) for line in lines)
    named = title.format(measure=MEASURE_NAMES.get(measure, measure))
    return Table(f"{about} {measure}", named, ("World", "Method", *(f"N={n}" for n in sizes)), rows)


def _world(result: Result) -> str:
    # The worst rate is another one at each N: it goes into the cell.
    name = result.world.split(": ")[0] if result.about == "rate" else result.world
    return f"{name}, recorded" if result.recorded and result.measure else name


def _share(result: Result) -> str:
    if math.isnan(result.share):
        return "no interval"
    bad = (result.kind == "coverage" and result.share < MIN_COVERAGE) or (
        result.kind == "false positives" and result.share > FALSE
    )
    error = f" ± {100 * result.error:.1f}" if result.simulations else ""
    where = f" at {result.world.split(': ')[1]}" if result.about == "rate" and ": " in result.world else ""
    parts = [
        f"{share:.0%} {what}" for share, what in ((result.flat, "flat"), (result.absent, "none")) if share and share >= 0.005
    ]
    beside = f", {', '.join(parts)}" if parts else ""
    return f"{100 * result.share:.1f}%{error}{where}{MARK if bad else ''}{beside}"


def figure(results: Iterable[Result]) -> Picture:
    """Draw the coverage by N, with a panel for each world within what was recorded."""
    shown = [result for result in results if result.about == "mean" and result.recorded]
    names = list(dict.fromkeys((result.measure, result.world) for result in shown))
    with style():
        drawn, axes = panels(len(names), 4, 2.9, 2.3)
        for ax, (measure, name) in zip(axes, names, strict=True):
            _panel(ax, measure, name, [result for result in shown if (result.measure, result.world) == (measure, name)])
        legend_below(drawn, axes[0], len(LOOKS))
        title = "How often a 95% interval of a mean holds the truth, by number of values (SIMULATED)"
        caption = (
            "Coverage by N in each world like the recorded runs, with two Monte-Carlo standard errors; dashed: 95%, dotted: 93%"
        )
        return finish(drawn, "coverage", title, caption)


def _panel(ax: Axes, measure: str, name: str, results: Sequence[Result]) -> None:
    for method, (colour, marker) in LOOKS.items():
        line = [result for result in results if result.method == method]
        sizes, shares = [result.n for result in line], [100 * result.share for result in line]
        ax.errorbar(
            sizes, shares, [200 * result.error for result in line], color=colour, marker=marker, ms=3.5, lw=1, label=method
        )
    ax.axhline(95, color=BLACK, lw=0.7, ls="--")
    ax.axhline(100 * MIN_COVERAGE, color=BLACK, lw=0.7, ls=":")
    ax.set(xscale="log", ylim=(30, 101), ylabel="coverage %", xlabel="N")
    panel_title(ax, name, MEASURE_NAMES.get(measure, measure))
    sizes = sorted({result.n for result in results})
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
