"""The command `bench serve`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.errors import ResultsError
from bench.experiment.manifest import manifest_of
from bench.experiment.matrix import Matrix
from bench.experiment.provenance import code_digest
from bench.experiment.record import TrialRecord
from bench.experiment.runner import missing
from bench.experiment.store import RunWriter, set_aside
from bench.folders import PACKS, RESULTS
from bench.runtime.events import Called
from bench.serve.session import Served, external_config, external_matrix, one_more, serve

INTERRUPTED = 130


class Tally:
    """Says what became of each trial, and adds up what was counted."""

    def __init__(self, console: Console):
        self._console = console
        self.calls = self.tokens = 0
        self.outcomes: Counter[str] = Counter()

    def saw(self, record: TrialRecord) -> None:
        calls = sum(isinstance(event, Called) for event in record.events)
        self.calls += calls
        self.tokens += record.tokens
        self.outcomes[record.outcome] += 1
        said = f"{record.scenario} {record.plan} repetition {record.repetition}: {record.outcome}, {calls} calls, "
        self._console.print(f"{said}{record.tokens:,} tokens{f' ({record.reason})' if record.reason else ''}", markup=False)


def command(
    config: Annotated[Path, typer.Argument(help="A config, such as configs/smoke.toml.")],
    model: Annotated[str | None, typer.Option(help="Answer with this model of the config.")] = None,
    plan: Annotated[str | None, typer.Option(help="Inject this fault plan of the config.")] = None,
    scenario: Annotated[
        str | None, typer.Option(help="Serve this task; without one, calls are counted, nothing graded.")
    ] = None,
    architecture: Annotated[str, typer.Option(help="What to call the system in the results.")] = "external",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8090,
    repetitions: Annotated[int | None, typer.Option(min=1)] = None,
    name: Annotated[str | None, typer.Option(help="The run's folder under results/.")] = None,
    aside: Annotated[bool, typer.Option("--set-aside", help="Rename a folder of another experiment or code.")] = False,
    scenarios: Annotated[list[Path], typer.Option("--scenarios", help="A folder of packs.")] = PACKS,
) -> None:
    """Serve a model to a system of your own, in any language, and count what its failures cost it."""
    console = Console(highlight=False, soft_wrap=True)
    chosen = {"models": [model], "plans": [plan], "scenarios": [scenario]}
    overrides = {key: value for key, value in chosen.items() if value != [None]}
    settings = external_config(config, architecture, {**overrides, "repetitions": repetitions})
    folder = RESULTS / (name or "-".join((settings.name, architecture, scenario or "free", *settings.models)).replace(":", "-"))
    matrix = external_matrix(settings if scenario else one_more(settings, folder), scenarios, code_digest())
    writer, tally = _open(folder, matrix, aside), Tally(console)
    try:
        todo = len(missing(matrix.specs, writer.recorded))
        served = asyncio.run(
            serve(matrix, writer, port, lambda root: _introduce(console, root, matrix, todo, folder), tally.saw)
        )
    finally:
        writer.close()
    _conclude(console, served, tally, folder)
    if served.stopped and scenario:
        raise typer.Exit(INTERRUPTED)


def _open(folder: Path, matrix: Matrix, aside: bool) -> RunWriter:
    manifest = manifest_of(matrix, folder.name)
    try:
        return RunWriter(folder, manifest)
    except ResultsError:
        if not aside:
            raise
        set_aside(folder)
        return RunWriter(folder, manifest)


def _introduce(console: Console, root: str, matrix: Matrix, todo: int, folder: Path) -> None:
    for line in _introduction(root, matrix, todo, folder):
        console.print(line, markup=False)


def _introduction(root: str, matrix: Matrix, todo: int, folder: Path) -> Iterator[str]:
    """Where it is, what answers, what is injected, where it is recorded."""
    yield f"base_url = {root}/v1    (any key, any model name: the experiment's model and settings answer)"
    for name, model in matrix.models.items():
        yield f"model '{name}'" + ("" if model.timing == "live" else f": {model.timing.upper()}, its seconds take no real time")
    for plan in {spec.plan.name: spec.plan for spec in matrix.specs}.values():
        faults = [f"{fault.effect} at {fault.point} of {fault.subtask}" for fault in plan.faults]
        yield f"plan '{plan.name}' injects {'; '.join(faults) or 'nothing'}"
    if any(scenario.graded for scenario in matrix.scenarios.values()):
        yield f"{todo} of {len(matrix.specs)} trials to do: GET {root}/trial, then POST {root}/trial/answer or /trial/give-up"
    else:
        yield "no scenario: calls are counted and nothing is graded; Ctrl-C ends the trial"
    yield f"recorded in {folder}; Ctrl-C stops"


def _conclude(console: Console, served: Served, tally: Tally, folder: Path) -> None:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
    console.print(f"{'stopped' if served.stopped else 'done'}: {outcomes or 'no trial was begun'}", markup=False)
    console.print(f"{served.requests} requests taken, {tally.calls} calls recorded, {tally.tokens:,} tokens", markup=False)
    if tally.outcomes:
        console.print(f"recorded in {folder}; next: bench report {folder.name}", markup=False)
