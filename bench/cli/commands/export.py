"""Commands that exchange runs with other programs and machines: `bench export`, `bench import`, `bench more archive`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from bench.cli.authoring.pack_of_trace import pack_of_trace
from bench.cli.commands.completion import run_names
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import PACKS, REPORTS, folder_of, name_of, named
from bench.elsewhere.reading import read_recorded
from bench.elsewhere.runs import ImportedRun, read_log, read_trace, summary_of
from bench.elsewhere.summary import recorded_lines
from bench.elsewhere.telling import calls_of, log_of_steps, repeated_pairs, run_report_lines, trials_report_lines
from bench.elsewhere.trials import MARK
from bench.record.archive import archive as write_archive
from bench.record.verify import require_sound

out = Terminal()


def export(
    run: Annotated[
        str, typer.Argument(autocompletion=run_names, help="A run's name under results/, its folder, or its archive.")
    ],
    to: Annotated[Path | None, typer.Option(help="The folder to write into; reports/RUN/FORM, if not given.")] = None,
    form: Annotated[str, typer.Option(help="The form of the export; `bench list` names all forms.")] = "csv",
) -> None:
    """Write a run in a form that other programs read.

    csv and parquet have a file for each frame of `bench.load_run`, otel has OpenTelemetry's GenAI spans.

    For example: bench export smoke-simulated --form otel
    """
    # Here, because these import pandas, for which no other command should wait.
    from bench.read.analysis.arms import shortfalls  # noqa: PLC0415
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.read.report.export_part import EXPORTS  # noqa: PLC0415
    from bench.read.report.export_part import export as write_export  # noqa: PLC0415

    part, folder = EXPORTS.named(form), folder_of(run)
    loaded = load_run(folder, check=True)
    for line in shortfalls(loaded):
        out.print(line)
    to = to or named(REPORTS, name_of(folder)) / form
    written = write_export(loaded, part, to)
    names = ", ".join(path.name for path in written[:20])
    out.print(f"{len(written)} files in {to}: {names}{', …' if len(written) > 20 else ''}")


def import_(
    file: Annotated[
        Path, typer.Argument(help="A trace, a trajectory, a session or, without --name, graded trials; the form is recognized.")
    ],
    name: Annotated[str | None, typer.Option(help="The name of the pack to make.")] = None,
    step: Annotated[int | None, typer.Option(min=1, help="The step that fails; the last that writes, if not given.")] = None,
    reads: Annotated[
        list[str] | None,
        typer.Option("--read", metavar="TOOL", help="A tool that changes nothing; may be given more than once."),
    ] = None,
    same: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP=STEP", help="These steps make one effect: the later step repeats the earlier call."),
    ] = None,
    both: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP=STEP", help="These steps make equal calls, and the task wants both effects."),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="ID", help="The trace or trajectory to read, if the file has several.")
    ] = None,
) -> None:
    """Show what happened in a recorded run of any agent.

    Without --name the command lists the calls that were repeated with equal arguments, what preceded each repetition, whether
    the file shows that the first call was not done, what was spent after each error, and what the file does not say. It reads
    ATIF, OpenTelemetry, Langfuse, LangSmith, MLflow, the OpenAI Agents SDK's log, and sessions of Claude Code and Codex. Graded
    trials of tau-bench, tau2-bench, SWE-agent, mini-SWE-agent and Inspect are also counted, and never pooled with our runs.

    With --name the command writes a pack with a subtask for each step and an effect for each tool call, and configs in which
    one step fails. It counts what the file has and the pack lacks.

    For example: bench import incident.json, then bench import incident.json --name incident --same 2=3
    """
    if name is None:
        for line in _incident_lines(file, reads or (), trace):
            out.print(line)
        return
    try:
        run = read_trace(file, reads or (), trace)
    except ResultsError:
        with suppress(ResultsError):
            if trials := read_recorded(file):
                out.print(f"{file}: holds trials of {trials.form} and no trace; without --name they are counted")
        raise
    steps = run.steps
    repeated_steps = _equal_steps(run, same or (), both or ())
    writing_steps = [number for number, imported in enumerate(steps, 1) if any(not call.reads for call in imported.calls)]
    failing_step = step or (writing_steps[-1] if writing_steps else len(steps))
    if failing_step > len(steps):
        raise ResultsError(f"--step {failing_step}: {file} has {len(steps)} steps")
    configs = pack_of_trace(name, PACKS[0], steps, failing_step, file.name, repeated_steps)
    tools = sum(len(imported.calls) for imported in steps)
    out.print(f"{PACKS[0] / name}: {len(steps)} steps, {tools} calls of tools; step {failing_step} fails in the configs")
    for line in summary_of(run.left_out):
        out.print(f"not read as it stands: {line}")
    if failing_step not in writing_steps:
        writing_list = ", ".join(map(str, writing_steps)) or "none"
        out.print(
            f"step {failing_step} calls no tool that changes something, so no crash doubles it; steps that do: {writing_list}"
        )
    for config in configs:
        out.print(f"next: bench run {config} --report")


def _incident_lines(file: Path, reads: Sequence[str], trace: str | None) -> Iterator[str]:
    """Yield the lines about a file of trials, or about one recorded run."""
    try:
        recorded, problem = read_recorded(file), None
    except ResultsError as error:
        recorded, problem = None, error
    if recorded:
        yield from recorded_lines(file, recorded)
        yield from trials_report_lines(recorded.trials)
        return
    try:
        log, left_out = read_log(file, reads, trace)
    except ResultsError as error:
        raise problem or error from error
    yield f"{file}: {MARK}; nothing is run again"
    yield from run_report_lines(log)
    yield from (f"Not read as it stands: {line}." for line in left_out)
    yield f"next: bench import {file} --name NAME makes a pack of it; bench probe finds such calls in the agent itself"


def _equal_steps(run: ImportedRun, same: Sequence[str], both: Sequence[str]) -> dict[int, int]:
    """Return a map from the number of each step that repeats an effect to the number of the step that made the effect first.

    Raises:
        ConfigError: An option names no two steps.
        ResultsError: Two steps make equal calls that may write, and no option says whether they make one effect.
    """
    same_steps, both_steps = ({_steps_in(text, run) for text in texts} for texts in (same, both))
    pairs = repeated_pairs(calls_of(log_of_steps(run.steps)))
    equal_pairs = [(first.step, later.step) for first, later in pairs if first.step != later.step]
    for first, later in equal_pairs:
        if (first, later) not in same_steps | both_steps:
            raise ResultsError(
                f"steps {first} and {later} make equal calls that may write: are they one effect? Give --same {first}={later}, "
                f"or --both {first}={later} if the task means both, or --read TOOL if it only reads"
            )
    return {later: first for first, later in same_steps}


def _steps_in(text: str, run: ImportedRun) -> tuple[int, int]:
    """Return the two step numbers in an option such as 2=3. Raises ConfigError."""
    numbers = re.fullmatch(r"(\d{1,4})=(\d{1,4})", text)
    first, second = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if not 0 < first < second <= len(run.steps):
        raise ConfigError(f"'{text[:40]}' names no two steps: give the earlier and the later, such as 2=3")
    return first, second


def archive(
    runs: Annotated[list[str], typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
) -> None:
    """Write each run as one small file.

    Every command can read the archive if the folder is missing. No command writes to an archive.

    The folder stays. After you have removed it, `python -m zipfile -e results/RUN.zip results/RUN` restores it.

    For example: bench more archive smoke-simulated
    """
    for run in runs:
        folder = folder_of(run)
        require_sound(folder)
        path = write_archive(folder)
        out.print(f"{path} has {decimal(path.stat().st_size)}; the folder {folder} is kept, and you may remove it")
