"""Find the trials of several runs that are pairs: trials at the same place, if the runs draw and ask the same there.

Runs share a place if they have the same seed, the same tokenizer, the same instance by the digest of what it asks, and the same
fault plan by its text. `bench compare` pairs two runs; `bench.read.analysis.merge` makes one run of several.
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
"""Columns in which two runs can have one name each and still be compared, if the names differ."""
COUNTERPARTS: tuple[Counterpart, ...] = ("model", "architecture")
VERSIONS = "its versions differ"
TOLD_OF_PACKS = ("variant", "subtasks", "stages", "document_tokens")
"""What a manifest says of a pack beside its digests."""
COMPARED_APART = frozenset(
    {"seed", "scenarios", "models", "plans", "plan", "architectures", "repetitions", "instances", "name"}
)
"""Settings that are compared on their own. All others can be what is compared."""
Name = TypeVar("Name", bound=Hashable)


class TrialPlace(NamedTuple):
    """A trial's place in its run. Rows are sorted by these fields, in this order."""

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
    """The properties that all runs have in the same version. `left_out` says in words what some runs lack."""

    cases: frozenset[SharedInstance]
    plans: frozenset[str]
    left_out: tuple[str, ...]

    def only(self, run: Run) -> Run:
        """Return the run with only the parts that all runs have."""

        def are_shared(rows: pd.DataFrame) -> list[bool]:
            places = places_of(rows)
            return [(place.scenario, place.instance) in self.cases and place.plan in self.plans for place in places]

        return run.map_frames(lambda rows: rows.loc[are_shared(rows)])


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Two runs with only the trials that are in a pair.

    counterparts   column -> (the first run's only name, the second's), if these differ and are compared
    left_out       what only one of them has
    notes          what else differs
    arms           how many arms the first run has; `absent` names those of which the second run has no trial
    trials         how many trials the first run has
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
        """Return the counterpart in the second run of a name in the first run."""
        return self.counterparts[column][1] if column in self.counterparts else name


def places_of(rows: pd.DataFrame, across: Collection[str] = ()) -> list[TrialPlace]:
    """Return the place of each row's trial. Columns that runs are compared `across` are left empty."""
    columns = rows.assign(instance=instances_of(rows), **dict.fromkeys(across, ""))
    return [TrialPlace(*place) for place in zip(*(columns[name].tolist() for name in TrialPlace._fields), strict=True)]


def label_runs(runs: Sequence[Run]) -> Labelled:
    """Return the runs by name. If two have the same name, the second is `NAME 2`."""
    seen: Counter[str] = Counter()
    by_label: dict[str, Run] = {}
    for run in runs:
        seen[run.name] += 1
        by_label[run.name if seen[run.name] == 1 else f"{run.name} {seen[run.name]}"] = run
    return by_label


def shared_by(runs: Labelled) -> Shared:
    """Return what runs share. Raises ResultsError, naming what differs, if no trials can be paired."""
    nothing = f"{' and '.join(runs)} share no trial:"
    for what, values in (
        ("seed", [run.config.seed for run in runs.values()]),
        ("tokenizer", [run.manifest.tokenizer for run in runs.values()]),
    ):
        if len(set(values)) > 1:
            raise ResultsError(f"{nothing} they differ in the {what} ({' | '.join(map(str, values))})")
    cases = {label: digests_of_tasks(run) for label, run in runs.items()}
    plans = {label: plan_texts(run) for label, run in runs.items()}
    shared = Shared(_alike(cases), _alike(plans), (*_packs_left_out(cases), *_plans_left_out(plans)))
    if not shared.cases or not shared.plans:
        raise ResultsError(f"{nothing} {'; '.join(shared.left_out)}{_remedy(runs) if VERSIONS in str(shared.left_out) else ''}")
    return shared


def _remedy(runs: Labelled) -> str:
    """Return what to do about packs or plans that were recorded in different versions, and what is known to differ in them."""
    first, *others = runs.values()
    differing = {
        f"{pack}: {name}"
        for run in others
        for pack in run.manifest.scenarios.keys() & first.manifest.scenarios.keys()
        for name in TOLD_OF_PACKS
        if getattr(run.manifest.scenarios[pack], name) != getattr(first.manifest.scenarios[pack], name)
    }
    known = f"; of the packs differ {', '.join(sorted(differing))}" if differing else ""
    code = {run.manifest.code.digest for run in runs.values()}
    made_by = ", and the code of the benchmark is another too" if len(code) > 1 else ""
    return (
        f"{known}. A version changes with a document, a prompt, a schema, the code of a check{made_by}: record the older run "
        "again with the installed version, by bench run CONFIG --name NAME"
    )


def digests_of_tasks(run: Run) -> Mapping[SharedInstance, str]:
    """Return instance -> the digest of what the instance asks."""
    cases = dict.fromkeys(zip(run.trials["scenario"].tolist(), instances_of(run.trials), strict=True))
    return {(pack, instance): run.pack(pack).asks(instance) for pack, instance in cases}


def plan_texts(run: Run) -> Mapping[str, object]:
    """Return fault plan -> its text."""
    return {name: run.config.plan.get(name, PlanEntry()).model_dump(mode="json") for name in run.names("plan")}


def differing_settings(runs: Iterable[Run], aside: Set[str]) -> list[str]:
    """Return the config keys in which runs differ, except those in `aside`."""
    first, *others = (run.config.model_dump() for run in runs)
    keys = sorted({*first, *chain.from_iterable(others)} - aside)
    return [key for key in keys if any(other.get(key) != first.get(key) for other in others)]


def part_of_run(run: Run, column: Counterpart, name: str) -> Run:
    """Return the run with the trials of one model or architecture. Raises ResultsError if it has none."""
    if name not in (known := run.names(column)):
        raise ResultsError(f"{run.name} holds no trial of the {column} '{name}'; {nearest(name, known)}")
    kept = run.map_frames(lambda rows: rows.loc[rows[column] == name])
    return replace(kept, manifest=run.manifest.model_copy(update={"name": f"{run.name}, {name}"}))


def paired_runs(first: Run, second: Run, whole: bool) -> PairedRuns:
    """Pair the trials of two runs. Raises ResultsError, naming what differs, if none can be paired, or if `whole` is true and
    some cannot."""
    labels = label_runs([first, second])
    both = " and ".join(labels)
    shared = shared_by(labels)
    runs = (shared.only(first), shared.only(second))
    names = {column: [run.names(column) for run in runs] for column in COUNTERPARTS}
    across: dict[str, tuple[str, str]] = {
        column: (a[0], b[0]) for column, (a, b) in names.items() if a != b and len(a) == len(b) == 1
    }
    places = [places_of(run.trials, across) for run in runs]
    left_out = (
        *shared.left_out,
        *(
            f"the {column} {name} (only in {label})"
            for column in COUNTERPARTS
            if column not in across
            for label, here, there in zip(labels, names[column], reversed(names[column]), strict=True)
            for name in here
            if name not in there
        ),
        *(["repetitions ({} | {})".format(*map(_repetitions, places))] if _unlike_arms(*map(set, places)) else []),
    )
    if left_out and whole:
        raise ResultsError(f"{both} differ: {'; '.join(left_out)}; leave --whole out to compare what they share")
    kept = set(places[0]) & set(places[1])
    if not kept:
        reason = f"{both} share no trial: {'; '.join(left_out)}"
        raise ResultsError(f"{reason}; --models A B or --architectures A B compares two that have different names")
    notes = (
        *(f"two {column}s are compared: A {a}, B {b}" for column, (a, b) in across.items()),
        *(f"{name}: {run.manifest.mixture}" for name, run in (("A", first), ("B", second)) if run.manifest.mixture),
        *(f"A and B also differ in {what}" for what in _differing(first, second, across)),
    )
    of_first, of_second = (
        replace(run, trials=run.trials.loc[[place in kept for place in places_of_run]])
        for run, places_of_run in zip(runs, places, strict=True)
    )
    arms = list(dict.fromkeys(place.arm for place in places_of(first.trials, across)))
    there = {place.arm for place in kept}
    absent = tuple(" ".join(filter(None, arm)) for arm in arms if arm not in there)
    return PairedRuns(of_first, of_second, across, left_out, notes, len(arms), absent, len(first.trials))


def _unlike_arms(first: set[TrialPlace], second: set[TrialPlace]) -> bool:
    """Return whether an arm of both runs lacks, in one of them, an instance or a repetition."""
    arms = {place.arm for place in first} & {place.arm for place in second}
    return any(place.arm in arms for place in first ^ second)


def _repetitions(places: Sequence[TrialPlace]) -> str:
    """Return how many trials an arm has, in words."""
    sizes = Counter(place.arm for place in places).values()
    return str(max(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _differing(first: Run, second: Run, across: Mapping[str, object]) -> Iterator[str]:
    yield from (f"the config's {key}" for key in differing_settings((first, second), COMPARED_APART | across.keys()))
    if digests_text(first.manifest.codes) != digests_text(second.manifest.codes):
        yield "the code"
    there = second.manifest.models
    for name, parameters in first.manifest.models.items():
        if name in there and there[name].shown != parameters.shown:
            yield f"the settings of model {name}"


def _alike(tables: Mapping[str, Mapping[Name, object]]) -> frozenset[Name]:
    """Return the names that mean the same in all these tables."""
    first, *others = tables.values()
    return frozenset(
        name for name, definition in first.items() if all(name in other and other[name] == definition for other in others)
    )


def _packs_left_out(cases: Mapping[str, Mapping[SharedInstance, str]]) -> Iterator[str]:
    alike, every = _alike(cases), dict.fromkeys(chain.from_iterable(cases.values()))
    for pack in dict.fromkeys(pack for pack, _ in every):
        of_pack = [case for case in every if case[0] == pack]
        missing = [case for case in of_pack if case not in alike]
        if len(missing) == len(of_pack):
            yield f"the pack {pack} ({_why(cases, missing)})"
        elif missing:
            yield f"{len(missing)} instances of the pack {pack} (not all have them)"


def _plans_left_out(plans: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    alike = _alike(plans)
    for plan in dict.fromkeys(chain.from_iterable(plans.values())):
        if plan not in alike:
            yield f"the fault plan {plan} ({_why(plans, [plan])})"


def _why(tables: Mapping[str, Mapping[Name, object]], names: Sequence[Name]) -> str:
    if any(all(name in table for table in tables.values()) for name in names):
        return VERSIONS
    return f"only in {', '.join(label for label, table in tables.items() if any(name in table for name in names))}"
