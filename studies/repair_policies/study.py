"""Repair policies: the price of each for the same failure, from where a trial's verifier first rejected something.

A repeated call is priced at the tokens of the recorded call: the same prompt, a reply of the same size, this time accepted. So
no policy pays for a repair prompt or a second failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import instances_of
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import records_of
from bench.read.analysis.statistics import Mean, Pair, Ratio, amount_of, by_unit, ratio_of_means
from bench.read.render.cells import Estimate
from bench.read.render.drawing import BLUE, PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.events import Answered, Called, Committed, Event, Judged
from bench.record.ledger import is_retry
from bench.record.record import TrialRecord, latest

from ..by_model import by_model

POLICIES = ("full rerun", "rerun from there", "rerun what it invalidates", "retry alone", "least")
"""The subtasks that each policy asks again, of those asked when the failure was noticed:

full rerun                  all
rerun from there            the first rejected subtask and all that were asked after it
rerun what it invalidates   the rejected subtasks and all outputs made from theirs, by the lineage of the commits
retry alone                 only the rejected subtasks, even if outputs were made from their rejected outputs
least                       the cheapest way to mend the failure: the rejected subtasks, and of the outputs made from theirs
                            those whose text differs in the answer. Only hindsight knows these; none without an answer
"""


@dataclass(frozen=True)
class PricedFailure:
    """The first failure of a trial.

    prices     policy -> tokens that it would pay
    standing   number of outputs made from the rejected ones
    paid       tokens of all calls that the trial made again after it
    """

    prices: Mapping[str, int]
    standing: int
    paid: int


@dataclass
class _Progress:
    """What a trial had done up to a moment. `by`: subtask -> the call that asked it last, in the order of first asking."""

    by: dict[str, Called] = field(default_factory=dict)
    written: dict[str, Committed] = field(default_factory=dict)

    def see(self, event: Event) -> None:
        if isinstance(event, Called) and event.failure is None and event.cause != "judge":
            self.by.update(dict.fromkeys(event.subtasks, event))
        elif isinstance(event, Committed):
            self.written[event.subtask] = event

    def from_(self, failed: Iterable[str]) -> set[str]:
        """Return the subtasks whose outputs were made from those of `failed`, directly or indirectly."""
        reached = set(failed)
        while more := {name for name in self.written.keys() - reached if reached & _reads(self.written[name])}:
            reached |= more
        return reached - set(failed)

    def price(self, subtasks: Iterable[str]) -> int:
        """Return the price of asking for these again. A call for several of them is paid once."""
        calls = {self.by[name].call: self.by[name] for name in subtasks if name in self.by}
        return sum(call.tokens_in + call.tokens_out for call in calls.values())


def _reads(commit: Committed) -> set[str]:
    return {name for name, version, _ in commit.made_from if version}


def first_failure(events: Sequence[Event]) -> PricedFailure | None:
    """Return the trial's first failure. None if nothing was rejected."""
    made = _Progress()
    for place, event in enumerate(events):
        made.see(event)
        if _is_rejection(event):
            return _priced(made, _rejected_together(events[place:]), events[place:])
    return None


def _is_rejection(event: Event) -> bool:
    """Return whether the trial met a rejection here. A verdict on an undamaged reply that a fault had replaced is not part of
    it."""
    return isinstance(event, Judged) and not event.accepted and event.view != "undamaged"


def _rejected_together(rest: Iterable[Event]) -> list[str]:
    """Return all that is rejected before the next call."""
    failed = []
    for event in rest:
        if isinstance(event, Called):
            break
        if isinstance(event, Judged) and _is_rejection(event):
            failed.append(event.subtask)
    return list(dict.fromkeys(failed))


def _priced(made: _Progress, failed: Sequence[str], rest: Sequence[Event]) -> PricedFailure:
    asked = list(made.by)
    first = min((asked.index(name) for name in failed if name in made.by), default=0)
    below = made.from_(failed)
    differing = {name for name in below if _came_out_different(made.written[name], rest)}
    again = (asked, asked[first:], {*failed, *below}, failed, {*failed, *differing})
    calls = [event for event in rest if isinstance(event, Called) and is_retry(event)]
    return PricedFailure(
        prices={policy: made.price(names) for policy, names in zip(POLICIES, again, strict=True)},
        standing=len(below),
        paid=sum(call.tokens_in + call.tokens_out for call in calls),
    )


def _came_out_different(before: Committed, rest: Iterable[Event]) -> bool:
    """Return whether the answer holds a different text of this output. False if the trial has no answer."""
    texts = {(event.subtask, event.version): event.digest for event in rest if isinstance(event, Committed)}
    answer = dict(next((event.versions for event in rest if isinstance(event, Answered)), ()))
    final = (before.subtask, answer.get(before.subtask, before.version))
    return texts.get(final, before.digest) != before.digest


# Over a run


@dataclass(frozen=True)
class PolicyPrice:
    """One policy over all failures of an arm: mean price, its ratio to the price of `least`, and `each` single price."""

    policy: str
    mean: Mean
    to_least: Ratio
    each: tuple[float, ...]


@dataclass(frozen=True)
class Failures:
    """The first failures of one architecture's trials, over all fault plans. `paid`: what the trials then really paid."""

    scenario: str
    model: str
    architecture: str
    trials: int
    failures: int
    standing: Mean
    priced: tuple[PolicyPrice, ...]
    paid: Mean


PolicyOfFailures = tuple[Failures, PolicyPrice]
"""A policy's price, with the failures it is priced on."""


def policies(run: Run) -> list[Failures]:
    """Return the failures by scenario, model and architecture, in the config's order, without trials that ended in an error.

    Raises ResultsError if the run's events cannot be read, or nothing was ever rejected.
    """
    grouped: dict[tuple[str, str, str], dict[Pair, PricedFailure]] = {}
    instances = dict(zip(run.trials["trial"].tolist(), instances_of(run.trials), strict=True))
    for record in _records(run):
        failure = first_failure(record.events) if record.outcome != "error" else None
        if failure:
            of_arm = grouped.setdefault((record.scenario, record.model, record.architecture), {})
            of_arm[instances.get(record.id, ""), len(of_arm)] = failure
    if not grouped:
        raise ResultsError("needs trials in which something was rejected")
    return [
        _failures(scenario, model, architecture, _trials_in(run, scenario, model, architecture), failures)
        for scenario in run.names("scenario")
        for model in run.names("model")
        for architecture in run.names("architecture")
        if (failures := grouped.get((scenario, model, architecture)))
    ]


def _records(run: Run) -> Iterable[TrialRecord]:
    records = records_of(run)
    if records is None:
        raise ResultsError("needs the events of its trials, which are read from the run's folder")
    return latest(records)


def _trials_in(run: Run, scenario: str, model: str, architecture: str) -> int:
    trials = run.trials
    in_arm = (trials["scenario"] == scenario) & (trials["model"] == model) & (trials["architecture"] == architecture)
    return int((in_arm & (trials["outcome"] != "error")).sum())


def _failures(scenario: str, model: str, architecture: str, trials: int, failures: Mapping[Pair, PricedFailure]) -> Failures:
    """Summarize failures. The unit is a failure, or an instance if there are several instances."""
    prices = {policy: {place: float(failure.prices[policy]) for place, failure in failures.items()} for policy in POLICIES}
    units = {policy: by_unit(each) for policy, each in prices.items()}
    priced = [
        PolicyPrice(
            policy,
            amount_of(prices_of.values(), "price"),
            ratio_of_means(prices_of, units["least"]),
            tuple(prices[policy].values()),
        )
        for policy, prices_of in units.items()
    ]
    return Failures(
        *(scenario, model, architecture, trials, len(failures)),
        standing=amount_of(by_unit({place: float(failure.standing) for place, failure in failures.items()}).values()),
        priced=tuple(priced),
        paid=amount_of(by_unit({place: float(failure.paid) for place, failure in failures.items()}).values()),
    )


# Tables and figures

NOTES = (
    "each trial is cut where its verifier first rejected something; all policies are priced on that very failure, in tokens "
    "of the calls that they would make again: the recorded calls' prompts, and replies of the recorded size that are accepted",
    "mean ± sd [95% interval]; by the least: ratio of the means [95% interval], paired by failure",
    "least: the rejected outputs, and of what was made from them only what the answer holds in another text: hindsight, which "
    "no policy has; a simulated model gives the same output again whatever it reads",
    "outputs standing on it: made from the rejected ones before these were noticed; retry alone leaves them as they are",
    "paid: all that the trial then really made again, its repair prompts and its later failures among it",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[PolicyOfFailures]("Scenario", lambda row: row[0].scenario),
        TableColumn[PolicyOfFailures]("Model", lambda row: model_label(run, row[0].model)),
        TableColumn[PolicyOfFailures]("Architecture", lambda row: row[0].architecture),
        TableColumn[PolicyOfFailures]("Trials with a failure", lambda row: f"{row[0].failures} of {row[0].trials}"),
        TableColumn[PolicyOfFailures]("Policy", lambda row: row[1].policy),
        TableColumn[PolicyOfFailures]("Price", lambda row: Estimate(row[1].mean)),
        TableColumn[PolicyOfFailures]("By the least", lambda row: _ratio(row[1].to_least)),
        TableColumn[PolicyOfFailures]("Outputs standing on it", lambda row: Estimate(row[0].standing, 1)),
        TableColumn[PolicyOfFailures]("Paid", lambda row: Estimate(row[0].paid)),
    )
    rows = ((failures, priced) for failures in policies(run) for priced in failures.priced)
    yield table_of("study-repair_policies", "Policies priced on the same failures, tokens", columns, rows, NOTES)


def _ratio(ratio: Ratio) -> str:
    if ratio.ratio is None:
        return "n/a"
    interval = f"[{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.low is not None and ratio.high is not None else "(interval n/a)"
    return f"{ratio.ratio:.2f} {interval}"


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: a row of panels for each scenario, with a panel for each architecture."""
    for model, of_model in by_model(run, policies(run)):
        yield _figure(run, model, of_model)


def _figure(run: Run, model: str, all_failures: Sequence[Failures]) -> Picture:
    across = max(sum(failures.scenario == other.scenario for failures in all_failures) for other in all_failures)
    figure, axes = panels(len(all_failures), across, 3.9, 2.0)
    for place, (failures, ax) in enumerate(zip(all_failures, axes, strict=True)):
        _prices(ax, failures)
        ax.set_title(f"{failures.scenario}\n{failures.architecture}, {failures.failures} failures")
        ax.set_yticks(range(len(POLICIES)), POLICIES if not place % across else [])
        ax.set_ylim(len(POLICIES) - 0.5, -0.5)
        ax.set_xlim(
            0,
            1.05
            * max(max(priced.each) for other in all_failures if other.scenario == failures.scenario for priced in other.priced),
        )
        ax.set_xlabel("tokens to pay again")
        ax.grid(axis="x", color=PALE, lw=0.6)
    title = f"What each policy would pay on the same failure, {model_label(run, model)}"
    caption = "Each circle is a failure, and a square is their mean with its 95% interval."
    return finish(figure, slug("study", "repair_policies", model), title, f"{title}. {caption}")


def _prices(ax: Axes, failures: Failures) -> None:
    for place, priced in enumerate(failures.priced):
        ax.plot(priced.each, [place + 0.18] * len(priced.each), "o", ms=3, mfc="none", mec="#999999", mew=0.6)
        mean = priced.mean
        if mean.mean is not None:
            low, high = (mean.mean if end is None else end for end in (mean.low, mean.high))
            errors = [[mean.mean - low], [high - mean.mean]]
            ax.errorbar([mean.mean], [place - 0.12], xerr=errors, fmt="s", ms=4.5, color=BLUE, capsize=3, lw=1)
