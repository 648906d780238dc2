"""The verdicts: the first tables of a report, and the first lines of `bench report`.

Directions and ratios are in one table, with their tally; levels in another, as factors. Claims that were not measured have no
row: a note names them, once for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bench.common.wording import plural
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import METRICS
from bench.read.analysis.statistics import Share, limits_of
from bench.read.claims.claim import Claim, DegradationClaim, PartClaim, RateClaim, RatioClaim
from bench.read.claims.counted import IN_ALL
from bench.read.claims.population import Population, population_of
from bench.read.claims.published import Published
from bench.read.claims.retries import FROM_CODE
from bench.read.claims.verdicts import VERDICTS, ClaimVerdict, JudgedSource, Judgement, counts, family_of, levels, structural
from bench.read.render.cells import NARROW, NARROW_NOTE, NOTHING, AdjustedP, BoundedNumber, Cell, Number, Rate, text_of
from bench.read.render.labels import listed, model_label, slug
from bench.read.render.limits import noted
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.summary import SummaryFinding

NO_WIDTH = "an interval without width (all values are equal) decides nothing"
MODEL_NOTE = f"{NO_WIDTH}, nor does a simulated model"
RUNTIME_NOTE = (
    f"{NO_WIDTH}; a simulated model decides no claim about models; if it decides a claim about the runtime alone, the reason "
    "says so"
)
COUNTEREXAMPLE_NOTE = (
    "one counterexample refutes a claimed share of none or all; the claim holds if there is none and our interval ends within "
    "the tolerance"
)
DIRECTION_NOTES = (
    "ours with its 95% interval; N: the number of values, pairs or outputs; to decide: the N that decides with 80% power if "
    "the truth is what we measured (for means: with a spread exceeded only one time in five)",
    "to decide a direction: at the first step of Holm's correction",
    "a direction holds if the interval of the paired difference lies on the claimed side and p (sign-flip test, Holm's "
    "correction) is at most 0.05; it is contradicted if both are true on the other side",
    "errs in: how often this test at 5% found a difference between simulated arms with equal means and unlike shapes, in the "
    "worst world with that many pairs (reports/calibration), before any correction",
)
POPULATION_NOTES = (
    "if two architectures differ in several things, they are no evidence about one of these; an arm between them differs in "
    "fewer",
    "trials that could have no other result are in no population: trials with a fault at every attempt, and trials whose "
    "failed call gets its control's reply from the response cache",
)
VERDICT_NOTES = (
    *DIRECTION_NOTES,
    "a ratio holds if its direction holds and the published ratio lies in our interval; if it lies outside: holds, size "
    "differs",
    COUNTEREXAMPLE_NOTE,
    MODEL_NOTE,
    "a retry: of one round of recovery after a delivered and detected fault, effective or masked, the calls that the paper "
    "counts; what a structure costs without a failure is its first pass",
    "wrong outputs: first attempts of runtime_structured without a fault (so no output counts twice) that are wrong by form "
    "or by a check",
)
DEGRADATION_NOTES = (
    *DIRECTION_NOTES,
    "ours: one side's loss less the other's; for a single side, its loss. A loss is the share solved without a fault less the "
    "share solved with it, by instance and repetition, averaged over the claim's plans; a pair is left out if a fault was not "
    "delivered",
)
ROUND_NOTE = (
    f"{IN_ALL}: all its calls, judged as the others are; {FROM_CODE}: both rounds ask for the same subtasks, so they differ by "
    "the reason that the next prompt is told"
)
LEVEL_NOTES = (
    "levels are judged only with the paper's model and prompts; otherwise they are not comparable and not in the tally of "
    "verdicts; ours / published has our 95% interval",
    "natural failures: first attempts of runtime_structured without a fault, so that no output counts twice",
)


def ours(judgement: Judgement) -> Cell:
    measured = judgement.measured
    if measured is None:
        return NOTHING
    if isinstance(measured.basis, Share):
        return Rate(measured.basis)
    return BoundedNumber(measured.value, measured.low, measured.high, *_form(judgement.claim), measured.basis)


def theirs(judgement: Judgement) -> Cell:
    if isinstance(judgement.claim, DegradationClaim):
        return judgement.claim.published or "–"
    return Number(judgement.expected.value, *_form(judgement.claim))


def over_the_round(judgement: Judgement) -> str:
    """Return our number over the whole round, with its verdict; a dash for what is no retry."""
    whole = judgement.whole
    if whole is None or whole.measured is None:
        return "–"
    return f"{text_of(ours(whole))}: {FROM_CODE if judgement.same_calls else whole.in_words}"


def by_published(judgement: Judgement) -> Cell:
    factor = judgement.factor
    if factor is None:
        return NOTHING
    return BoundedNumber(factor.value, factor.low, factor.high, 4 if 0 < factor.value < 0.1 else 2)


def number_of(judgement: Judgement) -> int:
    return judgement.measured.n if judgement.measured else 0


def to_decide(judgement: Judgement) -> Cell:
    if judgement.measured is None or judgement.verdict not in ("inconclusive", "cannot be decided"):
        return "–"
    return NOTHING if judgement.measured.needed is None else judgement.measured.needed


def measure_of(claim: Claim) -> str:
    if isinstance(claim, DegradationClaim):
        return "correct"
    return claim.counted if isinstance(claim, RateClaim) else claim.measure


def _form(claim: Claim) -> tuple[int, bool]:
    """Return the number of digits after the point, and whether the number is a percentage."""
    if isinstance(claim, RateClaim | PartClaim):
        return (3 if isinstance(claim, PartClaim) else 1), True
    if isinstance(claim, RatioClaim):
        return 3, False
    column = measure_of(claim)
    if column not in METRICS or not METRICS[column].title:
        return 3, False
    metric = METRICS[column]
    return (1, True) if metric.percent else (max(metric.digits, metric.published_digits), False)


LabelledJudgement = tuple[Judgement, str]
"""A judgement, with the label of its model."""


def _judgement(labelled: LabelledJudgement) -> Judgement:
    return labelled[0]


def _adjusted(judgement: Judgement) -> AdjustedP:
    """Return the p of a verdict, with the measured error rate of the test if that is higher than its level."""
    test = judgement.measured and judgement.measured.test
    limits = limits_of(test) if test else ()
    errs = next((limit.measured for limit in limits if limit.code == "shape"), None)
    return AdjustedP(judgement.p, judgement.floor, errs)


_CLAIM = TableColumn[LabelledJudgement]("Claim", lambda labelled: labelled[0].claim.id)
_MODEL = TableColumn[LabelledJudgement]("Model", lambda labelled: labelled[1])
_VERDICT = TableColumn[Judgement]("Verdict", lambda judgement: judgement.in_words).of(_judgement)
_SENTENCE = TableColumn[Judgement]("What is said", lambda judgement: judgement.claim.sentence).of(_judgement)
_OURS = TableColumn[Judgement]("Ours", ours).of(_judgement)
_PUBLISHED = TableColumn[Judgement]("Published", theirs).of(_judgement)
_ROUND = TableColumn[Judgement](f"Ours, {IN_ALL}", over_the_round).of(_judgement)
_N = TableColumn[Judgement]("N", number_of).of(_judgement)
_REASON = TableColumn[Judgement]("Reason", lambda judgement: judgement.reason).of(_judgement)
_SOURCE = TableColumn[Judgement]("Source", lambda judgement: judgement.claim.source).of(_judgement)
VERDICT_COLUMNS = (
    *(_CLAIM, _MODEL),
    TableColumn[Judgement]("Compares", lambda judgement: judgement.claim.compares).of(_judgement),
    *(_VERDICT, _SENTENCE, _OURS, _PUBLISHED, _N),
    TableColumn[Judgement]("To decide", to_decide).of(_judgement),
    TableColumn[Judgement]("p (Holm)", _adjusted).of(_judgement),
    _REASON,
    TableColumn[Judgement]("Why it can be compared", lambda judgement: judgement.claim.why).of(_judgement),
    _SOURCE,
)
LEVEL_COLUMNS = (
    *(_CLAIM, _MODEL, _VERDICT, _SENTENCE),
    TableColumn[Judgement]("Measure", lambda judgement: measure_of(judgement.claim)).of(_judgement),
    *(_OURS, _PUBLISHED),
    TableColumn[Judgement]("Ours / published", by_published).of(_judgement),
    *(_N, _REASON, _SOURCE),
)


def claims_tables(run: Run, judgements: Sequence[Judgement], published: Published) -> list[Table]:
    """Return the tables of directions and ratios, of their populations, and of levels. Empty if nothing was judged."""
    if not judgements:
        return []
    own_claims = structural(judgements)
    return [_verdicts(run, own_claims, published), _populations(run, own_claims, published), _levels(run, levels(judgements))]


def _populations(run: Run, judgements: Sequence[Judgement], published: Published) -> Table:
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
    return table_of(f"{name_of(published)}_populations", "What each claim was judged on", columns, claims, POPULATION_NOTES)


def other_claims(run: Run, judged: JudgedSource) -> Table:
    """Return the verdicts on the claims of a source beside the paper."""
    table = _verdicts(run, judged.judgements, judged.published)
    notes = (*notes_on(judged.published), *(note for note in table.notes if note not in VERDICT_NOTES))
    return replace(table, title=title_of(judged.published), notes=notes)


def other_populations(run: Run, judged: JudgedSource) -> Table:
    """Return the populations of the claims of a source beside the paper."""
    table = _populations(run, judged.judgements, judged.published)
    return replace(table, title=f"{judged.published.paper.name}: {table.title[0].lower()}{table.title[1:]}")


def title_of(published: Published) -> str:
    return f"{published.paper.name}: its claims and their verdicts"


def notes_on(published: Published) -> tuple[str, ...]:
    """Return notes on how the claims of a source beside the paper are judged, only for the kinds of claims that it has."""
    claims = published.claims
    return (
        f"source: {published.paper.title}; {published.paper.source}",
        *(DEGRADATION_NOTES if any(isinstance(claim, DegradationClaim) for claim in claims) else (DIRECTION_NOTES[0],)),
        *((COUNTEREXAMPLE_NOTE,) if any(isinstance(claim, RateClaim) for claim in claims) else ()),
        RUNTIME_NOTE if any(claim.about == "runtime" for claim in claims) else MODEL_NOTE,
    )


def name_of(published: Published) -> str:
    return f"claims_{slug(published.paper.name).lower()}" if published.paper.name else "claims"


def _verdicts(run: Run, judgements: Sequence[Judgement], published: Published) -> Table:
    notes = (*tallies(run, judgements), *VERDICT_NOTES, *_floor(published), *_last_notes(run, judgements))
    columns: tuple[TableColumn[LabelledJudgement], ...] = VERDICT_COLUMNS
    if any(judgement.whole for judgement in judgements):
        columns = tuple(part for column in columns for part in ([column, _ROUND] if column is _PUBLISHED else [column]))
        notes = (*notes, ROUND_NOTE)
    return table_of(name_of(published), "Claims and their verdicts", columns, _measured(run, judgements), notes)


def _levels(run: Run, judgements: Sequence[Judgement]) -> Table:
    notes = (*LEVEL_NOTES, *_whys(judgements), *_last_notes(run, judgements))
    return table_of("claims_levels", "Levels: ours by the published", LEVEL_COLUMNS, _measured(run, judgements), notes)


def _measured(run: Run, judgements: Iterable[Judgement]) -> Iterator[LabelledJudgement]:
    return ((judgement, model_label(run, judgement.model)) for judgement in judgements if judgement.measured)


def _whys(judgements: Iterable[Judgement]) -> Iterator[str]:
    """Yield the reason for each measure why the claim is a level."""
    measures: dict[str, dict[str, None]] = {}
    for judgement in judgements:
        measures.setdefault(judgement.claim.why, {})[measure_of(judgement.claim)] = None
    return (f"{', '.join(names)}: {why}" for why, names in measures.items())


def _last_notes(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield notes on claims that were not measured, and on errors that the intervals do not cover."""
    for model in run.names("model"):
        yield from (f"{model_label(run, model)}: {line}" for line in _unmeasured(_of_model(judgements, model)))
    yield from noted(judgement.measured.basis for judgement in judgements if judgement.measured)


def _floor(published: Published) -> Iterator[str]:
    """Yield a note on the least p that is possible, if architectures are compared."""
    if family := len(family_of(published)):
        yield (
            "(floor): p is the smallest that this many pairs can give. With N pairs the sign-flip test gives no p below "
            f"2/2^N, whatever the difference. Holm's correction over {family} comparisons multiplies the smallest p by "
            f"{family}, each further p by one less: {family * 2 / 2**5:.3f} at N=5, {family * 2 / 2**10:.3f} at N=10"
        )


# In words


def tallies(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield for each model how often each verdict occurs, over directions and ratios only."""
    for model in run.names("model"):
        judged = structural(_of_model(judgements, model))
        yield tally(model_label(run, model), [judgement.verdict for judgement in judged])


def tally(label: str, verdicts: Sequence[ClaimVerdict]) -> str:
    text = "; ".join(f"{name}: {verdicts.count(name)}" for name in VERDICTS)
    return f"{label}, {len(verdicts)} claims of directions and ratios: {text}"


def verdict_finding(run: Run, judgements: Sequence[Judgement], published: Published) -> SummaryFinding | None:
    """Return the sentence of the summary. None if no direction or ratio was judged, as with a simulated model."""
    parts = []
    whose = published.paper.name.replace("The ", "the ", 1) or "the paper"
    for model in run.names("model"):
        counted = counts(structural(_of_model(judgements, model)))
        findings = [f"{n} {words[n == 1]}" for verdict, words in _IN_WORDS.items() if (n := counted[verdict])]
        judged = sum(counted[verdict] for verdict in _IN_WORDS)
        if findings:
            beside = f" with {model_label(run, model)}" if len(run.names("model")) > 1 else ""
            measured = f"{plural(judged, 'claim')} of {whose} that {'was' if judged == 1 else 'were'} measured"
            parts.append(f"Of the {measured}{beside}, {listed(findings)}.")
    return SummaryFinding(" ".join(parts), name_of(published)) if parts else None


_IN_WORDS: dict[ClaimVerdict, tuple[str, str]] = {
    "holds": ("hold", "holds"),
    "holds, size differs": ("hold with another size", "holds with another size"),
    "contradicted": ("are contradicted", "is contradicted"),
    "decided by sizes": ("are decided by the sizes of calls", "is decided by the sizes of calls"),
    "counterexample found": ("fall by a counterexample", "falls by a counterexample"),
    "inconclusive": ("are inconclusive", "is inconclusive"),
    "cannot be decided": ("cannot be decided with so few pairs", "cannot be decided with so few pairs"),
}
"""What a sentence says of several claims with this verdict, and of one."""


def verdict_lines(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield the tally of the directions and ratios, and each of their verdicts. Levels are only counted. If nothing was judged,
    yield nothing."""
    for model, tally in zip(run.names("model"), tallies(run, judgements), strict=True) if judgements else ():
        yield tally
        of_model = _of_model(judgements, model)
        yield from (verdict_line(judgement) for judgement in structural(of_model) if judgement.measured)
        yield from (f"  {line}" for line in _unmeasured(structural(of_model)))
        if levels(of_model):
            text = "(tokens, seconds, calls, rates) are listed in the report, as ours / published"
            yield f"  {len(levels(of_model))} absolute values {text}"


def other_lines(run: Run, judged: JudgedSource) -> Iterator[str]:
    """Yield the verdict lines of a source beside the paper, under its name."""
    yield f"{judged.published.paper.name}:"
    yield from verdict_lines(run, judged.judgements)


def verdict_line(judgement: Judgement) -> str:
    n = f", N={judgement.measured.n}" if judgement.measured else ""
    text = f"{text_of(ours(judgement))}{n}"
    if judgement.whole and judgement.whole.measured:
        text += f"; {IN_ALL} {over_the_round(judgement)}"
    meaning = f"; {NARROW_NOTE}" if NARROW in text else ""
    return f"  {judgement.in_words:<30}  {judgement.claim.id}: {judgement.claim.sentence}: ours {text}{meaning}"


def _of_model(judgements: Sequence[Judgement], model: str) -> list[Judgement]:
    return [judgement for judgement in judgements if judgement.model == model]


def _unmeasured(judgements: Iterable[Judgement]) -> Iterator[str]:
    """Yield one line for each reason why claims were not measured, because many claims can share a reason."""
    lacking: dict[str, list[str]] = {}
    for judgement in judgements:
        if judgement.measured is None:
            lacking.setdefault(judgement.reason, []).append(judgement.claim.id)
    for reason, names in lacking.items():
        yield f"not measured, as {reason}: {', '.join(names)}"
