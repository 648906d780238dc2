"""The result of a probe for other programs: as JSON, and as Markdown for a comment on a pull request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from bench.common.bounds import Many
from bench.common.wording import plural
from bench.probe.read import sentences
from bench.probe.read.run import EXIT_CODES, CellGate, Conclusion, ProbedPlan, ProbeRead
from bench.probe.read.sentences import verdict_label
from bench.read.render.escaping import escape_markdown
from bench.read.render.table import Table, markdown
from bench.record.events import of_kind
from bench.record.probe_events import CellVerdict, GatewayCall
from bench.record.probe_rows import RowDifference

JSON_VERSION: Literal[1] = 1
"""The version of the JSON. It changes when a field changes its meaning or is removed; new fields can be added."""
TITLES = {
    "damage": "✕ damage",
    "none": "✓ no damage",
    "tool": "✕ a tool does damage when it gets one call twice",
    "undecided": "? undecided",
    "cannot": "✕ it could not be probed",
}
GATE_ORDER: tuple[CellGate, ...] = ("damage", "tool", "undecided", "passed")
MAX_TABLE_CELLS = 100
"""The most cells in a comment, which GitHub and GitLab bound."""


@dataclass(frozen=True)
class CellSummary:
    """A cell that was run.

    cell     its plan, which the options `--only` and `--test` accept
    gate     the result for a gate: passed, damage, a tool's damage, or undecided
    runs     how many of its runs have a verdict
    damaged  how many of these runs did damage
    why      the fault, and its consequence
    rows     the rows that differ from the clean runs
    blame    the part that is to blame, and what to do; "" if nothing was mended
    """

    cell: str
    verdict: CellVerdict
    gate: CellGate
    runs: int
    damaged: int
    why: str
    rows: Many[RowDifference]
    said_done: bool | None
    blame: str


@dataclass(frozen=True)
class ProbeSummary:
    """The result of a probe.

    verdict    the conclusion
    exit_code  the exit code of `bench probe`, unless a signal stopped it
    sentence   the conclusion in words
    cells      the cells in the order of the plan
    missing    the planned cells that were not run
    runs       the number of runs of the agent, with clean runs and controls
    seconds, tokens, dollars   the totals of all these runs; `dollars` is None if a price is unknown
    not_shown  the limits of the probe: sentences on what it does not show
    """

    name: str
    verdict: Conclusion
    exit_code: int
    sentence: str
    cells: Many[CellSummary]
    missing: Many[str]
    runs: int
    seconds: float
    tokens: int
    dollars: float | None
    not_shown: Many[str]
    version: Literal[1] = JSON_VERSION


SUMMARY: TypeAdapter[ProbeSummary] = TypeAdapter(ProbeSummary)


def summary_of(probe: ProbeRead) -> ProbeSummary:
    """Return the result of a probe in the form for other programs."""
    return ProbeSummary(
        name=probe.name,
        verdict=probe.conclusion,
        exit_code=EXIT_CODES[probe.conclusion],
        sentence=sentences.conclusion_sentence(probe),
        cells=tuple(_summary(cell, probe) for cell in probe.cells.values()),
        missing=tuple(probe.missing),
        runs=len(probe.records),
        seconds=probe.seconds,
        tokens=probe.tokens,
        dollars=probe.dollars,
        not_shown=tuple(sentences.limit_sentences(probe)),
    )


def _summary(cell: ProbedPlan, probe: ProbeRead) -> CellSummary:
    """Return the summary of one cell."""
    judged, blame = cell.judgement, cell.blame
    why = "the control after it was not the same"
    if judged:
        fault = sentences.fault_clause(judged, of_kind(cell.worst.events, GatewayCall), probe.texts)
        has_consequence = judged.findings or judged.why
        why = f"{fault}: {sentences.consequence_clause(judged)}" if has_consequence else fault
    return CellSummary(
        cell=cell.plan,
        verdict=cell.verdict,
        gate=cell.gate,
        runs=len(cell.runs),
        damaged=cell.runs_damaged,
        why=why,
        rows=tuple(row for finding in (judged.findings if judged else ()) for row in finding.rows),
        said_done=judged.said_done if judged else None,
        blame=blame.sentence if blame else "",
    )


def as_json(summary: ProbeSummary) -> str:
    """Return the result as JSON."""
    return json.dumps(SUMMARY.dump_python(summary, mode="json"), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_markdown(probe: ProbeRead, summary: ProbeSummary) -> str:
    """Return the result as Markdown: the verdict, the worst case with its rows, a table of the cells, and the limits."""
    cells = sorted(summary.cells, key=lambda cell: GATE_ORDER.index(cell.gate))
    rows = [(cell.cell, verdict_label(cell.verdict), _runs(cell), cell.why) for cell in cells[:MAX_TABLE_CELLS]]
    rest = len(cells) - len(rows)
    notes = [f"{plural(rest, 'further cell')}: probe.html has them."] if rest else []
    notes += [f"{plural(len(summary.missing), 'planned cell')} not run."] if summary.missing else []
    table = Table("cells", f"The cells of {probe.name}", ("Cell", "Verdict", "Runs", "Why"), tuple(rows), tuple(notes))
    conclusion = (
        *sentences.worst_case_lines(probe),
        sentences.verdicts_sentence(probe),
        sentences.runs_sentence(probe),
        *summary.not_shown,
    )
    bullets = "\n".join(f"- {escape_markdown(line)}" for line in conclusion if line)
    parts = [f"## bench probe: {TITLES[summary.verdict]}", escape_markdown(summary.sentence), bullets]
    return "\n\n".join((*parts, markdown(table))) if cells else "\n\n".join(parts) + "\n"


def _runs(cell: CellSummary) -> str:
    """Return the number of runs of a cell in words, and how many of them did damage."""
    return f"damage in {cell.damaged} of {cell.runs}" if cell.damaged else f"{cell.runs}"
