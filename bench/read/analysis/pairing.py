"""Find the trials of several runs that are pairs: trials of the same instance, fault plan and repetition, with the same random
draws.

The runs must have the same seed and tokenizer. An instance is the same if the digest of what it asks is equal, and a fault plan
if its text is equal. `bench compare` pairs two runs; `bench.read.analysis.merge` makes one run of several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, NamedTuple, TypeVar

import pandas as pd

from bench.common.errors import ResultsError, nearest
from bench.read.analysis.arms import instances_of
from bench.read.analysis.frames import Run
from bench.record.origin import digests_text
from bench.record.plan_entries import PlanEntry

SharedInstance = tuple[str, str]
"""A scenario and one of its instances."""
Labelled = Mapping[str, Run]
"""Runs by unique names."""
Counterpart = Literal["model", "architecture"]
"""A column by which two runs can be compared if each run has a single name in it and the names differ."""
COUNTERPARTS: tuple[Counterpart, ...] = ("model", "architecture")
OTHER_VERSION = "its versions differ"
PACK_FIELDS = ("variant", "subtasks", "stages", "document_tokens")
"""The fields of a pack in a manifest that are not digests."""
PAIRED_KEYS = frozenset({"seed", "scenarios", "models", "plans", "plan", "architectures", "repetitions", "instances", "name"})
"""The config keys that pairing handles. If another key differs, a note says so."""
Name = TypeVar("Name", bound=Hashable)


class TrialPlace(NamedTuple):
    """The names that identify a trial in its run. Rows are sorted by these fields, in this order."""

    scenario: str
    model: str
    plan: str
    instance: str
    repetition: int
    architecture: str

    @property
    def arm(self) -> tuple[str, str, str, str]:
        """The scenario, model, fault plan and architecture."""
        return self.scenario, self.model, self.plan, self.architecture


@dataclass(frozen=True)
class Shared:
    """The instances and fault plans that all runs have in the same version. `left_out` names, in words, those that not all
    have."""

    cases: frozenset[SharedInstance]
    plans: frozenset[str]
    left_out: tuple[str, ...]

    def part_of(self, run: Run) -> Run:
        """Return the run with only the trials of shared instances and plans."""

        def are_shared(rows: pd.DataFrame) -> list[bool]:
            places = places_of(rows)
            return [(place.scenario, place.instance) in self.cases and place.plan in self.plans for place in places]

        return run.map_frames(lambda rows: rows.loc[are_shared(rows)])


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Two runs with only the trials that are in a pair.

    counterparts   column -> (the first run's only name, the second run's only name), if these differ and are compared
    left_out       what only one of the runs has, in words
    notes          in what else the runs differ, in words
    arms           the number of arms of the first run; `absent` names those of which the second run has no trial
    trials         the number of trials of the first run
    """

    first: Run
    second: Run
    counterparts: Mapping[str, tuple[str, str]]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    arms: int
    absent: tuple[str, ...]
    trials: int

    def counterpart(self, column: str, name: str) -> str:
        """Return the name in the second run that is compared with this name of the first run."""
        return self.counterparts[column][1] if column in self.counterparts else name


def places_of(rows: pd.DataFrame, across: Collection[str] = ()) -> list[TrialPlace]:
    """Return for each row the names that identify its trial (TrialPlace). The columns in `across` are left empty, so that
    trials of different models or architectures have the same place."""
    columns = rows.assign(instance=instances_of(rows), **dict.fromkeys(across, ""))
    return [TrialPlace(*place) for place in zip(*(columns[name].tolist() for name in TrialPlace._fields), strict=True)]


def label_runs(runs: Sequence[Run]) -> Labelled:
    """Return the runs by their names. A second run with the same name is `NAME 2`."""
    uses: Counter[str] = Counter()
    by_label: dict[str, Run] = {}
    for run in runs:
        uses[run.name] += 1
        by_label[run.name if uses[run.name] == 1 else f"{run.name} {uses[run.name]}"] = run
    return by_label


def shared_by(runs: Labelled) -> Shared:
    """Return the instances and plans that all runs share. Raises ResultsError, naming what differs, if no trials can be
    paired."""
    nothing = f"{' and '.join(runs)} share no trial:"
    for name, values in (
        ("seed", [run.config.seed for run in runs.values()]),
        ("tokenizer", [run.manifest.tokenizer for run in runs.values()]),
    ):
        if len(set(values)) > 1:
            raise ResultsError(f"{nothing} they differ in the {name} ({' | '.join(map(str, values))})")
    cases = {label: digests_of_tasks(run) for label, run in runs.items()}
    plans = {label: plan_texts(run) for label, run in runs.items()}
    shared = Shared(_same_in_all(cases), _same_in_all(plans), (*_packs_left_out(cases), *_plans_left_out(plans)))
    if not shared.cases or not shared.plans:
        raise ResultsError(
            f"{nothing} {'; '.join(shared.left_out)}{_remedy(runs) if OTHER_VERSION in str(shared.left_out) else ''}"
        )
    return shared


def _remedy(runs: Labelled) -> str:
    """Return in words in which fields packs of different versions differ, and how to make the runs comparable."""
    first, *others = runs.values()
    differing = {
        f"{pack}: {name}"
        for run in others
        for pack in run.manifest.scenarios.keys() & first.manifest.scenarios.keys()
        for name in PACK_FIELDS
        if getattr(run.manifest.scenarios[pack], name) != getattr(first.manifest.scenarios[pack], name)
    }
    fields = f"; of the packs differ {', '.join(sorted(differing))}" if differing else ""
    codes = {run.manifest.code.digest for run in runs.values()}
    other_code = ", and the code of the benchmark is another too" if len(codes) > 1 else ""
    return (
        f"{fields}. A version changes with a document, a prompt, a schema, the code of a check{other_code}: record the older "
        "run again with the installed version, by bench run CONFIG --name NAME"
    )


def digests_of_tasks(run: Run) -> Mapping[SharedInstance, str]:
    """Return (scenario, instance) -> the digest of what the instance asks."""
    cases = dict.fromkeys(zip(run.trials["scenario"].tolist(), instances_of(run.trials), strict=True))
    return {(pack, instance): run.pack(pack).asks(instance) for pack, instance in cases}


def plan_texts(run: Run) -> Mapping[str, object]:
    """Return fault plan -> its faults as the config has them."""
    return {name: run.config.plan.get(name, PlanEntry()).model_dump(mode="json") for name in run.names("plan")}


def differing_settings(runs: Iterable[Run], ignored: Set[str]) -> list[str]:
    """Return the config keys in which runs differ, without the `ignored` keys."""
    first, *others = (run.config.model_dump() for run in runs)
    keys = sorted({*first, *chain.from_iterable(others)} - ignored)
    return [key for key in keys if any(other.get(key) != first.get(key) for other in others)]


def part_of_run(run: Run, column: Counterpart, name: str) -> Run:
    """Return the run with the trials of one model or architecture. Raises ResultsError if it has none."""
    names = run.names(column)
    if name not in names:
        raise ResultsError(f"{run.name} holds no trial of the {column} '{name}'; {nearest(name, names)}")
    part = run.map_frames(lambda rows: rows.loc[rows[column] == name])
    return replace(part, manifest=run.manifest.model_copy(update={"name": f"{run.name}, {name}"}))


def paired_runs(first: Run, second: Run, whole: bool) -> PairedRuns:
    """Return two runs with only their paired trials. Raises ResultsError, naming what differs, if no trials can be paired, or
    if `whole` is true and some trials cannot."""
    labels = label_runs([first, second])
    both = " and ".join(labels)
    shared = shared_by(labels)
    runs = (shared.part_of(first), shared.part_of(second))
    names = {column: [run.names(column) for run in runs] for column in COUNTERPARTS}
    across: dict[str, tuple[str, str]] = {
        column: (a[0], b[0]) for column, (a, b) in names.items() if a != b and len(a) == len(b) == 1
    }
    places = [places_of(run.trials, across) for run in runs]
    left_out = list(shared.left_out)
    for column in COUNTERPARTS:
        if column not in across:
            for label, ours, theirs in zip(labels, names[column], reversed(names[column]), strict=True):
                left_out += [f"the {column} {name} (only in {label})" for name in ours if name not in theirs]
    if _has_unequal_arms(*map(set, places)):
        left_out.append("repetitions ({} | {})".format(*map(_trials_per_arm, places)))
    if left_out and whole:
        raise ResultsError(f"{both} differ: {'; '.join(left_out)}; leave --whole out to compare what they share")
    paired = set(places[0]) & set(places[1])
    if not paired:
        reason = f"{both} share no trial: {'; '.join(left_out)}"
        raise ResultsError(f"{reason}; --models A B or --architectures A B compares two that have different names")
    notes = (
        *(f"two {column}s are compared: A {a}, B {b}" for column, (a, b) in across.items()),
        *(f"{name}: {run.manifest.mixture}" for name, run in (("A", first), ("B", second)) if run.manifest.mixture),
        *(f"A and B also differ in {difference}" for difference in _differences(first, second, across)),
    )
    paired_first, paired_second = (
        replace(run, trials=run.trials.loc[[place in paired for place in places_of_run]])
        for run, places_of_run in zip(runs, places, strict=True)
    )
    arms = list(dict.fromkeys(place.arm for place in places_of(first.trials, across)))
    paired_arms = {place.arm for place in paired}
    absent = tuple(" ".join(filter(None, arm)) for arm in arms if arm not in paired_arms)
    return PairedRuns(paired_first, paired_second, across, tuple(left_out), notes, len(arms), absent, len(first.trials))


def _has_unequal_arms(first: set[TrialPlace], second: set[TrialPlace]) -> bool:
    """Whether an arm of both runs lacks an instance or a repetition in one of them."""
    arms = {place.arm for place in first} & {place.arm for place in second}
    return any(place.arm in arms for place in first ^ second)


def _trials_per_arm(places: Sequence[TrialPlace]) -> str:
    """Return how many trials an arm has, as a number or a range."""
    sizes = Counter(place.arm for place in places).values()
    return str(max(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _differences(first: Run, second: Run, across: Mapping[str, object]) -> Iterator[str]:
    """Yield the settings in which two runs differ, in words: of the config, of the code, and of models."""
    yield from (f"the config's {key}" for key in differing_settings((first, second), PAIRED_KEYS | across.keys()))
    if digests_text(first.manifest.codes) != digests_text(second.manifest.codes):
        yield "the code"
    other_models = second.manifest.models
    for name, parameters in first.manifest.models.items():
        if name in other_models and other_models[name].shown != parameters.shown:
            yield f"the settings of model {name}"


def _same_in_all(tables: Mapping[str, Mapping[Name, object]]) -> frozenset[Name]:
    """Return the names that have the same definition in all these tables."""
    first, *others = tables.values()
    return frozenset(
        name for name, definition in first.items() if all(name in other and other[name] == definition for other in others)
    )


def _packs_left_out(cases: Mapping[str, Mapping[SharedInstance, str]]) -> Iterator[str]:
    """Yield in words the packs, or the number of instances of a pack, that not all runs share."""
    shared, instances_of_pack = _same_in_all(cases), dict[str, list[SharedInstance]]()
    for pack, instance in dict.fromkeys(chain.from_iterable(cases.values())):
        instances_of_pack.setdefault(pack, []).append((pack, instance))
    for pack, instances in instances_of_pack.items():
        missing = [instance for instance in instances if instance not in shared]
        if len(missing) == len(instances):
            yield f"the pack {pack} ({_why_left_out(cases, missing)})"
        elif missing:
            yield f"{len(missing)} instances of the pack {pack} (not all have them)"


def _plans_left_out(plans: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """Yield in words the fault plans that not all runs share."""
    shared = _same_in_all(plans)
    for plan in dict.fromkeys(chain.from_iterable(plans.values())):
        if plan not in shared:
            yield f"the fault plan {plan} ({_why_left_out(plans, [plan])})"


def _why_left_out(tables: Mapping[str, Mapping[Name, object]], names: Sequence[Name]) -> str:
    """Return in words why runs do not share these names, which are a pack's instances or a plan: all runs have some of the
    names, in different versions, or only some runs have any of them."""
    if set(names).intersection(*tables.values()):
        return OTHER_VERSION
    labels = [label for label, table in tables.items() if not table.keys().isdisjoint(names)]
    return f"only in {', '.join(labels)}"
