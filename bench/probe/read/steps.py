"""The timeline of a cell: its calls, the rows that changed, and the starts and ends of the agent, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.common.errors import ConfigError, nearest, one_line
from bench.common.escaping import escape_line
from bench.probe.read.sentences import CAUSES, row_line
from bench.record.events import Event, of_kind
from bench.record.probe_events import CellJudged, GatewayCall, GatewayNoticed, StoresRead
from bench.record.probe_rows import SEQUENCES, RowDifference
from bench.record.process_events import ProcessEnded, ProcessStarted
from bench.record.reading import read_texts, read_trials
from bench.record.record import latest

MAX_TEXT_CHARS, MAX_LAST_WORDS_CHARS, MAX_STEPS, MAX_ROWS = 240, 600, 400, 40
MAX_PRINTED_CHARS = 4_000
"""The most characters of the agent's output that a page shows."""
STAGES = ("arrived", "passed on", "answered", "given")
END_REASONS = {"crash": "the fault killed it", "time limit": "its time was over"}
CLIENT_REACTIONS = {
    "disconnected": "the client disconnected",
    "cancelled": "the client cancelled it",
    "asked_again": "the client asked again",
    "waits_longer": "the client waited longer",
}


@dataclass(frozen=True)
class TimelineStep:
    """One step of a timeline.

    at       seconds since the start of the run
    title    the step in words
    stages   the stages of a call, each with its time in seconds; None for a stage that the call did not reach
    notes    further lines about the step
    rows     the rows that changed; `more`: the number of further rows
    struck   whether the fault was injected here
    death    whether the agent ended or started here
    """

    at: float
    title: str
    stages: tuple[tuple[str, float | None], ...] = ()
    notes: tuple[str, ...] = ()
    rows: tuple[RowDifference, ...] = ()
    more: int = 0
    struck: bool = False
    death: bool = False


def steps_of(events: Sequence[Event], texts: Mapping[str, str]) -> list[TimelineStep]:
    """Return the steps of a cell in the order of time, at most MAX_STEPS.

    Args:
        events: The events of the cell.
        texts: Digest -> text.
    """
    ordered = sorted(_steps(events, texts), key=lambda step: step.at)
    return ordered[:MAX_STEPS]


def text_of_cell(folder: Path, cell: str) -> str:
    """Return what happened in a cell of a probe, as text.

    Args:
        folder: The probe's run.
        cell: The cell's plan, the plan and `/#N` for a later run of it, or the beginning of the trial's id.

    Raises:
        ResultsError: The folder holds no run.
        ConfigError: There is no such cell.
    """
    records = latest(read_trials(folder))
    plan, _, number = cell.rpartition("/#")
    fitting = [record for record in records if record.plan == cell or (record.plan, str(record.repetition)) == (plan, number)]
    fitting = fitting or [record for record in records if cell and record.id.startswith(cell)]
    if not fitting:
        raise ConfigError(f"no cell is called '{cell}'; {nearest(cell, {record.plan for record in records})}")
    record, texts = fitting[0], read_texts(folder)
    runs_note = f"; it ran {len(fitting)} times, see {record.plan}/#1" if len(fitting) > 1 else ""
    head = f"{record.scenario}, {record.plan}, run {record.repetition}: {record.outcome.replace('_', ' ')}{runs_note}"
    return "\n".join([f"trial {record.id}", escape_line(head), *lines_of(record.events, texts)])


def lines_of(events: Sequence[Event], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the steps of a cell as lines for a terminal, then the verdict and what the agent said. Line ends and control
    characters within a line are escaped."""
    return map(escape_line, _unescaped_lines(events, texts))


def _unescaped_lines(events: Sequence[Event], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of `lines_of` before escaping."""
    for step in steps_of(events, texts):
        stages = ", ".join(f"{name} {_seconds(at)}" for name, at in step.stages)
        yield f"{step.at:>10.2f} s  {'>> ' if step.struck else ''}{step.title}{f': {stages}' if stages else ''}"
        for note in (*step.notes, *map(row_line, step.rows), *([f"and {step.more} more rows"] if step.more else [])):
            yield f"{'':>14}{note}"
    for judged in of_kind(events, CellJudged):
        yield f"verdict: {judged.verdict.replace('_', ' ')}{f': {judged.why}' if judged.why else ''}"
        for finding in judged.findings:
            calls_note = f", by call {', '.join(map(str, finding.calls))}" if finding.calls else ""
            yield f"  {finding.kind}: {finding.effect or 'what no clean run changes'} stands {finding.times} times{calls_note}"
            yield from (f"    {row_line(row)}" for row in finding.rows[:MAX_ROWS])
        yield f"the agent said that it was {'done' if judged.said_done else 'not done'}: {last_words(judged, texts)}"


def last_words(judged: CellJudged, texts: Mapping[str, str]) -> str:
    """Return the end of the agent's standard output in one line; if the standard output is empty, the end of all that was
    printed."""
    text = texts.get(judged.on_stdout or "", "").strip() or printed_end(judged, texts)
    return one_line(text[-MAX_LAST_WORDS_CHARS:], MAX_LAST_WORDS_CHARS) if text else "(it printed nothing)"


def printed_end(judged: CellJudged, texts: Mapping[str, str]) -> str:
    """Return the end of all that the agent and its servers printed."""
    return texts.get(judged.printed or "", "").strip()[-MAX_PRINTED_CHARS:]


def _steps(events: Sequence[Event], texts: Mapping[str, str]) -> Iterator[TimelineStep]:
    """Yield the steps of a cell in the order of the events."""
    began: dict[int, float] = {}
    for event in events:
        match event:
            case ProcessStarted():
                began[event.life] = event.started
                title = "the agent starts" if event.life == 1 else f"the agent starts again, its life {event.life}"
                yield TimelineStep(event.started, title, death=True)
            case ProcessEnded():
                how = f"is killed by signal {event.signal}" if event.signal else f"ends with code {event.code}"
                why = (END_REASONS.get(event.why, event.why),) if event.why else ()
                yield TimelineStep(began.get(event.life, 0.0) + event.seconds, f"the agent {how}", notes=why, death=True)
            case GatewayCall():
                yield _call_step(event, texts)
            case GatewayNoticed():
                yield TimelineStep(event.at, f"{event.door}: {event.what}")
            case StoresRead() if event.changed:
                rows = tuple(row for row in event.changed if row.table != SEQUENCES)
                calls = f"{'call' if len(event.calls) == 1 else 'calls'} {', '.join(map(str, event.calls))}"
                by = f"with {calls if event.calls else 'no call'} in flight"
                title = f"rows changed, {'by another writer' if event.other else by}"
                rest = event.more + max(0, len(rows) - MAX_ROWS)
                yield TimelineStep(event.started, title, rows=rows[:MAX_ROWS], more=rest)
            case _:
                pass


def _call_step(call: GatewayCall, texts: Mapping[str, str]) -> TimelineStep:
    """Return the step of a call."""
    name = f"{call.number}. {call.name}"
    notes = [f"asked: {_short(texts, call.arguments)}"]
    if call.answer:
        failed = " (an error)" if call.failed else ""
        notes.append(f"answered{failed}: {_short(texts, call.answer)}")
    if call.point:
        form = f" ({call.form.replace('_', ' ')})" if call.form else ""
        notes.append(f"struck here: {call.point.replace('_', ' ')}{form}")
    notes += [CLIENT_REACTIONS[call.went]] if call.went else []
    if call.repeats:
        notes.append(f"call {call.repeats} again; {CAUSES[call.cause]}" if call.cause else f"call {call.repeats} again")
    stages = zip(STAGES, (call.arrived, call.passed_on, call.answered, call.given), strict=True)
    return TimelineStep(call.arrived, name, tuple(stages), tuple(notes), struck=call.point is not None)


def _seconds(at: float | None) -> str:
    """Return the time of a stage in seconds; "no" if the stage was not reached."""
    return "no" if at is None else f"{at:.2f}"


def _short(texts: Mapping[str, str], digest: str) -> str:
    """Return the text with this digest in one short line."""
    return one_line(texts.get(digest, digest), MAX_TEXT_CHARS)
