"""Build a scorecard from the records of runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd

from bench.common.digests import digest_of
from bench.common.errors import ResultsError, one_line
from bench.read.analysis.arms import UNUSABLE, require_receipts
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import merge
from bench.read.analysis.pairing import digests_of_tasks, plan_texts
from bench.read.analysis.statistics import exact_share
from bench.record.config import FAULT_FREE
from bench.record.reading import read_texts, read_trials
from bench.record.record import latest
from bench.record.repeated_call import repeated_call
from bench.worlds.read.beyond_control import beyond_control
from bench.worlds.read.scorecard.card import Receipts, ReplyOrigin, Scorecard, ScorecardRow, ScorecardWorld
from bench.worlds.read.scorecard.cells import pass_hats, share_of, struck_cell
from bench.worlds.read.scorecard.struck import MIXED, NOT_STRUCK, belongs, kinds_of_failure, with_strikes

MAX_REASON_LENGTH = 240
"""The most characters of a reason."""


def scorecard_of(runs: Sequence[Run]) -> Scorecard:
    """Return the scorecard of these runs, with one row for each system in each world. Runs of one world are merged (`merge`).

    Raises ResultsError if a run has no world, no control or no other fault plan, if runs of one world had different faults, or
    if the receipts of a fault do not add up.
    """
    for run in runs:
        _require_measurable(run)
    by_world = {world: _merge_runs_of_world(runs, world) for world in dict.fromkeys(chain.from_iterable(map(_worlds, runs)))}
    return Scorecard(
        worlds=tuple(_scorecard_world(run, world) for world, run in by_world.items()),
        rows=tuple(chain.from_iterable(_rows(run, world) for world, run in by_world.items())),
        notes=tuple(dict.fromkeys(chain.from_iterable(run.notes for run in by_world.values()))),
    )


def tells_recovery(run: Run) -> bool:
    """Return whether a run has a world, a control, and faults that killed a system or lost an answer to it."""
    struck = run.faults["point"].eq("process") | (run.faults["point"].eq("tool") & run.faults["effect"].eq("lost_ack"))
    return bool(struck.any()) and FAULT_FREE in run.names("plan") and bool(_worlds(run))


def _require_measurable(run: Run) -> None:
    """Raise ResultsError if a run has no world, no control or no other fault plan."""
    require_receipts(run)
    if not _worlds(run):
        raise ResultsError(f"{run.name}: no trial of it has a world, so nothing could be damaged; see docs/worlds.md")
    plans = set(run.names("plan"))
    if FAULT_FREE not in plans or len(plans) < 2:
        raise ResultsError(f"{run.name}: needs a fault plan and the plan '{FAULT_FREE}' beside it; see docs/scorecard.md")


def _worlds(run: Run) -> list[str]:
    """Return the scenarios that have a world, in the config's order."""
    with_world = set(run.trials.loc[run.trials["lives"].notna(), "scenario"])
    return [name for name in run.names("scenario") if name in with_world]


def _merge_runs_of_world(runs: Sequence[Run], world: str) -> Run:
    """Merge the runs that have this world, each restricted to this world."""
    runs_with_world = [run for run in runs if world in _worlds(run)]
    return merge([_with_reasons(run.map_frames(lambda rows: rows.loc[rows["scenario"] == world])) for run in runs_with_world])


def _with_reasons(run: Run) -> Run:
    """Add the column `why` to the trials: the reason why a fault-free trial was not solved; "" for other trials."""
    unsolved = run.trials[(run.trials["plan"] == FAULT_FREE) & ~run.trials["outcome"].isin([*UNUSABLE, "solved"])]
    columns = unsolved[["trial", "reason", "note"]].itertuples(index=False, name=None)
    why = {trial: reason or note for trial, reason, note in columns}
    if why and run.folder:
        texts = read_texts(run.folder)
        for record in latest(read_trials(run.folder, why)):
            why[record.id] = repeated_call(record, texts) or why[record.id]
    return replace(run, trials=run.trials.assign(why=[why.get(trial, "") for trial in run.trials["trial"]]))


def _scorecard_world(run: Run, world: str) -> ScorecardWorld:
    """Return the description of a world, with the digest of its fault schedule."""
    cases = {instance: digest for (_, instance), digest in digests_of_tasks(run).items()}
    texts, seed, repetitions = plan_texts(run), run.config.seed, int(run.trials["repetition"].max())
    schedule = json.dumps([seed, texts, cases, repetitions], sort_keys=True)
    return ScorecardWorld(world, digest_of(schedule), seed, len(cases), repetitions, tuple(run.names("plan")))


def _rows(run: Run, world: str) -> Iterator[ScorecardRow]:
    """Yield the scorecard's rows of one world, one for each model and system that has trials."""
    trials = with_strikes(run.trials, run.faults)
    paired = with_strikes(beyond_control(run), run.faults)
    kinds = kinds_of_failure(run, run.names("plan"))
    for model in run.names("model"):
        for system in run.names("architecture"):
            trials_of_system, with_control, faults = (_select(rows, model, system) for rows in (trials, paired, run.faults))
            if len(trials_of_system):
                yield _row(world, model, _reply_origin(run, model), system, trials_of_system, with_control, faults, kinds)


def _select(rows: pd.DataFrame, model: str, system: str) -> pd.DataFrame:
    """Return the rows of one model and one system."""
    return rows[(rows["model"] == model) & (rows["architecture"] == system)]


def _reply_origin(run: Run, model: str) -> ReplyOrigin:
    """Return whether a model's replies are simulated, recorded or live."""
    if run.is_simulated(model):
        return "simulated"
    return "recorded" if run.timings.get(model) == frozenset({"recorded"}) else "live"


def _row(
    world: str,
    model: str,
    whose: ReplyOrigin,
    system: str,
    trials: pd.DataFrame,
    paired: pd.DataFrame,
    faults: pd.DataFrame,
    kinds: Iterable[str],
) -> ScorecardRow:
    """Return the scorecard's row of one system in one world, from its trials, their paired controls and the receipts of their
    faults."""
    usable = trials[~trials["outcome"].isin(UNUSABLE)]
    control, under_faults = usable[usable["plan"] == FAULT_FREE], usable[usable["plan"] != FAULT_FREE]
    struck = under_faults[~under_faults["by"].isin([NOT_STRUCK, MIXED])]
    recounts = usable["recount_agrees"].dropna()
    return ScorecardRow(
        world=world,
        model=model,
        whose=whose,
        system=system,
        control=share_of(control, control["outcome"].eq("solved")),
        control_pass_hat=pass_hats(control),
        struck=tuple(struck_cell(kind, _struck_by(struck, kind), _struck_by(paired, kind)) for kind in kinds),
        receipts=tuple(_receipts(kind, faults) for kind in kinds),
        trials=len(trials),
        not_struck=int((under_faults["by"] == NOT_STRUCK).sum()),
        mixed=int((under_faults["by"] == MIXED).sum()),
        errors=len(trials) - len(usable),
        two_counts_agree=exact_share(int(recounts.sum()), len(recounts)),
        reason=_reason(control),
    )


def _reason(control: pd.DataFrame) -> str:
    """Return the most frequent reason why fault-free trials failed; "" if one was solved."""
    reasons = Counter(why for why in control["why"].tolist() if why)
    if not reasons or control["outcome"].eq("solved").any():
        return ""
    [(reason, times)] = reasons.most_common(1)
    return f"{one_line(reason, MAX_REASON_LENGTH)} ({times} of {len(control)})"


def _struck_by(trials: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the trials that this kind of failure struck."""
    return trials.loc[np.array([belongs(by, kind) for by in trials["by"]], dtype=bool)]


def _receipts(kind: str, faults: pd.DataFrame) -> Receipts:
    """Return how many faults of this kind were planned, delivered and not applicable."""
    names = (faults["point"] + ":" + faults["effect"]).tolist()
    struck = faults.loc[np.array([belongs(name, kind) for name in names], dtype=bool)]
    return Receipts(kind, *(int(struck[stage].sum()) for stage in ("planned", "delivered", "not_applicable")))
