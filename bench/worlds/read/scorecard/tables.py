"""The tables of a scorecard: in a section of a report, and for `bench scorecard` in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bench.read.analysis.statistics import PassHat, Share
from bench.read.render.cells import BoundedNumber, Cell, Rate, text_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.damage import DAMAGES
from bench.worlds.read.scorecard.build import scorecard_of, tells_recovery
from bench.worlds.read.scorecard.card import ALL_CRASHES, Receipts, Scorecard, ScorecardRow, Struck
from bench.worlds.read.scorecard.card import RatePerFailure as Measured
from bench.worlds.read.scorecard.cells import ANY_KIND, PASS_HAT_KS
from bench.worlds.read.scorecard.words import DAMAGE_MEANINGS, failure, legend, model, notes, schedules

UNMEASURED = "not measured"
ROW_COLUMNS = (
    TableColumn[ScorecardRow]("Scenario", lambda row: row.world),
    TableColumn[ScorecardRow]("Model", model),
    TableColumn[ScorecardRow]("System", lambda row: row.system),
)
HARM_NOTE = "effects for 100 crashes, beyond what the control did"
HARM_INTERVALS_NOTE = (
    "Intervals of effects are at 95% (Student's t, clustered by instance). Where nothing was damaged, the upper end is the "
    "exact one (Clopper-Pearson) of the share of trials. Where all instances are alike, there is no interval (n/a)."
)
SHARES_NOTE = (
    "A cell k/n holds the share of k among n trials and its exact (Clopper-Pearson) 95% interval. Repeated tries of one task "
    "are not independent, so the interval is widened where they are alike (Korn and Graubard). Where all or none are right, "
    "each task counts once."
)
COPIES_NOTE = (
    "distinct: trials that are no copies; trials of one task that went the same course are copies, as where a system is told "
    "the same after two kinds of death, and intervals take each task once"
)
ONE_KIND_NOTE = "The table has the trials that failures of a single kind struck. The receipts count the others."


class StruckRow(NamedTuple):
    """A system and its trials that were struck by one kind of failure."""

    row: ScorecardRow
    struck: Struck


STRUCK_ROW_COLUMNS: tuple[TableColumn[StruckRow], ...] = tuple(column.of(lambda each: each.row) for column in ROW_COLUMNS)
FAILURE_COLUMN = TableColumn[StruckRow]("What happens", lambda each: failure(each.struck.by))
RIGHT_COLUMN = TableColumn[StruckRow]("Right", lambda each: _share(each.struck.right))
HARM_COLUMNS = (
    TableColumn[StruckRow]("Trials with any", lambda each: _share(each.struck.any_harm)),
    *(
        TableColumn[StruckRow](kind.capitalize(), lambda each, kind=kind: _harm(each.struck, kind))  # type: ignore[misc]
        for kind in DAMAGES
    ),
)


def tables(card: Scorecard) -> tuple[Table, ...]:
    """Return the scorecard's tables, as a report shows them."""
    return (overview(card), by_failure(card), costs(card), pass_table(card), receipts(card))


def overview(card: Scorecard) -> Table:
    """Return the table of recovery at a glance."""
    k = max((hat.k for row in card.rows for hat in _all_crashes(row).pass_hat if hat.value is not None), default=1)
    columns = (
        *ROW_COLUMNS,
        TableColumn[ScorecardRow]("Right, undisturbed", lambda row: _share(row.control)),
        TableColumn[ScorecardRow]("Crashes", lambda row: _all_crashes(row).failures),
        TableColumn[ScorecardRow]("Right after a crash", lambda row: _share(_all_crashes(row).right)),
        TableColumn[ScorecardRow](f"pass^{k}", lambda row: _pass(_all_crashes(row).pass_hat, k)),
        TableColumn[ScorecardRow]("Damaged per 100 crashes", lambda row: _harm(_all_crashes(row), ANY_KIND)),
        TableColumn[ScorecardRow]("Tokens, × control", lambda row: _work(_all_crashes(row), "tokens")),
    )
    table_notes = (
        "right: solved, of the trials that a crash struck",
        SHARES_NOTE,
        f"pass^{k}: the chance that {f'{k} such trials of a task all finish' if k > 1 else 'such a trial finishes'} right",
        f"damaged: {HARM_NOTE}",
        HARM_INTERVALS_NOTE,
        "tokens: what struck trials took, divided by what their controls took; 1 is no waste",
        *notes(card),
        *schedules(card),
    )
    return table_of("scorecard", "Recovery at a glance", columns, card.rows, table_notes)


def by_failure(card: Scorecard) -> Table:
    """Return the table of damage by kind of failure."""
    columns = (
        *STRUCK_ROW_COLUMNS,
        FAILURE_COLUMN,
        TableColumn[StruckRow]("How often", lambda each: each.struck.failures),
        TableColumn[StruckRow]("Trials", lambda each: _count(each.struck, each.struck.trials)),
        RIGHT_COLUMN,
        *HARM_COLUMNS,
    )
    failures = [StruckRow(row, struck) for row in card.rows for struck in _without_repeats(row)]
    copies = any(each.struck.has_copies for each in failures)
    table_notes = (
        "trials with any: trials in which something was damaged more often than in their control",
        SHARES_NOTE,
        HARM_INTERVALS_NOTE,
        ONE_KIND_NOTE,
        "An effect can be damaged in several ways, and then counts under each.",
        *([COPIES_NOTE] if copies else []),
        *legend(each.struck.by for each in failures),
        *(f"{kind}: {what}" for kind, what in DAMAGE_MEANINGS.items()),
    )
    return table_of("scorecard-failures", "By what happened: effects damaged for 100 failures", columns, failures, table_notes)


def short_table(card: Scorecard) -> Table:
    """Return the short table of damage by kind of failure."""
    columns = (
        *STRUCK_ROW_COLUMNS,
        FAILURE_COLUMN,
        TableColumn[StruckRow]("How often, in trials", lambda each: f"{each.struck.failures} in {each.struck.trials}"),
        RIGHT_COLUMN,
        TableColumn[StruckRow]("Effects damaged for 100 of them", lambda each: _damage_by_kind(each.struck)),
    )
    failures = [StruckRow(row, struck) for row in card.rows for struck in row.struck if struck.by != ALL_CRASHES]
    damaged = {kind for each in failures for kind, harm in each.struck.harm.items() if harm.effects}
    kinds = (f"{kind}: {what}" for kind, what in DAMAGE_MEANINGS.items() if kind in damaged)
    table_notes = (ONE_KIND_NOTE, *legend(each.struck.by for each in failures), *kinds)
    return table_of("scorecard-in-short", "By what happened", columns, failures, table_notes)


def costs(card: Scorecard) -> Table:
    """Return the table of the costs of recovery."""

    def recovery_column(title: str, kind: str, digits: int) -> TableColumn[StruckRow]:
        return TableColumn(title, lambda each: _rate(each.struck.recovery[kind], digits))

    columns = (
        *STRUCK_ROW_COLUMNS,
        FAILURE_COLUMN,
        TableColumn[StruckRow]("Trials", lambda each: each.struck.compared),
        TableColumn[StruckRow]("Tokens, ×", lambda each: _work(each.struck, "tokens")),
        TableColumn[StruckRow]("Model calls, ×", lambda each: _work(each.struck, "calls")),
        TableColumn[StruckRow]("Tool calls, ×", lambda each: _work(each.struck, "tool_calls")),
        recovery_column("Tokens, each", "tokens", 0),
        recovery_column("Calls, each", "calls", 1),
        recovery_column("Tool calls, each", "tool_calls", 1),
        recovery_column("Seconds, each", "seconds", 2),
    )
    table_notes = (
        "×: what struck trials took in all, divided by what their controls took; 1 is no wasted work",
        "each: what struck trials took beyond their controls, for each failure",
        "seconds: model calls and waiting on the trial's clock; the seconds of a simulated model are declared",
        "A trial counts if it and its control came to an end. Intervals are clustered by instance.",
    )
    rows = [StruckRow(row, struck) for row in card.rows for struck in _without_repeats(row)]
    return table_of("scorecard-cost", "What recovery costs", columns, rows, table_notes)


class HatsRow(NamedTuple):
    """The chances that k tries of a task all succeed, over a system's trials that the failure `by` struck."""

    row: ScorecardRow
    by: str
    hats: Sequence[PassHat]


def pass_table(card: Scorecard) -> Table:
    """Return the table of pass^k."""

    def pass_column(k: int) -> TableColumn[HatsRow]:
        return TableColumn(f"k = {k}", lambda each: _pass(each.hats, k))

    columns = (
        *(column.of(lambda each: each.row) for column in ROW_COLUMNS),
        TableColumn[HatsRow]("What happens", lambda each: failure(each.by)),
        TableColumn[HatsRow]("Tasks", lambda each: ", ".join(str(hat.n) for hat in each.hats)),
        *map(pass_column, PASS_HAT_KS),
    )
    rows = []
    for row in card.rows:
        rows.append(HatsRow(row, "control", row.control_pass_hat))
        rows += [HatsRow(row, struck.by, struck.pass_hat) for struck in _without_repeats(row)]
    table_notes = (
        "If c of a task's n tries finished right, its chance is C(c, k) / C(n, k). pass^k is the mean over tasks (tau-bench, "
        "arXiv 2406.12045).",
        "Tasks: how many have at least k tries, for each k. A task with fewer has no pass^k and is left out.",
    )
    return table_of("scorecard-pass", "How surely: the chance that k all finish right (pass^k)", columns, rows, table_notes)


class ReceiptsRow(NamedTuple):
    """The outcomes of a system's planned faults of one kind. Numbers over all its trials are shown only on the `first` row."""

    row: ScorecardRow
    receipts: Receipts
    first: bool


def receipts(card: Scorecard) -> Table:
    """Return the table of planned failures and their outcomes."""

    def of_all(title: str, read: Callable[[ScorecardRow], Cell]) -> TableColumn[ReceiptsRow]:
        return TableColumn(title, lambda each: read(each.row) if each.first else "")

    columns = (
        *(column.of(lambda each: each.row) for column in ROW_COLUMNS),
        TableColumn[ReceiptsRow]("What happens", lambda each: failure(each.receipts.by)),
        TableColumn[ReceiptsRow]("Planned", lambda each: each.receipts.planned),
        TableColumn[ReceiptsRow]("Delivered", lambda each: each.receipts.delivered),
        TableColumn[ReceiptsRow]("Not applicable", lambda each: each.receipts.not_applicable),
        of_all("Trials", lambda row: row.trials),
        of_all("Not struck", lambda row: row.not_struck),
        of_all("Mixed", lambda row: row.mixed),
        of_all("Errors", lambda row: row.errors),
        of_all("Two counts agree", lambda row: f"{row.two_counts_agree.k} of {row.two_counts_agree.n}"),
    )
    rows = []
    for row in card.rows:
        receipts_by_kind = [receipt for receipt in row.receipts if receipt.by != ALL_CRASHES]
        rows += [ReceiptsRow(row, receipt, first=not number) for number, receipt in enumerate(receipts_by_kind)]
    table_notes = (
        "not struck: trials under a fault plan that no failure came to; they stand in no number above",
        "mixed: trials that failures of several kinds struck",
        "errors: trials that ended in an error of the benchmark or of the endpoint",
        "two counts agree: trials in which the journal and the world's tables, counted separately, give the same damage",
    )
    return table_of("scorecard-receipts", "Receipts: every planned failure, and what became of it", columns, rows, table_notes)


NO_CRASHES = Struck(ALL_CRASHES, 0, 0, 0, Share(0, 0, None, None, None), (), 0, Share(0, 0, None, None, None), {}, 0, {}, {})


def _all_crashes(row: ScorecardRow) -> Struck:
    """Return the cell for all crashes of a row together; an empty cell if no plan has crashes."""
    return row.struck_by(ALL_CRASHES) or NO_CRASHES


def _without_repeats(row: ScorecardRow) -> Iterator[Struck]:
    """Yield the cells of a row. If all crashes are at one point, the cell for all points would repeat the cell of this point,
    and is skipped."""
    crash_cells = [cell for cell in row.struck if cell.by.startswith("process:")]
    has_single_point = len(crash_cells) == 2  # the cell of the point, and the cell for all points
    return (cell for cell in row.struck if cell.by != ALL_CRASHES or not has_single_point)


def _count(struck: Struck, count: int) -> Cell:
    """Return a count, with the number of distinct trials if there are copies."""
    return f"{count}, {struck.distinct} distinct" if struck.has_copies else count


def _share(share: Share) -> Cell:
    return Rate(share) if share.n else UNMEASURED


def _rate(rate: Measured, digits: int = 0) -> Cell:
    return BoundedNumber(rate.value, rate.low, rate.high, digits) if rate.value is not None else UNMEASURED


def _harm(struck: Struck, kind: str) -> Cell:
    return _rate(struck.harm[kind].per_100) if kind in struck.harm else UNMEASURED


def _work(struck: Struck, kind: str) -> Cell:
    return _rate(struck.work[kind], 2) if kind in struck.work else UNMEASURED


def _damage_by_kind(struck: Struck) -> Cell:
    """Return the total damage with its interval, and the damage by kind."""
    if not struck.paired:
        return UNMEASURED
    harms = {kind: struck.harm[kind].per_100.value or 0.0 for kind in DAMAGES if struck.harm[kind].effects}
    kinds = ", ".join(f"{value:.0f} {kind}" for kind, value in harms.items())
    whole = text_of(_rate(struck.harm[ANY_KIND].per_100))
    return f"{whole}: {kinds}" if kinds else whole


def _pass(hats: Sequence[PassHat], k: int) -> Cell:
    """Return pass^k for this k."""
    hat_at_k = next((hat for hat in hats if hat.k == k and hat.value is not None), None)
    return BoundedNumber(hat_at_k.value, hat_at_k.low, hat_at_k.high, 0, percent=True) if hat_at_k else UNMEASURED


PARTS = (
    TablePart(
        "scorecard",
        lambda of: tables(scorecard_of([of.run])) if tells_recovery(of.run) else (),
        "scorecard",
        concerns=("faults",),
        says_limits=False,
    ),
)
