"""A diagnosis of the part of an agent that is to blame for a failed trial. The trial runs again on the same random draws, with
sets of the agent's parts mended (replaced by sound parts).

A set is sufficient if the failure is gone and the faults that the trial met cause no other failure. Harm from a fault that
only the mended trial meets blames no part. All minimal sufficient sets are found by running every set that contains no
smaller sufficient set. Parts are mended from the first event at which the trial differs from its control. If no fault is the
reason, they are mended from the first proposal that differs from the declared right proposal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from bench.common.errors import ConfigError
from bench.common.minimal_sets import minimal_sets
from bench.record.events import Called, of_kind
from bench.record.record import TrialRecord
from bench.rerun.mended_parts import CODE_OUTSIDE, NO_WORLD, PARTS, MendedPart
from bench.rerun.mends import MendedAgent, MendingStart, ReplySource, RerunAgent, WatchedModel
from bench.rerun.rerun import RerunArm, RerunnableTrial, TrialFailure, difference_between, without_times
from bench.rerun.shrink import restrict
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.trial import TrialResult
from bench.run.trial.faults import FaultPlan
from bench.worlds.run.environment import World
from bench.worlds.run.environment.final import content_of
from bench.worlds.run.runtime.lives import world_digest

ENDED = "ended"
"""The kind of an entry that is not damage: how an unsolved trial ended."""
ENDINGS = ("solved", "wrong", "gave_up")
"""From best to worst."""
UNJUDGED = ("error", "ungraded")
MendedSet = frozenset[MendedPart]


@dataclass(frozen=True)
class FailedEntry:
    """One failure of a trial: a kind of damage with the damaged effect, or a wrong end of the trial."""

    kind: str
    what: str

    @property
    def words(self) -> str:
        """The failure in words."""
        if self.kind == ENDED:
            return f"it ended {self.what.replace('_', ' ')}"
        return f"{self.kind}: {self.what}"


EntryCounts = Mapping[FailedEntry, int]
"""Failure -> how often it happened."""


@dataclass(frozen=True)
class Rerun:
    """The result of a trial that was run again.

    entries        the failures of the trial
    sources        the sources of its replies
    first_wrong    the place of its first wrong proposal; None if no proposal is wrong
    not_mended     part of the agent's boundary -> why the part cannot be replaced
    """

    result: TrialResult
    entries: EntryCounts
    sources: Counter[ReplySource]
    first_wrong: MendingStart | None
    not_mended: Mapping[MendedPart, str]

    @property
    def outcome(self) -> str:
        return self.result.record.outcome


@dataclass(frozen=True)
class EntryDiagnosis:
    """The diagnosis of one failure of a trial (`FailedEntry`).

    start        where mending starts
    asked        the parts that could be mended for this failure
    minimal      the minimal sufficient sets; empty if no set suffices
    unjudged     the parts of sets whose rerun could not be judged
    in_control   whether the trial also has the failure without any fault
    later        whether, with some minimal set mended, the trial meets a further fault and is harmed by it
    """

    entry: FailedEntry
    start: MendingStart
    asked: tuple[MendedPart, ...]
    minimal: tuple[MendedSet, ...]
    unjudged: MendedSet
    in_control: bool
    later: bool = False

    @property
    def necessary(self) -> MendedSet:
        return frozenset.intersection(*self.minimal) if self.minimal else frozenset()

    @property
    def contributing(self) -> MendedSet:
        """The parts that are in at least one minimal sufficient set."""
        return frozenset().union(*self.minimal)


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of one failed trial.

    undiagnosable   why the trial cannot be diagnosed, or ""
    entries         the diagnosis of each failure
    asked           the parts that could be mended
    not_asked       part that could not be mended -> the reason
    sources         the sources of the replies in all reruns, including the rerun with nothing mended
    reruns          the number of reruns
    unjudged        the number of reruns that could not be judged
    """

    record: TrialRecord
    undiagnosable: str = ""
    entries: tuple[EntryDiagnosis, ...] = ()
    asked: tuple[MendedPart, ...] = ()
    not_asked: Mapping[MendedPart, str] = field(default_factory=dict)
    sources: Counter[ReplySource] = field(default_factory=Counter)
    reruns: int = 0
    unjudged: int = 0

    @property
    def blamed(self) -> MendedSet:
        """The parts that contribute to at least one failure of the trial."""
        return frozenset().union(*(entry.contributing for entry in self.entries))

    @property
    def is_explained(self) -> bool:
        return bool(self.entries) and all(entry.minimal for entry in self.entries)

    @property
    def is_proved(self) -> bool:
        """Whether the diagnosis explains the trial, and each reply was recorded in the state in which it was asked for, or came
        from the mended proposer. Outside of a world nothing is proved, since a right proposer always solves the task, and two
        parts are never tried."""
        return self.in_world and self.is_explained and not self.sources["transplanted"] and not self.sources["simulated"]

    @property
    def in_world(self) -> bool:
        return NO_WORLD not in self.not_asked.values()

    @property
    def is_outside(self) -> bool:
        """Whether the agent works without a boundary of ours, as a command does."""
        return self.not_asked.get("verifier") == CODE_OUTSIDE


def is_failed(record: TrialRecord) -> bool:
    """Return whether a trial was graded and ended with damage or unsolved."""
    return record.outcome not in UNJUDGED and (record.outcome != "solved" or bool(TrialFailure.of(record).damage))


async def diagnose(original: RerunnableTrial, agent: RerunAgent | None = None) -> Diagnosis:
    """Return which parts of the agent have to be mended so that each failure of a trial goes away, found by reruns.

    Args:
        original: The failed trial.
        agent: The agent that is run again; None: the agent that the trial's config names.

    Returns:
        The diagnosis, which can say that the trial is not diagnosable.

    Raises:
        ConfigError: The trial did not fail.
    """
    if not is_failed(original.record):
        ending = f"it ended {TrialFailure.of(original.record).words}"
        if original.record.outcome in UNJUDGED:
            ending = f"it ended in no grade ({original.record.reason})"
        raise ConfigError(f"trial {original.record.id}: {ending}; name a trial that failed")
    reruns = Reruns(original, agent or RerunAgent.of(original.arm.matrix.arm(original.arm.spec)))
    unmended = await reruns.run(frozenset(), MendingStart(), original.plan)
    if difference := difference_between(original.record, unmended.result.record):
        detail = f" ({unmended.result.record.reason})" if unmended.outcome == "error" else ""
        return Diagnosis(original.record, f"a rerun with nothing mended is another trial: {difference}{detail}")
    control = await reruns.run(frozenset(), MendingStart(), restrict(original.plan, ())) if original.plan.faults else unmended
    met_faults = restrict(original.plan, unmended.result.strikes)
    not_asked = _unmendable(original, reruns.agent, unmended)
    mendable = tuple(part for part in PARTS if part not in not_asked)
    entries = []
    for entry, times in unmended.entries.items():
        in_control = control.entries.get(entry, 0) >= times
        start = (
            unmended.first_wrong or MendingStart()
            if in_control
            else _first_difference(unmended.result.record, control.result.record)
        )
        has_keys_alone = entry.kind == "stale" and not_asked.get("verifier") == CODE_OUTSIDE
        parts = tuple(part for part in mendable if not (part == "commit" and has_keys_alone))
        minimal, unjudged = await _minimal(reruns, entry, unmended, start, parts, met_faults)
        harmed_later = [not _suffices(entry, unmended, await reruns.run(mended, start, original.plan)) for mended in minimal]
        entries.append(EntryDiagnosis(entry, start, parts, minimal, unjudged, in_control, any(harmed_later)))
    return Diagnosis(
        original.record, "", tuple(entries), mendable, not_asked, reruns.sources, len(reruns.results), reruns.unjudged
    )


async def _minimal(
    reruns: Reruns, entry: FailedEntry, unmended: Rerun, start: MendingStart, parts: Sequence[MendedPart], met_faults: FaultPlan
) -> tuple[tuple[MendedSet, ...], MendedSet]:
    """Return all minimal sets of these parts that suffice under the faults of the trial, the smallest first. Also return the
    parts of the sets that could not be judged."""
    unjudged: MendedSet = frozenset()

    async def suffices(mended: MendedSet) -> bool:
        """Return whether mending this set removes the failure."""
        nonlocal unjudged
        mended_rerun = await reruns.run(mended, start, met_faults)
        if mended_rerun.outcome in UNJUDGED:
            unjudged |= mended
        return _suffices(entry, unmended, mended_rerun)

    return await minimal_sets(parts, suffices), unjudged


def _suffices(entry: FailedEntry, unmended: Rerun, mended_rerun: Rerun) -> bool:
    """Return whether the failure is gone and no other failure has appeared."""
    if mended_rerun.outcome in UNJUDGED or entry in mended_rerun.entries:
        return False
    is_worse = ENDINGS.index(mended_rerun.outcome) > ENDINGS.index(unmended.outcome)
    return not is_worse and all(times <= unmended.entries.get(failure, 0) for failure, times in mended_rerun.entries.items())


class Reruns:
    """The reruns of one trial. Each rerun is made once."""

    def __init__(self, original: RerunnableTrial, agent: RerunAgent):
        self._original, self.agent = original, agent
        self.results: dict[tuple[MendedSet, MendingStart, FaultPlan], Rerun] = {}
        self.sources: Counter[ReplySource] = Counter()
        self.unjudged = 0

    async def run(self, parts: MendedSet, start: MendingStart, plan: FaultPlan) -> Rerun:
        """Return the rerun of the trial under this plan, with these parts mended from `start` on."""
        key = parts, start, plan
        if key not in self.results:
            new_rerun = self.results[key] = await rerun(self._original.arm, self.agent, parts, start, plan)
            self.sources.update(new_rerun.sources)
            self.unjudged += new_rerun.outcome in UNJUDGED
        return self.results[key]


async def rerun(arm: RerunArm, agent: RerunAgent, parts: MendedSet, start: MendingStart, plan: FaultPlan) -> Rerun:
    """Run the trial under these faults, with some of the agent's parts mended from `start` on."""
    spec, matrix = arm.spec, arm.matrix
    resolved = matrix.arm(spec)
    environment = resolved.scenario.environment
    model = WatchedModel(resolved.model, resolved.scenario, start.requests if "proposer" in parts else None)
    working = MendedAgent(agent, parts, start, model, environment is not None)
    exchanged = replace(matrix.with_architecture(working.work), models={**matrix.models, spec.model: model})
    if environment is None and "signal" in parts:
        exchanged = _with_reasons(exchanged)
    result = await RerunArm(spec, exchanged).run(plan)
    first_wrong = None
    if (number := model.first_wrong) is not None:
        call_places = [place for place, event in enumerate(result.record.events) if isinstance(event, Called) and event.asked]
        first_wrong = MendingStart(call_places[number] if number < len(call_places) else len(result.record.events), number)
    return Rerun(result, _failures_of(result, environment), model.sources, first_wrong, working.not_mended)


def _with_reasons(matrix: Matrix) -> Matrix:
    """Return the same trials with a change: a repair that is told of its rejection is also told the reason."""
    architectures = dict(matrix.architectures)
    for name, entry in matrix.architectures.items():
        if entry.settings.repair == "none":
            architectures[name] = replace(entry, settings=replace(entry.settings, repair="reason"))
    return replace(matrix, architectures=architectures)


def _failures_of(result: TrialResult, environment: Any) -> EntryCounts:
    """Return the failures of a trial: its damaged effects, or else its wrong outcome."""
    entries: dict[FailedEntry, int] = {}
    if content := world_digest(result.record.events):
        with closing(World(environment, content=content_of(result.texts[content]))) as world:
            for kind, harms in world.harms().items():
                for harm in harms:
                    entry = FailedEntry(kind, harm.effect)
                    entries[entry] = entries.get(entry, 0) + harm.times
    if not entries and result.record.outcome not in ("solved", *UNJUDGED):
        entries[FailedEntry(ENDED, result.record.outcome)] = 1
    return entries


def _unmendable(original: RerunnableTrial, agent: RerunAgent, unmended: Rerun) -> dict[MendedPart, str]:
    """Return the parts that cannot be mended, each with the reason."""
    reasons = dict(unmended.not_mended)
    if original.arm.matrix.arm(original.arm.spec).scenario.environment is None:
        reasons |= {"commit": NO_WORLD, "pattern": NO_WORLD}
    elif not agent.remedied:
        reasons["pattern"] = agent.why_no_remedied
    return {part: reasons[part] for part in PARTS if part in reasons}


def _first_difference(record: TrialRecord, control: TrialRecord) -> MendingStart:
    """Return the place at which a trial first differs from its control."""
    trial_events, control_events = without_times(record.events), without_times(control.events)
    shorter = len(record.events) if len(trial_events) <= len(control_events) else trial_events[len(control_events)][0]
    pairs = zip(trial_events, control_events, strict=False)
    events = next((number for (number, event), (_, control_event) in pairs if event != control_event), shorter)
    return MendingStart(events, sum(call.asked for call in of_kind(record.events[:events], Called)))


def counts_by_verdict(diagnoses: Collection[Diagnosis]) -> dict[MendedPart, dict[str, int]]:
    """Return for each part the number of failures by verdict: necessary, contributing, cleared, not judged, not explained,
    or not asked (it could not be mended)."""
    entries = [entry for diagnosis in diagnoses for entry in diagnosis.entries]

    def verdict(part: MendedPart, entry: EntryDiagnosis) -> str:
        """Return the verdict of one failure's diagnosis on this part."""
        if part not in entry.asked:
            return "not asked"
        if not entry.minimal:
            return "not explained"
        if part in entry.necessary:
            return "necessary"
        if part in entry.contributing:
            return "contributing"
        return "not judged" if part in entry.unjudged else "cleared"

    return {part: dict(Counter(verdict(part, entry) for entry in entries)) for part in PARTS}
