"""`bench report`: a page of runs to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.commands.completion import run_names
from bench.cli.remembered import packs_of
from bench.cli.terminal import Terminal, print_left_out
from bench.common.paths import PACKS, REPORTS, folder_of, name_of, named
from bench.read.report.studies import STUDIES
from bench.record.reading import are_probes, without_collector

out, err = Terminal(), Terminal(stderr=True)


def report(
    runs: Annotated[
        list[str],
        typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder; several runs are compared."),
    ],
    to: Annotated[Path | None, typer.Option(help="The folder to write; reports/RUN, or reports/RUN+RUN, if not given.")] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write each figure as PDF too, for a paper.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all findings, limits and verdicts of the report.")
    ] = False,
) -> None:
    """Write a report of runs: findings, tables and figures.

    A report of several runs needs runs with the same seed. It compares the packs and fault plans that are the same in all runs,
    and pairs the trials, which then had the same faults. The report names what it leaves out, since not all runs have it. An
    architecture or a model that differs in a later run, or gave other results there, is shown as `NAME (RUN)`. The report of a
    probe is its page.

    For example: bench report smoke-simulated
    """
    folders = [folder_of(run) for run in runs]
    if are_probes(*folders):
        from bench.cli.commands.probed import show_probe  # noqa: PLC0415

        for folder in folders:
            show_probe(out, folder, to or named(REPORTS, name_of(folder)))
        return
    write_report(folders, to or named(REPORTS, "+".join(map(name_of, folders))), verbose, pdf)


@without_collector()  # of a report only its figures leave cycles, and they are few
def write_report(folders: list[Path], target: Path, verbose: bool = False, pdf: bool = False) -> None:
    """Write the report of runs into a folder, and print what it finds.

    Args:
        folders: The runs' folders.
        target: The report's folder.
        verbose: Whether all findings, limits and verdicts are printed.
        pdf: Whether each figure is written as PDF too.
    """
    # Here, because these import pandas and matplotlib, and no other command should wait for that.
    from bench.read.analysis.arms import shortfalls  # noqa: PLC0415
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.read.analysis.merge import merge  # noqa: PLC0415
    from bench.read.analysis.metrics import METRICS  # noqa: PLC0415
    from bench.read.report.figures import FIGURES  # noqa: PLC0415
    from bench.read.report.tables import TABLES  # noqa: PLC0415
    from bench.read.report.trace import load_traced  # noqa: PLC0415
    from bench.read.report.written_report import report_of  # noqa: PLC0415
    from bench.record.files import write_files  # noqa: PLC0415
    from bench.rerun.world_views import WorldViews  # noqa: PLC0415

    run, trace = (
        load_traced(folders[0]) if len(folders) == 1 else (merge([load_run(folder, check=True) for folder in folders]), None)
    )
    report = report_of(run, WorldViews(packs_of(PACKS, folders[0], err)), pdf, trace)
    written = write_files(target, report.files)
    print_left_out(err, METRICS, TABLES, FIGURES, STUDIES)
    if verbose:
        out.print("\n".join((*run.notes, report.summary.ran, *(f"- {finding.text}" for finding in report.summary.findings))))
        out.print("What this does not show:")
        out.print("\n".join(f"  - {limit}" for limit in report.summary.limits))
        out.print("\n".join(report.verdicts))
    else:
        out.print("\n".join(report.summary.lines(run.notes)))
    for line in shortfalls(run):
        out.print(line)
    out.print(f"{len(written)} files; open {target / 'report.html'}")
