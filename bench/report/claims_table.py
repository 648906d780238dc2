"""The verdicts: as the first tables of a report, and as the lines that `bench report` prints first.

Directions and ratios stand in one table, with their tally; levels in another, as factors. What was not measured has no row
there: a note names it, once for each reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from bench.analysis.claims import claim as claims
from bench.analysis.claims.published import Published
from bench.analysis.claims.verdicts import VERDICTS, ClaimVerdict, Judgement, counts, family_of, levels, structural
from bench.analysis.frames import Run
from bench.analysis.measures import COMPARED, COSTS, FIRST_PASS, FIRST_ROUND, PRICE, SOLVED, Measure
from bench.analysis.statistics import Share
from bench.render.labels import model_label
from bench.render.limits import noted
from bench.render.table import NOTHING, AdjustedP, BoundedNumber, Cell, Number, Rate, Table, text_of
from bench.report.summary import Finding

VERDICT_NOTES = (
    "ours with its 95% interval; N: the values, pairs or outputs it is of; to decide: the N that would, with a power of 80%, "
    "were the truth what was found (of means: with a spread exceeded only one time in five)",
    "a direction holds where the interval of the paired difference lies on the claimed side and p, of the sign-flip test with "
    "Holm's correction, is at most 0.05; it is contradicted where both hold on the other side",
    "a ratio holds where its direction does and the published ratio lies in our interval; where that does not: holds, size "
    "differs",
    "a share that is said to be none or all falls by one counterexample; it holds where there is none and our interval ends "
    "within the tolerance",
    "nothing is concluded from an interval without width, as equal values have, nor from a simulated model",
    "a retry is one round of recovery after a delivered and detected fault, effective or masked; what a structure costs "
    "without a failure is its first pass",
    "wrong outputs: first attempts of runtime_structured without a fault, so that no output counts twice; those known to be "
    "wrong, by form or by a check",
)
LEVEL_NOTES = (
    "levels are judged only where the model and the prompts are the paper's; else they are not comparable, and stand outside "
    "the tally of verdicts: ours by the published value, with our 95% interval",
    "natural failures: first attempts of runtime_structured without a fault, so that no output counts twice",
)


def claims_tables(run: Run, judgements: Sequence[Judgement], published: Published) -> list[Table]:
    """Directions and ratios, then levels; none where nothing was judged."""
    return [_verdicts(run, structural(judgements), published), _levels(run, levels(judgements))] if judgements else []


def _verdicts(run: Run, judgements: Sequence[Judgement], published: Published) -> Table:
    return Table(
        name="claims",
        title="Claims and their verdicts",
        columns=(
            *("Claim", "Model", "Compares", "Verdict", "What is said", "Ours", "Published", "N", "To decide", "p (Holm)"),
            *("Reason", "Why it can be compared", "Source"),
        ),
        rows=_rows(run, judgements, _verdict_cells),
        notes=(*tallies(run, judgements), *VERDICT_NOTES, _floor(published), *_last_notes(run, judgements)),
    )


def _levels(run: Run, judgements: Sequence[Judgement]) -> Table:
    return Table(
        name="claims_levels",
        title="Levels: ours by the published",
        columns=(
            *("Claim", "Model", "Verdict", "What is said", "Measure", "Ours", "Published", "Ours / published", "N"),
            *("Reason", "Source"),
        ),
        rows=_rows(run, judgements, _level_cells),
        notes=(*LEVEL_NOTES, *_whys(judgements), *_last_notes(run, judgements)),
    )


def _rows(
    run: Run, judgements: Iterable[Judgement], cells: Callable[[Judgement], tuple[Cell, ...]]
) -> tuple[tuple[Cell, ...], ...]:
    return tuple((one.claim.id, model_label(run, one.model), *cells(one)) for one in judgements if one.measured)


def _verdict_cells(one: Judgement) -> tuple[Cell, ...]:
    return (
        *(one.claim.compares, one.said, one.claim.sentence, _ours(one), _published(one)),
        *(_n(one), _needed(one), AdjustedP(one.p, one.floor)),
        *(one.reason, one.claim.why, one.claim.source),
    )


def _level_cells(one: Judgement) -> tuple[Cell, ...]:
    return (
        *(one.said, one.claim.sentence, _measure(one.claim), _ours(one), _published(one), _factor(one), _n(one)),
        *(one.reason, one.claim.source),
    )


def _whys(judgements: Iterable[Judgement]) -> Iterator[str]:
    """Why each measure is a level."""
    measures: dict[str, dict[str, None]] = {}
    for one in judgements:
        measures.setdefault(one.claim.why, {})[_measure(one.claim)] = None
    return (f"{', '.join(own)}: {why}" for why, own in measures.items())


def _last_notes(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """What was not measured, and what the intervals do not hold."""
    for model in run.names("model"):
        yield from (f"{model_label(run, model)}: {line}" for line in _unmeasured(_of_model(judgements, model)))
    yield from noted(one.measured.basis for one in judgements if one.measured)


def _floor(published: Published) -> str:
    family = len(family_of(published))
    return (
        "(floor): p is the least that so many pairs can give. Of N the sign-flip test gives none below 2/2^N, however far "
        f"apart the two lie, and Holm's correction over {family} comparisons multiplies the first by {family}, each further "
        f"one by one less: {family * 2 / 2**5:.3f} at N=5, {family * 2 / 2**10:.3f} at N=10"
    )


def _ours(one: Judgement) -> Cell:
    measured = one.measured
    if measured is None:
        return NOTHING
    if isinstance(measured.basis, Share):
        return Rate(measured.basis)
    return BoundedNumber(measured.value, measured.low, measured.high, *_form(one.claim))


def _published(one: Judgement) -> Cell:
    return Number(one.expected.value, *_form(one.claim))


def _factor(one: Judgement) -> Cell:
    factor = one.factor
    return (
        NOTHING if factor is None else BoundedNumber(factor.value, factor.low, factor.high, 4 if 0 < factor.value < 0.1 else 2)
    )


def _n(one: Judgement) -> int:
    return one.measured.n if one.measured else 0


def _needed(one: Judgement) -> Cell:
    if one.measured is None or one.verdict != "inconclusive":
        return "–"
    return NOTHING if one.measured.needed is None else one.measured.needed


def _measure(claim: claims.Claim) -> str:
    return claim.counted if isinstance(claim, claims.RateClaim) else claim.measure


def _form(claim: claims.Claim) -> tuple[int, bool]:
    """How many digits stand behind the point, and whether it is a percentage."""
    if isinstance(claim, claims.RateClaim | claims.PartClaim):
        return (3 if isinstance(claim, claims.PartClaim) else 1), True
    if isinstance(claim, claims.RatioClaim):
        return 3, False
    measure = _MEASURES.get(claim.measure, Measure(claim.measure, claim.measure, 3))
    return (1, True) if measure.percent else (max(measure.digits, measure.published_digits), False)


_MEASURES = {measure.column: measure for measure in (*COSTS, *COMPARED, *FIRST_ROUND, *PRICE, *FIRST_PASS, SOLVED)}


# In words


def none_judged(published: Published) -> str:
    scenarios = dict.fromkeys(claim.scenario for claim in published.claims)
    return f"none of the paper's is judged: they are about {' and '.join(scenarios)}, which this run does not have"


def tallies(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """How many of each verdict, of the directions and ratios alone, by model."""
    for model in run.names("model"):
        own = structural(_of_model(judgements, model))
        found = counts(own)
        said = "; ".join(f"{name}: {found[name]}" for name in VERDICTS)
        yield f"{model_label(run, model)}, {len(own)} claims of directions and ratios: {said}"


def verdict_finding(run: Run, judgements: Sequence[Judgement]) -> Finding | None:
    """The sentence of the summary; None where no direction or ratio was judged, as by a simulated model."""
    said = []
    for model in run.names("model"):
        found = counts(structural(_of_model(judgements, model)))
        told = [f"{found[verdict]} {words}" for verdict, words in _IN_WORDS.items() if found[verdict]]
        if told:
            said.append(f"{model_label(run, model)}: {'; '.join(told)}")
    return Finding(f"The paper's claims of directions and ratios, by {'. By '.join(said)}.", "claims") if said else None


_IN_WORDS: dict[ClaimVerdict, str] = {
    "holds": "hold",
    "holds, size differs": "hold, size differs",
    "contradicted": "contradicted",
    "counterexample found": "refuted by a counterexample",
    "inconclusive": "inconclusive",
}


def verdict_lines(run: Run, judgements: Sequence[Judgement], published: Published) -> Iterator[str]:
    """The tally of the directions and ratios, and these one by one; levels stand in the report. One line where nothing was
    judged."""
    if not judgements:
        yield f"Claims: {none_judged(published)}"
        return
    for model, tally in zip(run.names("model"), tallies(run, judgements), strict=True):
        yield tally
        own = _of_model(judgements, model)
        yield from (verdict_line(one) for one in structural(own) if one.measured)
        yield from (f"  {line}" for line in _unmeasured(structural(own)))
        yield f"  {len(levels(own))} levels (tokens, seconds, calls, rates) stand in the report, as factors of the published"


def verdict_line(one: Judgement) -> str:
    n = f", N={one.measured.n}" if one.measured else ""
    return f"  {one.said:<30}  {one.claim.id}: {one.claim.sentence}: ours {text_of(_ours(one))}{n}"


def _of_model(judgements: Sequence[Judgement], model: str) -> list[Judgement]:
    return [one for one in judgements if one.model == model]


def _unmeasured(judgements: Iterable[Judgement]) -> Iterator[str]:
    """One line for each reason, for many claims may lack the same."""
    lacking: dict[str, list[str]] = {}
    for one in judgements:
        if one.measured is None:
            lacking.setdefault(one.reason, []).append(one.claim.id)
    for reason, names in lacking.items():
        yield f"not measured, as {reason}: {', '.join(names)}"
