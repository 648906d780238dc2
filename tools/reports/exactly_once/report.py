"""What the crashes, the kills and the sagas came to: the tables as CSV, one figure, and one page made of the CSVs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from exactly_once import kept
from exactly_once.kills import Killed
from exactly_once.sagas import Otherwise, otherwise

from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import exact_share
from bench.read.render.cells import Cell, Rate
from bench.read.render.drawing import style
from bench.read.render.table import Table, comma_separated, markdown
from studies.exactly_once.study import CrashedArm, crashes_table, exactly_once, pictures, tables, titled

PREFACE = Path(__file__).with_name("preface.md")
SIGNALLED = ("Architecture", "SIGKILLs", "Trials", "The same as in process")
CHECKED = ("Trials", "Crashes planned", "Crashes delivered", "Not applicable", "The two counts of damage agree")


def write(folder: Path, run: Run, kills: Sequence[Killed], sagas: Run) -> None:
    """Write README.md, a CSV of each table, and the figure. The same runs give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in (*tables(run), together(exactly_once(run)), checks(run), by_signal(kills), of_the_runtime(otherwise(sagas))):
        (folder / f"{table.name}.csv").write_text(comma_separated(table), encoding="utf-8")
    with style():
        [picture] = pictures(run)
    (folder / f"{picture.name}.png").write_bytes(picture.png)
    (folder / "README.md").write_text(page(folder), encoding="utf-8")


def page(folder: Path) -> str:
    """Return the page, made from the CSVs of this folder."""
    arms = kept.crashed(folder)
    [figure] = sorted(folder.glob("*.png"))
    _, caption = titled(arms, arms[0].model)
    shown = f"![{caption}]({figure.name})\n\n{caption}\n"
    signalled = [
        Killed(row["Architecture"], int(row["SIGKILLs"]), int(row["Trials"]), int(row[f"{SIGNALLED[3]} k"]))
        for row in kept.rows_of(folder, "kills")
    ]
    [counted] = kept.rows_of(folder, "checks")
    tables = (crashes_table(arms), together(arms), _checks([int(counted[name]) for name in CHECKED]), by_signal(signalled))
    sagas = of_the_runtime(kept.sagas(folder))
    return "\n".join([PREFACE.read_text(encoding="utf-8"), shown, *map(markdown, (*tables, sagas))])


def of_the_runtime(counts: Iterable[Otherwise]) -> Table:
    """Return the table of what no model decides."""
    rows = tuple((each.said, each.architecture, Rate(each.share), each.share.instances or each.share.n) for each in counts)
    notes = (
        "said by arXiv 2605.20173 of sagas and of state machines; otherwise: of the trials that took two effects back in a "
        "row, those that did so in another order; of the trials that proposed what had become stale, those in which it took "
        "effect; k/N with Wilson's 95% interval, clustered by instance; a single trial refutes the sentence",
        "remedied: with the remedies that its author names; simulated: it tells what the runtime does, and nothing of a model",
    )
    columns = ("What is said", "Architecture", "Otherwise", "Instances")
    return Table("sagas", "What the runtime alone decides", columns, rows, notes)


def together(arms: Sequence[CrashedArm]) -> Table:
    """Return the table of all patterns of a form together."""
    rows: list[tuple[Cell, ...]] = []
    for form, remedied in (("bare", False), ("with remedies", True)):
        chosen = [arm for arm in arms if arm.architecture.endswith("_remedied") is remedied]
        for point in dict.fromkeys(arm.point for arm in chosen):
            here = [arm for arm in chosen if arm.point == point]
            crashes = sum(arm.crashes for arm in here)
            damaged = [sum(share.k for share in kinds) for kinds in zip(*(arm.shares.values() for arm in here), strict=True)]
            rows.append((form, point, crashes, *(Rate(exact_share(k, crashes)) for k in damaged)))
    return Table(
        "together",
        "All patterns together",
        ("Form", "Dies", "Crashes", "Lost", "Doubled", "Orphaned", "Uncompensated"),
        tuple(rows),
        (
            "The patterns of one form share their parts and their customers. So their crashes are not independent of each "
            "other, and these intervals are too narrow.",
        ),
    )


def checks(run: Run) -> Table:
    """Return the table of what must be true of every trial."""
    trials = run.trials
    faults = (int(trials[f"faults_{what}"].sum()) for what in ("planned", "delivered", "not_applicable"))
    return _checks([len(trials), *faults, int(trials["recount_agrees"].sum())])


def _checks(counts: Sequence[int]) -> Table:
    return Table("checks", "What must hold of every trial", CHECKED, (tuple(counts),))


def by_signal(kills: Sequence[Killed]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (kill.architecture, kill.kills, kill.trials, Rate(exact_share(kill.agree, kill.trials))) for kill in kills
    ]
    note = (
        "the same: the world's tables, its damage, the number of lives and the grade; the kills are of four customers, whose "
        "trials are not independent, so these intervals are too narrow"
    )
    return Table("kills", "Real SIGKILLs of a real process", SIGNALLED, tuple(rows), (note,))
