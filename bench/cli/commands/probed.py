"""The output of a probe: its progress, its page, the last lines of the command, and the files for a CI server."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.cli.terminal import Terminal
from bench.common.escaping import escape_line
from bench.record.files import write_files

if TYPE_CHECKING:
    from bench.cli.junit import JunitCase
    from bench.probe.read.summary import ProbeSummary
    from bench.probe.run.writing import CellRun
    from bench.record.model_parameters import ModelParameters
    from bench.record.probe_events import CellJudged, CellsPlanned

SUITE = "bench probe"
"""The name of the JUnit suite."""


class ProbeProgress:
    """Shows each verdict as soon as it is known, and how many cells are left. Use it as a context manager."""

    def __init__(self, out: Terminal, model: ModelParameters | None, workers: int, done: Collection[str]):
        self._out, self._model, self._workers, self._done = out, model, workers, done
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=out, disable=not out.is_terminal)
        self._task = self._bar.add_task("cells", total=None)
        self._finished, self._total = 0, 0

    def __enter__(self) -> ProbeProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def show(self, run: CellRun) -> None:
        """Print the verdict of a finished run of the agent, and move the bar."""
        from bench.probe.run.preview import estimate  # noqa: PLC0415
        from bench.record.events import of_kind  # noqa: PLC0415
        from bench.record.probe_events import CLEAN, CONTROL, EARLY, CellsPlanned  # noqa: PLC0415

        for planned in of_kind(run.events, CellsPlanned):
            self.plan(planned)
            self._out.print(estimate(run, planned, self._model, self._workers))
        if run.problem and run.plan == CLEAN:
            self._out.print(f"{CLEAN}: ✕ it does not count, {run.seconds:.1f} s")
        elif run.problem:
            self._out.print(escape_line(f"{run.plan}: could not be run: {run.problem}"))
        elif judged := run.judgement:
            # Each planned cell counts once: no further run of it, and no run with a mended tool.
            self._finished += run.plan not in (CLEAN, CONTROL, EARLY) and not run.repetition and not judged.mended
            self._out.print(escape_line(f"{self._prefix(run)}{run.plan}: {_verdict_text(judged)}, {run.seconds:.1f} s"))
        self._bar.update(self._task, completed=min(self._finished, self._total or self._finished))

    def plan(self, planned: CellsPlanned) -> None:
        """Show how many cells are planned, and how many of the cells have run before."""
        self._total = len(planned.cells)
        self._finished = sum(cell in self._done for cell in planned.cells)
        self._bar.update(self._task, total=self._total)

    def _prefix(self, run: CellRun) -> str:
        """Return the prefix of the line of a run: the number of the cell, or why the cell ran again."""
        from bench.record.probe_events import CLEAN, CONTROL, EARLY  # noqa: PLC0415

        if run.plan in (CLEAN, CONTROL, EARLY):
            return ""
        if run.judgement and run.judgement.mended:
            return "mended "
        return f"{self._finished} of {self._total} " if self._total and not run.repetition else "again "


def _verdict_text(judgement: CellJudged) -> str:
    """Return a verdict in a few words."""
    from bench.probe.read.sentences import consequence_clause, verdict_label  # noqa: PLC0415

    consequence = consequence_clause(judgement) if judgement.findings or judgement.why else ""
    return f"{verdict_label(judgement.verdict)}{f': {consequence}' if consequence else ''}"


class ProbeFiles(NamedTuple):
    """The paths of the files that a CI server reads; None for a file that is not wanted."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None


def show_probe(out: Terminal, folder: Path, target: Path, stopped: int | None = None, files: ProbeFiles | None = None) -> int:
    """Write the page of a probe and `probe.md` into a folder, and print the summary.

    Args:
        out: The terminal.
        folder: The folder of the probe.
        target: The folder of the page.
        stopped: The exit code of the signal that stopped the probe, or 0. None prints no line with the exit code, and
            returns 0.
        files: Further files to write.

    Returns:
        The exit code: `stopped`, or else the code of the conclusion.
    """
    # Here, because it compiles the page's template, and no other command should wait for that.
    from bench.probe.read.page import page_of  # noqa: PLC0415
    from bench.probe.read.run import EXIT_CODES, read_probe  # noqa: PLC0415
    from bench.probe.read.sentences import summary_lines  # noqa: PLC0415
    from bench.probe.read.summary import as_json, as_markdown, summary_of  # noqa: PLC0415

    probe = read_probe(folder)
    summary = summary_of(probe)
    comment = as_markdown(probe, summary).encode()
    page, _ = write_files(target, {"probe.html": page_of(probe).encode(), "probe.md": comment})
    wanted_files = files or ProbeFiles()
    for path, content in ((wanted_files.json, as_json(summary).encode()), (wanted_files.markdown, comment)):
        if path:
            write_files(path.parent, {path.name: content})
    if wanted_files.junit:
        from bench.cli.junit import write_junit  # noqa: PLC0415  few probes write the file

        write_junit(wanted_files.junit, SUITE, list(_junit_cases(summary)))
    code = None if stopped is None else stopped or EXIT_CODES[probe.conclusion]
    for line in summary_lines(probe, str(page), code):
        out.print(line)
    return code or 0


def _junit_cases(summary: ProbeSummary) -> Iterator[JunitCase]:
    """Yield a JUnit case for the conclusion and for each planned cell. An undecided cell is a skipped case with the reason."""
    from bench.cli.junit import JunitCase  # noqa: PLC0415

    problem = "" if summary.verdict == "none" else summary.sentence
    if summary.verdict == "undecided":
        yield JunitCase(summary.name, "conclusion", "\n".join((problem, *summary.not_shown)), "skipped")
    else:
        kind = "" if summary.verdict == "cannot" else summary.verdict
        yield JunitCase(summary.name, "conclusion", problem, "error" if summary.verdict == "cannot" else "failure", kind)
    for cell in summary.cells:
        lines = (f"{cell.verdict.replace('_', ' ')} in {cell.damaged} of {cell.runs} runs: {cell.why}", cell.blame)
        match cell.gate:
            case "passed":
                yield JunitCase(summary.name, cell.cell)
            case "undecided":
                yield JunitCase(summary.name, cell.cell, f"{cell.verdict.replace('_', ' ')}: {cell.why}", "skipped")
            case "damage" | "tool" as kind:
                yield JunitCase(summary.name, cell.cell, "\n".join(filter(None, lines)), kind=kind)
    for plan in summary.missing:
        yield JunitCase(summary.name, plan, "it was not run", "skipped")
