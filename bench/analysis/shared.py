"""What runs share. Under that alone their trials may be paired, for there they met the same draws.

The seed, the tokenizer by which tokens are counted, the instances of packs by the digest of what they ask, and fault plans by
their text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.config import FAULT_FREE

Case = tuple[str, str]
"""A scenario, and one of its instances."""
Labelled = Mapping[str, Run]
"""Runs by names that tell them apart."""
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Shared:
    """What all of some runs have, and in the same version. `left_out`: what not all have, in words."""

    cases: frozenset[Case]
    plans: frozenset[str]
    left_out: tuple[str, ...]

    def only(self, run: Run) -> Run:
        """The run with only what all have."""
        return run.with_frames(lambda rows: rows.loc[[self._holds(*place) for place in _places(rows)]])

    def _holds(self, case: Case, plan: str) -> bool:
        return case in self.cases and plan in self.plans


def labelled(runs: Sequence[Run]) -> Labelled:
    """The runs by their names; of two of the same name the second one is `NAME 2`."""
    seen: Counter[str] = Counter()
    found: dict[str, Run] = {}
    for run in runs:
        seen[run.name] += 1
        found[run.name if seen[run.name] == 1 else f"{run.name} {seen[run.name]}"] = run
    return found


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
        ("seed", [run.config.get("seed") for run in runs.values()]),
        ("tokenizer", [run.manifest.get("tokenizer") for run in runs.values()]),
    ):
        if len(set(values)) > 1:
            said = f"{' and '.join(runs)} share no trial: they differ in the {what}"
            raise ResultsError(f"{said} ({' | '.join(map(str, values))})")


def asked(run: Run) -> Mapping[Case, str]:
    """The digest of what each instance asks. An earlier manifest has one of all instances together."""
    packs = run.manifest.get("scenarios", {})
    cases = dict.fromkeys(case for case, _ in _places(run.trials))
    return {(pack, instance): _digest(packs.get(pack, {}), instance) for pack, instance in cases}


def _digest(pack: Mapping[str, Any], instance: str) -> str:
    return str(pack.get("asked_by_instance", {}).get(instance, pack.get("asked")))


def plan_texts(run: Run) -> Mapping[str, object]:
    """The text of each fault plan."""
    return {name: _text(run, name) for name in run.names("fault")}


def _text(run: Run, plan: str) -> object:
    """The control needs no table."""
    return run.config.get("plan", {}).get(plan) or ({"faults": []} if plan == FAULT_FREE else None)


def _alike(tables: Mapping[str, Mapping[Name, object]]) -> frozenset[Name]:
    """The names that stand in all tables for the same."""
    first, *others = tables.values()
    return frozenset(name for name, own in first.items() if all(name in other and other[name] == own for other in others))


def _packs_left_out(cases: Mapping[str, Mapping[Case, str]]) -> Iterator[str]:
    alike = _alike(cases)
    holders: dict[str, dict[Case, list[str]]] = {}
    for label, own in cases.items():
        for case in own:
            holders.setdefault(case[0], {}).setdefault(case, []).append(label)
    for pack, found in holders.items():
        missing = [case for case in found if case not in alike]
        if len(missing) < len(found):
            yield from [f"{len(missing)} instances of the pack {pack} (not all have them)"] if missing else []
        else:
            in_all = any(len(labels) == len(cases) for labels in found.values())
            labels = dict.fromkeys(label for labels in found.values() for label in labels)
            yield f"the pack {pack} ({_why(in_all, labels)})"


def _plans_left_out(plans: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    alike = _alike(plans)
    for plan in dict.fromkeys(name for own in plans.values() for name in own):
        labels = dict.fromkeys(label for label, own in plans.items() if plan in own)
        if plan not in alike:
            yield f"the fault plan {plan} ({_why(len(labels) == len(plans), labels)})"


def _why(in_all: bool, labels: Mapping[str, None]) -> str:
    return "its versions differ" if in_all else f"only in {', '.join(labels)}"


def _places(rows: pd.DataFrame) -> list[tuple[Case, str]]:
    """The case and the fault plan of each row."""
    cases = zip(rows["scenario"].tolist(), instances_of(rows), strict=True)
    return list(zip(cases, rows["fault"].tolist(), strict=True))
