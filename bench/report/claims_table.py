"""The verdicts: as the first table of a report, and as the lines that `bench report` prints first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.analysis.claims import claim as claims
from bench.analysis.claims.published import Published
from bench.analysis.claims.verdicts import VERDICTS, Judgement, Measurement, counts
from bench.analysis.frames import Run
from bench.analysis.measures import COMPARED, COSTS, SOLVED, Measure
from bench.analysis.statistics import Share
from bench.render.labels import model_label
from bench.render.limits import noted
from bench.render.table import NOTHING, BoundedNumber, Cell, Number, Rate, Table, text_of

NOTES = (
    "ours with its 95% interval; N: the values, pairs or outputs it is of; to decide: the N that would, with a power of 80%, "
    "were the truth what was found (of means: with a spread exceeded only one time in five)",
    "a direction is reproduced where the interval of the paired difference lies on the claimed side and p, of the sign-flip "
    "test with Holm's correction over all directions of one model, is at most 0.05; contradicted where both hold on the other",
    "all others are reproduced where our interval lies within the bounds, contradicted where it lies wholly beyond them, each "
    "at 95% by itself, so that among forty two may come out by chance; the bounds are the tolerance, or the published mean's "
    "own interval where that is wider",
    "a verdict speaks of this run: another model than the paper's, and prompts and inputs of our own; a contradicted cell says "
    "that its number does not carry over to here, not that it was wrong there",
    "tokens, seconds and calls are compared with runs without a failure, as the paper gives them; where most trials gave up "
    "they price failing, and nothing is concluded",
    "natural failures and wrong outputs: first attempts of runtime_structured without a fault, so that no output counts twice; "
    "wrong outputs are those known to be, by form or by a check",
)


def claims_table(run: Run, judgements: Sequence[Judgement]) -> Table:
    return Table(
        name="claims",
        title="Claims and their verdicts",
        columns=(
            *("Claim", "Model", "Verdict", "What is said", "Ours", "Published", "From", "To", "N", "To decide", "p (Holm)"),
            *("Reason", "Source"),
        ),
        rows=tuple(_row(run, one) for one in judgements),
        notes=(*NOTES, *noted(one.measured.basis for one in judgements if one.measured)),
    )


def _row(run: Run, one: Judgement) -> tuple[Cell, ...]:
    return (
        *(one.claim.id, model_label(run, one.model), one.verdict, one.claim.sentence, _ours(one)),
        *_published(one),
        one.measured.n if one.measured else 0,
        _needed(one, one.measured),
        Number(one.p, 3) if one.p is not None else "–",
        one.reason,
        one.claim.source,
    )


def _ours(one: Judgement) -> Cell:
    measured = one.measured
    if measured is None:
        return NOTHING
    if isinstance(measured.basis, Share):
        return Rate(measured.basis)
    return BoundedNumber(measured.value, measured.low, measured.high, *_form(one.claim))


def _published(one: Judgement) -> Iterator[Cell]:
    """The value and its bounds; a direction has none but 0."""
    wanted = one.expected
    if wanted is None:
        yield from ("–", "–", "–")
        return
    digits, percent = _form(one.claim)
    bounds = (0.0, None) if isinstance(one.claim, claims.DirectionClaim) else (wanted.low, wanted.high)
    yield Number(wanted.value, digits, percent)
    for bound in bounds:
        yield "–" if bound is None else Number(bound, digits, percent)


def _needed(one: Judgement, found: Measurement | None) -> Cell:
    if found is None or one.verdict != "inconclusive":
        return "–"
    return NOTHING if found.needed is None else found.needed


def _form(claim: claims.Claim) -> tuple[int, bool]:
    """How many digits stand behind the point, and whether it is a percentage."""
    if isinstance(claim, claims.RateClaim | claims.PartClaim):
        return (3 if isinstance(claim, claims.PartClaim) else 1), True
    if isinstance(claim, claims.RatioClaim):
        return 3, False
    measure = _MEASURES.get(claim.measure, Measure(claim.measure, claim.measure, 3))
    return (1, True) if measure.percent else (max(measure.digits, measure.published_digits), False)


_MEASURES = {measure.column: measure for measure in (*COSTS, *COMPARED, SOLVED)}


# In words


def none_judged(published: Published) -> str:
    scenarios = dict.fromkeys(claim.scenario for claim in published.claims)
    return f"none of the paper's is judged: they are about {' and '.join(scenarios)}, which this run does not have"


def verdict_lines(run: Run, judgements: Sequence[Judgement], published: Published) -> Iterator[str]:
    """How many of each verdict, then the paper's sentences one by one; the cells of its tables stand in the report. One line
    where nothing was judged."""
    if not judgements:
        yield f"Claims: {none_judged(published)}"
        return
    for model in run.names("model"):
        own = [one for one in judgements if one.model == model]
        found = counts(own)
        yield f"{model_label(run, model)}: {', '.join(f'{found[name]} {name}' for name in VERDICTS)}, of {len(own)} claims"
        sentences = [one for one in own if not isinstance(one.claim, claims.CellClaim)]
        yield from (verdict_line(one) for one in sentences if one.measured)
        yield from _unmeasured(sentences)


def verdict_line(one: Judgement) -> str:
    n = f", N={one.measured.n}" if one.measured else ""
    return f"  {one.verdict:<12}  {one.claim.id}: {one.claim.sentence}: ours {text_of(_ours(one))}{n}"


def _unmeasured(judgements: Iterable[Judgement]) -> Iterator[str]:
    """One line for each reason, for many claims may lack the same."""
    lacking: dict[str, list[str]] = {}
    for one in judgements:
        if one.measured is None:
            lacking.setdefault(one.reason, []).append(one.claim.id)
    for reason, names in lacking.items():
        yield f"  not measured  {reason}: {', '.join(names)}"
