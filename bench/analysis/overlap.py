"""What two runs have in common, so that their trials may be paired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.analysis.shared import differing_settings, labelled, shared_by
from bench.errors import ResultsError, nearest

KEY = ("scenario", "model", "plan", "architecture", "instance", "repetition")
"""What makes two trials of two runs a pair."""
Counterpart = Literal["model", "architecture"]
"""Columns of which two runs may each have one name of its own: then these two are what is compared."""
COUNTERPARTS: tuple[Counterpart, ...] = ("model", "architecture")
COMPARED_APART = frozenset(
    {"seed", "scenarios", "models", "plans", "plan", "architectures", "repetitions", "instances", "name"}
)
"""Settings that are looked at one by one; all others may be what is compared."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Both runs, with only the trials that are half of a pair.

    counterparts   column -> (the first run's only name, the second's), where these differ and are compared all the same
    left_out       what only one of them has
    notes          what differs besides
    """

    first: Run
    second: Run
    counterparts: Mapping[str, tuple[str, str]]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def counterpart(self, column: str, name: str) -> str:
        """Return the counterpart, in the second run, of each name of the first."""
        return self.counterparts[column][1] if column in self.counterparts else name


def only(run: Run, column: Counterpart, name: str) -> Run:
    """The run with the trials of one model, or of one architecture. Raises ResultsError where it has none."""
    if name not in (known := run.names(column)):
        raise ResultsError(f"{run.name} holds no trial of the {column} '{name}'; {nearest(name, known)}")
    kept = run.with_frames(lambda rows: rows.loc[rows[column] == name])
    return replace(kept, manifest=run.manifest.model_copy(update={"name": f"{run.name}, {name}"}))


def overlap_of(first: Run, second: Run, whole: bool) -> Overlap:
    """What two runs share. Raises ResultsError, naming what differs, where that is nothing; and where it is not all, if the
    `whole` of both is to be compared."""
    labels = labelled([first, second])
    both = " and ".join(labels)
    shared = shared_by(labels)
    of_first, of_second = shared.only(first), shared.only(second)
    counterparts = dict(_counterparts(of_first, of_second))
    left_out = (*shared.left_out, *_left_out(dict(zip(labels, (of_first, of_second), strict=True)), counterparts))
    if left_out and whole:
        raise ResultsError(f"{both} are not alike: {'; '.join(left_out)}: without --whole they are compared on what they share")
    kept = set(_keys(of_first, tuple(counterparts))) & set(_keys(of_second, tuple(counterparts)))
    if not kept:
        reason = f"{both} share no trial: {'; '.join(left_out)}"
        raise ResultsError(f"{reason}; --models A B or --architectures A B compares two that are called otherwise")
    notes = (
        *(f"two {column}s are compared: A {a}, B {b}" for column, (a, b) in counterparts.items()),
        *(f"part of what is compared: {what}" for what in _differing_settings(first, second, counterparts)),
    )
    of_first, of_second = (_pairs_of(run, kept, tuple(counterparts)) for run in (of_first, of_second))
    return Overlap(of_first, of_second, counterparts, left_out, notes)


def _counterparts(first: Run, second: Run) -> Iterator[tuple[str, tuple[str, str]]]:
    for column in COUNTERPARTS:
        names, others = first.names(column), second.names(column)
        if names != others and len(names) == len(others) == 1:
            yield column, (names[0], others[0])


def _left_out(runs: Mapping[str, Run], counterparts: Mapping[str, object]) -> Iterator[str]:
    """What has trials in only one of two runs."""
    first, second = runs.values()
    for column in COUNTERPARTS:
        for label, run, other in zip(runs, (first, second), (second, first), strict=True):
            for name in run.names(column) if column not in counterparts else ():
                if name not in other.names(column):
                    yield f"the {column} {name} (only in {label})"
    if _unlike_arms(first, second, tuple(counterparts)):
        yield f"repetitions ({_repetitions(first)} | {_repetitions(second)})"


def _unlike_arms(first: Run, second: Run, across: Sequence[str]) -> bool:
    """Whether an arm that both have lacks an instance or a repetition in one of them."""
    keys, other_keys = set(_keys(first, across)), set(_keys(second, across))
    arms = {key[:-2] for key in keys} & {key[:-2] for key in other_keys}
    return any(key[:-2] in arms for key in keys ^ other_keys)


def _repetitions(run: Run) -> str:
    """The trials of an arm."""
    arms = run.trials.groupby(list(KEY[:-2])).size()
    least, most = int(arms.min()), int(arms.max())
    return str(most) if least == most else f"{least} to {most}"


def _differing_settings(first: Run, second: Run, counterparts: Mapping[str, object]) -> Iterator[str]:
    yield from (f"the config's {key}" for key in differing_settings((first, second), COMPARED_APART | counterparts.keys()))
    if first.manifest.code.digest != second.manifest.code.digest:
        yield "the code"
    there = second.manifest.models
    for name, parameters in first.manifest.models.items():
        if name in there and there[name].shown != parameters.shown:
            yield f"the settings of model {name}"


def _keys(run: Run, across: Sequence[str]) -> list[tuple[Any, ...]]:
    """KEY of each trial; what the runs are compared across is no part of it."""
    trials = run.trials.assign(instance=instances_of(run.trials), **dict.fromkeys(across, ""))
    return list(trials[list(KEY)].itertuples(index=False, name=None))


def _pairs_of(run: Run, kept: set[tuple[Any, ...]], across: Sequence[str]) -> Run:
    return replace(run, trials=run.trials.loc[[key in kept for key in _keys(run, across)]])
