"""A reader of runs that another program recorded, in any of several forms. The program need not know this suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.common.errors import ResultsError, nearest, one_line
from bench.common.wording import first_violation
from bench.elsewhere.runs.coding_sessions import add_session, is_claude_line, is_codex_line
from bench.elsewhere.runs.content import bytes_of, json_of
from bench.elsewhere.runs.platforms import is_of_platform, platform_spans
from bench.elsewhere.runs.spans import TracedSpan, hex_id, holds_spans, spans_of
from bench.elsewhere.runs.steps import ImportedRun, OpenCall, RunBuilder, StepCost, summary_of
from bench.elsewhere.runs.traces import add_traces
from bench.elsewhere.runs.trajectories import Trajectory, add_trajectory

MAX_LOG_FACTOR = 20
"""A log may have this many times the steps and tool calls of a run of which a pack is made."""


def read_trace(path: Path, reading_tools: Sequence[str] = (), trace: str | None = None) -> ImportedRun:
    """Read a recorded run.

    Args:
        path: A file of one JSON value, or of several, one after another: trajectories of ATIF, or spans as OTLP, Tempo, Jaeger,
            Phoenix or OpenTelemetry's console exporter write them.
        reading_tools: The tools that change nothing.
        trace: The id of the trace or trajectory, or its beginning, if the file holds several.

    Raises:
        ResultsError: The file is in no such form, it is damaged or too large, or it has no step with text.
    """
    return _mark_reading_tools(_build_run(path, trace, RunBuilder(str(path))).finish(), reading_tools, path)


def read_log(
    path: Path, reading_tools: Sequence[str] = (), trace: str | None = None
) -> tuple[list[OpenCall | StepCost], list[str]]:
    """Read a recorded run as the log of its calls, which may lack all words of its models.

    Args:
        path: As for `read_trace`.
        reading_tools: The tools that change nothing.
        trace: The id of the trace or trajectory.

    Returns:
        The calls of tools and of models in order, and lines on what was not read.

    Raises:
        ResultsError: As for `read_trace`, and if there is no call of a tool.
    """
    run = _build_run(path, trace, RunBuilder(str(path), MAX_LOG_FACTOR))
    calls = [entry for entry in run.log if isinstance(entry, OpenCall)]
    if not calls:
        raise ResultsError(f"{path}: holds no call of a tool, so there is nothing to tell")
    _require_known(reading_tools, {call.tool for call in calls}, path)
    for call in calls:
        call.reads = call.reads or call.tool in reading_tools
    return run.log, summary_of(run.left_out)


def _build_run(path: Path, trace: str | None, run: RunBuilder) -> RunBuilder:
    """Read a file, add its steps to the run, and return the run. Raises ResultsError if the file is no trace."""
    value = json_of(str(path), bytes_of(path))
    try:
        _add_steps(list(_members(value)), trace, run)
    except ValidationError as error:
        raise ResultsError(f"{path}: is not a trace: {one_line(first_violation(error).line, 200)}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: is not read as a trace: {one_line(str(error), 200)}") from error
    return run


def _members(value: Any) -> Iterator[Any]:
    """Yield the values of a file: the members of a list, and the members of each list in the list."""
    for member in value if isinstance(value, list) else [value]:
        yield from member if isinstance(member, list) else [member]


def _add_steps(values: Sequence[Any], trace: str | None, run: RunBuilder) -> None:
    """Add the steps of the trajectory, session or trace in these values."""
    values = [value["trace"] if isinstance(value, dict) and holds_spans(value.get("trace")) else value for value in values]
    trajectories = [value for value in values if isinstance(value, dict) and "steps" in value]
    traces = [value for value in values if holds_spans(value)]
    platforms = [value for value in values if is_of_platform(value)] if not (trajectories or traces) else []
    sessions = [value for value in values if is_claude_line(value) or is_codex_line(value)] if not platforms else []
    if not sessions and (other_count := len(values) - len(trajectories or traces or platforms)):
        run.left_out["value in another form"] += other_count
    if trajectories:
        read = [Trajectory.model_validate(value) for value in trajectories]
        names = [trajectory.id or trajectory.session or str(number) for number, trajectory in enumerate(read, 1)]
        name_counts = Counter(names)
        names = [f"{name}#{number}" if name_counts[name] > 1 else name for number, name in enumerate(names, 1)]
        add_trajectory(read[names.index(_choose_id(names, trace, "trajectories", run.name))], run)
    elif sessions:
        add_session([value for value in values if isinstance(value, dict)], run)
    elif traces or platforms:
        spans = spans_of(traces, run.left_out) if traces else sorted_spans(platforms)
        chosen = _choose_id(list(dict.fromkeys(span.trace for span in spans)), trace, "traces", run.name) if spans else ""
        add_traces([span for span in spans if span.trace == chosen], run)
    else:
        keys = ", ".join(list(values[0])[:6]) if values and isinstance(values[0], dict) else "no table"
        raise ResultsError(
            f"{run.name}: is not a trace: it has neither steps (ATIF) nor spans (OTLP, Langfuse, LangSmith, MLflow, the Agents "
            f"SDK) nor lines of a session (Claude Code, Codex), but {one_line(keys, 120) or 'nothing'}"
        )


def sorted_spans(values: Sequence[Any]) -> list[TracedSpan]:
    """Return the spans in values of platforms, ordered by time. A span that is in the file twice is read once."""
    spans = [span for value in values for span in platform_spans(value)]
    unique = {(span.trace, span.id or str(number)): span for number, span in enumerate(spans)}
    return sorted(unique.values(), key=lambda span: span.start)


def _choose_id(ids: Sequence[str], given_id: str | None, plural_noun: str, name: str) -> str:
    """Return the id that the user named, or the only id. Raises ResultsError."""
    matching = [id_ for id_ in ids if id_.startswith((given_id or "", hex_id(given_id or "")))]
    if len(matching) == 1 or given_id in matching:
        return given_id if given_id in matching and given_id is not None else matching[0]
    shown = one_line(", ".join((matching or ids)[:5]), 200)
    raise ResultsError(f"{name}: holds {len(ids)} {plural_noun}; name one with --trace, such as {shown}")


def _mark_reading_tools(run: ImportedRun, reading_tools: Sequence[str], path: Path) -> ImportedRun:
    """Return the run with the calls of reading tools marked."""
    _require_known(reading_tools, {call.tool for step in run.steps for call in step.calls}, path)
    steps = []
    for step in run.steps:
        calls = (replace(call, reads=call.reads or call.tool in reading_tools) for call in step.calls)
        steps.append(replace(step, calls=tuple(calls)))
    return replace(run, steps=tuple(steps))


def _require_known(tools: Sequence[str], known_tools: Collection[str], path: Path) -> None:
    """Raise ResultsError if a tool is never called."""
    for tool in tools:
        if tool not in known_tools:
            raise ResultsError(f"{path}: calls no tool '{tool}'; {nearest(tool, sorted(known_tools))}")
