"""Read a run that another program recorded, in whichever form it is. The program need not know this suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.common.errors import ResultsError, nearest, one_line
from bench.common.wording import first_violation
from bench.elsewhere.content import bytes_of, json_of
from bench.elsewhere.runs.coding_sessions import add_session, is_claude_line, is_codex_line
from bench.elsewhere.runs.platforms import is_of_platform, platform_spans
from bench.elsewhere.runs.spans import TracedSpan, hex_id, holds_spans, spans_of
from bench.elsewhere.runs.steps import ImportedRun, OpenCall, RunInMaking, StepCost, summary_of
from bench.elsewhere.runs.traces import add_traces
from bench.elsewhere.runs.trajectories import Trajectory, add_trajectory

MOST_TOLD = 20
"""How many times the steps of a pack are read of a run that is only told."""


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
    return _mark(_read(path, trace, RunInMaking(str(path))).ended(), reading_tools, path)


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
    run = _read(path, trace, RunInMaking(str(path), MOST_TOLD))
    calls = [entry for entry in run.log if isinstance(entry, OpenCall)]
    if not calls:
        raise ResultsError(f"{path}: holds no call of a tool, so there is nothing to tell")
    _require_known(reading_tools, {call.tool for call in calls}, path)
    for call in calls:
        call.reads = call.reads or call.tool in reading_tools
    return run.log, summary_of(run.left_out)


def _read(path: Path, trace: str | None, run: RunInMaking) -> RunInMaking:
    value = json_of(str(path), bytes_of(path))
    try:
        _add(list(_members(value)), trace, run)
    except ValidationError as error:
        raise ResultsError(f"{path}: is not a trace: {one_line(first_violation(error).line, 200)}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: is not read as a trace: {one_line(str(error), 200)}") from error
    return run


def _members(value: Any) -> Iterator[Any]:
    """Yield the values of a file: the members of a list, and of each list in it."""
    for each in value if isinstance(value, list) else [value]:
        yield from each if isinstance(each, list) else [each]


def _add(values: Sequence[Any], trace: str | None, run: RunInMaking) -> None:
    values = [value["trace"] if isinstance(value, dict) and holds_spans(value.get("trace")) else value for value in values]
    trajectories = [value for value in values if isinstance(value, dict) and "steps" in value]
    traces = [value for value in values if holds_spans(value)]
    platforms = [value for value in values if is_of_platform(value)] if not (trajectories or traces) else []
    sessions = [value for value in values if is_claude_line(value) or is_codex_line(value)] if not platforms else []
    if not sessions and (others := len(values) - len(trajectories or traces or platforms)):
        run.left_out["value in another form"] += others
    if trajectories:
        read = [Trajectory.model_validate(value) for value in trajectories]
        names = [trajectory.id or trajectory.session or str(number) for number, trajectory in enumerate(read, 1)]
        often = Counter(names)
        names = [f"{name}#{number}" if often[name] > 1 else name for number, name in enumerate(names, 1)]
        add_trajectory(read[names.index(_choose(names, trace, "trajectories", run.name))], run)
    elif sessions:
        add_session([value for value in values if isinstance(value, dict)], run)
    elif traces or platforms:
        spans = spans_of(traces, run.left_out) if traces else sorted_spans(platforms)
        chosen = _choose(list(dict.fromkeys(span.trace for span in spans)), trace, "traces", run.name) if spans else ""
        add_traces([span for span in spans if span.trace == chosen], run)
    else:
        keys = ", ".join(list(values[0])[:6]) if values and isinstance(values[0], dict) else "no table"
        raise ResultsError(
            f"{run.name}: is not a trace: it has neither steps (ATIF) nor spans (OTLP, Langfuse, LangSmith, MLflow, the Agents "
            f"SDK) nor lines of a session (Claude Code, Codex), but {one_line(keys, 120) or 'nothing'}"
        )


def sorted_spans(values: Sequence[Any]) -> list[TracedSpan]:
    """Return the spans of values of platforms, in the order of their time. A span that stands twice is read once."""
    spans = [span for value in values for span in platform_spans(value)]
    unique = {(span.trace, span.id or str(number)): span for number, span in enumerate(spans)}
    return sorted(unique.values(), key=lambda span: span.start)


def _choose(ids: Sequence[str], wanted: str | None, what: str, name: str) -> str:
    """Return the id that the user names, or the only one."""
    fitting = [id_ for id_ in ids if id_.startswith((wanted or "", hex_id(wanted or "")))]
    if len(fitting) == 1 or wanted in fitting:
        return wanted if wanted in fitting and wanted is not None else fitting[0]
    shown = one_line(", ".join((fitting or ids)[:5]), 200)
    raise ResultsError(f"{name}: holds {len(ids)} {what}; name one with --trace, such as {shown}")


def _mark(run: ImportedRun, reading_tools: Sequence[str], path: Path) -> ImportedRun:
    _require_known(reading_tools, {call.tool for step in run.steps for call in step.calls}, path)
    steps = (
        replace(step, calls=tuple(replace(call, reads=call.reads or call.tool in reading_tools) for call in step.calls))
        for step in run.steps
    )
    return replace(run, steps=tuple(steps))


def _require_known(tools: Sequence[str], known: Collection[str], path: Path) -> None:
    for tool in tools:
        if tool not in known:
            raise ResultsError(f"{path}: calls no tool '{tool}'; {nearest(tool, sorted(known))}")
