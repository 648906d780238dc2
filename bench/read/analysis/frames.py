"""Read a run's folder into pandas frames, with a row for each trial, call, fault, recovery, judged reply and wait.

The records are read once, line by line, and memory keeps only the rows, as columns. Rows are in the order of the experiment's
config, not in the order in which the trials ended.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from bench.common.errors import ResultsError
from bench.common.paths import folder_of
from bench.read.analysis.blocks import TrialBlocks, ranks
from bench.read.analysis.kept import KeptFrames, Loaded
from bench.read.analysis.rows import TrialRows
from bench.read.analysis.trial import TrialReading
from bench.record.config import StoredConfig
from bench.record.cost import Tariff
from bench.record.ledger import LedgerEntry, book
from bench.record.manifest import Manifest, ManifestPack
from bench.record.model_parameters import ModelParameters
from bench.record.reading import read_grades, read_manifest, read_records, read_trials, without_collector
from bench.record.record import FailedTrials, Regrade, SessionRecord, TrialRecord
from bench.record.verify import sound_records, sources

CONTROLS_PER_BATCH = 5_000
"""The most trials whose controls are in memory at a time."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run, read from its folder into frames. Our tokenizer counts tokens, times are in seconds, `plan` names a fault plan.

    trials    a row for each trial.
              `rejections`: how often verification rejected outputs; outputs that are judged together count once;
              `first_round_*`: the mean of its first rounds; `price_*`: all rounds after its effective faults, divided by the
              number of these faults; `first_pass_*`: its first attempts, if every subtask had one. Each of these is missing if
              there is none; `*_usage`: tokens by the provider's count; `undetected_failure`: whether the answer is wrong
              although all outputs that it was made from were accepted; `damage_*`: how often each kind of damage happened in
              its world; `recount_agrees`: whether the world's tables alone show the same; `lives`: the number of its agent's
              processes. These are missing without a world; `compensated_pairs`: pairs of effects that were undone one right
              after the other; `compensated_out_of_order`: the pairs of these that were undone in another order than the
              reverse; `stale_refused`: calls refused because the world had changed; `tool_retries`: calls made because the
              previous call of the same effect had failed or was throttled; `calls_forbidden` and `calls_over_quota`: calls
              that a contract refused; `steps_done` and `steps_failed`: steps of its procedure; `completion_minutes`: world
              time to the end of its last step; `minutes_at_work`: the part of it in which a step had begun and not ended;
              `waiting_for_people_minutes`: the part in which it waited for answers; `correct` and `score` are missing for
              errors; they are False and 0 for a trial that gave up, which has no answer; `note`: the grader's note, in one
              line, or ''; `cost`: dollars, missing if a price is unknown
    calls     a row for each call. `subtask` joins several with +, or is `all`; `failure` is '' if a reply came; `by` is the
              model that answered; `reused`: whether the reply is that of the same request in another trial; `in_first_round`:
              whether it is one of the calls of `first_round_*`
    faults    a row for each planned fault: the stages that it reached, its `impact` (effective, masked, undetermined), and its
              `finish` (`bench.read.analysis.faults.Receipt`)
    recoveries   a row for each failure that revealed faults: the number of these `faults`, by impact; what its first round
                 took, missing if no call followed; and what all rounds took (`price_*`) until the struck subtasks were accepted
                 again (`accepted_again`)
    replies   a row for each judged reply: whether it was `exposed` to a fault, and the `kind` of its rejection, or ''; `digest`
              is that of the request and the reply: equal for one reply in several trials (`bench.read.claims.natural`)
    waits     a row for each wait
    more      further registered frames, by name, which are also attributes of the run: `run.NAME`. For worlds these are
              `steps`: a row for each step of a procedure that began: its `attempts`, whether it is `done`, `why` it failed, or
              "", and its `minutes` of world time
              `tool_calls`: a row for each call of a world's tool, with the result that the agent got: `kind` is read,
              compensable or final; `effect` its business key, of which this is the `try`; `key` the idempotency key, or '';
              `outcome` done, replayed, refused or failed, `code` and `reason` why; `decision` and `rule` the policy's verdict,
              or ''; `life` the agent's process, from 1; `day` and `minute` the world's, `started` the trial's seconds; `entry`
              its number in the world's journal, 0 if it did not reach the tool or got no answer; `changed`: whether the tables
              differed afterwards
    errors_rerun   the number of records of errors that a later record of the same trial replaced
    parts     the runs from which it was merged (`bench.read.analysis.merge`); empty for a run as recorded
    regrades  when answers were graded again, by which grader, and how many grades changed
    rerun     the ids of the trials that first ended in an error and were run again
    folder    the folder that it was read from, where its events and texts can be read; None for a merged run
    sources   the digests of the files that it was read from (`bench.record.verify.sources`)
    notes     what a reader must know of how it was merged: what was left out or renamed
    """

    manifest: Manifest
    sessions: tuple[SessionRecord, ...]
    trials: pd.DataFrame
    calls: pd.DataFrame
    faults: pd.DataFrame
    recoveries: pd.DataFrame
    replies: pd.DataFrame
    waits: pd.DataFrame
    errors_rerun: int
    more: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    parts: tuple[Run, ...] = ()
    folder: Path | None = None
    rerun: frozenset[str] = frozenset()
    regrades: tuple[Regrade, ...] = ()
    sources: str = ""
    notes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> pd.DataFrame:
        more: Mapping[str, pd.DataFrame] = vars(self).get("more", {})
        if name not in more:
            raise AttributeError(f"a run has no '{name}'")
        return more[name]

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """All frames, by name."""
        fields_of_run = {frame.name: getattr(self, frame.name) for frame in fields(self)}
        return {name: frame for name, frame in fields_of_run.items() if isinstance(frame, pd.DataFrame)} | dict(self.more)

    @property
    def recorded(self) -> tuple[Run, ...]:
        """The recorded runs from which this run was merged, or the run itself."""
        return self.parts or (self,)

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.manifest.name

    @property
    def config(self) -> StoredConfig:
        """The config with which the run was made."""
        return self.manifest.config

    def parameters_of(self, model: str) -> ModelParameters:
        """Return the parameters of a model, as the manifest has them.

        Args:
            model: Its name in the config.

        Returns:
            The parameters; empty parameters for a model that the manifest does not have.
        """
        return self.manifest.models.get(model, ModelParameters())

    def pack(self, scenario: str) -> ManifestPack:
        """Return what the manifest says of a scenario's pack.

        Args:
            scenario: The pack's name, with its variant.

        Returns:
            The manifest's entry; an empty one for a pack that it does not have.
        """
        return self.manifest.scenarios.get(scenario, ManifestPack())

    def map_frames(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Run:
        """Return the run after the same change to each frame.

        Args:
            change: (frame) -> another frame.

        Returns:
            A new run; this one stays as it is.
        """
        return self.replace_frames({name: change(frame) for name, frame in self.frames.items()})

    def replace_frames(self, frames: Mapping[str, pd.DataFrame]) -> Run:
        """Return the run with these frames instead of its present frames.

        Args:
            frames: Frames by name; those not given stay.

        Returns:
            A new run; this one stays as it is.
        """
        more = {name: frames.get(name, frame) for name, frame in self.more.items()}
        fields_of_run: dict[str, Any] = {name: frame for name, frame in frames.items() if name not in more}
        return replace(self, **fields_of_run, more=more)

    @cached_property
    def timings(self) -> Mapping[str, frozenset[str]]:
        """The kinds of seconds in each model's trials: `live`, `simulated`, `recorded`."""
        pairs = self.trials[["model", "timing"]].drop_duplicates()
        return {str(model): frozenset(group["timing"]) for model, group in pairs.groupby("model")}

    def is_simulated(self, model: str) -> bool:
        """Whether a model's replies are simulated, or are a replay of simulated replies.

        Args:
            model: Its name in the config.

        Returns:
            True if they are.
        """
        timings = self.timings.get(model, frozenset())
        replayed = "recorded" in timings and self.parameters_of(model).is_simulated
        return "simulated" in timings or replayed

    def names(self, column: str) -> list[str]:
        """Return the names in a column of the trials, in the config's order.

        Args:
            column: `scenario`, `architecture`, `model` or `plan`.

        Returns:
            Each name once.
        """
        rank = ranks(self.config, column)
        return sorted(set(self.trials[column].tolist()), key=lambda name: (rank.get(name, len(rank)), name))


@without_collector()
def load_run(path: str | Path, check: bool = False, also: Callable[[TrialReading], None] | None = None) -> Run:
    """Read a run.

    The frames of a large run are cached in the user's cache folder (`bench.read.analysis.kept`), so that they are made once.

    Args:
        path: What commands take: the run's name under results/, its folder, or its archive.
        check: Whether all its files are checked, as by `bench verify`.
        also: Called with each trial, in the order of recording; never, if the frames come from the cache.

    Returns:
        The run: frames with a row for each trial, call, fault and so on, in the config's order; tokens by our tokenizer, times
        in seconds, costs in dollars.

    Raises:
        ResultsError: The folder holds no run, is damaged, or has no recorded trial yet.
    """
    folder = folder_of(str(path))
    manifest, cache = read_manifest(folder), KeptFrames(folder)
    loaded = cache.read()
    if loaded is None or (check and not loaded.checked):
        loaded = _load(folder, manifest, check, also)
        cache.keep(loaded)
    frames: dict[str, Any] = dict(loaded.frames)
    ours = {name: frames.pop(name) for name in ("trials", "calls", "faults", "recoveries", "replies", "waits")}
    return Run(
        manifest=manifest,
        sessions=loaded.sessions,
        **ours,
        more=frames,
        errors_rerun=loaded.trials - len(ours["trials"]),
        folder=folder,
        rerun=loaded.rerun,
        regrades=read_grades(folder).history,
        sources=sources(folder),
        notes=manifest.notes,
    )


def pair_with_controls(
    read: Callable[[Container[str]], Iterable[TrialRecord]], controls: Mapping[str, str]
) -> Iterator[tuple[TrialRecord, tuple[LedgerEntry, ...]]]:
    """Yield trials, each with the calls of its control: the same trial without faults.

    Args:
        read: (ids) -> the records of these trials.
        controls: Trial -> its control, both by id.

    Yields:
        The record of a trial, and the ledger of its control.
    """
    trials = list(controls)
    for start in range(0, len(trials), CONTROLS_PER_BATCH):
        control_of = {trial: controls[trial] for trial in trials[start : start + CONTROLS_PER_BATCH]}
        calls = {record.id: book(record.events) for record in read(set(control_of.values()))}
        for record in read(control_of):
            yield record, calls[control_of[record.id]]


def _load(folder: Path, manifest: Manifest, check: bool, also: Callable[[TrialReading], None] | None) -> Loaded:
    """Read the records of a run and make its frames. `also` is called with each trial."""
    tariff = Tariff(manifest.models)
    tasks = {name: pack.subtasks for name, pack in manifest.scenarios.items()}
    blocks, sessions, rerun, failed, trials = TrialBlocks(), list[SessionRecord](), set[str](), FailedTrials(), 0

    def add(record: TrialRecord, control: tuple[LedgerEntry, ...] = ()) -> TrialReading:
        """Add the rows of a trial, and return the trial with all that was computed of it."""
        trial = TrialReading(record, tariff, tasks.get(record.scenario, ()), control)
        blocks.add(TrialRows.of(trial))
        return trial

    for record in sound_records(folder) if check else read_records(folder):
        if isinstance(record, SessionRecord):
            sessions.append(record)
        else:
            trials += 1
            if (failed_trial := failed.replaced_by(record)) or record.id in blocks:
                rerun.add(record.id)
            if failed_trial not in ("", record.id):  # a record with another id replaces a failed trial
                blocks.remove(failed_trial)
            trial = add(record)
            if also:
                also(trial)
    if not blocks:
        raise ResultsError(f"{folder}: no trial is recorded yet; let `bench run` finish at least one")
    if blocks.undetermined:
        for record, control in pair_with_controls(partial(read_trials, folder), blocks.controls()):
            add(record, control)
    return Loaded(blocks.frames(manifest.config), tuple(sessions), trials, frozenset(rerun), check)
