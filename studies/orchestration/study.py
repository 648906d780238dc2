"""Who orchestrates: patterns compared on damage and on solved trials, in each world, under each fault plan, with each proposer.

A proposer is a model with all its sets of draws (`error_draws`). Arms are compared that differ in one thing: two patterns in
the same form, or a pattern bare and with remedies. The unit is an instance. Two comparisons with the same difference in every
instance are copies and stand in one row. Two arms are told apart where the interval of their difference lies on one side of 0
and p survives Holm's correction over all rows; for the others the table names the instances that would decide. Tokens do not
count.

Where there are several proposers, reliability is decomposed: *the luck of the calls* is the mean over instances of the variance
of damage over the sets of draws, under the same faults; the *gap* is the difference of two patterns with one proposer, for each
delivered fault, and it *grows* where it is larger with the proposer that errs least than with the one that errs most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import pandas as pd

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.factors import ArmName, factors_between
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import holm, mean_of
from bench.read.claims.sample_size import pairs_after_correction
from bench.read.render.cells import AdjustedP, Cell, Number
from bench.read.render.drawing import Picture
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.damage import DAMAGES

from ..rises import Rises, rises

LEVEL = 0.05
PLACE = ["instance", "plan", "repetition"]
PAIRS = ["instance", "repetition", "model", "architecture"]
OUTCOMES = {"damage": "damaged effects", "is_solved": "solved"}


@dataclass(frozen=True)
class PatternPair:
    """The first pattern less the second, in one row for all pairs of arms with the same difference in every instance.
    `needed`: instances that would decide if the truth were as measured."""

    scenario: str
    plan: str
    proposer: str
    arms: tuple[str, ...]
    outcome: str
    risen: Rises
    needed: int | None = None
    p: float | None = None
    family: int = 0

    @property
    def differs(self) -> bool:
        return any(self.risen.by_instance.values())

    @property
    def is_told_apart(self) -> bool:
        contrast = self.risen.contrast
        return self.p is not None and self.p < LEVEL and (contrast.low or 0) * (contrast.high or 0) > 0


def answers(run: Run) -> tuple[list[PatternPair], list[ProposerGap]]:
    """Return each two patterns by world, fault plan and outcome, and where there are several proposers their gaps. Raise
    ResultsError if fewer than two patterns acted in a world."""
    trials = _trials(run)
    return corrected(_pattern_pairs(run, trials), _gaps(run, trials) if trials["proposer"].nunique() > 1 else [])


def corrected(pairs: Sequence[PatternPair], gaps: Sequence[ProposerGap]) -> tuple[list[PatternPair], list[ProposerGap]]:
    """Return them with their p after Holm's correction over all of them that differ anywhere, and with what would decide."""
    asked = [*(each.risen for each in pairs), *(each.grows for each in gaps)]
    p = holm({place: each.p for place, each in enumerate(asked) if any(each.by_instance.values())})
    needed = [pairs_after_correction(mean_of(list(each.by_instance.values())), len(p), LEVEL) for each in asked]
    return (
        [replace(each, p=p.get(place), needed=needed[place], family=len(p)) for place, each in enumerate(pairs)],
        [replace(each, p=p.get(place), needed=needed[place], family=len(p)) for place, each in enumerate(gaps, len(pairs))],
    )


def _pattern_pairs(run: Run, trials: pd.DataFrame) -> list[PatternPair]:
    names = [name for name in run.names("architecture") if (trials["architecture"] == name).any()]
    if len(names) < 2:
        raise ResultsError("needs two architectures that act in a world")
    by_copy: dict[tuple[object, ...], PatternPair] = {}
    for (scenario, plan, proposer), group in trials.groupby(["scenario", "plan", "proposer"], sort=False, observed=True):
        for first, second in _comparable(run, names, group):
            for outcome in OUTCOMES:
                risen = rises(group, outcome, "architecture", first, second, PAIRS)
                of_arms = f"{first} less {second}"
                copy = (scenario, plan, proposer, outcome, tuple(risen.by_instance.items()))
                before = by_copy[copy].arms if copy in by_copy else ()
                by_copy[copy] = PatternPair(str(scenario), str(plan), str(proposer), (*before, of_arms), outcome, risen)
    return list(by_copy.values())


def _comparable(run: Run, names: Sequence[str], trials: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of architectures that differ in one thing."""
    model, plan = str(trials["model"].iloc[0]), str(trials["plan"].iloc[0])
    return [
        (first, second)
        for first, second in combinations(names, 2)
        if len(factors_between(run, ArmName(first, model, plan), ArmName(second, model, plan))) == 1
    ]


def _trials(run: Run) -> pd.DataFrame:
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["lives"].notna()]
    shown = {model: run.parameters_of(model).shown for model in run.names("model")}
    proposers = {model: model.removesuffix(f"_{each.get('error_draws', 0)}") for model, each in shown.items()}
    damage = usable[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1).astype(float)
    return usable.assign(
        architecture=usable["architecture"].astype(str),
        proposer=usable["model"].astype(str).map(proposers),
        rate=usable["model"].astype(str).map({model: float(each.get("error_rate", 0.0)) for model, each in shown.items()}),
        is_damaged=(damage > 0).astype(float),
        by_fault=damage / usable["faults_delivered"].astype(float).where(lambda number: number > 0),
        damage=damage,
        is_solved=(usable["outcome"] == "solved").astype(float),
    )


@dataclass(frozen=True)
class ProposerGap:
    """Two patterns in one world: how many more effects the first damages for each delivered fault, by proposer from the one
    that errs most, and how much more with the one that errs least. In a trial they cannot be compared: a proposer that errs
    gives up earlier and is struck less."""

    scenario: str
    arms: str
    by_proposer: tuple[BootstrapMean, ...]
    grows: Rises
    needed: int | None = None
    p: float | None = None
    family: int = 0

    @property
    def verdict(self) -> str:
        contrast, with_most = self.grows.contrast, self.by_proposer[0].value or 0.0
        if self.p is None or self.p >= LEVEL or (contrast.low or 0) * (contrast.high or 0) <= 0:
            return self.grows.open_verdict(self.family)
        return "grows" if (contrast.low or 0) * with_most > 0 else "shrinks"


def _gaps(run: Run, trials: pd.DataFrame) -> list[ProposerGap]:
    """Return the gaps of each two patterns that differ in one thing, by world. An instance counts with its mean over draws."""
    made: list[ProposerGap] = []
    for scenario, group in trials.groupby("scenario", sort=False, observed=True):
        means = group.groupby([*PLACE, "architecture", "rate"], observed=True)["by_fault"].mean().reset_index()
        rates = sorted(means["rate"].unique(), reverse=True)
        for first, second in _comparable(run, sorted(set(group["architecture"]), key=run.names("architecture").index), group):
            by_rate = [
                rises(means[means["rate"] == rate], "by_fault", "architecture", first, second, [*PLACE, "architecture"])
                for rate in rates
            ]
            most, least = by_rate[0].by_instance, by_rate[-1].by_instance
            grows = {instance: least[instance] - most[instance] for instance in least.keys() & most.keys()}
            contrasts = tuple(each.contrast for each in by_rate)
            made.append(ProposerGap(str(scenario), f"{first} less {second}", contrasts, Rises(grows, len(grows), len(grows))))
    return made


def luck(trials: pd.DataFrame) -> BootstrapMean | None:
    """Return the mean over instances of the variance of damage over the sets of draws. None if there is one set."""
    if trials["model"].nunique() < 2:
        return None
    return _by_instance(trials.groupby(PLACE, observed=True)["is_damaged"].var(ddof=1))


def _by_instance(values: pd.Series[float]) -> BootstrapMean:
    means = values.groupby(level="instance", observed=True).mean()
    return bootstrap_mean({str(name): float(mean) for name, mean in means.items()})


NOTES = (
    "the first arm less the second, in the mean of a trial; arms that differ in one thing; pairs with the same difference in "
    "every instance are copies, and one row; 95% intervals are of resampled instances",
    "told apart: p < 0.05 by the sign-flip test over instances, after Holm's correction over all questions of the run whose "
    "answer is not 0 in every instance; (floor): no values of so many instances give such a p",
    "to decide: the instances at which this difference would be found with a power of 80% at the corrected level (0.05 by the "
    "number of questions), if the truth were as measured",
)
SIMULATED = "SIMULATED: no model answered; its mistakes are the fault plan's"


def tables(run: Run) -> Iterator[Table]:
    is_simulated = all(run.is_simulated(model) for model in run.names("model"))
    for table in _tables(run):
        yield replace(table, title=f"{table.title} (SIMULATED)", notes=(*table.notes, SIMULATED)) if is_simulated else table


def _tables(run: Run) -> Iterator[Table]:
    (every, gaps), trials = answers(run), _trials(run)
    further = run.config.name.removeprefix("orchestration").strip("_")
    yield replace(_pairs_table(every), name="-".join(filter(None, ("study-orchestration", further))))
    if trials["proposer"].nunique() == 1:
        return
    yield _counts(every)
    yield _gaps_table(gaps, trials)
    yield _decomposed(run, trials)


def _pairs_table(every: Sequence[PatternPair]) -> Table:
    differ = [each for each in every if each.differs]
    apart, same = sum(each.is_told_apart for each in every), [each for each in every if not each.differs]
    proposer = TableColumn[PatternPair]("Proposer", lambda row: row.proposer)
    columns = (
        TableColumn[PatternPair]("Scenario", lambda row: row.scenario),
        TableColumn[PatternPair]("Faults", lambda row: row.plan),
        *([proposer] if len({each.proposer for each in every}) > 1 else []),
        TableColumn[PatternPair]("Arms", lambda row: "; ".join(row.arms)),
        TableColumn[PatternPair]("What", lambda row: OUTCOMES[row.outcome]),
        TableColumn[PatternPair]("Difference", lambda row: row.risen.contrast.cell()),
        TableColumn[PatternPair]("p (Holm)", lambda row: AdjustedP(row.p)),
        TableColumn[PatternPair]("Instances", lambda row: len(row.risen.by_instance)),
        TableColumn[PatternPair]("Verdict", _verdict),
        TableColumn[PatternPair]("To decide", lambda row: "–" if row.is_told_apart else row.needed or "unknown"),
    )
    counts = (
        f"{len(differ)} different comparisons: {apart} told apart; beside them "
        f"{sum(len(each.arms) for each in same)} with no difference in any instance, which are not shown"
    )
    title = "Patterns told apart by damage or by solved trials"
    return table_of("study-orchestration", title, columns, differ, (*NOTES, counts))


def _verdict(row: PatternPair) -> str:
    return "told apart" if row.is_told_apart else row.risen.open_verdict(row.family, "cannot be told apart")


def _counts(every: Sequence[PatternPair]) -> Table:
    """How many pairs of patterns are told apart, by damage or by solved trials, in each world with each proposer."""
    rows: list[tuple[Cell, ...]] = []
    for scenario, proposer in dict.fromkeys((each.scenario, each.proposer) for each in every):
        of = [each for each in every if (each.scenario, each.proposer) == (scenario, proposer)]
        pairs = {arms for each in of for arms in each.arms}
        apart = {arms for each in of if each.is_told_apart for arms in each.arms}
        differ = {arms for each in of if each.differs for arms in each.arms} - apart
        least = {arms: min((each.needed or MANY for each in of if arms in each.arms), default=MANY) for arms in differ}
        needed = sorted(least.values())
        spread = "–" if not needed else " to ".join(_many(each) for each in dict.fromkeys((needed[0], needed[-1])))
        rows.append((scenario, proposer, len(pairs), len(apart), len(differ), len(pairs - apart - differ), spread))
    return Table(
        name="study-orchestration-counts",
        title="How many pairs of patterns are told apart, by world and proposer",
        columns=("Scenario", "Proposer", "Pairs", "Told apart", "Not told apart", "The same in each instance", "To decide"),
        rows=tuple(rows),
        notes=(
            "a pair is told apart if its damaged effects or its solved trials are, after Holm's correction over all worlds, "
            "proposers, pairs, both outcomes and all gaps",
            "to decide: of the pairs that are not told apart, the least and the most instances that would decide the easier of "
            "the two outcomes, if the truth were as measured",
        ),
    )


MANY = 10**9
"""In the place of a number of instances that is not known."""


def _many(needed: int) -> str:
    return "unknown" if needed == MANY else str(needed)


def _gaps_table(gaps: Sequence[ProposerGap], trials: pd.DataFrame) -> Table:
    by_rate = trials.drop_duplicates("proposer").sort_values("rate", ascending=False)
    columns = (
        TableColumn[ProposerGap]("Scenario", lambda row: row.scenario),
        TableColumn[ProposerGap]("Arms", lambda row: row.arms),
        *map(_gap_column, range(len(by_rate)), by_rate["proposer"]),
        TableColumn[ProposerGap]("Grows by", lambda row: row.grows.contrast.cell()),
        TableColumn[ProposerGap]("p (Holm)", lambda row: AdjustedP(row.p)),
        TableColumn[ProposerGap]("Verdict", lambda row: row.verdict),
        TableColumn[ProposerGap](
            "To decide", lambda row: "–" if row.verdict in ("grows", "shrinks") else row.needed or "unknown"
        ),
    )
    notes = (
        "gap: damaged effects for each delivered fault under the first pattern less those under the second, over the trials "
        "that were struck; in a trial they are not comparable, since a proposer that errs gives up earlier and is struck less",
        "grows by: the gap with the proposer that errs least less the gap with the one that errs most; grows: away from zero, "
        "p < 0.05 by the sign-flip test over instances after Holm's correction over these rows and all pairs of patterns",
        "95% intervals are of resampled instances",
    )
    title = "Does it matter more which pattern there is where the proposer errs less?"
    return table_of("study-orchestration-gaps", title, columns, gaps, notes)


def _gap_column(place: int, proposer: str) -> TableColumn[ProposerGap]:
    return TableColumn(f"Gap, {proposer}", lambda row: row.by_proposer[place].cell())


def _decomposed(run: Run, trials: pd.DataFrame) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (scenario, proposer), group in trials.groupby(["scenario", "proposer"], sort=False, observed=True):
        for name in run.names("architecture"):
            arm = group[group["architecture"] == name]
            shares = (_by_instance(arm.groupby(PLACE, observed=True)[what].mean()) for what in ("is_damaged", "is_solved"))
            variance = luck(arm)
            cells = (share.cell() for share in shares)
            struck = Number(float(arm["faults_delivered"].astype(float).mean()), 2)
            rows.append(
                (str(scenario), str(proposer), name, len(arm), struck, *cells, variance.cell() if variance else "one set")
            )
    return Table(
        name="study-orchestration-decomposed",
        title="Damaged and solved trials, and the luck of the calls, by pattern and proposer",
        columns=("Scenario", "Proposer", "Architecture", "Trials", "Faults", "Damaged", "Solved", "Luck of the calls"),
        rows=tuple(rows),
        notes=(
            "faults: delivered in a trial; who gives up early meets fewer. Damaged, solved: shares of trials",
            "luck of the calls: the variance of damage over sets of draws under the same faults, mean over instances; "
            "95% intervals are of resampled instances",
        ),
    )


def pictures(_: Run) -> Iterator[Picture]:
    """Yield no figure."""
    yield from ()
