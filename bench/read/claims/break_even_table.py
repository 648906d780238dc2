"""The table of the break-even rates of every two architectures, beside the paper's rates and the rejections of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain

from bench.read.analysis.results import Results
from bench.read.claims.break_even import ArchitecturePair, BreakEven, architecture_pairs
from bench.read.render.cells import NOT_MEASURED, BoundedNumber, Cell, Estimate, Number
from bench.read.render.labels import condition_columns
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart

ALWAYS, NEVER, UNBOUNDED = "at any rate", "never", "no upper bound"
MIN_BOOTSTRAP_UNITS = 5
"""With fewer units, a bootstrap interval cannot cover the truth in 93% of experiments."""


def break_even_tables(results: Results) -> list[Table]:
    """Return the table; no table if no two architectures have first passes without faults, and rounds with faults."""
    pairs = list(chain.from_iterable(architecture_pairs(results.arms, results.published).values()))
    paper_column = TableColumn[ArchitecturePair](
        "By the paper's figures", lambda pair: _rate_cell(pair.published.rate) if pair.published else "–"
    )
    columns = (
        *(column.of(lambda pair: pair.condition) for column in condition_columns(results.run)),
        TableColumn[ArchitecturePair]("Architecture", lambda pair: pair.name),
        TableColumn[ArchitecturePair]("Against", lambda pair: pair.other),
        TableColumn[ArchitecturePair]("First pass", lambda pair: BoundedNumber.of(pair.passes.ours)),
        TableColumn[ArchitecturePair]("First pass, other's", lambda pair: BoundedNumber.of(pair.passes.theirs)),
        TableColumn[ArchitecturePair]("Pairs of passes", lambda pair: pair.passes.ours.n),
        TableColumn[ArchitecturePair]("First round", lambda pair: BoundedNumber.of(pair.rounds.ours)),
        TableColumn[ArchitecturePair]("First round, other's", lambda pair: BoundedNumber.of(pair.rounds.theirs)),
        TableColumn[ArchitecturePair]("Pairs of rounds", lambda pair: pair.rounds.ours.n),
        TableColumn[ArchitecturePair](
            "Cheaper from failures a trial", lambda pair: _rate_cell(pair.break_even.rate) if pair.break_even else NOT_MEASURED
        ),
        TableColumn[ArchitecturePair]("Low", lambda pair: _bounds(pair.break_even)[0]),
        TableColumn[ArchitecturePair]("High", lambda pair: _bounds(pair.break_even)[1]),
        *([paper_column] if any(pair.published for pair in pairs) else []),
        TableColumn[ArchitecturePair]("Rejections a trial", lambda pair: Estimate(pair.rejections[0], 1, with_n=True)),
        TableColumn[ArchitecturePair]("Rejections a trial, other's", lambda pair: Estimate(pair.rejections[1], 1, with_n=True)),
    )
    title = "Break-even: from how many failures a trial on an architecture is cheaper than another"
    notes = (*_NOTES, *([_PAPER_NOTE] if any(pair.published for pair in pairs) else []), *_few_units_note(pairs))
    return [table_of("break_even", title, columns, pairs, notes)] if pairs else []


_NOTES = (
    "tokens: the mean [95% interval] of a first pass without faults, and of the first round after a detected fault, over the "
    "pairs in which both have one (over instances if there are several); a trial that gave up before every subtask was asked "
    "for has no first pass",
    "cheaper from: (its first pass − the other's) / (the other's first round − its own) failures a trial, if both fail "
    f"equally often; {ALWAYS}: its first pass is no dearer and its round is cheaper; {NEVER}: its round is no cheaper",
    "low, high: 95% interval by paired bootstrap, expanded for few pairs; no upper bound: what its round saves is not "
    "distinguishable from 0",
    "rejections a trial: by verification, without faults, mean ± sd [95% interval]; one side can fail more often; the last "
    "rejection of a trial that gives up costs no round",
)
_PAPER_NOTE = "by the paper's figures: its tokens without a failure are the first pass, its retry tokens the round"


def _few_units_note(pairs: Iterable[ArchitecturePair]) -> Iterator[str]:
    """Yield a note if an interval rests on fewer than MIN_BOOTSTRAP_UNITS pairs."""
    with_interval = (pair for pair in pairs if pair.break_even and pair.break_even.low is not None)
    numbers = [min(pair.passes.ours.n, pair.rounds.ours.n) for pair in with_interval]
    if numbers and (n := min(numbers)) < MIN_BOOTSTRAP_UNITS:
        yield (
            f"N={n}: so few values all lie on one side of their true mean in {2 ** (1 - n):.1%} of experiments; the "
            "bootstrap's interval then misses it, so it holds the truth in less than 95%"
        )


def _bounds(estimate: BreakEven | None) -> tuple[Cell, Cell]:
    """Return the two ends of a break-even's interval as cells."""
    if estimate is None:
        return "–", "–"
    if estimate.low is None or estimate.high is None:
        return Number(None), Number(None)
    is_bounded = math.isfinite(estimate.high) or math.isinf(estimate.low)  # infinite at both ends is shown as NEVER
    return _rate_cell(estimate.low), _rate_cell(estimate.high) if is_bounded else UNBOUNDED


def _rate_cell(rate: float) -> Cell:
    """Return a rate as a number, or in words if it is 0 or infinite."""
    return NEVER if math.isinf(rate) else (Number(rate, 2) if rate else ALWAYS)


TABLES = TablePart("break_even", break_even_tables, "break_even")
