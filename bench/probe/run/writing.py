"""Writes a probe's run to disk. Each cell becomes a trial in `results/NAME`, as in any run, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.common.digests import Texts, digest_of
from bench.common.errors import ResultsError, one_line
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.secrets import Secrets
from bench.record.config import StoredConfig
from bench.record.events import Answered, Called, Cause, OfAKind, of_kind
from bench.record.files import FORMAT, MANIFEST, holds
from bench.record.grade import Grade
from bench.record.manifest import Manifest, ManifestPack
from bench.record.model_parameters import ModelParameters
from bench.record.origin import CodeVersion
from bench.record.probe_events import CLEAN, CONTROL, CellJudged, CellsPlanned, GatewayCall
from bench.record.probed import AGENT, WITHOUT_MODEL, Probed
from bench.record.provenance import machine, now, package_versions
from bench.record.reading import read_manifest, read_records, read_trials
from bench.record.record import Outcome, ResponseRecord, SessionRecord, TrialRecord, arm_of
from bench.record.store import RunWriter, write_manifest

MAX_REASON_CHARS = 300
"""The most characters of the reason in a record."""
OUTCOMES: Mapping[str, Outcome] = {
    "same": "solved",
    "absorbed": "solved",
    "compensated": "solved",
    "gave_up": "gave_up",
    "did_not_end": "gave_up",
    "not_applicable": "ungraded",
    "no_verdict": "ungraded",
    "repeated": "ungraded",
}
"""A trial's outcome by the verdict on its cell; damage is `wrong`."""


@dataclass(frozen=True)
class CellRun:
    """One run of the agent, as the probe yields it.

    plan        `clean`, `control`, or the name of a cell (`bench.record.probe_events.plan_of`)
    repetition  the number of earlier runs of this plan
    events      the events, of which `CellJudged` is the last, unless there is a `problem`
    texts       the texts to which the events refer, by their digests
    seconds     how long the run took
    problem     why it could not be run; "" if it was. Such a run is made again when the probe goes on
    """

    plan: str
    repetition: int
    events: Sequence[OfAKind]
    texts: Mapping[str, str]
    seconds: float
    problem: str = ""

    @property
    def judgement(self) -> CellJudged | None:
        judged = of_kind(self.events, CellJudged)
        return judged[-1] if judged else None


def run_of(
    plan: str, repetition: int, agent_run: AgentRun, judged: CellJudged, further_events: Sequence[OfAKind] = ()
) -> CellRun:
    """Return the record of a run of the agent, with its verdict and further events."""
    calls: list[tuple[float, OfAKind]] = [(call.arrived, call) for call in agent_run.calls]
    readings = ((reading.started, reading) for reading in agent_run.readings)
    timed_events = [event for _, event in sorted([*calls, *readings], key=lambda timed: timed[0])]
    events = (*timed_events, *agent_run.lives, *further_events, judged)
    return CellRun(plan, repetition, events, agent_run.texts, agent_run.seconds)


def without_secrets(run: CellRun, secrets: Secrets) -> CellRun:
    """Return a run without the secrets in its events and texts. Texts that no event refers to are removed."""
    texts = Texts()
    events = secrets.blot_all(tuple(run.events), run.texts, texts)
    return replace(run, events=events, texts=texts, problem=secrets.blot(run.problem))


class ProbeWriter:
    """Appends the runs of a probe to its folder, which is new or continued.

    folder       the run's folder
    plans        the plans that have run
    recorded     the trials that the run held at the opening, except those that ended in an error
    is_complete  whether the run had everything it needs, with a regular end, when it was opened

    Raises ResultsError as `RunWriter` does, and for a run in which a store itself changed.
    """

    def __init__(
        self, folder: Path, name: str, probed: Probed, secrets: Secrets, model: ModelParameters | None, code: CodeVersion
    ):
        self.folder, self._name, self._secrets = folder, name, secrets
        self._model = (model.model if model else None) or WITHOUT_MODEL
        plans = read_manifest(folder).config.plans if holds(folder, MANIFEST) else (CLEAN, CONTROL)
        parameters = model or ModelParameters(kind=WITHOUT_MODEL)
        self._manifest = _manifest(folder.name, name, probed, {self._model: parameters}, plans, code)
        self._writer = RunWriter(folder, self._manifest)
        records = list(read_records(folder))
        if any(isinstance(record, SessionRecord) and record.harmed for record in records):
            self._writer.close()
            raise ResultsError(f"{folder}: a store itself changed in this probe, so nothing is concluded from it")
        self.recorded = [record for record in records if isinstance(record, TrialRecord) and record.outcome != "error"]
        self.plans = {record.plan for record in self.recorded}
        self.is_complete = bool(records) and isinstance(records[-1], SessionRecord) and records[-1].mark is not None

    def add(self, cell: CellRun) -> CellRun:
        """Append a run, and return it as it is written: without secrets."""
        if not cell.problem:
            self.plans.add(cell.plan)
        for planned in of_kind(cell.events, CellsPlanned):
            self._name_plans(planned.cells)
        self._name_plans([cell.plan])
        cell = without_secrets(cell, self._secrets)
        calls = [call for call in of_kind(cell.events, GatewayCall) if call.door_kind == "model" and call.passed_on is not None]
        requests = [_called_event(call, number) for number, call in enumerate(calls, 1)]
        record = self._record(cell, (*requests, *cell.events), requests)
        for call in requests:
            if call.reply:
                self._writer.respond(_response(record, call), cell.texts)
        self._writer.add(record, cell.texts)
        return cell

    def close(self) -> None:
        """Close the files if nothing was run."""
        self._writer.close()

    def begin(self) -> None:
        """Record the start of a session."""
        self._writer.note(SessionRecord(now(), "began", "probe"))

    def end(self, detail: str, complete: bool, harmed: bool = False) -> None:
        """Record the end of the session, and close the files. `harmed`: whether a store of the owner's own has changed."""
        mark = self._writer.mark if complete else None
        how = one_line(self._secrets.blot(detail), MAX_REASON_CHARS)
        self._writer.note(SessionRecord(now(), "ended", how, mark=mark, harmed=harmed))
        self._writer.remove_if_empty()
        self._writer.close()

    def _record(self, cell: CellRun, events: tuple[OfAKind, ...], requests: Sequence[Called]) -> TrialRecord:
        """Return the trial that records a run, with its outcome, tokens and seconds."""
        judged = next(iter(of_kind(events, CellJudged)), None)
        seconds = sum(call.seconds for call in requests)
        outcome: Outcome = "error"
        if judged and not cell.problem:
            outcome = OUTCOMES.get(judged.verdict, "wrong")
        grade = Grade(outcome == "solved", float(outcome == "solved"), {}) if outcome in ("solved", "wrong") else None
        return TrialRecord(
            id=digest_of("\0".join((self._manifest.scenarios[self._name].asked, self._model, cell.plan, str(cell.repetition)))),
            scenario=self._name,
            architecture=AGENT,
            model=self._model,
            plan=cell.plan,
            repetition=cell.repetition,
            outcome=outcome,
            reason=one_line(cell.problem or (judged.why if judged else ""), MAX_REASON_CHARS),
            grade=grade,
            tokens=sum(call.tokens_in + call.tokens_out for call in requests),
            api_seconds=seconds,
            waiting_seconds=0.0,
            framework_seconds=max(0.0, cell.seconds - seconds),
            timing="live",
            events=(*events, Answered(())) if grade else events,
        )

    def _name_plans(self, plans: Iterable[str]) -> None:
        """Add these plans to the manifest, and write the manifest again if it lacked a plan."""
        config = self._manifest.config
        if new := [plan for plan in dict.fromkeys(plans) if plan not in config.plans]:
            new_config = config.model_copy(update={"plans": (*config.plans, *new)})
            self._manifest = self._manifest.model_copy(update={"config": new_config})
            write_manifest(self.folder, self._manifest)


def holds_other_probe(folder: Path, probed: Probed) -> bool:
    """Return whether a folder holds another probe that has only clean runs.

    Raises:
        ResultsError: The folder cannot be read, or holds cells of another probe.
    """
    if not holds(folder, MANIFEST) or (recorded := read_manifest(folder).probe) is None or recorded == probed:
        return False
    if all(record.plan == CLEAN for record in read_trials(folder)):
        return True
    is_same = recorded.subject == probed.subject
    difference = "other cells were asked for then" if is_same else "its file, or a file that it names, has changed"
    raise ResultsError(f"{folder}: is another probe, since {difference}; give --set-aside to begin anew, or --name")


def _called_event(call: GatewayCall, number: int) -> Called:
    """Return a request to the model as the event that the ledger counts."""
    assert call.passed_on is not None
    cause: Cause = "step" if number > 1 else "first"
    if call.repeats:
        cause = "rerun" if call.cause == "restart" else "retry"
    return Called(
        call=number,
        subtasks=(),
        attempt=1,
        try_=1,
        cause=cause,
        started=call.passed_on,
        seconds=0.0 if call.answered is None else call.answered - call.passed_on,
        seed=0,
        messages=(),
        reply=call.answer,
        delivered=None,
        tokens_in=call.tokens_in,
        tokens_out=call.tokens_out,
        usage_in=None,
        usage_out=None,
        finish="stop" if call.answer else None,
        failure=None if call.answer else "cut_off",
    )


def _response(record: TrialRecord, call: Called) -> ResponseRecord:
    """Return the record of the model's reply."""
    return ResponseRecord(
        model=record.model,
        settings="",
        messages=call.messages,
        seed=call.seed,
        occurrence=call.call - 1,
        answers=0,
        scenario=record.scenario,
        instance=record.instance,
        repetition=record.repetition,
        arm=arm_of(record.architecture, record.plan),
        seconds=call.seconds,
        reply=call.reply,
        usage_in=call.tokens_in,
        usage_out=call.tokens_out,
    )


def _manifest(
    run: str, name: str, probed: Probed, models: Mapping[str, ModelParameters], plans: Sequence[str], code: CodeVersion
) -> Manifest:
    """Return the manifest of a new run."""
    config = StoredConfig.model_construct(
        name=name, scenarios=(name,), architectures=(AGENT,), models=tuple(models), plans=tuple(plans), repetitions=1, seed=0
    )
    return Manifest(
        format=FORMAT,
        name=run,
        started=now(),
        config=config,
        models=models,
        architectures={AGENT: probed.subject},
        scenarios={name: ManifestPack(asked=probed.subject)},
        code=code,
        packages=package_versions(),
        machine=machine(),
        probe=probed,
    )
