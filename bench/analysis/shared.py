"""What runs share. Under that alone their trials may be paired, for there they met the same draws.

The seed, the tokenizer by which tokens are counted, the instances of packs by the digest of what they ask, and fault plans by
their text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.plan_entries import PlanEntry

SharedInstance = tuple[str, str]
"""A scenario, and one of its instances."""
Labelled = Mapping[str, Run]
"""Runs by names that tell them apart."""
Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Shared:
    """What all of some runs have, and in the same version. `left_out`: what not all have, in words."""

    cases: frozenset[SharedInstance]
    plans: frozenset[str]
    left_out: tuple[str, ...]

    def only(self, run: Run) -> Run:
        """The run with only what all have."""
        return run.with_frames(lambda rows: rows.loc[[self._holds(*place) for place in _places(rows)]])

    def _holds(self, case: SharedInstance, plan: str) -> bool:
        return case in self.cases and plan in self.plans


def labelled(runs: Sequence[Run]) -> Labelled:
    """The runs by their names; of two of the same name the second one is `NAME 2`."""
    seen: Counter[str] = Counter()
    by_label: dict[str, Run] = {}
    for run in runs:
        seen[run.name] += 1
        by_label[run.name if seen[run.name] == 1 else f"{run.name} {seen[run.name]}"] = run
    return by_label


def shared_by(runs: Labelled) -> Shared:
    """Raises ResultsError, naming what differs, where no trials can be paired: another seed or tokenizer, nothing in common."""
    _refuse_other_draws(runs)
    cases = {label: asked(run) for label, run in runs.items()}
    plans = {label: plan_texts(run) for label, run in runs.items()}
    shared = Shared(_alike(cases), _alike(plans), (*_packs_left_out(cases), *_plans_left_out(plans)))
    if not shared.cases or not shared.plans:
        raise ResultsError(f"{' and '.join(runs)} share no trial: {'; '.join(shared.left_out)}")
    return shared


def _refuse_other_draws(runs: Labelled) -> None:
    for what, values in (
        ("seed", [run.config.seed for run in runs.values()]),
        ("tokenizer", [run.manifest.tokenizer for run in runs.values()]),
    ):
        if len(set(values)) > 1:
            difference = f"{' and '.join(runs)} share no trial: they differ in the {what}"
            raise ResultsError(f"{difference} ({' | '.join(map(str, values))})")


def asked(run: Run) -> Mapping[SharedInstance, str]:
    """The digest of what each instance asks."""
    cases = dict.fromkeys(case for case, _ in _places(run.trials))
    return {(pack, instance): run.pack(pack).asks(instance) for pack, instance in cases}


def plan_texts(run: Run) -> Mapping[str, object]:
    """The text of each fault plan."""
    return {name: run.config.plan.get(name, PlanEntry()).model_dump(mode="json") for name in run.names("plan")}


def differing_settings(runs: Iterable[Run], aside: Set[str]) -> list[str]:
    """The keys of the config in which runs differ, but for those `aside`."""
    first, *others = (run.config.model_dump() for run in runs)
    keys = sorted({*first, *chain.from_iterable(others)} - aside)
    return [key for key in keys if any(other.get(key) != first.get(key) for other in others)]


def _alike(tables: Mapping[str, Mapping[Label, object]]) -> frozenset[Label]:
    """The names that stand in all tables for the same."""
    first, *others = tables.values()
    return frozenset(
        name for name, definition in first.items() if all(name in other and other[name] == definition for other in others)
    )


def _packs_left_out(cases: Mapping[str, Mapping[SharedInstance, str]]) -> Iterator[str]:
    alike = _alike(cases)
    holders: dict[str, dict[SharedInstance, list[str]]] = {}
    for label, names in cases.items():
        for case in names:
            holders.setdefault(case[0], {}).setdefault(case, []).append(label)
    for pack, runs_of_pack in holders.items():
        missing = [case for case in runs_of_pack if case not in alike]
        if len(missing) < len(runs_of_pack):
            yield from [f"{len(missing)} instances of the pack {pack} (not all have them)"] if missing else []
        else:
            in_all = any(len(labels) == len(cases) for labels in runs_of_pack.values())
            labels = dict.fromkeys(label for labels in runs_of_pack.values() for label in labels)
            yield f"the pack {pack} ({_why(in_all, labels)})"


def _plans_left_out(plans: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    alike = _alike(plans)
    for plan in dict.fromkeys(name for names in plans.values() for name in names):
        labels = dict.fromkeys(label for label, names in plans.items() if plan in names)
        if plan not in alike:
            yield f"the fault plan {plan} ({_why(len(labels) == len(plans), labels)})"


def _why(in_all: bool, labels: Mapping[str, None]) -> str:
    return "its versions differ" if in_all else f"only in {', '.join(labels)}"


def _places(rows: pd.DataFrame) -> list[tuple[SharedInstance, str]]:
    """The case and the fault plan of each row."""
    cases = zip(rows["scenario"].tolist(), instances_of(rows), strict=True)
    return list(zip(cases, rows["plan"].tolist(), strict=True))
