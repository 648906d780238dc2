"""What the crashes, the kills and the two claims came to: one page, the tables as CSV, one figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from exactly_once.kills import Killed

from bench.analysis.claims.published import load_others
from bench.analysis.claims.verdicts import judge_each
from bench.analysis.frames import Run
from bench.analysis.statistics import exact_share
from bench.render.drawing import style
from bench.render.table import Cell, Rate, Table, comma_separated, markdown
from bench.report.claims_table import other_claims
from bench.studies.exactly_once import exactly_once, pictures, tables

PREFACE = Path(__file__).with_name("preface.md")


def write(folder: Path, run: Run, kills: Sequence[Killed], sagas: Run) -> None:
    """Writes README.md, a CSV of each table, and the figure: the same bytes for the same runs."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [*tables(run), whole(run), by_signal(kills), *claims(sagas)]
    for table in found:
        (folder / f"{table.name}.csv").write_text(comma_separated(table), encoding="utf-8")
    with style():
        [picture] = pictures(run)
    (folder / f"{picture.name}.png").write_bytes(picture.png)
    (folder / f"{picture.name}.svg").write_bytes(picture.svg)
    shown = f"![{picture.caption}]({picture.name}.svg)\n\n{picture.caption}\n"
    page = [PREFACE.read_text(encoding="utf-8"), shown, *map(markdown, found)]
    (folder / "README.md").write_text("\n".join(page), encoding="utf-8")


def whole(run: Run) -> Table:
    """All patterns of a form together, and what must hold of every trial."""
    rows: list[tuple[Cell, ...]] = []
    for form, remedied in (("bare", False), ("with remedies", True)):
        own = [one for one in exactly_once(run) if one.architecture.endswith("_remedied") is remedied]
        for point in dict.fromkeys(one.point for one in own):
            here = [one for one in own if one.point == point]
            crashes = sum(one.crashes for one in here)
            damaged = [sum(share.k for share in kinds) for kinds in zip(*(one.shares.values() for one in here), strict=True)]
            rows.append((form, point, crashes, *(Rate(exact_share(k, crashes)) for k in damaged)))
    columns = ("Form", "Dies", "Crashes", "Lost", "Doubled", "Orphaned", "Uncompensated")
    return Table("together", "All patterns together", columns, tuple(rows), _checks(run))


def _checks(run: Run) -> tuple[str, ...]:
    trials = run.trials
    planned, delivered, none = (int(trials[f"faults_{what}"].sum()) for what in ("planned", "delivered", "not_applicable"))
    return (
        f"{len(trials):,} trials; {planned:,} crashes were planned, {delivered:,} delivered, {none:,} not applicable",
        f"the two counts of damage agree in {int(trials['recount_agrees'].sum()):,} of {len(trials):,} trials",
        "the patterns of one form share their parts, so that their crashes are not independent of each other",
    )


def by_signal(kills: Sequence[Killed]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.architecture, one.kills, one.trials, Rate(exact_share(one.agree, one.trials))) for one in kills
    ]
    return Table(
        "kills",
        "Real SIGKILLs of a real process",
        ("Architecture", "SIGKILLs", "Trials", "The same as in process"),
        tuple(rows),
        ("the same: the world's tables, its damage, the number of lives and the grade",),
    )


def claims(run: Run) -> Iterator[Table]:
    for judged in judge_each(run, load_others()):
        yield other_claims(run, judged)
