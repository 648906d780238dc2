"""Detectability: what becomes of a trial when a fault is easy to see, and when it is a plausible lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from bench.analysis.arms import UNUSABLE
from bench.analysis.experiments.plans import Written, single_faults
from bench.analysis.frames import Run
from bench.analysis.statistics import Share, share_of
from bench.errors import ResultsError

ENDS = ("silently corrupted", "wrong otherwise", "gave up", "recovered", "did no harm")
"""What became of a trial in which the fault was delivered; each trial has one end.

silently corrupted   the answer is wrong, and the fault passed every verification
wrong otherwise      the answer is wrong, though the fault was noticed, or is not in the answer
gave up              the attempts were used up
recovered            the task was solved, and the answer does not stand on what the fault had struck
did no harm          the task was solved by an answer that stands on it, unnoticed
"""


@dataclass(frozen=True)
class Detected:
    """`noticed`: of the trials in which the fault was delivered and that did not end in an error, those in which the
    verifier rejected what carried it. `ends`: of the same trials, by ENDS; the shares add up to 1."""

    scenario: str
    model: str
    architecture: str
    plan: str
    fault: str
    noticed: Share
    ends: Mapping[str, Share]


def detectability(run: Run) -> list[Detected]:
    """By scenario, model, fault plan and architecture, in the config's order.

    Raises ResultsError where no plan with a single fault was run.
    """
    faults = single_faults(run)
    if not faults:
        raise ResultsError("needs fault plans with one fault each")
    found = []
    struck = run.trials[(run.trials["faults_delivered"] > 0) & ~run.trials["outcome"].isin(UNUSABLE)]
    passed = set(run.faults.loc[run.faults["ended"] == "unnoticed", "trial"])
    struck = struck.assign(passed=struck["trial"].isin(passed))
    for (scenario, model), trials in struck.groupby(["scenario", "model"], sort=False):
        for plan, fault in faults.items():
            for architecture in run.names("architecture"):
                own = trials[(trials["fault"] == plan) & (trials["architecture"] == architecture)]
                found.append(_detected(str(scenario), str(model), architecture, plan, named(fault), own))
    return found


def named(fault: Written) -> str:
    """A fault in a few words, such as `missing_field at output, attempts 1, 2, 3`."""
    attempts = ", ".join(str(attempt) for attempt in fault["attempts"])
    when = f"attempt{'s' if len(fault['attempts']) > 1 else ''} {attempts}" if attempts else f"chance {fault['probability']:g}"
    return f"{fault['effect']} at {fault['point']}, {when}"


def _detected(scenario: str, model: str, architecture: str, plan: str, fault: str, trials: pd.DataFrame) -> Detected:
    n = len(trials)
    ends = [_end(*row) for row in zip(trials["outcome"], trials["passed"], trials["silent_corruption"], strict=True)]
    shares = {end: share_of(ends.count(end), n) for end in ENDS}
    noticed = share_of(int((trials["faults_seen"] > 0).sum()), n)
    return Detected(scenario, model, architecture, plan, fault, noticed, shares)


def _end(outcome: str, passed: bool, silent: bool) -> str:
    """`passed`: the fault is in the answer, and nobody had noticed it."""
    if outcome == "solved":
        return "did no harm" if passed else "recovered"
    if outcome == "gave_up":
        return "gave up"
    return "silently corrupted" if silent else "wrong otherwise"
