"""Read a run that another program recorded, in whichever form it is. The program need not know this suite."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.cli.authoring.imported.messages import SPARSE
from bench.cli.authoring.imported.spans import hex_id, holds_spans, spans_of
from bench.cli.authoring.imported.steps import ImportedRun, RunInMaking
from bench.cli.authoring.imported.traces import add_traces
from bench.cli.authoring.imported.trajectories import Trajectory, add_trajectory
from bench.common.bounds import crowded
from bench.common.errors import ResultsError, nearest, one_line
from bench.common.files import content_of
from bench.common.wording import first_violation

LARGEST = 2**26
"""Bytes of the largest file."""
_value_begins = re.compile(r"[^ \t\r\n\x1e,]")
"""What can stand between two values of a file of several is left out."""


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
    run = RunInMaking(str(path))
    try:
        content = content_of(path, LARGEST)
        if why := crowded(content, SPARSE):
            raise ResultsError(f"{path}: is not read: {why}")
        _add(list(_values(content)), trace, run)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ResultsError(f"{path}: is not a trace: {one_line(first_violation(error).line, 200)}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: is not JSON in the form of ATIF or OTLP: {one_line(str(error), 200)}") from error
    return _marked(run.ended(), reading_tools, path)


def _values(content: bytes) -> Iterator[Any]:
    """Yield the JSON values of a file, and the members of a list."""
    text = content.decode(json.detect_encoding(content)).removeprefix("\ufeff")
    decoder, place = json.JSONDecoder(), 0
    while begin := _value_begins.search(text, place):
        value, place = decoder.raw_decode(text, begin.start())
        yield from value if isinstance(value, list) else [value]


def _add(values: Sequence[Any], trace: str | None, run: RunInMaking) -> None:
    values = [value["trace"] if isinstance(value, dict) and holds_spans(value.get("trace")) else value for value in values]
    trajectories = [value for value in values if isinstance(value, dict) and "steps" in value]
    traces = [value for value in values if holds_spans(value)]
    if others := len(values) - len(trajectories or traces):
        run.left_out["value in another form"] += others
    if trajectories:
        read = [Trajectory.model_validate(value) for value in trajectories]
        names = [trajectory.id or trajectory.session or str(number) for number, trajectory in enumerate(read, 1)]
        often = Counter(names)
        names = [f"{name}#{number}" if often[name] > 1 else name for number, name in enumerate(names, 1)]
        add_trajectory(read[names.index(_chosen(names, trace, "trajectories", run.name))], run)
    elif traces:
        spans = spans_of(traces, run.left_out)
        chosen = _chosen(list(dict.fromkeys(span.trace for span in spans)), trace, "traces", run.name) if spans else ""
        add_traces([span for span in spans if span.trace == chosen], run)
    else:
        keys = ", ".join(list(values[0])[:6]) if values and isinstance(values[0], dict) else "no table"
        raise ResultsError(
            f"{run.name}: is not a trace: it has neither steps (ATIF) nor spans (OTLP), but {one_line(keys, 120) or 'nothing'}"
        )


def _chosen(ids: Sequence[str], wanted: str | None, what: str, name: str) -> str:
    """Return the id that the user names, or the only one."""
    fitting = [id_ for id_ in ids if id_.startswith((wanted or "", hex_id(wanted or "")))]
    if len(fitting) == 1 or wanted in fitting:
        return wanted if wanted in fitting and wanted is not None else fitting[0]
    shown = one_line(", ".join((fitting or ids)[:5]), 200)
    raise ResultsError(f"{name}: holds {len(ids)} {what}; name one with --trace, such as {shown}")


def _marked(run: ImportedRun, reading_tools: Sequence[str], path: Path) -> ImportedRun:
    known = {call.tool for step in run.steps for call in step.calls}
    for tool in reading_tools:
        if tool not in known:
            raise ResultsError(f"{path}: calls no tool '{tool}'; {nearest(tool, sorted(known))}")
    steps = (
        replace(step, calls=tuple(replace(call, reads=call.reads or call.tool in reading_tools) for call in step.calls))
        for step in run.steps
    )
    return replace(run, steps=tuple(steps))
