"""The tables of the verdicts on claims, and the same verdicts as lines of `bench report`.

Claims that were not measured have no row. Notes name them, one note for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.common.wording import plural
from bench.read.analysis.claim import Claim, RateClaim, RatioClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import METRICS
from bench.read.analysis.statistics import Share, limits_of
from bench.read.claims.counted import WHOLE_ROUND
from bench.read.claims.population import Population, population_of
from bench.read.claims.retries import FOLLOWS_FROM_CODE
from bench.read.claims.verdicts import ClaimVerdict, Judgement, counts, family_of
from bench.read.render.cells import (
    NARROW,
    NARROW_NOTE,
    NOTHING,
    AdjustedP,
    BoundedNumber,
    Cell,
    Number,
    NumberInWords,
    Rate,
    text_of,
)
from bench.read.render.finding import SummaryFinding
from bench.read.render.labels import join_names, model_label
from bench.read.render.limits import limit_notes
from bench.read.render.table import Table, TableColumn, table_of

POPULATION_NOTES = (
    "if two architectures differ in several things, they are no evidence about one of these; an arm between them differs in "
    "fewer",
    "trials that could have no other result are in no population: trials with a fault at every attempt, and trials whose "
    "failed call gets its control's reply from the response cache",
)
VERDICT_NOTES = (
    "ours with its 95% interval; N: the number of values, pairs or outputs; to decide: the N that decides with 80% power if "
    "the truth is what we measured (for means: with a spread exceeded only one time in five)",
    "to decide a direction: at the first step of Holm's correction",
    "a direction holds if the interval of the paired difference lies on the claimed side and p (sign-flip test, Holm's "
    "correction) is at most 0.05; it is contradicted if both are true on the other side",
    "errs in: how often this test at 5% found a difference between simulated arms with equal means and unlike shapes, in the "
    "worst world with that many pairs (reports/calibration), before any correction",
    "a ratio holds if its direction holds and the published ratio lies in our interval; if it lies outside: holds, size "
    "differs",
    "one counterexample refutes a claimed share of none; the claim holds if there is none and our interval ends within the "
    "tolerance",
    "an interval without width (all values are equal) decides nothing, nor does a simulated model",
    "a retry: of one round of recovery after a delivered and detected fault, effective or masked, the calls that the paper "
    "counts; what a structure costs without a failure is its first pass",
    "wrong outputs: first attempts of runtime_structured without a fault (so no output counts twice) that are wrong by form "
    "or by a check",
)
ROUND_NOTE = (
    f"{WHOLE_ROUND}: all its calls, judged as the others are; {FOLLOWS_FROM_CODE}: both rounds ask for the same subtasks, so "
    "they differ by the reason that the next prompt is told"
)


def our_number(judgement: Judgement) -> Cell:
    """Return our number for a claim as a cell; NOTHING if the claim was not measured."""
    number = judgement.measured
    if number is None:
        return NOTHING
    if isinstance(number.basis, Share):
        return Rate(number.basis)
    return BoundedNumber(number.value, number.low, number.high, *_number_format(judgement.claim), number.basis)


def whole_round_text(judgement: Judgement) -> str:
    """Return our number over the whole round, with its verdict; a dash if the claim is not about a retry."""
    whole = judgement.whole
    if whole is None or whole.measured is None:
        return "–"
    return f"{text_of(our_number(whole))}: {FOLLOWS_FROM_CODE if judgement.same_calls else whole.in_words}"


def count_behind(judgement: Judgement) -> int:
    """Return how many values, pairs or outputs are behind our number."""
    return judgement.measured.n if judgement.measured else 0


def count_to_decide(judgement: Judgement) -> Cell:
    """Return the number of values that would decide an open claim, as a cell; a dash for a decided claim."""
    if judgement.measured is None or judgement.verdict not in ("inconclusive", "cannot be decided"):
        return "–"
    return NOTHING if judgement.measured.needed is None else judgement.measured.needed


def _number_format(claim: Claim) -> tuple[int, bool]:
    """Return the number of digits after the point, and whether the number is a percentage."""
    if isinstance(claim, RateClaim):
        return 1, True
    if isinstance(claim, RatioClaim):
        return 3, False
    metric = METRICS[claim.measure]
    return (1, True) if metric.percent else (max(metric.digits, metric.published_digits), False)


LabelledJudgement = tuple[Judgement, str]
"""A judgement, with the label of its model."""


def _judgement(labelled: LabelledJudgement) -> Judgement:
    return labelled[0]


def _adjusted_p(judgement: Judgement) -> AdjustedP:
    """Return the p of a verdict, with the measured error rate of the test if that is higher than its level."""
    test = judgement.measured and judgement.measured.test
    limits = limits_of(test) if test else ()
    error_rate = next((limit.measured for limit in limits if limit.code == "shape"), None)
    return AdjustedP(judgement.p, judgement.floor, error_rate)


_PUBLISHED = TableColumn[Judgement]("Published", lambda each: Number(each.expected, *_number_format(each.claim))).of(_judgement)
_WHOLE_ROUND = TableColumn[Judgement](f"Ours, {WHOLE_ROUND}", lambda each: NumberInWords(whole_round_text(each))).of(_judgement)
VERDICT_COLUMNS = (
    TableColumn[LabelledJudgement]("Claim", lambda labelled: labelled[0].claim.id),
    TableColumn[LabelledJudgement]("Model", lambda labelled: labelled[1]),
    TableColumn[Judgement]("Verdict", lambda judgement: judgement.in_words).of(_judgement),
    TableColumn[Judgement]("What is said", lambda judgement: judgement.claim.sentence).of(_judgement),
    TableColumn[Judgement]("Ours", our_number).of(_judgement),
    _PUBLISHED,
    TableColumn[Judgement]("N", count_behind).of(_judgement),
    TableColumn[Judgement]("To decide", count_to_decide).of(_judgement),
    TableColumn[Judgement]("p (Holm)", _adjusted_p).of(_judgement),
    TableColumn[Judgement]("Reason", lambda judgement: judgement.reason).of(_judgement),
    TableColumn[Judgement]("Why it can be compared", lambda judgement: judgement.claim.why).of(_judgement),
    TableColumn[Judgement]("Source", lambda judgement: judgement.claim.source).of(_judgement),
)


def claims_tables(run: Run, judgements: Sequence[Judgement]) -> list[Table]:
    """Return the tables of the verdicts and of the claims' populations. Empty if nothing was judged."""
    return [_verdicts(run, judgements), _populations(run, judgements)] if judgements else []


def _populations(run: Run, judgements: Sequence[Judgement]) -> Table:
    """Return a table of the population of each claim, for all models together."""
    claims = dict.fromkeys(judgement.claim for judgement in judgements if judgement.measured)
    populations = {claim: population_of(run, claim) for claim in claims}
    of_population = (
        TableColumn[Population]("Among", lambda population: population.among),
        TableColumn[Population]("Counts once", lambda population: population.unit),
        TableColumn[Population]("Arms", lambda population: "; ".join(population.arms)),
        TableColumn[Population]("In what the two differ", lambda population: "; ".join(population.differ) or "–"),
        TableColumn[Population]("Arms between them", lambda population: ", ".join(population.between) or "–"),
    )
    columns = (
        TableColumn[Claim]("Claim", lambda claim: claim.id),
        *(column.of(populations.__getitem__) for column in of_population),
    )
    return table_of("claims_populations", "What each claim was judged on", columns, claims, POPULATION_NOTES)


def _verdicts(run: Run, judgements: Sequence[Judgement]) -> Table:
    """Return the table of verdicts. If a claim is about a retry, it has a column for the whole round."""
    claims = tuple(dict.fromkeys(judgement.claim for judgement in judgements))
    notes = (*verdict_tallies(run, judgements), *VERDICT_NOTES, *_floor_note(claims), *_further_notes(run, judgements))
    columns: tuple[TableColumn[LabelledJudgement], ...] = VERDICT_COLUMNS
    if any(judgement.whole for judgement in judgements):
        after_published = columns.index(_PUBLISHED) + 1
        columns = (*columns[:after_published], _WHOLE_ROUND, *columns[after_published:])
        notes = (*notes, ROUND_NOTE)
    rows = [(judgement, model_label(run, judgement.model)) for judgement in judgements if judgement.measured]
    return table_of("claims", "Claims and their verdicts", columns, rows, notes)


def _further_notes(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield notes on claims that were not measured, and on errors that the intervals do not cover."""
    for model in run.names("model"):
        yield from (f"{model_label(run, model)}: {line}" for line in _unmeasured_lines(_of_model(judgements, model)))
    yield from limit_notes(judgement.measured.basis for judgement in judgements if judgement.measured)


def _floor_note(claims: Iterable[Claim]) -> Iterator[str]:
    """Yield a note on the least possible p, if the claims compare architectures."""
    if family := len(family_of(claims)):
        yield (
            "(floor): p is the smallest that this many pairs can give. With N pairs the sign-flip test gives no p below "
            f"2/2^N, whatever the difference. Holm's correction over {family} comparisons multiplies the smallest p by "
            f"{family}, each further p by one less: {family * 2 / 2**5:.3f} at N=5, {family * 2 / 2**10:.3f} at N=10"
        )


# In words


def verdict_tallies(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield a line for each model: the number of its claims by verdict."""
    for model in run.names("model"):
        of_model = _of_model(judgements, model)
        text = "; ".join(f"{verdict}: {times}" for verdict, times in counts(of_model).items())
        yield f"{model_label(run, model)}, {len(of_model)} claims: {text}"


def verdict_finding(run: Run, judgements: Sequence[Judgement]) -> SummaryFinding | None:
    """Return the summary's finding on how many claims hold. None if nothing was judged, as with a simulated model."""
    parts = []
    for model in run.names("model"):
        counted = counts(_of_model(judgements, model))
        findings, total = list[str](), 0
        for verdict, (plural_verb, singular_verb) in _VERDICT_VERBS.items():
            if n := counted[verdict]:
                findings.append(f"{n} {singular_verb if n == 1 else plural_verb}")
                total += n
        if findings:
            with_model = f" with {model_label(run, model)}" if len(run.names("model")) > 1 else ""
            measured = f"{plural(total, 'claim')} of the paper that {'was' if total == 1 else 'were'} measured"
            parts.append(f"Of the {measured}{with_model}, {join_names(findings)}.")
    return SummaryFinding(" ".join(parts), "claims") if parts else None


_VERDICT_VERBS: dict[ClaimVerdict, tuple[str, str]] = {
    "holds": ("hold", "holds"),
    "holds, size differs": ("hold with another size", "holds with another size"),
    "contradicted": ("are contradicted", "is contradicted"),
    "decided by sizes": ("are decided by the sizes of calls", "is decided by the sizes of calls"),
    "counterexample found": ("fall by a counterexample", "falls by a counterexample"),
    "inconclusive": ("are inconclusive", "is inconclusive"),
    "cannot be decided": ("cannot be decided with so few pairs", "cannot be decided with so few pairs"),
}
"""Verdict -> the end of a sentence about several claims with this verdict, and about one."""


def verdict_lines(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield for each model its tally of verdicts, and a line for each verdict; nothing if no claim was judged."""
    if not judgements:
        return
    for model, tally in zip(run.names("model"), verdict_tallies(run, judgements), strict=True):
        yield tally
        of_model = _of_model(judgements, model)
        yield from (verdict_line(judgement) for judgement in of_model if judgement.measured)
        yield from (f"  {line}" for line in _unmeasured_lines(of_model))


def verdict_line(judgement: Judgement) -> str:
    """Return a line with a verdict, its claim and our number."""
    n = f", N={judgement.measured.n}" if judgement.measured else ""
    text = f"{text_of(our_number(judgement))}{n}"
    if judgement.whole and judgement.whole.measured:
        text += f"; {WHOLE_ROUND} {whole_round_text(judgement)}"
    meaning = f"; {NARROW_NOTE}" if NARROW in text else ""
    return f"  {judgement.in_words:<30}  {judgement.claim.id}: {judgement.claim.sentence}: ours {text}{meaning}"


def _of_model(judgements: Sequence[Judgement], model: str) -> list[Judgement]:
    return [judgement for judgement in judgements if judgement.model == model]


def _unmeasured_lines(judgements: Iterable[Judgement]) -> Iterator[str]:
    """Yield a line for each reason why claims were not measured, with the claims."""
    claims_by_reason: dict[str, list[str]] = {}
    for judgement in judgements:
        if judgement.measured is None:
            claims_by_reason.setdefault(judgement.reason, []).append(judgement.claim.id)
    for reason, claims in claims_by_reason.items():
        yield f"not measured, as {reason}: {', '.join(claims)}"
