"""The command `bench trace`. Modules that read results import pandas. No other command should wait for that, so functions
import them."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.command import PacksOption
from bench.cli.commands.completion import run_names
from bench.cli.remembered import packs_of
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError
from bench.common.paths import PACKS, folder_of
from bench.record.reading import are_probes

out, err = Terminal(), Terminal(stderr=True)


def trace(
    run: Annotated[str, typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
    claim: Annotated[str | None, typer.Argument(help="A claim's id, from the table of verdicts.")] = None,
    trial: Annotated[
        str | None,
        typer.Option(help="A trial: the beginning of its id, or its names, such as static/paper/#3 for repetition 3."),
    ] = None,
    scenarios: PacksOption = PACKS,
) -> None:
    """Show the calls of a trial, or the trials behind a claim.

    Of a trial the command shows the calls, the verifier's verdict on each reply with the reason, the faults, and the model's
    last reply. Of a trial in a world it also shows the tool calls with the rows that each call changed, events, approvals,
    crashes, refusals and replays, and the damage with its journal entries. Of a cell of a probe it shows the calls at the
    gateway, the changed rows, and what the agent said.

    For example: bench trace smoke-simulated --trial k8s_oomkill/static/none/#1
    """
    if (claim is None) == (trial is None):
        raise ConfigError("trace what? Give the id of a claim, or --trial and the id of a trial")
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.read.claims.trace import traced_lines  # noqa: PLC0415
    from bench.read.report.trial_text import text_of_trial  # noqa: PLC0415
    from bench.rerun.world_views import WorldViews  # noqa: PLC0415

    folder = folder_of(run)
    if trial is not None and are_probes(folder):
        from bench.probe.read.steps import text_of_cell  # noqa: PLC0415

        out.print(text_of_cell(folder, trial))
        return
    loaded_run = load_run(folder)
    if trial is not None:
        out.print(text_of_trial(loaded_run, trial, WorldViews(packs_of(scenarios, folder, err))))
        return
    for line in traced_lines(loaded_run, str(claim)):
        out.print(line)
