"""Sizes: when is a round of `static` dearer than a round of `monolithic`? A closed form without a model, beside measurements.

A round of monolithic is its pass. A round of static is the part of its pass from the struck subtask to the checkpoint that
notices it. So two numbers decide: how much dearer static's pass is, and the share of it that is run again. The first grows with
the shared context and the number of calls; the second depends on where the failure is noticed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, Condition, arms_of
from bench.read.analysis.factors import ARCHITECTURE, ArmName, VerdictEvidence, factors_between, reason_against_verdict
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import MIN_PRICED_TRIALS
from bench.read.analysis.plans import subtasks_of_round
from bench.read.analysis.published import load_published
from bench.read.analysis.statistics import PairedMean
from bench.read.claims.closed_forms import MIN_RATIO_GAP, FirstPrices, agrees_with_side, first_prices
from bench.read.render.cells import Cell, Estimate
from bench.read.render.drawing import BLACK, GREY, PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.marks import Sign, signs_of
from bench.read.render.table import Table, TableColumn, table_of

from ..by_model import by_model


def pass_ratio(depth: int, shared: float, handed_on: float = 0.0) -> float:
    """Return the price of a pass of static divided by the price of a pass of monolithic, in a pipeline of `depth` equal calls.

    Let a call's own tokens (its instructions, its form, its reply) be 1. `shared` is what every call is told again (the role,
    the documents) and a single call for all is told once. `handed_on` is what a call reads of earlier outputs, which a single
    call for all writes and does not read.
    """
    return depth * (shared + handed_on + 1) / (shared + depth)


def round_ratio(pass_ratio: float, run_again: float) -> float:
    """Return the price of a round of static divided by the price of a round of monolithic.

    `run_again` is the share of static's pass from the struck subtask to where the failure is noticed. The ratio is exact for
    calls of any sizes, because a round of monolithic is its pass. So static is dearer if `run_again` is larger than
    monolithic's pass divided by static's.
    """
    return pass_ratio * run_again


def shared_at_parity(depth: int, run_again: float, handed_on: float = 0.0) -> float | None:
    """Return the amount of shared context from which a round of static is dearer than a round of monolithic: 0 if it always is,
    None if it never is."""
    if depth * run_again <= 1:
        return None
    return max(0.0, depth * (1 - run_again * (1 + handed_on)) / (depth * run_again - 1))


@dataclass(frozen=True)
class MapPoint:
    """The place of a pipeline and a failure on the map: static's pass divided by monolithic's, and the share of it run
    again."""

    pass_ratio: float
    run_again: float

    @property
    def round_ratio(self) -> float:
        return round_ratio(self.pass_ratio, self.run_again)


@dataclass(frozen=True)
class SizedRound:
    """A scenario under a plan that strikes one subtask. `again`: the subtasks that static runs again. `measured`: its first
    rounds minus monolithic's, in tokens. `factors`: in what the two differ."""

    scenario: str
    model: str
    plan: str
    subtasks: int
    again: tuple[str, ...]
    prices: FirstPrices
    measured: PairedMean
    factors: tuple[str, ...]

    @property
    def place(self) -> MapPoint:
        rerun = sum(self.prices.static[name] for name in self.again)
        return MapPoint(self.prices.pass_price / self.prices.monolithic, rerun / self.prices.pass_price)

    @property
    def verdict(self) -> str:
        return verdict(self.place.round_ratio, self.measured, self.factors)


def verdict(ratio: float, measured: PairedMean, factors: tuple[str, ...] = (ARCHITECTURE,)) -> str:
    """Return the verdict on a measured direction, given the closed form's ratio of the rounds and in what the arms differ."""
    difference = measured.difference
    if difference.n < MIN_PRICED_TRIALS or difference.low is None or difference.high is None:
        return "not measured"
    if reason_against_verdict(VerdictEvidence(factors, difference.n, difference.n, difference.n), ARCHITECTURE):
        return "not comparable"
    if abs(ratio - 1) < MIN_RATIO_GAP:
        return "sizes do not decide"
    side = (difference.low > 0) - (difference.high < 0)
    if not side:
        return "inconclusive"
    return "decided by sizes" if agrees_with_side(ratio, side) else "not by sizes alone"


def sizes(run: Run) -> list[SizedRound]:
    """Return the rounds by scenario, model and plan. Raise ResultsError if nothing can be compared."""
    arms, rounds = arms_of(run), list[SizedRound]()
    for scenario in run.names("scenario"):
        for model in run.names("model"):
            prices = first_prices(run, scenario, model)
            for plan, again in subtasks_of_round(run, scenario).items() if prices else ():
                pair = arms.get(Condition(scenario, model, plan), {})
                if prices and (measured := _difference(pair.get("static"), pair.get("monolithic"))):
                    factors = factors_between(run, ArmName("static", model, plan), ArmName("monolithic", model, plan))
                    rounds.append(SizedRound(scenario, model, plan, len(prices.static), again, prices, measured, factors))
    if not rounds:
        raise ResultsError(
            "needs monolithic and static without faults, and under a plan whose one fault breaks a subtask's form"
        )
    return rounds


def _difference(static: Arm | None, monolithic: Arm | None) -> PairedMean | None:
    return static.minus(monolithic, "first_round_tokens") if static and monolithic else None


def published_places() -> dict[str, MapPoint]:
    """Return the places of the paper's two tables, by table."""
    published, places = load_published(), dict[str, MapPoint]()
    for table in published.table:
        tokens, again = table.cells["tokens"].values, table.cells["retry_tokens"].values
        passed = tokens["static"].mean
        places[f"the paper's Table {table.number}"] = MapPoint(
            passed / tokens["monolithic"].mean, again["static"].mean / passed
        )
    return places


# Tables and figures

SIZED = (
    TableColumn[SizedRound]("Run again", lambda sized: f"{len(sized.again)} of {sized.subtasks}"),
    TableColumn[SizedRound]("Pass of monolithic", lambda sized: round(sized.prices.monolithic)),
    TableColumn[SizedRound]("Pass of static", lambda sized: round(sized.prices.pass_price)),
    TableColumn[SizedRound]("Static's pass by monolithic's", lambda sized: f"{sized.place.pass_ratio:.2f}"),
    TableColumn[SizedRound]("Share of it run again", lambda sized: f"{sized.place.run_again:.0%}"),
    TableColumn[SizedRound]("Round, static by monolithic", lambda sized: f"{sized.place.round_ratio:.2f}"),
    TableColumn[SizedRound](
        "First rounds: static less monolithic", lambda sized: Estimate(sized.measured.difference, with_n=True)
    ),
    TableColumn[SizedRound]("Verdict", lambda sized: sized.verdict),
)
NOTES = (
    "passes: mean tokens of the first calls without faults; round: the closed form, the product of the two columns before it",
    "first rounds: measured, paired by repetition, mean ± sd [95% interval]",
    f"decided by sizes: the closed form has the sign that was measured, so that it says nothing of the model or of the "
    f"architecture beyond sizes; sizes do not decide: the closed form is within {MIN_RATIO_GAP:.0%} of 1",
)
PARITY_NOTES = (
    "for equal calls, in units of a call's own tokens (its instructions, its form, its reply); handed on: what a call "
    "reads of earlier outputs, in the same unit",
    "shared context: the role and the documents that every call is told again, and one call for all is told once",
)
DEPTHS, SHARES, HANDED_ON = (2, 3, 4, 5, 8, 16), (0.25, 0.5, 0.75, 1.0), (0.0, 0.5)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[SizedRound]("Scenario", lambda sized: sized.scenario),
        TableColumn[SizedRound]("Model", lambda sized: model_label(run, sized.model)),
        TableColumn[SizedRound]("Fault plan", lambda sized: sized.plan),
        *SIZED,
    )
    table = table_of(
        "study-sizes", "Sizes: when a round of static is dearer than one of monolithic", columns, sizes(run), NOTES
    )
    yield replace(table, rows=(*table.rows, *(_published_row(*named) for named in published_places().items())))
    yield _parity_table()


def _published_row(name: str, place: MapPoint) -> tuple[Cell, ...]:
    """Return a row of the paper. It publishes sizes, but no single rounds."""
    published: dict[str, Cell] = {
        "Scenario": name,
        "Model": "gpt-4",
        "Fault plan": "its own",
        "Static's pass by monolithic's": f"{place.pass_ratio:.2f}",
        "Share of it run again": f"{place.run_again:.0%}",
        "Round, static by monolithic": f"{place.round_ratio:.2f}",
    }
    return tuple(
        published.get(title, "–") for title in ("Scenario", "Model", "Fault plan", *(column.title for column in SIZED))
    )


def _parity_table() -> Table:
    def shared(again: float) -> TableColumn[tuple[int, float]]:
        return TableColumn(f"{again:.0%} run again", lambda calls: _parity(shared_at_parity(calls[0], again, calls[1])))

    columns = (
        TableColumn[tuple[int, float]]("Calls", lambda calls: calls[0]),
        TableColumn[tuple[int, float]]("Handed on", lambda calls: f"{calls[1]:g}"),
        *map(shared, SHARES),
    )
    title = "Sizes: the shared context from which on a round of static is dearer, by the closed form"
    return table_of("study-sizes-parity", title, columns, itertools.product(DEPTHS, HANDED_ON), PARITY_NOTES)


def _parity(shared: float | None) -> str:
    return "never" if shared is None else f"{shared:.1f}" if shared else "always"


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: the map with all points, and what makes static's pass dearer."""
    for model, rounds in by_model(run, sizes(run)):
        figure, (plane, origin) = panels(2, 2, 5.6, 4.4)
        _draw_map(plane, rounds)
        _draw_origin(origin)
        title = f"Sizes: when a round of static is dearer than one of monolithic, {model_label(run, model)}"
        caption = (
            "Left: a point for each scenario under each plan, and for the paper's two scenarios; above the line static's round "
            "costs more by the closed form. Right: what makes static's pass cost more, if calls are equal and pass nothing on."
        )
        yield finish(figure, slug("study", "sizes", model), title, f"{title}. {caption}")


def _draw_map(ax: Axes, rounds: Sequence[SizedRound]) -> None:
    signs = signs_of(list(dict.fromkeys(sized.scenario for sized in rounds)))
    ours = {scenario: [sized.place for sized in rounds if sized.scenario == scenario] for scenario in signs}
    papers = published_places()
    widest = 1.15 * max(place.pass_ratio for places in (*ours.values(), papers.values()) for place in places)
    line = [1 + (widest - 1) * step / 100 for step in range(101)]
    ax.plot(line, [1 / x for x in line], color=BLACK, lw=1)
    ax.fill_between(line, [1 / x for x in line], 1.0, color=PALE, alpha=0.5, lw=0)
    for scenario, places in ours.items():
        _dots(ax, places, signs[scenario], scenario)
    for (name, place), marker in zip(papers.items(), ("*", "P"), strict=False):
        _dots(ax, [place], (marker, BLACK), name, size=10)
    ax.set_xlim(1, widest)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("static's pass by monolithic's, in tokens")
    ax.set_ylabel("share of static's pass that is run again")
    ax.set_title("in the grey static's round is dearer")
    ax.legend(fontsize=6.5, loc="lower right")


def _dots(ax: Axes, places: Sequence[MapPoint], sign: Sign, label: str, size: float = 5) -> None:
    xs, ys = [place.pass_ratio for place in places], [place.run_again for place in places]
    ax.plot(xs, ys, sign[0], color=sign[1], ms=size, label=label, alpha=0.9)


def _draw_origin(ax: Axes) -> None:
    shared = [step / 10 for step in range(101)]
    for depth, (_, colour) in signs_of([str(depth) for depth in DEPTHS]).items():
        ax.plot(shared, [pass_ratio(int(depth), share) for share in shared], color=colour, lw=1.2, label=f"{depth} calls")
    for share in SHARES[:-1]:
        ax.axhline(1 / share, color=GREY, lw=0.7, ls=":")
        ax.text(10, 1 / share, f"{share:.0%} run again", ha="right", va="bottom", fontsize=6.5)
    ax.set_xlim(0, 10)
    ax.set_ylim(bottom=1)
    ax.set_xlabel("shared context, in units of a call's own tokens")
    ax.set_ylabel("static's pass by monolithic's")
    ax.set_title("above a dotted line static's round is dearer")
    ax.legend(fontsize=6.5)
