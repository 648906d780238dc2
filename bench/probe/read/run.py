"""A probe as it is read from its records: its clean runs, controls and cells, and the conclusion from all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from bench.common.errors import ResultsError
from bench.common.numbers import Seconds
from bench.probe.points import severity_rank
from bench.probe.read.blame import CellBlame, blame_of, first_mends
from bench.record.cost import Tariff
from bench.record.events import Called, Events, of_kind
from bench.record.manifest import Manifest
from bench.record.probe_events import (
    CLEAN,
    CONTROL,
    EARLY,
    KINDS,
    CellFinding,
    CellJudged,
    CellsPlanned,
    CellVerdict,
    GatewayCall,
    mended_plan,
)
from bench.record.probed import Probed
from bench.record.reading import read_manifest, read_records, read_texts
from bench.record.record import SessionRecord, TrialRecord, latest

MIN_CLEAN_RUNS, MIN_REPEATED_CELLS = 5, 10
"""How many clean runs, and how many cells that ran a second time, must be equal before the conclusion `none` is a bound."""
Conclusion = Literal["damage", "none", "undecided", "cannot", "tool"]
"""The conclusion of a probe. `tool`: only a tool does damage, when it gets one call twice; `cannot`: the agent could not be
probed."""
EXIT_CODES: Mapping[Conclusion, int] = {"none": 0, "damage": 1, "cannot": 2, "undecided": 3, "tool": 4}
SEVERITY: Sequence[CellVerdict] = (*KINDS, "did_not_end", "no_verdict", "repeated", "gave_up", "compensated", "absorbed")
UNDECIDED = frozenset[CellVerdict](("no_verdict", "repeated"))
INCONCLUSIVE = UNDECIDED | frozenset[CellVerdict](("not_applicable",))
"""The verdicts on cells that show neither damage nor its absence."""
ALL_EFFECTS_STAND = frozenset[CellVerdict](("same", "absorbed", "compensated"))
CellGate = Literal["passed", "damage", "tool", "undecided"]
"""What a cell means for a gate; `undecided` is a cell that is neither a pass nor damage."""


@dataclass(frozen=True)
class ProbedPlan:
    """One cell of a probe, by its plan, with its runs in order.

    runs          the records and verdicts of the runs, without the runs whose verdict a failed control removed
    mended        the verdicts on runs in which the gateway mended parts
    unsaid_fails  the owner's setting (`Probed`)
    """

    plan: str
    runs: tuple[tuple[TrialRecord, CellJudged], ...]
    mended: tuple[CellJudged, ...] = ()
    unsaid_fails: bool = False

    @property
    def judgement(self) -> CellJudged | None:
        """The most severe verdict among the runs of the cell; None if there is none."""
        return min((judged for _, judged in self.runs), key=_severity, default=None)

    @property
    def verdict(self) -> CellVerdict:
        return self.judgement.verdict if self.judgement else "no_verdict"

    @property
    def runs_damaged(self) -> int:
        """The number of runs of the cell that did damage."""
        return sum(judged.is_damage for _, judged in self.runs)

    @property
    def worst(self) -> TrialRecord:
        """The first run with the most severe verdict."""
        return min(self.runs, key=lambda run: _severity(run[1]))[0]

    @property
    def blame(self) -> CellBlame | None:
        """The parts that are to blame for the cell's damage, according to the runs with mended parts; None without such runs.
        The parts that were due follow from the calls of the first run."""
        if not self.judgement:
            return blame_of("", self.mended)
        finding, (first_record, _) = most_severe_finding(self.judgement), self.runs[0]
        effect = (finding and finding.effect) or self.judgement.call
        due = first_mends(of_kind(first_record.events, GatewayCall))
        return blame_of(effect.partition("#")[0], self.mended, due)

    @property
    def is_tool_damage(self) -> bool:
        """Whether all damage of the cell was done by a tool that got one call twice."""
        findings = [finding for _, judged in self.runs if judged.is_damage for finding in judged.findings]
        return bool(findings) and all(finding.culprit == "tool" for finding in findings)

    @property
    def has_unsaid_success(self) -> bool:
        """Whether a run has all effects, although the agent said that it failed."""
        return any(not judged.said_done and judged.verdict in ALL_EFFECTS_STAND for _, judged in self.runs)

    @property
    def gate(self) -> CellGate:
        """The result of the cell for a gate: passed, damage by the agent, damage by a tool alone, or undecided."""
        if self.runs_damaged:
            return "tool" if self.is_tool_damage else "damage"
        if self.unsaid_fails and self.has_unsaid_success:
            return "damage"
        return "undecided" if self.verdict in {*INCONCLUSIVE, "did_not_end"} else "passed"

    @property
    def is_proven(self) -> bool:
        """Whether the cell ran more than once, and did damage in every run."""
        return len(self.runs) > 1 and self.runs_damaged == len(self.runs)


@dataclass(frozen=True)
class ProbeRead:
    """The records of a probe.

    clean, controls   the clean runs, and the verdicts on the controls, in order
    cells             the cells by plan, in the order of the plan
    problems          why runs of the agent could not be made
    harmed            why there is no conclusion: a store itself changed; "" if none did
    """

    folder: Path
    manifest: Manifest
    probed: Probed
    planned: CellsPlanned | None
    clean: tuple[TrialRecord, ...]
    controls: tuple[CellJudged, ...]
    cells: Mapping[str, ProbedPlan]
    records: tuple[TrialRecord, ...]
    problems: tuple[str, ...]
    harmed: str
    ending: str

    @property
    def name(self) -> str:
        return self.manifest.config.name

    @cached_property
    def damaged_cells(self) -> Sequence[ProbedPlan]:
        """The damaged cells: the agent's damage first, then damage that was confirmed, then by severity."""

        def order(cell: ProbedPlan) -> tuple[bool, bool, int, int]:
            judged = cell.judgement
            point_rank = severity_rank((judged and judged.point) or "")
            return cell.is_tool_damage, not cell.is_proven, SEVERITY.index(cell.verdict), point_rank

        return sorted((cell for cell in self.cells.values() if cell.runs_damaged), key=order)

    @cached_property
    def with_verdict(self) -> Sequence[ProbedPlan]:
        """The cells that have a verdict."""
        return [cell for cell in self.cells.values() if cell.verdict not in INCONCLUSIVE]

    @cached_property
    def missing(self) -> Sequence[str]:
        """The planned cells that were not run."""
        return [plan for plan in (self.planned.cells if self.planned else ()) if plan not in self.cells]

    @property
    def equal_clean_runs(self) -> int:
        """The number of clean runs if all are equal; 0 if any differs."""
        judgements = [judged for record in self.clean for judged in of_kind(record.events, CellJudged)]
        return len(judgements) if all(judged.verdict == "same" for judged in judgements) else 0

    @property
    def repeated_cells(self) -> Sequence[ProbedPlan]:
        """The cells that ran more than once, each time with a verdict and without damage."""
        repeated = (cell for cell in self.cells.values() if len(cell.runs) > 1 and not cell.runs_damaged)
        return [cell for cell in repeated if all(judged.verdict not in UNDECIDED for _, judged in cell.runs)]

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion of the probe. `none` is a bound: no planned cell is missing, and all cells that ran twice had equal
        verdicts. If only some cells were selected, the bound is for these."""
        if not self.planned or self.harmed:
            return "cannot"
        race = self.planned.race
        if any(cell.gate == "damage" for cell in self.cells.values()):
            return "damage"
        if any(row.before is None or row.after is None for row in race):  # overlapping calls make or lose a row
            return "damage"
        has_gap = self.missing or any(cell.verdict in UNDECIDED for cell in self.cells.values())
        if has_gap or race or self.planned.again:
            return "undecided"
        if self.damaged_cells:
            return "tool"
        has_repeats = len(self.repeated_cells) >= min(MIN_REPEATED_CELLS, len(self.cells))
        is_bound = self.with_verdict and self.equal_clean_runs >= MIN_CLEAN_RUNS and has_repeats
        return "none" if is_bound else "undecided"

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Arguments, responses and outputs by their digests; none before the first cell has run."""
        return read_texts(self.folder) if self.cells else {}

    @property
    def tokens(self) -> int:
        return sum(record.tokens for record in self.records)

    @property
    def seconds(self) -> Seconds:
        """The seconds of all runs of the agent together."""
        return sum(record.api_seconds + record.framework_seconds for record in self.records)

    @property
    def dollars(self) -> float | None:
        """The price of the model's tokens; None if a price is unknown."""
        costs = list(map(Tariff(self.manifest.models).cost, self.records))
        known_costs = [cost for cost in costs if cost is not None]
        return sum(known_costs) if len(known_costs) == len(costs) and any(record.tokens for record in self.records) else None


def most_severe_finding(judged: CellJudged) -> CellFinding | None:
    """Return the finding that explains a verdict; None if the verdict has no finding."""
    return min(judged.findings, key=lambda finding: (finding.kind != judged.verdict, KINDS.index(finding.kind)), default=None)


def read_probe(folder: Path) -> ProbeRead:
    """Return a probe's run. Raises ResultsError if the folder holds none."""
    manifest = read_manifest(folder)
    if manifest.probe is None:
        raise ResultsError(f"{folder}: is no probe; its report is made by: bench report {folder.name}")
    trials, sessions = list[TrialRecord](), list[SessionRecord]()
    for record in read_records(folder):
        trials.append(_reduced_record(record)) if isinstance(record, TrialRecord) else sessions.append(record)
    return probe_of(folder, manifest, manifest.probe, trials, sessions)


def probe_of(
    folder: Path, manifest: Manifest, probed: Probed, trials: Sequence[TrialRecord], sessions: Sequence[SessionRecord]
) -> ProbeRead:
    """Return the probe that these records describe. The verdicts that a failed control voids are left out."""
    records = latest(trials)
    by_plan: dict[str, list[tuple[TrialRecord, CellJudged]]] = {}
    planned: CellsPlanned | None = None
    for record in sorted(records, key=lambda record: record.repetition):
        planned = next(iter(of_kind(record.events, CellsPlanned)), planned)
        by_plan.setdefault(record.plan, []).extend((record, judged) for judged in of_kind(record.events, CellJudged)[-1:])
    clean, controls = by_plan.pop(CLEAN, []), by_plan.pop(CONTROL, [])
    by_plan.pop(EARLY, None)
    voided = {(plan, repetition) for _, judged in controls for plan, repetition in judged.voids}
    mended = dict[str, list[CellJudged]]()
    for plan, runs in list(by_plan.items()):  # move the runs with mended parts from `by_plan` to their cell in `mended`
        if parts := next((judged.mended for _, judged in runs), ()):
            valid = [judged for record, judged in by_plan.pop(plan) if (plan, record.repetition) not in voided]
            mended.setdefault(plan.removesuffix(mended_plan("", parts)), []).extend(valid)
    cells = dict[str, ProbedPlan]()
    for plan, runs in by_plan.items():
        valid_runs = tuple((record, judged) for record, judged in runs if (plan, record.repetition) not in voided)
        if runs:
            cells[plan] = ProbedPlan(plan, valid_runs, tuple(mended.get(plan, ())), probed.unsaid_fails)
    order = planned.cells if planned else ()
    return ProbeRead(
        folder=folder,
        manifest=manifest,
        probed=probed,
        planned=planned,
        clean=tuple(record for record, _ in clean),
        controls=tuple(judged for _, judged in controls),
        cells={plan: cells[plan] for plan in dict.fromkeys((*order, *cells)) if plan in cells},
        records=tuple(records),
        problems=tuple(record.reason for record in records if record.outcome == "error"),
        harmed=next((session.detail for session in sessions if session.harmed), ""),
        ending=sessions[-1].detail if sessions and sessions[-1].what == "ended" else "it has not ended",
    )


def _reduced_record(record: TrialRecord) -> TrialRecord:
    """Return a record without the events that are not needed: a cell without damage keeps its verdict, its plan and the
    requests to the model, since there may be a thousand cells."""
    if any(judged.is_damage for judged in of_kind(record.events, CellJudged)):
        return record
    counted = (event for event in record.events if isinstance(event, Called | CellJudged | CellsPlanned))
    return replace(record, events=Events(counted))


def _severity(judged: CellJudged) -> int:
    """Return the rank of a verdict; 0 is the most severe."""
    return SEVERITY.index(judged.verdict) if judged.verdict in SEVERITY else len(SEVERITY)
