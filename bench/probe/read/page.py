"""The page of a probe: its conclusion, the worst counterexample, the grid of cells, and what the agent said beside what was
done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.probe.points import points_of
from bench.probe.read import sentences
from bench.probe.read.run import ProbedPlan, ProbeRead
from bench.probe.read.steps import MAX_ROWS, TimelineStep, last_words, printed_end, steps_of
from bench.read.render.html import render, source
from bench.record.events import of_kind
from bench.record.probe_events import DAMAGE, CallClass, CellVerdict, GatewayCall, PlannedCall, plan_of
from bench.record.probe_rows import Row, RowDifference

TEMPLATE_FOLDER = Path(__file__).parent
MAX_SHOWN_CELLS = 20
"""The most damaged cells that are shown step by step."""
CLASS_TITLES: Mapping[CallClass, str] = {
    "effect": "Calls with an effect",
    "unseen": "Calls whose effect no witness saw",
    "read": "Reads",
    "model": "Requests to the model",
}
VERDICT_TONES: Mapping[CellVerdict, str] = {
    **dict.fromkeys(sorted(DAMAGE), "bad"),
    **{"did_not_end": "hung", "gave_up": "gave"},
    **dict.fromkeys(("absorbed", "compensated", "same"), "fine"),
    **dict.fromkeys(("not_applicable", "no_verdict", "repeated"), "none"),
}


@dataclass(frozen=True)
class GridCell:
    """A place in the grid of calls and points.

    sign, word, tone   the verdict as a character, in words, and as a CSS class
    times              how many of the runs have this verdict, such as `2 of 3`; "" for a single run
    why                the reason for the verdict
    """

    sign: str
    word: str
    tone: str
    times: str = ""
    why: str = ""


@dataclass(frozen=True)
class Grid:
    """The calls of one class, with the verdicts of their cells."""

    title: str
    points: Sequence[str]
    rows: Sequence[tuple[PlannedCall, Sequence[GridCell]]]


@dataclass(frozen=True)
class ShownCell:
    """A damaged cell that is shown step by step.

    when, what   the clauses on the fault, and on its consequence
    word         the verdict in words
    steps        the timeline
    rows         the rows that differ, one line each
    last_words   the end of the agent's standard output, in one line
    printed      the end of all that was printed
    """

    cell: ProbedPlan
    when: str
    what: str
    word: str
    steps: Sequence[TimelineStep]
    rows: Sequence[str]
    said_done: bool
    last_words: str
    printed: str


def page_of(probe: ProbeRead) -> str:
    """Return the page as HTML, with its styles, so that it needs no other file."""
    style = source("page.css") + source("probe.css", TEMPLATE_FOLDER)
    return render(
        "probe.html.j2",
        style,
        folder=TEMPLATE_FOLDER,
        probe=probe,
        outcome=sentences.outcome_clause(probe),
        unseen=sentences.unwitnessed_clause(probe),
        ran=sentences.runs_sentence(probe),
        counted=sentences.verdicts_sentence(probe),
        word=sentences.said_done_sentence(probe),
        shown=[_shown_cell(cell, probe.texts) for cell in probe.damaged_cells[:MAX_SHOWN_CELLS]],
        grids=list(_grids(probe)),
        claims=sentences.claim_sentences(probe),
        limits=sentences.limit_sentences(probe),
        place=_place_in_words,
        values=_values,
    )


def _shown_cell(cell: ProbedPlan, texts: Mapping[str, str]) -> ShownCell:
    """Return a damaged cell as the page shows it."""
    judged = cell.judgement
    assert judged is not None
    return ShownCell(
        cell=cell,
        when=sentences.fault_clause(judged, of_kind(cell.worst.events, GatewayCall), texts),
        what=sentences.consequence_clause(judged),
        word=sentences.verdict_words(cell.verdict),
        steps=steps_of(cell.worst.events, texts),
        rows=[sentences.row_line(row) for finding in judged.findings for row in finding.rows][:MAX_ROWS],
        said_done=judged.said_done,
        last_words=last_words(judged, texts),
        printed=printed_end(judged, texts),
    )


def _grids(probe: ProbeRead) -> Sequence[Grid]:
    """Return a grid for each class of calls."""
    planned = probe.planned.calls if probe.planned else ()
    grids = []
    for call_class, title in CLASS_TITLES.items():
        calls = [call for call in planned if call.call_class == call_class]
        struck_points = {cell.judgement.point for cell in probe.cells.values() if cell.judgement}
        points = [point.name for point in points_of(call_class) if point.name in struck_points or not probe.cells]
        rows = [(call, [_grid_cell(probe, call, point) for point in points]) for call in calls]
        if rows and points:
            grids.append(Grid(title, points, rows))
    return grids


def _grid_cell(probe: ProbeRead, call: PlannedCall, point: str) -> GridCell:
    """Return the most severe cell of a call at a point, over all wire forms."""
    plan = plan_of(call.name, point)
    cells = [cell for name, cell in probe.cells.items() if name == plan or name.startswith(f"{plan}.")]
    if not cells:
        return GridCell("·", "not run", "none")
    worst = min(cells, key=lambda cell: list(sentences.SIGNS).index(cell.verdict))
    sign, word = sentences.SIGNS[worst.verdict], sentences.verdict_words(worst.verdict)
    if not worst.judgement:
        return GridCell(sign, word, "none", why="the control after it was not the same")
    runs, equal_runs = len(worst.runs), sum(judged.verdict == worst.verdict for _, judged in worst.runs)
    times = f"{equal_runs} of {runs}" if runs > 1 else ""
    return GridCell(sign, word, VERDICT_TONES[worst.verdict], times, worst.judgement.why)


def _place_in_words(row: RowDifference) -> str:
    """Return the store, the table and the key of a row in words."""
    return f"{row.store}.{row.table} {row.key}" if row.table else f"{row.store} {row.key}"


def _values(row: Row | None, other_state: Row | None) -> str:
    """Return the values of a row in words; if another state of the row is given, only the values that differ from it."""
    if row is None:
        return "absent"
    names = [name for name in row if other_state is None or row[name] != other_state.get(name)]
    return ", ".join(f"{name} {sentences.value_text(row[name])}" for name in names)
