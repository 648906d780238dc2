"""The verdicts: as the first tables of a report, and as the lines that `bench report` prints first.

Directions and ratios stand in one table, with their tally; levels in another, as factors. What was not measured has no row
there: a note names it, once for each reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from bench.analysis.frames import Run
from bench.analysis.statistics import limits_of
from bench.render.cells import AdjustedP, Cell, text_of
from bench.render.labels import listed, model_label, slug
from bench.render.limits import noted
from bench.render.table import Table
from bench.report.summary import SummaryFinding
from bench.studies.claims.cells import by_published, measure_of, number_of, ours, theirs, to_decide
from bench.studies.claims.claim import DegradationClaim, RateClaim
from bench.studies.claims.population import population_of
from bench.studies.claims.published import Published
from bench.studies.claims.verdicts import (
    VERDICTS,
    ClaimVerdict,
    JudgedSource,
    Judgement,
    counts,
    family_of,
    levels,
    structural,
)

NO_WIDTH = "nothing is concluded from an interval without width, as equal values have"
MODEL_NOTE = f"{NO_WIDTH}, nor from a simulated model"
RUNTIME_NOTE = (
    f"{NO_WIDTH}; a claim about a model is not judged on a simulated one, a claim about what the runtime alone decides is, and "
    "its reason says so"
)
COUNTEREXAMPLE_NOTE = (
    "a share that is said to be none or all falls by one counterexample; it holds where there is none and our interval ends "
    "within the tolerance"
)
DIRECTION_NOTES = (
    "ours with its 95% interval; N: the values, pairs or outputs it is of; to decide: the N that would, with a power of 80%, "
    "were the truth what was found (of means: with a spread exceeded only one time in five)",
    "a direction holds where the interval of the paired difference lies on the claimed side and p, of the sign-flip test with "
    "Holm's correction, is at most 0.05; it is contradicted where both hold on the other side",
    "errs in: how often that test at 5% came out different between simulated arms of equal means and unlike shapes, in the "
    "worst world at so many pairs (reports/calibration), before any correction",
)
VERDICT_COLUMNS = (
    *("Claim", "Model", "Compares", "Verdict", "What is said", "Ours", "Published", "N", "To decide", "p (Holm)"),
    *("Reason", "Why it can be compared", "Source"),
)
VERDICT_NOTES = (
    *DIRECTION_NOTES,
    "a ratio holds where its direction does and the published ratio lies in our interval; where that does not: holds, size "
    "differs",
    COUNTEREXAMPLE_NOTE,
    MODEL_NOTE,
    "a retry is one round of recovery after a delivered and detected fault, effective or masked; what a structure costs "
    "without a failure is its first pass",
    "wrong outputs: first attempts of runtime_structured without a fault, so that no output counts twice; those known to be "
    "wrong, by form or by a check",
)
DEGRADATION_NOTES = (
    *DIRECTION_NOTES,
    "ours: what one side loses less what the other does; of one side alone, what it loses. A loss is solved without a fault "
    "less solved under it, by instance and repetition, the mean over the plans that the claim names; a pair of which a fault "
    "was not delivered is left out",
)
LEVEL_NOTES = (
    "levels are judged only where the model and the prompts are the paper's; else they are not comparable, and stand outside "
    "the tally of verdicts: ours by the published value, with our 95% interval",
    "natural failures: first attempts of runtime_structured without a fault, so that no output counts twice",
)


def claims_tables(run: Run, judgements: Sequence[Judgement], published: Published) -> list[Table]:
    """Directions and ratios, what they were judged on, then levels; none where nothing was judged."""
    if not judgements:
        return []
    own_claims = structural(judgements)
    return [_verdicts(run, own_claims, published), _populations(run, own_claims, published), _levels(run, levels(judgements))]


def _populations(run: Run, judgements: Sequence[Judgement], published: Published) -> Table:
    """What each claim was judged on, whatever the model."""
    claims = dict.fromkeys(judgement.claim for judgement in judgements if judgement.measured)
    told = [(claim, population_of(run, claim)) for claim in claims]
    rows = [
        (
            claim.id,
            judgement.among,
            judgement.unit,
            "; ".join(judgement.arms),
            "; ".join(judgement.differ) or "–",
            ", ".join(judgement.between) or "–",
        )
        for claim, judgement in told
    ]
    return Table(
        name=f"{name_of(published)}_populations",
        title="What each claim was judged on",
        columns=("Claim", "Among", "Counts once", "Arms", "In what the two differ", "Arms between them"),
        rows=tuple(rows),
        notes=(
            "two architectures that differ in several things are no evidence for one of them; an arm between them differs from "
            "either in less",
            "trials that could not have come out otherwise stand in no population: those under a fault that strikes every "
            "attempt, and those whose failed call a response cache answers as it answered the control's",
        ),
    )


def other_claims(run: Run, judged: JudgedSource) -> Table:
    """The verdicts on the claims of a source beside the paper."""
    table = _verdicts(run, judged.judgements, judged.published)
    notes = (*notes_on(judged.published), *(note for note in table.notes if note not in VERDICT_NOTES))
    return replace(table, title=title_of(judged.published), notes=notes)


def other_populations(run: Run, judged: JudgedSource) -> Table:
    """What the claims of a source beside the paper were judged on."""
    table = _populations(run, judged.judgements, judged.published)
    return replace(table, title=f"{judged.published.paper.name}: {table.title[0].lower()}{table.title[1:]}")


def title_of(published: Published) -> str:
    """Return the name of the table of the verdicts on a source beside the paper."""
    return f"{published.paper.name}: its claims and their verdicts"


def notes_on(published: Published) -> tuple[str, ...]:
    """How the claims of a source beside the paper are judged: notes on those kinds of claims alone that it has."""
    claims = published.claims
    return (
        f"source: {published.paper.title}; {published.paper.source}",
        *(DEGRADATION_NOTES if any(isinstance(claim, DegradationClaim) for claim in claims) else (DIRECTION_NOTES[0],)),
        *((COUNTEREXAMPLE_NOTE,) if any(isinstance(claim, RateClaim) for claim in claims) else ()),
        RUNTIME_NOTE if any(claim.about == "runtime" for claim in claims) else MODEL_NOTE,
    )


def name_of(published: Published) -> str:
    """Return the name of the table of its verdicts."""
    return f"claims_{slug(published.paper.name).lower()}" if published.paper.name else "claims"


def _verdicts(run: Run, judgements: Sequence[Judgement], published: Published) -> Table:
    return Table(
        name=name_of(published),
        title="Claims and their verdicts",
        columns=VERDICT_COLUMNS,
        rows=_rows(run, judgements, _verdict_cells),
        notes=(*tallies(run, judgements), *VERDICT_NOTES, *_floor(published), *_last_notes(run, judgements)),
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
    return tuple(
        (judgement.claim.id, model_label(run, judgement.model), *cells(judgement))
        for judgement in judgements
        if judgement.measured
    )


def _verdict_cells(judgement: Judgement) -> tuple[Cell, ...]:
    return (
        *(judgement.claim.compares, judgement.in_words, judgement.claim.sentence, ours(judgement), theirs(judgement)),
        *(number_of(judgement), to_decide(judgement), AdjustedP(judgement.p, judgement.floor, _errs(judgement))),
        *(judgement.reason, judgement.claim.why, judgement.claim.source),
    )


def _errs(judgement: Judgement) -> float | None:
    """How often the test behind a verdict's p finds what is not there, where that is more often than it says."""
    if judgement.measured is None or judgement.measured.test is None:
        return None
    return next((limit.measured for limit in limits_of(judgement.measured.test) if limit.code == "shape"), None)


def _level_cells(judgement: Judgement) -> tuple[Cell, ...]:
    return (
        *(
            judgement.in_words,
            judgement.claim.sentence,
            measure_of(judgement.claim),
            ours(judgement),
            theirs(judgement),
            by_published(judgement),
            number_of(judgement),
        ),
        *(judgement.reason, judgement.claim.source),
    )


def _whys(judgements: Iterable[Judgement]) -> Iterator[str]:
    """Why each measure is a level."""
    measures: dict[str, dict[str, None]] = {}
    for judgement in judgements:
        measures.setdefault(judgement.claim.why, {})[measure_of(judgement.claim)] = None
    return (f"{', '.join(names)}: {why}" for why, names in measures.items())


def _last_notes(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """What was not measured, and what the intervals do not hold."""
    for model in run.names("model"):
        yield from (f"{model_label(run, model)}: {line}" for line in _unmeasured(_of_model(judgements, model)))
    yield from noted(judgement.measured.basis for judgement in judgements if judgement.measured)


def _floor(published: Published) -> Iterator[str]:
    """What the least p means; nothing where no two architectures are compared."""
    if family := len(family_of(published)):
        yield (
            "(floor): p is the least that so many pairs can give. Of N the sign-flip test gives none below 2/2^N, however far "
            f"apart the two lie, and Holm's correction over {family} comparisons multiplies the first by {family}, each "
            f"further one by one less: {family * 2 / 2**5:.3f} at N=5, {family * 2 / 2**10:.3f} at N=10"
        )


# In words


def none_judged(published: Published) -> str:
    scenarios = dict.fromkeys(claim.scenario for claim in published.claims)
    return f"none of the paper's is judged: they are about {' and '.join(scenarios)}, which this run does not have"


def tallies(run: Run, judgements: Sequence[Judgement]) -> Iterator[str]:
    """How many of each verdict, of the directions and ratios alone, by model."""
    for model in run.names("model"):
        judged = structural(_of_model(judgements, model))
        yield tally(model_label(run, model), [judgement.verdict for judgement in judged])


def tally(label: str, verdicts: Sequence[ClaimVerdict]) -> str:
    text = "; ".join(f"{name}: {verdicts.count(name)}" for name in VERDICTS)
    return f"{label}, {len(verdicts)} claims of directions and ratios: {text}"


def verdict_finding(run: Run, judgements: Sequence[Judgement], published: Published) -> SummaryFinding | None:
    """The sentence of the summary; None where no direction or ratio was judged, as by a simulated model."""
    parts = []
    whose = published.paper.name or "the paper"
    for model in run.names("model"):
        counted = counts(structural(_of_model(judgements, model)))
        told = [f"{counted[verdict]} {words}" for verdict, words in _IN_WORDS.items() if counted[verdict]]
        judged = sum(counted[verdict] for verdict in _IN_WORDS)
        if told:
            beside = f" with {model_label(run, model)}" if len(run.names("model")) > 1 else ""
            parts.append(f"Of the {judged} claims of {whose} that were measured{beside}, {listed(told)}.")
    return SummaryFinding(" ".join(parts), name_of(published)) if parts else None


_IN_WORDS: dict[ClaimVerdict, str] = {
    "holds": "hold",
    "holds, size differs": "hold with another size",
    "contradicted": "are contradicted",
    "decided by sizes": "are decided by the sizes of calls",
    "counterexample found": "fall by a counterexample",
    "inconclusive": "are inconclusive",
}


def verdict_lines(run: Run, judgements: Sequence[Judgement], published: Published) -> Iterator[str]:
    """The tally of the directions and ratios, and these one by one; levels stand in the report. One line where nothing was
    judged."""
    if not judgements:
        yield f"Claims: {none_judged(published)}"
        return
    for model, tally in zip(run.names("model"), tallies(run, judgements), strict=True):
        yield tally
        of_model = _of_model(judgements, model)
        yield from (verdict_line(judgement) for judgement in structural(of_model) if judgement.measured)
        yield from (f"  {line}" for line in _unmeasured(structural(of_model)))
        if levels(of_model):
            text = "(tokens, seconds, calls, rates) stand in the report, as factors of the published"
            yield f"  {len(levels(of_model))} levels {text}"


def other_lines(run: Run, judged: JudgedSource) -> Iterator[str]:
    """The same of a source beside the paper, under its name."""
    yield f"{judged.published.paper.name}:"
    yield from verdict_lines(run, judged.judgements, judged.published)


def verdict_line(judgement: Judgement) -> str:
    n = f", N={judgement.measured.n}" if judgement.measured else ""
    return f"  {judgement.in_words:<30}  {judgement.claim.id}: {judgement.claim.sentence}: ours {text_of(ours(judgement))}{n}"


def _of_model(judgements: Sequence[Judgement], model: str) -> list[Judgement]:
    return [judgement for judgement in judgements if judgement.model == model]


def _unmeasured(judgements: Iterable[Judgement]) -> Iterator[str]:
    """One line for each reason, for many claims may lack the same."""
    lacking: dict[str, list[str]] = {}
    for judgement in judgements:
        if judgement.measured is None:
            lacking.setdefault(judgement.reason, []).append(judgement.claim.id)
    for reason, names in lacking.items():
        yield f"not measured, as {reason}: {', '.join(names)}"
