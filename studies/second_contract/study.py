"""Two contracts: which of the author's sentences on the boundary hold where the model acts first and a monitor repairs?

The verdicts on each contract are those of the boundary's study (`studies/boundary`), corrected over both together. Beside them
stands how much more a part carries under the second contract, by instance, and the contracts themselves, cell by cell: the
damage, the kinds of damage, and the solved trials of the same cell under one and the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from bench.common.errors import ResultsError
from bench.read.analysis.factors import ARCHITECTURE, ArmName, VerdictEvidence, factors_between, had_occasion, refusal
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import holm, mean_of
from bench.read.claims.sample_size import pairs_after_correction
from bench.read.render.cells import AdjustedP, Number
from bench.read.render.drawing import Picture
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import MeanContrast, Rises, contrast_of, rises
from bench.record.damage import DAMAGES

from ..boundary.study import ERRORS, LEVEL, LEVELS, BoundaryVerdict, boundary_trials, verdicts

DECIDED = ("holds", "contradicted", "not comparable")
BEFORE, AFTER = "state_machine", "repair_afterwards"
SENTENCES = {
    "damage": "Verifying afterwards does more damage than verifying before the effects",
    "by_fault": "It does more damage for each delivered fault",
    "is_solved": "It solves more of the trials",
    **{f"damage_{kind}": f"It leaves more effects {kind}" for kind in DAMAGES},
}


@dataclass(frozen=True)
class UnderBoth:
    """One sentence in one world under each contract. `more`: how much more its rise is under the second."""

    first: BoundaryVerdict
    second: BoundaryVerdict
    more: MeanContrast

    @property
    def holds(self) -> str:
        under = [name for name, each in (("the first", self.first), ("the second", self.second)) if each.verdict == "holds"]
        return "both" if len(under) == 2 else f"{under[0]} alone" if under else "neither"


def under_both(run: Run) -> list[UnderBoth]:
    """Return the sentences by world. Raise ResultsError if the run does not have both contracts."""
    of_contracts = [verdicts(_under(run, base)) for base in (BEFORE, AFTER)]
    both = [(place, number) for place in (0, 1) for number, each in enumerate(of_contracts[place]) if not each.refused]
    adjusted = holm({place: of_contracts[place[0]][place[1]].rises.p for place in both})
    judged = [
        [replace(each, p=adjusted.get((place, number)), family=len(both)) for number, each in enumerate(of_contracts[place])]
        for place in (0, 1)
    ]
    return [UnderBoth(first, second, _more(first.rises, second.rises)) for first, second in zip(*judged, strict=True)]


def _under(run: Run, base: str) -> Run:
    """Return the run with the trials of one contract alone."""
    of_base = [name for name, entry in run.config.architecture.items() if entry.base == base]
    trials = run.trials[run.trials["architecture"].astype(str).isin(of_base)]
    if trials.empty:
        raise ResultsError(f"needs variants of '{BEFORE}' and of '{AFTER}' in every cell")
    return replace(run, trials=trials)


def _more(first: Rises, second: Rises) -> MeanContrast:
    shared = first.by_instance.keys() & second.by_instance.keys()
    return contrast_of({name: second.by_instance[name] - first.by_instance[name] for name in shared})


@dataclass(frozen=True)
class ContractVerdict:
    """The second contract less the first in one world, at one error rate, over the pairs of cells that could differ.

    needed   the instances that would decide if the truth were as measured; None if that is not known
    """

    scenario: str
    error_rate: float
    outcome: str
    risen: Rises
    refused: str
    needed: int | None
    p: float | None = None
    family: int = 0

    @property
    def verdict(self) -> str:
        contrast = self.risen.contrast
        if self.refused:
            return "not comparable"
        if self.p is None or self.p >= LEVEL or contrast.low is None or contrast.high is None:
            return self.risen.open_verdict(self.family)
        return "holds" if contrast.low > 0 else "contradicted" if contrast.high < 0 else "inconclusive"


def contracts(run: Run) -> list[ContractVerdict]:
    """Return the contracts compared by world, error rate and outcome, where they differ in any instance."""
    trials = _both_contracts(run)
    compared = [
        _compared(run, str(scenario), float(str(rate)), outcome, group)
        for (scenario, rate), group in trials.groupby(["scenario", ERRORS], sort=False, observed=True)
        for outcome in SENTENCES
    ]
    compared = [each for each in compared if any(each.risen.by_instance.values())]  # else nothing came out otherwise
    adjusted = holm({place: each.risen.p for place, each in enumerate(compared) if not each.refused})
    family = len(adjusted)
    return [
        replace(each, p=adjusted.get(place), needed=_needed(each.risen, family), family=family)
        for place, each in enumerate(compared)
    ]


def _both_contracts(run: Run) -> pd.DataFrame:
    trials = boundary_trials(run)
    bases = {name: entry.base for name, entry in run.config.architecture.items()}
    objected = (
        had_occasion(trials, ["strength"]) + trials["waiting_for_people_minutes"].fillna(0) + trials["damage_unauthorised"]
    )
    return trials.assign(
        contract=trials["architecture"].astype(str).map(bases),
        is_solved=(trials["outcome"] == "solved").astype(float),
        by_fault=trials["damage"] / trials["faults_delivered"].where(trials["faults_delivered"] > 0),
        had_occasion=objected.astype(float),
    )


def _compared(run: Run, scenario: str, rate: float, outcome: str, group: pd.DataFrame) -> ContractVerdict:
    """Compare the same cells under both contracts. A pair could differ where something was objected to under either of them:
    a rejection, a denial, a person who was waited for, an effect against the policy."""
    pairs = ["instance", "repetition", "plan", "contract", *LEVELS]
    usable = group.dropna(subset=[outcome])
    risen = rises(usable, outcome, "contract", AFTER, BEFORE, pairs, usable["had_occasion"] > 0)
    arms = group.drop_duplicates(["contract", *LEVELS]).set_index([*LEVELS, "contract"])[list(ArmName._fields)].astype(str)
    factors = {
        factor
        for place in arms.index
        if place[-1] == AFTER and (*place[:-1], BEFORE) in arms.index
        for factor in factors_between(run, ArmName(*arms.loc[place]), ArmName(*arms.loc[(*place[:-1], BEFORE)]))
    }
    evidence = VerdictEvidence(tuple(sorted(factors)), risen.pairs, risen.could_differ, len(risen.by_instance))
    return ContractVerdict(scenario, rate, outcome, risen, refusal(evidence, ARCHITECTURE), None)


def _needed(risen: Rises, family: int) -> int | None:
    values = list(risen.by_instance.values())
    return pairs_after_correction(mean_of(values), family, LEVEL) if len(values) > 1 else None


# Tables

NOTES = (
    "first contract: propose, verify, commit (state_machine); second: the model's calls are made at once, a monitor verifies "
    "afterwards, takes back what it can and asks again (repair_afterwards); the order is all that differs",
    "rise: damaged effects more in a trial at the weaker level of the part than at the stronger, over the pairs that could "
    "differ (`studies/boundary`); more under the second: by instance; 95% intervals are of resampled instances",
    "holds: p < 0.05 by the sign-flip test over instances, after Holm's correction over sentences, worlds and contracts",
    "an effect against the policy, or without the person whom it needs, has happened under the second contract before anybody "
    "can object: it stays counted as unauthorised when it is taken back. That is a property of the contract",
    "SIMULATED: the proposer's errors are declared in the config",
)
BETWEEN = (
    "more: the second contract less the first, cell by cell, over the pairs in which something was objected to under either, "
    "or which did differ; damage for each fault: in the trials that were struck; 95% intervals are of resampled instances",
    "holds, contradicted: the interval lies on one side of 0, and p < 0.05 after Holm's correction over all rows; "
    "what is the same in every instance is left out; (floor): no values of so many instances give such a p",
    "to decide: the instances at which this difference would be found with a power of 80% at the corrected level (0.05 by the "
    "number of rows that are not refused), if the truth were as measured",
    "SIMULATED: the proposer's errors are declared in the config",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[UnderBoth]("What is said", lambda row: row.first.sentence),
        TableColumn[UnderBoth]("Scenario", lambda row: row.first.scenario),
        TableColumn[UnderBoth]("Holds under", lambda row: row.holds),
        TableColumn[UnderBoth]("First contract", lambda row: row.first.verdict),
        TableColumn[UnderBoth]("Rise", lambda row: row.first.rises.contrast.cell()),
        TableColumn[UnderBoth]("p (Holm)", lambda row: AdjustedP(row.first.p)),
        TableColumn[UnderBoth]("Pairs", lambda row: row.first.rises.could_differ),
        TableColumn[UnderBoth]("Second contract", lambda row: row.second.verdict),
        TableColumn[UnderBoth]("Rise there", lambda row: row.second.rises.contrast.cell()),
        TableColumn[UnderBoth]("p (Holm) there", lambda row: AdjustedP(row.second.p)),
        TableColumn[UnderBoth]("Pairs there", lambda row: row.second.rises.could_differ),
        TableColumn[UnderBoth]("More under the second", lambda row: row.more.cell()),
    )
    title = "Which sentences on the boundary hold under two contracts (SIMULATED)"
    yield table_of("study-second-contract", title, columns, under_both(run), NOTES)
    of_contracts = (
        TableColumn[ContractVerdict]("Scenario", lambda row: row.scenario),
        TableColumn[ContractVerdict]("Error rate", lambda row: Number(row.error_rate, 1)),
        TableColumn[ContractVerdict]("What is said", lambda row: SENTENCES[row.outcome]),
        TableColumn[ContractVerdict]("Verdict", lambda row: row.verdict),
        TableColumn[ContractVerdict]("More", lambda row: row.risen.contrast.cell()),
        TableColumn[ContractVerdict]("p (Holm)", lambda row: AdjustedP(row.p)),
        TableColumn[ContractVerdict]("Pairs that could differ", lambda row: row.risen.could_differ),
        TableColumn[ContractVerdict]("Pairs", lambda row: row.risen.pairs),
        TableColumn[ContractVerdict]("Instances", lambda row: len(row.risen.by_instance)),
        TableColumn[ContractVerdict]("To decide", lambda row: "–" if row.verdict in DECIDED else row.needed or "unknown"),
        TableColumn[ContractVerdict]("Refused, because", lambda row: row.refused or "–"),
    )
    title = "Verifying before the effects, or repairing after them (SIMULATED)"
    yield table_of("study-second-contract-between", title, of_contracts, contracts(run), BETWEEN)


def pictures(_: Run) -> Iterator[Picture]:
    """Yield no figure: both tables are short."""
    yield from ()
