"""What two runs have in common, so that their trials may be paired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.analysis.frames import Run
from bench.analysis.merge import name_of
from bench.errors import ResultsError

KEY = ["scenario", "model", "fault", "architecture", "repetition"]
COMPARED_APART = ("seed", "scenarios", "models", "plans", "plan", "architectures", "repetitions", "name")
"""Settings that are looked at one by one; all others may be what is compared."""


@dataclass(frozen=True, eq=False)
class Shared:
    """Both runs, with only the trials whose twin is in the other. notes: what differs all the same."""

    first: Run
    second: Run
    notes: tuple[str, ...]


def shared_part(first: Run, second: Run, narrow: bool) -> Shared:
    """Raises ResultsError, naming what differs: always where no trial can be a twin (another seed or ruler, nothing in common),
    and else unless `narrow` asks for what they share."""
    _refuse_other_weather(first, second)
    differing = [*_differing_names(first, second), *_differing_versions(first, second)]
    if differing and not narrow:
        raise ResultsError(f"{_both(first, second)} differ in {'; '.join(differing)}: --shared compares what they share")
    kept = _common(first, second)
    if not kept:
        raise ResultsError(f"{_both(first, second)} share no trial: they differ in {'; '.join(differing)}")
    left_out = (f"compared on what they share; left out: {one}" for one in differing)
    settings = (f"part of what is compared: {one}" for one in _differing_settings(first, second))
    return Shared(_only(first, kept), _only(second, kept), (*left_out, *settings))


def _both(first: Run, second: Run) -> str:
    return f"{name_of(first)} and {name_of(second)}"


def _refuse_other_weather(first: Run, second: Run) -> None:
    rulers = first.manifest.get("ruler"), second.manifest.get("ruler")
    seeds = _config(first).get("seed"), _config(second).get("seed")
    for what, (one, two) in (("the ruler for tokens", rulers), ("the seed", seeds)):
        if one != two:
            raise ResultsError(
                f"{_both(first, second)} differ in {what} ({one}, {two}): no trial of one is a twin of the other's"
            )


def _differing_names(first: Run, second: Run) -> Iterator[str]:
    """What has trials in only one of them."""
    kinds = {"scenario": "packs", "model": "models", "fault": "fault plans", "architecture": "architectures"}
    for column, kind in kinds.items():
        one, two = first.names(column), second.names(column)
        if set(one) != set(two):
            yield f"{kind} ({', '.join(one)} | {', '.join(two)})"
    if _missing_twins(first, second):
        yield f"repetitions ({_repetitions(first)} | {_repetitions(second)})"


def _missing_twins(first: Run, second: Run) -> bool:
    """Whether an arm that both have lacks a repetition in one of them."""
    one, two = _keys(first), _keys(second)
    arms = {key[:-1] for key in one} & {key[:-1] for key in two}
    return any(key[:-1] in arms for key in one ^ two)


def _repetitions(run: Run) -> str:
    arms = run.trials.groupby(KEY[:-1])["repetition"].nunique()
    least, most = int(arms.min()), int(arms.max())
    return str(most) if least == most else f"{least} to {most}"


def _differing_versions(first: Run, second: Run) -> Iterator[str]:
    for scenario in _other_packs(first, second):
        yield f"the version of the pack {scenario}"
    for plan in _other_plans(first, second):
        yield f"what the fault plan {plan} does"


def _other_packs(first: Run, second: Run) -> list[str]:
    one, two = first.manifest.get("scenarios", {}), second.manifest.get("scenarios", {})
    return [name for name in one if name in two and one[name].get("digest") != two[name].get("digest")]


def _other_plans(first: Run, second: Run) -> list[str]:
    one, two = _config(first).get("plan", {}), _config(second).get("plan", {})
    return [name for name in first.names("fault") if name in second.names("fault") and one.get(name) != two.get(name)]


def _differing_settings(first: Run, second: Run) -> Iterator[str]:
    one, two = _config(first), _config(second)
    for key in sorted((one.keys() | two.keys()) - set(COMPARED_APART)):
        if one.get(key) != two.get(key):
            yield f"the config's {key}"
    if first.manifest.get("code", {}).get("digest") != second.manifest.get("code", {}).get("digest"):
        yield "the code"
    models = first.manifest.get("models", {}), second.manifest.get("models", {})
    yield from (f"the settings of model {name}" for name, own in models[0].items() if own != models[1].get(name, own))


def _common(first: Run, second: Run) -> set[tuple[Any, ...]]:
    packs, plans = _other_packs(first, second), _other_plans(first, second)
    return {key for key in _keys(first) & _keys(second) if key[0] not in packs and key[2] not in plans}


def _keys(run: Run) -> set[tuple[Any, ...]]:
    return set(run.trials[KEY].itertuples(index=False, name=None))


def _only(run: Run, kept: set[tuple[Any, ...]]) -> Run:
    inside = [key in kept for key in run.trials[KEY].itertuples(index=False, name=None)]
    return replace(run, trials=run.trials[inside])


def _config(run: Run) -> Mapping[str, Any]:
    config: Mapping[str, Any] = run.manifest.get("config", {})
    return config
