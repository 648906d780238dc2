"""`bench more regrade`: grade the stored answers of runs anew."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.command import PacksOption, UnguardedOption
from bench.cli.commands.completion import run_names
from bench.cli.remembered import packs_of
from bench.cli.terminal import Terminal
from bench.common.paths import PACKS, folder_of
from bench.run.experiment.regrade import regrade as regrade_run

out, err = Terminal(), Terminal(stderr=True)


def regrade(
    runs: Annotated[list[str], typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
    scenarios: PacksOption = PACKS,
    unguarded: UnguardedOption = False,
) -> None:
    """Grade the stored answers of runs again, without a model.

    The present graders of the packs give the new grades, and each report says that they exist.

    For example: bench more regrade smoke-simulated
    """
    for run in runs:
        folder = folder_of(run)
        for done in regrade_run(folder, packs_of(scenarios, folder, err), unguarded):
            graded = f"{done.answers} answers graded anew by the grader {done.graded_by}, {done.changed} grades changed"
            out.print(f"{run}: {done.scenario}: {graded}")
