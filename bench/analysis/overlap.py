"""What two runs have in common, so that their trials may be paired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.analysis.merge import name_of
from bench.errors import ResultsError

KEY = ("scenario", "model", "fault", "architecture", "instance", "repetition")
"""What makes two trials of two runs a pair."""
COUNTERPARTS = ("model", "architecture")
"""Columns of which two runs may each have one name of its own: then these two are what is compared."""
KINDS = {"scenario": "packs", "model": "models", "fault": "fault plans", "architecture": "architectures"}
COMPARED_APART = ("seed", "scenarios", "models", "plans", "plan", "architectures", "repetitions", "name")
"""Settings that are looked at one by one; all others may be what is compared."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Both runs, with only the trials that are half of a pair.

    counterparts   column -> (the first run's only name, the second's), where these differ and are compared all the same
    notes          what differs besides
    """

    first: Run
    second: Run
    counterparts: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...]

    def counterpart(self, column: str, name: str) -> str:
        """What the second run calls that which the first one calls so."""
        return self.counterparts[column][1] if column in self.counterparts else name


def overlap_of(first: Run, second: Run, narrow: bool) -> Overlap:
    """Raises ResultsError, naming what differs: always where no trials can be paired (another seed or tokenizer, nothing in
    common), and else unless `narrow` asks for the overlap of runs that are not alike."""
    _refuse_other_draws(first, second)
    counterparts = dict(_counterparts(first, second))
    differing = [*_differing_names(first, second, counterparts), *_differing_versions(first, second)]
    if differing and not narrow:
        raise ResultsError(f"{_both(first, second)} differ in {'; '.join(differing)}: --shared compares what they share")
    kept = _common(first, second, tuple(counterparts))
    if not kept:
        raise ResultsError(f"{_both(first, second)} share no trial: they differ in {'; '.join(differing)}")
    notes = (
        *(f"two {KINDS[column]} are compared: A {one}, B {two}" for column, (one, two) in counterparts.items()),
        *(f"compared on what they share; left out: {what}" for what in differing),
        *(f"part of what is compared: {what}" for what in _differing_settings(first, second, counterparts)),
    )
    one, two = (_only(run, kept, tuple(counterparts)) for run in (first, second))
    return Overlap(one, two, counterparts, notes)


def _both(first: Run, second: Run) -> str:
    return f"{name_of(first)} and {name_of(second)}"


def _refuse_other_draws(first: Run, second: Run) -> None:
    """Trials are pairs because they met the same random draws, and their tokens were counted alike."""
    tokenizers = first.manifest.get("tokenizer"), second.manifest.get("tokenizer")
    seeds = _config(first).get("seed"), _config(second).get("seed")
    for what, (one, two) in (("the tokenizer for tokens", tokenizers), ("the seed", seeds)):
        if one != two:
            raise ResultsError(f"{_both(first, second)} differ in {what} ({one}, {two}): none of their trials are pairs")


def _counterparts(first: Run, second: Run) -> Iterator[tuple[str, tuple[str, str]]]:
    for column in COUNTERPARTS:
        one, two = first.names(column), second.names(column)
        if one != two and len(one) == len(two) == 1:
            yield column, (one[0], two[0])


def _differing_names(first: Run, second: Run, counterparts: Mapping[str, object]) -> Iterator[str]:
    """What has trials in only one of them."""
    for column, kind in KINDS.items():
        one, two = first.names(column), second.names(column)
        if set(one) != set(two) and column not in counterparts:
            yield f"{kind} ({', '.join(one)} | {', '.join(two)})"
    if _unlike_arms(first, second, tuple(counterparts)):
        yield f"repetitions ({_repetitions(first)} | {_repetitions(second)})"


def _unlike_arms(first: Run, second: Run, across: Sequence[str]) -> bool:
    """Whether an arm that both have lacks an instance or a repetition in one of them."""
    one, two = set(_keys(first, across)), set(_keys(second, across))
    arms = {key[:-2] for key in one} & {key[:-2] for key in two}
    return any(key[:-2] in arms for key in one ^ two)


def _repetitions(run: Run) -> str:
    """The trials of an arm."""
    arms = run.trials.groupby(list(KEY[:-2])).size()
    least, most = int(arms.min()), int(arms.max())
    return str(most) if least == most else f"{least} to {most}"


def _differing_versions(first: Run, second: Run) -> Iterator[str]:
    for scenario in _other_packs(first, second):
        yield f"the version of the pack {scenario}"
    for plan in _other_plans(first, second):
        yield f"what the fault plan {plan} does"


def _other_packs(first: Run, second: Run) -> list[str]:
    one, two = first.manifest.get("scenarios", {}), second.manifest.get("scenarios", {})
    return [name for name in one if name in two and one[name].get("asked") != two[name].get("asked")]


def _other_plans(first: Run, second: Run) -> list[str]:
    one, two = _config(first).get("plan", {}), _config(second).get("plan", {})
    return [name for name in first.names("fault") if name in second.names("fault") and one.get(name) != two.get(name)]


def _differing_settings(first: Run, second: Run, counterparts: Mapping[str, object]) -> Iterator[str]:
    one, two = _config(first), _config(second)
    for key in sorted((one.keys() | two.keys()) - set(COMPARED_APART) - counterparts.keys()):
        if one.get(key) != two.get(key):
            yield f"the config's {key}"
    if first.manifest.get("code", {}).get("digest") != second.manifest.get("code", {}).get("digest"):
        yield "the code"
    models = first.manifest.get("models", {}), second.manifest.get("models", {})
    yield from (f"the settings of model {name}" for name, own in models[0].items() if own != models[1].get(name, own))


def _common(first: Run, second: Run, across: Sequence[str]) -> set[tuple[Any, ...]]:
    packs, plans = _other_packs(first, second), _other_plans(first, second)
    both = set(_keys(first, across)) & set(_keys(second, across))
    return {key for key in both if key[0] not in packs and key[2] not in plans}


def _keys(run: Run, across: Sequence[str]) -> list[tuple[Any, ...]]:
    """KEY of each trial; what the runs are compared across is no part of it."""
    trials = run.trials.assign(instance=instances_of(run.trials), **dict.fromkeys(across, ""))
    return list(trials[list(KEY)].itertuples(index=False, name=None))


def _only(run: Run, kept: set[tuple[Any, ...]], across: Sequence[str]) -> Run:
    return replace(run, trials=run.trials.loc[[key in kept for key in _keys(run, across)]])


def _config(run: Run) -> Mapping[str, Any]:
    config: Mapping[str, Any] = run.manifest.get("config", {})
    return config
