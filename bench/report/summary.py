"""The first screen of a report: what was run, what its numbers show in a few sentences, and what they do not show.

Each sentence is written from the run's frames, and names the table that it was taken from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analysis import statistics
from bench.analysis.arms import Arms, Condition, measure_of, pairs_of, several_instances
from bench.analysis.faults import IMPACTS
from bench.analysis.frames import Run
from bench.analysis.measures import FIRST_PASS, FIRST_ROUND, LEAST_PRICED, PRICE, Measure
from bench.analysis.statistics import Mean, Pair
from bench.experiment.config import FAULT_FREE
from bench.render.labels import each_arm, model_label

MOST_FINDINGS, MOST_CONDITIONS, MOST_NAMED = 5, 2, 4


@dataclass(frozen=True)
class Finding:
    """One sentence, and the name of the table that it was taken from."""

    text: str
    table: str


@dataclass(frozen=True)
class Summary:
    """`ran`: what was run. `findings`: five at most. `limits`: what they do not show."""

    ran: str
    findings: tuple[Finding, ...]
    limits: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """As a terminal shows it."""
        limits = (f"  - {limit}" for limit in self.limits)
        return (self.ran, *(f"  * {finding.text}" for finding in self.findings), "What this does not show:", *limits)


def summary_of(run: Run, arms: Arms, verdicts: Sequence[Finding] = ()) -> Summary:
    """`verdicts`: a sentence on the claims of each source of which some were judged."""
    found = (_first_rounds(run, arms), _impacts(run), _first_passes(run, arms), _solved(run), *verdicts)
    findings = [finding for finding in found if finding]
    return Summary(_ran(run), tuple(findings[:MOST_FINDINGS]), tuple(_limits(run, arms)))


def _ran(run: Run) -> str:
    trials = run.trials
    models = _listed([model_label(run, model) for model in run.names("model")])
    architectures, scenarios = (_listed(run.names(column)) for column in ("architecture", "scenario"))
    plans = [plan for plan in run.names("fault") if plan != FAULT_FREE]
    under = f"under {_plural(len(plans), 'fault plan')} ({_listed(plans)})" if plans else "without faults"
    beside = " and without faults" if plans and FAULT_FREE in run.names("fault") else ""
    return f"{len(trials):,} trials: {architectures} on {scenarios}, answered by {models}, {under}{beside}."


# Findings


def _first_rounds(run: Run, arms: Arms) -> Finding | None:
    told = list(_by_condition(run, arms, FIRST_ROUND[0], lambda condition: condition.plan != FAULT_FREE))
    said = f"The first round after a failure took, in tokens: {_first(told)}" if told else ""
    return Finding(f"{said}.", "first_round") if said else None


def _first_passes(run: Run, arms: Arms) -> Finding | None:
    told = list(_by_condition(run, arms, FIRST_PASS[0], lambda condition: condition.plan == FAULT_FREE))
    said = f"Where nothing fails, the first pass took, in tokens: {_first(told)}" if told else ""
    return Finding(f"{said}.", "first_pass") if said else None


def _by_condition(run: Run, arms: Arms, measure: Measure, wanted: Callable[[Condition], bool]) -> Iterator[str]:
    """For each condition the architectures' means, the cheapest first."""
    for condition, found in arms.items():
        means = {name: arm.mean(measure.column) for name, arm in found.items()}
        known = sorted((mean.mean, name, mean) for name, mean in means.items() if mean.mean is not None)
        if wanted(condition) and known:
            shown, numbers = _ranked([f"{name} {_told(mean)}" for _, name, mean in known]), [mean.n for *_, mean in known]
            yield f"on {condition.scenario}{_with_model(run, condition.model)}, {shown} (N = {_numbers(numbers)})"


def _numbers(numbers: Sequence[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if len(numbers) > MOST_NAMED else ", ".join(map(str, numbers))


def _with_model(run: Run, model: str) -> str:
    return f" with {model_label(run, model)}" if len(run.names("model")) > 1 else ""


def _ranked(texts: Sequence[str]) -> str:
    if len(texts) <= MOST_NAMED:
        return ", ".join(texts)
    between = len(texts) - MOST_NAMED + 1
    return ", ".join([*texts[: MOST_NAMED - 2], f"{between} others between", texts[-1]])


def _first(told: Sequence[str]) -> str:
    rest = len(told) - MOST_CONDITIONS
    return "; ".join([*told[:MOST_CONDITIONS], *([f"and {rest} more in the table"] if rest > 0 else [])])


def _told(mean: Mean) -> str:
    interval = f" [{mean.low:,.0f}, {mean.high:,.0f}]" if mean.low is not None and mean.high is not None else ""
    return f"{mean.mean:,.0f}{interval}"


def _impacts(run: Run) -> Finding | None:
    delivered = run.faults[run.faults["delivered"] & run.faults["ended"].ne("error")]
    if delivered.empty:
        return None
    effective, masked, untold = (int(delivered["impact"].eq(impact).sum()) for impact in IMPACTS)
    left = f"; of {untold:,} it is not told" if untold else ""
    text = f"{effective:,} were effective; {masked:,} were masked, since what they struck would have been rejected anyway{left}"
    return Finding(f"Of {len(delivered):,} delivered faults {text}.", "receipts")


def _solved(run: Run) -> Finding | None:
    """With and without faults, beside the floor under every score."""
    usable = run.trials[run.trials["correct"].notna()]
    if usable.empty:
        return None
    solved, fault_free = usable["outcome"].eq("solved"), usable["fault"].eq(FAULT_FREE)
    chosen = {"without faults": fault_free, "with faults": ~fault_free}
    counts = [
        f"{int(solved[rows].sum()):,} of {int(rows.sum()):,} trials {name}" for name, rows in chosen.items() if rows.any()
    ]
    scores = _ranked([f"{scenario} {_score(found)}" for scenario, found in usable.groupby("scenario", sort=False)])
    floor = f", keyword rules without any model {_ranked(floors)}" if (floors := list(_floors(run))) else ""
    return Finding(f"Solved were {_listed(counts)}; mean scores: {scores}{floor}.", "outcomes")


def _score(trials: pd.DataFrame) -> str:
    """The mean over all arms, with an interval: the arms of a pair have their seeds in common, so each pair counts once."""
    by_pair: dict[Pair, list[float]] = {}
    for pair, score in zip(pairs_of(trials), trials["score"].tolist(), strict=True):
        by_pair.setdefault(pair, []).append(score)
    means = {pair: math.fsum(scores) / len(scores) for pair, scores in by_pair.items()}
    mean = statistics.amount_of(statistics.by_unit(means).values(), measure_of("score"))
    interval = f" [{mean.low:.3f}, {mean.high:.3f}]" if mean.low is not None and mean.high is not None else ""
    return f"{mean.mean:.3f}{interval}"


def _floors(run: Run) -> Iterator[str]:
    for scenario in run.names("scenario"):
        if baseline := run.manifest.get("scenarios", {}).get(scenario, {}).get("baseline"):
            yield f"{scenario} {baseline['score']:.3f}"


# Limits


def _limits(run: Run, arms: Arms) -> Iterator[str]:
    if not run.trials["outcome"].eq("solved").any():
        yield "Whether a failure is recovered to a right answer: no trial was solved."
    if unpriced := list(dict.fromkeys(_unpriced(run, arms))):
        yield (
            f"What a failure that mattered costs in all, for {_listed(unpriced)}: fewer than {LEAST_PRICED} trials had an "
            "effective fault that was noticed."
        )
    if several_instances(run):
        yield "Tasks of other kinds: intervals cluster by instance and speak of tasks like these, with these models."
    else:
        yield "Other tasks: of each pack there is one, so intervals speak of repetitions of that task alone, with these models."
    yield "Other models, prompts and settings than those that were run."


def _unpriced(run: Run, arms: Arms) -> Iterator[str]:
    for arm in each_arm(arms):
        if arm.usable["faults_delivered"].any() and arm.mean(PRICE[0].column).n < LEAST_PRICED:
            yield f"{arm.architecture} on {arm.condition.scenario}{_with_model(run, arm.condition.model)}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    """As a sentence lists them; of many the first few."""
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
