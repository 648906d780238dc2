"""A preview of a probe: what it copies, starts, calls and resets, and how long its cells will take."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.common.addresses import is_this_machine
from bench.common.escaping import escape_line
from bench.common.wording import plural
from bench.probe.points import point_of, points_of
from bench.probe.read.run import MIN_CLEAN_RUNS, MIN_REPEATED_CELLS
from bench.probe.run.box.loading import loader_of
from bench.probe.run.clean import FIRST_CLEAN_RUNS
from bench.probe.run.probe import CONTROL_EVERY
from bench.probe.run.secrets import Secrets, is_secret_name
from bench.probe.run.settings import Address, ProbeSettings
from bench.probe.run.witness.kinds import STORE_KINDS, is_address
from bench.probe.run.writing import CellRun
from bench.record.model_parameters import ModelParameters
from bench.record.probe_events import CellsPlanned, GatewayCall

SECONDS_PER_MINUTE = 60
DELAYED_RUN_RATIO, OTHER_RUN_RATIO = 2.0, 1.2
"""The estimated length of a cell's run as a multiple of a clean run: of a run in which the agent starts again or a client waits
before it makes the call again; and of any other run."""
DAMAGED_SHARE, RUNS_PER_DAMAGED_CELL = 0.25, 3
"""The share of damaged cells that an estimate assumes, and the further runs of each: once more, and with parts mended."""


def plan_lines(settings: ProbeSettings, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield lines about what the probe copies, starts, calls and resets. The owner's files are shown unchanged; only secrets
    in the owner's own variables are removed, since nobody else could use them to hide a command."""
    hidden = Secrets(value for name, value in environment.items() if is_secret_name(name))
    for line in _lines_with_secrets(settings):
        yield escape_line(hidden.blot(line))


def _lines_with_secrets(settings: ProbeSettings) -> Iterator[str]:
    """Yield the lines of `plan_lines`, from which secrets are not removed yet."""
    subject = settings.subject
    yield "copied:"
    for store in settings.stores:
        path_note = f" {store.where}{_size_note(Path(store.where))}" if not is_address(store) else ""
        treatment = "is copied; if the store itself changes, the probe ends"
        if STORE_KINDS[store.kind].needs_box:
            treatment = "what the agent sends there is caught, and nothing is sent on"
        yield f"  store {store.name} ({store.kind}):{path_note} {treatment}"
    yield from (f"  {config.path}: the agent gets a rewritten copy, which is removed at the end" for config in subject.configs)
    yield f"started, in {subject.agent.folder.resolve()}:"
    if settings.is_boxed:
        yield "  in a box: this folder, the home and the folders of the stores are copies there, temporary folders are new,"
        yield "  all else is read-only, and by the network they reach what is called below, and nothing else"
    else:
        yield f"  WITHOUT A BOX ({settings.unboxable or '--unboxed'}): what they open by a path of their own is REAL"
    yield from _program_lines(settings)
    input_text = json.dumps(subject.agent.answers.decode()) if subject.agent.answers else "nothing"
    yield f"  the agent reads on its standard input what `answers` says: {input_text}"
    if queries := [check for check in subject.checks if check.sql]:
        yield "asked at the end of each run:"
        yield from (f"  the copy of store {check.store}: {check.sql}" for check in queries)
    if subject.meanwhile:
        yield "done right before calls, as by another writer:"
        yield from (f"  the copy of store {step.store}, before {step.call}: {step.sql}" for step in subject.meanwhile)
    yield from _called_lines(settings)
    yield "reset before each run of the agent:"
    yield f"  {', '.join(store.name for store in settings.stores)}"
    if all(store.kind == "memory" for store in settings.stores):
        yield "  nothing else: what the agent does through its tools stays between its runs, and no witness sees it"
    doors = settings.manifest_entry(False, ()).doors
    yield f"struck: calls through {', '.join(doors) or 'no door: name an MCP config, a service or a model'}"
    yield (
        f"runs of the agent: {FIRST_CLEAN_RUNS} undisturbed, then up to {len(points_of('unseen'))} for each call, and several "
        f"times as many where there is damage; the cells are counted after the first {FIRST_CLEAN_RUNS}"
    )
    yield from (f"beware: {line}: it may open yours, and not the copy" for line in settings.fixed_names)
    if hidden := sorted(subject.hide):
        yield f"hidden in all output: {', '.join(hidden)}"


def _program_lines(settings: ProbeSettings) -> Iterator[str]:
    """Yield a line about each program that is started."""
    for program in settings.programs():
        names = f", with the variables {', '.join(program.sets)}" if program.sets else ""
        yield f"  {program.who}: {shlex.join(program.words)}{names}"
        if settings.is_boxed and (loader := loader_of(program.words)):
            once = "it is started once more before the runs, with the REAL network; " if program.is_server else ""
            yield f"    {once}what {loader} loads stays until the probe ends, in no folder of yours"


def _called_lines(settings: ProbeSettings) -> Iterator[str]:
    """Yield a line about each address that is called."""
    hosts, forwarded = settings.subject.hosts, []
    if settings.is_boxed:
        forwarded = [f"{host}:{port}" for host, port in settings.subject.passes]
    if settings.addresses or hosts or forwarded:
        yield "called:"
    yield from (f"  {_address_line(address)}" for address in settings.addresses)
    yield from (f"  the host {host}: each call of each run is made there FOR REAL" for host in hosts)
    if forwarded:
        yield f"  passed on as it is, FOR REAL, and no call is seen there: {', '.join(forwarded)}"


def _address_line(address: Address) -> str:
    """Return a line that says whether the probe calls an address for real."""
    hosts = ", ".join(host or "a socket of this machine" for host in address.hosts) or "a socket of this machine"
    line = f"{address.what}: {address.url or hosts}"
    remote = [host for host in address.hosts if not is_this_machine(host)]
    if not address.is_struck:
        return line
    if remote and not address.url:
        return f"{line}: NOT on this machine; copies are made on that server"
    if remote:
        return f"{line}: NOT on this machine ({', '.join(remote)}); each call of each run is made there FOR REAL"
    if address.is_real:
        return f"{line}: it is not started by the probe; each call of each run is made there FOR REAL, and nothing resets it"
    return line


def estimate(cell: CellRun, planned: CellsPlanned, model: ModelParameters | None, workers: int) -> str:
    """Return an estimate of the cells' time, tokens and cost from the clean runs, in one line.

    It has each cell once, with the second process of an agent that is killed, the controls, and half of the further runs: those
    for a bound, and those of damaged cells if `DAMAGED_SHARE` of the cells are damaged.
    """
    cells = len(planned.cells)
    points = [point_of(plan.rpartition("#")[2].split(".")[1]) for plan in planned.cells]
    delayed = sum(bool(point.death) or point.before == "hold" or point.after == "late" for point in points)
    mean_ratio = (delayed * DELAYED_RUN_RATIO + (cells - delayed) * OTHER_RUN_RATIO) / max(1, cells)
    runs_for_bound = min(MIN_REPEATED_CELLS, cells) + MIN_CLEAN_RUNS - FIRST_CLEAN_RUNS
    runs = cells + (runs_for_bound + DAMAGED_SHARE * RUNS_PER_DAMAGED_CELL * cells) / 2
    clean_lengths = runs * mean_ratio + runs / (CONTROL_EVERY - 1)
    seconds = clean_lengths * planned.seconds / workers
    duration = f"{seconds:.0f} s" if seconds < SECONDS_PER_MINUTE else f"{seconds / SECONDS_PER_MINUTE:.1f} minutes"
    calls = [event for event in cell.events if isinstance(event, GatewayCall)]
    read, written = (round(clean_lengths * sum(getattr(call, name) for call in calls)) for name in ("tokens_in", "tokens_out"))
    tokens = f", about {read + written:,} tokens" if read + written else ""
    dollars = model.cost(read, written) if model else None
    cost = f", about ${dollars:,.2f}" if dollars is not None and tokens else ""
    left_out_note = f"; {planned.left_out:,} further cells are left out" if planned.left_out else ""
    return f"{plural(cells, 'cell')}, about {duration}{tokens}{cost}{left_out_note}"


def _size_note(path: Path) -> str:
    """Return the size of a file in megabytes, in words; "" for a folder."""
    return f" ({path.stat().st_size / 1e6:,.1f} MB)" if path.is_file() else ""
