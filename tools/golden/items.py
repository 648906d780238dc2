"""The items of the golden net: each config's fault schedule, each committed run as it reads, a replay of it, and each config's
experiment on simulated models."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from golden import adapter
from golden.adapter import ROOT, Size
from golden.digests import Digests, Key, by_cell, of_run, of_trials

CONFIGS = {
    str(tomllib.loads(path.read_text(encoding="utf-8"))["name"]): path
    for pattern in ("configs/*.toml", "studies/*/*.toml")
    for path in ROOT.glob(pattern)
}
NOT_REPLAYED = ("scorecard_live-qwen2.5-coder-1.5b-instruct", "sre_agent")
"""Its agents are processes that are killed and started again: which reply comes first is the machine's."""
REPLAYED = Size(instances=6, repetitions=2)
LARGE = (
    "advise",
    "advise_held_out",
    "approval",
    "boundary",
    "exactly_once",
    "momentum",
    "momentum_escape",
    "pattern_failure",
    "pattern_failure_children",
    "pattern_failure_further",
    "pattern_failure_undo",
    "reliability_surface",
)
"""Configs of thousands of trials."""
SIMULATED, SIMULATED_OF_LARGE = Size(instances=2, repetitions=1), Size(instances=1, repetitions=1, cases=1)


def items(runs: Sequence[str]) -> dict[str, Callable[[], Digests]]:
    """Return what makes each item, by its name."""
    return {
        **{f"schedule {name}": partial(schedule, path) for name, path in sorted(CONFIGS.items())},
        **{f"run {name}": partial(run_as_it_reads, name) for name in runs},
        **{f"replay {name}": partial(replay, name) for name in runs if name not in NOT_REPLAYED},
        **{f"simulation {name}": partial(simulation, name) for name in sorted(CONFIGS)},
    }


def schedule(config: Path) -> Digests:
    """Return the digests of what the fault schedule of each trial can plan. There is one for all arms, since it is the same in
    all of them."""
    experiment = adapter.simulated(config, Size())
    drawn: dict[Key, set[str]] = {}
    for trial in experiment.specs:
        key = (trial.scenario, trial.plan.name, "", "", trial.instance, str(trial.repetition))
        drawn.setdefault(key, set()).update(map(json.dumps, adapter.planned(experiment, trial)))
    return by_cell({"schedule": {key: "\n".join(sorted(faults)) for key, faults in drawn.items()}})


def run_as_it_reads(name: str) -> Digests:
    """Return the digests of the frames of a committed run."""
    return of_run(adapter.read(ROOT / "results" / name))


def replay(name: str) -> Digests:
    """Return the digests of the trials of a committed run that is run again on its recorded replies."""
    return of_trials(adapter.run_anew(adapter.recorded(ROOT / "results" / name, REPLAYED)))


def simulation(name: str) -> Digests:
    """Return the digests of the trials of a config's experiment on simulated models."""
    size = SIMULATED_OF_LARGE if name in LARGE else SIMULATED
    return of_trials(adapter.run_anew(adapter.simulated(CONFIGS[name], size)))
