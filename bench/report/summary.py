"""The first screen of a report: what was run, what its numbers show in a few sentences, and what they do not show.

Each sentence is written from the run's frames, and names the table that it was taken from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analysis import statistics
from bench.analysis.arms import Arms, Condition, instances_by_scenario, pairs_of
from bench.analysis.faults import IMPACTS
from bench.analysis.frames import Run
from bench.analysis.metrics import FIRST_PASS, FIRST_ROUND, LEAST_PRICED, PRICE, SCORE, Metric
from bench.analysis.recovery_rates import RecoveryRate, recovery_rates
from bench.analysis.statistics import Mean, Pair, Share
from bench.environment.damage import DAMAGES
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
    """`verdicts`: a sentence on the claims of each source of which some were judged. Where there is more to say than findings
    may be, first passes are left to their table."""
    failures = [finding for finding in (_first_rounds(run, arms), _impacts(run)) if finding]
    ends = [finding for finding in (_recovered(run, arms), _solved(run), _damaged(run), *verdicts) if finding]
    passes = [finding for finding in [_first_passes(run, arms)] if finding and len(failures) + len(ends) < MOST_FINDINGS]
    return Summary(_ran(run), tuple([*failures, *passes, *ends][:MOST_FINDINGS]), tuple(_limits(run, arms)))


def _ran(run: Run) -> str:
    trials = run.trials
    models = _listed([model_label(run, model) for model in run.names("model")])
    architectures, scenarios = (_listed(run.names(column)) for column in ("architecture", "scenario"))
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    under = f"under {_plural(len(plans), 'fault plan')} ({_listed(plans)})" if plans else "without faults"
    beside = " and without faults" if plans and FAULT_FREE in run.names("plan") else ""
    return f"{len(trials):,} trials: {architectures} on {scenarios}, answered by {models}, {under}{beside}."


# Findings


def _first_rounds(run: Run, arms: Arms) -> Finding | None:
    told = list(_by_condition(run, arms, FIRST_ROUND.tokens, lambda condition: condition.plan != FAULT_FREE))
    said = f"The first round after a failure took, in tokens: {_first(told)}" if told else ""
    return Finding(f"{said}.", "first_round") if said else None


def _first_passes(run: Run, arms: Arms) -> Finding | None:
    told = list(_by_condition(run, arms, FIRST_PASS.tokens, lambda condition: condition.plan == FAULT_FREE))
    said = f"Where nothing fails, the first pass took, in tokens: {_first(told)}" if told else ""
    return Finding(f"{said}.", "first_pass") if said else None


def _by_condition(run: Run, arms: Arms, measure: Metric, wanted: Callable[[Condition], bool]) -> Iterator[str]:
    """For each condition the architectures' means, the cheapest first."""
    for condition, found in arms.items():
        means = {name: arm.mean(measure.name) for name, arm in found.items()}
        known = sorted((mean.mean, name, mean) for name, mean in means.items() if mean.mean is not None)
        if wanted(condition) and known:
            shown, numbers = _ranked([f"{name} {_told(mean)}" for _, name, mean in known]), [mean.n for *_, mean in known]
            yield f"{_where(run, condition)}, {shown} (N = {_numbers(numbers)})"


def _numbers(numbers: Sequence[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if len(numbers) > MOST_NAMED else ", ".join(map(str, numbers))


def _where(run: Run, condition: Condition) -> str:
    """Names what differs in this run, and the scenario."""
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    under = f" under {condition.plan}" if condition.plan in plans and len(plans) > 1 else ""
    return f"on {condition.scenario}{_with_model(run, condition.model)}{under}"


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
    delivered = run.faults[run.faults["delivered"] & run.faults["finish"].ne("error")]
    if delivered.empty:
        return None
    effective, masked, untold = (int(delivered["impact"].eq(impact).sum()) for impact in IMPACTS)
    left = f"; of {untold:,} it is not told" if untold else ""
    text = f"{effective:,} were effective; {masked:,} were masked, since what they struck would have been rejected anyway{left}"
    return Finding(f"Of {len(delivered):,} delivered faults {text}.", "receipts")


def _recovered(run: Run, arms: Arms) -> Finding | None:
    """For each condition with faults the architectures' recovery rates, the highest first."""
    found: dict[Condition, list[RecoveryRate]] = {}
    for one in recovery_rates(run, arms):
        found.setdefault(one.arm.condition, []).append(one)
    told = [f"{_where(run, condition)}, {_ranked(_rates(rates))}" for condition, rates in found.items() if rates[0].recovered.n]
    said = "Of what all architectures solve without faults they solved under them"
    return Finding(f"{said}: {_first(told)}.", "recovery") if told else None


def _rates(found: Iterable[RecoveryRate]) -> list[str]:
    ranked = sorted(found, key=lambda one: -one.recovered.k)
    return [f"{one.arm.architecture} {one.recovered.k} of {one.recovered.n}{_percent(one.recovered)}" for one in ranked]


def _percent(share: Share) -> str:
    return "" if share.low is None or share.high is None else f" [{share.low:.0%}, {share.high:.0%}]"


def _solved(run: Run) -> Finding | None:
    """With and without faults, beside the floor under every score."""
    usable = run.trials[run.trials["correct"].notna()]
    if usable.empty:
        return None
    solved, fault_free = usable["outcome"].eq("solved"), usable["plan"].eq(FAULT_FREE)
    chosen = {"without faults": fault_free, "with faults": ~fault_free}
    counts = [_share_of(usable[rows], solved[rows], name) for name, rows in chosen.items() if rows.any()]
    scores = _ranked([f"{scenario} {_score(found)}" for scenario, found in usable.groupby("scenario", sort=False)])
    floor = f", keyword rules without any model {_ranked(floors)}" if (floors := list(_floors(run))) else ""
    return Finding(f"Solved were {_listed(counts)}; mean scores: {scores}{floor}.", "outcomes")


def _share_of(trials: pd.DataFrame, solved: pd.Series[bool], name: str) -> str:
    """Over all arms, with an interval. They have their tasks and seeds in common, so that what clusters is the instance, and of
    a scenario's sole one the repetition."""
    several = trials.groupby("scenario")["instance"].transform("nunique") > 1
    unit = trials["instance"].where(several, trials["repetition"].astype(str))
    share = statistics.share_by_instance((trials["scenario"] + " " + unit).tolist(), solved.tolist())
    return f"{share.k:,} of {share.n:,} trials {name}{_percent(share)}"


def _damaged(run: Run) -> Finding | None:
    """Of the trials that acted in a world."""
    lived = run.trials[run.trials["lives"].notna() & run.trials["outcome"].ne("error")]
    if lived.empty:
        return None
    counts = {kind: int(lived[f"damage_{kind}"].sum()) for kind in DAMAGES}
    effects = _listed([f"{count:,} {kind}" for kind, count in counts.items() if count]) or "none"
    harmed = lived[[f"damage_{kind}" for kind in DAMAGES]].gt(0).any(axis=1).fillna(False)
    said = f"Of {len(lived):,} trials in a world {int(harmed.sum()):,} did damage"
    return Finding(f"{said}; effects that went wrong: {effects}.", "world_damage")


def _score(trials: pd.DataFrame) -> str:
    """The mean over all arms, with an interval: the arms of a pair have their seeds in common, so each pair counts once."""
    by_pair: dict[Pair, list[float]] = {}
    for pair, score in zip(pairs_of(trials), trials["score"].tolist(), strict=True):
        by_pair.setdefault(pair, []).append(score)
    means = {pair: math.fsum(scores) / len(scores) for pair, scores in by_pair.items()}
    mean = statistics.amount_of(statistics.by_unit(means).values(), SCORE.measure)
    interval = f" [{mean.low:.3f}, {mean.high:.3f}]" if mean.low is not None and mean.high is not None else ""
    return f"{mean.mean:.3f}{interval}"


def _floors(run: Run) -> Iterator[str]:
    for scenario in run.names("scenario"):
        if baseline := run.pack(scenario).baseline:
            yield f"{scenario} {baseline.score:.3f}"


# Limits


def _limits(run: Run, arms: Arms) -> Iterator[str]:
    if not run.trials["outcome"].eq("solved").any():
        yield "Whether a failure is recovered to a right answer: no trial was solved."
    elif {FAULT_FREE} < set(run.names("plan")) and not any(recovery_rates(run, arms)):
        yield "Whether a failure is recovered to a right answer: no trial without faults was solved."
    if unpriced := list(dict.fromkeys(_unpriced(run, arms))):
        yield (
            f"What a failure that mattered costs in all, for {_listed(unpriced)}: fewer than {LEAST_PRICED} trials had an "
            "effective fault that was noticed."
        )
    yield _of_which_tasks(run)
    yield "Other models, prompts and settings than those that were run."


def _of_which_tasks(run: Run) -> str:
    instances = instances_by_scenario(run)
    sole, several = ([name for name, own in instances.items() if (len(own) > 1) is many] for many in (False, True))
    if not sole:
        return "Tasks of other kinds: intervals cluster by instance and speak of tasks like these, with these models."
    if not several:
        return (
            "Other tasks: of each pack there is one, so intervals speak of repetitions of that task alone, with these models."
        )
    return (
        f"Other tasks: of {_listed(sole)} there is one, so intervals speak of repetitions of that task alone; those of "
        f"{_listed(several)} cluster by instance and speak of tasks like these; with these models."
    )


def _unpriced(run: Run, arms: Arms) -> Iterator[str]:
    several = len(set(run.names("plan")) - {FAULT_FREE}) > 1
    for arm in each_arm(arms):
        if arm.usable["faults_delivered"].any() and arm.mean(PRICE.tokens.name).n < LEAST_PRICED:
            under = f" under {arm.condition.plan}" if several else ""
            yield f"{arm.architecture} on {arm.condition.scenario}{under}{_with_model(run, arm.condition.model)}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    """As a sentence lists them; of many the first few."""
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
