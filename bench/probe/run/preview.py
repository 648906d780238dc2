"""A preview of a probe: what it copies, starts and resets, and how long its cells will take."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from bench.common.wording import plural
from bench.probe.run.probe_file import ProbeSettings
from bench.probe.run.secrets import Secrets
from bench.probe.run.writing import CellRun
from bench.record.model_parameters import ModelParameters
from bench.record.probe.events import CellsPlanned, GatewayCall

MINUTE = 60


def commands_lines(settings: ProbeSettings, secrets: Secrets) -> Iterator[str]:
    """Yield a line for each command that is run."""
    for what, words in settings.commands():
        yield secrets.blot(f"  {what}: {shlex.join(words)}")


def plan_lines(settings: ProbeSettings, secrets: Secrets) -> Iterator[str]:
    """Yield lines on what the probe copies, starts and resets."""
    subject = settings.subject
    yield "copied:"
    for store in settings.stores:
        if store.in_place:
            yield f"  store {store.name} ({store.kind}): a backup is made and its restore is tested, then it is used IN PLACE"
        else:
            where = f" {store.where}{_size(Path(store.where))}" if store.kind != "postgres" else ""
            yield f"  store {store.name} ({store.kind}):{where} is copied; the store itself stays as it is"
    yield from (f"  {config.path}: the agent gets a rewritten copy, which is removed at the end" for config in subject.configs)
    yield "started:"
    yield from commands_lines(settings, secrets)
    yield "reset before each run of the agent:"
    yield f"  {', '.join(store.name for store in settings.stores)}"
    doors = settings.probed(False, ()).doors
    yield f"struck: calls through {', '.join(doors) or 'no door: name an MCP config, a service or a model'}"
    if hidden := sorted(subject.hide):
        yield f"hidden in all output: {', '.join(hidden)}"


def estimate(cell: CellRun, planned: CellsPlanned, model: ModelParameters | None, workers: int) -> str:
    """Return in one line what the cells will take, estimated from the clean run in which they were planned."""
    cells = len(planned.cells)
    seconds = cells * planned.seconds / workers
    took = f"{seconds:.0f} s" if seconds < MINUTE else f"{seconds / MINUTE:.1f} minutes"
    calls = [event for event in cell.events if isinstance(event, GatewayCall)]
    read, written = (cells * sum(getattr(call, name) for call in calls) for name in ("tokens_in", "tokens_out"))
    tokens = f", about {read + written:,} tokens" if read + written else ""
    dollars = model.cost(read, written) if model else None
    cost = f", about ${dollars:,.2f}" if dollars is not None and tokens else ""
    left = f"; {planned.left_out:,} further cells are left out" if planned.left_out else ""
    return f"{plural(cells, 'cell')}, about {took}{tokens}{cost}{left}"


def _size(path: Path) -> str:
    """Return the size of a file, in words; "" for a folder."""
    return f" ({path.stat().st_size / 1e6:,.1f} MB)" if path.is_file() else ""
