"""The tables of a scorecard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.analysis.statistics import PassHat, Share
from bench.render.table import BoundedNumber, Cell, Rate, Table, text_of
from bench.worlds.environment.damage import DAMAGES
from bench.worlds.scorecard import ALL_CRASHES, Scorecard, ScorecardRow, Struck
from bench.worlds.scorecard.card import RatePerFailure as Measured
from bench.worlds.scorecard.cells import ANY, KS
from bench.worlds.scorecard.words import KINDS, failure, legend, model, notes

UNMEASURED = "not measured"
PLACE = ("Scenario", "Model", "System")
HARM_NOTES = (
    "effects for 100 crashes, beyond what the control did, with a 95% interval (Student's t, clustered by instance); where "
    "none was damaged its upper end is the exact one (Clopper-Pearson) of the share of trials; n/a where all are alike",
    "one effect can be damaged in several ways, and then counts under each",
)

SHARES = (
    "k of n trials = their share, with its exact (Clopper-Pearson) 95% interval; repeated tries of one task are not "
    "independent, so the interval is widened where they are alike (Korn and Graubard), and where all or none are right each "
    "task counts once"
)
COPIES = (
    "distinct: trials of one task that went the same course are copies, as where a system is told the same after two kinds of "
    "death; they are one experiment, and intervals take each task once"
)
ONE_KIND = "a trial stands here that failures of one kind alone struck; the receipts count the others"


def tables(card: Scorecard) -> tuple[Table, ...]:
    return (glance(card), by_kind(card), by_failure(card), costs(card), in_a_row(card), receipts(card))


def glance(card: Scorecard) -> Table:
    """One row a system."""
    k = max((hat.k for row in card.rows for hat in _crashed(row).pass_hat if hat.value is not None), default=1)
    rows = [
        (
            *_place(row),
            _share(row.control),
            crashed.failures,
            _share(crashed.right),
            _pass(crashed.pass_hat, k),
            _rate(crashed.harm[ANY].per_100) if crashed.harm else UNMEASURED,
            _rate(crashed.work["tokens"], 2) if crashed.work else UNMEASURED,
        )
        for row in card.rows
        for crashed in [_crashed(row)]
    ]
    columns = (
        "Right, undisturbed",
        "Crashes",
        "Right after a crash",
        f"pass^{k}",
        "Damaged per 100 crashes",
        "Tokens, × control",
    )
    return Table(
        name="scorecard",
        title="Recovery at a glance",
        columns=(*PLACE, *columns),
        rows=tuple(rows),
        notes=(
            "right: solved, of the trials that a crash struck",
            SHARES,
            f"pass^{k}: the chance that {k} such trials all finish right",
            f"damaged: {HARM_NOTES[0]}",
            "tokens: what struck trials took by what their controls took; 1 is no waste",
            *notes(card),
        ),
    )


def by_kind(card: Scorecard) -> Table:
    rows = [
        (*_place(row), crashed.failures, _count(crashed, crashed.paired), _share(crashed.any_harm), *_harms(crashed))
        for row in card.rows
        for crashed in [_crashed(row)]
    ]
    return Table(
        name="scorecard-damage",
        title="What a crash does to the world: effects damaged for 100 crashes",
        columns=(*PLACE, "Crashes", "Trials", "Trials with any", *(kind.capitalize() for kind in DAMAGES)),
        rows=tuple(rows),
        notes=(*_on_copies(map(_crashed, card.rows)), *HARM_NOTES, *(f"{kind}: {what}" for kind, what in KINDS.items())),
    )


def by_failure(card: Scorecard) -> Table:
    rows = [
        (
            *_place(row),
            failure(struck.by),
            struck.failures,
            _count(struck, struck.trials),
            _share(struck.right),
            _share(struck.any_harm),
            *_harms(struck),
        )
        for row in card.rows
        for struck in row.struck
        if struck.by != ALL_CRASHES
    ]
    return Table(
        name="scorecard-failures",
        title="By what happened: effects damaged for 100 failures",
        columns=(*PLACE, "What happens", "How often", "Trials", "Right", "Trials with any", *map(str.capitalize, DAMAGES)),
        rows=tuple(rows),
        notes=(
            "trials with any: those in which something was damaged more often than in their control",
            SHARES,
            ONE_KIND,
            *_on_copies(struck for row in card.rows for struck in row.struck if struck.by != ALL_CRASHES),
            *legend(struck.by for row in card.rows for struck in row.struck if struck.by != ALL_CRASHES),
        ),
    )


def in_short(card: Scorecard) -> Table:
    """By what happened, for a terminal."""
    rows = [
        (*_place(row), failure(struck.by), f"{struck.failures} in {struck.trials}", _share(struck.right), _named(struck))
        for row in card.rows
        for struck in row.struck
        if struck.by != ALL_CRASHES
    ]
    return Table(
        name="scorecard-in-short",
        title="By what happened",
        columns=(*PLACE, "What happens", "How often, in trials", "Right", "Effects damaged for 100 of them"),
        rows=tuple(rows),
        notes=(ONE_KIND, *legend(struck.by for row in card.rows for struck in row.struck if struck.by != ALL_CRASHES)),
    )


def costs(card: Scorecard) -> Table:
    kinds = ("tokens", "calls", "tool_calls")
    rows = [
        (
            *_place(row),
            failure(struck.by),
            struck.compared,
            *(_rate(struck.work[kind], 2) for kind in kinds),
            *(_rate(struck.recovery[kind], digits) for kind, digits in (("tokens", 0), ("calls", 1), ("tool_calls", 1))),
            _rate(struck.recovery["seconds"], 2),
        )
        for row in card.rows
        for struck in _without_repeats(row)
    ]
    spent = ("Tokens, each", "Calls, each", "Tool calls, each", "Seconds, each")
    return Table(
        name="scorecard-cost",
        title="What recovery costs",
        columns=(*PLACE, "What happens", "Trials", "Tokens, ×", "Model calls, ×", "Tool calls, ×", *spent),
        rows=tuple(rows),
        notes=(
            "×: what struck trials took in all, by what their own controls took (wasted work; 1 is none); each: what they took "
            "beyond their controls, for each failure; trials that came to an end in both; intervals cluster by instance",
            "seconds: on the trial's clock, of model calls and waiting; a simulated model's are declared",
        ),
    )


def in_a_row(card: Scorecard) -> Table:
    """pass^k."""
    rows = [
        (*_place(row), failure(by), hats[0].n, hats[0].of, *(_pass(hats, k) for k in KS))
        for row in card.rows
        for by, hats in (("control", row.control_pass_hat), *((struck.by, struck.pass_hat) for struck in _without_repeats(row)))
    ]
    return Table(
        name="scorecard-pass",
        title="How surely: the chance that k all finish right (pass^k)",
        columns=(*PLACE, "What happens", "N", "k of what", *(f"k = {k}" for k in KS)),
        rows=tuple(rows),
        notes=("C(c, k) / C(n, k) for c of n, the mean over tasks where each has several tries (tau-bench, arXiv 2406.12045)",),
    )


def receipts(card: Scorecard) -> Table:
    """What was planned, and what came of it."""
    rows = [
        (
            *_place(row),
            failure(receipt.by),
            receipt.planned,
            receipt.delivered,
            receipt.not_applicable,
            *_trials(row, number),
            _told(row, number),
        )
        for row in card.rows
        for number, receipt in enumerate(receipt for receipt in row.receipts if receipt.by != ALL_CRASHES)
    ]
    return Table(
        name="scorecard-receipts",
        title="Receipts: every planned failure, and what became of it",
        columns=(
            *PLACE,
            *("What happens", "Planned", "Delivered", "Not applicable", "Trials", "Not struck", "Mixed", "Errors"),
            "Two counts agree",
        ),
        rows=tuple(rows),
        notes=(
            "not struck: trials under a fault plan that no failure came to; they stand in no number above",
            "mixed: trials that failures of several kinds struck; errors: trials that ended in one of ours or the endpoint's",
            "two counts agree: trials in which damage counted from the journal is that counted from the world's tables alone",
        ),
    )


def _trials(row: ScorecardRow, number: int) -> tuple[Cell, ...]:
    """Return the trials of the whole row, beside its first receipt."""
    return (row.trials, row.not_struck, row.mixed, row.errors) if not number else ("", "", "", "")


def _told(row: ScorecardRow, number: int) -> Cell:
    return f"{row.two_counts_agree.k} of {row.two_counts_agree.n}" if not number else ""


def _place(row: ScorecardRow) -> tuple[str, str, str]:
    return row.world, model(row), row.system


NEVER = Struck(ALL_CRASHES, 0, 0, 0, Share(0, 0, None, None, None), (), 0, Share(0, 0, None, None, None), {}, 0, {}, {})


def _crashed(row: ScorecardRow) -> Struck:
    """All its crashes; none where the run has no plan with any."""
    return row.struck_by(ALL_CRASHES) or NEVER


def _without_repeats(row: ScorecardRow) -> Iterator[Struck]:
    """Its failures; where all crashes are at one point, these alone."""
    points = sum(struck.by.startswith("process:") for struck in row.struck)
    return (struck for struck in row.struck if struck.by != ALL_CRASHES or points != 2)


def _count(struck: Struck, count: int) -> Cell:
    """How many, and how many of all are no copies."""
    return f"{count}, {struck.distinct} distinct" if struck.has_copies else count


def _on_copies(struck: Iterable[Struck]) -> Sequence[str]:
    return [COPIES] if any(failures.has_copies for failures in struck) else []


def _share(share: Share) -> Cell:
    return Rate(share) if share.n else UNMEASURED


def _rate(rate: Measured, digits: int = 0) -> Cell:
    return BoundedNumber(rate.value, rate.low, rate.high, digits) if rate.value is not None else UNMEASURED


def _harms(struck: Struck) -> list[Cell]:
    return [_rate(struck.harm[kind].per_100) if kind in struck.harm else UNMEASURED for kind in DAMAGES]


def _named(struck: Struck) -> Cell:
    """All damage with its interval, and of which kinds."""
    if not struck.paired:
        return UNMEASURED
    harms = {kind: struck.harm[kind].per_100.value or 0.0 for kind in DAMAGES if struck.harm[kind].effects}
    kinds = ", ".join(f"{value:.0f} {kind}" for kind, value in harms.items())
    whole = text_of(_rate(struck.harm[ANY].per_100))
    return f"{whole}: {kinds}" if kinds else whole


def _pass(hats: Sequence[PassHat], k: int) -> Cell:
    hat_at_k = next((hat for hat in hats if hat.k == k and hat.value is not None), None)
    return BoundedNumber(hat_at_k.value, hat_at_k.low, hat_at_k.high, 0, percent=True) if hat_at_k else UNMEASURED
