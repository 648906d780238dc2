"""The measurements of a run in one world: the damage and the tokens of each arm, with and without failures. Each pattern can
have an arm without its remedies and an arm with them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bench.common.errors import ResultsError, nearest
from bench.common.paths import REPORTS, folder_of
from bench.read.analysis.frames import load_run
from bench.read.analysis.statistics import Pair, Share, exact_share_by_instance, in_common
from bench.read.claims.break_even import BreakEven, break_even
from bench.record.archive import archive_of
from bench.record.config import FAULT_FREE, StoredConfig
from bench.record.damage import DAMAGES
from bench.record.reading import read_manifest

TABLE = "trials.csv.gz"
"""The file with a row for each trial of a run, beside the run's manifest, where git does not hold the run's records."""
DAMAGE = [f"damage_{kind}" for kind in DAMAGES]
COLUMNS = ["scenario", "architecture", "plan", "instance", "repetition", "outcome", "tokens", "faults_delivered", *DAMAGE]


@dataclass(frozen=True)
class Evidence:
    """The trials of one world in a run, one row each. `simulated` says whether all models of the run are simulated."""

    run: str
    scenario: str
    config: StoredConfig
    trials: pd.DataFrame
    simulated: bool

    @cached_property
    def plans(self) -> tuple[str, ...]:
        """The fault plans of the run."""
        return tuple(plan for plan in self.config.plans if plan != FAULT_FREE)

    @cached_property
    def patterns(self) -> dict[str, str]:
        """Pattern -> its arm with remedies, for each pattern that the run has both without and with remedies."""
        variants = {name: entry.base for name, entry in self.config.architecture.items() if entry.remedies and entry.base}
        return {base: name for name, base in variants.items() if {base, name} <= set(self.config.architectures)}

    def arms(self, keys: bool) -> dict[str, str]:
        """Return the arms that can be built, each with its pattern. If tools take idempotency `keys`, these are the arms of
        `patterns`, without and with remedies; otherwise the arms without remedies.

        Raises ResultsError if there is no arm.
        """
        variants = self.config.architecture
        without_remedies = {name: name for name in self.config.architectures if name not in variants}
        both = {arm: pattern for pattern, remedied in self.patterns.items() for arm in (pattern, remedied)}
        if not (arms := both if keys else without_remedies):
            forms = "both bare and with remedies" if keys else "without remedies"
            raise ResultsError(f"{self.run}: advice on this work needs patterns {forms}")
        return arms

    def trials_of(self, arm: str, plans: Sequence[str]) -> pd.DataFrame:
        """Return the trials of an arm under these fault plans."""
        parts = [self._trials_by_cell[arm, plan] for plan in plans if (arm, plan) in self._trials_by_cell]
        return parts[0] if len(parts) == 1 else pd.concat([self.trials[:0], *parts])

    @cached_property
    def _trials_by_cell(self) -> dict[Any, pd.DataFrame]:
        """The trials of each arm and plan."""
        return dict(iter(self.trials.groupby(["architecture", "plan"])))

    @cached_property
    def _damage_by_cell(self) -> tuple[Any, Any, Any]:
        """The mean damage of a trial, the number of trials, and the number of delivered faults, by arm, plan and instance."""
        damage = self.trials.assign(damage=self.trials[DAMAGE].sum(axis=1))
        cells = damage.groupby(["architecture", "plan", "instance"])
        return cells["damage"].mean(), cells["damage"].size(), cells["faults_delivered"].sum()

    def damaged_share(self, arm: str, plans: Sequence[str]) -> Share:
        """Return the share of an arm's trials under these fault plans that have damage of any kind."""
        trials = self.trials_of(arm, plans)
        return exact_share_by_instance(trials["instance"].tolist(), (trials[DAMAGE].sum(axis=1) > 0).tolist())

    def damaged_effects(self, arm: str, plans: Sequence[str]) -> int:
        """Return how many effects were damaged in an arm's trials under these fault plans, over all kinds of damage."""
        return int(self.trials_of(arm, plans)[DAMAGE].to_numpy().sum())

    def expected_harm(self, arm: str, failures: Mapping[str, float]) -> dict[str, float]:
        """Return for each instance the expected number of damaged effects in a run with these failures. `failures` has the
        number of each failure in a run.

        The expected number is the damage without a failure, plus the damage that each delivered failure adds. For an
        instance in which a failure was never injected, the mean of the other instances is added.
        """
        mean_damage, trial_counts, fault_counts = self._damage_by_cell
        without_fault = mean_damage.loc[arm, FAULT_FREE]
        total = without_fault.copy()
        for plan, count in failures.items():
            added = (mean_damage.loc[arm, plan] - without_fault).clip(lower=0) * trial_counts.loc[arm, plan]
            by_fault = added / fault_counts.loc[arm, plan].where(lambda number: number > 0)
            total += count * by_fault.fillna(by_fault.mean() if by_fault.notna().any() else 0.0)
        return {str(instance): float(value) for instance, value in total.dropna().items()}

    def harm_by_fault(self, arm: str, plan: str) -> float:
        """Return the number of damaged effects per delivered fault of a plan."""
        return self.damaged_effects(arm, [plan]) / max(1, int(self.trials_of(arm, [plan])["faults_delivered"].sum()))

    def solved_share(self, arm: str, plan: str) -> float:
        """Return the share of an arm's trials under a plan that are solved."""
        return float((self.trials_of(arm, [plan])["outcome"] == "solved").mean())

    def tokens(self, arm: str, plan: str) -> float:
        """Return the mean number of tokens of an arm's trials under a plan."""
        return float(self.trials_of(arm, [plan])["tokens"].mean())

    def pass_tokens(self, arm: str) -> dict[Pair, float]:
        """Return the tokens of the arm's trials without a fault, by instance and repetition."""
        trials = self.trials_of(arm, [FAULT_FREE])
        return dict(zip(_pairs(trials), trials["tokens"].astype(float), strict=True))

    def round_tokens(self, arm: str, plan: str) -> dict[Pair, float]:
        """Return the tokens that each failure added to the control's tokens, by instance and repetition, for trials in which a
        failure was injected."""
        trials, passes = self.trials_of(arm, [plan]), self.pass_tokens(arm)
        faulted = trials[trials["faults_delivered"] > 0]
        return {
            pair: (tokens - passes[pair]) / faults
            for pair, tokens, faults in zip(_pairs(faulted), faulted["tokens"], faulted["faults_delivered"], strict=True)
        }

    def price(self, arm: str, failures: dict[str, float]) -> float:
        """Return the tokens of a run with these failures: one pass, and one round for each failure."""
        passes = self.pass_tokens(arm)
        total = sum(passes.values()) / len(passes)
        for plan, count in failures.items():
            rounds = self.round_tokens(arm, plan)
            total += count * sum(rounds.values()) / len(rounds) if rounds else 0.0
        return total

    def break_even(self, arm: str, other_arm: str, plan: str) -> BreakEven | None:
        """Return the number of these failures above which a run of `arm` takes fewer tokens than a run of `other_arm`."""
        passes = in_common(self.pass_tokens(arm), self.pass_tokens(other_arm))
        return break_even(passes, in_common(self.round_tokens(arm, plan), self.round_tokens(other_arm, plan)))


def _pairs(trials: pd.DataFrame) -> list[Pair]:
    """Return the instance and repetition of each trial."""
    return [
        (str(instance), int(repetition)) for instance, repetition in zip(trials["instance"], trials["repetition"], strict=True)
    ]


COLUMN_TYPES = {"repetition": int, "tokens": float, "faults_delivered": int, **dict.fromkeys(DAMAGE, int)}


def _read_table(path: Path) -> pd.DataFrame:
    """Read a table of trials. Raises ResultsError if the file is no such table."""
    try:
        return pd.read_csv(path, dtype=COLUMN_TYPES)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ResultsError(f"{path}: is not a table of trials: {str(error).splitlines()[0]}") from error


def read_evidence(run: str, scenario: str) -> Evidence:
    """Read what a run measured in one world.

    Args:
        run: The run's name under results/, or under reports/ if its table of trials is there, or its folder.
        scenario: The world's name in the run.

    Returns:
        Its trials that did not end in an error.

    Raises:
        ResultsError: There is no such run, or it has no such world, no damage, or no control.
    """
    if table_folder := next((path for path in (Path(run), REPORTS / run) if (path / TABLE).is_file()), None):
        manifest = read_manifest(table_folder)
        trials, config, entries = _read_table(table_folder / TABLE), manifest.config, manifest.models
    elif (folder := folder_of(run)).is_dir() or archive_of(folder):
        trials, config, entries = (loaded := load_run(folder)).trials, loaded.config, loaded.manifest.models
    else:
        raise ResultsError(f"{run}: there is no such run in results/, and no {TABLE} of it in reports/; run its config first")
    if missing := [column for column in COLUMNS if column not in trials]:
        raise ResultsError(f"{run}: has no column {missing[0]}: advice needs a run in a world")
    if scenario not in config.scenarios:
        raise ResultsError(f"{run}: has no scenario '{scenario}'; {nearest(scenario, config.scenarios)}")
    usable = trials[(trials["scenario"] == scenario) & (trials["outcome"] != "error")][COLUMNS]
    simulated = all(entry.kind == "simulated" for entry in entries.values())
    evidence = Evidence(Path(run).name, scenario, config, usable, simulated)
    if FAULT_FREE not in config.plans:
        raise ResultsError(f"{run}: advice needs the plan '{FAULT_FREE}'")
    return evidence
